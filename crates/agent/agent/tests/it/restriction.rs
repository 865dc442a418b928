//! Restrictions of an agent, and that nothing lifts them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use tenterhook_agent::{
    AgentConfig, AgentRestrictions, AgentSpec, FolderRestriction, Permissions, RunEnd, Toolbox,
};
use tenterhook_engine::event::{BeforeAgentStart, PreToolUse, ToolSelection};
use tenterhook_engine::{Effect, JsonObject, ToolResult};
use tenterhook_tools::ToolContext;

use crate::stage::{Stage, tool_texts};
use crate::test_tool::{Outcome, TestTool};

/// Returns a tool of another crate. It returns `ran`.
fn brought(
    name: &'static str,
) -> TestTool<impl for<'a> Fn(JsonObject, ToolContext<'a>) -> Outcome<'a>> {
    TestTool::new(name, |_, _| Box::pin(async { Ok(ToolResult::text("ran")) }))
}

fn read_only() -> AgentRestrictions {
    AgentRestrictions {
        read_only: true,
        ..AgentRestrictions::default()
    }
}

fn yes() -> Permissions {
    Permissions::new().yes(true)
}

#[tokio::test]
async fn a_readonly_agent_has_no_tool_of_others_that_may_change_something() {
    let toolbox = Toolbox::standard()
        .with(brought("deploy").read_only(false))
        .with(brought("look"));
    let script = "turns:
  - tool_calls: [{name: deploy, arguments: {}}]
  - tool_calls: [{name: look, arguments: {}}]
  - text: done";
    let stage = Stage::empty();
    let (agent, _) = stage
        .play_with(script, |config| {
            let config = AgentConfig {
                toolbox,
                permissions: yes(),
                ..config
            };
            AgentConfig {
                restrictions: BTreeMap::from([("root".to_owned(), Arc::new(read_only()))]),
                ..config
            }
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        ["The tool `deploy` is disabled.", "ran"]
    );
    let offered = stage.all::<ToolSelection>().remove(0).tools;
    assert_eq!(offered, ["read_file", "list_directory", "search", "look"]);
}

#[tokio::test]
async fn hooks_cannot_give_a_readonly_agent_its_tools_back() {
    let stage = Stage::empty();
    stage.engine.on(|_: &BeforeAgentStart| {
        Effect::<BeforeAgentStart>::none().enable_tool("write_file".to_owned())
    });
    stage.engine.on(|_: &ToolSelection| {
        let tools = ["shell", "write_file", "read_file"].map(str::to_owned);
        Effect::<ToolSelection>::none().replace_tools(tools.to_vec())
    });
    let script = "turns:
  - tool_calls: [{name: shell, arguments: {cmd: touch made}}]
  - tool_calls: [{name: write_file, arguments: {path: made, content: a}}]
  - text: done";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            permissions: yes(),
            restrictions: BTreeMap::from([("root".to_owned(), Arc::new(read_only()))]),
            ..config
        })
        .await;
    assert_eq!(
        tool_texts(&agent),
        [
            "The tool `shell` is disabled.",
            "The tool `write_file` is disabled."
        ]
    );
    assert!(!stage.path().join("made").exists());
}

#[tokio::test]
async fn a_rewritten_path_is_held_to_the_folders_too() {
    let stage = Stage::empty();
    stage.engine.on(|_: &PreToolUse| {
        let input = json!({"path": "inside/../outside"});
        Effect::<PreToolUse>::none().patch_input(input.as_object().unwrap().clone())
    });
    let folders = FolderRestriction {
        tools: vec!["write_file".to_owned()],
        allow: vec![PathBuf::from("inside")],
        deny: Vec::new(),
    };
    let script = "turns:
  - tool_calls: [{name: write_file, arguments: {path: inside/a, content: a}}]
  - text: done";
    let (agent, _) = stage
        .play_with(script, |config| AgentConfig {
            permissions: yes(),
            restrictions: BTreeMap::from([(
                "root".to_owned(),
                Arc::new(AgentRestrictions {
                    folders: vec![folders],
                    ..AgentRestrictions::default()
                }),
            )]),
            ..config
        })
        .await;
    let texts = tool_texts(&agent);
    assert!(texts[0].contains("outside the folders"), "{texts:?}");
    assert!(!stage.path().join("outside").exists());
}

#[tokio::test]
async fn a_subagent_has_its_own_limit_of_model_calls() {
    let stage = Stage::empty();
    let script = "turns:
  - tool_calls: [{name: transfer_task, arguments: {agent: helper, task: look}}]
  - {for: helper, tool_calls: [{name: list_directory, arguments: {}}]}
  - {for: helper, text: looked}
  - text: done";
    let (agent, report) = stage
        .play_with(script, |config| {
            let helper = AgentSpec {
                name: "helper".to_owned(),
                ..AgentSpec::default()
            };
            let limited = AgentRestrictions {
                max_iterations: Some(1),
                ..AgentRestrictions::default()
            };
            AgentConfig {
                agents: vec![helper],
                restrictions: BTreeMap::from([("helper".to_owned(), Arc::new(limited))]),
                ..config
            }
        })
        .await;
    assert_eq!(report.end, RunEnd::Completed);
    let texts = tool_texts(&agent);
    assert!(!texts[0].contains("looked"), "{texts:?}");
}
