//! Handlers through the engine, against real servers on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "a test stops at the first thing that is not as it should be"
)]

mod http;
mod server;
mod webhook;

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tenterhook::event::PreToolUse;
use tenterhook::{
    Engine, EventKind, Handler, Handling, HookId, HookSpec, Matcher, OnError, Origin, Phase,
    Source, native_policy,
};

/// Returns a hook of `kind` that answers with `handler`.
fn spec(kind: EventKind, id: &str, handler: Arc<dyn Handler>) -> HookSpec {
    HookSpec {
        event: Some(kind.into()),
        id: HookId::new(id),
        matcher: Matcher::everything(),
        agent: None,
        handling: Handling::Waiting(handler),
        phase: Phase::Main,
        priority: 0,
        timeout: Duration::from_secs(20),
        policy: native_policy(kind.info(), None),
        source: Source::CODE,
        definition: None,
    }
}

/// The same hook with another failure policy.
fn on_error(mut spec: HookSpec, on_error: OnError) -> HookSpec {
    let info = spec.event.as_ref().unwrap().info();
    spec.policy = native_policy(info, Some(on_error));
    spec
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
    Origin {
        session_id: "s1".into(),
        cwd: "/w".into(),
        ..Origin::default()
    }
}

/// A call of the tool `shell`.
fn shell_call(cmd: &str) -> PreToolUse {
    PreToolUse {
        tool_use_id: "call_1".into(),
        tool_name: "shell".to_owned(),
        tool_input: json!({ "cmd": cmd }).as_object().unwrap().clone(),
        ..PreToolUse::default()
    }
}

#[test]
fn no_test_file_is_forgotten() {
    let main = include_str!("main.rs");
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap();
    for file in files {
        let name = file.unwrap().file_name().into_string().unwrap();
        let module = name.trim_end_matches(".rs");
        assert!(
            module == "main" || main.contains(&format!("mod {module};")),
            "{name} is not in main.rs"
        );
    }
}
