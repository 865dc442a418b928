//! Files of which running sessions have an earlier version.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A file of which an earlier version is in force in a running session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutdatedHooks {
    /// The file or folder.
    pub path: PathBuf,
    /// What happened to it, as a sentence without a full stop.
    pub change: String,
    /// The command that puts the current version in force.
    pub next_step: String,
}
