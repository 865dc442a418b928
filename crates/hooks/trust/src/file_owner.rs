//! Refuses files and folders that other users can write.

use std::path::Path;

use crate::error::TrustError;

/// Checks that no other user can write a file or folder.
#[cfg(unix)]
pub fn check_owner(path: &Path) -> Result<(), TrustError> {
    use std::os::unix::fs::MetadataExt as _;
    // Check a symbolic link itself, not its target, because another user could have created the link.
    let metadata =
        std::fs::symlink_metadata(path).map_err(|source| TrustError::file(path, source))?;
    let path = path.to_owned();
    if metadata.uid() != current_user() {
        return Err(TrustError::NotOwned { path });
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o022 != 0 {
        return Err(TrustError::Writable { path, mode });
    }
    Ok(())
}

/// Checks that no other user can write a file or folder.
#[cfg(not(unix))]
pub fn check_owner(_path: &Path) -> Result<(), TrustError> {
    Ok(())
}

/// Returns the user id of this process.
pub(crate) fn current_user() -> u32 {
    #[cfg(unix)]
    {
        rustix::process::geteuid().as_raw()
    }
    #[cfg(not(unix))]
    {
        0
    }
}
