//! The resources that children need on Windows, and the meaning of errors at their start.

use std::io;

use crate::sys::refusal::Refusal;

/// Returns why the system refused to start a child.
pub(crate) fn refusal(error: &io::Error) -> Refusal {
    const ERROR_TOO_MANY_OPEN_FILES: i32 = 4;
    const ERROR_SHARING_VIOLATION: i32 = 32;
    const ERROR_BAD_EXE_FORMAT: i32 = 193;
    const ERROR_NO_SYSTEM_RESOURCES: i32 = 1450;
    match error.raw_os_error() {
        Some(ERROR_TOO_MANY_OPEN_FILES | ERROR_NO_SYSTEM_RESOURCES) => Refusal::Exhausted,
        Some(ERROR_SHARING_VIOLATION) => Refusal::Busy,
        Some(ERROR_BAD_EXE_FORMAT) => Refusal::NotAProgram,
        _ if error.kind() == io::ErrorKind::NotFound => Refusal::Missing,
        _ => Refusal::Other,
    }
}

/// Returns `None`: Windows has no limit of handles that can be read.
pub(crate) fn free_descriptors() -> Option<usize> {
    None
}
