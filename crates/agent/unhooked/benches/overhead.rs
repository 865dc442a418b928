//! What the hook layer adds to a scripted run of 1,000 turns, beside the same agent with dispatch compiled out.
//!
//! | row | hooks |
//! |---|---|
//! | none | none are configured: the aim is at most 1 % |
//! | functions | one function on every event that the run has: the aim is at most 3 % |
//!
//! Rounds of the three alternate, so that what else the machine does meets all of them. Only the ratios of one run compare. `--quick` takes fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has nobody to return an error to"
)]

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use tenterhook::event;
use tenterhook::{Effect, Engine};
use tokio::runtime::Runtime;

const TURNS: usize = 1_000;

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
        PermissionDenied PermissionRequest PostToolUse PreCompact PreToolUse ProviderRequest ProviderResponse
        QueueUpdate RetryEnd RetryStart SavePoint SessionEnd SessionStart Stop ToolApprovalDecision ToolError
        ToolExecutionEnd ToolExecutionStart ToolExecutionUpdate ToolGuard ToolInputTransform
        ToolResponseTransform ToolSelection TurnEnd TurnStart UserInput UserPromptSubmit WaitingForUser
    }
}

fn main() {
    let is_quick = std::env::args().any(|arg| arg == "--quick");
    let rounds = if is_quick { 5 } else { 31 };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let dir = tempfile::tempdir().unwrap();
    let script = script();
    let (bare, busy) = (Engine::new(), Engine::new());
    hook_everything(&busy);

    let unhooked = runner!(tenterhook_agent_unhooked);
    let hooked = runner!(tenterhook_agent);
    let mut times: [Vec<Duration>; 3] = Default::default();
    for _ in 0..rounds {
        times[0].push(unhooked(&runtime, &bare, &script, dir.path()));
        times[1].push(hooked(&runtime, &bare, &script, dir.path()));
        times[2].push(hooked(&runtime, &busy, &script, dir.path()));
    }
    let [without, none, functions] = times.map(median);
    let per_turn =
        |time: Duration| time.as_secs_f64() * 1e6 / f64::from(u32::try_from(TURNS).unwrap());
    println!(
        "dispatch compiled out  {:>8.2} us a turn",
        per_turn(without)
    );
    for (name, time) in [("no hooks", none), ("a function everywhere", functions)] {
        println!(
            "{name:<22} {:>8.2} us a turn, {:+.2} %",
            per_turn(time),
            (time.as_secs_f64() / without.as_secs_f64() - 1.0) * 100.0
        );
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
