//! Tests built-in handlers with real work trees and a real server on loopback.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod add_context;
mod git;
#[expect(
    dead_code,
    reason = "the tests of the runners use the rest of this server"
)]
#[path = "../../../runners/tests/it/server.rs"]
mod server;
mod snapshot;
#[cfg(unix)]
mod voice;
mod webhook;
mod work_tree;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{
    AsyncHandler, Dialect, Engine, EventKind, EventName, EventRef, Handler, HookId, HookSpec,
    Matcher, Origin, Phase, Source, native_policy,
};
use tenterhook_protocol::{AnyEvent, Envelope, parse_event};
use tenterhook_systems::native::Native;

/// Creates an event from its name and payload, in session `s1` and directory `/w`.
fn event(name: &str, payload: Value) -> EventRef {
    let name: EventName = name.parse().unwrap();
    let event: Arc<dyn AnyEvent> = parse_event(&name, payload).unwrap().into();
    let mut origin = Origin::new("s1", "/w");
    "root".clone_into(&mut origin.agent.name);
    EventRef::new(event, Arc::new(Envelope::new(Arc::new(origin), 1)))
}

fn names(events: &[&str]) -> Vec<EventName> {
    events.iter().map(|name| name.parse().unwrap()).collect()
}

fn native() -> Arc<dyn Dialect> {
    Native::new()
}

/// Returns a hook of `kind` that runs `handler`.
fn spec(kind: EventKind, id: &str, handler: Arc<dyn AsyncHandler>) -> HookSpec {
    HookSpec {
        event: Some(kind.into()),
        id: HookId::new(id),
        matcher: Matcher::everything(),
        agent: None,
        includes_unnamed: false,
        handling: Handler::Async(handler),
        phase: Phase::Main,
        priority: 0,
        order_within_layer: None,
        hears_stops: false,
        timeout: Duration::from_secs(20),
        policy: native_policy(kind.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
    }
}

/// Returns an engine with these hooks.
fn engine(specs: impl IntoIterator<Item = HookSpec>) -> Engine {
    let engine = Engine::new();
    for spec in specs {
        engine.register(spec);
    }
    engine
}

fn origin() -> Origin {
    Origin::new("s1", "/w")
}

/// Creates a call of the tool `shell`.
fn shell_call(cmd: &str) -> PreToolUse {
    PreToolUse::new("shell")
        .with_tool_use_id("call_1")
        .with_tool_input(json!({ "cmd": cmd }).as_object().unwrap().clone())
}

#[test]
fn every_file_of_tests_is_part_of_this_binary() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let main = include_str!("main.rs");
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if let Some(module) = name.strip_suffix(".rs").filter(|name| *name != "main") {
            assert!(main.contains(&format!("\nmod {module};\n")), "{name}");
        }
    }
}
