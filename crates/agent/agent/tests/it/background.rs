//! Background tasks: how they are given, viewed, stopped, judged and ended.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tenterhook_agent::frontend::Approval;
use tenterhook_agent::{
    Agent, AgentConfig, AgentLimits, AgentSpec, CancellationToken, Permissions, RunEnd, Tool,
    Toolbox,
};
use tenterhook_engine::event::{
    PostToolUse, PreToolUse, SessionEndReason, Stop, SubagentStatus, SubagentStop, ToolGuard,
};
use tenterhook_engine::{Effect, ToolResult};
use tenterhook_tools::ToolFailure;
use tokio::sync::Notify;

use crate::stage::{Stage, tool_texts};
use crate::test_tool::TestTool;

/// A tool that waits until the test releases it or it is cancelled.
#[derive(Debug, Clone, Default)]
struct Gate {
    begun: Arc<Notify>,
    open: Arc<Notify>,
    running: Arc<Mutex<u32>>,
}

impl Gate {
    fn running(&self) -> u32 {
        *self.running.lock().unwrap()
    }

    fn tool(&self) -> impl Tool + use<> {
        let gate = self.clone();
        TestTool::new("gate", move |_, context| {
            let gate = gate.clone();
            Box::pin(async move {
                *gate.running.lock().unwrap() += 1;
                let _running = Running(Arc::clone(&gate.running));
                gate.begun.notify_one();
                tokio::select! {
                    () = gate.open.notified() => Ok(ToolResult::text("open")),
                    () = context.cancel.cancelled() => Err(ToolFailure::new("given up")),
                }
            })
        })
    }
}

/// Counts a run until it is dropped.
struct Running(Arc<Mutex<u32>>);

impl Drop for Running {
    fn drop(&mut self) {
        *self.0.lock().unwrap() -= 1;
    }
}

fn helper() -> AgentSpec {
    AgentSpec {
        name: "helper".to_owned(),
        ..AgentSpec::default()
    }
}

fn with_helper(config: AgentConfig) -> AgentConfig {
    AgentConfig {
        agents: vec![helper()],
        has_background_tasks: true,
        permissions: Permissions::new().yes(true),
        ..config
    }
}

fn never() -> CancellationToken {
    CancellationToken::new()
}

/// Returns the id of the first task.
fn id(agent: &Agent) -> String {
    let given = tool_texts(agent).remove(0);
    given.split('`').nth(1).unwrap().to_owned()
}

/// Gives a task, then calls a tool with the id of the task at each further prompt.
fn script(then: &[&str], helper: &str) -> String {
    let then: Vec<String> = then
        .iter()
        .map(|call| format!("  - tool_calls: [{call}]\n  - text: more\n"))
        .collect();
    format!(
        "turns:\n  - tool_calls: [{{name: run_background_agent, arguments: {{agent: helper, task: t}}}}]\n  - text: given\n{}{helper}",
        then.concat()
    )
}

/// Writes the id of the task into scripted calls, which cannot know it.
fn name_task(stage: &Stage) {
    let known: Arc<Mutex<String>> = Arc::default();
    let given = Arc::clone(&known);
    stage.engine.on(move |event: &PostToolUse| {
        if event.tool_name == "run_background_agent" {
            let text = event.result.joined_text();
            text.split('`')
                .nth(1)
                .unwrap()
                .clone_into(&mut given.lock().unwrap());
        }
    });
    stage.engine.on(move |event: &PreToolUse| {
        if event.tool_input.get("task_id") != Some(&json!("IT")) {
            return Effect::none();
        }
        let input = json!({"task_id": *known.lock().unwrap()});
        Effect::<PreToolUse>::none().patch_input(input.as_object().unwrap().clone())
    });
}

const ASKS_GATE: &str =
    "  - {for: helper, tool_calls: [{name: gate}]}\n  - {for: helper, text: it is done}\n";
const VIEW: &str = "{name: view_background_agent, arguments: {task_id: IT, wait: 60}}";
const STOP: &str = "{name: stop_background_agent, arguments: {task_id: IT}}";
const LIST: &str = "{name: list_background_agents}";

fn build(stage: &Stage, script: &str, gate: &Gate) -> Agent {
    let toolbox = Toolbox::standard().with(gate.tool());
    with_helper(AgentConfig {
        toolbox,
        ..stage.config(script)
    })
    .build(stage.engine.clone())
    .unwrap()
}

/// Replaces the seconds that a task has taken, because they depend on the load of the machine.
fn without_seconds(text: &str) -> String {
    let mut words: Vec<String> = text.split(' ').map(str::to_owned).collect();
    for position in 1..words.len() {
        let digits = words[position - 1].trim_start_matches('(');
        if words[position].starts_with('s') && digits.parse::<u64>().is_ok() {
            words[position - 1] = words[position - 1].replace(digits, "_");
        }
    }
    words.join(" ")
}

#[tokio::test]
async fn the_agent_goes_on_and_looks_at_the_answer_later() {
    let (stage, gate) = (Stage::empty(), Gate::default());
    name_task(&stage);
    let mut agent = build(&stage, &script(&[LIST, VIEW, LIST], ASKS_GATE), &gate);
    let report = agent.prompt("go", &never()).await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "given")
    );
    gate.begun.notified().await;
    agent.prompt("list", &never()).await;
    gate.open.notify_one();
    agent.prompt("view", &never()).await;
    agent.prompt("list", &never()).await;
    let (id, texts) = (id(&agent), tool_texts(&agent));
    let texts: Vec<String> = texts.iter().map(|text| without_seconds(text)).collect();
    assert_eq!(
        texts,
        [
            format!(
                "The task runs in the background as `{id}`. `view_background_agent` shows its answer when there is one."
            ),
            format!("{id} helper running _ s: t"),
            format!("The task `{id}` of agent `helper` is completed (_ s).\nit is done"),
            format!("{id} helper completed _ s: t"),
        ]
    );
    let stop = stage.only::<SubagentStop>();
    assert_eq!(
        (stop.status, stop.label.as_str()),
        (SubagentStatus::Completed, "helper")
    );
    assert_eq!(stop.task_id.to_string(), id);
    assert_eq!(stop.parent_session_id, *agent.session().id());
    let names = stage.names();
    assert!(
        !names.contains(&"agent_switch".to_owned()),
        "nobody is switched to"
    );
}

#[tokio::test]
async fn a_task_is_cancelled_by_whoever_ends_what_it_belongs_to() {
    enum By {
        Tool,
        Session,
        Run,
        Drop,
    }
    for by in [By::Tool, By::Session, By::Run, By::Drop] {
        let (stage, gate) = (Stage::empty(), Gate::default());
        name_task(&stage);
        let mut agent = build(&stage, &script(&[STOP], ASKS_GATE), &gate);
        match by {
            By::Tool => {
                agent.prompt("go", &never()).await;
                gate.begun.notified().await;
                agent.prompt("stop", &never()).await;
                assert!(
                    without_seconds(&tool_texts(&agent)[1])
                        .contains("is cancelled (_ s).\nthe task was cancelled")
                );
            }
            By::Session => {
                agent.prompt("go", &never()).await;
                gate.begun.notified().await;
                agent.end_session(SessionEndReason::Quit).await;
                let names = stage.names();
                let at = |name: &str| names.iter().rposition(|heard| heard == name).unwrap();
                assert!(at("subagent_stop") < at("session_end"));
            }
            By::Run => {
                let cancel = never();
                let (token, begun) = (cancel.clone(), Arc::clone(&gate.begun));
                stage.engine.on_async(move |_: &Stop| {
                    let (token, begun) = (token.clone(), Arc::clone(&begun));
                    Box::pin(async move {
                        begun.notified().await;
                        token.cancel();
                        Effect::none()
                    })
                });
                assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
            }
            By::Drop => {
                let ended = Arc::new(Notify::new());
                let heard = Arc::clone(&ended);
                stage.engine.on(move |_: &SubagentStop| heard.notify_one());
                agent.prompt("go", &never()).await;
                gate.begun.notified().await;
                drop(agent);
                ended.notified().await;
            }
        }
        assert_eq!(gate.running(), 0);
        assert_eq!(
            stage.only::<SubagentStop>().status,
            SubagentStatus::Cancelled
        );
        for (first, last) in [
            ("tool_execution_start", "tool_execution_end"),
            ("agent_start", "agent_end"),
            ("turn_start", "turn_end"),
        ] {
            let count = |name: &str| stage.names().iter().filter(|heard| *heard == name).count();
            assert_eq!(count(first), count(last), "{first}");
        }
    }
}

#[tokio::test]
async fn a_guard_of_the_parent_judges_what_is_done_in_the_background() {
    let (stage, gate) = (Stage::empty(), Gate::default());
    name_task(&stage);
    stage
        .engine
        .on(|event: &ToolGuard| match event.tool_name.as_str() {
            "shell" => Effect::deny("no shell here"),
            _ => Effect::none(),
        });
    let helper = "  - {for: helper, tool_calls: [{name: shell, arguments: {cmd: touch made}}]}\n  - {for: helper, text: pity}\n";
    let mut agent = build(&stage, &script(&[VIEW], helper), &gate);
    agent.prompt("go", &never()).await;
    agent.prompt("view", &never()).await;
    assert!(!stage.path().join("made").exists());
    assert_eq!(
        stage.field("permission_denied", "reason"),
        ["no shell here"]
    );
    assert!(tool_texts(&agent)[1].ends_with("pity"));
}

#[tokio::test]
async fn the_user_is_asked_for_a_task_in_the_background_only_while_a_run_goes_on() {
    let (stage, gate) = (Stage::attended([Approval::AllowOnce]), Gate::default());
    name_task(&stage);
    let asked_soon = Arc::new(Notify::new());
    let soon = Arc::clone(&asked_soon);
    stage
        .engine
        .on(move |_: &tenterhook_engine::event::PermissionRequest| soon.notify_one());
    let helper = "  - {for: helper, tool_calls: [{name: gate}]}\n  - {for: helper, tool_calls: [{name: shell, arguments: {cmd: touch made}}]}\n  - {for: helper, text: made}\n";
    let toolbox = Toolbox::standard().with(gate.tool());
    let mut agent = AgentConfig {
        permissions: Permissions::new(),
        ..with_helper(AgentConfig {
            toolbox,
            ..stage.config(&script(&[VIEW], helper))
        })
    }
    .build(stage.engine.clone())
    .unwrap();
    agent.prompt("go", &never()).await;
    // It could not ask before.
    gate.open.notify_one();
    asked_soon.notified().await;
    assert!(stage.human.asked().is_empty());
    agent.prompt("view", &never()).await;
    assert_eq!(stage.human.asked(), ["shell {\"cmd\":\"touch made\"} -"]);
    assert!(stage.path().join("made").exists());
    assert!(tool_texts(&agent)[1].ends_with("made"));
}

#[tokio::test]
async fn only_so_many_tasks_run_at_once_and_unknown_ones_are_named() {
    let (stage, gate) = (Stage::empty(), Gate::default());
    let give = "{name: run_background_agent, arguments: {agent: helper, task: t}}";
    let script = format!(
        "turns:\n  - tool_calls: [{give}, {give}, {{name: view_background_agent, arguments: {{task_id: x}}}}]\n  - text: done\n{ASKS_GATE}"
    );
    let limits = AgentLimits {
        background_tasks: 1,
        ..AgentLimits::default()
    };
    let toolbox = Toolbox::standard().with(gate.tool());
    let mut agent = AgentConfig {
        limits,
        ..with_helper(AgentConfig {
            toolbox,
            ..stage.config(&script)
        })
    }
    .build(stage.engine.clone())
    .unwrap();
    agent.prompt("go", &never()).await;
    let texts = tool_texts(&agent);
    assert_eq!(
        texts[1],
        "the limit of 1 background tasks is reached; wait for one or stop one"
    );
    let expected = format!(
        "unknown background task `x`, expected one of `{}`",
        id(&agent)
    );
    assert_eq!(texts[2], expected);
    agent.end_session(SessionEndReason::Quit).await;
}

#[tokio::test]
async fn looking_again_and_again_is_no_loop() {
    let (stage, gate) = (Stage::empty(), Gate::default());
    let looks = format!("  - tool_calls: [{LIST}]\n").repeat(6);
    let mut agent = build(&stage, &format!("turns:\n{looks}  - text: done\n"), &gate);
    assert_eq!(agent.prompt("go", &never()).await.end, RunEnd::Completed);
    assert_eq!(tool_texts(&agent), ["There are no background tasks."; 6]);
}
