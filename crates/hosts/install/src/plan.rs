//! What an installation or a removal will change.

use std::path::{Path, PathBuf};

use similar::TextDiff;
use tenterhook_systems::host::HostAgent;

use crate::record::Record;

/// Whose configuration is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstallScope {
    /// The configuration of the user.
    User,
    /// The configuration of the project in this folder.
    Project(PathBuf),
}

impl InstallScope {
    /// Returns the folder of the project.
    pub fn project(&self) -> Option<&Path> {
        match self {
            Self::User => None,
            Self::Project(folder) => Some(folder),
        }
    }

    /// Returns the word for this scope in JSON output.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project(_) => "project",
        }
    }
}

/// Whether the agent knows that the person approved Tenterhook's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalState {
    /// The agent has no such record, or Tenterhook cannot write it.
    NotNeeded,
    /// It is recorded, or the plan records it.
    Recorded,
    /// It is not recorded, so the agent asks the person or runs nothing.
    Missing,
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsChange {
    /// The file.
    pub path: PathBuf,
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) after: Option<Vec<u8>>,
    /// The mode of a new file.
    pub(crate) mode: u32,
}

impl SettingsChange {
    /// Returns what the change does: `create`, `change` or `delete`.
    pub const fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "create",
            (Some(_), Some(_)) => "change",
            (Some(_), None) => "delete",
        }
    }

    /// Returns the changed lines, as `diff -u` writes them.
    pub fn diff(&self) -> String {
        let text = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_deref().unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let (before, after) = (text(&self.before), text(&self.after));
        let path = self.path.display().to_string();
        let diff = TextDiff::from_lines(&before, &after);
        diff.unified_diff().header(&path, &path).to_string()
    }
}

/// What an installation or a removal will change. [`Installer::apply`](crate::Installer::apply) carries it out.
#[derive(Debug)]
pub struct InstallPlan {
    /// The agent.
    pub host: &'static HostAgent,
    /// Whose configuration is changed.
    pub scope: InstallScope,
    /// The changed files.
    pub changes: Vec<SettingsChange>,
    /// The files that contain the hooks, changed or not.
    pub files: Vec<PathBuf>,
    /// The events whose entries are added, updated or removed.
    pub events: Vec<String>,
    /// The events whose entries someone has changed. An installation leaves them as they are.
    pub altered: Vec<String>,
    /// Whether the agent knows that the person approved the entries.
    pub approval: ApprovalState,
    /// Files that someone changed although they belonged to Tenterhook alone. A removal keeps a copy of them.
    pub kept: Vec<PathBuf>,
    /// The record after the change; `None` removes it.
    pub(crate) record: Option<Record>,
    /// The originals that the record names.
    pub(crate) originals: Vec<Vec<u8>>,
    /// Folders that are removed if they are empty, the innermost first.
    pub(crate) folders: Vec<PathBuf>,
}

impl InstallPlan {
    pub(crate) fn new(host: &'static HostAgent, scope: &InstallScope) -> Self {
        Self {
            host,
            scope: scope.clone(),
            changes: Vec::new(),
            files: Vec::new(),
            events: Vec::new(),
            altered: Vec::new(),
            approval: ApprovalState::NotNeeded,
            kept: Vec::new(),
            record: None,
            originals: Vec::new(),
            folders: Vec::new(),
        }
    }
}
