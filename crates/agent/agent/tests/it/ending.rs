//! How turns and runs end, and which events fire then.

use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_agent::{
    Agent, AgentConfig, AgentLimits, BuildError, CancellationToken, Permissions, RetryPolicy,
    RunEnd, Toolbox,
};
use tenterhook_engine::event::{
    AgentEnd, AgentError, BeforeLlmCall, MaxIterations, Notification, PostToolUse, PreToolUse,
    SessionEnd, SessionEndReason, SessionLimitResume, Stop, UserPromptSubmit,
};
use tenterhook_engine::{Effect, ToolResult};

use crate::stage::{Human, Stage, tool_texts};
use crate::test_tool::TestTool;

const LOOK_FOR_EVER: &str = "turns: [{tool_calls: [{name: list_directory}], repeat: true}]";

fn reasons(stage: &Stage) -> Vec<String> {
    stage.field("turn_end", "reason")
}

fn count(stage: &Stage, name: &str) -> usize {
    stage.names().iter().filter(|known| *known == name).count()
}

/// Asserts that a notification and an error event were fired together, in this order.
#[track_caller]
fn assert_error_known(stage: &Stage, kind: &str, message: &str) {
    let notification = stage.only::<Notification>();
    assert_eq!(
        (notification.level.as_str(), notification.kind.as_str()),
        ("error", kind)
    );
    assert_eq!(
        (
            notification.message.as_str(),
            stage.only::<AgentError>().error.as_str()
        ),
        (message, message)
    );
    let names = stage.names();
    let at = names
        .iter()
        .position(|name| name == "notification")
        .unwrap();
    assert_eq!(names[at + 1], "agent_error");
}

#[tokio::test]
async fn a_failing_model_ends_turn_and_run_with_an_error() {
    let stage = Stage::empty();
    let (_, report) = stage.play("turns: [{error: wrong key}]").await;
    assert_eq!(
        report.end,
        RunEnd::Error {
            message: "wrong key".to_owned()
        }
    );
    assert_eq!(reasons(&stage), ["error"]);
    assert_eq!(count(&stage, "after_llm_call"), 0);
    assert_error_known(&stage, "model_error", "wrong key");
    assert_eq!(stage.field("agent_end", "reason"), ["error"]);
}

#[tokio::test]
async fn a_busy_model_is_tried_again_a_bounded_number_of_times() {
    let quick = RetryPolicy {
        first_pause: Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    let stage = Stage::empty();
    let script =
        "turns: [{error: busy, retryable: true}, {error: busy, retryable: true}, {text: here}]";
    let (_, report) = stage
        .play_with(script, |config| AgentConfig {
            retry: quick,
            ..config
        })
        .await;
    assert_eq!(
        (report.end, report.response.as_str()),
        (RunEnd::Completed, "here")
    );
    let names = stage.names();
    let at = names.iter().position(|name| name == "tool_selection");
    let call = ["provider_request", "provider_response"];
    let retry = ["retry_start", call[0], call[1], "retry_end"];
    let tries = [&call[..], &retry, &retry, &["after_llm_call"]].concat();
    assert_eq!(names[at.unwrap() + 1..][..tries.len()], tries);
    for once in ["agent_start", "agent_end", "turn_start", "turn_end"] {
        assert_eq!(count(&stage, once), 1, "{once}");
    }
    let retries: Vec<Value> = stage
        .heard()
        .into_iter()
        .filter(|event| event.name == "retry_end")
        .map(|event| event.payload)
        .collect();
    assert_eq!(
        retries[0],
        json!({"attempt": 1, "success": false, "error": "busy"})
    );
    assert_eq!(
        (&retries[1]["attempt"], &retries[1]["success"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(count(&stage, "before_llm_call"), 1);

    let stage = Stage::empty();
    let script = "turns: [{error: busy, retryable: true, repeat: true}]";
    let (_, report) = stage
        .play_with(script, |config| AgentConfig {
            retry: quick,
            ..config
        })
        .await;
    assert_eq!(
        report.end,
        RunEnd::Error {
            message: "busy".to_owned()
        }
    );
    assert_eq!(count(&stage, "retry_start"), 2);
    assert!(stage.only::<AgentError>().retryable);
}

#[tokio::test]
async fn a_cancellation_ends_the_pause_before_a_retry() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    stage
        .engine
        .on(move |_: &tenterhook_engine::event::RetryStart| token.cancel());
    let slow = RetryPolicy {
        first_pause: Duration::from_mins(10),
        longest_pause: Duration::from_mins(10),
        ..RetryPolicy::default()
    };
    let script = "turns: [{error: busy, retryable: true, repeat: true}]";
    let mut agent = AgentConfig {
        retry: slow,
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
    assert_eq!(
        (reasons(&stage), count(&stage, "retry_end")),
        (vec!["cancelled".to_owned()], 1)
    );
}

#[tokio::test]
async fn a_hook_before_the_model_stops_the_run() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &BeforeLlmCall| Effect::none().stop_run("too dear"));
    let (_, report) = stage.play("turns: [{text: never}]").await;
    let expected = RunEnd::HookBlocked {
        event: "before_llm_call",
        reason: "too dear".to_owned(),
    };
    assert_eq!((report.end, report.response.as_str()), (expected, ""));
    assert_eq!(reasons(&stage), ["hook_blocked"]);
    assert_error_known(
        &stage,
        "hook_blocked",
        "a before_llm_call hook ended the run: too dear",
    );
}

#[tokio::test]
async fn a_refused_prompt_reaches_no_turn_and_no_later_model_call() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|event: &UserPromptSubmit| match event.prompt.as_str() {
            "secret" => Effect::block("contains a secret"),
            _ => Effect::none(),
        });
    let mut agent = stage
        .config("turns: [{text: hello}]")
        .build(stage.engine.clone())
        .unwrap();
    let report = agent.prompt("secret", &CancellationToken::new()).await;
    let expected = RunEnd::HookBlocked {
        event: "user_prompt_submit",
        reason: "contains a secret".to_owned(),
    };
    assert_eq!(report.end, expected);
    assert_eq!(
        (
            count(&stage, "turn_start"),
            count(&stage, "turn_end"),
            count(&stage, "agent_start")
        ),
        (0, 0, 0)
    );
    assert_error_known(
        &stage,
        "hook_blocked",
        "message blocked by hook: contains a secret",
    );
    assert_eq!(count(&stage, "waiting_for_user"), 1);
    agent.prompt("fine", &CancellationToken::new()).await;
    let sent = format!("{:?}", stage.only::<BeforeLlmCall>().messages);
    assert!(sent.contains("fine") && !sent.contains("secret"), "{sent}");
}

#[tokio::test]
async fn a_tool_hook_stops_the_run_and_the_calls_behind_it() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PostToolUse| Effect::none().stop_run("enough"));
    let script = r"
turns:
  - tool_calls:
      - {name: shell, arguments: {cmd: echo one}}
      - {name: shell, arguments: {cmd: touch two}}
";
    let (agent, report) = stage
        .play_with(script, |config| AgentConfig {
            permissions: Permissions::new().yes(true),
            ..config
        })
        .await;
    assert_eq!(
        report.end,
        RunEnd::HookBlocked {
            event: "post_tool_use",
            reason: "enough".to_owned()
        }
    );
    assert_eq!(reasons(&stage), ["hook_blocked"]);
    let skipped = "The tool call was skipped because a post_tool_use hook ended the run.";
    assert_eq!(tool_texts(&agent), ["one\n", skipped]);
    assert!(!stage.path().join("two").exists());
    assert_eq!(
        (
            count(&stage, "tool_execution_start"),
            count(&stage, "tool_execution_end")
        ),
        (2, 2)
    );
}

#[tokio::test]
async fn a_pre_tool_use_hook_that_stops_the_run_lets_the_call_finish() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreToolUse| Effect::none().stop_run("last one"));
    let (agent, report) = stage
        .play("turns: [{tool_calls: [{name: list_directory}]}]")
        .await;
    assert_eq!(
        report.end,
        RunEnd::HookBlocked {
            event: "pre_tool_use",
            reason: "last one".to_owned()
        }
    );
    assert_eq!(tool_texts(&agent), ["[empty]"]);
}

// O16
#[tokio::test]
async fn results_end_the_run_well_if_all_of_the_message_want_it() {
    for (ending, calls, turns, reason) in [
        ("list_directory", "{name: list_directory}", 1, "normal"),
        (
            "list_directory",
            "{name: list_directory}, {name: list_directory, arguments: {path: .}}",
            1,
            "normal",
        ),
        (
            "list_directory",
            "{name: list_directory}, {name: shell, arguments: {cmd: touch made}}",
            2,
            "continue",
        ),
        (
            "shell",
            "{name: shell, arguments: {cmd: touch made}}, {name: list_directory}",
            2,
            "continue",
        ),
    ] {
        let stage = Stage::empty();
        stage.engine.on(move |event: &PostToolUse| {
            if event.tool_name == ending {
                Effect::none().replace_terminate(true)
            } else {
                Effect::none()
            }
        });
        let script = format!("turns: [{{text: bye, tool_calls: [{calls}]}}, {{text: more}}]");
        let (agent, report) = stage
            .play_with(&script, |config| AgentConfig {
                permissions: Permissions::new().yes(true),
                ..config
            })
            .await;
        assert_eq!(
            (report.end, report.turns),
            (RunEnd::Completed, turns),
            "{calls}"
        );
        assert_eq!(reasons(&stage)[0], reason, "{calls}");
        assert_eq!(
            stage.path().join("made").exists(),
            calls.contains("touch"),
            "{calls}"
        );
        let skipped = tool_texts(&agent)
            .iter()
            .any(|text| text.contains("skipped"));
        assert!(!skipped, "{calls}");
    }
}

#[tokio::test]
async fn the_fifth_same_call_in_a_row_is_a_loop() {
    let stage = Stage::empty();
    let (_, report) = stage.play(LOOK_FOR_EVER).await;
    assert_eq!(
        report.end,
        RunEnd::LoopDetected {
            tool: "list_directory".to_owned()
        }
    );
    assert_eq!(
        reasons(&stage),
        [
            "continue",
            "continue",
            "continue",
            "continue",
            "loop_detected"
        ]
    );
    assert_error_known(
        &stage,
        "loop_detected",
        "the model repeated the same call to `list_directory`",
    );
}

#[tokio::test]
async fn the_iteration_cap_is_announced_and_can_be_raised() {
    let limits = AgentLimits {
        max_iterations: 2,
        repeated_calls: 100,
        ..AgentLimits::default()
    };
    let human = Human {
        more_iterations: Some(1).into(),
        ..Human::default()
    };
    let stage = Stage::with(human);
    let (_, report) = stage
        .play_with(LOOK_FOR_EVER, |config| AgentConfig { limits, ..config })
        .await;
    assert_eq!(
        (report.end, report.turns),
        (RunEnd::MaxIterations { limit: 3 }, 3)
    );
    assert_eq!(reasons(&stage), ["continue", "continue", "continue"]);
    let names = stage.names();
    let at = names
        .iter()
        .position(|name| name == "max_iterations")
        .unwrap();
    assert_eq!(
        names[at - 1..at + 3],
        [
            "notification",
            "max_iterations",
            "waiting_for_user",
            "session_limit_resume"
        ]
    );
    assert_eq!(
        stage
            .all::<MaxIterations>()
            .iter()
            .map(|event| event.limit)
            .collect::<Vec<_>>(),
        [2, 3]
    );
    let resumed = stage.only::<SessionLimitResume>();
    assert_eq!(
        (resumed.previous_max_iterations, resumed.new_max_iterations),
        (2, 3)
    );
    let warning = &stage.all::<Notification>()[0];
    assert_eq!(
        (warning.level.as_str(), warning.message.as_str()),
        ("warning", "Maximum iterations reached (2)")
    );
    assert_eq!(
        stage.field("waiting_for_user", "reason"),
        ["max_iterations", "max_iterations", "idle"]
    );
    assert_eq!(count(&stage, "agent_error"), 0);
}

#[tokio::test]
async fn stop_hooks_keep_the_agent_going_until_the_cap() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &Stop| Effect::none().follow_up("and now?").follow_up(" "));
    let (agent, report) = stage.play("turns: [{text: done, repeat: true}]").await;
    assert_eq!((report.end, report.turns), (RunEnd::Completed, 9));
    let active: Vec<bool> = stage
        .all::<Stop>()
        .iter()
        .map(|event| event.stop_hook_active)
        .collect();
    assert_eq!(
        active,
        [false, true, true, true, true, true, true, true, true]
    );
    assert_eq!(reasons(&stage)[7..], ["continue", "normal"]);
    let asked = agent
        .session()
        .messages()
        .into_iter()
        .filter(|message| message.content == "and now?")
        .count();
    assert_eq!(asked, 8);
    assert_eq!(stage.only::<Notification>().kind, "stop_hook_cap");
}

#[tokio::test]
async fn a_cancellation_ends_a_running_tool_and_all_that_began() {
    // D-109
    let stage = Stage::empty();
    let (begun, cancel) = (CancellationToken::new(), CancellationToken::new());
    let running = begun.clone();
    let patience = TestTool::new("patience", move |_, context| {
        running.cancel();
        Box::pin(async move {
            context.cancel.cancelled().await;
            Ok(ToolResult::error("interrupted"))
        })
    });
    let toolbox = Toolbox::standard().with(patience);
    let script = "turns: [{tool_calls: [{name: patience}]}]";
    let mut agent = AgentConfig {
        toolbox,
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    let (report, ()) = tokio::join!(agent.prompt("go", &cancel), async {
        begun.cancelled().await;
        cancel.cancel();
    });
    assert_eq!(report.end, RunEnd::Cancelled);
    assert_eq!(reasons(&stage), ["cancelled"]);
    assert_eq!(tool_texts(&agent), ["interrupted"]);
    assert_eq!(
        (
            count(&stage, "tool_execution_end"),
            count(&stage, "post_tool_use")
        ),
        (1, 1)
    );
    assert_eq!(stage.field("agent_end", "reason"), ["aborted"]);
    agent.end_session(SessionEndReason::Quit).await;
    assert_eq!(stage.only::<SessionEnd>().reason, SessionEndReason::Quit);
}

#[tokio::test]
async fn a_cancelled_shell_command_dies_with_its_group() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    let script = "turns: [{tool_calls: [{name: shell, arguments: {cmd: 'mkfifo pipe; echo > begun; cat pipe & wait'}}]}]";
    let mut agent = AgentConfig {
        permissions: Permissions::new().yes(true),
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    let begun = stage.path().join("begun");
    let (report, ()) = tokio::join!(agent.prompt("go", &cancel), async {
        while !begun.exists() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
    });
    assert_eq!(report.end, RunEnd::Cancelled);
    assert_eq!(tool_texts(&agent), ["[cancelled]"]);
}

#[tokio::test]
async fn a_run_that_is_cancelled_before_it_begins_asks_no_model() {
    let stage = Stage::empty();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let mut agent = stage
        .config("turns: [{text: never}]")
        .build(stage.engine.clone())
        .unwrap();
    assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
    assert_eq!(
        (
            count(&stage, "turn_start"),
            count(&stage, "before_llm_call")
        ),
        (0, 0)
    );
    agent.end_session(SessionEndReason::Quit).await;
    assert_eq!(count(&stage, "session_end"), 1);
}

#[tokio::test]
async fn agent_end_carries_the_messages_of_its_own_run() {
    let stage = Stage::empty();
    let mut agent = stage
        .config("turns: [{text: one}, {text: two}]")
        .build(stage.engine.clone())
        .unwrap();
    for prompt in ["a", "b"] {
        agent.prompt(prompt, &CancellationToken::new()).await;
    }
    let runs: Vec<Vec<String>> = stage
        .all::<AgentEnd>()
        .into_iter()
        .map(|event| {
            event
                .messages
                .into_iter()
                .map(|message| message.content)
                .collect()
        })
        .collect();
    assert_eq!(runs, [["a", "one"], ["b", "two"]]);
}

#[tokio::test]
async fn a_tool_that_panics_is_an_error_result() {
    let stage = Stage::empty();
    let bomb = TestTool::new("bomb", |_, _| Box::pin(async { panic!("boom") }));
    let toolbox = Toolbox::empty().with(bomb);
    let script = "turns: [{tool_calls: [{name: bomb}]}, {text: ouch}]";
    let (agent, report) = stage
        .play_with(script, |config| AgentConfig { toolbox, ..config })
        .await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(tool_texts(&agent), ["the tool `bomb` panicked"]);
    assert_eq!(
        stage.field("tool_error", "error"),
        ["the tool `bomb` panicked"]
    );
    assert_eq!(count(&stage, "tool_execution_end"), 1);
}

#[test]
fn limits_that_leave_no_room_are_refused() {
    let stage = Stage::empty();
    let build = |limits: AgentLimits| {
        AgentConfig {
            limits,
            ..stage.config("turns: [{text: a}]")
        }
        .build(stage.engine.clone())
        .map(drop)
    };
    let no_calls = AgentLimits {
        max_iterations: 0,
        ..AgentLimits::default()
    };
    assert_eq!(
        build(no_calls).unwrap_err().to_string(),
        "the limit `max_iterations` is 0, expected at least 1"
    );
    let no_context = AgentLimits {
        compact_at: Some(0),
        ..AgentLimits::default()
    };
    assert_eq!(
        build(no_context),
        Err(BuildError::ZeroLimit {
            limit: "compact_at"
        })
    );
}

#[test]
fn an_agent_knows_its_name_and_its_useless_rules() {
    let stage = Stage::empty();
    let rules = Permissions::new()
        .deny("shel".parse().unwrap())
        .deny("transfer_task".parse().unwrap());
    let agent = AgentConfig {
        permissions: rules,
        ..stage.config("turns: [{text: a}]")
    }
    .build(stage.engine.clone())
    .unwrap();
    assert_eq!(agent.name(), Agent::DEFAULT_NAME);
    let problems = agent.unmatched_rules();
    assert_eq!(problems.len(), 1);
    assert!(
        problems[0]
            .to_string()
            .starts_with("the rule `shel` matches no tool, expected one of `shell`"),
        "{}",
        problems[0]
    );
}
