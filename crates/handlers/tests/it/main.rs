//! Handlers through the public door, with real programs.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

mod add_context;
mod git;
mod model;
mod snapshot;
mod table;
mod template;
mod work_tree;

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tenterhook::{Dialect, EventName, EventRef, Origin};
use tenterhook_dialects::docker_agent::DockerAgent;
use tenterhook_protocol::{AnyEvent, Envelope, parse_event};

/// Makes an event of its name, its payload and `s1` in `/w` of `root`.
fn event(name: &str, payload: Value) -> EventRef {
    let name: EventName = name.parse().unwrap();
    let event: Arc<dyn AnyEvent> = parse_event(&name, payload).unwrap().into();
    let mut origin = Origin {
        session_id: "s1".into(),
        cwd: "/w".into(),
        ..Origin::default()
    };
    "root".clone_into(&mut origin.agent.name);
    EventRef::new(event, Arc::new(Envelope::new(Arc::new(origin), 1)))
}

fn names(events: &[&str]) -> Vec<EventName> {
    events.iter().map(|name| name.parse().unwrap()).collect()
}

fn native() -> Arc<dyn Dialect> {
    DockerAgent::native()
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
