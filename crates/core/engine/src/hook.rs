//! A hook and its four independent choices: event, matcher, handler and policy.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenterhook_protocol::{EventName, HookId};

use crate::handler::{AsyncHandler, InlineFunction};
use crate::matcher::Matcher;
use crate::phase::Phase;
use crate::policy::{Policy, native_policy};
use crate::tools::{NATIVE_SYSTEM, ToolNames};

/// The layer of configuration that a hook comes from, in the order in which layers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Managed by an administrator, for every user of the machine.
    System,
    /// The user's hooks.
    User,
    /// The project's hooks.
    Project,
    /// Named on the command line.
    Explicit,
    /// Registered by the host's code.
    Code,
}

impl Layer {
    /// Returns the spelling that people and JSON use.
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

/// Where a hook is defined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The layer.
    pub layer: Layer,
    /// The file, if the hook comes from one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The line in the file, starting at 1.
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

/// What a set of hooks belongs to. The set is registered, replaced and cleared as a whole, and its
/// hooks fire only within this scope.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// The whole host.
    #[default]
    Global,
    /// One workspace.
    Workspace(String),
    /// One session.
    Session(tenterhook_protocol::SessionId),
    /// One file of hooks. Its hooks fire everywhere.
    File(PathBuf),
}

/// How a hook is run.
#[derive(Debug, Clone)]
pub enum Handler {
    /// A function that answers immediately, on the caller's thread.
    Inline(Arc<dyn InlineFunction>),
    /// A handler that may wait.
    Async(Arc<dyn AsyncHandler>),
}

impl Handler {
    /// Returns the kind of the handler.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Inline(_) => "function",
            Self::Async(handler) => handler.kind(),
        }
    }

    /// Returns what the handler runs, in a form that people can read.
    pub fn describe(&self) -> String {
        match self {
            Self::Inline(_) => "function".to_owned(),
            Self::Async(handler) => handler.describe(),
        }
    }

    /// Returns the known problem that keeps the handler from working, if any.
    pub fn problem(&self) -> Option<String> {
        match self {
            Self::Inline(_) => None,
            Self::Async(handler) => handler.problem(),
        }
    }

    /// Returns what the handler covers and what it cannot see, a sentence each.
    pub fn coverage(&self) -> Vec<String> {
        match self {
            Self::Inline(_) => Vec::new(),
            Self::Async(handler) => handler.coverage(),
        }
    }
}

/// Everything that a registry needs to know about a hook.
///
/// ```
/// use std::pin::Pin;
/// use std::sync::Arc;
/// use tenterhook_engine::{Answer, AsyncHandler, Call, Engine, EventKind, HandlerError, HookSpec, Matcher};
///
/// /// Denies every call until someone has logged in.
/// #[derive(Debug)]
/// struct LoggedOut;
///
/// impl AsyncHandler for LoggedOut {
///     fn kind(&self) -> &'static str {
///         "login"
///     }
///
///     fn describe(&self) -> String {
///         "denies until someone has logged in".to_owned()
///     }
///
///     fn handle<'a>(
///         &'a self,
///         _call: &'a Call,
///     ) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
///         // A hook that fails on a gate denies.
///         Box::pin(async { Err(HandlerError::Other { problem: "log in first".to_owned() }) })
///     }
/// }
///
/// let engine = Engine::new();
/// engine.register(HookSpec {
///     matcher: Matcher::parse("shell|write_file")?,
///     ..HookSpec::new(EventKind::PreToolUse, "login", Arc::new(LoggedOut))
/// });
/// assert_eq!(engine.hooks().len(), 1);
/// # Ok::<(), tenterhook_engine::MatcherError>(())
/// ```
#[derive(Debug, Clone)]
pub struct HookSpec {
    /// The event, or `None` for every event.
    pub event: Option<EventName>,
    /// The name of the hook in journals and messages.
    pub id: HookId,
    /// Selects the events that the hook is for.
    pub matcher: Matcher,
    /// The agent whose events the hook is for, or `None` for every agent, including subagents.
    pub agent: Option<String>,
    /// Whether a hook for one agent is also for agents without a name.
    pub includes_unnamed: bool,
    /// What the hook runs.
    pub handling: Handler,
    /// When the hook runs within a dispatch.
    pub phase: Phase,
    /// Hooks with a higher priority run first within the phase. The default is 0.
    pub priority: i32,
    /// The layer whose hooks this hook runs among, if that is not its own layer, because its hook
    /// system defines another order.
    pub order_within_layer: Option<Layer>,
    /// Whether the hook also runs if an earlier hook has ended the series, because all hooks of its hook
    /// system receive each event. It then only observes: its answer cannot change anything.
    pub hears_stops: bool,
    /// The time limit of one run.
    pub timeout: Duration,
    /// What a failure does.
    pub policy: Policy,
    /// Where the hook is defined.
    pub source: Source,
    /// The tools of the hook system whose names the matcher uses. `None` means native names: the
    /// matcher accepts canonical names and the names of the [engine's
    /// tools](crate::EngineBuilder::tools).
    pub tools: Option<Arc<dyn ToolNames>>,
    /// The whole definition as text. If several hooks of an event have the same definition, only
    /// the first runs. `None` differs from every other definition.
    pub definition: Option<String>,
}

impl HookSpec {
    /// Returns the name of the hook system whose tool names the matcher uses.
    pub fn system(&self) -> &'static str {
        let tools = self.tools.as_deref();
        tools.map_or(NATIVE_SYSTEM, ToolNames::system)
    }

    /// Returns whether the hook is for the agent with this name.
    pub fn is_for_agent(&self, name: &str) -> bool {
        let is_own = |agent: &String| agent == name || (name.is_empty() && self.includes_unnamed);
        self.agent.as_ref().is_none_or(is_own)
    }

    /// Returns the names by which the matcher finds a tool. For the native system, these are the
    /// canonical name and all other known names. For another system, it is that system's name. A
    /// tool that the system does not have keeps its name.
    pub fn tool_names<'a>(&self, tool: &'a str) -> Vec<&'a str> {
        let mut names: Vec<&str> = self.tools.iter().flat_map(|own| own.names(tool)).collect();
        if names.is_empty() || (self.system() == NATIVE_SYSTEM && !names.contains(&tool)) {
            names.push(tool);
        }
        names
    }

    /// Creates a hook of the host's code. It matches every subject and agent, runs in the main
    /// phase, has a timeout of one minute and the failure policy of native hooks.
    pub fn new(
        event: impl Into<EventName>,
        id: impl Into<HookId>,
        handler: Arc<dyn AsyncHandler>,
    ) -> Self {
        let event = event.into();
        Self {
            id: id.into(),
            matcher: Matcher::everything(),
            agent: None,
            includes_unnamed: false,
            handling: Handler::Async(handler),
            phase: Phase::Main,
            priority: 0,
            order_within_layer: None,
            hears_stops: false,
            timeout: DEFAULT_TIMEOUT,
            policy: native_policy(event.info(), None),
            source: Source::CODE,
            tools: None,
            definition: None,
            event: Some(event),
        }
    }
}

/// The timeout of a hook that sets none.
pub(crate) const DEFAULT_TIMEOUT: Duration = Duration::from_mins(1);

/// The timeout of an inline function that sets none. The engine cannot end such a function, and
/// reading the clock would cost more than most of these functions do.
pub(crate) const NO_TIMEOUT: Duration = Duration::MAX;
