//! `tenterhook-shim HOST EVENT`: the program that coding agents start for each event.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    tenterhook_shim::run()
}

/// The daemon needs a Unix socket, so there is nothing to ask. Most hosts deny on this status.
#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::from(2)
}
