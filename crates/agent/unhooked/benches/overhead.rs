//! What the hook layer adds to a scripted run of 1,000 turns, beside the same agent with dispatch compiled out.
//!
//! | row | hooks |
//! |---|---|
//! | no hooks | none are configured: the aim is at most 1 % |
//! | a function everywhere | one function on every event that the run has: the aim is at most 3 % |
//! | ... and on the request | the same, and one on `provider_request`, for which the whole conversation is written as JSON; a service has that done anyway |
//!
//! Rounds alternate, so that what else the machine does meets all rows; each ratio is the median of those of the rounds. Only the ratios of
//! one run compare. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has nobody to return an error to"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use tenterhook::event;
use tenterhook::{Effect, Engine};
use tokio::runtime::Runtime;

const TURNS: usize = 1_000;
const TURNS_AS_FLOAT: f64 = 1_000.0;

/// Each prompt has so many turns: all but the last call a tool.
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

/// Makes a function that leads the run with one of the two agents.
macro_rules! runner {
    ($agent:ident) => {
        |runtime: &Runtime, engine: &Engine, script: &str, dir: &std::path::Path| {
            let script = $agent::provider::Scripted::parse("script", script).unwrap();
            let mut agent = $agent::Agent::builder(engine.clone())
                .model(std::sync::Arc::new(script))
                .cwd(dir)
                .build()
                .unwrap();
            let began = Instant::now();
            runtime.block_on(async {
                let cancel = $agent::CancellationToken::new();
                for _ in 0..TURNS / TURNS_OF_A_PROMPT {
                    let report = agent.prompt("Go on.", &cancel).await;
                    assert_eq!(report.end, $agent::RunEnd::Completed);
                    black_box(report);
                }
            });
            began.elapsed()
        }
    };
}

/// Registers a function for every event that the run has, and for those that it could have.
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

    let unhooked = runner!(tenterhook_agent_unhooked);
    let hooked = runner!(tenterhook_agent);
    let mut bare = Vec::new();
    let mut ratios: [Vec<f64>; 3] = Default::default();
    for _ in 0..rounds {
        let without = unhooked(&runtime, &engines[0], &script, dir.path());
        for (engine, ratios) in engines.iter().zip(&mut ratios) {
            let with = hooked(&runtime, engine, &script, dir.path());
            ratios.push(with.as_secs_f64() / without.as_secs_f64());
        }
        bare.push(without.as_secs_f64() * 1e6 / TURNS_AS_FLOAT);
    }
    println!("dispatch compiled out     {:>8.2} us a turn", median(bare));
    let rows = [
        "no hooks",
        "a function everywhere",
        "... and on the request",
    ];
    for (name, ratios) in rows.into_iter().zip(ratios) {
        println!("{name:<25} {:>+8.2} %", (median(ratios) - 1.0) * 100.0);
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
