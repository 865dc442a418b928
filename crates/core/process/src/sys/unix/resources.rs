//! The resources that children need on Unix, and the meaning of errors at their start.

use std::fs::read_dir;
use std::io;

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::sys::refusal::Refusal;

/// Returns why the system refused to start a child.
pub(crate) fn refusal(error: &io::Error) -> Refusal {
    match Errno::from_io_error(error) {
        Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM) => Refusal::Exhausted,
        Some(Errno::TXTBSY) => Refusal::Busy,
        Some(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => Refusal::Missing,
        Some(Errno::NOEXEC) => Refusal::NotAProgram,
        _ => Refusal::Other,
    }
}

/// Returns how many more descriptors this process may open, if there is a limit.
pub(crate) fn free_descriptors() -> Option<usize> {
    let limit = usize::try_from(getrlimit(Resource::Nofile).current?).ok()?;
    let open = read_dir("/dev/fd").map_or(0, Iterator::count);
    Some(limit.saturating_sub(open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_shortage_and_a_busy_file_are_worth_another_try() {
        let table = [
            (Errno::MFILE, Refusal::Exhausted),
            (Errno::NFILE, Refusal::Exhausted),
            (Errno::AGAIN, Refusal::Exhausted),
            (Errno::NOMEM, Refusal::Exhausted),
            (Errno::TXTBSY, Refusal::Busy),
            (Errno::NOENT, Refusal::Missing),
            (Errno::NOEXEC, Refusal::NotAProgram),
            (Errno::TOOBIG, Refusal::Other),
        ];
        for (errno, expected) in table {
            let error = io::Error::from(errno);
            assert_eq!(refusal(&error), expected);
            // An error after the start has no number.
            assert_eq!(refusal(&io::Error::other(error)), Refusal::Other);
        }
    }
}
