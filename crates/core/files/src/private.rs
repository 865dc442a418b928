//! Folders and files that only their owner can use, whatever the umask allows to others.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates a folder that only the user can read and write, and the folders above it that are missing. Folders that
/// exist stay as they are.
pub fn make_private(folder: &Path) -> io::Result<()> {
    private_builder().recursive(true).create(folder)
}

/// Creates a folder as [`make_private`] does. If it exists, no other user can read or write it any more.
pub fn close_to_others(folder: &Path) -> io::Result<()> {
    make_private(folder)?;
    #[cfg(unix)]
    std::fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}

/// Creates a folder in a folder that others can write to, for example in `/tmp`.
///
/// # Errors
/// Fails if another user created the folder or can read it, or if it is a link.
pub fn claim_private(folder: &Path) -> io::Result<()> {
    match private_builder().create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => check_private(folder),
    }
}

#[cfg(unix)]
fn check_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let found = std::fs::symlink_metadata(folder)?;
    let is_own = found.uid() == rustix::process::geteuid().as_raw();
    if found.is_dir() && is_own && found.mode().trailing_zeros() >= 6 {
        return Ok(());
    }
    let message = format!(
        "`{}` is not a private folder of this user",
        folder.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

#[cfg(not(unix))]
fn check_private(_folder: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn private_builder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder
}

#[cfg(not(unix))]
fn private_builder() -> DirBuilder {
    DirBuilder::new()
}

/// Returns options to open files. Only their owner can read and write those that they create.
#[cfg(unix)]
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Returns options to open files. The folder decides who can read those that they create.
#[cfg(not(unix))]
pub fn private_options() -> OpenOptions {
    OpenOptions::new()
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    fn open_to_all(path: &Path) {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_new_folder_is_private_and_only_close_to_others_changes_one_that_exists() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("above/folder");
        make_private(&folder).unwrap();
        assert_eq!(
            (mode(&folder), mode(folder.parent().unwrap())),
            (0o700, 0o700)
        );
        open_to_all(&folder);
        make_private(&folder).unwrap();
        assert_eq!(mode(&folder), 0o755);
        close_to_others(&folder).unwrap();
        assert_eq!(mode(&folder), 0o700);
    }

    #[test]
    fn a_folder_that_someone_prepared_for_us_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("folder");
        claim_private(&folder).unwrap();
        claim_private(&folder).unwrap();
        let link = home.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(claim_private(&link).is_err());
        open_to_all(&folder);
        let refusal = claim_private(&folder).unwrap_err();
        assert_eq!(refusal.kind(), io::ErrorKind::PermissionDenied);
        fs::write(home.path().join("file"), "").unwrap();
        assert!(claim_private(&home.path().join("file")).is_err());
    }

    #[test]
    fn a_new_file_is_private() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        private_options()
            .create_new(true)
            .write(true)
            .open(&path)
            .unwrap();
        assert_eq!(mode(&path), 0o600);
    }
}
