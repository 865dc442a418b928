//! Changes to a tool's result before anyone sees it, and parallel calls.

use std::sync::Arc;

use tenterhook_agent::{AgentConfig, CancellationToken, Permissions, RunEnd, Toolbox};
use tenterhook_engine::event::{
    AgentEnd, BeforeLlmCall, PostToolUse, PreToolUse, ToolExecutionEnd, ToolResponseTransform,
    TurnEnd,
};
use tenterhook_engine::{ContentBlock, Effect, JsonObject, Role, ToolResult};
use tenterhook_tools::ToolContext;
use tokio::sync::Barrier;

use crate::stage::{Stage, tool_texts};
use crate::test_tool::{Outcome, TestTool};

const PRINT: &str =
    "turns: [{tool_calls: [{name: shell, arguments: {cmd: echo canary}}]}, {text: done}]";

fn yes() -> Permissions {
    Permissions::new().yes(true)
}

#[tokio::test]
async fn a_redaction_reaches_model_session_and_screen_alike() {
    let stage = Stage::empty();
    stage.engine.on(|event: &ToolResponseTransform| {
        Effect::none().replace_response(event.tool_response.replace("canary", "***"))
    });
    let (agent, _) = stage
        .play_with(PRINT, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    let model = format!("{:?}", stage.all::<BeforeLlmCall>()[1].messages.last());
    let session = serde_json::to_string(
        &agent
            .session()
            .messages()
            .into_iter()
            .rfind(|m| m.role == Role::Tool),
    )
    .unwrap();
    let end = format!("{:?}", stage.only::<ToolExecutionEnd>().result);
    let turn = format!("{:?}", stage.all::<TurnEnd>()[0].tool_results);
    let post = format!("{:?}", stage.only::<PostToolUse>().result);
    let screen = stage.human.screen().join("\n");
    for seen in [model, session, end, turn, post, screen] {
        assert!(seen.contains("***") && !seen.contains("canary"), "{seen}");
    }
}

#[tokio::test]
async fn a_redaction_reaches_texts_of_denials_and_errors_too() {
    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &PreToolUse| Effect::<PreToolUse>::deny("canary"));
    stage.engine.on(|event: &ToolResponseTransform| {
        Effect::none().replace_response(event.tool_response.replace("canary", "***"))
    });
    let (agent, _) = stage.play(PRINT).await;
    assert_eq!(
        tool_texts(&agent),
        ["The tool call was rejected by a pre_tool_use hook. Reason: ***"]
    );

    let stage = Stage::empty();
    stage
        .engine
        .on(|_: &ToolResponseTransform| Effect::none().replace_response("gone".to_owned()));
    let script = "turns: [{tool_calls: [{name: fly}, {name: read_file, arguments: {path: none}}]}, {text: done}]";
    let (agent, _) = stage.play(script).await;
    assert_eq!(tool_texts(&agent), ["gone", "gone"]);
    assert_eq!(stage.field("tool_error", "error"), ["gone"]);
}

#[tokio::test]
async fn post_tool_use_patches_are_the_last_word() {
    let stage = Stage::empty();
    stage.engine.on(|_: &PostToolUse| {
        Effect::none()
            .replace_content(vec![ContentBlock::text("better")])
            .replace_is_error(true)
            .context("by the way")
    });
    let (agent, _) = stage
        .play_with(PRINT, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(tool_texts(&agent), ["better"]);
    assert!(stage.only::<ToolExecutionEnd>().is_error);
    let next = stage.all::<BeforeLlmCall>().remove(1).messages;
    assert_eq!(
        (
            next.last().unwrap().role,
            next.last().unwrap().content.as_str()
        ),
        (Role::System, "by the way")
    );
}

#[tokio::test]
async fn a_failed_tool_is_heard_of_by_both_events() {
    let stage = Stage::empty();
    let script = "turns: [{tool_calls: [{name: shell, arguments: {cmd: exit 3}}]}, {text: done}]";
    stage
        .play_with(script, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    let names = stage.names();
    let at = names.iter().position(|name| name == "tool_error").unwrap();
    assert_eq!(
        names[at - 1..at + 3],
        [
            "tool_response_transform",
            "tool_error",
            "post_tool_use",
            "tool_execution_end"
        ]
    );
    assert!(stage.only::<PostToolUse>().result.is_error);
    assert!(!stage.only::<PostToolUse>().blocked);
}

/// Returns a tool that ends only when `calls` calls of it run in parallel.
fn together(calls: usize) -> TestTool<impl for<'a> Fn(JsonObject, ToolContext<'a>) -> Outcome<'a>> {
    let barrier = Arc::new(Barrier::new(calls));
    TestTool::new("together", move |input: JsonObject, _| {
        let barrier = Arc::clone(&barrier);
        Box::pin(async move {
            barrier.wait().await;
            Ok(ToolResult::text(input["n"].to_string()))
        })
    })
}

const THREE: &str = r"
turns:
  - tool_calls:
      - {name: together, arguments: {n: 1}}
      - {name: together, arguments: {n: 2}}
      - {name: together, arguments: {n: 3}}
  - text: done
";

#[tokio::test]
async fn harmless_calls_run_beside_each_other_and_results_keep_their_order() {
    let stage = Stage::empty();
    let tool = together(3);
    let (agent, report) = stage
        .play_with(THREE, |config| AgentConfig {
            toolbox: Toolbox::empty().with(tool),
            ..config
        })
        .await;
    assert_eq!(report.end, RunEnd::Completed);
    assert_eq!(tool_texts(&agent), ["1", "2", "3"]);
}

#[tokio::test]
async fn other_calls_run_one_after_another() {
    let stage = Stage::empty();
    let tool = together(1).read_only(false);
    let (agent, _) = stage
        .play_with(THREE, |config| AgentConfig {
            permissions: yes(),
            toolbox: Toolbox::empty().with(tool),
            ..config
        })
        .await;
    assert_eq!(tool_texts(&agent), ["1", "2", "3"]);
    let names = stage.names();
    let bounds: Vec<_> = names
        .iter()
        .filter(|name| *name == "tool_execution_start" || *name == "tool_execution_end")
        .collect();
    assert_eq!(
        bounds,
        ["tool_execution_start", "tool_execution_end"]
            .repeat(3)
            .iter()
            .collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn real_files_are_written_edited_and_searched() {
    let stage = Stage::empty();
    let script = r"
turns:
  - tool_calls:
      - {name: write_file, arguments: {path: notes/a.txt, content: one two}}
      - {name: edit_file, arguments: {path: notes/a.txt, old_text: two, new_text: three}}
      - {name: search, arguments: {pattern: three}}
      - {name: read_file, arguments: {path: notes/a.txt}}
  - text: done
";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    let expected = [
        "Wrote 7 bytes to `notes/a.txt`.",
        "Replaced 1 passage in `notes/a.txt`.",
        "notes/a.txt:1: one three",
        "one three",
    ];
    assert_eq!(tool_texts(&agent), expected);
    assert_eq!(stage.only::<AgentEnd>().messages.len(), 7);
}

#[tokio::test]
async fn texts_of_skipped_and_cancelled_calls_pass_the_transform_too() {
    let redact = |stage: &Stage| {
        stage
            .engine
            .on(|_: &ToolResponseTransform| Effect::none().replace_response("***".to_owned()));
    };
    let script = r"
turns:
  - tool_calls:
      - {name: shell, arguments: {cmd: 'true'}}
      - {name: shell, arguments: {cmd: 'false'}}
";
    let stage = Stage::empty();
    redact(&stage);
    stage
        .engine
        .on(|_: &PostToolUse| Effect::<PostToolUse>::none().stop_run("enough"));
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            permissions: yes(),
            ..config
        })
        .await;
    assert_eq!(tool_texts(&agent), ["***", "***"]);

    let stage = Stage::empty();
    redact(&stage);
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    stage.engine.on(move |_: &PreToolUse| {
        token.cancel();
        Effect::none()
    });
    let mut agent = AgentConfig {
        permissions: yes(),
        ..stage.config(script)
    }
    .build(stage.engine.clone())
    .unwrap();
    agent.prompt("go", &cancel).await;
    assert_eq!(tool_texts(&agent), ["***", "***"]);
    assert_eq!(stage.all::<PostToolUse>().len(), 0);
}
