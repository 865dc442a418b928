//! The subcommands. Each has a file with its options, its work and its output.

pub(crate) mod allow;
pub(crate) mod check;
pub(crate) mod completions;
#[cfg(unix)]
pub(crate) mod daemon;
pub(crate) mod demo;
pub(crate) mod disable;
#[cfg(unix)]
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod explain;
pub(crate) mod fire;
#[cfg(unix)]
pub(crate) mod gateway;
pub(crate) mod host_args;
pub(crate) mod import;
pub(crate) mod init;
pub(crate) mod inspect;
pub(crate) mod install;
pub(crate) mod list;
pub(crate) mod man;
#[cfg(unix)]
pub(crate) mod protect;
#[cfg(unix)]
pub(crate) mod reload;
pub(crate) mod run;
pub(crate) mod sessions;
pub(crate) mod snapshot;
pub(crate) mod status;
pub(crate) mod test;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod uninstall;
#[cfg(unix)]
pub(crate) mod worker;
