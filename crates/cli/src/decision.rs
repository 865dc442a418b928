//! Stands in until the protocol has it.

use tenterhook::{AnyOutcome, EventClass, EventInfo, HookId, Permission};

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub(crate) enum Decision {
    Proceed,
    Ask {
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
    },
    Stop {
        reason: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        by: Option<HookId>,
        kind: StopKind,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StopKind {
    Denied,
    Blocked,
    RunEnded,
    Failed,
}

pub(crate) fn decision(info: &EventInfo, outcome: &AnyOutcome) -> Decision {
    if info.class == EventClass::Observer {
        return Decision::Proceed;
    }
    let kind = |kind, by: &Option<HookId>| {
        if outcome
            .failures
            .iter()
            .any(|failure| Some(&failure.hook) == by.as_ref())
        {
            StopKind::Failed
        } else {
            kind
        }
    };
    let text = |reason: Option<&str>| {
        reason
            .filter(|reason| !reason.is_empty())
            .unwrap_or("no reason was given")
            .to_owned()
    };
    if outcome.permission == Permission::Deny {
        return Decision::Stop {
            reason: text(outcome.permission_reason.as_deref()),
            by: outcome.permission_by.clone(),
            kind: kind(StopKind::Denied, &outcome.permission_by),
        };
    }
    if let Some(block) = &outcome.block {
        return Decision::Stop {
            reason: text(Some(block)),
            by: outcome.blocked_by.clone(),
            kind: kind(StopKind::Blocked, &outcome.blocked_by),
        };
    }
    if let Some(stop) = outcome
        .stop_run
        .as_deref()
        .filter(|_| info.stops_by_ending_the_run())
    {
        return Decision::Stop {
            reason: text(Some(stop)),
            by: None,
            kind: StopKind::RunEnded,
        };
    }
    match outcome.permission {
        Permission::Ask => Decision::Ask {
            reason: text(outcome.permission_reason.as_deref()),
            by: outcome.permission_by.clone(),
        },
        Permission::None | Permission::Allow | Permission::Deny => Decision::Proceed,
    }
}
