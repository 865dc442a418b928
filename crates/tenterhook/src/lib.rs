#![doc = include_str!("guide.md")]
#![forbid(unsafe_code)]

pub use tenterhook_engine::*;
#[cfg(feature = "journal")]
pub use tenterhook_journal::{FileJournal, JournalError, RedactingJournal};

#[cfg(feature = "command")]
pub mod command;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "http")]
pub use tenterhook_runners::http;
#[cfg(feature = "model")]
pub use tenterhook_runners::model;
#[cfg(all(unix, feature = "workers"))]
pub use tenterhook_runners::worker;
#[cfg(any(
    feature = "command",
    feature = "files",
    feature = "http",
    feature = "model"
))]
pub use tenterhook_systems as systems;
