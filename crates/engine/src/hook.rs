//! A hook: event, matcher, handler and policy, each chosen for itself.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenterhook_protocol::{EventName, HookId};

use crate::handler::{Handler, SyncFunction};
use crate::matcher::Matcher;
use crate::policy::{Policy, native_policy};
use crate::tools::{NATIVE_SYSTEM, ToolNames};

/// When a hook runs within its dispatch.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// First, one after another; rewrites chain.
    Transform,
    /// Next, as the event runs its hooks; may rewrite and judge.
    #[default]
    Main,
    /// Then, at once; judges the final value and may not rewrite it.
    Guard,
    /// Last, at once, whatever was decided; cannot affect the result.
    Observe,
}

impl Phase {
    /// Every phase, in the order in which they run.
    pub const ALL: [Self; 4] = [Self::Transform, Self::Main, Self::Guard, Self::Observe];

    /// Returns the configured spelling.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Transform => "transform",
            Self::Main => "main",
            Self::Guard => "guard",
            Self::Observe => "observe",
        }
    }
}

/// The layer of configuration that a hook comes from, in the order in which layers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Managed, for every user of the machine.
    System,
    /// The user's own.
    User,
    /// The project's.
    Project,
    /// Named on the command line.
    Explicit,
    /// Registered by the host's code.
    Code,
}

impl Layer {
    /// Returns the spelling for people and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Project => "project",
            Self::Explicit => "explicit",
            Self::Code => "code",
        }
    }
}

/// Where a hook stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The layer.
    pub layer: Layer,
    /// The file, if it comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The line of the file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

impl Source {
    /// The source of hooks that the host's code registers.
    pub const CODE: Self = Self {
        layer: Layer::Code,
        path: None,
        line: None,
    };
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.path, self.line) {
            (Some(path), Some(line)) => write!(f, "{}:{line}", path.display()),
            (Some(path), None) => write!(f, "{}", path.display()),
            (None, _) => f.write_str(self.layer.as_str()),
        }
    }
}

/// What a set of hooks belongs to: it is registered, replaced and cleared as one, and fires only there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// The whole host.
    #[default]
    Global,
    /// One workspace.
    Workspace(String),
    /// One session.
    Session(tenterhook_protocol::SessionId),
    /// One file of hooks; fires everywhere.
    File(PathBuf),
}

/// How a hook is run.
#[derive(Debug, Clone)]
pub enum Handling {
    /// A function that answers at once, on the caller's thread.
    Sync(Arc<dyn SyncFunction>),
    /// Anything that may wait.
    Waiting(Arc<dyn Handler>),
}

impl Handling {
    /// Returns the kind of the handler.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sync(_) => "function",
            Self::Waiting(handler) => handler.kind(),
        }
    }

    /// Returns what runs, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Sync(_) => "function".to_owned(),
            Self::Waiting(handler) => handler.describe(),
        }
    }

    /// Returns what is known to keep the handler from working.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Sync(_) => None,
            Self::Waiting(handler) => handler.problem(),
        }
    }
}

/// Everything that a registry needs to know of a hook.
#[derive(Debug, Clone)]
pub struct HookSpec {
    /// The event; `None` is every event.
    pub event: Option<EventName>,
    /// What people and journals call it.
    pub id: HookId,
    /// Which events of that name.
    pub matcher: Matcher,
    /// The only agent whose events the hook is for; `None` is every agent, subagents included.
    pub agent: Option<String>,
    /// What runs.
    pub handling: Handling,
    /// When it runs.
    pub phase: Phase,
    /// Higher runs first within the phase. The default is 0.
    pub priority: i32,
    /// The layer among whose hooks it runs, where that is not its own: its system orders its hooks in a way of its own.
    pub among: Option<Layer>,
    /// How long one run may take.
    pub timeout: Duration,
    /// What a failure does.
    pub policy: Policy,
    /// Where it stands.
    pub source: Source,
    /// The tools of the hook system whose names the matcher uses. `None` is our own system, whose matchers accept the
    /// canonical name and the names that the [engine's tools](crate::EngineBuilder::tools) have.
    pub tools: Option<Arc<dyn ToolNames>>,
    /// The whole definition as text. Of two hooks of one event with the same definition the first runs.
    /// `None` is unlike any other.
    pub definition: Option<String>,
}

impl HookSpec {
    /// Returns the name of the hook system whose tools the matcher names.
    pub fn system(&self) -> &'static str {
        let tools = self.tools.as_deref();
        tools.map_or(NATIVE_SYSTEM, ToolNames::system)
    }

    /// Returns the names under which the matcher finds a tool: of our own system the canonical name and every other
    /// known one, of another system its own name. A tool that the system does not have keeps its name.
    pub fn tool_names<'a>(&self, tool: &'a str) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.tools.iter().flat_map(|own| own.names(tool)).collect();
        if names.is_empty() || (self.system() == NATIVE_SYSTEM && !names.contains(&tool)) {
            names.push(tool);
        }
        names
    }

    /// Makes a hook of the host's code: every subject and agent, the main phase, a minute of time, and the failure
    /// policy of native hooks.
    pub fn new(
        event: impl Into<EventName>,
        id: impl Into<HookId>,
        handler: Arc<dyn Handler>,
    ) -> Self {
        let event = event.into();
        Self {
            id: id.into(),
            matcher: Matcher::everything(),
            agent: None,
            handling: Handling::Waiting(handler),
            phase: Phase::Main,
            priority: 0,
            among: None,
            timeout: DEFAULT_TIMEOUT,
            policy: native_policy(event.info(), None),
            source: Source::CODE,
            tools: None,
            definition: None,
            event: Some(event),
        }
    }
}

/// The timeout of a hook that names none.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The timeout of a function on the caller's thread that names none. The engine cannot end such a function, and
/// reading the clock would cost more than most of them do.
pub(crate) const NO_TIMEOUT: Duration = Duration::MAX;
