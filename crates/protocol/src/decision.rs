//! The verdict of a gate event: what the host must do next.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::catalogue::{EventClass, EventInfo};
use crate::id::HookId;
use crate::outcome::AnyOutcome;
use crate::permission::Permission;

/// The reason of a decision whose hook gave none.
const NO_REASON: &str = "no reason was given";

/// What the host must do with the operation that a gate event announces.
///
/// | decision | the host |
/// |---|---|
/// | [`Proceed`](Self::Proceed) | goes on |
/// | [`Ask`](Self::Ask) | asks a person, and stops the operation where no one can answer |
/// | [`Stop`](Self::Stop) | does not carry out the operation, and gives the model the reason |
///
/// ```
/// use tenterhook_protocol::{Decision, StopKind};
///
/// fn may_run(decision: &Decision, ask: impl Fn(&str) -> bool) -> Result<(), String> {
///     match decision {
///         Decision::Proceed => Ok(()),
///         Decision::Ask { reason, .. } if ask(reason) => Ok(()),
///         Decision::Ask { reason, .. } | Decision::Stop { reason, .. } => Err(reason.clone()),
///     }
/// }
///
/// let stop = Decision::Stop {
///     reason: "no sudo here".to_owned(),
///     by: Some("no-sudo".into()),
///     kind: StopKind::Denied,
/// };
/// assert_eq!(may_run(&stop, |_| true), Err("no sudo here".to_owned()));
/// ```
#[must_use = "the operation may have to be stopped or put to a person"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "decision", rename_all = "snake_case", deny_unknown_fields)]
pub enum Decision {
    /// No hook objects.
    Proceed,
    /// A hook leaves the operation to a person.
    Ask {
        /// Why, for that person. Never empty.
        reason: String,
        /// The hook that asks, where it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
    },
    /// The operation must not happen.
    Stop {
        /// Why, for the model and for people. Never empty.
        reason: String,
        /// The hook that stops it, where it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
        /// How it is stopped.
        kind: StopKind,
    },
}

/// How an operation was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum StopKind {
    /// A hook denied it.
    Denied,
    /// A hook blocked it.
    Blocked,
    /// A hook ended the agent run, on an event that has no other way to stop.
    RunEnded,
    /// A hook failed, and its failure policy stops the operation.
    Failed,
}

impl Decision {
    /// Returns whether the host may go on without asking anyone.
    pub fn is_proceed(&self) -> bool {
        matches!(self, Self::Proceed)
    }

    /// Returns the reason to ask or to stop; `None` to proceed.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Proceed => None,
            Self::Ask { reason, .. } | Self::Stop { reason, .. } => Some(reason),
        }
    }

    /// Returns the hook that asks or stops, where it is known.
    pub fn by(&self) -> Option<&HookId> {
        match self {
            Self::Proceed => None,
            Self::Ask { by, .. } | Self::Stop { by, .. } => by.as_ref(),
        }
    }
}

impl EventInfo {
    /// Returns the verdict of `outcome` for an event of this row. An observer event always proceeds.
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
            return Decision::Stop {
                reason: reason_or_none(reason),
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
    /// Returns [`StopKind::Failed`] where the hook that stopped the operation had failed.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EventKind, Failure};

    /// One row: the outcome's permission, block and `stop_run`, and what `event` makes of them.
    type Row = (
        EventKind,
        Permission,
        Option<&'static str>,
        Option<&'static str>,
        Decision,
    );

    fn stop(reason: &str, by: &str, kind: StopKind) -> Decision {
        Decision::Stop {
            reason: reason.to_owned(),
            by: Some(by.into()),
            kind,
        }
    }

    #[test]
    fn the_strongest_answer_decides() {
        use EventKind::{BeforeLlmCall, PostToolUse, PreToolUse, UserPromptSubmit};
        use Permission::{Allow, Ask, Deny, None as Silent};
        let ask = Decision::Ask {
            reason: "said so".to_owned(),
            by: Some("p".into()),
        };
        let denied = || stop("said so", "p", StopKind::Denied);
        let blocked = || stop("no", "b", StopKind::Blocked);
        let rows: Vec<Row> = vec![
            (PreToolUse, Silent, None, None, Decision::Proceed),
            (PreToolUse, Allow, None, None, Decision::Proceed),
            (PreToolUse, Ask, None, None, ask.clone()),
            (PreToolUse, Deny, None, None, denied()),
            (PreToolUse, Allow, Some("no"), None, blocked()),
            (PreToolUse, Ask, Some("no"), None, blocked()),
            (PreToolUse, Deny, Some("no"), Some("end"), denied()),
            // A gate that knows permissions goes on and ends the run afterwards.
            (PreToolUse, Silent, None, Some("end"), Decision::Proceed),
            (PreToolUse, Ask, None, Some("end"), ask),
            (UserPromptSubmit, Silent, Some("no"), None, blocked()),
            (
                BeforeLlmCall,
                Silent,
                None,
                Some("end"),
                stop("end", "r", StopKind::RunEnded),
            ),
            (PostToolUse, Silent, None, Some("end"), Decision::Proceed),
        ];
        for (event, permission, block, stop_run, decision) in rows {
            let outcome = AnyOutcome {
                permission,
                permission_reason: Some("said so".to_owned()),
                permission_by: Some("p".into()),
                block: block.map(str::to_owned),
                blocked_by: block.map(|_| "b".into()),
                stop_run: stop_run.map(str::to_owned),
                run_stopped_by: stop_run.map(|_| "r".into()),
                ..AnyOutcome::default()
            };
            assert_eq!(event.info().decision(&outcome), decision, "{event:?}");
        }
    }

    #[test]
    fn a_stop_by_a_hook_that_failed_says_so() {
        let outcome = AnyOutcome {
            block: Some("timed out".to_owned()),
            blocked_by: Some("slow".into()),
            failures: vec![Failure {
                hook: "slow".into(),
                cause: "timed out".to_owned(),
                let_through: false,
            }],
            ..AnyOutcome::default()
        };
        let decision = EventKind::UserPromptSubmit.info().decision(&outcome);
        assert_eq!(decision, stop("timed out", "slow", StopKind::Failed));
    }

    #[test]
    fn a_reason_is_never_empty() {
        for (permission, reason) in [
            (Permission::Ask, None),
            (Permission::Ask, Some("  ")),
            (Permission::Deny, None),
            (Permission::Deny, Some("")),
        ] {
            let outcome = AnyOutcome {
                permission,
                permission_reason: reason.map(str::to_owned),
                ..AnyOutcome::default()
            };
            let decision = EventKind::PreToolUse.info().decision(&outcome);
            assert_eq!(
                decision.reason(),
                Some(NO_REASON),
                "{permission:?} {reason:?}"
            );
        }
    }

    #[test]
    fn the_wire_form_is_flat() {
        let json = serde_json::to_value(stop("no", "h", StopKind::Denied)).unwrap();
        let expected = serde_json::json!({
            "decision": "stop", "reason": "no", "by": "h", "kind": "denied",
        });
        assert_eq!(json, expected);
    }
}
