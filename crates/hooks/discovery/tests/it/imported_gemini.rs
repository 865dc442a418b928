//! Gemini CLI's settings, as people write them, run here without a change.

use std::fs;
use std::path::Path;

use serde_json::json;
use tenterhook_discovery::{LoadOptions, load_file};
use tenterhook_engine::event::{PostToolUse, PreToolUse, Stop};
use tenterhook_engine::{Dispatcher, Engine, Layer, Origin, Scope, ToolResult};

use crate::options;

const FILE: &str = ".gemini/settings.json";

const SETTINGS: &str = r#"{
  // People write comments here.
  "general": { "vimMode": true },
  "hooksConfig": { "disabled": ["off"] },
  "hooks": {
    "BeforeTool": [
      {
        "matcher": "run_shell_command|write_.*",
        "hooks": [
          { "type": "command", "name": "policy", "command": "sh policy.sh", "timeout": 20000 },
          { "type": "command", "name": "off", "command": "echo off; exit 2" }
        ]
      },
      { "hooks": [{ "type": "command", "command": "'/d/bin/tenterhook-shim' gemini BeforeTool" }] }
    ],
    "AfterTool": [{ "hooks": [{
      "type": "command",
      "command": "echo '{\"decision\":\"deny\",\"reason\":\"hidden\"}'"
    }] }],
    "AfterAgent": [{ "hooks": [{
      "type": "command",
      "command": "grep -q '\"stop_hook_active\":true' || echo '{\"decision\":\"deny\",\"reason\":\"run the tests\"}'"
    }] }]
  }
}"#;

const POLICY: &str = r#"
input=$(cat)
case $input in
*'"command":"deny'*) echo '{"decision":"deny","reason":"not here"}' ;;
*'"command":"two'*) echo "status two" >&2; exit 2 ;;
*'"command":"three'*) echo "status three" >&2; exit 3 ;;
*'"command":"silent'*) exit 3 ;;
*'"command":"warn'*) echo "look out" >&2; exit 1 ;;
*'"command":"broken'*) echo '{"decision":"den' ;;
*'"command":"killed'*) kill -9 $$ ;;
*'"command":"change'*) echo '{"hookSpecificOutput":{"tool_input":{"command":"echo safe"}}}' ;;
*'"file_path":".env"'*) echo '{"decision":"deny","reason":"no .env"}' ;;
*'"command":"where'*) echo "{\"decision\":\"deny\",\"reason\":\"$GEMINI_PROJECT_DIR\"}" ;;
esac
"#;

fn hooks(dir: &Path) -> Dispatcher {
    fs::create_dir_all(dir.join(".gemini")).unwrap();
    fs::write(dir.join(FILE), SETTINGS).unwrap();
    fs::write(dir.join("policy.sh"), POLICY).unwrap();
    let options = LoadOptions {
        directory: dir.to_owned(),
        ..options()
    };
    let loaded = load_file(&dir.join(FILE), Layer::Explicit, &options);
    let loaded = loaded.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let tools = tenterhook_systems::tools::native();
    let engine = Engine::builder().tools(tools).build();
    engine.scope(Scope::Global).replace(loaded.specs);
    engine.dispatcher(Origin::new("s1", dir.to_owned()))
}

fn shell(cmd: &str) -> PreToolUse {
    let input = json!({ "cmd": cmd });
    PreToolUse::new("shell").with_tool_input(input.as_object().unwrap().clone())
}

#[tokio::test]
async fn guards_of_gemini_cli_stop_calls_here() {
    let dir = tempfile::tempdir().unwrap();
    let hooks = hooks(dir.path());
    for (cmd, expected) in [
        ("deny", "not here"),
        ("two", "status two"),
        ("three", "status three"),
        ("where", dir.path().to_str().unwrap()),
    ] {
        let outcome = hooks.dispatch(shell(cmd)).await;
        assert_eq!(outcome.decision().reason(), Some(expected), "{cmd}");
        assert!(outcome.failures().is_empty(), "{cmd}");
    }
    let input = json!({ "path": ".env", "content": "x" });
    let write = PreToolUse::new("write_file").with_tool_input(input.as_object().unwrap().clone());
    let outcome = hooks.dispatch(write).await;
    assert_eq!(outcome.decision().reason(), Some("no .env"));
    let outcome = hooks.dispatch(shell("ls")).await;
    assert!(outcome.decision().is_proceed());
}

#[tokio::test]
async fn status_1_warns_and_every_other_failure_of_a_guard_denies() {
    let dir = tempfile::tempdir().unwrap();
    let hooks = hooks(dir.path());
    for (cmd, is_denied) in [
        ("warn", false),
        ("silent", true),
        ("broken", true),
        ("killed", true),
    ] {
        let outcome = hooks.dispatch(shell(cmd)).await;
        assert_eq!(!outcome.decision().is_proceed(), is_denied, "{cmd}");
        let let_through: Vec<_> = outcome.failures().iter().map(|it| it.let_through).collect();
        assert_eq!(let_through, [!is_denied], "{cmd}");
    }
}

#[tokio::test]
async fn changed_arguments_are_merged_with_the_others() {
    let dir = tempfile::tempdir().unwrap();
    let input = json!({ "cmd": "change", "cwd": "/w" });
    let call = PreToolUse::new("shell").with_tool_input(input.as_object().unwrap().clone());
    let dispatched = hooks(dir.path()).dispatch_any(Box::new(call)).await;
    let (_, input) = dispatched.event.event().tool_call().unwrap();
    assert_eq!(json!(input), json!({ "cmd": "echo safe", "cwd": "/w" }));
}

#[tokio::test]
async fn results_are_replaced_and_the_agent_continues() {
    let dir = tempfile::tempdir().unwrap();
    let hooks = hooks(dir.path());
    let result = PostToolUse::new("shell").with_result(ToolResult::text("secret"));
    let outcome = hooks.dispatch(result).await;
    let rewritten = outcome.into_rewritten().unwrap();
    assert_eq!(rewritten.result.joined_text(), "hidden");
    let outcome = hooks.dispatch(Stop::new()).await;
    assert_eq!(outcome.follow_up(), ["run the tests"]);
    let again = Stop::new().with_stop_hook_active(true);
    assert!(hooks.dispatch(again).await.follow_up().is_empty());
}

/// Otherwise, a guard would judge each call twice.
#[tokio::test]
async fn gemini_cli_runs_its_own_file_itself() {
    let dir = tempfile::tempdir().unwrap();
    hooks(dir.path());
    let options = LoadOptions {
        directory: dir.path().to_owned(),
        host: Some("gemini"),
        ..options()
    };
    let loaded = load_file(&dir.path().join(FILE), Layer::User, &options);
    assert!(loaded.is_ok_and(|loaded| loaded.specs.is_empty()));
}
