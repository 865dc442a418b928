use crate::tool_names::ToolTable;
use tenterhook_engine::{EventKind, ToolResult};

use super::*;
use crate::host::capability::CapabilityRow;
use crate::host::denial::{DecidingHook, MAX_REASON};
use crate::host::installation::{FailsClosed, Installation};

static TOOLS: ToolTable = ToolTable::new("acme", &[]);

static INSTALLATION: Installation = Installation {
    user: None,
    project: None,
    fails_closed: FailsClosed::Always,
    after: "",
    approval: None,
    folders: &[],
    also_reads: &[],
    off_switches: &[],
};

const GATE: HostEvent = HostEvent::new("gate", EventKind::PreToolUse, EventRole::ToolGate);
const PROMPT: HostEvent =
    HostEvent::new("prompt", EventKind::UserPromptSubmit, EventRole::PromptGate);
const RESULT: HostEvent = HostEvent::new("result", EventKind::PostToolUse, EventRole::ToolResult);
const STOP: HostEvent = HostEvent::new("stop", EventKind::Stop, EventRole::Stop);

/// A host that prints the verdict, and refuses changed arguments with the name `refused`.
fn host(capabilities: &'static [CapabilityRow]) -> HostAgent {
    HostAgent {
        name: "acme",
        title: "Acme",
        programs: &[],
        processes: &[],
        measured_version: "1",
        tools: &TOOLS,
        events: &[GATE, PROMPT, RESULT, STOP],
        variables: &[],
        project_variables: &[],
        read: |_, _| Err(tenterhook_engine::ReadError::invalid("not read here")),
        write: |_, _, verdict| {
            let input = verdict.input.as_ref();
            if input.is_some_and(|input| input.contains_key("refused")) {
                return Err(HostEffect::Rewrite);
            }
            Ok(HostAnswer {
                stdout: format!("{verdict:?}"),
                ..HostAnswer::default()
            })
        },
        capabilities,
        blind_spots: &[],
        installation: &INSTALLATION,
        headless: None,
    }
}

const fn honoured(event: &'static str, effect: HostEffect) -> CapabilityRow {
    CapabilityRow::new(event, effect, Support::Honoured)
}

/// Returns the verdict that the host got, as text, and what was replaced.
fn answer(
    capabilities: &'static [CapabilityRow],
    event: &HostEvent,
    mode: HostMode,
    verdict: HostVerdict,
) -> (String, Vec<Downgrade>) {
    let object = JsonObject::new();
    let input = HostInput {
        object: &object,
        variables: &[],
    };
    let (answer, downgrades) = host(capabilities).answer(event, &input, mode, verdict);
    (answer.stdout, downgrades)
}

fn ask() -> HostVerdict {
    HostVerdict {
        decision: Decision::Ask {
            reason: "why?".to_owned(),
            by: Some("asker".into()),
        },
        ..HostVerdict::default()
    }
}

#[test]
fn a_denial_names_its_hook_once_also_if_an_effect_cannot_be_written() {
    const ROWS: &[CapabilityRow] = &[
        honoured("gate", HostEffect::Deny),
        honoured("gate", HostEffect::Rewrite),
    ];
    let verdict = HostVerdict {
        decision: Decision::Stop {
            reason: String::new(),
            by: Some("guard".into()),
            kind: StopKind::Denied,
        },
        decided_by: Some(DecidingHook {
            source: Some("hooks.yaml:3".to_owned()),
            next_step: Some("Edit the file".to_owned()),
        }),
        ..rewrite("refused")
    };
    let (written, _) = answer(ROWS, &GATE, HostMode::Interactive, verdict);
    let text =
        r"a hook gave no reason\n\nStopped by the hook `guard` in hooks.yaml:3. Edit the file.";
    assert!(written.contains(text), "{written}");
    assert_eq!(written.matches("Stopped by").count(), 1, "{written}");
}

fn rewrite(key: &str) -> HostVerdict {
    HostVerdict {
        input: Some([(key.to_owned(), 1.into())].into_iter().collect()),
        ..HostVerdict::default()
    }
}

#[test]
fn a_question_that_no_one_can_answer_denies_in_the_name_of_its_hook() {
    const ROWS: &[CapabilityRow] = &[honoured("gate", HostEffect::Deny)];
    let (written, downgrades) = answer(ROWS, &GATE, HostMode::Interactive, ask());
    let present = "Stop { reason: \"why? (Acme cannot ask you from a hook, so this is denied";
    assert!(written.contains(present), "{written}");
    assert!(written.contains("asker"), "{written}");
    let (headless, _) = answer(ROWS, &GATE, HostMode::Headless, ask());
    let absent = "why? (a hook asks a person to decide, but no one can be asked)";
    assert!(headless.contains(absent), "{headless}");
    assert_eq!(downgrades.len(), 1);
    assert_eq!(downgrades[0].effect, HostEffect::Ask);
    assert_eq!(downgrades[0].instead, "the call is denied");
}

#[test]
fn a_row_that_was_measured_headless_does_not_downgrade_a_question_to_a_person() {
    const ROWS: &[CapabilityRow] = &[
        honoured("gate", HostEffect::Deny),
        CapabilityRow::new("gate", HostEffect::Ask, Support::Lost).in_mode(HostMode::Headless),
        honoured("gate", HostEffect::Ask).in_mode(HostMode::Interactive),
    ];
    let (written, downgrades) = answer(ROWS, &GATE, HostMode::Interactive, ask());
    assert!(written.contains("decision: Ask"), "{written}");
    assert_eq!(downgrades, []);
    let (written, _) = answer(ROWS, &GATE, HostMode::Headless, ask());
    assert!(written.contains("decision: Stop"), "{written}");
}

#[test]
fn changed_arguments_that_the_host_cannot_run_deny_the_call() {
    const LOST: &[CapabilityRow] = &[honoured("gate", HostEffect::Deny)];
    const KEPT: &[CapabilityRow] = &[
        honoured("gate", HostEffect::Deny),
        honoured("gate", HostEffect::Rewrite),
    ];
    let reason = "a hook changed the arguments, which Acme cannot run";
    for (rows, key) in [(LOST, "cmd"), (KEPT, "refused")] {
        let (written, downgrades) = answer(rows, &GATE, HostMode::Headless, rewrite(key));
        assert!(written.contains(reason), "{written}");
        assert!(written.contains("input: None"), "{written}");
        assert_eq!(downgrades[0].effect, HostEffect::Rewrite);
    }
    let (written, downgrades) = answer(KEPT, &GATE, HostMode::Headless, rewrite("cmd"));
    assert!(written.contains("decision: Proceed"), "{written}");
    assert_eq!(downgrades, []);
}

#[test]
fn an_effect_that_is_dangerous_is_never_written() {
    const ROWS: &[CapabilityRow] = &[
        honoured("gate", HostEffect::Deny),
        CapabilityRow::new("gate", HostEffect::Allow, Support::Dangerous),
        CapabilityRow::new("gate", HostEffect::Ask, Support::Dangerous),
    ];
    let verdict = HostVerdict {
        is_allowed: true,
        ..HostVerdict::default()
    };
    let (written, downgrades) = answer(ROWS, &GATE, HostMode::Headless, verdict);
    assert!(written.contains("is_allowed: false"), "{written}");
    assert_eq!(downgrades[0].effect, HostEffect::Allow);
    let (written, _) = answer(ROWS, &GATE, HostMode::Headless, ask());
    assert!(written.contains("decision: Stop"), "{written}");
}

#[test]
fn a_denial_carries_added_texts_in_its_reason_and_nothing_else() {
    const ROWS: &[CapabilityRow] = &[
        honoured("gate", HostEffect::Deny),
        honoured("gate", HostEffect::DenyReason),
        honoured("gate", HostEffect::Rewrite),
        honoured("gate", HostEffect::StopRun),
    ];
    let verdict = HostVerdict {
        decision: stop("no".to_owned(), StopKind::Denied),
        context: vec!["use `ls`".to_owned()],
        stop_run: Some("enough".to_owned()),
        ..rewrite("cmd")
    };
    let (written, downgrades) = answer(ROWS, &GATE, HostMode::Headless, verdict);
    assert!(written.contains(r#"reason: "no\n\nuse `ls`""#), "{written}");
    for absent in ["input: None", "context: []", "stop_run: None"] {
        assert!(written.contains(absent), "{written}");
    }
    assert_eq!(downgrades[0].effect, HostEffect::StopRun);
}

#[test]
fn a_hook_cannot_break_its_denial_by_an_empty_or_an_endless_reason() {
    const ROWS: &[CapabilityRow] = &[honoured("gate", HostEffect::Deny)];
    let deny = |reason: &str| {
        let verdict = HostVerdict {
            decision: stop(reason.to_owned(), StopKind::Denied),
            ..HostVerdict::default()
        };
        answer(ROWS, &GATE, HostMode::Headless, verdict).0
    };
    let empty = deny(" \n");
    assert!(empty.contains("a hook gave no reason"), "{empty}");
    let endless = deny(&"é".repeat(MAX_REASON));
    assert!(endless.contains("é …") && endless.len() < MAX_REASON + 1_000);
}

#[test]
fn a_withheld_result_that_the_host_shows_is_reported_to_the_person() {
    let verdict = HostVerdict {
        result: Some(ToolResult::text("withheld")),
        is_withheld: true,
        ..HostVerdict::default()
    };
    let (written, downgrades) = answer(&[], &RESULT, HostMode::Headless, verdict);
    assert!(
        written.contains("a hook withheld the result of a tool, but Acme cannot replace it"),
        "{written}"
    );
    assert_eq!(downgrades[0].effect, HostEffect::ReplaceResult);
}

#[test]
fn a_changed_prompt_that_the_host_cannot_send_is_blocked() {
    const ROWS: &[CapabilityRow] = &[honoured("prompt", HostEffect::BlockPrompt)];
    let verdict = HostVerdict {
        prompt: Some("other".to_owned()),
        ..HostVerdict::default()
    };
    let (written, downgrades) = answer(ROWS, &PROMPT, HostMode::Headless, verdict);
    assert!(written.contains("a hook changed the prompt"), "{written}");
    assert_eq!(downgrades[0].instead, "the prompt is blocked");
}

#[test]
fn a_stop_of_the_run_that_the_host_ignores_denies_the_call_and_never_an_observer() {
    const ROWS: &[CapabilityRow] = &[honoured("gate", HostEffect::Deny)];
    let verdict = || HostVerdict {
        stop_run: Some("enough".to_owned()),
        ..HostVerdict::default()
    };
    let (written, _) = answer(ROWS, &GATE, HostMode::Headless, verdict());
    assert!(written.contains("Stop { reason: \"enough\""), "{written}");
    let (written, downgrades) = answer(ROWS, &STOP, HostMode::Headless, verdict());
    assert!(written.contains("decision: Proceed"), "{written}");
    assert_eq!(downgrades[0].instead, "it has no effect");
}

#[test]
fn a_denial_that_the_host_ignores_is_reported_to_the_person() {
    let verdict = HostVerdict {
        decision: stop("no".to_owned(), StopKind::Denied),
        ..HostVerdict::default()
    };
    let (written, downgrades) = answer(&[], &GATE, HostMode::Headless, verdict);
    assert!(written.contains("Acme ignores hooks that stop `gate`: no"));
    assert_eq!(downgrades[0].instead, "Acme continues");
}

#[test]
fn a_failure_denies_on_gates_only() {
    const ROWS: &[CapabilityRow] = &[honoured("gate", HostEffect::Deny)];
    let host = host(ROWS);
    let answer = host.failure_answer(&GATE, "broken");
    assert!(answer.stdout.contains("broken"), "{answer:?}");
    assert_eq!(host.failure_answer(&STOP, "broken"), HostAnswer::default());
}
