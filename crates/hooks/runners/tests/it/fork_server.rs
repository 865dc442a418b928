//! Gates that are Python scripts: a forked gate gives the engine the same answer as one in its own process.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenterhook_engine::{Engine, EventKind, Permission};
use tenterhook_process::{Command, ForkServer, Program, PythonScript};
use tenterhook_runners::CommandHandler;
use tenterhook_systems::native::Native;

use crate::command::{origin, shell_call};
use crate::spec;

/// The code of a gate that exceeds its time limit.
const SLEEPS: &str = "import time; time.sleep(300)";

/// The code of a gate, and its failure if it fails.
const GATES: &[(&str, &str)] = &[
    ("pass", ""),
    (
        "import json, sys; print(json.dumps({'decision': 'allow', 'reason': json.load(sys.stdin)['tool_name']}))",
        "",
    ),
    (
        "print('{\"decision\": \"ask\", \"reason\": \"sure?\"}')",
        "",
    ),
    (
        "print('{\"decision\": \"deny\", \"reason\": \"nein, grüße\"}')",
        "",
    ),
    (
        "import sys; print('not that', file=sys.stderr); sys.exit(2)",
        "",
    ),
    ("print('{\"updated_input\": {\"cmd\": \"ls -l\"}}')", ""),
    ("print('{\"decision\":')", "invalid hook output"),
    ("print('checking')", "plain text"),
    ("import sys; sys.exit(1)", "exited with status 1"),
    (
        "import sys; sys.exit('no reason')",
        "exited with status 1: no reason",
    ),
    ("raise KeyError('tool')", "KeyError: 'tool'"),
    ("def gate(:", "SyntaxError"),
    ("import os; os.kill(os.getpid(), 9)", "killed by signal 9"),
    ("import os; os.abort()", "killed by signal 6"),
    (SLEEPS, "timed out after 3s"),
    ("print('{' + ' ' * 3000000 + '}')", "bytes"),
];

fn gate(dir: &Path, text: &str) -> (CommandHandler, PythonScript) {
    let script = dir.join("gate.py");
    std::fs::write(&script, text).unwrap();
    let program = Program::exec(["python3", script.to_str().unwrap()]);
    let forked = PythonScript::of(&program).unwrap();
    let handler = CommandHandler::new(Command::new(program), "gate.py", Native::new());
    (handler, forked)
}

/// Returns everything that the outcome of one call contains.
async fn judged(
    dir: &Path,
    handler: &Arc<CommandHandler>,
    within: Duration,
) -> (Permission, String) {
    let engine = Engine::new();
    let handling = Arc::<CommandHandler>::clone(handler);
    let mut hook = spec(EventKind::PreToolUse, "gate", handling);
    hook.timeout = within;
    engine.register(hook);
    let dispatcher = engine.dispatcher(origin(dir));
    let outcome = dispatcher.dispatch(shell_call("ls")).await;
    let said = format!(
        "{:?} {:?} {:?}",
        outcome.decision().reason(),
        outcome.failures(),
        outcome.rewritten().map(|event| &event.tool_input)
    );
    (outcome.into_any().permission, said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_forked_gate_judges_and_fails_like_a_fresh_one() {
    for (text, failure) in GATES {
        let dir = tempfile::tempdir().unwrap();
        let (handler, script) = gate(dir.path(), text);
        let is_late = *text == SLEEPS;
        let within = if is_late {
            Duration::from_secs(3)
        } else {
            crate::AMPLE
        };
        let fresh = judged(dir.path(), &Arc::new(handler), within).await;

        let server = ForkServer::new(script).fork_patience(crate::AMPLE);
        let handler = gate(dir.path(), text).0.fork_server(server);
        handler.warm(dir.path(), crate::AMPLE).await.unwrap();
        let handler = Arc::new(handler);
        let forked = judged(dir.path(), &handler, within).await;
        let counts = handler.fork_counts().unwrap();
        // A fork may take a quarter of the time limit, so a short one may pass without a fork.
        let is_forked = (counts.forked, counts.cold) == (1, 0);
        assert!(is_forked || is_late, "{text}: {counts:?}");
        assert_eq!(forked, fresh, "{text}");
        assert!(forked.1.contains(failure), "{text}: {}", forked.1);
        if !failure.is_empty() {
            assert_eq!(forked.0, Permission::Deny, "{text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_event_does_not_wait_for_the_server() {
    let dir = tempfile::tempdir().unwrap();
    let (handler, script) = gate(dir.path(), "raise SystemExit(2)");
    let handler = Arc::new(handler.fork_server(script));
    let (_, said) = judged(dir.path(), &handler, crate::AMPLE).await;
    assert!(said.starts_with("Some("), "{said}");
    assert_eq!(handler.fork_counts().unwrap().cold, 1);
}

#[test]
fn a_handler_without_a_server_has_no_counts() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(gate(dir.path(), "pass").0.fork_counts(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_cannot_be_used_shows_among_the_hooks_and_changes_no_verdict() {
    let dir = tempfile::tempdir().unwrap();
    let text = "import logging\nprint('{\"decision\": \"deny\", \"reason\": \"no\"}')";
    let (handler, script) = gate(dir.path(), text);
    std::fs::write(dir.path().join("string.py"), "from re import *").unwrap();
    let handler = Arc::new(handler.fork_server(script));
    let warm = handler.warm(dir.path(), crate::AMPLE).await;
    assert!(warm.is_err(), "{warm:?}");
    let engine = Engine::new();
    let handling = Arc::<CommandHandler>::clone(&handler);
    engine.register(spec(EventKind::PreToolUse, "gate", handling));
    let dispatcher = engine.dispatcher(origin(dir.path()));
    let outcome = dispatcher.dispatch(shell_call("ls")).await;
    assert!(!outcome.decision().is_proceed());
    assert_eq!(
        engine.hooks()[0].problem.as_deref(),
        Some(
            "1 of 1 events ran without the fork server: `string` next to the script has the name of \
             a Python module"
        )
    );
}
