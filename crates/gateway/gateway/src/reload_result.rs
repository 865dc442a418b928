//! What a reload reads, and its result.

use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

use crate::conversations::profile::Profile;
use tenterhook_channel::live_settings::SettingsChanges;
use tenterhook_channel::settings::Settings;
use tenterhook_protocol::journal::HookChanges;

/// Who requests a reload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadRequester {
    /// The user, with a command.
    User,
    /// Someone who sent a signal. It can be a program that the agent runs, so no hooks are loaded.
    Unknown,
}

/// Reads and checks again what a gateway was started with.
pub trait ReloadSource: Send + Sync {
    /// Reads the settings, and loads the hooks if the user requests it. Nothing changes yet.
    ///
    /// # Errors
    ///
    /// Describes everything that would prevent a start, as a text for the user.
    fn load(&self, requester: ReloadRequester) -> BoxFuture<'_, Result<LoadedAgain, String>>;
}

/// Settings and hooks that were checked and can be put in force.
pub struct LoadedAgain {
    /// The settings.
    pub settings: Settings,
    /// The hooks, if they differ from those in force.
    pub hooks: Option<OtherHooks>,
    /// What the user should know about hooks that are not put in force.
    pub notes: Vec<String>,
}

/// Hooks that replace those in force.
pub struct OtherHooks {
    /// Opens agents with these hooks.
    pub profile: Arc<dyn Profile>,
    /// What differs.
    pub changes: HookChanges,
    /// Called when the hooks are in force. It must not block.
    pub in_force: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for LoadedAgain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoadedAgain")
            .field("hooks", &self.hooks)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for OtherHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtherHooks")
            .field("changes", &self.changes)
            .finish_non_exhaustive()
    }
}

/// What a reload has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ReloadChanges {
    /// What other settings have changed.
    #[serde(flatten)]
    pub settings: SettingsChanges,
    /// The hooks that differ.
    pub hooks: HookChanges,
    /// How many turns keep the hooks from before the reload until they end.
    pub turns_with_old_hooks: usize,
    /// What the user should know about hooks that are not in force.
    pub notes: Vec<String>,
}

/// The result of the last reload, for the status.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct LastReload {
    at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    changes: Option<ReloadChanges>,
}

impl LastReload {
    /// Returns the result of a reload that has just ended.
    pub(crate) fn of(result: &Result<ReloadChanges, String>) -> Self {
        Self {
            at: Timestamp::now(),
            error: result.as_ref().err().cloned(),
            changes: result.as_ref().ok().cloned(),
        }
    }
}
