//! Events that hooks of every system received, read back.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{
    Envelope, EventKind, EventName, EventRef, JsonObject, Origin, parse_event,
};
use tenterhook_systems::docker_agent::DockerAgent;
use tenterhook_systems::example::example;
use tenterhook_systems::form::{Form, FormError, forms};
use tenterhook_systems::native::Native;

use crate::{compare, sent_any};

fn object(value: Value) -> JsonObject {
    let Value::Object(object) = value else {
        unreachable!("an object: {value}")
    };
    object
}

fn event(name: &str) -> EventName {
    name.parse().unwrap()
}

fn all_events() -> Vec<EventName> {
    let known = EventKind::ALL
        .iter()
        .filter(|kind| **kind != EventKind::Custom)
        .map(|kind| EventName::Known(*kind));
    known.chain([event("x-acme.deploy")]).collect()
}

/// Writes the event in a form, without the fields that differ between any two dispatches.
fn written(form: &Form, name: &EventName, payload: JsonObject) -> Option<JsonObject> {
    let dialect = form.dialect(name)?;
    let sent = sent_any(Arc::from(parse_event(name, payload.into()).unwrap()));
    let bytes = dialect.write(&sent).unwrap();
    Some(serde_json::from_slice(&bytes).unwrap())
}

fn without_stamp(mut written: JsonObject) -> JsonObject {
    for key in ["event_id", "id", "turn"] {
        written.remove(key);
    }
    written
}

fn payload_of(form: &Form, name: &EventName, written: &JsonObject) -> JsonObject {
    let read = form
        .read(name, written)
        .unwrap_or_else(|error| unreachable!("{} {name}: {error:?}", form.name));
    read.event.payload().unwrap()
}

#[test]
fn every_event_that_is_written_is_read_back_and_written_the_same_again() {
    for form in forms() {
        let mut count = 0;
        for name in all_events() {
            let Some(first) = written(form, &name, example(&name)) else {
                continue;
            };
            count += 1;
            let read = payload_of(form, &name, &first);
            let second = written(form, &name, read).unwrap();
            assert_eq!(
                without_stamp(first),
                without_stamp(second),
                "{} {name}",
                form.name
            );
        }
        assert!(count > 0 || form.name == "tenterhook", "{}", form.name);
    }
}

#[test]
fn every_event_is_read_back_as_it_was_but_for_what_its_form_does_not_carry() {
    let mut lost: Vec<String> = Vec::new();
    for form in forms() {
        for name in all_events() {
            let before = example(&name);
            let Some(written) = written(form, &name, before.clone()) else {
                continue;
            };
            let after = payload_of(form, &name, &written);
            let fields = before
                .iter()
                .filter(|(key, value)| after.get(*key) != Some(*value));
            let fields: Vec<&str> = fields.map(|(key, _)| key.as_str()).collect();
            if !fields.is_empty() {
                lost.push(format!("{} {name}: {}\n", form.name, fields.join(" ")));
            }
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden");
    compare(&folder.join("not_carried.txt"), &lost.concat());
}

#[test]
fn what_is_written_is_recognised_by_its_keys() {
    for form in forms() {
        for name in all_events() {
            let Some(written) = written(form, &name, example(&name)) else {
                continue;
            };
            match Form::recognise(&name, &written) {
                Ok(found) => assert_eq!(found.name, form.name, "{name}"),
                // The object has a `type`, but no key that only one of the two systems has.
                Err(FormError::Ambiguous { forms }) => {
                    assert_eq!(forms, ["operator", "pi"], "{name}");
                    assert!(forms.contains(&form.name), "{} {name}", form.name);
                }
                Err(error) => unreachable!("{} {name}: {error:?}", form.name),
            }
        }
    }
}

#[test]
fn our_own_payload_has_no_key_of_another_form() {
    for name in all_events() {
        let form = Form::recognise(&name, &example(&name)).unwrap();
        assert_eq!(form.name, "tenterhook", "{name}");
        assert_eq!(
            payload_of(form, &name, &example(&name)),
            example(&name),
            "{name}"
        );
    }
}

#[test]
fn golden_lines_of_agent_files_are_read_back() {
    let lines = include_str!("golden/agent_file.jsonl").lines();
    let mut count = 0;
    for line in lines {
        let line: JsonObject = serde_json::from_str(line).unwrap();
        let theirs = line["hook_event_name"].as_str().unwrap();
        let kind = DockerAgent::event(theirs).unwrap().kind;
        let name = EventName::Known(kind);
        let form = Form::recognise(&name, &line).unwrap();
        assert_eq!(form.name, "docker-agent", "{theirs}");
        let read = form.read(&name, &line).unwrap();
        assert_eq!(read.origin.cwd, Path::new("/w"), "{theirs}");
        assert_eq!(read.origin.session_id.as_str(), "s1", "{theirs}");
        count += 1;
    }
    assert!(count > 15);
}

/// | captured by a hook of | event | payload | our payload |
fn captured() -> [(&'static str, &'static str, Value, Value); 9] {
    let call = json!({ "tool_name": "shell", "tool_input": { "cmd": "git push" }, "tool_use_id": "call_1" });
    let also = |more: Value| {
        let mut object = object(call.clone());
        object.extend(self::object(more));
        Value::Object(object)
    };
    [
        (
            "kodelet",
            "pre_tool_use",
            json!({"event": "before_tool_call", "conv_id": "c1", "cwd": "/w", "invoked_by": "main",
                "tool_name": "shell", "tool_input": {"cmd": "git push"}, "tool_user_id": "call_1"}),
            also(json!({"attempt": 1})),
        ),
        (
            "kodelet-extension",
            "pre_tool_use",
            json!({"id": "evt_1", "event": "tool.call", "context": {"sessionId": "c1", "cwd": "/w"},
                "payload": {"tool": {"name": "shell", "callId": "call_1", "input": {"cmd": "git push"}}}}),
            also(json!({"attempt": 1})),
        ),
        (
            "docker-agent",
            "pre_tool_use",
            json!({"session_id": "c1", "cwd": "/w", "hook_event_name": "pre_tool_use",
                "tool_name": "shell", "tool_use_id": "call_1", "tool_input": {"cmd": "git push"}}),
            also(json!({"attempt": 1})),
        ),
        (
            "docker-agent",
            "tool_guard",
            json!({"session_id": "c1", "cwd": "/w", "hook_event_name": "pre_tool_use",
                "tool_name": "shell", "tool_use_id": "call_1", "tool_input": {"cmd": "git push"}}),
            also(json!({"attempt": 1})),
        ),
        (
            "operator",
            "pre_tool_use",
            json!({"type": "tool_call", "tool_call_id": "call_1", "tool_name": "shell", "input": {"cmd": "git push"}}),
            also(json!({"attempt": 1})),
        ),
        (
            "morphix",
            "pre_tool_use",
            json!({"hook_point": "on_before_tool", "tool_name": "shell", "parameters": {"cmd": "git push"},
                "role": "reviewer", "result": null, "error": null, "duration": 0.0, "attempt": 2, "workspace": "main",
                "session_id": "c1"}),
            json!({"tool_name": "shell", "tool_input": {"cmd": "git push"}, "tool_use_id": "", "role": "reviewer",
                "attempt": 2}),
        ),
        (
            "pi",
            "pre_tool_use",
            json!({"type": "tool_call", "toolCallId": "call_1", "toolName": "bash", "input": {"command": "git push"}}),
            also(json!({"attempt": 1, "tool_name": "bash", "tool_input": {"command": "git push"}})),
        ),
        (
            "kodelet",
            "user_prompt_submit",
            json!({"event": "user_message_send", "conv_id": "c1", "cwd": "/w", "invoked_by": "main", "message": "hi"}),
            json!({"prompt": "hi"}),
        ),
        (
            "operator",
            "after_compaction",
            json!({"type": "compaction_end", "tokens_before": 9, "summary": "short"}),
            json!({"summary": "short", "from_hook": false, "reason": "threshold", "input_tokens": 9, "output_tokens": 0}),
        ),
    ]
}

#[test]
fn what_a_hook_of_each_system_read_is_the_same_event_here() {
    for (system, name, payload, expected) in captured() {
        let (name, payload) = (event(name), object(payload));
        let form = Form::recognise(&name, &payload).unwrap();
        assert_eq!(form.name, system);
        let read = payload_of(form, &name, &payload);
        assert_eq!(Value::Object(read), expected, "{system} {name}");
    }
}

fn refusal(form: &str, name: &str, payload: Value) -> (String, String) {
    let form = Form::by_name(form).unwrap();
    let error = form.read(&event(name), &object(payload)).unwrap_err();
    let FormError::Invalid { problem, .. } = &error else {
        return (error.to_string(), String::new());
    };
    (error.to_string(), problem.clone())
}

#[test]
fn a_payload_that_names_another_event_is_refused() {
    for (form, name, payload, expected) in [
        (
            "docker-agent",
            "pre_tool_use",
            json!({"hook_event_name": "post_tool_use", "tool_name": "shell"}),
            "`hook_event_name` of the input is `post_tool_use`, but the event is `pre_tool_use`",
        ),
        (
            "kodelet",
            "pre_tool_use",
            json!({"event": "turn_end", "conv_id": "c1"}),
            "`event` of the input is `turn_end`, but the event is `pre_tool_use` (expected `before_tool_call`)",
        ),
        (
            "tenterhook",
            "pre_tool_use",
            json!({"event": "tool_guard", "tool_name": "shell"}),
            "`event` of the input is `tool_guard`, but the event is `pre_tool_use`",
        ),
        (
            "pi",
            "pre_tool_use",
            json!({"type": 5}),
            "`type` of the input is `5`, but the event is `pre_tool_use` (expected `tool_call`)",
        ),
        (
            "morphix",
            "turn_start",
            json!({"hook_point": "on_before_tool"}),
            "morphix has no event that corresponds to `turn_start`",
        ),
    ] {
        assert_eq!(refusal(form, name, payload).0, expected);
    }
}

#[test]
fn a_value_of_the_wrong_type_is_refused_under_its_own_key() {
    for (form, name, payload, expected) in [
        (
            "kodelet",
            "user_prompt_submit",
            json!({"message": 5}),
            "`message`: invalid type: integer `5`, expected a string",
        ),
        (
            "kodelet",
            "user_prompt_submit",
            json!({}),
            "missing field `prompt`",
        ),
        (
            "kodelet",
            "pre_tool_use",
            json!({"tool_name": "bash", "tool_input": "ls"}),
            "the arguments of the tool are missing or not an object",
        ),
        (
            "operator",
            "pre_tool_use",
            json!({"tool_name": "terminal"}),
            "the arguments of the tool are missing or not an object",
        ),
        (
            "docker-agent",
            "pre_tool_use",
            json!({"hook_event_name": "pre_tool_use", "tool_input": {}}),
            "missing field `tool_name`",
        ),
        (
            "pi",
            "pre_tool_use",
            json!({"toolName": ["bash"], "input": {}}),
            "`toolName`: invalid type: sequence, expected a string",
        ),
        (
            "kodelet-extension",
            "pre_tool_use",
            json!({"context": {}, "payload": {}}),
            "`tool` is null, expected an object",
        ),
    ] {
        assert_eq!(refusal(form, name, payload).1, expected);
    }
}

#[test]
fn keys_of_two_forms_decide_nothing() {
    for (name, payload, expected) in [
        (
            "agent_start",
            json!({"type": "agent_start"}),
            vec!["operator", "pi"],
        ),
        (
            "pre_tool_use",
            json!({"type": "tool_call", "hook_event_name": "pre_tool_use"}),
            vec!["docker-agent", "operator", "pi"],
        ),
        (
            "pre_tool_use",
            json!({"type": "tool_call", "toolCallId": "1", "tool_call_id": "1"}),
            vec!["operator", "pi"],
        ),
    ] {
        let found = Form::recognise(&event(name), &object(payload)).unwrap_err();
        assert_eq!(found, FormError::Ambiguous { forms: expected }, "{name}");
    }
}

#[test]
fn an_open_payload_may_have_the_keys_of_systems_without_that_event() {
    let name = event("x-acme.deploy");
    let payload = object(json!({"type": "rolling", "event": "released", "conv_id": "c1"}));
    let form = Form::recognise(&name, &payload).unwrap();
    assert_eq!(form.name, "tenterhook");
    assert_eq!(payload_of(form, &name, &payload), payload);
}

/// If a captured call were read in the wrong form, its tool would be unknown and guards would not see it.
#[test]
fn a_payload_of_another_form_is_refused_where_it_does_not_name_its_event() {
    let payload = json!({"event": "before_tool_call", "conv_id": "c", "tool_name": "bash", "tool_input": {"command": "sudo x"}});
    let event = EventName::Known(EventKind::PreToolUse);
    let form = Form::by_name("docker-agent").unwrap();
    let error = form.read(&event, payload.as_object().unwrap()).unwrap_err();
    let FormError::Invalid { problem, .. } = error else {
        panic!("{error}");
    };
    assert!(problem.contains("are keys of kodelet"), "{problem}");
}

#[test]
fn what_a_host_adds_stands_at_one_place_and_is_read_back() {
    let event = PreToolUse::new("shell").with_extra("turn_id", "t1");
    let origin = Origin::new("s1", "/w").with_extra("transcript_path", "/t");
    let envelope = Envelope::new(Arc::new(origin.clone()), 1);
    let sent = EventRef::new(Arc::new(event.clone()), Arc::new(envelope));
    let name = EventName::Known(EventKind::PreToolUse);
    let native: JsonObject = serde_json::from_slice(&Native::new().write(&sent).unwrap()).unwrap();
    let recorded = object(sent.to_json().unwrap());
    for (form, written) in [("native", native), ("tenterhook", recorded)] {
        assert_eq!(written["extra"], json!({ "turn_id": "t1" }), "{form}");
        assert_eq!(
            written["origin_extra"],
            json!({ "transcript_path": "/t" }),
            "{form}"
        );
        let form = Form::recognise(&name, &written).unwrap();
        let read = form.read(&name, &written).unwrap();
        assert_eq!(read.event.as_any().downcast_ref(), Some(&event));
        assert_eq!(read.origin.extra, origin.extra);
        let mut unknown = written;
        unknown.insert("extras".to_owned(), json!({}));
        assert!(form.read(&name, &unknown).is_err(), "{}", form.name);
    }
}
