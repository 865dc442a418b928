//! Measures a Python hook that runs in a fork of an interpreter that has loaded it, compared with a
//! fresh interpreter.
//!
//! Both hooks are ordinary scripts: one reads JSON and answers with JSON, the other imports a good
//! part of the standard library as well. Time runs from the event to the outcome, with the child
//! reaped. Compare only the ratios within one run. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

#[cfg(unix)]
#[path = "../../../core/process/benches/floor.rs"]
#[expect(dead_code, reason = "only the comparison is needed here")]
mod floor;

#[cfg(not(unix))]
fn main() {
    println!("a fork server needs a Unix system");
}

#[cfg(unix)]
fn main() {
    unix::main();
}

#[cfg(unix)]
mod unix {
    use std::path::Path;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use serde_json::json;
    use tenterhook_engine::event::PreToolUse;
    use tenterhook_engine::{
        Dispatcher, Engine, EventKind, Handler, HookId, HookSpec, JsonObject, Matcher, Origin,
        Phase, Source, native_policy,
    };
    use tenterhook_process::{Command, Program, PythonScript};
    use tenterhook_runners::CommandHandler;
    use tenterhook_systems::native::Native;
    use tokio::runtime::Runtime;

    use super::floor::{compare, multi_thread};

    const PLAIN: &str = r#"
import json, sys

event = json.load(sys.stdin)
refused = event["tool_input"].get("cmd", "").startswith("sudo")
json.dump({"decision": "deny" if refused else "allow", "reason": "checked"}, sys.stdout)
"#;

    const HEAVY: &str = r"
import argparse
import asyncio
import concurrent.futures
import ctypes
import decimal
import email.message
import http.client
import logging.config
import multiprocessing
import sqlite3
import ssl
import unittest
import urllib.request
import xml.etree.ElementTree
";

    pub(super) fn main() {
        let is_quick = std::env::args().any(|argument| argument == "--quick");
        let rounds = if is_quick { 15 } else { 100 };
        let python = interpreter();
        println!("{python}; 1 KiB in, one object out; one event at a time\n");
        let plain = ratio("a hook that reads and prints JSON", &python, PLAIN, rounds);
        let script = format!("{HEAVY}{PLAIN}");
        let heavy = ratio("the same with 14 imports", &python, &script, rounds);
        println!("G8: {plain:.1} times as fast (goal 8), with imports {heavy:.1} times (goal 20)");
    }

    /// Returns the path of the interpreter itself. A `python3` that is only a wrapper script would
    /// make cold runs look slower than they are.
    fn interpreter() -> String {
        let output = std::process::Command::new("python3")
            .args(["-c", "import sys; print(sys.executable)"])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn ratio(title: &str, python: &str, text: &str, rounds: usize) -> f64 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hook.py");
        std::fs::write(&path, text).unwrap();
        let program = Program::exec([python, path.to_str().unwrap()]);
        let runtime = multi_thread();
        let cold = CommandHandler::new(Command::new(program.clone()), "hook.py", Native::new());
        let forked = CommandHandler::new(Command::new(program.clone()), "hook.py", Native::new())
            .fork_server(PythonScript::of(&program).unwrap());
        let warm = forked.warm(dir.path(), Duration::from_secs(20));
        runtime.block_on(warm).unwrap();
        let (cold, forked) = (Arc::new(cold), Arc::new(forked));
        let without = dispatcher(dir.path(), &cold);
        let with = dispatcher(dir.path(), &forked);
        let medians = compare(
            title,
            rounds,
            &mut [
                ("a fresh interpreter", &mut || dispatch(&runtime, &without)),
                ("a forked one", &mut || dispatch(&runtime, &with)),
                ("a forked one, right after another", &mut || {
                    dispatch(&runtime, &with);
                    dispatch(&runtime, &with)
                }),
            ],
        );
        let counts = forked.fork_counts().unwrap();
        assert_eq!(counts.cold, 0, "{counts:?}");
        medians[0] / medians[1]
    }

    fn dispatcher(dir: &Path, handler: &Arc<CommandHandler>) -> Dispatcher {
        let engine = Engine::new();
        let kind = EventKind::PreToolUse;
        engine.register(HookSpec {
            event: Some(kind.into()),
            id: HookId::new("hook"),
            matcher: Matcher::everything(),
            agent: None,
            includes_unnamed: false,
            handling: Handler::Async(Arc::<CommandHandler>::clone(handler)),
            phase: Phase::Main,
            priority: 0,
            order_within_layer: None,
            hears_stops: false,
            timeout: Duration::from_mins(1),
            policy: native_policy(kind.info(), None),
            source: Source::CODE,
            tools: None,
            definition: None,
        });
        engine.dispatcher(Origin::new("bench", dir.to_owned()))
    }

    fn input() -> JsonObject {
        let input = json!({ "cmd": "x".repeat(760) });
        input.as_object().cloned().unwrap()
    }

    fn dispatch(runtime: &Runtime, hooks: &Dispatcher) -> Duration {
        let event = PreToolUse::new("shell").with_tool_input(input());
        let began = Instant::now();
        let outcome = runtime.block_on(hooks.dispatch(event));
        let took = began.elapsed();
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        assert!(outcome.is_allowed());
        took
    }
}
