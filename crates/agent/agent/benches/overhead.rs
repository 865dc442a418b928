//! Measures what hooks add to a scripted run of 1,000 turns, compared with the same agent whose engine has no hooks.
//!
//! | row | hooks |
//! |---|---|
//! | a function everywhere | one function on every event that the run has; the aim is at most 3 % |
//! | ... and on the request | the same, and one on `provider_request`, for which the whole conversation is written as JSON |
//!
//! Rounds alternate, so that other load on the machine affects all rows. Each ratio is the median of the rounds. Compare only ratios of
//! one run. `--quick` runs fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tenterhook_agent::{AgentConfig, CancellationToken, RunEnd};
use tenterhook_engine::event;
use tenterhook_engine::{Effect, Engine};
use tenterhook_providers::Scripted;
use tokio::runtime::Runtime;

const TURNS: usize = 1_000;
const TURNS_AS_FLOAT: f64 = 1_000.0;

/// The number of turns of each prompt. All turns except the last call a tool.
const TURNS_OF_A_PROMPT: usize = 10;

fn script() -> String {
    let mut text = "turns:\n".to_owned();
    for turn in 0..TURNS {
        if (turn + 1) % TURNS_OF_A_PROMPT == 0 {
            writeln!(text, "  - text: The answer number {turn}.").unwrap();
        } else {
            writeln!(
                text,
                "  - tool_calls: [{{ name: list_directory, arguments: {{ path: empty/{turn}/.. }} }}]"
            )
            .unwrap();
        }
    }
    text
}

/// Runs every prompt of `script` with an agent on `engine` and returns how long that took.
fn run(runtime: &Runtime, engine: &Engine, script: &str, dir: &Path) -> Duration {
    let script = Scripted::parse("script", script).unwrap();
    let mut agent = AgentConfig {
        model: Some(Arc::new(script)),
        cwd: dir.into(),
        ..AgentConfig::default()
    }
    .build(engine.clone())
    .unwrap();
    let began = Instant::now();
    runtime.block_on(async {
        let cancel = CancellationToken::new();
        for _ in 0..TURNS / TURNS_OF_A_PROMPT {
            let report = agent.prompt("Continue.", &cancel).await;
            assert_eq!(report.end, RunEnd::Completed);
            black_box(report);
        }
    });
    began.elapsed()
}

/// Registers a function for every event that the run has or could have.
fn hook_everything(engine: &Engine) {
    macro_rules! hook {
        ($($event:ident)*) => {
            $(engine.on(|event: &event::$event| {
                black_box(event);
                Effect::none()
            });)*
        };
    }
    hook! {
        AfterCompaction AfterLlmCall AgentEnd AgentError AgentSettled AgentStart BeforeAgentStart BeforeCompaction
        BeforeLlmCall CompactionStart Context MaxIterations MessageEnd MessageStart MessageUpdate Notification
        PermissionDenied PermissionRequest PostToolUse PreCompact PreToolUse QueueUpdate RetryEnd RetryStart SavePoint SessionEnd SessionStart Stop ToolApprovalDecision ToolError
        ToolExecutionEnd ToolExecutionStart ToolExecutionUpdate ToolGuard ToolInputTransform
        ToolResponseTransform ToolSelection TurnEnd TurnStart UserInput UserPromptSubmit WaitingForUser
    }
}

fn main() {
    let is_quick = std::env::args().any(|arg| arg == "--quick");
    let rounds = if is_quick { 7 } else { 31 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = script();
    let engines = [(); 3].map(|()| Engine::new());
    hook_everything(&engines[1]);
    hook_everything(&engines[2]);
    engines[2].on(|request: &event::ProviderRequest| {
        black_box(request);
        Effect::none()
    });

    let mut bare = Vec::new();
    let mut ratios: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        let without = run(&runtime, &engines[0], &script, dir.path()).as_secs_f64();
        for (engine, ratios) in engines[1..].iter().zip(&mut ratios) {
            let with = run(&runtime, engine, &script, dir.path());
            ratios.push(with.as_secs_f64() / without);
        }
        bare.push(without * 1e6 / TURNS_AS_FLOAT);
    }
    println!("no hooks                  {:>8.2} us a turn", median(bare));
    let rows = ["a function everywhere", "... and on the request"];
    for (name, ratios) in rows.into_iter().zip(ratios) {
        println!("{name:<25} {:>+8.2} %", (median(ratios) - 1.0) * 100.0);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
