//! Hook files of coding agents, as people write them, run here without a change.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tenterhook_discovery::{LoadOptions, Loaded, load_file, load_files};
use tenterhook_engine::event::{
    PostToolUse, PreToolUse, SessionSource, SessionStart, Stop, UserPromptSubmit,
};
use tenterhook_engine::{
    Decision, Dispatcher, Engine, Event, Layer, Origin, Outcome, Scope, ToolResult,
};

use crate::options;

/// A folder with files of hooks, in which they run.
pub(crate) struct Session {
    pub(crate) dir: tempfile::TempDir,
    is_strict: bool,
    host: Option<&'static str>,
}

impl Session {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Self {
            dir,
            is_strict: false,
            host: None,
        }
    }

    pub(crate) fn options(&self) -> LoadOptions {
        LoadOptions {
            directory: self.dir.path().to_owned(),
            host: self.host,
            ..options()
        }
    }

    pub(crate) fn load(&self, file: &str) -> Loaded {
        let path = self.dir.path().join(file);
        load_file(&path, Layer::Explicit, &self.options())
            .unwrap_or_else(|error| panic!("{}", error.render(false)))
    }

    fn dispatcher(&self, loaded: Loaded) -> Dispatcher {
        let builder = Engine::builder().strict(self.is_strict);
        let engine = builder.tools(tenterhook_systems::tools::native()).build();
        engine.scope(Scope::Global).replace(loaded.specs);
        engine.dispatcher(Origin::new("s1", self.dir.path().to_owned()))
    }

    pub(crate) async fn send<E: Event>(&self, file: &str, event: E) -> Outcome<E> {
        self.dispatcher(self.load(file)).dispatch(event).await
    }
}

pub(crate) const CLAUDE: &str = ".claude/settings.json";
pub(crate) const CODEX: &str = ".codex/hooks.json";
const COPILOT: &str = ".github/hooks/guard.json";

pub(crate) fn call(tool: &str, input: &Value) -> PreToolUse {
    PreToolUse::new(tool).with_tool_input(input.as_object().unwrap().clone())
}

pub(crate) fn shell(cmd: &str) -> PreToolUse {
    call("shell", &json!({ "cmd": cmd }))
}

/// Returns Claude Code's settings with one hook before tool calls.
pub(crate) fn claude(hook: &Value, matcher: &str) -> String {
    let settings = json!({
        "permissions": { "allow": ["Bash(ls)"] },
        "hooks": { "PreToolUse": [{ "matcher": matcher, "hooks": [hook] }] },
    });
    settings.to_string()
}

async fn claude_decides(hook: &Value, event: PreToolUse) -> (Decision, Vec<bool>) {
    let session = Session::new(&[(CLAUDE, &claude(hook, "Bash"))]);
    let outcome = session.send(CLAUDE, event).await;
    let let_through = outcome.failures().iter().map(|it| it.let_through).collect();
    (outcome.decision(), let_through)
}

pub(crate) fn command(line: &str) -> Value {
    json!({ "type": "command", "command": line })
}

#[tokio::test]
async fn a_guard_sees_the_names_of_its_own_system_and_denies_with_its_reason() {
    let guard = r#"grep -q '"tool_name":"Bash".*"command":"rm -rf' && echo no rm -rf >&2 && exit 2; exit 0"#;
    let (decision, _) = claude_decides(&command(guard), shell("rm -rf /")).await;
    assert_eq!(decision.reason(), Some("no rm -rf"));
    let (decision, failures) = claude_decides(&command(guard), shell("ls")).await;
    assert_eq!((decision, failures), (Decision::Proceed, vec![]));
}

#[tokio::test]
async fn documented_statuses_warn_and_all_other_failures_of_a_gate_deny() {
    for (line, is_denied, failures) in [
        ("exit 0", false, vec![]),
        ("exit 1", false, vec![true]),
        ("echo oops >&2; exit 3", false, vec![true]),
        ("./missing-guard.sh", true, vec![false]),
        ("sh -c 'kill -9 $$'; exit $?", true, vec![false]),
        ("exit 2", true, vec![]),
        ("kill -9 $$", true, vec![false]),
        ("echo '{\"decision\": '", true, vec![false]),
        (
            "echo '{\"permissionDecison\": \"deny\"}'",
            true,
            vec![false],
        ),
        ("echo plain text", false, vec![]),
        ("/nonexistent/guard", true, vec![false]),
    ] {
        let (decision, found) = claude_decides(&command(line), shell("ls")).await;
        assert_eq!(!decision.is_proceed(), is_denied, "{line}: {decision:?}");
        assert_eq!(found, failures, "{line}");
    }
    let late = json!({ "type": "command", "command": "sleep 30", "timeout": 1 });
    let (decision, failures) = claude_decides(&late, shell("ls")).await;
    assert!(!decision.is_proceed());
    assert_eq!(failures, [false]);
}

#[tokio::test]
async fn a_status_that_warns_denies_if_the_file_or_the_user_says_so() {
    let closed = json!({ "type": "command", "command": "exit 1", "onFailure": "block" });
    let (decision, _) = claude_decides(&closed, shell("ls")).await;
    assert!(!decision.is_proceed());
    let mut session = Session::new(&[(CLAUDE, &claude(&command("exit 1"), ""))]);
    session.is_strict = true;
    let outcome = session.send(CLAUDE, shell("ls")).await;
    assert!(!outcome.decision().is_proceed());
}

#[tokio::test]
async fn an_answer_counts_only_if_it_names_its_event() {
    for (name, expected) in [("PreToolUse", "no"), ("PostToolUse", "expected")] {
        let line = format!(
            r#"echo '{{"hookSpecificOutput": {{"hookEventName": "{name}", "permissionDecision": "deny", "permissionDecisionReason": "no"}}}}'"#
        );
        let (decision, _) = claude_decides(&command(&line), shell("ls")).await;
        let reason = decision.reason().unwrap();
        assert!(reason.contains(expected), "{reason}");
    }
}

#[tokio::test]
async fn a_hook_that_prints_the_event_has_no_opinion() {
    for (line, is_denied) in [
        ("cat", false),
        ("cat; exit 2", true),
        // A misspelt decision next to the event is still a failure.
        (r#"sed 's/^{/{"permissionDecison":"deny",/'"#, true),
        (r#"sed 's/^{/{"decision":"block","reason":"no",/'"#, true),
        (r#"sed 's/"PreToolUse"/"PostToolUse"/'"#, true),
    ] {
        let (decision, _) = claude_decides(&command(line), shell("ls")).await;
        assert_eq!(!decision.is_proceed(), is_denied, "{line}: {decision:?}");
    }
}

#[tokio::test]
async fn changed_arguments_become_those_of_the_host() {
    let line = r#"echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"command": "ls -l", "timeout": 2000}}}'"#;
    let session = Session::new(&[(CLAUDE, &claude(&command(line), "Bash|Edit"))]);
    let hooks = session.dispatcher(session.load(CLAUDE));
    let dispatched = hooks.dispatch_any(Box::new(shell("ls"))).await;
    let (_, input) = dispatched.event.event().tool_call().unwrap();
    assert_eq!(json!(input), json!({ "cmd": "ls -l", "timeout": 2 }));
}

#[tokio::test]
async fn a_condition_selects_calls() {
    let guard = json!({ "type": "command", "command": "exit 2", "if": "Bash(git *)" });
    for (cmd, is_denied) in [("git push", true), ("ls", false)] {
        let (decision, _) = claude_decides(&guard, shell(cmd)).await;
        assert_eq!(!decision.is_proceed(), is_denied, "{cmd}");
    }
}

#[tokio::test]
async fn a_hook_that_its_agent_does_not_wait_for_stops_nothing() {
    let logger = json!({ "type": "command", "command": "exit 2", "async": true });
    let (decision, _) = claude_decides(&logger, shell("ls")).await;
    assert_eq!(decision, Decision::Proceed);
}

#[tokio::test]
async fn programs_find_the_folder_of_the_project() {
    let hook = json!({
        "type": "command",
        "command": "${CLAUDE_PROJECT_DIR}/.claude/hooks/my guard.sh",
        "args": ["--in", "${CLAUDE_PROJECT_DIR}"],
    });
    let script = "#!/bin/sh\ntest \"$2\" = \"$CLAUDE_PROJECT_DIR\" && echo found >&2; exit 2\n";
    let session = Session::new(&[
        (CLAUDE, &claude(&hook, "Bash")),
        (".claude/hooks/my guard.sh", script),
    ]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let path = session.dir.path().join(".claude/hooks/my guard.sh");
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let outcome = session.send(CLAUDE, shell("ls")).await;
    assert_eq!(outcome.decision().reason(), Some("found"));
}

const EVENTS: &str = r#"{
  "hooks": {
    "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "echo be brief"}]}],
    "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo '{\"decision\": \"block\", \"reason\": \"no secrets\"}'"}]}],
    "PostToolUse": [{"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PostToolUse\", \"additionalContext\": \"run the formatter\"}}'"}]}],
    "PostToolUseFailure": [{"hooks": [{"type": "command", "command": "grep -o '\"error\":\"[^\"]*\"' >&2; exit 2"}]}],
    "Stop": [{"hooks": [{"type": "command", "command": "echo run the tests >&2; exit 2"}]}]
  }
}"#;

#[tokio::test]
async fn each_event_has_the_effects_that_its_system_documents() {
    let session = Session::new(&[(CLAUDE, EVENTS)]);
    let started = session
        .send(CLAUDE, SessionStart::new(SessionSource::Startup))
        .await;
    assert_eq!(started.context(), ["be brief"]);
    let resumed = session
        .send(CLAUDE, SessionStart::new(SessionSource::Resume))
        .await;
    assert!(resumed.context().is_empty());
    let prompt = session.send(CLAUDE, UserPromptSubmit::new("x")).await;
    assert_eq!(prompt.decision().reason(), Some("no secrets"));
    let result = |tool: &str, result| PostToolUse::new(tool).with_result(result);
    let wrote = result("write_file", ToolResult::text("ok"));
    let written = session.send(CLAUDE, wrote).await;
    assert_eq!(written.context(), ["run the formatter"]);
    let failed = session
        .send(CLAUDE, result("write_file", ToolResult::error("denied")))
        .await;
    assert_eq!(failed.context(), ["\"error\":\"denied\""]);
    let stopped = session.send(CLAUDE, Stop::new()).await;
    assert_eq!(stopped.follow_up(), ["run the tests"]);
}

#[tokio::test]
async fn a_guard_of_patches_sees_edits_of_other_agents() {
    let settings = json!({ "hooks": { "PreToolUse": [{
        "matcher": "apply_patch|Edit|Write",
        "hooks": [command("grep -q 'Update File: .env' && echo no .env >&2 && exit 2; exit 0")],
    }] } });
    let session = Session::new(&[(CODEX, &settings.to_string())]);
    let edit = |path: &str| {
        call(
            "edit_file",
            &json!({ "path": path, "old_text": "a", "new_text": "b" }),
        )
    };
    let denied = session.send(CODEX, edit(".env")).await;
    assert_eq!(denied.decision().reason(), Some("no .env"));
    assert!(
        session
            .send(CODEX, edit("a.rs"))
            .await
            .decision()
            .is_proceed()
    );
}

#[tokio::test]
async fn codex_hooks_block_only_with_a_reason_and_answer_only_with_known_keys() {
    for (line, is_denied, failures) in [
        ("exit 2", false, vec![true]),
        ("echo no >&2; exit 2", true, vec![]),
        ("exit 1", false, vec![true]),
        (
            r#"echo '{"decision": "block", "reason": "no"}'"#,
            true,
            vec![],
        ),
        (
            r#"echo '{"decision": "block", "reason": "no", "zzz": 1}'"#,
            true,
            vec![false],
        ),
    ] {
        let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [command(line)] }] } });
        let session = Session::new(&[(CODEX, &settings.to_string())]);
        let outcome = session.send(CODEX, shell("ls")).await;
        let found: Vec<bool> = outcome.failures().iter().map(|it| it.let_through).collect();
        assert_eq!(!outcome.decision().is_proceed(), is_denied, "{line}");
        assert_eq!(found, failures, "{line}");
    }
}

#[tokio::test]
async fn every_status_of_a_copilot_guard_but_0_denies() {
    for (line, reason) in [
        ("exit 0", None),
        ("echo no >&2; exit 1", Some("no")),
        (
            r#"echo '{"permissionDecision":"deny","permissionDecisionReason":"never"}'"#,
            Some("never"),
        ),
        (
            r#"grep -q '"toolName":"bash"' || exit 0; exit 3"#,
            Some("a hook exited with status 3"),
        ),
    ] {
        let hooks = json!({ "version": 1, "hooks": { "preToolUse": [
            { "type": "command", "bash": line, "timeoutSec": 10, "matcher": "bash|edit" },
        ] } });
        let session = Session::new(&[(COPILOT, &hooks.to_string())]);
        let outcome = session.send(COPILOT, shell("ls")).await;
        assert_eq!(outcome.decision().reason(), reason, "{line}");
    }
}

#[tokio::test]
async fn a_hook_file_imports_the_files_of_agents_but_not_those_of_its_host() {
    let files = [
        ("hooks.yaml", "import:\n  - .claude/settings.json\n"),
        (CLAUDE, &claude(&command("exit 2"), "Bash")),
    ];
    let mut session = Session::new(&files);
    let outcome = session.send("hooks.yaml", shell("ls")).await;
    assert!(!outcome.decision().is_proceed());
    let loaded = session.load("hooks.yaml");
    assert_eq!(loaded.files_without_hooks().count(), 0);
    session.host = Some("codex");
    let names = |session: &Session| {
        let path = session.dir.path().join("hooks.yaml");
        let loaded = load_files([(path, Layer::User)], &session.options()).unwrap();
        let names = loaded.specs.iter().map(|spec| spec.id.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names(&session), ["PreToolUse#1"]);
    session.host = Some("claude-code");
    assert_eq!(names(&session), [""; 0]);
}

#[test]
fn an_import_that_is_missing_or_imports_others_is_an_error() {
    let session = Session::new(&[
        ("hooks.yaml", "import: nowhere.json\n"),
        ("outer.yaml", "import: inner.yaml\n"),
        ("inner.yaml", "import: more.yaml\n"),
        ("more.yaml", "hooks: []\n"),
    ]);
    for (file, expected) in [
        ("hooks.yaml", "cannot import `nowhere.json`"),
        ("outer.yaml", "imports other files"),
    ] {
        let path = session.dir.path().join(file);
        let error = load_file(&path, Layer::User, &session.options()).unwrap_err();
        let text = error.render(false);
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_guard_that_needs_its_agent_is_an_error_and_a_logger_a_warning() {
    let hook = json!({ "type": "prompt", "prompt": "Is this safe? $ARGUMENTS" });
    let load = |event: &str| {
        let settings = json!({ "hooks": { event: [{ "hooks": [hook] }] } });
        crate::load(CLAUDE, &settings.to_string())
    };
    let error = load("PreToolUse").unwrap_err().render(false);
    assert!(
        error.contains("hooks of the type `prompt` need the agent"),
        "{error}"
    );
    let loaded = load("Notification").unwrap();
    assert_eq!(loaded.warnings.len(), 1);
}

#[test]
fn the_entry_of_tenterhook_itself_is_not_imported() {
    let own = command("'/my data/bin/tenterhook-shim' claude-code PreToolUse");
    let loaded = crate::load(CLAUDE, &claude(&own, "")).unwrap();
    assert!(loaded.specs.is_empty());
}

#[test]
fn a_matcher_is_shown_as_it_was_written() {
    let loaded = crate::load(CLAUDE, &claude(&command("true"), "mcp__.*__write")).unwrap();
    assert_eq!(loaded.specs[0].matcher.as_str(), "mcp__.*__write");
}

#[test]
fn a_file_is_recognised_by_its_folder_or_by_its_events() {
    let claude = claude(&command("true"), "");
    for (path, text, expected) in [
        (CLAUDE, claude.as_str(), "claude-code"),
        (CODEX, claude.as_str(), "codex"),
        ("hooks.json", claude.as_str(), "claude-code"),
        (
            "hooks.json",
            r#"{"version": 1, "hooks": {"preToolUse": [{"bash": "true"}]}}"#,
            "copilot",
        ),
    ] {
        let loaded = crate::load(path, text).unwrap();
        let spec = &loaded.specs[0];
        assert_eq!(spec.system(), expected, "{path}");
        assert_eq!(spec.source.path.as_deref(), Some(Path::new(path)));
    }
}
