//! The verdict of a gate event: what the host must do next.

use serde::{Deserialize, Serialize};

use crate::any_outcome::AnyOutcome;
use crate::catalogue::{EventClass, EventInfo};
use crate::id::HookId;

use crate::permission::Permission;

/// The reason of a decision if its hook gave none.
const NO_REASON: &str = "no reason was given";

/// What the model receives instead of the cause of a hook's failure.
const FAILED_FOR_MODEL: &str = "a hook failed, so this was stopped";

/// What the host must do with the operation that a gate event announces.
///
/// | decision | the host |
/// |---|---|
/// | [`Proceed`](Self::Proceed) | continues with the operation |
/// | [`Ask`](Self::Ask) | asks a person, or stops the operation if no one can answer |
/// | [`Stop`](Self::Stop) | does not carry out the operation |
///
/// If the operation does not happen, give the model the text of [`for_model`](Self::for_model).
///
/// ```
/// use tenterhook_protocol::{Decision, StopKind};
///
/// /// Returns the text for the model if the operation may not happen.
/// fn check(decision: &Decision, ask: impl Fn(&str) -> bool) -> Result<(), String> {
///     match decision {
///         Decision::Ask { reason, .. } if ask(reason) => Ok(()),
///         _ => decision.for_model().map_or(Ok(()), Err),
///     }
/// }
///
/// let stop = Decision::Stop {
///     reason: "no sudo here".to_owned(),
///     by: Some("no-sudo".into()),
///     kind: StopKind::Denied,
/// };
/// assert_eq!(check(&stop, |_| true), Err("no sudo here".to_owned()));
/// ```
#[must_use = "the decision may be to stop the operation or to ask a person"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub enum Decision {
    /// No hook stops the operation. A hook may still request to end the run after it, see
    /// [`Outcome::stop_run`](crate::Outcome::stop_run).
    Proceed,
    /// A person must decide about the operation.
    Ask {
        /// The reason to show to that person. Never empty.
        reason: String,
        /// The hook that asks, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
    },
    /// The operation must not happen.
    Stop {
        /// The reason to show to people, and to the model unless `kind` is [`StopKind::Failed`].
        /// Never empty.
        reason: String,
        /// The hook that stops the operation, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
        /// How it is stopped.
        kind: StopKind,
    },
}

/// How an operation was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopKind {
    /// A hook denied it.
    Denied,
    /// A hook blocked it.
    Blocked,
    /// A hook ended the agent run, on an event that has no other way to stop.
    RunEnded,
    /// A hook failed, and its failure policy stops the operation. The reason contains the cause, such
    /// as a panic's message or stderr. A model could use it to work around the hook, and it may quote
    /// secrets.
    Failed,
}

impl Decision {
    /// Returns whether the host may continue without asking anyone.
    pub fn is_proceed(&self) -> bool {
        matches!(self, Self::Proceed)
    }

    /// Returns the reason to ask or to stop, or `None` to proceed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Proceed => None,
            Self::Ask { reason, .. } | Self::Stop { reason, .. } => Some(reason),
        }
    }

    /// Returns the text to give to the model if the operation does not happen, or `None` to proceed.
    ///
    /// | decision | text |
    /// |---|---|
    /// | `Stop` | the reason |
    /// | `Stop` because a hook failed | that a hook failed; the cause could help the model to avoid the hook |
    /// | `Ask`, if no one allows it | that a person did not approve it, and the reason to ask |
    pub fn for_model(&self) -> Option<String> {
        match self {
            Self::Proceed => None,
            Self::Ask { reason, .. } => Some(format!(
                "this needs a person's approval, which was not given: {reason}"
            )),
            Self::Stop {
                kind: StopKind::Failed,
                ..
            } => Some(FAILED_FOR_MODEL.to_owned()),
            Self::Stop { reason, .. } => Some(reason.clone()),
        }
    }

    /// Returns the hook that asks or stops, if known.
    pub fn by(&self) -> Option<&HookId> {
        match self {
            Self::Proceed => None,
            Self::Ask { by, .. } | Self::Stop { by, .. } => by.as_ref(),
        }
    }
}

impl EventInfo {
    /// Returns the decision for an event of this kind with this outcome. An observer event always
    /// proceeds.
    ///
    /// | found in the outcome, strongest first | decision |
    /// |---|---|
    /// | `deny` | stop |
    /// | `block` | stop |
    /// | `stop_run`, on a gate that honours neither permission nor block | stop |
    /// | `ask` | ask |
    /// | `allow`, or nothing | proceed |
    pub fn decision(&self, outcome: &AnyOutcome) -> Decision {
        if self.class == EventClass::Observer {
            return Decision::Proceed;
        }
        let denied = (outcome.permission == Permission::Deny).then_some((
            outcome.permission_reason.as_deref(),
            &outcome.permission_by,
            StopKind::Denied,
        ));
        let blocked = outcome
            .block
            .as_deref()
            .map(|reason| (Some(reason), &outcome.blocked_by, StopKind::Blocked));
        let ended = outcome
            .stop_run
            .as_deref()
            .filter(|_| self.stops_by_ending_the_run())
            .map(|reason| (Some(reason), &outcome.run_stopped_by, StopKind::RunEnded));
        if let Some((reason, by, kind)) = denied.or(blocked).or(ended) {
            let reason = reason
                .filter(|reason| !reason.trim().is_empty())
                .or(outcome.block.as_deref())
                .or(outcome.stop_run.as_deref());
            let reason = reason_or_none(reason);
            let reason = match &outcome.remedy {
                Some(remedy) => format!("{reason}\nIf this was wrong, the user can {remedy}."),
                None => reason,
            };
            return Decision::Stop {
                reason,
                by: by.clone(),
                kind: outcome.kind_of_stop(by.as_ref(), kind),
            };
        }
        match outcome.permission {
            Permission::Ask => Decision::Ask {
                reason: reason_or_none(outcome.permission_reason.as_deref()),
                by: outcome.permission_by.clone(),
            },
            Permission::None | Permission::Allow | Permission::Deny => Decision::Proceed,
        }
    }
}

impl AnyOutcome {
    /// Returns [`StopKind::Failed`] if the hook that stopped the operation had failed, else
    /// `otherwise`.
    fn kind_of_stop(&self, by: Option<&HookId>, otherwise: StopKind) -> StopKind {
        let has_failed = self
            .failures
            .iter()
            .any(|failure| Some(&failure.hook) == by);
        if has_failed {
            StopKind::Failed
        } else {
            otherwise
        }
    }
}

fn reason_or_none(reason: Option<&str>) -> String {
    reason
        .filter(|reason| !reason.trim().is_empty())
        .unwrap_or(NO_REASON)
        .to_owned()
}
