//! What differs between operating systems: one set of functions, one file for each family.
//!
//! | item | meaning |
//! |---|---|
//! | `Child` | a started child with its pipes; kills the group and has the child reaped when dropped |
//! | `refusal` | what an error of a start means for the next try |
//! | `free_descriptors` | how many more files this process may open, where that is limited |
//! | `is_executable`, `executable_names` | which files count as programs |
//! | `SH` | the default shell |

#[cfg(unix)]
mod forked;
#[cfg(unix)]
mod guard;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod other_unix;
#[cfg(unix)]
mod reaper;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as exit;
#[cfg(all(unix, not(target_os = "linux")))]
use other_unix as exit;

#[cfg(unix)]
pub(crate) use forked::{Forked, abandon, has_ended, send_with};
#[cfg(unix)]
pub(crate) use guard::Entry;
#[cfg(unix)]
pub(crate) use guard::end as end_guard;
#[cfg(unix)]
pub(crate) use unix::{
    Child, SH, Waiting, executable_names, free_descriptors, is_executable, refusal,
};
#[cfg(windows)]
pub(crate) use windows::{
    Child, SH, Waiting, executable_names, free_descriptors, is_executable, refusal,
};

/// One of the two outputs of a child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Stdout,
    Stderr,
}

/// What the refusal to start a child means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Descriptors, processes or memory are short; another run will give some back.
    Exhausted,
    /// The file is open for writing, often by another child that was just started.
    Busy,
    /// The file is gone, or its interpreter or the directory is.
    Missing,
    /// The file has no format that the system knows: a script without a first line.
    NotAProgram,
    Other,
}
