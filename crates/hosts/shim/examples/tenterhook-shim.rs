//! The same program as `tenterhook-shim` of the package `tenterhook-cli`, without the dependencies of that
//! package. The archives for Linux contain it, built for a target with static linking, because it starts
//! several times as fast.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    tenterhook_shim::run()
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
