//! What stops a tool call, in which order, and which checks a changed call passes.

use std::fs;
use std::sync::Arc;

use futures_util::future::{self, BoxFuture};
use serde_json::json;
use tenterhook_agent::frontend::Approval;
use tenterhook_agent::{AgentConfig, Permissions, RunEnd};
use tenterhook_engine::event::{
    ApprovalSource, DenialSource, MessageEnd, PermissionRequest, PostToolUse, PreToolUse,
    ToolApprovalDecision, ToolExecutionStart, ToolGuard, ToolInputTransform, ToolResponseTransform,
};
use tenterhook_engine::{
    Answer, AsyncHandler, Call, Effect, EventKind, HookSpec, JsonObject, OnError, native_policy,
};
use tenterhook_process::{Command, Program};
use tenterhook_runners::CommandHandler;
use tenterhook_systems::native::Native;

use crate::stage::{Stage, tool_texts};

const TOUCH: &str = r"
turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch made}}]
  - text: done
";

fn yes() -> Permissions {
    Permissions::new().yes(true)
}

fn cmd(line: &str) -> JsonObject {
    json!({"cmd": line}).as_object().unwrap().clone()
}

/// Returns the events of the first tool call, from its start to its end.
fn call_events(stage: &Stage) -> Vec<String> {
    let names = stage.names();
    let start = names
        .iter()
        .position(|name| name == "tool_execution_start")
        .unwrap();
    let end = names
        .iter()
        .position(|name| name == "tool_execution_end")
        .unwrap();
    names[start..=end].to_vec()
}

#[tokio::test]
async fn a_denying_hook_keeps_the_tool_from_running_also_under_yes_and_an_allow_rule() {
    for permissions in [
        Permissions::new(),
        yes(),
        Permissions::new().allow("shell".parse().unwrap()),
    ] {
        let stage = Stage::empty();
        stage
            .engine
            .on(|_: &PreToolUse| Effect::<PreToolUse>::deny("no touching"));
        let (agent, _) = stage
            .play_with(TOUCH, |config| AgentConfig {
                permissions,
                ..config
            })
            .await;
        assert!(!stage.path().join("made").exists());
        assert_eq!(
            tool_texts(&agent),
            ["The tool call was rejected by a pre_tool_use hook. Reason: no touching"]
        );
        let expected = [
            "tool_execution_start",
            "tool_input_transform",
            "tool_guard",
            "pre_tool_use",
            "tool_approval_decision",
            "permission_denied",
            "tool_response_transform",
            "post_tool_use",
            "tool_execution_end",
        ];
        assert_eq!(call_events(&stage), expected);
        assert!(stage.only::<PostToolUse>().blocked);
        assert_eq!(
            stage.field("tool_approval_decision", "source"),
            ["pre_tool_use_hook_deny"]
        );
        assert_eq!(stage.field("permission_denied", "by"), ["hook"]);
        assert!(
            stage
                .human
                .screen()
                .contains(&"denied pre_tool_use no touching".to_owned())
        );
    }
}

#[tokio::test]
async fn every_gate_before_it_stops_a_call_and_is_named_to_the_model() {
    type Register = fn(&Stage);
    let gates: [(&str, &str, Register); 4] = [
        (
            "tool_input_transform",
            "tool_input_transform_deny",
            |stage| {
                stage
                    .engine
                    .on(|_: &ToolInputTransform| Effect::<ToolInputTransform>::block("x"));
            },
        ),
        ("tool_guard", "tool_guard_deny", |stage| {
            stage
                .engine
                .on(|_: &ToolGuard| Effect::<ToolGuard>::deny("x"));
        }),
        ("tool_guard", "tool_guard_deny", |stage| {
            stage
                .engine
                .on(|_: &ToolGuard| Effect::<ToolGuard>::block("x"));
        }),
        (
            "permission_request",
            "permission_request_hook_deny",
            |stage| {
                stage
                    .engine
                    .on(|_: &PermissionRequest| Effect::<PermissionRequest>::deny("x"));
            },
        ),
    ];
    for (event, source, register) in gates {
        let stage = Stage::attended([]);
        register(&stage);
        let (agent, _) = stage.play(TOUCH).await;
        assert_eq!(
            tool_texts(&agent),
            [format!(
                "The tool call was rejected by a {event} hook. Reason: x"
            )]
        );
        assert_eq!(stage.field("tool_approval_decision", "source"), [source]);
        assert!(!stage.path().join("made").exists());
    }
}

#[tokio::test]
async fn a_deny_rule_ends_the_call_before_pre_tool_use_and_no_hook_lifts_it() {
    let stage = Stage::attended([]);
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::allow());
    let rules = yes().deny("shell(cmd=touch *)".parse().unwrap());
    let (agent, _) = stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: rules,
            ..config
        })
        .await;
    let expected =
        "The tool call was denied. Reason: the permission rule `shell(cmd=touch *)` denies it";
    assert_eq!(tool_texts(&agent), [expected]);
    assert!(!stage.names().contains(&"pre_tool_use".to_owned()));
    assert_eq!(stage.field("permission_denied", "by"), ["rule"]);
}

#[tokio::test]
async fn unknown_tools_and_bad_arguments_end_before_every_gate() {
    let stage = Stage::empty();
    let script = r"
turns:
  - tool_calls:
      - {name: fly, arguments: {to: moon}}
      - {name: shell, arguments: {command: ls}}
  - text: done
";
    let (agent, report) = stage.play(script).await;
    assert_eq!(report.end, RunEnd::Completed);
    let texts = tool_texts(&agent);
    assert!(
        texts[0].starts_with("Unknown tool `fly`. Available tools: `shell`, `read_file`"),
        "{}",
        texts[0]
    );
    assert_eq!(
        texts[1],
        "Invalid arguments for `shell`: unknown field `command`, expected one of `cmd`, `cwd`, `timeout`."
    );
    assert_eq!(
        call_events(&stage),
        [
            "tool_execution_start",
            "tool_response_transform",
            "tool_execution_end"
        ]
    );
}

#[tokio::test]
async fn arguments_that_are_no_object_are_not_hidden_from_hooks() {
    let stage = Stage::empty();
    stage.engine.on(|event: &MessageEnd| {
        let mut message = event.message.clone();
        for call in &mut message.tool_calls {
            call.arguments = json!("rm -rf ~");
        }
        Effect::<MessageEnd>::none().replace_message(message)
    });
    let script = "turns: [{tool_calls: [{name: shell}]}, {text: done}]";
    let (agent, _) = stage.play(script).await;
    let shown = json!({"arguments": "rm -rf ~"});
    let started = stage.only::<ToolExecutionStart>().tool_input;
    let answered = stage.only::<ToolResponseTransform>().tool_input;
    assert_eq!([json!(started), json!(answered)], [shown.clone(), shown]);
    assert_eq!(
        tool_texts(&agent),
        ["The arguments of `shell` are not a JSON object."]
    );
}

#[tokio::test]
async fn changed_arguments_run_and_a_partial_change_keeps_the_rest() {
    let stage = Stage::empty();
    fs::create_dir(stage.path().join("inner")).unwrap();
    stage.engine.on(|_: &ToolInputTransform| {
        Effect::<ToolInputTransform>::none().patch_input(cmd("touch one"))
    });
    stage.engine.on(|event: &PreToolUse| {
        let line = event.tool_input["cmd"].as_str().unwrap();
        Effect::<PreToolUse>::allow().patch_input(cmd(&format!("{line} two")))
    });
    let script =
        "turns: [{tool_calls: [{name: shell, arguments: {cmd: x, cwd: inner}}]}, {text: done}]";
    stage.play(script).await;
    assert!(stage.path().join("inner/one").exists() && stage.path().join("inner/two").exists());
    assert_eq!(
        stage.only::<PostToolUse>().tool_input,
        *json!({"cmd": "touch one two", "cwd": "inner"})
            .as_object()
            .unwrap()
    );
}

#[tokio::test]
async fn changed_arguments_are_checked_against_the_tool_again() {
    let stage = Stage::empty();
    stage.engine.on(|_: &PreToolUse| {
        Effect::<PreToolUse>::allow()
            .patch_input(json!({"force": true}).as_object().unwrap().clone())
    });
    let (agent, _) = stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        [
            "The tool call was rejected by a pre_tool_use hook. Reason: the hook left invalid arguments for `shell`: \
          unknown field `force`, expected one of `cmd`, `cwd`, `timeout`"
        ]
    );
    assert!(!stage.path().join("made").exists());
}

#[tokio::test]
async fn rules_and_guards_judge_changed_arguments_once_more() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::allow().patch_input(cmd("rm made")));
    let rules = Permissions::new().deny("shell(cmd=rm *)".parse().unwrap());
    let (agent, _) = stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: rules,
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        ["The tool call was denied. Reason: the permission rule `shell(cmd=rm *)` denies it"]
    );

    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::allow().patch_input(cmd("rm made")));
    stage.engine.on(|event: &ToolGuard| {
        if event.tool_input["cmd"] == "rm made" {
            Effect::deny("no rm")
        } else {
            Effect::none()
        }
    });
    let (agent, _) = stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        ["The tool call was rejected by a tool_guard hook. Reason: no rm"]
    );
    assert_eq!(stage.all::<ToolGuard>().len(), 2);
}

#[tokio::test]
async fn arguments_that_a_hook_left_alone_are_judged_once() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::allow().patch_input(cmd("touch made")));
    stage.play(TOUCH).await;
    assert_eq!(stage.all::<ToolGuard>().len(), 1);
    assert_eq!(
        stage.field("tool_approval_decision", "source"),
        ["pre_tool_use_hook_allow"]
    );
    assert!(stage.path().join("made").exists());
}

#[tokio::test]
async fn a_guard_that_asks_reaches_the_user_whatever_rules_yes_and_hooks_say() {
    let rules = [yes(), Permissions::new().allow("shell".parse().unwrap())];
    for permissions in rules {
        let stage = Stage::attended([Approval::AllowOnce]);
        stage
            .engine
            .on(|_: &ToolGuard| Effect::<ToolGuard>::ask("looks odd"));
        stage
            .engine
            .on(|_: &PreToolUse| Effect::<PreToolUse>::allow());
        stage
            .engine
            .on(|_: &PermissionRequest| Effect::<PermissionRequest>::allow());
        stage
            .play_with(TOUCH, |config| AgentConfig {
                permissions,
                ..config
            })
            .await;
        assert_eq!(
            stage.human.asked(),
            [r#"shell {"cmd":"touch made"} looks odd"#]
        );
        assert_eq!(
            stage.field("tool_approval_decision", "source"),
            ["user_approved"]
        );
        assert!(stage.path().join("made").exists());
    }
}

#[tokio::test]
async fn a_guard_that_asks_denies_where_nobody_is_there() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &ToolGuard| Effect::<ToolGuard>::ask("looks odd"));
    let (agent, _) = stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        [
            "The tool call was denied. Reason: it needs approval (looks odd) and no one is there to give it"
        ]
    );
    assert_eq!(
        stage.field("tool_approval_decision", "source"),
        ["non_interactive_deny"]
    );
    assert!(!stage.path().join("made").exists());
}

#[tokio::test]
async fn a_hook_that_panics_on_a_gate_denies() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreToolUse| -> Effect<PreToolUse> { panic!("broken") });
    let (agent, _) = stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert!(
        tool_texts(&agent)[0]
            .starts_with("The tool call was rejected because a pre_tool_use hook failed.")
    );
    assert!(!stage.path().join("made").exists());
    assert!(
        stage
            .human
            .screen()
            .iter()
            .any(|line| line.starts_with("failure pre_tool_use"))
    );
}

#[tokio::test]
async fn a_used_up_budget_keeps_tools_from_running() {
    let stage = Stage::empty();
    let script = r"
turns:
  - {tool_calls: [{name: shell, arguments: {cmd: touch made}}], usage: {input_tokens: 90, output_tokens: 20}}
  - text: done
";
    let limits = tenterhook_agent::AgentLimits {
        token_budget: Some(100),
        ..Default::default()
    };
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            permissions: yes(),
            limits,
            ..config
        })
        .await;
    let expected = "The tool call did not run: 110 tokens are used and the budget is 100. Answer with what you have.";
    assert_eq!(tool_texts(&agent), [expected]);
    let names = call_events(&stage);
    assert_eq!(
        names[4..],
        [
            "tool_approval_decision",
            "token_budget_exceeded",
            "tool_response_transform",
            "post_tool_use",
            "tool_execution_end"
        ]
    );
    assert!(!stage.path().join("made").exists());
}

#[tokio::test]
async fn a_summary_that_nobody_counted_is_charged_to_the_budget() {
    let stage = Stage::empty();
    let script = format!(
        "turns:\n- {{text: hi, usage: {{input_tokens: 1, output_tokens: 1}}}}\n- {{summary: {}}}\n- {{tool_calls: [{{name: shell, arguments: {{cmd: touch made}}}}], usage: {{input_tokens: 1, output_tokens: 1}}}}\n- text: done\n",
        "x".repeat(4000)
    );
    let limits = tenterhook_agent::AgentLimits {
        token_budget: Some(100),
        ..Default::default()
    };
    let config = AgentConfig {
        permissions: yes(),
        limits,
        ..stage.config(&script)
    };
    let mut agent = config.build(stage.engine.clone()).unwrap();
    let cancel = tenterhook_agent::CancellationToken::new();
    agent.prompt("go", &cancel).await;
    agent.compact(None, &cancel).await.unwrap();
    agent.prompt("go on", &cancel).await;
    assert!(!stage.path().join("made").exists());
    assert!(tool_texts(&agent)[0].ends_with("the budget is 100. Answer with what you have."));
}

#[tokio::test]
async fn sources_name_what_let_a_call_through() {
    let decide = |permissions: Permissions, tool: &'static str| async move {
        let stage = Stage::empty();
        let script = format!("turns: [{{tool_calls: [{tool}]}}, {{text: done}}]");
        stage
            .play_with(&script, |config| AgentConfig {
                permissions,
                ..config
            })
            .await;
        stage.only::<ToolApprovalDecision>().source
    };
    let shell = "{name: shell, arguments: {cmd: 'true'}}";
    assert_eq!(
        decide(Permissions::new().allow("shell".parse().unwrap()), shell).await,
        ApprovalSource::Rule.into()
    );
    assert_eq!(decide(yes(), shell).await, ApprovalSource::Yes.into());
    assert_eq!(
        decide(yes().ask("shell".parse().unwrap()), shell).await,
        ApprovalSource::Yes.into()
    );
    assert_eq!(
        decide(Permissions::new(), "{name: list_directory}").await,
        ApprovalSource::ReadOnlyTool.into()
    );
    assert_eq!(
        decide(Permissions::new(), shell).await,
        DenialSource::NonInteractive.into()
    );
}

#[tokio::test]
async fn an_allowing_pre_tool_use_hook_does_not_answer_an_ask_rule() {
    let stage = Stage::attended([Approval::AllowOnce]);
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::allow());
    let rules = Permissions::new().ask("shell(cmd=touch *)".parse().unwrap());
    stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: rules,
            ..config
        })
        .await;
    assert_eq!(
        stage.human.asked(),
        [r#"shell {"cmd":"touch made"} shell(cmd=touch *)"#]
    );
    assert!(stage.path().join("made").exists());
}

#[tokio::test]
async fn the_judgement_of_changed_arguments_approves_nothing() {
    let rewrite = |stage: &Stage| {
        stage
            .engine
            .on(|_: &PreToolUse| Effect::<PreToolUse>::none().patch_input(cmd("touch other")));
    };
    let rules = [
        Permissions::new().allow("shell(cmd=touch other)".parse().unwrap()),
        Permissions::new()
            .ask("shell(cmd=touch made)".parse().unwrap())
            .allow("shell".parse().unwrap()),
    ];
    for permissions in rules {
        let stage = Stage::attended([Approval::AllowOnce]);
        rewrite(&stage);
        stage
            .play_with(TOUCH, |config| AgentConfig {
                permissions,
                ..config
            })
            .await;
        assert_eq!(stage.human.asked().len(), 1);
        assert!(stage.human.asked()[0].contains("touch other"));
    }

    let stage = Stage::attended([Approval::AllowOnce]);
    rewrite(&stage);
    let rules = Permissions::new().allow("shell(cmd=touch made)".parse().unwrap());
    stage
        .play_with(TOUCH, |config| AgentConfig {
            permissions: rules,
            ..config
        })
        .await;
    assert_eq!(
        stage.human.asked().len(),
        1,
        "an allow rule for the first arguments says nothing of the final ones"
    );
}

#[tokio::test]
async fn who_denied_is_the_rule_only_where_there_is_one() {
    let denied_by = |permissions: Permissions| async move {
        let stage = Stage::empty();
        stage
            .play_with(TOUCH, |config| AgentConfig {
                permissions,
                ..config
            })
            .await;
        stage.field("permission_denied", "by")
    };
    assert_eq!(denied_by(Permissions::new()).await, ["user"]);
    let asks = Permissions::new().ask("shell".parse().unwrap());
    assert_eq!(denied_by(asks).await, ["rule"]);
}

/// Creates a file, unless a gate stops it.
const MAKE: &str =
    "turns: [{tool_calls: [{name: shell, arguments: {cmd: touch made}}]}, {text: done}]";

fn asking(kind: EventKind) -> HookSpec {
    let line = r#"echo '{"decision":"ask","reason":"sure?"}'"#;
    let command = Command::new(Program::shell(line));
    let handler = CommandHandler::new(command, line, Native::new());
    HookSpec::new(kind, "asks", Arc::new(handler))
}

/// The tool runs with exactly the arguments that the guards of `pre_tool_use` have seen.
#[cfg(unix)]
#[tokio::test]
async fn what_a_hook_of_permission_request_makes_of_a_call_is_judged_by_pre_tool_use() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|event: &PreToolUse| match event.tool_input.get("cmd") {
            Some(cmd) if cmd == "touch harmful" => Effect::deny("not this one"),
            _ => Effect::none(),
        });
    stage.engine.on(|_: &PermissionRequest| {
        Effect::<PermissionRequest>::allow().patch_input([("cmd", "touch harmful")])
    });
    let permissions = Permissions::new().ask("shell".parse().unwrap());
    stage
        .play_with(MAKE, |config| AgentConfig {
            permissions,
            ..config
        })
        .await;
    assert!(!stage.path().join("harmful").exists());
    assert!(!stage.path().join("made").exists());
}

#[cfg(unix)]
#[tokio::test]
async fn ask_never_rounds_down_to_allow() {
    let shell = || "shell".parse().unwrap();
    let every: [fn() -> Permissions; 3] = [Permissions::new, yes, || {
        Permissions::new().allow("shell".parse().unwrap())
    }];
    for kind in [
        EventKind::UserInput,
        EventKind::UserPromptSubmit,
        EventKind::BeforeLlmCall,
        EventKind::ToolInputTransform,
        EventKind::ToolGuard,
        EventKind::PreToolUse,
        EventKind::PermissionRequest,
    ] {
        for (number, permissions) in every.iter().enumerate() {
            // `permission_request` fires only if the user would be asked.
            let permissions = if kind == EventKind::PermissionRequest {
                Permissions::new().ask(shell())
            } else {
                permissions()
            };
            // No one can be asked, and other hooks allow the call.
            let stage = Stage::empty();
            stage.engine.register(asking(kind));
            stage
                .engine
                .on(|_: &ToolGuard| Effect::<ToolGuard>::allow());
            stage
                .engine
                .on(|_: &PreToolUse| Effect::<PreToolUse>::allow());
            // It answers the question of `pre_tool_use` instead of the user, but not the question of a guard.
            if kind != EventKind::PreToolUse {
                stage
                    .engine
                    .on(|_: &PermissionRequest| Effect::<PermissionRequest>::allow());
            }
            stage
                .play_with(MAKE, |config| AgentConfig {
                    permissions,
                    ..config
                })
                .await;
            assert!(
                !stage.path().join("made").exists(),
                "{kind:?}, permissions {number}"
            );
        }
    }
}

#[cfg(unix)]
#[tokio::test]
async fn ask_leaves_the_call_to_the_user_where_one_is_there() {
    for kind in [EventKind::ToolGuard, EventKind::PreToolUse] {
        for (answer, runs) in [
            (Approval::AllowOnce, true),
            (Approval::Deny { reason: None }, false),
        ] {
            let stage = Stage::attended([answer]);
            stage.engine.register(asking(kind));
            stage
                .play_with(MAKE, |config| AgentConfig {
                    permissions: yes(),
                    ..config
                })
                .await;
            assert_eq!(
                stage.human.asked(),
                ["shell {\"cmd\":\"touch made\"} sure?"]
            );
            assert_eq!(stage.path().join("made").exists(), runs, "{kind:?}");
        }
    }
}

#[tokio::test]
async fn gates_whose_hooks_were_cancelled_let_nothing_through() {
    for kind in [EventKind::ToolGuard, EventKind::PreToolUse] {
        let stage = Stage::empty();
        let cancel = tenterhook_agent::CancellationToken::new();
        let token = cancel.clone();
        // Its policy lets failures through, but a cancelled hook has still judged nothing.
        stage.engine.register(HookSpec {
            policy: native_policy(kind.info(), Some(OnError::Ignore)),
            ..HookSpec::new(kind, "never", Arc::new(Never(token)))
        });
        let mut agent = AgentConfig {
            permissions: yes(),
            ..stage.config(MAKE)
        }
        .build(stage.engine.clone())
        .unwrap();
        assert_eq!(agent.prompt("go", &cancel).await.end, RunEnd::Cancelled);
        assert!(!stage.path().join("made").exists(), "{kind:?}");
    }
}

/// Cancels the run and never answers.
#[derive(Debug)]
struct Never(tenterhook_agent::CancellationToken);

impl AsyncHandler for Never {
    fn kind(&self) -> &'static str {
        "never"
    }

    fn describe(&self) -> String {
        "never".to_owned()
    }

    fn handle<'a>(&'a self, _: &'a Call) -> BoxFuture<'a, Answer> {
        self.0.cancel();
        Box::pin(future::pending())
    }
}
