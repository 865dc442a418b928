//! Measures a command hook through the whole engine, compared with the fastest way that the system allows.
//!
//! The baseline spawns, writes, reads and reaps, and does nothing else: no process group, no
//! deadline, no standard error, no event and no answer. Compare only the ratios within one run.
//! `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

#[path = "../../../core/process/benches/floor.rs"]
mod floor;

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tenterhook_engine::event::{PreToolUse, ToolGuard};
use tenterhook_engine::{
    Dispatcher, Engine, EventKind, Handler, HookId, HookSpec, JsonObject, Matcher, Origin, Phase,
    Source, native_policy,
};
use tenterhook_process::{CancellationToken, Command, End, Limits, Program};
use tenterhook_runners::CommandHandler;
use tenterhook_systems::native::Native;
use tokio::runtime::Runtime;

use floor::{child, compare, current_thread, multi_thread, raw, resident_memory};

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, bursts) = if is_quick { (40, 3) } else { (400, 15) };
    let dir = tempfile::tempdir().unwrap();
    let child = child(dir.path());
    println!("floor: posix_spawn with two pipes; 1 KiB in, 99 bytes out\n");
    single("G1 exec form, event to outcome", &child, rounds);
    {
        let resident = resident_memory();
        single(
            "G2 the same from a parent with 1 GiB resident",
            &child,
            rounds,
        );
        black_box(&resident);
    }
    shell(&child, rounds);
    burst(&child, bursts);
    large(&child, rounds.min(100));
}

fn hook(kind: EventKind, id: usize, program: Program) -> HookSpec {
    let handler = CommandHandler::new(Command::new(program), "tiny", Native::new());
    HookSpec {
        event: Some(kind.into()),
        id: HookId::new(id.to_string()),
        matcher: Matcher::parse("shell").unwrap(),
        agent: None,
        includes_unnamed: false,
        handling: Handler::Async(Arc::new(handler)),
        phase: Phase::Main,
        priority: 0,
        order_within_layer: None,
        hears_stops: false,
        timeout: Duration::from_mins(1),
        policy: native_policy(kind.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
    }
}

fn input() -> JsonObject {
    json!({ "cmd": "x".repeat(760) })
        .as_object()
        .cloned()
        .unwrap()
}

fn dispatcher(program: Program) -> Dispatcher {
    let engine = Engine::new();
    engine.register(hook(EventKind::PreToolUse, 0, program));
    engine.dispatcher(Origin::new("bench", ""))
}

fn dispatch(runtime: &Runtime, hooks: &Dispatcher) -> Duration {
    let input = input();
    let began = Instant::now();
    let event = PreToolUse::new("shell").with_tool_input(input);
    let outcome = runtime.block_on(hooks.dispatch(event));
    assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
    began.elapsed()
}

/// Runs the command as the engine does, without an event.
fn run(runtime: &Runtime, command: &Command, payload: &[u8]) -> Duration {
    let began = Instant::now();
    let finished = runtime
        .block_on(command.run(payload, &Limits::default(), &CancellationToken::new()))
        .unwrap();
    assert_eq!(finished.end, End::Exited(0));
    began.elapsed()
}

fn single(title: &str, child: &str, rounds: usize) {
    let payload = vec![b'x'; 1024];
    let hooks = dispatcher(Program::exec([child]));
    let command = Command::new(Program::exec([child]));
    let runtime = current_thread();
    compare(
        title,
        rounds,
        &mut [
            ("floor", &mut || raw(child, &[], &payload)),
            ("the process alone", &mut || {
                run(&runtime, &command, &payload)
            }),
            ("dispatch", &mut || dispatch(&runtime, &hooks)),
        ],
    );
}

fn shell(child: &str, rounds: usize) {
    let payload = vec![b'x'; 1024];
    let line = format!("{child}; exit 0");
    let (through_shell, plain) = (
        dispatcher(Program::shell(&line)),
        dispatcher(Program::shell(child)),
    );
    let runtime = current_thread();
    compare(
        "G3 shell form",
        rounds,
        &mut [
            ("floor: sh -c", &mut || {
                raw("/bin/sh", &["-c", &line], &payload)
            }),
            ("dispatch of the same line", &mut || {
                dispatch(&runtime, &through_shell)
            }),
            ("dispatch of a plain line: no shell", &mut || {
                dispatch(&runtime, &plain)
            }),
        ],
    );
}

/// One event with a thousand hooks against two threads that spawn as many children.
fn burst(child: &str, bursts: usize) {
    const HOOKS: usize = 1000;
    let payload = vec![b'x'; 1024];
    let engine = Engine::new();
    for id in 0..HOOKS {
        engine.register(hook(EventKind::ToolGuard, id, Program::exec([child])));
    }
    let hooks = engine.dispatcher(Origin::new("bench", ""));
    let runtime = multi_thread();
    let two_threads = || {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let half = || (0..HOOKS / 2).map(|_| raw(child, &[], &payload)).max();
            scope.spawn(half);
            scope.spawn(half);
        });
        began.elapsed()
    };
    let one_event = || {
        let began = Instant::now();
        let event = ToolGuard::new("shell").with_tool_input(input());
        let outcome = runtime.block_on(hooks.dispatch(event));
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        assert!(outcome.is_allowed());
        began.elapsed()
    };
    compare(
        "G13 1,000 hooks of one event (times of 1,000)",
        bursts,
        &mut [
            ("floor: two threads", &mut || two_threads()),
            ("dispatch", &mut || one_event()),
        ],
    );
}

/// A payload of 1 MiB, to one command and to four of one event. The floor moves it through pipes of
/// the default size.
fn large(child: &str, rounds: usize) {
    const HOOKS: usize = 4;
    let payload = vec![b'x'; 1 << 20];
    let command = Command::new(Program::exec([child]));
    let one_thread = current_thread();
    compare(
        "G15 1 MiB to one command",
        rounds,
        &mut [
            ("floor", &mut || raw(child, &[], &payload)),
            ("the process alone", &mut || {
                run(&one_thread, &command, &payload)
            }),
        ],
    );
    let engine = Engine::new();
    for id in 0..HOOKS {
        engine.register(hook(EventKind::ToolGuard, id, Program::exec([child])));
    }
    let hooks = engine.dispatcher(Origin::default());
    let text = json!({ "cmd": "x".repeat(1 << 20) });
    let event =
        || ToolGuard::new("shell").with_tool_input(text.as_object().cloned().unwrap_or_default());
    let runtime = multi_thread();
    let two_threads = || {
        let began = Instant::now();
        std::thread::scope(|scope| {
            let half = || (0..HOOKS / 2).map(|_| raw(child, &[], &payload)).max();
            scope.spawn(half);
            scope.spawn(half);
        });
        began.elapsed()
    };
    let one_event = || {
        let event = event();
        let began = Instant::now();
        let outcome = runtime.block_on(hooks.dispatch(event));
        assert!(outcome.failures().is_empty(), "{:?}", outcome.failures());
        began.elapsed()
    };
    let written = || {
        let event = event();
        let began = Instant::now();
        black_box(serde_json::to_vec(&event).unwrap());
        began.elapsed()
    };
    compare(
        "G15 1 MiB to four hooks of one event; it is written once",
        rounds,
        &mut [
            ("floor: four, two threads", &mut || two_threads()),
            ("one event, four hooks", &mut || one_event()),
            ("of that, the event as JSON", &mut || written()),
        ],
    );
}
