//! The differences between operating systems: one set of items, with one module for each family.
//!
//! | item | meaning |
//! |---|---|
//! | `Child` | a started child with its pipes; kills the group and has the child reaped when dropped |
//! | `refusal` | what an error at the start of a child means |
//! | `free_descriptors` | how many more files this process may open, if there is a limit |
//! | `is_executable`, `executable_names` | which files count as programs |
//! | `SH` | the default shell |

mod output;
mod refusal;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub(crate) use output::Output;
pub(crate) use refusal::Refusal;
#[cfg(unix)]
pub(crate) use unix::{
    Child, SH, Waiting, end_guard, executable_names, free_descriptors, include_session,
    is_executable, refusal,
};
#[cfg(windows)]
pub(crate) use windows::{
    Child, SH, Waiting, executable_names, free_descriptors, is_executable, refusal,
};
