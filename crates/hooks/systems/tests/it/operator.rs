//! Operator's and morphix's contracts: the events that a worker receives, and the effects of its answers.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenterhook_engine::event::{AfterCompaction, PostToolUse, PreToolUse, SessionStart};
use tenterhook_engine::{EventClass, EventKind, OnError, Phase, Reply, ToolResult, parse_event};
use tenterhook_protocol::event::{CompactionReason, SessionSource};
use tenterhook_systems::{morphix, operator};

use crate::sent;

fn reply(answer: &Value) -> Vec<u8> {
    answer.to_string().into_bytes()
}

#[test]
fn every_event_of_both_has_its_own_name_and_one_of_the_catalogue() {
    let names: BTreeSet<_> = operator::EVENTS.iter().map(|event| event.name).collect();
    assert_eq!(names.len(), operator::EVENTS.len());
    assert_eq!(names.len(), 48);
    for event in operator::EVENTS {
        assert_eq!(
            operator::Operator::event(event.name).unwrap().kind,
            event.kind
        );
    }
    let names: BTreeSet<_> = morphix::EVENTS.iter().map(|event| event.name).collect();
    assert_eq!(names.len(), 6);
    assert!(operator::Operator::event("goal_update").is_none());
    assert!(morphix::Morphix::event("on_after_tools").is_none());
}

// Two of Operator's events correspond to one event of the catalogue. Each gets its own fields.
#[test]
fn two_events_that_are_one_here_are_written_apart() {
    let event =
        sent(AfterCompaction::new("short", CompactionReason::default()).with_input_tokens(7));
    for (name, expected) in [
        (
            "session_compact",
            json!({"type": "session_compact", "from_extension": false}),
        ),
        (
            "compaction_end",
            json!({"type": "compaction_end", "tokens_before": 7, "summary": "short"}),
        ),
    ] {
        let dialect = operator::Operator::event(name).unwrap().dialect();
        let bytes = event.encoded(&*dialect).unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&bytes).unwrap(), expected);
    }
}

#[test]
fn an_event_of_another_kind_is_refused() {
    let event = sent(PreToolUse::default());
    for dialect in [
        operator::Operator::event("input").unwrap().dialect(),
        operator::Operator::event("tool_result").unwrap().dialect(),
    ] {
        let error = dialect.write(&event).unwrap_err().to_string();
        assert_eq!(error, "the operator dialect has no event `pre_tool_use`");
    }
    let event = parse_event(&EventKind::Interrupt.into(), json!({})).unwrap();
    let event = tenterhook_engine::EventRef::new(
        event.into(),
        sent(PreToolUse::default()).envelope().clone(),
    );
    let error = morphix::Morphix::new()
        .write(&event)
        .unwrap_err()
        .to_string();
    assert_eq!(error, "the morphix dialect has no event `interrupt`");
}

#[test]
fn occurrences_that_neither_system_has_are_passed_over() {
    let result = |result: ToolResult, blocked| {
        PostToolUse::default()
            .with_result(result)
            .with_blocked(blocked)
    };
    let tool_result = operator::Operator::event("tool_result").unwrap().dialect();
    let start = operator::Operator::event("session_start")
        .unwrap()
        .dialect();
    let morphix = morphix::Morphix::new();
    for (event, at_operator, at_morphix) in [
        (result(ToolResult::text("a"), false), true, true),
        (result(ToolResult::error("a"), false), true, false),
        (result(ToolResult::error("a"), true), false, false),
    ] {
        let event = sent(event);
        assert_eq!(tool_result.has_event(&event), at_operator);
        assert_eq!(morphix.has_event(&event), at_morphix);
    }
    for (source, is_there) in [
        (SessionSource::Compact, false),
        (SessionSource::Resume, true),
    ] {
        let event = sent(SessionStart::new(source));
        assert_eq!(start.has_event(&event), is_there);
    }
}

#[test]
fn a_handler_that_fails_warns_unless_it_is_configured_otherwise() {
    for event in operator::EVENTS {
        let info = event.kind.info();
        let dialect = event.dialect();
        assert_eq!(
            dialect.policy(info, None).on_error,
            OnError::Warn,
            "{}",
            event.name
        );
        let configured = dialect.policy(info, Some(OnError::Block));
        assert_eq!(configured.on_error, OnError::Block);
        let strict = dialect
            .policy(info, None)
            .strict(info, Phase::Main)
            .on_error;
        assert_eq!(
            strict == OnError::Block,
            info.class == EventClass::Gate || info.hands_on_result(),
            "{}",
            event.name
        );
    }
    let info = EventKind::PreToolUse.info();
    let policy = morphix::Morphix::new().policy(info, None);
    assert_eq!(policy.on_error, OnError::Warn);
    assert_eq!(policy.strict(info, Phase::Main).on_error, OnError::Block);
}

// An invalid answer is a failure. A block whose reason is not a string still blocks.
#[test]
fn answers_are_read_or_refused() {
    let dialect = operator::Operator::event("tool_call").unwrap().dialect();
    let info = EventKind::PreToolUse.info();
    let read = |answer: &Value| {
        let stdout = reply(answer);
        let reply = Reply::Returned { json: &stdout };
        dialect.read(info, &reply, false)
    };
    let result = |fields: Value| json!({"class": "ToolCallEventResult", "fields": fields});
    for (fields, block) in [
        (json!({"block": true, "reason": "no"}), Some("no")),
        (
            json!({"block": "yes", "reason": ""}),
            Some("stopped by a hook"),
        ),
        (json!({"block": 1, "reason": 7}), Some("7")),
        (
            json!({"block": true, "params": {"a": 1}}),
            Some("stopped by a hook"),
        ),
        (json!({"block": false}), None),
        (json!({"block": null}), None),
    ] {
        let effect = read(&result(fields.clone())).unwrap();
        assert_eq!(effect.block.as_deref(), block, "{fields}");
        assert!(effect.rewrite.is_empty(), "{fields}");
    }
    assert!(read(&json!(null)).unwrap().is_empty());
    for answer in [
        json!(true),
        json!([]),
        json!({"fields": {}}),
        json!({"class": "dict", "fields": {"block": true}}),
        json!(["ToolCallEventResult", {}]),
        result(json!({"params": "ls"})),
        result(json!({"block": 0})),
        result(json!({"block": ""})),
        result(json!({"block": []})),
    ] {
        assert!(read(&answer).is_err(), "{answer}");
    }
}
