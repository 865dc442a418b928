//! The files that were found in folders, and the state of each.

use std::path::PathBuf;

use serde::Serialize;
use tenterhook_engine::{EventName, Layer};
use tenterhook_hookfile::Problem;
use tenterhook_systems::hook_folder::FolderKind;

/// A file of a folder and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundFile {
    /// The file.
    pub path: PathBuf,
    /// The name of its hook.
    pub name: String,
    /// Its layer.
    pub layer: Layer,
    /// The kind of its folder.
    #[serde(rename = "speaks")]
    pub kind: &'static FolderKind,
    /// Its state.
    #[serde(flatten)]
    pub state: FileState,
    /// Identifies its content and the sources that it may load.
    #[serde(skip)]
    pub version: String,
}

impl FoundFile {
    /// Returns whether it is not loaded because it is not approved.
    pub const fn needs_approval(&self) -> bool {
        matches!(self.state, FileState::Untrusted | FileState::Changed)
    }

    /// Returns whether the command line names it, or its folder.
    pub(super) fn is_named(&self) -> bool {
        self.layer == Layer::Explicit
    }
}

/// A hook of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundHook {
    /// Its name in the file.
    pub name: String,
    /// The event.
    pub event: EventName,
    /// The name of the event as the file declares it.
    pub declared: String,
    /// Selects events of that name. `None` means all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// Hooks with a higher priority run first.
    pub priority: i32,
}

/// The state of a file of a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum FileState {
    /// It is a hook.
    Hook {
        /// The event.
        event: EventName,
        /// The name of the event as the file declares it.
        declared: String,
    },
    /// A script, worker or extension, which registers its hooks when it is loaded.
    Script {
        /// The hooks, in the order in which the script registers them.
        hooks: Vec<FoundHook>,
        /// The names of its tools.
        tools: Vec<String>,
        /// The names of its commands.
        commands: Vec<String>,
    },
    /// Another file of the same name is used instead.
    Shadowed {
        /// That file.
        by: PathBuf,
    },
    /// Its name ends in `.disable`.
    Disabled,
    /// The user has disabled it.
    TurnedOff,
    /// It is not executable and does not look like a program.
    NotExecutable,
    /// It cannot be loaded, so none of its hooks is in force.
    Broken {
        /// The reason.
        problem: Box<Problem>,
    },
    /// It was never approved.
    Untrusted,
    /// It has changed since it was approved.
    Changed,
    /// It was approved but cannot run, so its gates deny.
    Denied {
        /// The reason.
        reason: String,
    },
}

impl FileState {
    /// Returns the events of the file's hooks.
    pub fn events(&self) -> Vec<&EventName> {
        match self {
            Self::Hook { event, .. } => vec![event],
            Self::Script { hooks, .. } => hooks.iter().map(|hook| &hook.event).collect(),
            Self::Shadowed { .. }
            | Self::Disabled
            | Self::TurnedOff
            | Self::NotExecutable
            | Self::Broken { .. }
            | Self::Untrusted
            | Self::Changed
            | Self::Denied { .. } => Vec::new(),
        }
    }

    /// Returns whether the file is in force, so that it shadows others with the same name.
    pub const fn is_in_force(&self) -> bool {
        match self {
            Self::Hook { .. } | Self::Script { .. } => true,
            Self::Shadowed { .. }
            | Self::Disabled
            | Self::TurnedOff
            | Self::NotExecutable
            | Self::Broken { .. }
            | Self::Untrusted
            | Self::Changed
            | Self::Denied { .. } => false,
        }
    }

    /// Describes the state in words.
    pub fn describe(&self) -> String {
        match self {
            Self::Hook { declared, .. } => format!("runs for {declared}"),
            Self::Script {
                hooks,
                tools,
                commands,
            } => {
                let mut parts = Vec::new();
                if !hooks.is_empty() {
                    parts.push(runs_for(hooks));
                }
                for (what, names) in [("tools", tools), ("commands", commands)] {
                    if !names.is_empty() {
                        parts.push(format!("{what}: {}", names.join(", ")));
                    }
                }
                if parts.is_empty() {
                    return "registers nothing".to_owned();
                }
                parts.join("; ")
            }
            Self::Shadowed { by } => format!("shadowed by {}", by.display()),
            Self::Disabled => "disabled by its name".to_owned(),
            Self::TurnedOff => "disabled with `tenterhook disable`".to_owned(),
            Self::NotExecutable => "not executable".to_owned(),
            Self::Broken { problem } => match problem.position {
                Some(place) => format!("broken: line {}: {}", place.line, problem.message),
                None => format!("broken: {}", problem.message),
            },
            Self::Untrusted => "untrusted: never approved in this project".to_owned(),
            Self::Changed => "changed since it was approved".to_owned(),
            Self::Denied { reason } => format!("denies: {reason}"),
        }
    }
}

fn runs_for(hooks: &[FoundHook]) -> String {
    let mut events: Vec<&str> = hooks.iter().map(|hook| hook.event.as_str()).collect();
    events.dedup();
    format!("runs for {}", events.join(", "))
}
