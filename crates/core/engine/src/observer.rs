//! The callback with which a host shows which hooks are running.

use std::fmt;
use std::time::Duration;

use tenterhook_protocol::journal::RunStatus;
use tenterhook_protocol::{HookId, ToolUseId};

use crate::event_ref::EventRef;
use crate::hook::Source;
use crate::matcher::Matcher;
use crate::phase::Phase;
use crate::raw_exchange::RawExchange;

/// Receives a call when a hook starts and when it ends, for example to show "running hook
/// `lint.sh`".
///
/// Every start is followed by exactly one end with the same [`HookRun::number`]. Runs of a parallel
/// phase overlap. Skipped hooks are not reported.
/// Functions that [subscribe](crate::Engine::subscribe) to every event are.
///
/// The methods run on the thread of the dispatch, so they must not block: the time that they take
/// counts against the deadlines of other hooks that are running. A panic in them is caught and does
/// not affect any decision.
///
/// ```
/// use std::sync::Arc;
/// use tenterhook_engine::{Engine, HookObserver, HookRun, HookVerdict, Origin, event::PreToolUse};
/// use std::time::Duration;
///
/// #[derive(Debug)]
/// struct StatusLine;
///
/// impl HookObserver for StatusLine {
///     fn hook_started(&self, run: &HookRun<'_>) {
///         println!("running hook {}", run.hook);
///     }
///
///     fn hook_ended(&self, run: &HookRun<'_>, took: Duration, verdict: HookVerdict<'_>) {
///         println!("hook {} took {took:?}: {verdict:?}", run.hook);
///     }
/// }
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let engine = Engine::builder().observer(Arc::new(StatusLine)).build();
/// engine.on(|_: &PreToolUse| ());
/// let outcome = engine.dispatcher(Origin::default()).dispatch(PreToolUse::default()).await;
/// # assert!(outcome.decision().is_proceed());
/// # });
/// ```
pub trait HookObserver: Send + Sync + fmt::Debug {
    /// A hook starts. The default does nothing.
    fn hook_started(&self, _run: &HookRun<'_>) {}

    /// A hook has ended after `took`. The default does nothing.
    fn hook_ended(&self, _run: &HookRun<'_>, _took: Duration, _verdict: HookVerdict<'_>) {}

    /// All hooks of an event have ended. `event` includes all of their rewrites, and `left_out` are
    /// the hooks of the event that did not take part. It is not called if the host dropped the
    /// dispatch. The default does nothing.
    fn event_ended(&self, _event: &EventRef, _left_out: &[LeftOutHook<'_>]) {}

    /// Returns whether [`HookRun::exchange`] and the hooks that did not take part are needed. The
    /// default is `false`.
    fn requests_details(&self) -> bool {
        false
    }
}

/// One run of a hook, as a [`HookObserver`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct HookRun<'a> {
    /// The number of the run, starting at 1. It is unique within the engine.
    pub number: u64,
    /// The hook.
    pub hook: &'a HookId,
    /// The kind of its handler: `function`, `command`, `builtin` …
    pub handler: &'static str,
    /// Where the hook is defined.
    pub source: &'a Source,
    /// The matcher that selected the hook.
    pub matcher: &'a Matcher,
    /// When the hook runs within the dispatch.
    pub phase: Phase,
    /// The event, including the rewrites of earlier hooks. Its envelope contains the session, the
    /// agent and the sequence number.
    pub event: &'a EventRef,
    /// The event as the hook has changed it, if it has ended and changed it.
    pub rewritten: Option<&'a EventRef>,
    /// What the hook received and returned, if it has ended, the observer requests it, and the
    /// handler knows it.
    pub exchange: Option<&'a RawExchange>,
}

impl<'a> HookRun<'a> {
    /// Returns the id of the tool call that the event belongs to, if any.
    pub fn tool_use_id(&self) -> Option<&'a ToolUseId> {
        let id = self.event.event().tool_use_id();
        id.filter(|id| !id.as_str().is_empty())
    }
}

/// A hook of an event that did not take part in one dispatch, as a [`HookObserver`] sees it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct LeftOutHook<'a> {
    /// The hook.
    pub hook: &'a HookId,
    /// Its matcher.
    pub matcher: &'a Matcher,
    /// Why it did not take part.
    pub reason: LeftOutReason,
}

/// Why a hook did not take part in a dispatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// Its matcher does not match the event.
    Matcher,
    /// It is for another agent, session or workspace.
    Scope,
    /// A hook with the same definition took part.
    Duplicate,
}

impl LeftOutReason {
    /// Returns the reason in one word: `matcher`, `scope` or `duplicate`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Matcher => "matcher",
            Self::Scope => "scope",
            Self::Duplicate => "duplicate",
        }
    }
}

/// How one run of a hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookVerdict<'a> {
    /// The hook answered.
    Answered {
        /// The strongest part of the answer in one word, as in the journal: `deny`, `ask`, `allow`,
        /// `block`, `rewrite`, `context` … or `none`.
        effect: &'static str,
        /// The hook's reason, if it gave one.
        reason: Option<&'a str>,
    },
    /// The hook gave no usable answer. Its failure policy decides what happens next.
    Failed {
        /// What went wrong, for people.
        cause: &'a str,
    },
    /// The hook did not answer in time. Its failure policy decides what happens next.
    TimedOut {
        /// What went wrong, for people.
        cause: &'a str,
    },
    /// The host cancelled or dropped the dispatch.
    Cancelled,
}

impl<'a> HookVerdict<'a> {
    /// Creates the verdict for a run with this status. `reason` is the hook's own reason, and
    /// `cause` is why it failed.
    pub(crate) fn new(
        status: RunStatus,
        effect: &'static str,
        reason: Option<&'a str>,
        cause: Option<&'a str>,
    ) -> Self {
        let cause = cause.unwrap_or("failed");
        if status == RunStatus::TimedOut {
            Self::TimedOut { cause }
        } else if status == RunStatus::Cancelled {
            Self::Cancelled
        } else if status == RunStatus::Completed {
            Self::Answered { effect, reason }
        } else {
            Self::Failed { cause }
        }
    }

    /// Returns the verdict in one word, for a span.
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Answered { effect, .. } => effect,
            Self::Failed { .. } => "failed",
            Self::TimedOut { .. } => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }
}
