//! Tools that no table has, and shells of agents under other names, before the guards of hook files.

use serde_json::{Value, json};

use crate::shim_stage::HostStage;
use crate::stage::{Test, eventually};

const NO_RM: &str = "hooks: [{name: no-rm, event: pre_tool_use, matcher: shell, builtin: deny_commands, args: [rm -rf]}]";
const NO_RM_EVERYWHERE: &str =
    "hooks: [{name: no-rm, event: pre_tool_use, builtin: deny_commands, args: [rm -rf]}]";

fn claude_call(stage: &HostStage, tool: &str, input: &Value) -> Value {
    let mut call = stage.claude_call("s1", "ls");
    call["tool_name"] = tool.into();
    call["tool_input"] = input.clone();
    call
}

fn denial(stage: &HostStage, tool: &str, input: &Value) -> Option<String> {
    let call = claude_call(stage, tool, input);
    stage
        .send("claude-code", "PreToolUse", &call)
        .claude_denial()
}

#[test]
fn an_agent_cannot_pass_a_guard_for_the_shell_with_another_tool() {
    for hooks in [NO_RM, NO_RM_EVERYWHERE] {
        let stage = HostStage::new().hooks(hooks);
        for (tool, input) in [
            (
                "Monitor",
                json!({ "command": "rm -rf x", "description": "d", "timeout_ms": 1000 }),
            ),
            ("mcp__box__start", json!({ "command": "rm -rf x" })),
            ("mcp__box__start", json!({ "args": ["rm", "-rf", "x"] })),
            (
                "mcp__box__start",
                json!({ "command": "rm", "args": ["-rf", "x"] }),
            ),
        ] {
            let reason = denial(&stage, tool, &input).unwrap_or_else(|| panic!("{tool} {input}"));
            assert!(reason.contains("`rm -rf` is not allowed here"), "{reason}");
        }
        for (tool, input) in [
            (
                "Monitor",
                json!({ "command": "tail -f log", "description": "d", "timeout_ms": 1000 }),
            ),
            (
                "Monitor",
                json!({ "description": "d", "timeout_ms": 1000, "ws": { "url": "wss://a.example" } }),
            ),
            (
                "mcp__edit__file_editor",
                json!({ "command": "str_replace", "path": "a", "old_str": "rm -rf x" }),
            ),
        ] {
            assert_eq!(denial(&stage, tool, &input), None, "{tool} {input}");
        }
        drop(stage.tenterhook(&["daemon", "--stop"]));
        let journal = eventually(|| Some(stage.journal()).filter(|it| it.contains("rm -rf")));
        let why =
            "\"read_as_shell\":\"no table has this tool, and `command` can be a command line\"";
        assert!(journal.contains(why), "{journal}");
    }
}

#[test]
fn a_hook_file_decides_about_unknown_tools_for_each_agent() {
    let run = json!({ "command": "ls -l" });
    for (hooks, is_denied) in [
        ("unknown_tools: see\nhooks: []", false),
        ("unknown_tools: deny\nhooks: []", true),
        ("unknown_tools: {claude-code: deny}", true),
        ("unknown_tools: {default: deny, claude-code: see}", false),
        ("unknown_tools: {codex: deny}", false),
    ] {
        let stage = HostStage::new().hooks(hooks);
        let reason = denial(&stage, "mcp__box__start", &run);
        assert_eq!(reason.is_some(), is_denied, "{hooks}: {reason:?}");
        if let Some(reason) = reason {
            assert!(reason.contains("no table has this tool"), "{reason}");
        }
        for (tool, input) in [
            ("Bash", &run),
            ("Monitor", &run),
            (
                "mcp__edit__file_editor",
                &json!({ "command": "view", "path": "a" }),
            ),
        ] {
            assert_eq!(denial(&stage, tool, input), None, "{hooks}: {tool}");
        }
    }
}

#[test]
fn a_value_of_unknown_tools_that_is_none_is_reported_with_its_place() {
    for (text, problem) in [
        ("unknown_tools: block\nhooks: []", "`see`, `ask` or `deny`"),
        (
            "unknown_tools: {claude: deny}\nhooks: []",
            "unknown key `claude`",
        ),
        (
            "unknown_tools: {codex: 1}\nhooks: []",
            "`see`, `ask` or `deny`",
        ),
    ] {
        let ran = Test::new()
            .args(["check", "hooks.yaml"])
            .file("hooks.yaml", text)
            .run();
        assert_ne!(ran.status, 0, "{text}");
        let shown = format!("{}{}", ran.stdout, ran.stderr);
        assert!(
            shown.contains(problem) && shown.contains("hooks.yaml:1:"),
            "{shown}"
        );
    }
}

#[test]
fn a_tool_that_no_table_has_is_a_question_if_the_hook_file_says_so() {
    let event = r#"{"tool_name": "mcp__box__start", "tool_input": {"command": "ls -l"}}"#;
    let ran = Test::new()
        .args(["fire", "pre_tool_use", "--no-journal", "--json"])
        .event(event)
        .hooks("unknown_tools: ask")
        .run();
    assert_eq!(
        ran.json()["decision"],
        "ask",
        "{}{}",
        ran.stdout,
        ran.stderr
    );
}
