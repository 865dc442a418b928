//! Guards of every hook system against calls that are made under other names. Each test is an attack.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use tenterhook_engine::event::{PostToolUse, PreToolUse};
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{
    ContentBlock, Decision, Effect, Engine, EventKind, HookSpec, JsonObject, Matcher,
    MemoryJournal, Origin, Outcome, ToolResult,
};
use tenterhook_process::{Command, Program};
use tenterhook_runners::CommandHandler;
use tenterhook_systems::HOSTS;
use tenterhook_systems::kodelet::Kodelet;
use tenterhook_systems::native::Native;
use tenterhook_systems::tools;

use crate::stage::Stage;

pub(crate) fn object(value: &Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

pub(crate) fn call(tool: &str, input: &Value) -> PreToolUse {
    PreToolUse::new(tool.to_owned())
        .with_tool_use_id("c1")
        .with_tool_input(object(input))
}

fn shell(cmd: &str) -> PreToolUse {
    call("shell", &json!({ "cmd": cmd }))
}

pub(crate) fn engine() -> Engine {
    Engine::builder().tools(tools::native()).build()
}

/// Registers an executable of kodelet.
pub(crate) fn kodelet(engine: &Engine, dir: &Path, name: &str, script: &str) {
    let path = dir.join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let dialect = Kodelet::new();
    engine.register(HookSpec {
        tools: tools::of_hooks(&*dialect),
        ..HookSpec::new(
            EventKind::PreToolUse,
            name,
            Arc::new(CommandHandler::executable(&path, name, dialect)),
        )
    });
}

/// Registers a command whose event has the names of native files.
fn native(engine: &Engine, matcher: &str, line: &str) {
    let program = Program::Shell {
        shell: tenterhook_process::Shell::default(),
        line: line.to_owned(),
    };
    let handler = CommandHandler::new(Command::new(program), line, Native::new());
    engine.register(HookSpec {
        matcher: Matcher::parse(matcher).unwrap(),
        ..HookSpec::new(EventKind::PreToolUse, line, Arc::new(handler))
    });
}

pub(crate) fn reason(outcome: &Outcome<PreToolUse>) -> Option<String> {
    match outcome.decision() {
        Decision::Stop { reason, .. } => Some(reason.clone()),
        Decision::Proceed | Decision::Ask { .. } => None,
    }
}

pub(crate) const KODELET_GUARD: &str = r#"read -r event
case "$event" in
  *'"tool_name":"bash"'*'"command":"rm '*) echo '{"blocked":true,"reason":"no rm"}' ;;
esac"#;

#[tokio::test]
async fn a_guard_for_kodelets_bash_stops_our_shell() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    kodelet(&engine, dir.path(), "guard", KODELET_GUARD);
    let hooks = engine.dispatcher(Origin::default());
    assert_eq!(
        reason(&hooks.dispatch(shell("rm -rf /")).await).as_deref(),
        Some("no rm")
    );
    assert_eq!(reason(&hooks.dispatch(shell("ls")).await), None);
}

#[tokio::test]
async fn a_guard_for_operators_terminal_stops_our_shell() {
    let stage = Stage::new();
    let guard = "from operator_use.program.hooks import types as t\n\
        async def guard(event):\n    \
            if event.tool_name == 'terminal' and event.input['cmd'].startswith('rm'):\n        \
                return t.ToolCallEventResult(block=True, reason='no rm')\n\
        hooks = [('tool_call', guard)]\n";
    stage.add("operator", "guard.py", guard).await;
    let outcome = stage.hooks().dispatch(shell("rm -rf /")).await;
    assert_eq!(reason(&outcome).as_deref(), Some("no rm"));
    let outcome = stage.hooks().dispatch(shell("ls")).await;
    assert_eq!(reason(&outcome), None);
}

#[tokio::test]
async fn a_guard_for_pis_bash_stops_our_shell() {
    let stage = Stage::of_node();
    let guard = "export default function (pi) { pi.on('tool_call', async (event) => {\n\
        if (event.toolName === 'bash' && event.input.command.startsWith('rm')) return { block: true, reason: 'no rm' };\n\
        }); }";
    stage.add("pi", "guard.js", guard).await;
    let outcome = stage.hooks().dispatch(shell("rm -rf /")).await;
    assert_eq!(reason(&outcome).as_deref(), Some("no rm"));
    let outcome = stage.hooks().dispatch(shell("ls")).await;
    assert_eq!(reason(&outcome), None);
}

#[tokio::test]
async fn a_hook_for_morphix_bash_manager_changes_our_shell() {
    let stage = Stage::new();
    // morphix has no way to block, so its guards remove the command.
    let guard = "from core.hooks_registry import hooks_registry\n\
        @hooks_registry.register('on_before_tool')\n\
        async def guard(ctx):\n    \
            if ctx.tool_name == 'bash_manager' and ctx.parameters['command'].startswith('rm'):\n        \
                ctx.parameters['command'] = 'true'\n";
    stage.add("morphix", "guard.py", guard).await;
    let outcome = stage.hooks().dispatch(shell("rm -rf /")).await;
    assert_eq!(outcome.failures(), []);
    let changed = outcome.rewritten().expect("a rewrite");
    assert_eq!(changed.tool_input, object(&json!({ "cmd": "true" })));
}

#[tokio::test]
async fn a_rewrite_by_kodelets_hook_of_command_reaches_our_shells_cmd() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    let rewrite = r#"echo '{"input":{"command":"ls -l"}}'"#;
    kodelet(&engine, dir.path(), "rewrite", rewrite);
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell("ls"))
        .await;
    assert_eq!(outcome.failures(), []);
    let changed = outcome.rewritten().expect("a rewrite");
    assert_eq!(changed.tool_name, "shell");
    assert_eq!(changed.tool_input, object(&json!({ "cmd": "ls -l" })));
}

#[tokio::test]
async fn a_rewrite_that_cannot_be_translated_denies_the_call() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    let both = r#"echo '{"input":{"command":"ls","cmd":"rm -rf /"}}'"#;
    kodelet(&engine, dir.path(), "both", both);
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(shell("ls"))
        .await;
    let reason = reason(&outcome).expect("a stop");
    assert!(reason.contains("`cmd` is given twice"), "{reason}");
}

const PATCH: &str = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** Update File: .env\n@@\n-KEY=1\n+KEY=2\n\
                     *** Delete File: c.txt\n*** End Patch";

fn patch() -> PreToolUse {
    call("apply_patch", &json!({ "input": PATCH }))
}

/// Denies calls that touch `.env`, and writes each event to a file.
fn protect(dir: &Path) -> String {
    let seen = dir.join("seen").display().to_string();
    format!(
        "event=$(cat); echo \"$event\" >> '{seen}'; case \"$event\" in *'\"path\":\".env\"'*) echo 'not .env' >&2; exit 2;; esac"
    )
}

#[tokio::test]
async fn one_denied_file_of_a_patch_stops_the_patch() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    native(
        &engine,
        "edit_file|write_file|delete_file",
        &protect(dir.path()),
    );
    let made_by = |system| tools::of(system).unwrap();
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(made_by("kodelet"));
    let outcome = hooks.dispatch(patch()).await;
    assert_eq!(reason(&outcome).as_deref(), Some("not .env"));
    let seen = fs::read_to_string(dir.path().join("seen")).unwrap();
    let tools: Vec<Value> = seen
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["tool_name"].clone())
        .collect();
    assert_eq!(tools, ["write_file", "edit_file"]);
    let other = call(
        "apply_patch",
        &json!({ "input": PATCH.replace(".env", "b.txt") }),
    );
    assert_eq!(reason(&hooks.dispatch(other).await), None);
}

#[tokio::test]
async fn a_guard_of_one_operation_is_asked_for_that_operation_only() {
    let engine = engine();
    native(&engine, "delete_file", "echo 'no deletion' >&2; exit 2");
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    let outcome = hooks.dispatch(patch()).await;
    assert_eq!(reason(&outcome).as_deref(), Some("no deletion"));
    let edit = call(
        "file_edit",
        &json!({ "file_path": "a", "old_text": "1", "new_text": "2" }),
    );
    assert_eq!(reason(&hooks.dispatch(edit).await), None);
}

#[tokio::test]
async fn a_rewrite_of_a_patch_with_several_files_is_a_failure() {
    let engine = engine();
    engine.on(|event: &PreToolUse| {
        let mut input = event.tool_input.clone();
        input.insert("path".to_owned(), "elsewhere".into());
        Effect::none().replace_input(input)
    });
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    let outcome = hooks.dispatch(patch()).await;
    let reason = reason(&outcome).expect("a stop");
    assert!(
        reason.contains("the call consists of 3 operations"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_patch_that_cannot_be_parsed_stops_the_call() {
    let engine = engine();
    engine.on(|_: &PreToolUse| Effect::none());
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    let broken = call("apply_patch", &json!({ "input": "*** Begin Patch\nrm" }));
    let outcome = hooks.dispatch(broken).await;
    let reason = reason(&outcome).expect("a stop");
    assert!(
        reason.contains("does not end with `*** End Patch`"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_call_that_is_refused_before_any_hook_runs_is_in_the_journal() {
    let journal = Arc::new(MemoryJournal::default());
    let builder = Engine::builder().tools(tools::native());
    let engine = builder.journal(journal.clone()).build();
    engine.on(|_: &PreToolUse| Effect::none());
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    let broken = call("apply_patch", &json!({ "input": "*** Begin Patch\nrm" }));
    let outcome = hooks.dispatch(broken).await;
    assert!(reason(&outcome).is_some());
    let records = journal.take();
    let [JournalRecord::Dispatch(record)] = &records[..] else {
        panic!("{records:?}");
    };
    assert!(record.stopped);
    assert_eq!(record.subject.as_deref(), Some("apply_patch"));
    assert_eq!(record.failures.len(), 1);
}

#[tokio::test]
async fn a_rewrite_of_another_systems_call_keeps_its_names() {
    let engine = engine();
    engine.on(|event: &PreToolUse| {
        assert_eq!(event.tool_name, "shell");
        Effect::none().patch_input(object(&json!({ "cmd": "ls -l" })))
    });
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    let outcome = hooks
        .dispatch(call(
            "bash",
            &json!({ "command": "ls", "description": "list" }),
        ))
        .await;
    assert_eq!(outcome.failures(), []);
    let changed = outcome.rewritten().expect("a rewrite");
    assert_eq!(changed.tool_name, "bash");
    assert_eq!(
        changed.tool_input,
        object(&json!({ "command": "ls -l", "description": "list" }))
    );
}

#[tokio::test]
async fn a_hook_of_the_system_that_made_the_call_sees_the_call_itself() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    let count = dir.path().join("count").display().to_string();
    let guard = format!(
        "event=$(cat); echo x >> '{count}'; case \"$event\" in *'\"tool_name\":\"apply_patch\"'*KEY=2*) echo '{{\"blocked\":true,\"reason\":\"key\"}}';; esac"
    );
    kodelet(&engine, dir.path(), "guard", &guard);
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    assert_eq!(
        reason(&hooks.dispatch(patch()).await).as_deref(),
        Some("key")
    );
    let harmless = call(
        "apply_patch",
        &json!({ "input": PATCH.replace("KEY=2", "KEY=3") }),
    );
    assert_eq!(reason(&hooks.dispatch(harmless).await), None);
    assert_eq!(fs::read_to_string(&count).unwrap(), "x\nx\n", "once a call");
}

#[tokio::test]
async fn a_redactor_changes_the_result_of_a_patch() {
    let engine = engine();
    engine.on(|event: &PostToolUse| {
        let text = event.result.joined_text().replace("secret", "***");
        Effect::none().replace_content(vec![ContentBlock::text(text)])
    });
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    let outcome = hooks
        .dispatch(
            PostToolUse::new("apply_patch")
                .with_tool_input(object(&json!({ "input": PATCH })))
                .with_result(ToolResult::text("a secret")),
        )
        .await;
    assert_eq!(outcome.failures(), []);
    let changed = outcome.rewritten().expect("a rewrite");
    assert_eq!(changed.result.joined_text(), "a ***");
    assert_eq!(changed.tool_name, "apply_patch");
    assert_eq!(changed.tool_input, object(&json!({ "input": PATCH })));
}

#[tokio::test]
async fn a_native_matcher_bash_matches_shell() {
    for (matcher, is_matched) in [
        ("bash", true),
        ("terminal", true),
        ("bash_manager", true),
        ("shell", true),
        ("ba.*", true),
        ("grep", false),
    ] {
        let engine = engine();
        native(&engine, matcher, "echo no >&2; exit 2");
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(shell("ls"))
            .await;
        assert_eq!(reason(&outcome).is_some(), is_matched, "{matcher}");
    }
}

/// A host may call its own tool by the name that another system uses.
#[tokio::test]
async fn a_native_matcher_shell_matches_every_systems_name_of_the_shell() {
    for (tool, is_matched) in [
        ("bash", true),
        ("terminal", true),
        ("bash_manager", true),
        ("grep", false),
        ("shellfish", false),
    ] {
        let engine = engine();
        native(&engine, "shell", "echo no >&2; exit 2");
        let event = PreToolUse::new(tool.to_owned());
        let outcome = engine.dispatcher(Origin::default()).dispatch(event).await;
        assert_eq!(reason(&outcome).is_some(), is_matched, "{tool}");
    }
}

#[tokio::test]
async fn a_matcher_of_another_system_matches_its_own_names_only() {
    for (matcher, is_matched) in [("bash", true), ("shell", false), ("terminal", false)] {
        let engine = engine();
        let program = Program::Shell {
            shell: tenterhook_process::Shell::default(),
            line: r#"echo '{"blocked":true}'"#.to_owned(),
        };
        let dialect = Kodelet::new();
        let own = tools::of_hooks(&*dialect);
        let handler = CommandHandler::new(Command::new(program), "guard", dialect);
        engine.register(HookSpec {
            matcher: Matcher::parse(matcher).unwrap(),
            tools: own,
            ..HookSpec::new(EventKind::PreToolUse, "guard", Arc::new(handler))
        });
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(shell("ls"))
            .await;
        assert_eq!(reason(&outcome).is_some(), is_matched, "{matcher}");
    }
}

#[tokio::test]
async fn a_tool_that_is_not_built_in_keeps_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    let guard = r#"read -r event
case "$event" in *'"tool_name":"mcp__deploy"'*'"cmd":"x"'*) echo '{"blocked":true,"reason":"seen"}';; esac"#;
    kodelet(&engine, dir.path(), "guard", guard);
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(call("mcp__deploy", &json!({ "cmd": "x" })))
        .await;
    assert_eq!(reason(&outcome).as_deref(), Some("seen"));
}

#[tokio::test]
async fn a_task_for_another_agent_is_seen_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    let guard = r#"read -r event
case "$event" in *'"tool_name":"subagent"'*'"question":"delete all"'*) echo '{"blocked":true,"reason":"seen"}';; esac"#;
    kodelet(&engine, dir.path(), "guard", guard);
    let task = json!({ "agent": "helper", "task": "delete all" });
    let outcome = engine
        .dispatcher(Origin::default())
        .dispatch(call("transfer_task", &task))
        .await;
    assert_eq!(reason(&outcome).as_deref(), Some("seen"));
}

/// Operator's document says that a failing handler aborts nothing. This one never got to see the call.
#[tokio::test]
async fn a_call_that_a_guard_cannot_see_is_stopped_whatever_its_system_says_of_failures() {
    let stage = Stage::new();
    let guard = "async def guard(event):\n    return None\nhooks = [('tool_call', guard)]\n";
    stage.add("operator", "guard.py", guard).await;
    let unseen = json!({"path": "a", "old_text": "x", "new_text": "y", "edits": []});
    let outcome = stage.hooks().dispatch(call("edit_file", &unseen)).await;
    let reason = reason(&outcome).unwrap();
    assert!(reason.contains("`edits` is given twice"), "{reason}");
    let from_zero = json!({"path": "a", "offset": 0});
    let outcome = stage.hooks().dispatch(call("read_file", &from_zero)).await;
    assert_eq!(outcome.failures(), []);
}

/// Systems in Go read `COMMAND` as `command`, and the last one counts.
#[tokio::test]
async fn an_argument_in_other_case_stops_the_call() {
    for (system, tool, input) in [
        (
            "kodelet",
            "bash",
            json!({"command": "ls", "COMMAND": "sudo x"}),
        ),
        (
            "kodelet",
            "file_edit",
            json!({"File_Path": "/etc/p", "file_path": "a", "old_text": "x", "new_text": "y"}),
        ),
        (
            "kodelet",
            "apply_patch",
            json!({"input": "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch", "Input": "x"}),
        ),
        (
            "docker-agent",
            "shell",
            json!({"cmd": "ls", "CMD": "sudo x"}),
        ),
    ] {
        let engine = engine();
        native(&engine, "*", "true");
        let hooks = engine
            .dispatcher(Origin::default())
            .with_tools(tools::of(system).unwrap());
        let outcome = hooks.dispatch(call(tool, &input)).await;
        let reason = reason(&outcome).unwrap_or_else(|| panic!("{system} {input} went on"));
        assert!(reason.contains("did you mean"), "{system}: {reason}");
    }
}

#[tokio::test]
async fn an_answer_with_a_key_that_stands_twice_denies() {
    for answer in [
        r#"{"decision":"deny","reason":"x","decision":"allow"}"#,
        r#"{"hook_specific_output":{"permission_decision":"deny","permission_decision":"allow"}}"#,
        r#"{"effect":{"permission":{"permission":"deny","permission":"allow"}}}"#,
    ] {
        let engine = engine();
        native(&engine, "*", &format!("echo '{answer}'"));
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(shell("ls"))
            .await;
        let reason = reason(&outcome).unwrap_or_else(|| panic!("{answer} went on"));
        assert!(reason.contains("appears twice"), "{reason}");
    }
}

#[tokio::test]
async fn a_misspelt_decision_next_to_other_keys_denies() {
    for answer in [
        r#"{"continue":true,"decison":"deny"}"#,
        r#"{"additional_context":"c","decison":"deny"}"#,
        r#"{"effect":{},"decison":"deny"}"#,
        r#"{"updated_input":{},"decison":"deny"}"#,
        r#"{"continue":true,"stop_reason":"no"}"#,
    ] {
        let engine = engine();
        native(&engine, "*", &format!("echo '{answer}'"));
        let outcome = engine
            .dispatcher(Origin::default())
            .dispatch(shell("ls"))
            .await;
        assert!(reason(&outcome).is_some(), "{answer} went on");
    }
}

#[tokio::test]
async fn a_tool_name_in_another_letter_case_is_judged_as_the_tool() {
    let engine = engine();
    native(&engine, "shell", "echo 'no shell' >&2; exit 2");
    for (host, name, expected) in [
        ("claude-code", "bash", true),
        ("claude-code", "BASH", true),
        ("codex", "bash", true),
        ("copilot", "Bash", true),
        ("gemini", "Run_Shell_Command", true),
        ("claude-code", "bash2", false),
    ] {
        let host = HOSTS.iter().find(|known| known.name == host).unwrap();
        let hooks = engine
            .dispatcher(Origin::default())
            .with_tools(Arc::new(host.tools.clone()));
        let outcome = hooks
            .dispatch(call(name, &json!({ "command": "deploy" })))
            .await;
        assert_eq!(reason(&outcome).is_some(), expected, "{name}");
    }
    // Our own agent knows its tools exactly. To it, this is a tool that no table has.
    let hooks = engine.dispatcher(Origin::default());
    for (name, expected) in [("Shell", true), ("Shellac", false)] {
        let call = call(name, &json!({ "cmd": "deploy" }));
        let outcome = hooks.dispatch(call).await;
        assert_eq!(reason(&outcome).is_some(), expected, "{name}");
    }
}

#[tokio::test]
async fn a_guard_of_the_calling_system_sees_the_tool_in_its_own_spelling() {
    let dir = tempfile::tempdir().unwrap();
    let engine = engine();
    kodelet(&engine, dir.path(), "guard", KODELET_GUARD);
    kodelet(
        &engine,
        dir.path(),
        "rewrite",
        r#"echo '{"input":{"command":"ls -l"}}'"#,
    );
    let hooks = engine
        .dispatcher(Origin::default())
        .with_tools(tools::of("kodelet").unwrap());
    let made = |command: &str| call("Bash", &json!({ "command": command }));
    let outcome = hooks.dispatch(made("rm -rf /")).await;
    assert_eq!(reason(&outcome).as_deref(), Some("no rm"));
    let outcome = hooks.dispatch(made("ls")).await;
    let changed = outcome.rewritten().expect("a rewrite");
    // The agent gets the name that it wrote.
    assert_eq!(changed.tool_name, "Bash");
    assert_eq!(changed.tool_input, object(&json!({ "command": "ls -l" })));
}
