//! Cancels a run at every stage of a tool call: each started event has its end, every call has a result, and nothing
//! continues to run.

use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future;
use tenterhook_agent::frontend::Approval;
use tenterhook_agent::{AgentConfig, AgentSpec, CancellationToken, Permissions, RunEnd, Toolbox};
use tenterhook_engine::event::{
    PermissionRequest, PostToolUse, PreToolUse, ToolError, ToolExecutionUpdate, ToolGuard,
    ToolInputTransform, ToolResponseTransform,
};
use tenterhook_engine::{Effect, Engine};
use tenterhook_tools::ToolRetry;

use crate::stage::{Human, Stage, tool_texts};

/// A tool that runs until it is cancelled.
const FOR_EVER: &str =
    "{name: shell, arguments: {cmd: 'echo $$ > pid; echo here; exec sleep 600'}}";

const FAILS: &str = "{name: shell, arguments: {cmd: exit 3}}";

const ENDS: &str = "{name: shell, arguments: {cmd: echo here}}";

const TRANSFER: &str = "{name: transfer_task, arguments: {agent: helper, task: t}}";

const BACKGROUND: &str = "{name: run_background_agent, arguments: {agent: helper, task: t}}";

/// Cancels the run at an event and then never answers, for hooks that are cancelled with the run.
macro_rules! hangs {
    ($event:ident) => {
        |engine: &Engine, cancel: &CancellationToken| {
            let cancel = cancel.clone();
            drop(engine.on_async(move |_: &$event| {
                cancel.cancel();
                Box::pin(future::pending::<Effect<$event>>())
            }));
        }
    };
}

/// Cancels the run at an event and answers, for hooks that run even after a cancellation.
macro_rules! answers {
    ($event:ident) => {
        |engine: &Engine, cancel: &CancellationToken| {
            let cancel = cancel.clone();
            drop(engine.on(move |_: &$event| cancel.cancel()));
        }
    };
}

/// A stage of a call, and how the run is cancelled there.
struct Place {
    name: &'static str,
    call: &'static str,
    cancels: fn(&Engine, &CancellationToken),
    /// The user is asked.
    asks: bool,
}

const fn place(
    name: &'static str,
    call: &'static str,
    cancels: fn(&Engine, &CancellationToken),
) -> Place {
    Place {
        name,
        call,
        cancels,
        asks: false,
    }
}

#[rustfmt::skip]
fn places() -> Vec<Place> {
    let asked = |place: Place| Place { asks: true, ..place };
    vec![
        place("input is changed", FOR_EVER, hangs!(ToolInputTransform)),
        place("a guard judges", FOR_EVER, hangs!(ToolGuard)),
        place("a gate judges", FOR_EVER, hangs!(PreToolUse)),
        asked(place("a hook is asked for the user", FOR_EVER, hangs!(PermissionRequest))),
        asked(place("the user is asked", FOR_EVER, |_, _| ())),
        place("the tool runs", FOR_EVER, answers!(ToolExecutionUpdate)),
        place("somebody hears what the tool has", FOR_EVER, hangs!(ToolExecutionUpdate)),
        place("the result is changed", FAILS, answers!(ToolResponseTransform)),
        place("a pause before another attempt", FAILS, answers!(ToolError)),
        place("the result is told", ENDS, answers!(PostToolUse)),
        place("another agent works on a task", TRANSFER, answers!(ToolExecutionUpdate)),
        place("another agent works in the background", BACKGROUND, answers!(ToolExecutionUpdate)),
    ]
}

fn count(stage: &Stage, name: &str) -> usize {
    stage.names().iter().filter(|heard| *heard == name).count()
}

/// Returns whether the command that wrote its process id into a folder is still running.
fn is_alive(folder: &Path) -> bool {
    let Ok(pid) = fs::read_to_string(folder.join("pid")) else {
        return false;
    };
    let state = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

#[tokio::test]
async fn a_cancellation_at_any_place_of_a_call_leaves_nothing_open() {
    for Place {
        name,
        call,
        cancels,
        asks,
    } in places()
    {
        let cancel = CancellationToken::new();
        let stage = Stage::with(Human {
            is_there: asks,
            answers: Mutex::new(Vec::<Approval>::new().into()),
            gives_up: Some(cancel.clone()),
            ..Human::default()
        });
        cancels(&stage.engine, &cancel);
        // A call that waits for a background task waits for its end. The other calls never run.
        let script = format!(
            "turns:\n  - tool_calls: [{call}, {FOR_EVER}]\n  - {{for: helper, tool_calls: [{FOR_EVER}]}}\n"
        );
        let again = ToolRetry {
            attempts: 2,
            first_pause: Duration::from_hours(1),
            longest_pause: Duration::from_hours(1),
            jitter: Duration::ZERO,
        };
        let helper = AgentSpec {
            name: "helper".to_owned(),
            ..AgentSpec::default()
        };
        let mut agent = AgentConfig {
            toolbox: Toolbox::standard().retry("shell", again),
            agents: vec![helper],
            has_background_tasks: true,
            permissions: Permissions::new().yes(!asks),
            ..stage.config(&script)
        }
        .build(stage.engine.clone())
        .unwrap();
        let report = agent.prompt("go", &cancel).await;
        assert_eq!(report.end, RunEnd::Cancelled, "{name}");
        assert_eq!(tool_texts(&agent).len(), 2, "{name}");
        assert!(!is_alive(stage.path()), "{name}");
        for (first, last) in [
            ("tool_execution_start", "tool_execution_end"),
            ("turn_start", "turn_end"),
            ("agent_start", "agent_end"),
            ("subagent_start", "subagent_stop"),
        ] {
            assert_eq!(count(&stage, first), count(&stage, last), "{name}: {first}");
        }
        let children = count(&stage, "subagent_start");
        assert_eq!(count(&stage, "session_end"), children, "{name}");
    }
}
