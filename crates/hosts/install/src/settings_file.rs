//! Reads and replaces configuration files of other programs, with care for links, modes and owners.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use tenterhook_files::{Durability, UnfinishedFile};

use crate::install_error::InstallError;

/// The size of the largest file that is changed, in bytes.
const MAX_SIZE: u64 = 8 << 20;

/// Reads a configuration file. Returns `None` if it does not exist.
///
/// # Errors
/// Refuses a file of another user, a file that is not regular, a file above 8 MiB, and a link without a target.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, InstallError> {
    let refused = |problem, hint| InstallError::Refused {
        path: path.to_owned(),
        problem,
        hint,
    };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return if path.is_symlink() {
                let hint = "remove the link or create its target";
                Err(refused("it is a link to a file that does not exist", hint))
            } else {
                Ok(None)
            };
        }
        Err(error) => return Err(InstallError::read(path)(error)),
    };
    if !metadata.is_file() {
        return Err(refused("it is not a regular file", "move it away"));
    }
    if !is_own(&metadata) {
        let hint = "run this command as its owner, without `sudo`";
        return Err(refused("it belongs to another user", hint));
    }
    if metadata.len() > MAX_SIZE {
        return Err(refused(
            "it is larger than 8 MiB",
            "move what is not settings out of it",
        ));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(InstallError::read(path))?;
    let mut bounded = file.take(MAX_SIZE + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(InstallError::read(path))?;
    Ok(Some(bytes))
}

/// Returns the text of a file's bytes.
pub(crate) fn text<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str, InstallError> {
    std::str::from_utf8(bytes).map_err(|_| InstallError::Refused {
        path: path.to_owned(),
        problem: "it is not UTF-8 text",
        hint: "store the file as UTF-8",
    })
}

/// Replaces a file at once. Keeps the mode and the group of an existing file, and writes to the target of a link.
pub(crate) fn replace(path: &Path, bytes: &[u8], new_mode: u32) -> Result<(), InstallError> {
    // The target's folder gets the new file, so that the link itself stays.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(InstallError::read(path)(error)),
    };
    let write = || -> io::Result<()> {
        let mut file = UnfinishedFile::create(&target)?;
        file.write_all(bytes)?;
        match fs::metadata(&target) {
            Ok(old) => keep_access(file.as_file(), &old)?,
            Err(_) => file.set_mode(new_mode)?,
        }
        file.replace(Durability::Content)
    };
    write().map_err(InstallError::write(path))
}

/// Returns the folders above a path that do not exist, the outermost first.
pub(crate) fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let above = path.ancestors().skip(1);
    let missing = above.take_while(|folder| fs::symlink_metadata(folder).is_err());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

#[cfg(unix)]
fn is_own(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    metadata.uid() == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_metadata: &fs::Metadata) -> bool {
    true
}

#[cfg(unix)]
fn keep_access(file: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    if file.metadata()?.gid() != old.gid() {
        std::os::unix::fs::fchown(file, None, Some(old.gid()))?;
    }
    // After the change of the group, which clears special bits.
    file.set_permissions(old.permissions())
}

#[cfg(not(unix))]
fn keep_access(_file: &File, _old: &fs::Metadata) -> io::Result<()> {
    Ok(())
}
