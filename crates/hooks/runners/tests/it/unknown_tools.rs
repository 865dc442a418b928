//! Guards for the shell against tools that run commands under names of their own. Each test is an attack.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_engine::event::{PostToolUse, PreToolUse};
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{
    Dispatcher, Effect, Engine, EventKind, HookSpec, Matcher, MemoryJournal, Origin, Phase,
};
use tenterhook_process::{Command, Program, Shell};
use tenterhook_runners::CommandHandler;
use tenterhook_systems::{HOSTS, tools};

use crate::guards::{KODELET_GUARD, call, engine, kodelet, object, reason};

/// Registers a command of Claude Code.
fn claude_code(engine: &Engine, matcher: &str, line: &str) {
    let settings = tenterhook_systems::claude_code::SYSTEM.settings.unwrap();
    let dialect = (settings.dialect)(settings.event("PreToolUse").unwrap(), None);
    let program = Program::Shell {
        shell: Shell::default(),
        line: line.to_owned(),
    };
    let tools = tools::of_hooks(&*dialect);
    let handler = CommandHandler::new(Command::new(program), line, dialect);
    engine.register(HookSpec {
        matcher: Matcher::parse(matcher).unwrap(),
        tools,
        ..HookSpec::new(EventKind::PreToolUse, line, Arc::new(handler))
    });
}

/// Denies `rm` as a guard of Claude Code for `Bash`.
const CLAUDE_GUARD: &str = r#"event=$(cat); case "$event" in
*'"tool_name":"Bash"'*'"command":"rm '*) echo 'no rm' >&2; exit 2;; esac"#;

/// Denies `rm` in the shell.
fn no_rm(event: &PreToolUse) -> Effect<PreToolUse> {
    let cmd = event.tool_input.get("cmd").and_then(Value::as_str);
    match cmd {
        Some(cmd) if event.tool_name == "shell" && cmd.contains("rm ") => Effect::deny("no rm"),
        _ => Effect::none(),
    }
}

fn shell_guard(engine: &Engine) {
    let matcher = Matcher::parse("shell").unwrap();
    engine.hook("no-rm").matcher(matcher).on(no_rm);
}

fn hooks(engine: &Engine, system: &str) -> Dispatcher {
    let hooks = engine.dispatcher(Origin::default());
    match HOSTS.iter().find(|host| host.name == system) {
        Some(host) => hooks.with_tools(Arc::new(host.tools.clone())),
        None => hooks.with_tools(tools::of(system).unwrap()),
    }
}

/// A tool of an MCP server, and its arguments. Each runs `rm -rf /`.
fn attacks() -> Vec<(&'static str, Value)> {
    let line = "rm -rf /";
    vec![
        ("mcp__box__start", json!({ "command": line })),
        ("mcp__box__start", json!({ "cmd": line, "cwd": "/" })),
        ("mcp__box__start", json!({ "Command": line })),
        ("mcp__box__start", json!({ "script": line })),
        ("mcp__box__start", json!({ "shell": line })),
        ("mcp__box__start", json!({ "args": ["rm", "-rf", "/"] })),
        (
            "mcp__box__start",
            json!({ "argv": ["/bin/rm", "-rf", "/"] }),
        ),
        (
            "mcp__box__start",
            json!({ "command": "rm", "args": ["-rf", "/"] }),
        ),
        ("mcp__box__start", json!({ "command": ["rm", "-rf", "/"] })),
        // The tool runs only one of them, and no one knows which.
        (
            "mcp__box__start",
            json!({ "cmd": "ls -l", "command": line }),
        ),
        (
            "mcp__box__start",
            json!({ "command": "ls -l", "script": line }),
        ),
        (
            "mcp__box__start",
            json!({ "command": line, "shell": "bash" }),
        ),
        (
            "mcp__box__start",
            json!({ "command": "A=1 rm -rf /", "path": "/x" }),
        ),
    ]
}

#[tokio::test]
async fn a_shell_guard_stops_a_tool_that_no_table_has() {
    for host in HOSTS {
        for (tool, input) in attacks() {
            let engine = engine();
            shell_guard(&engine);
            let outcome = hooks(&engine, host.name).dispatch(call(tool, &input)).await;
            assert_eq!(
                reason(&outcome).as_deref(),
                Some("no rm"),
                "{}: {input}",
                host.name
            );
        }
    }
}

#[tokio::test]
async fn shell_guards_of_other_systems_see_the_tool_by_their_name_of_the_shell() {
    let dir = tempfile::tempdir().unwrap();
    let input = json!({ "command": "rm -rf /" });
    for host in ["claude-code", "codex", "gemini", "opencode"] {
        let engine = engine();
        kodelet(&engine, dir.path(), "guard", KODELET_GUARD);
        let outcome = hooks(&engine, host)
            .dispatch(call("box__start", &input))
            .await;
        assert_eq!(
            reason(&outcome).as_deref(),
            Some("no rm"),
            "kodelet under {host}"
        );
        let engine = self::engine();
        claude_code(&engine, "Bash", CLAUDE_GUARD);
        let outcome = hooks(&engine, host)
            .dispatch(call("box__start", &input))
            .await;
        assert_eq!(
            reason(&outcome).as_deref(),
            Some("no rm"),
            "Claude Code under {host}"
        );
    }
}

#[tokio::test]
async fn an_extensions_tool_of_our_own_agent_is_seen_too() {
    let engine = engine();
    shell_guard(&engine);
    let hooks = engine.dispatcher(Origin::default());
    for (tool, input) in attacks() {
        let outcome = hooks.dispatch(call(tool, &input)).await;
        assert_eq!(reason(&outcome).as_deref(), Some("no rm"), "{input}");
    }
}

#[tokio::test]
async fn a_shell_of_a_host_under_another_name_is_seen_by_the_hosts_own_shell_guards() {
    for (input, is_denied) in [
        (
            json!({ "command": "rm -rf /", "description": "d", "timeout_ms": 1000 }),
            true,
        ),
        (
            json!({ "description": "d", "ws": { "url": "wss://a.example" } }),
            false,
        ),
    ] {
        let engine = engine();
        claude_code(&engine, "Bash", CLAUDE_GUARD);
        shell_guard(&engine);
        let outcome = hooks(&engine, "claude-code")
            .dispatch(call("Monitor", &input))
            .await;
        assert_eq!(reason(&outcome).is_some(), is_denied, "{input}");
    }
    for (host, tool, input) in [
        ("vibe", "process.start", json!({ "command": "rm -rf /" })),
        (
            "vibe",
            "process.write",
            json!({ "processId": "p", "text": "rm -rf /" }),
        ),
        (
            "qwen",
            "monitor",
            json!({ "command": "rm -rf /", "directory": "/" }),
        ),
        (
            "copilot",
            "write_bash",
            json!({ "shellId": "1", "input": "rm -rf /" }),
        ),
        (
            "copilot",
            "write_powershell",
            json!({ "shellId": "1", "input": "rm -rf /" }),
        ),
    ] {
        let engine = engine();
        shell_guard(&engine);
        let outcome = hooks(&engine, host).dispatch(call(tool, &input)).await;
        assert_eq!(reason(&outcome).as_deref(), Some("no rm"), "{tool}");
    }
}

#[tokio::test]
async fn a_guard_of_the_tools_own_name_sees_the_call_as_it_was_made() {
    let seen: Arc<Mutex<Vec<(String, Value)>>> = Arc::default();
    let engine = engine();
    shell_guard(&engine);
    for matcher in ["mcp__box__.*", "*"] {
        let seen = Arc::clone(&seen);
        let hook = engine
            .hook(matcher)
            .matcher(Matcher::parse(matcher).unwrap());
        hook.on(move |event: &PreToolUse| {
            let call = (event.tool_name.clone(), event.tool_input.clone().into());
            seen.lock().push(call);
        });
    }
    let input = json!({ "command": "ls -l", "host": "db" });
    let outcome = hooks(&engine, "claude-code")
        .dispatch(call("mcp__box__start", &input))
        .await;
    assert_eq!(reason(&outcome), None);
    let own = ("mcp__box__start".to_owned(), input);
    let shell = ("shell".to_owned(), json!({ "host": "db", "cmd": "ls -l" }));
    // A hook without a matcher judges the call under both names.
    assert_eq!(*seen.lock(), [own.clone(), own, shell]);
}

#[tokio::test]
async fn a_hook_that_allows_a_command_does_not_allow_a_tool_that_may_do_more() {
    for (tool, is_allowed) in [
        ("mcp__box__start", false),
        ("Monitor", true),
        ("Bash", true),
    ] {
        let engine = engine();
        let hook = engine
            .hook("allow")
            .matcher(Matcher::parse("shell").unwrap());
        hook.on(|_: &PreToolUse| Effect::<PreToolUse>::allow());
        let input = json!({ "command": "git status", "then": "push" });
        let outcome = hooks(&engine, "claude-code")
            .dispatch(call(tool, &input))
            .await;
        assert_eq!(outcome.is_allowed(), is_allowed, "{tool}");
    }
}

#[tokio::test]
async fn a_canonical_call_is_judged_once_whichever_system_makes_it() {
    for system in ["kodelet", "claude-code", "goose"] {
        let count = Arc::new(Mutex::new(0));
        let engine = engine();
        let counted = Arc::clone(&count);
        engine.on(move |_: &PreToolUse| *counted.lock() += 1);
        let _outcome = hooks(&engine, system)
            .dispatch(call("shell", &json!({ "cmd": "ls -l" })))
            .await;
        assert_eq!(*count.lock(), 1, "{system}");
    }
}

#[tokio::test]
async fn an_observer_receives_the_call_once() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let engine = engine();
    for matcher in ["*", "shell"] {
        let seen = Arc::clone(&seen);
        let hook = engine
            .hook(matcher)
            .matcher(Matcher::parse(matcher).unwrap());
        hook.on(move |event: &PostToolUse| seen.lock().push(event.tool_name.clone()));
    }
    let event =
        PostToolUse::new("mcp__box__start").with_tool_input(object(&json!({ "command": "ls -l" })));
    let _outcome = hooks(&engine, "codex").dispatch(event).await;
    assert_eq!(*seen.lock(), ["mcp__box__start", "shell"]);
}

#[tokio::test]
async fn a_rewrite_goes_back_into_the_field_with_the_command() {
    for (host, tool, input, expected) in [
        (
            "claude-code",
            "mcp__box__start",
            json!({ "command": "ls -a", "host": "db" }),
            json!({ "host": "db", "command": "ls -l" }),
        ),
        (
            "goose",
            "box__start",
            json!({ "Script": "ls -a" }),
            json!({ "Script": "ls -l" }),
        ),
        (
            "claude-code",
            "Monitor",
            json!({ "command": "ls -a", "timeout_ms": 2000 }),
            json!({ "timeout_ms": 2000, "command": "ls -l" }),
        ),
        (
            "vibe",
            "process.start",
            json!({ "command": "ls -a" }),
            json!({ "command": "ls -l" }),
        ),
    ] {
        for is_patch in [true, false] {
            let engine = engine();
            let hook = engine
                .hook("rewrite")
                .matcher(Matcher::parse("shell").unwrap());
            hook.on(move |event: &PreToolUse| {
                let mut input = event.tool_input.clone();
                input.insert("cmd".to_owned(), "ls -l".into());
                if is_patch {
                    Effect::none().patch_input(object(&json!({ "cmd": "ls -l" })))
                } else {
                    Effect::none().replace_input(input)
                }
            });
            // A guard of the tool's own name judges the final call.
            let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
            let kept = Arc::clone(&seen);
            let guard = engine.hook("guard").phase(Phase::Guard);
            guard.on(move |event: &PreToolUse| kept.lock().push(event.tool_input.clone().into()));
            let outcome = hooks(&engine, host).dispatch(call(tool, &input)).await;
            assert_eq!(outcome.failures(), []);
            let changed = outcome.rewritten().expect("a rewrite");
            assert_eq!(changed.tool_name, tool);
            assert_eq!(Value::Object(changed.tool_input.clone()), expected);
            let seen = seen.lock();
            assert!(
                seen.iter().all(|input| input.to_string().contains("ls -l")),
                "{seen:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_rewrite_that_has_no_place_in_the_call_denies_it() {
    for input in [
        json!({ "command": "git", "args": ["status"] }),
        json!({ "command": "ls -a", "script": "git status" }),
    ] {
        let engine = engine();
        let hook = engine
            .hook("rewrite")
            .matcher(Matcher::parse("shell").unwrap());
        hook.on(|_: &PreToolUse| Effect::none().patch_input(object(&json!({ "cmd": "ls -l" }))));
        let outcome = hooks(&engine, "codex")
            .dispatch(call("mcp__box__start", &input))
            .await;
        let reason = reason(&outcome).expect("a stop");
        assert!(
            reason.contains("hooks can judge it, but not change it"),
            "{reason}"
        );
    }
}

#[tokio::test]
async fn the_journal_says_why_a_call_was_read_as_one_to_the_shell() {
    let journal = Arc::new(MemoryJournal::default());
    let builder = Engine::builder().tools(tools::native());
    let engine = builder.journal(journal.clone()).build();
    shell_guard(&engine);
    let hooks = hooks(&engine, "claude-code");
    for (tool, input, why) in [
        (
            "mcp__box__start",
            json!({ "command": "ls -l" }),
            Some("no table has this tool, and `command` can be a command line"),
        ),
        ("Bash", json!({ "command": "ls -l" }), None),
        ("Monitor", json!({ "command": "ls -l" }), None),
    ] {
        let _outcome = hooks.dispatch(call(tool, &input)).await;
        let records = journal.take();
        let [JournalRecord::Run(_), JournalRecord::Dispatch(record)] = &records[..] else {
            panic!("{records:?}");
        };
        assert_eq!(record.read_as_shell.as_deref(), why);
    }
}

#[tokio::test]
async fn tools_that_run_nothing_are_not_taken_for_a_shell() {
    let engine = engine();
    let hook = engine
        .hook("no-shell")
        .matcher(Matcher::parse("shell").unwrap());
    hook.on(|_: &PreToolUse| Effect::<PreToolUse>::deny("no shell"));
    let hooks = hooks(&engine, "claude-code");
    for (tool, input) in [
        ("file_editor", json!({ "command": "view" })),
        (
            "file_editor",
            json!({ "command": "str_replace", "path": "/a", "old_str": "rm -rf /" }),
        ),
        (
            "str_replace_based_edit_tool",
            json!({ "command": "undo_edit", "path": "/a" }),
        ),
        (
            "memory",
            json!({ "command": "delete", "path": "/memories/a" }),
        ),
        (
            "task_tracker",
            json!({ "command": "plan", "task_list": [] }),
        ),
        (
            "mcp__puppeteer__puppeteer_evaluate",
            json!({ "script": "document.title" }),
        ),
        (
            "mcp__devtools__evaluate_script",
            json!({ "function": "() => 1", "args": ["1_5"] }),
        ),
        (
            "mcp__k8s__kubectl_generic",
            json!({ "command": "rollout", "args": ["status", "x"] }),
        ),
        (
            "mcp__x__load",
            json!({ "script": "https://a.example/x.js" }),
        ),
        (
            "mcp__x__count",
            json!({ "command": 1, "args": [], "cmd": " ", "script": null }),
        ),
        (
            "Workflow",
            json!({ "script": "export const meta = {}\nrm()" }),
        ),
        ("SlashCommand", json!({ "command": "/review all files" })),
    ] {
        let outcome = hooks.dispatch(call(tool, &input)).await;
        assert_eq!(reason(&outcome), None, "{tool} {input}");
    }
}

#[tokio::test]
async fn a_command_that_an_earlier_hook_removed_is_not_judged() {
    let engine = engine();
    let hook = engine
        .hook("remove")
        .matcher(Matcher::parse("mcp__.*").unwrap());
    hook.phase(Phase::Transform)
        .on(|_: &PreToolUse| Effect::none().replace_input(object(&json!({ "command": "view" }))));
    shell_guard(&engine);
    let input = json!({ "command": "rm -rf /" });
    let outcome = hooks(&engine, "codex")
        .dispatch(call("mcp__box__start", &input))
        .await;
    assert_eq!(reason(&outcome), None);
    let changed = outcome.rewritten().expect("a rewrite");
    assert_eq!(changed.tool_input, object(&json!({ "command": "view" })));
}
