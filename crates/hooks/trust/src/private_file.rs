//! Reads and writes files that only the user can write, and refuses files that others can write.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

#[cfg(unix)]
use rustix::fs::OFlags;

use crate::error::TrustError;

/// The size of the largest file that can be approved, in bytes.
const FILE_LIMIT: u64 = 64 << 20;

/// Reads a regular file, and returns its bytes and whether it may be executed.
///
/// Opens the file only once, so that the bytes and the permission are of the same file.
pub fn read_whole(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    // If the path is a named pipe, opening it must not block.
    #[cfg(unix)]
    let (file, metadata) = open(path, OFlags::NONBLOCK)?;
    #[cfg(not(unix))]
    let (file, metadata) = open_itself(path)?;
    if metadata.len() > FILE_LIMIT {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    file.take(FILE_LIMIT + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_LIMIT {
        return Err(io::Error::other("it is larger than 64 MiB"));
    }
    Ok((bytes, may_execute(&metadata)))
}

/// Opens a regular file for reading. Refuses a symbolic link. Does not wait if the path has become a named pipe.
pub fn open_itself(path: &Path) -> io::Result<(File, fs::Metadata)> {
    #[cfg(unix)]
    {
        open(path, OFlags::NONBLOCK | OFlags::NOFOLLOW)
    }
    #[cfg(not(unix))]
    {
        regular(File::open(path)?)
    }
}

#[cfg(unix)]
fn open(path: &Path, flags: OFlags) -> io::Result<(File, fs::Metadata)> {
    use std::os::unix::fs::OpenOptionsExt as _;
    // Without its flags, the file must not be opened at all.
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let mut options = fs::OpenOptions::new();
    regular(options.read(true).custom_flags(flags).open(path)?)
}

fn regular(file: File) -> io::Result<(File, fs::Metadata)> {
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok((file, metadata))
}

/// Returns whether a file may be executed.
pub(crate) fn may_execute(metadata: &fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        metadata.is_file()
    }
}

/// Writes a file atomically into a folder that only the user can read.
pub fn write_private(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    make_private(dir)?;
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = mode;
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Creates a folder, and those above that are missing, so that only the user can read and write them, whatever the umask
/// is.
pub fn make_private(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Checks that no other user can write a file or folder.
#[cfg(unix)]
pub fn check_owner(path: &Path) -> Result<(), TrustError> {
    use std::os::unix::fs::MetadataExt as _;
    // Check a symbolic link itself, not its target, because another user could have created the link.
    let metadata = fs::symlink_metadata(path).map_err(|source| TrustError::file(path, source))?;
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
