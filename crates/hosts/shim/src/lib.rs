//! The program that coding agents start for each event, and its connection to Tenterhook's daemon.
//!
//! A coding agent (a *host*) starts `tenterhook-shim HOST EVENT` and writes the event to its standard
//! input. The shim forwards it to the daemon, which runs the hooks, and prints the daemon's answer:
//!
//! ```text
//! host ──starts──► shim ──socket──► daemon ──► hooks
//!      ◄─stdout/exit── shim ◄──────── daemon
//! ```
//!
//! Most hosts run a tool if the program that guards it fails. So every failure of the shim becomes the
//! host's own denial, if the event is a gate ([`failure`]). The shim has its own deadline, which is
//! shorter than the hosts' deadlines. It starts the daemon if none runs.
//!
//! The shim runs for each event, so this crate depends on very little. The daemon uses the same
//! [frames](frame) and the same [folder](place).

#![forbid(unsafe_code)]

#[cfg(unix)]
mod client;
#[cfg(unix)]
pub mod control;
#[cfg(unix)]
mod descriptor;
#[cfg(unix)]
pub mod environment;
pub mod failure;
pub mod folders_file;
pub mod frame;
#[cfg(unix)]
mod launch;
#[cfg(unix)]
pub mod place;
#[cfg(unix)]
mod program;
#[cfg(unix)]
mod signals;

use std::path::{Path, PathBuf};

#[cfg(unix)]
pub use self::program::run;

/// The name of the shim.
pub const NAME: &str = "tenterhook-shim";

/// Returns what `tenterhook-shim --version` prints. A shim that prints something else does not belong to this version.
pub fn version_line() -> String {
    let (version, protocol) = (env!("CARGO_PKG_VERSION"), frame::PROTOCOL);
    format!("{NAME} {version} (protocol {protocol})")
}

/// Returns whether this process was started as the shim: by the path in an agent's configuration, or from a file of that
/// name. The program `tenterhook` then does the shim's work, because an installation may lack the small program.
pub fn is_started_as_shim() -> bool {
    let named = std::env::args_os().next().map(PathBuf::from);
    // A host may start a program under any name, and a link to the file may have another name.
    let file = || std::env::current_exe().ok();
    let is_shim = |path: PathBuf| path.file_stem() == Some(Path::new(NAME).as_os_str());
    named.is_some_and(is_shim) || file().is_some_and(is_shim)
}
