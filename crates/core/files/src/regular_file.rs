//! Reads regular files once and with a limit, although others can replace them at any time.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

#[cfg(unix)]
use rustix::fs::OFlags;

/// The size of the largest file that is read whole, in bytes.
const FILE_LIMIT: u64 = 64 << 20;

/// Reads a regular file of at most 64 MiB, and returns its bytes and whether it may be executed.
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
pub fn may_execute(metadata: &fs::Metadata) -> bool {
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_a_folder_a_link_and_a_huge_file_are_refused_without_waiting() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR).unwrap();
        File::create(at("huge")).unwrap().set_len(1 << 42).unwrap();
        // The target of a link may be read, but not in the belief that it is the file itself.
        let expected = [
            ("file", true, true),
            ("link", true, false),
            ("pipe", false, false),
            (".", false, false),
            ("huge", false, true),
        ];
        for (name, is_read, is_opened) in expected {
            assert_eq!(read_whole(&at(name)).is_ok(), is_read, "{name}");
            assert_eq!(open_itself(&at(name)).is_ok(), is_opened, "{name}");
        }
        assert_eq!(read_whole(&at("file")).unwrap(), (b"text".to_vec(), false));
    }
}
