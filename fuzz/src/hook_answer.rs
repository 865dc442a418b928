//! What hooks print, return and respond, in the dialect of every system.

use std::sync::Arc;

use serde_json::Value;
use tenterhook_engine::{
    AnyEffect, Dialect, EventClass, EventInfo, EventName, Reply, UniqueObject, UniqueValue,
};
use tenterhook_systems::docker_agent::DockerAgent;
use tenterhook_systems::form::forms;
use tenterhook_systems::native::Native;

/// Checks an answer. The first line selects the event, and the byte after it the exit status.
pub fn check(data: &[u8]) {
    let Some((name, rest)) = crate::event(data) else {
        return;
    };
    let Some((status, text)) = crate::selected(rest) else {
        return;
    };
    let status = [0, 0, 2, 1][status % 4];
    let exited = Reply::Exited {
        status,
        stdout: text,
        stderr: text,
        stdout_omitted: 0,
    };
    for dialect in dialects(&name) {
        for reply in [
            exited,
            Reply::Returned { json: text },
            Reply::Http { body: text },
        ] {
            strict_reading_only_refuses_more(&*dialect, name.info(), &reply);
        }
    }
    executables_fail_by_their_status(&name, status, &exited);
    native_gates_understand_or_fail(name.info(), text);
    strict_hooks_understand_or_fail(&name, text);
    workers_answer_json(&name, text);
    missing_bytes_fail(name.info(), text);
}

/// Returns the dialects of all systems that have the event.
fn dialects(name: &EventName) -> Vec<Arc<dyn Dialect>> {
    let of_forms = forms().filter_map(|form| form.dialect(name));
    let others = [Native::new(), DockerAgent::agent_file()];
    let mut all: Vec<_> = of_forms.chain(others).collect();
    all.dedup_by_key(|dialect| dialect.name());
    all
}

/// Reads the reply with and without `strict`. An answer that passes both has one meaning.
fn strict_reading_only_refuses_more(dialect: &dyn Dialect, info: &EventInfo, reply: &Reply<'_>) {
    let lenient = dialect.read(info, reply, false);
    if let Err(error) = &lenient {
        assert!(!error.to_string().is_empty());
    }
    if let Ok(strict) = dialect.read(info, reply, true) {
        let lenient = lenient.unwrap_or_else(|error| {
            panic!("{} refuses only without `strict`: {error}", dialect.name())
        });
        assert_eq!(strict, lenient, "{}", dialect.name());
    }
}

/// A status other than 0 and 2 is a failure, and 2 stops what can be stopped.
fn executables_fail_by_their_status(name: &EventName, status: i32, reply: &Reply<'_>) {
    for dialect in [Native::new(), DockerAgent::agent_file()] {
        let read = dialect.read(name.info(), reply, false);
        match status {
            0 => {}
            2 => {
                let effect = read.expect("exit status 2 is an answer");
                assert!(!effect.is_empty(), "exit status 2 means nothing");
                let is_stop = effect.is_stop() || effect.stop_run.is_some();
                assert!(is_stop || !name.info().can_stop(), "{effect:?}");
            }
            _ => assert!(read.is_err(), "status {status}: {read:?}"),
        }
    }
}

/// On a gate, a native hook has no opinion only if it printed nothing, or a JSON object.
fn native_gates_understand_or_fail(info: &EventInfo, text: &[u8]) {
    if info.class != EventClass::Gate {
        return;
    }
    let reply = output(text, 0);
    if let Ok(effect) = Native::new().read(info, &reply, false) {
        has_opinion_or_is_object(&effect, text);
    }
}

/// With `strict_output`, the same holds on every event.
fn strict_hooks_understand_or_fail(name: &EventName, text: &[u8]) {
    for dialect in [Native::new(), DockerAgent::agent_file()] {
        if let Ok(effect) = dialect.read(name.info(), &output(text, 0), true) {
            has_opinion_or_is_object(&effect, text);
        }
    }
}

fn has_opinion_or_is_object(effect: &AnyEffect, text: &[u8]) {
    if !effect.is_empty() {
        return;
    }
    let text = String::from_utf8_lossy(text);
    let text = text.trim().trim_start_matches('\u{feff}').trim();
    let object: Result<UniqueObject, _> = serde_json::from_str(text);
    assert!(text.is_empty() || object.is_ok(), "{text:?} is ignored");
}

/// Only JSON in which no key is repeated is an answer of a script.
fn workers_answer_json(name: &EventName, text: &[u8]) {
    let json: Result<UniqueValue, _> = serde_json::from_slice(text);
    let is_valid =
        json.is_ok_and(|UniqueValue(value)| matches!(value, Value::Null | Value::Object(_)));
    let reply = Reply::Returned { json: text };
    for system in ["operator", "morphix", "pi"] {
        let form = forms().find(|form| form.name == system);
        let dialect = form.and_then(|form| form.dialect(name));
        let read = dialect.map(|dialect| dialect.read(name.info(), &reply, false));
        if let Some(Ok(effect)) = read {
            assert!(is_valid, "{system} accepts {effect:?}");
        }
    }
}

/// The part of an answer that was dropped may contain a refusal.
fn missing_bytes_fail(info: &EventInfo, text: &[u8]) {
    if info.class != EventClass::Gate {
        return;
    }
    for dialect in [Native::new(), DockerAgent::agent_file()] {
        let read = dialect.read(info, &output(text, 1), false);
        assert!(read.is_err(), "{}: {read:?}", dialect.name());
    }
}

fn output(text: &[u8], stdout_omitted: u64) -> Reply<'_> {
    Reply::Exited {
        status: 0,
        stdout: text,
        stderr: b"",
        stdout_omitted,
    }
}
