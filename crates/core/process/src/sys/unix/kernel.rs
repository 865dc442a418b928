//! The differences between Unix systems: one set of items, with one module for Linux and one for
//! all others.
//!
//! | item | meaning |
//! |---|---|
//! | `ExitWatch` | wakes a run when its child may have exited |
//! | `start_time`, `strays` | information about other processes |
//! | `widen` | enlarges a pipe |
//! | `create_table` | creates the file for the table of the guard |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;

#[cfg(target_os = "linux")]
pub(super) use linux::{ExitWatch, create_table, start_time, strays, widen};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{ExitWatch, create_table, start_time, strays, widen};
