//! Adds Tenterhook to the hook configuration of coding agents, and removes it without a trace.
//!
//! An agent's configuration has an entry for each event with one line that starts the shim. [`Installer`] plans which
//! files change and carries the plan out. Settings of others, comments and layout stay as they are: entries are
//! inserted into the text, and every other byte is copied. The original of each changed file is kept in Tenterhook's
//! data folder, so that a removal restores it if no one else has changed the file.
//!
//! The shim and the program behind it are copies in the data folder. [`ProgramState`] tells whether they start.
//!
//! What an agent's configuration looks like is data in `tenterhook-systems`. [`HostStatus`] tells what is installed.

#![forbid(unsafe_code)]

mod edit_error;
#[cfg(test)]
mod edit_properties;
mod entry;
mod host_status;
mod install_error;
mod install_plan;
mod installer;
mod json_settings;
mod list_form;
mod machine;
mod off_switches;
mod plan;
mod program_state;
mod programs;
#[cfg(unix)]
pub mod proof;
mod record;
mod removal_plan;
mod reported_version;
mod settings_file;
mod target;
mod toml_settings;

pub use self::edit_error::EditError;
pub use self::host_status::{HostStatus, PlaceState, PlaceStatus, is_present};
pub use self::install_error::InstallError;
pub use self::installer::Installer;
pub use self::machine::{Machine, SHIM};
pub use self::off_switches::SwitchedOff;
pub use self::plan::{ApprovalState, InstallPlan, InstallScope, SettingsChange};
pub use self::program_state::ProgramState;
