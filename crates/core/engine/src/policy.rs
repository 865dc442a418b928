//! What happens when a hook fails.
//!
//! | hook of | gate events | observer events |
//! |---|---|---|
//! | native, function, built-in | block | warn |
//!
//! Dialects define their own rows through [`Dialect::policy`](crate::Dialect::policy). With
//! `strict`, a failure on a gate always blocks, and a failure of a hook that may rewrite a result
//! always withholds the result, whatever the hook or its dialect specifies.
//!
//! If a hook that may rewrite a result fails under `block`, the result is withheld, because the
//! hook may be the one that removes secrets. The notice that replaces the result never quotes the
//! failure, which may quote the result.

use serde::{Deserialize, Serialize};
use tenterhook_protocol::{AnyEffect, EventClass, EventInfo, HookId};

use crate::error::HandlerError;
use crate::phase::Phase;

/// What the failure of a hook does to the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The operation does not happen.
    Block,
    /// The operation continues, and the user sees a warning.
    Warn,
    /// The operation continues, and only the journal records the failure.
    Ignore,
}

impl OnError {
    /// Every value, strictest first.
    pub const ALL: [Self; 3] = [Self::Block, Self::Warn, Self::Ignore];

    /// Returns the spelling in hook files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Warn => "warn",
            Self::Ignore => "ignore",
        }
    }
}

/// The failure policy that applies to one hook, and the reason for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// What a failure does.
    pub on_error: OnError,
    /// What a failure does that the hook's system documents as a warning, such as an exit status that
    /// stops nothing.
    #[serde(skip)]
    pub documented: OnError,
    /// Why this policy applies, in words for people.
    pub because: &'static str,
}

impl Policy {
    /// Creates a policy.
    pub const fn new(on_error: OnError, because: &'static str) -> Self {
        Self {
            on_error,
            documented: on_error,
            because,
        }
    }

    /// Sets what a failure does that the hook's system documents as a warning.
    #[must_use]
    pub const fn documented(self, documented: OnError) -> Self {
        Self { documented, ..self }
    }

    /// Returns the policy that a hook of `phase` has under `--strict`: a gate blocks, and a hook
    /// that may rewrite a result withholds it.
    #[must_use]
    pub fn strict(self, info: &EventInfo, phase: Phase) -> Self {
        let is_guarding = info.class == EventClass::Gate || may_rewrite_result(info, phase);
        let is_blocking = self.on_error == OnError::Block && self.documented == OnError::Block;
        if is_guarding && !is_blocking {
            return Self::new(OnError::Block, "strict");
        }
        self
    }
}

/// Returns whether a hook of `phase` may rewrite a result of the event, so that its failure under
/// `block` withholds the result.
pub(crate) fn may_rewrite_result(info: &EventInfo, phase: Phase) -> bool {
    matches!(phase, Phase::Transform | Phase::Main) && info.hands_on_result()
}

/// Returns the notice that replaces a result if the failure of `hook` withholds it.
pub(crate) fn withheld_notice(hook: &HookId, error: &HandlerError) -> String {
    format!("[withheld: hook `{hook}` failed: {}]", error.outline())
}

/// Returns the policy of native hooks, functions and built-ins: the configured one, or by default
/// `block` on gates and `warn` on observers.
pub fn native_policy(info: &EventInfo, configured: Option<OnError>) -> Policy {
    match (configured, info.class) {
        (Some(on_error), _) => Policy::new(on_error, "configured"),
        (None, EventClass::Gate) => Policy::new(OnError::Block, "a gate that fails denies"),
        (None, EventClass::Observer) => Policy::new(OnError::Warn, "hooks cannot stop this event"),
    }
}

/// Returns the effect of a failure under `policy`: the strongest stop that the event honours, a notice for
/// the user, or nothing.
pub fn failure_effect(info: &EventInfo, policy: Policy, message: String) -> AnyEffect {
    match policy.on_error {
        OnError::Block if info.can_stop() => info.stopping_effect(message),
        OnError::Block | OnError::Warn => AnyEffect {
            notices: vec![message],
            ..AnyEffect::default()
        },
        OnError::Ignore => AnyEffect::default(),
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_protocol::{EventKind, Permission};

    use super::*;

    #[test]
    fn a_failing_hook_does_what_the_table_says() {
        for (event, configured, on_error) in [
            (EventKind::PreToolUse, None, OnError::Block),
            (EventKind::UserPromptSubmit, None, OnError::Block),
            (EventKind::TurnStart, None, OnError::Warn),
            (EventKind::Stop, None, OnError::Warn),
            (
                EventKind::PreToolUse,
                Some(OnError::Ignore),
                OnError::Ignore,
            ),
            (EventKind::PreToolUse, Some(OnError::Warn), OnError::Warn),
            (EventKind::PostToolUse, Some(OnError::Block), OnError::Block),
        ] {
            assert_eq!(
                native_policy(event.info(), configured).on_error,
                on_error,
                "{event:?} {configured:?}"
            );
        }
    }

    #[test]
    fn strict_makes_gates_and_redactors_block_and_leaves_other_observers_alone() {
        for kind in EventKind::ALL {
            for on_error in OnError::ALL {
                for phase in Phase::ALL {
                    let info = kind.info();
                    let strict = Policy::new(on_error, "configured").strict(info, phase);
                    let hands_on = info.hands_on_result() && phase < Phase::Guard;
                    let expected = match info.class {
                        EventClass::Observer if !hands_on => on_error,
                        EventClass::Gate | EventClass::Observer => OnError::Block,
                    };
                    assert_eq!(strict.on_error, expected, "{kind:?} {phase:?}");
                }
            }
        }
    }

    #[test]
    fn a_blocking_failure_is_the_strongest_stop_that_the_event_honours() {
        let block = Policy::new(OnError::Block, "test");
        let effect = |kind: EventKind| failure_effect(kind.info(), block, "broke".to_owned());
        let permission = effect(EventKind::PreToolUse)
            .permission
            .map(|verdict| verdict.permission);
        assert_eq!(permission, Some(Permission::Deny));
        assert_eq!(
            effect(EventKind::UserPromptSubmit).block.as_deref(),
            Some("broke")
        );
        assert_eq!(
            effect(EventKind::BeforeLlmCall).stop_run.as_deref(),
            Some("broke")
        );
        assert_eq!(effect(EventKind::TurnStart).notices, ["broke"]);
    }
}
