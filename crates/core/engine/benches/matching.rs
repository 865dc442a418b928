//! The cost of finding the hooks of an event among many, and of loading them.
//!
//! The floor of a selection is the same dispatch with one hook that matches everything. Only
//! compare numbers from the same run. `--quick` runs fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

use std::any::Any;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{
    AnyEvent, Dispatcher, Engine, EventKind, Handler, HookId, HookSpec, InlineAnswer,
    InlineFunction, Matcher, Origin, Phase, Scope, Source, native_policy,
};

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if is_quick { 5 } else { 25 };
    println!("nanoseconds, median of {rounds} rounds\n");
    println!(
        "{:<52} {:>11} {:>11} {:>11} {:>11}",
        "", "ns", "floor ns", "selecting", "goal ns"
    );
    selecting(rounds);
    loading(rounds);
}

fn selecting(rounds: usize) {
    let one = engine(&["*".to_owned()]);
    let many = engine(&matchers(10_000));
    let (floor, hooks) = (
        one.dispatcher(Origin::default()),
        many.dispatcher(Origin::default()),
    );
    let known = ["tool_17", "mcp__server_3__list", "nobody_matches_this"];
    let new: Vec<String> = (0..20_000)
        .map(|number| format!("new_tool_{number}"))
        .collect();
    let mut rows = [
        Row::new("10,000 matchers, a tool seen before", 50.0),
        Row::new("10,000 matchers, a new tool", 1_000.0),
    ];
    // The automaton is built lazily. In a long-lived process it has already been used.
    time(&hooks, new.iter().map(String::as_str));
    for _ in 0..rounds {
        let seen = || known.iter().copied().cycle().take(20_000);
        rows[0].floor.push(time(&floor, seen()));
        rows[0].ns.push(time(&hooks, seen()));
        let fresh = || new.iter().map(String::as_str);
        rows[1].floor.push(time(&floor, fresh()));
        rows[1].ns.push(time(&hooks, fresh()));
    }
    for row in &mut rows {
        row.print();
    }
}

fn loading(rounds: usize) {
    let texts = matchers(1_000);
    let mut row = Row::new("loading 1,000 matchers", 5_000_000.0);
    for _ in 0..rounds {
        row.floor.push(0.0);
        let began = Instant::now();
        drop(black_box(engine(black_box(&texts))));
        row.ns.push(began.elapsed().as_nanos() as f64);
    }
    row.print();
}

/// Returns matchers in the proportions of real hook files: of ten, six are words, two are lists of
/// words, one is a prefix and one an expression.
fn matchers(count: usize) -> Vec<String> {
    let matcher = |number: usize| match number % 10 {
        0..6 => format!("tool_{number}"),
        6 | 7 => format!("a_{number}|b_{number}|c_{number}"),
        8 => format!("mcp__server_{number}__.*"),
        _ => format!("(read|write)_{number}_[a-z]+"),
    };
    (0..count).map(matcher).collect()
}

#[derive(Debug)]
struct Silent;

impl InlineFunction for Silent {
    fn call(&self, event: &dyn AnyEvent, _origin: &Origin) -> InlineAnswer {
        let event: &dyn Any = event.as_any();
        black_box(event.is::<PreToolUse>());
        Ok(None)
    }
}

fn engine(matchers: &[String]) -> Engine {
    let function: Arc<dyn InlineFunction> = Arc::new(Silent);
    let specs = matchers.iter().map(|text| HookSpec {
        event: Some(EventKind::PreToolUse.into()),
        id: HookId::new("silent"),
        matcher: Matcher::parse(text).unwrap(),
        agent: None,
        includes_unnamed: false,
        handling: Handler::Inline(Arc::clone(&function)),
        phase: Phase::Main,
        priority: 0,
        order_within_layer: None,
        hears_stops: false,
        timeout: std::time::Duration::from_mins(1),
        policy: native_policy(EventKind::PreToolUse.info(), None),
        source: Source::CODE,
        tools: None,
        definition: None,
    });
    let engine = Engine::new();
    engine.scope(Scope::Global).replace(specs.collect());
    engine
}

/// Dispatches one event for each name and returns the nanoseconds per event.
fn time<'a>(hooks: &Dispatcher, names: impl Iterator<Item = &'a str>) -> f64 {
    let mut count = 0.0;
    let began = Instant::now();
    for name in names {
        let event = PreToolUse::new(name.to_owned());
        let mut dispatch = pin!(hooks.dispatch(black_box(event)));
        match dispatch
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            Poll::Ready(outcome) => drop(black_box(outcome)),
            Poll::Pending => unreachable!("nothing waits"),
        }
        count += 1.0;
    }
    began.elapsed().as_nanos() as f64 / count
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap()
}

struct Row {
    name: String,
    goal: f64,
    ns: Vec<f64>,
    floor: Vec<f64>,
}

impl Row {
    fn new(name: &str, goal: f64) -> Self {
        Self {
            name: name.to_owned(),
            goal,
            ns: Vec::new(),
            floor: Vec::new(),
        }
    }

    fn print(&mut self) {
        let (ns, floor) = (median(&mut self.ns), median(&mut self.floor));
        println!(
            "{:<52} {ns:>11.1} {floor:>11.1} {:>11.1} {:>11.1}",
            self.name,
            ns - floor,
            self.goal
        );
    }
}
