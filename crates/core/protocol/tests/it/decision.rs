//! What a host must do after an event.

use tenterhook_protocol::{AnyOutcome, Decision, EventKind, Failure, Permission, StopKind};

/// One row: the event, the outcome's permission, block and `stop_run`, and the expected
/// decision.
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
        // A gate that honours permissions proceeds first and ends the run afterwards.
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
fn the_model_learns_the_reason_of_a_hook_but_not_the_cause_of_a_failure() {
    let ask = Decision::Ask {
        reason: "it is sent".to_owned(),
        by: None,
    };
    let asked = "this needs a person's approval, which was not given: it is sent";
    let failed = "a hook failed, so this was stopped";
    for (decision, text) in [
        (Decision::Proceed, None),
        (ask, Some(asked)),
        (stop("no sudo", "h", StopKind::Denied), Some("no sudo")),
        (stop("no sudo", "h", StopKind::Blocked), Some("no sudo")),
        (stop("enough", "h", StopKind::RunEnded), Some("enough")),
        (stop("token=123", "h", StopKind::Failed), Some(failed)),
    ] {
        assert_eq!(decision.for_model().as_deref(), text, "{decision:?}");
    }
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
            Some("no reason was given"),
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
