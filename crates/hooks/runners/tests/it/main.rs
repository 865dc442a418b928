//! Handlers through the public API, with real programs and real servers on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

/// Implements these methods of a host as [`NoHost`](tenterhook_runners::worker::NoHost) does.
#[cfg(unix)]
macro_rules! like_no_host {
    ($($method:ident)*) => { $(like_no_host!(@$method);)* };
    (@has_ui) => {
        fn has_ui(&self) -> bool {
            tenterhook_runners::worker::NoHost.has_ui()
        }
    };
    (@is_strict) => {
        fn is_strict(&self) -> bool {
            tenterhook_runners::worker::NoHost.is_strict()
        }
    };
    (@flags) => {
        fn flags(&self) -> tenterhook_engine::JsonObject {
            tenterhook_runners::worker::NoHost.flags()
        }
    };
    (@script_session) => {
        fn script_session(&self, session: &str) -> Option<String> {
            tenterhook_runners::worker::NoHost.script_session(session)
        }
    };
    (@main_session) => {
        fn main_session(&self, session: &str) -> Option<String> {
            tenterhook_runners::worker::NoHost.main_session(session)
        }
    };
    (@on_output) => {
        fn on_output(&self, worker: &str, line: &str) {
            tenterhook_runners::worker::NoHost.on_output(worker, line);
        }
    };
    (@add) => {
        fn add(
            &self,
            script: std::sync::Arc<dyn tenterhook_runners::worker::ScriptServer>,
            addition: tenterhook_runners::worker::ScriptAddition,
            session: Option<&str>,
        ) -> Result<(), tenterhook_runners::worker::Refusal> {
            tenterhook_runners::worker::NoHost.add(script, addition, session)
        }
    };
}

#[cfg(unix)]
mod answer;
mod command;
#[cfg(unix)]
mod extension;
#[cfg(unix)]
mod guards;
mod http;
mod model;
#[cfg(unix)]
mod morphix;
#[cfg(unix)]
mod operator;
#[cfg(unix)]
mod pi;
#[cfg(unix)]
mod pi_imports;
#[cfg(unix)]
mod restarts;
mod server;
#[cfg(unix)]
mod session_model;
#[cfg(unix)]
mod stage;
mod table;
mod template;
#[cfg(unix)]
mod unknown_tools;
mod withholding;
#[cfg(unix)]
mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{
    AsyncHandler, Dialect, Engine, EventKind, EventName, EventRef, Handler, HookId, HookSpec,
    Matcher, OnError, Origin, Phase, Source, native_policy,
};
use tenterhook_protocol::{AnyEvent, Envelope, parse_event};
use tenterhook_systems::native::Native;

/// Makes an event of its name, its payload and `s1` in `/w` of `root`.
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

/// Returns a hook of `kind` that answers with `handler`.
/// A time limit that does not matter to a test. A busy machine must not be what ends it.
pub(crate) const AMPLE: Duration = Duration::from_mins(10);

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
        timeout: AMPLE,
        policy: native_policy(kind.info(), None),
        source: Source::CODE,
        tools: None,
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
    Origin::new("s1", "/w")
}

/// A call of the tool `shell`.
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
