//! The cost of a dispatch within one process, compared with the least possible cost.
//!
//! The floor of a row with handlers is a loop over the same number of boxed closures. Only compare
//! numbers from the same run. `--quick` runs fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use serde_json::json;
use tenterhook_engine::event::{PreToolUse, TurnStart};
use tenterhook_engine::{
    Answer, AsyncHandler, Call, Dialect, Dispatcher, Effect, Engine, EventKind, Handler, HookId,
    HookSpec, Matcher, Origin, Outcome, Phase, Reply, Source, native_policy,
};
use tenterhook_systems::native::Native;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if is_quick { 5 } else { 25 };
    println!(
        "nanoseconds per dispatch, median of {rounds} rounds; the floor is a loop over boxed closures, in the last row the event as JSON\n"
    );
    println!(
        "{:<44} {:>9} {:>9} {:>7} {:>7} {:>12}",
        "", "ns", "floor ns", "ratio", "goal ns", "allocations"
    );
    unhooked(rounds);
    for (handlers, goal) in [(1, 40.0), (10, 60.0), (100, 400.0)] {
        hooked(handlers, goal, rounds);
    }
    hooked_async(10, 200.0, rounds);
    without_process(rounds);
}

/// A command hook's event and answer, without the command: what the engine adds to a process.
fn without_process(rounds: usize) {
    let engine = Engine::new();
    engine.register(HookSpec {
        event: Some(EventKind::PreToolUse.into()),
        id: HookId::new("translated"),
        matcher: Matcher::everything(),
        agent: None,
        includes_unnamed: false,
        handling: Handler::Async(Arc::new(Translated {
            dialect: Native::new(),
        })),
        phase: Phase::Main,
        priority: 0,
        order_within_layer: None,
        hears_stops: false,
        timeout: Duration::from_mins(1),
        policy: native_policy(EventKind::PreToolUse.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
    });
    let hooks = engine.dispatcher(Origin::new("bench", ""));
    let input = json!({ "cmd": "x".repeat(760) })
        .as_object()
        .cloned()
        .unwrap();
    let event = || PreToolUse::new("shell").with_tool_input(input.clone());
    let mut row = Row::new("a command hook without its process", 10_000.0);
    let mut floor_ns = Vec::new();
    for _ in 0..rounds {
        floor_ns.push(time(&mut || {
            drop(black_box(serde_json::to_vec(&event()).unwrap()));
        }));
        row.ns
            .push(time(&mut || drop(now(black_box(&hooks), event))));
    }
    row.allocations = allocations(&mut || drop(now(black_box(&hooks), event)));
    row.print(median(&mut floor_ns));
}

/// Writes the event and reads an answer as a command hook does.
#[derive(Debug)]
struct Translated {
    dialect: Arc<dyn Dialect>,
}

impl AsyncHandler for Translated {
    fn kind(&self) -> &'static str {
        "bench"
    }

    fn describe(&self) -> String {
        "bench".to_owned()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> futures_util::future::BoxFuture<'a, Answer> {
        black_box(call.event.encoded(&*self.dialect).unwrap());
        let stdout = br#"{"decision":"allow","reason":"checked"}"#;
        let reply = Reply::Exited {
            status: 0,
            stdout,
            stderr: b"",
            stdout_omitted: 0,
        };
        let effect = self.dialect.read(call.event.info(), &reply, false).unwrap();
        Box::pin(std::future::ready(Ok(Some(Box::new(effect)))))
    }
}

/// An event without hooks. Another event has a hook, so that the interest table is not empty.
fn unhooked(rounds: usize) {
    let engine = Engine::new();
    engine.on(|_: &TurnStart| ());
    let hooks = engine.dispatcher(Origin::default());
    let floor = closures(0);
    let mut asked = || {
        black_box(black_box(&hooks).is_hooked::<PreToolUse>());
    };
    let mut dispatched = || {
        drop(now(black_box(&hooks), || -> PreToolUse {
            unreachable!("the event has no hooks")
        }));
    };
    let mut rows = [
        Row::new("no hooks, sync", 2.0),
        Row::new("no hooks, async", 6.0),
    ];
    let mut floor_ns = Vec::new();
    for _ in 0..rounds {
        floor_ns.push(time(&mut || {
            for closure in &floor {
                closure(black_box(&TurnStart::default()));
            }
        }));
        rows[0].ns.push(time(&mut asked));
        rows[1].ns.push(time(&mut dispatched));
    }
    rows[0].allocations = allocations(&mut asked);
    rows[1].allocations = allocations(&mut dispatched);
    let floor = median(&mut floor_ns);
    for row in &mut rows {
        row.print(floor);
    }
}

fn hooked(handlers: usize, goal: f64, rounds: usize) {
    let engine = Engine::new();
    for _ in 0..handlers {
        engine.on(|event: &TurnStart| {
            black_box(event.turn_index);
        });
    }
    measure(
        &engine,
        Row::new(&format!("{handlers} sync handlers, async dispatch"), goal),
        handlers,
        rounds,
    );
}

fn hooked_async(handlers: usize, goal: f64, rounds: usize) {
    let engine = Engine::new();
    for _ in 0..handlers {
        engine.on_async(|event: &TurnStart| {
            Box::pin(async {
                black_box(event.turn_index);
                Effect::none()
            })
        });
    }
    measure(
        &engine,
        Row::new(&format!("{handlers} async handlers"), goal),
        handlers,
        rounds,
    );
}

fn measure(engine: &Engine, mut row: Row, handlers: usize, rounds: usize) {
    let hooks = engine.dispatcher(Origin::default());
    let floor = closures(handlers);
    let mut dispatched = || {
        drop(now(black_box(&hooks), || {
            TurnStart::new()
                .with_turn_index(black_box(1))
                .with_started_at_ms(0)
        }));
    };
    let mut floor_ns = Vec::new();
    for _ in 0..rounds {
        floor_ns.push(time(&mut || {
            let event = TurnStart::new()
                .with_turn_index(black_box(1))
                .with_started_at_ms(0);
            for closure in &floor {
                closure(black_box(&event));
            }
        }));
        row.ns.push(time(&mut dispatched));
    }
    row.allocations = allocations(&mut dispatched);
    row.print(median(&mut floor_ns));
}

type Closure = Box<dyn Fn(&TurnStart)>;

fn closures(count: usize) -> Vec<Closure> {
    let closure = |_| -> Closure {
        Box::new(|event: &TurnStart| {
            black_box(event.turn_index);
        })
    };
    (0..count).map(closure).collect()
}

/// Polls a dispatch that never waits.
fn now<E: tenterhook_engine::Event>(hooks: &Dispatcher, build: impl FnOnce() -> E) -> Outcome<E> {
    let mut dispatch = pin!(hooks.dispatch_with(build));
    match dispatch
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => unreachable!("nothing waits"),
    }
}

/// Returns the nanoseconds per call.
fn time(call: &mut dyn FnMut()) -> f64 {
    const CALLS: u32 = 20_000;
    let began = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    began.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn allocations(call: &mut dyn FnMut()) -> u64 {
    allocation_counter::measure(call).count_total
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap()
}

struct Row {
    name: String,
    goal: f64,
    ns: Vec<f64>,
    allocations: u64,
}

impl Row {
    fn new(name: &str, goal: f64) -> Self {
        Self {
            name: name.to_owned(),
            goal,
            ns: Vec::new(),
            allocations: 0,
        }
    }

    fn print(&mut self, floor: f64) {
        let ns = median(&mut self.ns);
        let Self {
            name,
            goal,
            allocations,
            ..
        } = self;
        println!(
            "{name:<44} {ns:>9.2} {floor:>9.2} {:>7.2} {goal:>7.1} {allocations:>12}",
            ns / floor
        );
    }
}
