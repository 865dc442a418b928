//! Tasks for other agents, and the gates that apply to them too.

use std::time::Duration;

use futures_util::future::{self};
use serde_json::json;
use tenterhook_agent::{
    AgentConfig, AgentLimits, AgentSpec, BuildError, CancellationToken, Permissions, RunEnd,
    Toolbox,
};
use tenterhook_engine::Effect;
use tenterhook_engine::event::{
    AgentSwitch, BeforeAgentStart, PreToolUse, SessionEnd, SubagentStart, SubagentStatus,
    SubagentStop, ToolGuard, ToolResponseTransform, ToolSelection,
};

use crate::stage::{Stage, tool_texts};
use crate::test_tool::TestTool;

const DELEGATE: &str = r"
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: make it}}]
  - text: thanks
  - {for: helper, tool_calls: [{name: shell, arguments: {cmd: touch made}}]}
  - {for: helper, text: it is made}
";

fn helper() -> AgentSpec {
    AgentSpec {
        name: "helper".to_owned(),
        description: "makes things".to_owned(),
        ..AgentSpec::default()
    }
}

fn yes() -> Permissions {
    Permissions::new().yes(true)
}

#[tokio::test]
async fn a_task_is_a_session_of_its_own_and_the_parent_hears_of_it() {
    let stage = Stage::empty();
    let (agent, report) = stage
        .play_with(DELEGATE, |config| AgentConfig {
            agents: vec![helper()],
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "thanks")
    );
    assert_eq!(tool_texts(&agent), ["it is made"]);
    assert!(stage.path().join("made").exists());

    let heard = stage.heard();
    let main = agent.session().id().to_string();
    let of = |name: &str| {
        heard
            .iter()
            .filter(|event| event.name == name)
            .map(|event| event.agent.as_str())
            .collect::<Vec<_>>()
    };
    for name in ["subagent_start", "subagent_stop"] {
        assert_eq!(of(name), ["root"], "{name}");
    }
    assert_eq!(of("agent_switch"), ["root", "root"]);
    assert_eq!(of("session_start"), ["root", "helper"]);
    assert_eq!(of("session_end"), ["helper"]);
    assert_eq!(of("user_prompt_submit"), ["root"]);
    assert_eq!(of("pre_tool_use"), ["root", "helper"]);
    assert_eq!(of("waiting_for_user"), ["root"]);
    let stop = stage.only::<SubagentStop>();
    assert_eq!(
        (stop.label.as_str(), stop.status, stop.result.as_str()),
        ("helper", SubagentStatus::Completed, "it is made")
    );
    assert_eq!(stop.parent_session_id.as_str(), main);
    assert_eq!(stop.task_id, stage.only::<SubagentStart>().task_id);
    let child = heard.iter().find(|event| event.agent == "helper").unwrap();
    assert_eq!(stop.child_session_id.as_str(), child.session);
    assert_ne!(child.session, main);
    let switches: Vec<_> = stage
        .all::<AgentSwitch>()
        .into_iter()
        .map(|event| (event.from_agent, event.to_agent, event.kind))
        .collect();
    let switch =
        |from: &str, to: &str, kind: &str| (from.to_owned(), to.to_owned(), kind.to_owned());
    assert_eq!(
        switches,
        [
            switch("root", "helper", "transfer_task"),
            switch("helper", "root", "transfer_task_return")
        ]
    );
    assert_eq!(stage.only::<SessionEnd>().reason.as_str(), "quit");
}

#[tokio::test]
async fn a_guard_cannot_be_escaped_by_delegating() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|event: &ToolGuard| match event.tool_name.as_str() {
            "shell" => Effect::deny("no shell here"),
            _ => Effect::none(),
        });
    stage
        .play_with(DELEGATE, |config| AgentConfig {
            agents: vec![helper()],
            permissions: yes(),
            ..config
        })
        .await;
    assert!(!stage.path().join("made").exists());
    assert_eq!(
        stage.field("permission_denied", "reason"),
        ["no shell here"]
    );

    let stage = Stage::empty();
    let rules = yes().deny("shell".parse().unwrap());
    stage
        .play_with(DELEGATE, |config| AgentConfig {
            agents: vec![helper()],
            permissions: rules,
            ..config
        })
        .await;
    assert!(!stage.path().join("made").exists());
}

#[tokio::test]
async fn a_task_passes_the_gates_like_any_other_call() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|event: &PreToolUse| match event.tool_name.as_str() {
            "transfer_task" => Effect::deny("do it yourself"),
            _ => Effect::none(),
        });
    let (agent, _) = stage
        .play_with(DELEGATE, |config| AgentConfig {
            agents: vec![helper()],
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        ["The tool call was rejected by a pre_tool_use hook. Reason: do it yourself"]
    );
    assert!(!stage.names().contains(&"subagent_start".to_owned()));
}

#[tokio::test]
async fn a_task_that_fails_is_told_as_a_failure() {
    let stage = Stage::empty();
    let script = r"
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: t}}]
  - text: pity
  - {for: helper, error: broken}
";
    let (agent, report) = stage
        .play_with(script, |config| AgentConfig {
            agents: vec![helper()],
            ..config
        })
        .await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(
        tool_texts(&agent),
        ["agent `helper` did not finish: broken"]
    );
    assert_eq!(stage.only::<SubagentStop>().status, SubagentStatus::Failed);
    assert_eq!(stage.only::<SessionEnd>().reason.as_str(), "error");
}

#[tokio::test]
async fn a_cancellation_reaches_the_subagent() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    stage.engine.on(move |event: &PreToolUse| {
        if event.tool_name == "shell" {
            token.cancel();
        }
    });
    let mut agent = AgentConfig {
        agents: vec![helper()],
        permissions: yes(),
        ..stage.config(DELEGATE)
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
    assert_eq!(
        stage.only::<SubagentStop>().status,
        SubagentStatus::Cancelled
    );
    assert_eq!(
        stage.field("turn_end", "reason"),
        ["cancelled", "cancelled"]
    );
    assert!(!stage.path().join("made").exists());
}

#[tokio::test]
async fn tasks_go_on_only_so_deep_and_agents_have_only_their_tools() {
    let stage = Stage::empty();
    let script = r"
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: t}}]
  - text: done
  - {for: helper, tool_calls: [{name: transfer_task, arguments: {agent: helper, task: t}}]}
  - {for: helper, text: alone then}
";
    let limits = AgentLimits {
        task_depth: 1,
        ..AgentLimits::default()
    };
    stage
        .play_with(script, |config| AgentConfig {
            agents: vec![helper()],
            limits,
            ..config
        })
        .await;
    assert_eq!(stage.all::<SubagentStart>().len(), 1);
    assert_eq!(
        stage.field("tools_disabled", "tool_name"),
        ["transfer_task"]
    );

    let stage = Stage::empty();
    let reader = AgentSpec {
        tools: Some(vec!["read_file".to_owned()]),
        ..helper()
    };
    stage
        .play_with(DELEGATE, |config| AgentConfig {
            agents: vec![reader],
            permissions: yes(),
            ..config
        })
        .await;
    assert!(!stage.path().join("made").exists());
    let offered: Vec<_> = stage
        .all::<ToolSelection>()
        .into_iter()
        .map(|event| event.tools)
        .collect();
    assert_eq!(offered[1], ["read_file"]);
}

#[tokio::test]
async fn agents_that_make_no_sense_are_refused() {
    let stage = Stage::empty();
    let build = |agents: Vec<AgentSpec>| {
        AgentConfig {
            agents: agents.into_iter().collect(),
            ..stage.config("turns: [{text: a}]")
        }
        .build(stage.engine.clone())
        .map(drop)
    };
    assert_eq!(
        build(vec![helper(), helper()]),
        Err(BuildError::SameName {
            name: "helper".to_owned()
        })
    );
    let fly = AgentSpec {
        tools: Some(vec!["fly".to_owned()]),
        ..helper()
    };
    let error = build(vec![fly]).unwrap_err().to_string();
    assert!(
        error.starts_with("agent `helper`: unknown tool `fly`, available: `shell`"),
        "{error}"
    );
}

#[tokio::test]
async fn a_subagent_has_no_tool_that_its_parent_lacks() {
    let offered_to_helper = |stage: Stage, change: fn(AgentConfig) -> AgentConfig| async move {
        stage
            .play_with(DELEGATE, |config| {
                change(AgentConfig {
                    agents: vec![helper()],
                    permissions: yes(),
                    ..config
                })
            })
            .await;
        assert!(!stage.path().join("made").exists());
        let heard = stage.heard().into_iter();
        let mut offers =
            heard.filter(|event| event.name == "tool_selection" && event.agent == "helper");
        offers.next().unwrap().payload["tools"].clone()
    };
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|name| (*name).to_owned())
            .collect::<Vec<_>>()
    };

    let limited = offered_to_helper(Stage::empty(), |config| AgentConfig {
        tools: Some(vec!["read_file".to_owned(), "transfer_task".to_owned()]),
        ..config
    });
    assert_eq!(limited.await, json!(["read_file", "transfer_task"]));

    let explicit = offered_to_helper(Stage::empty(), |config| {
        let maker = AgentSpec {
            name: "maker".to_owned(),
            ..AgentSpec::default()
        };
        AgentConfig {
            tools: Some(vec!["search".to_owned(), "transfer_task".to_owned()]),
            agents: vec![helper(), maker],
            ..config
        }
    });
    assert_eq!(explicit.await, json!(["search", "transfer_task"]));

    let stage = Stage::empty();
    let selected = names(&["list_directory", "transfer_task"]);
    stage.engine.on(move |event: &ToolSelection| {
        if event.tools.iter().any(|tool| tool == "shell") {
            Effect::none().replace_tools(selected.clone())
        } else {
            Effect::none()
        }
    });
    assert_eq!(
        offered_to_helper(stage, |config| config).await,
        json!(["list_directory", "transfer_task"])
    );

    let stage = Stage::empty();
    stage.engine.on(|event: &BeforeAgentStart| {
        if event.prompt == "go" {
            Effect::none().disable_tool("shell".to_owned())
        } else {
            Effect::none()
        }
    });
    let offered = offered_to_helper(stage, |config| config).await;
    assert!(!offered.as_array().unwrap().contains(&json!("shell")));
}

#[tokio::test]
async fn a_subagent_closes_what_it_began_also_when_its_tool_has_to_be_dropped() {
    let stage = Stage::empty();
    // Longer than the grace period of the parent's call, which began at the same time as the tool's.
    stage.engine.on_async(|_: &ToolResponseTransform| {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(60)).await;
            Effect::none()
        })
    });
    let (begun, cancel) = (CancellationToken::new(), CancellationToken::new());
    let script = r"
turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: t}}]
  - {for: helper, tool_calls: [{name: stubborn}]}
";
    let limits = AgentLimits {
        grace: Duration::from_millis(20),
        ..AgentLimits::default()
    };
    let running = begun.clone();
    let stubborn = TestTool::new("stubborn", move |_, _| {
        running.cancel();
        Box::pin(future::pending())
    });
    let mut agent = AgentConfig {
        toolbox: Toolbox::empty().with(stubborn),
        agents: vec![helper()],
        limits,
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    let (report, ()) = tokio::join!(agent.prompt("go", &cancel), async {
        begun.cancelled().await;
        cancel.cancel();
    });
    assert_eq!(report.end, RunEnd::Cancelled);
    let names = stage.names();
    for (first, last, times) in [
        ("tool_execution_start", "tool_execution_end", 2),
        ("turn_start", "turn_end", 2),
        ("agent_start", "agent_end", 2),
        ("subagent_start", "subagent_stop", 1),
    ] {
        for name in [first, last] {
            let count = names.iter().filter(|heard| *heard == name).count();
            assert_eq!(count, times, "{name}");
        }
    }
    assert_eq!(stage.only::<SessionEnd>().reason.as_str(), "quit");
    assert_eq!(tool_texts(&agent), ["the task was cancelled"]);
}
