//! What a reload reads, and its result for the status.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use tenterhook_channel::live_settings::SettingsChanges;
use tenterhook_channel::settings::Settings;

/// Reads and checks the settings. It may block. An error is the text for the user.
pub type SettingsReader = Arc<dyn Fn() -> Result<Settings, String> + Send + Sync>;

/// The result of the last reload, for the status.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LastReload {
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    changes: Option<SettingsChanges>,
}

impl LastReload {
    /// Returns the result of a reload that has just ended.
    pub(crate) fn of(result: &Result<SettingsChanges, String>) -> Self {
        Self {
            at: Timestamp::now(),
            error: result.as_ref().err().cloned(),
            changes: result.as_ref().ok().cloned(),
        }
    }
}
