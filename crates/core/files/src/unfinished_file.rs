//! Files that get their name when they are complete, so that no one ever finds half of one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::{Builder, NamedTempFile};

use crate::private::make_private;

/// What the names of unfinished files begin with. Few programs look at hidden files.
const PREFIX: &str = ".tenterhook-";

/// What a crash of the whole machine may lose. A crash of the program alone never loses anything that is in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Content and name, for files that can be made again.
    None,
    /// The name: afterwards the path has the old file or the new one, and whole.
    Content,
    /// Nothing.
    ContentAndName,
}

/// A file that is being written next to its place. Dropping it removes it.
#[derive(Debug)]
pub struct UnfinishedFile {
    file: NamedTempFile,
    path: PathBuf,
}

impl UnfinishedFile {
    /// Creates an unfinished file for a path, in the same folder. Only its owner can read and write it.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_in(path, Builder::new().prefix(PREFIX))
    }

    /// Creates an unfinished file whose name has one more extension than the path, so that the next attempt or a
    /// clean-up finds what a killed process left. It replaces an earlier one. A link with this name is not followed.
    pub fn create_with_extension(path: &Path, extension: &str) -> io::Result<Self> {
        let unfinished = path.with_added_extension(extension);
        fs::remove_file(&unfinished).ok();
        let name = unfinished.file_name().unwrap_or_default();
        Self::create_in(path, Builder::new().prefix(name).rand_bytes(0))
    }

    fn create_in(path: &Path, builder: &mut Builder<'_, '_>) -> io::Result<Self> {
        Ok(Self {
            file: builder.tempfile_in(folder_of(path))?,
            path: path.to_owned(),
        })
    }

    /// Returns the open file.
    pub fn as_file(&self) -> &File {
        self.file.as_file()
    }

    /// Sets the mode of the file, whatever the umask is. Does nothing on platforms without modes.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            self.as_file()
                .set_permissions(fs::Permissions::from_mode(mode))
        }
        #[cfg(not(unix))]
        {
            let _ = mode;
            Ok(())
        }
    }

    /// Puts the file in its place, instead of the file or link that is there.
    pub fn replace(self, durability: Durability) -> io::Result<()> {
        self.sync(durability)?;
        self.file.persist(&self.path).map_err(|error| error.error)?;
        if durability == Durability::ContentAndName {
            sync_folder(folder_of(&self.path))?;
        }
        Ok(())
    }

    /// Puts the file in its place, and returns it.
    ///
    /// # Errors
    /// Fails if anything is there already. After any other error, nothing is there.
    pub fn keep_new(self, durability: Durability) -> io::Result<File> {
        self.sync(durability)?;
        let kept = self.file.persist_noclobber(&self.path);
        let kept = kept.map_err(|error| error.error)?;
        if durability == Durability::ContentAndName {
            sync_folder(folder_of(&self.path)).inspect_err(|_| {
                fs::remove_file(&self.path).ok();
            })?;
        }
        Ok(kept)
    }

    fn sync(&self, durability: Durability) -> io::Result<()> {
        match durability {
            Durability::None => Ok(()),
            Durability::Content | Durability::ContentAndName => self.as_file().sync_all(),
        }
    }
}

impl Write for UnfinishedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Replaces a file at once. On platforms that have modes, the new one has this mode, whatever the umask is.
pub fn replace_file(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    durability: Durability,
) -> io::Result<()> {
    let mut file = UnfinishedFile::create(path)?;
    file.write_all(bytes)?;
    file.set_mode(mode)?;
    file.replace(durability)
}

/// Replaces a file at once, in a folder that only the user can read. Creates the folder if it is missing.
pub fn write_private(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    make_private(folder_of(path))?;
    replace_file(path, bytes, mode, Durability::Content)
}

/// Waits until the names in a folder are on the disk, on platforms that support it.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()
    } else {
        Ok(())
    }
}

/// Returns whether a path has a name that [`UnfinishedFile::create`] gives.
pub fn is_unfinished(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// Returns the folder that contains a path.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_only_when_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut unfinished = UnfinishedFile::create(&path).unwrap();
        unfinished.write_all(b"half").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let found = names(folder.path());
        let (is_known, count) = (is_unfinished(Path::new(&found[0])), found.len());
        assert!(is_known && count == 2 && !is_unfinished(&path), "{found:?}");
        drop(unfinished);
        assert_eq!(names(folder.path()), ["a"]);
        for durability in [
            Durability::None,
            Durability::Content,
            Durability::ContentAndName,
        ] {
            let new = format!("{durability:?}");
            replace_file(&path, new.as_bytes(), 0o600, durability).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), new);
            assert_eq!(names(folder.path()), ["a"]);
        }
    }

    #[test]
    fn a_new_file_never_replaces_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let keep = || {
            let unfinished = UnfinishedFile::create_with_extension(&path, "part")?;
            unfinished.keep_new(Durability::ContentAndName)
        };
        keep().unwrap();
        fs::write(&path, "first").unwrap();
        let refusal = keep().unwrap_err();
        assert_eq!(refusal.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn a_file_that_a_killed_process_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(folder.path().join("a.part"), "half of the file before").unwrap();
        let mut unfinished = UnfinishedFile::create_with_extension(&path, "part").unwrap();
        unfinished.write_all(b"new").unwrap();
        unfinished.replace(Durability::Content).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_way_is_never_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("a"), folder.path().join("other"));
        fs::write(&other, "of someone else").unwrap();
        symlink(&other, &path).unwrap();
        symlink(&other, folder.path().join("a.part")).unwrap();
        let mut unfinished = UnfinishedFile::create_with_extension(&path, "part").unwrap();
        unfinished.write_all(b"new").unwrap();
        unfinished.replace(Durability::Content).unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"of someone else");
        assert!(!path.is_symlink() && fs::read(&path).unwrap() == b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_file_has_its_mode_and_its_folder_is_private_whatever_the_umask_is() {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("folder/a");
        for wanted in [0o600, 0o400, 0o644] {
            write_private(&path, b"", wanted).unwrap();
            assert_eq!(mode(&path), wanted);
        }
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        let unfinished = UnfinishedFile::create(&path).unwrap();
        assert_eq!(
            unfinished
                .as_file()
                .metadata()
                .unwrap()
                .permissions()
                .mode()
                & 0o777,
            0o600
        );
    }
}
