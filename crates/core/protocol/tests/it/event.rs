//! Events, their names and the catalogue.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tenterhook_protocol::event::{
    self, ApprovalDecision, ApprovalSource, Custom, DecisionSource, DenialSource,
    ToolApprovalDecision, TurnEnd, TurnEndReason,
};
use tenterhook_protocol::{
    AnyEvent, CustomName, EventClass, EventKind, EventName, Run, events, parse_event,
};

#[test]
fn every_row_stands_at_its_own_place_under_its_own_name() {
    let names: BTreeSet<&str> = EventKind::ALL.iter().map(|kind| kind.info().name).collect();
    assert_eq!(names.len(), EventKind::COUNT);
    for (index, kind) in EventKind::ALL.iter().enumerate() {
        assert_eq!((kind.index(), kind.info().kind), (index, *kind));
    }
}

#[test]
fn names_are_read_back() {
    for info in events() {
        assert_eq!(info.name.parse(), Ok(EventName::Known(info.kind)));
    }
    assert_eq!(
        "x-acme.deploy".parse::<EventName>().map(|name| name.kind()),
        Ok(EventKind::Custom)
    );
    assert!("pre_tool_usee".parse::<EventName>().is_err());
}

#[test]
fn events_with_rewrites_run_in_series() {
    for info in events().filter(|info| !info.rewrites.is_empty()) {
        assert_eq!(info.run, Run::Series, "{}", info.name);
    }
}

#[test]
fn every_gate_can_stop_something() {
    for info in events().filter(|info| info.class == EventClass::Gate) {
        assert!(info.can_stop(), "{}", info.name);
    }
}

#[test]
fn what_a_host_adds_to_an_event_survives_read_back_and_no_hook_rewrites_it() {
    for kind in EventKind::ALL {
        let info = kind.info();
        assert!(info.has_open_payload() || info.has_field("extra"));
        assert!(!info.rewrites.iter().any(|row| row.field == "extra"));
    }
    let bare = event::PreToolUse::new("shell");
    assert!(!bare.payload().unwrap().contains_key("extra"));
    assert_eq!(bare.extra(), None);
    let open = event::TaskCreated::new([("title", "x")]);
    let events: [Box<dyn AnyEvent>; 2] = [
        Box::new(bare.with_extra("turn_id", "t1")),
        Box::new(open.with_extra("turn_id", "t1")),
    ];
    for mut event in events {
        let name = EventName::Known(event.info().kind);
        let payload = event.payload().unwrap();
        assert_eq!(payload["extra"], serde_json::json!({"turn_id": "t1"}));
        let read = parse_event(&name, payload.clone().into()).unwrap();
        assert_eq!(read.payload().unwrap(), payload);
        assert_eq!(read.extra().unwrap()["turn_id"], "t1");
        event.rewrite("extra", serde_json::json!({})).unwrap_err();
    }
}

#[test]
fn new_parts_of_a_message_decide_its_text() {
    let parts = json!([
        {"kind": "text", "text": "hello"},
        {"kind": "audio", "text": "not a text part", "data": "a.wav"},
        {"kind": "text", "text": "again"},
    ]);
    let events: [Box<dyn AnyEvent>; 2] = [
        Box::new(event::MessageReceive::new("web").with_text("before")),
        Box::new(event::MessageDeliver::new("web").with_text("before")),
    ];
    for mut message in events {
        let text = json!({"text": "other"});
        message.update_derived_fields(text.as_object().unwrap());
        assert_eq!(message.payload().unwrap()["text"], "before");
        let changed = json!({"parts": parts, "text": "other"});
        message.rewrite("parts", parts.clone()).unwrap();
        message.update_derived_fields(changed.as_object().unwrap());
        assert_eq!(message.payload().unwrap()["text"], "hello\nagain");
    }
}

#[test]
fn payloads_refuse_unknown_and_missing_fields() {
    let name = EventName::Known(EventKind::PreToolUse);
    let missing =
        parse_event(&name, serde_json::json!({"tool_input": {}})).expect_err("no tool_name");
    assert!(missing.to_string().contains("tool_name"), "{missing}");
    let unknown =
        parse_event(&name, serde_json::json!({"tool_nme": "shell"})).expect_err("misspelled");
    assert!(unknown.to_string().contains("tool_nme"), "{unknown}");
}

#[test]
fn custom_names_have_a_vendor_and_a_name() {
    for (text, valid) in [
        ("x-acme.deploy", true),
        ("x-acme.deploy.done", true),
        ("x-ac-me.de_ploy2", true),
        ("x-acme", false),
        ("acme.deploy", false),
        ("x-.deploy", false),
        ("x-acme.", false),
        ("x-Acme.deploy", false),
        ("x-acme..deploy", false),
    ] {
        assert_eq!(text.parse::<CustomName>().is_ok(), valid, "{text}");
    }
}

#[test]
fn a_patch_changes_the_payload_but_not_what_the_host_added() {
    let mut event = Custom::gate("x-acme.deploy".parse().unwrap())
        .with("target", "staging")
        .with_extra("turn_id", "t1");
    event
        .rewrite("payload", json!({ "target": "production" }))
        .unwrap();
    let error = event
        .rewrite("payload", json!({ "extra": { "turn_id": "t2" } }))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "`x-acme.deploy` has no field `payload.extra` that a hook may change"
    );
    assert_eq!(
        Value::Object(event.payload().unwrap()),
        json!({ "target": "production", "extra": { "turn_id": "t1" } })
    );
}

#[test]
fn each_source_of_a_decision_is_read_as_it_is_written() {
    let allowed = ApprovalSource::ALL
        .iter()
        .map(|source| DecisionSource::from(*source));
    let denied = DenialSource::ALL
        .iter()
        .map(|source| DecisionSource::from(*source));
    for source in allowed.chain(denied).chain([DecisionSource::Cancelled]) {
        let wire = serde_json::to_value(&source).unwrap();
        assert_eq!(wire, source.as_str());
        assert_eq!(
            serde_json::from_value::<DecisionSource>(wire).unwrap(),
            source
        );
    }
}

#[test]
fn older_spellings_of_a_decision_are_read() {
    let payload =
        json!({"tool_name": "shell", "decision": "canceled", "source": "context_canceled"});
    let event: ToolApprovalDecision = serde_json::from_value(payload).unwrap();
    assert_eq!(event.decision, ApprovalDecision::Cancelled);
    assert_eq!(event.source, DecisionSource::Cancelled);
    let written = serde_json::to_value(&event).unwrap();
    assert_eq!(written["decision"], "cancelled");
    assert_eq!(written["source"], "context_cancelled");
}

#[test]
fn an_unknown_source_of_a_decision_stays_readable() {
    let payload = json!({"tool_name": "shell", "source": "policy_server_deny"});
    let event: ToolApprovalDecision = serde_json::from_value(payload).unwrap();
    assert_eq!(
        event.source,
        DecisionSource::Other("policy_server_deny".to_owned())
    );
    assert_eq!(
        serde_json::to_value(&event).unwrap()["source"],
        "policy_server_deny"
    );
}

#[test]
fn older_spellings_of_the_end_of_a_turn_are_read() {
    let event: TurnEnd = serde_json::from_value(json!({"reason": "canceled"})).unwrap();
    assert_eq!(event.reason, TurnEndReason::Cancelled);
    assert_eq!(serde_json::to_value(&event).unwrap()["reason"], "cancelled");
}

#[test]
fn only_answers_of_the_model_and_the_gateway_fire_events_that_do_not_precede_the_model() {
    let later = EventKind::ALL.iter().map(|kind| kind.info());
    let later: Vec<&str> = later
        .filter(|info| !info.precedes_model)
        .map(|info| info.name)
        .collect();
    // The budget of a run and the list of its tools are also looked at before the model is asked.
    for name in ["token_budget_exceeded", "tools_disabled"] {
        assert!(!later.contains(&name), "{name}");
    }
    assert_eq!(later.len(), 29, "{later:?}");
}
