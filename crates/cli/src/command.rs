//! The subcommands. Each has a file with its options, its work and its output.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod demo;
pub(crate) mod disable;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod fire;
pub(crate) mod init;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod snapshot;
pub(crate) mod test;
pub(crate) mod tools;
pub(crate) mod trust;
#[cfg(unix)]
pub(crate) mod worker;
