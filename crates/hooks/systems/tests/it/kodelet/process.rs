//! kodelet's contract with real executables.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_engine::event::{PostToolUse, PreToolUse, Stop, UserPromptSubmit};
use tenterhook_engine::{
    Dispatcher, Engine, Event, EventKind, HookSpec, Origin, Outcome, Scope, ToolResult,
};
use tenterhook_runners::CommandHandler;
use tenterhook_systems::kodelet::Kodelet;
use tokio_util::sync::CancellationToken;

/// A folder in which tests create and run executables.
struct Bench {
    dir: TempDir,
    specs: Vec<HookSpec>,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            specs: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Adds an executable that is a shell script.
    fn hook(self, kind: EventKind, script: &str) -> Self {
        self.program(kind, &format!("#!/bin/sh\n{script}\n"))
    }

    /// Adds an executable of any kind.
    fn program(mut self, kind: EventKind, text: &str) -> Self {
        let name = format!("hook{}", self.specs.len());
        let path = self.path(&name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let handler = CommandHandler::executable(&path, name.clone(), Kodelet::new());
        let spec = HookSpec::new(kind, name, Arc::new(handler));
        self.specs.push(HookSpec {
            policy: Kodelet::new().policy(kind.info(), None),
            ..spec
        });
        self
    }

    fn timeout(mut self, timeout: Duration) -> Self {
        for spec in &mut self.specs {
            spec.timeout = timeout;
        }
        self
    }

    fn dispatcher(&self) -> Dispatcher {
        let engine = Engine::builder().build();
        engine.scope(Scope::Global).replace(self.specs.clone());
        engine.dispatcher(Origin::new("c1", self.dir.path().to_owned()))
    }

    async fn send<E: Event>(&self, event: E) -> Outcome<E> {
        self.dispatcher().dispatch(event).await
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).unwrap()
    }
}

fn call(input: &Value) -> PreToolUse {
    PreToolUse::new("shell").with_tool_input(input.as_object().unwrap().clone())
}

fn used(text: &str) -> PostToolUse {
    PostToolUse::new("read_file").with_result(ToolResult::text(text))
}

/// The answer of a hook that replaces a tool result with a text.
fn output(text: &str) -> String {
    let output = json!({"output": {
        "toolName": "read_file",
        "success": true,
        "metadataType": "custom_tool",
        "metadata": {"output": text},
    }});
    format!("cat > /dev/null; echo '{output}'")
}

async fn input_after(first: &str, second: &str) -> Value {
    let bench = Bench::new()
        .hook(EventKind::PreToolUse, first)
        .hook(EventKind::PreToolUse, second);
    let outcome = bench.send(call(&json!({"a": 1}))).await;
    assert_eq!(outcome.decision().reason(), None);
    let event = outcome.into_rewritten();
    event.map_or(json!({"a": 1}), |event| Value::Object(event.tool_input))
}

async fn result_after(first: &str, second: &str) -> String {
    let bench = Bench::new()
        .hook(EventKind::PostToolUse, first)
        .hook(EventKind::PostToolUse, second);
    let outcome = bench.send(used("original")).await;
    let event = outcome.into_rewritten();
    event.map_or("original".to_owned(), |event| event.result.joined_text())
}

const CHANGES: &str = r#"cat > /dev/null; echo '{"input":{"x":1}}'"#;

// K-P7: the one argument, the environment, the directory of the agent.
#[tokio::test]
async fn an_executable_is_run_with_one_argument_where_the_agent_works() {
    let bench = Bench::new().hook(
        EventKind::PreToolUse,
        "cat > /dev/null; echo \"$# $1 $PWD ${PATH:+path}\" > ran",
    );
    assert_eq!(bench.send(call(&json!({}))).await.decision().reason(), None);
    let dir = fs::canonicalize(bench.dir.path()).unwrap();
    assert_eq!(bench.text("ran"), format!("1 run {} path\n", dir.display()));
}

// K-P8, K-P10: a hook reads exactly one JSON object.
#[tokio::test]
async fn an_executable_reads_the_event() {
    let bench = Bench::new().hook(EventKind::PreToolUse, "cat > event");
    bench
        .send(call(&json!({"cmd": "a <&> \"b\" c"})))
        .await
        .decision()
        .reason();
    let event = bench.json("event");
    assert_eq!(event["event"], "before_tool_call");
    assert_eq!(event["conv_id"], "c1");
    assert_eq!(event["tool_input"], json!({"command": "a <&> \"b\" c"}));
    assert!(bench.text("event").ends_with('}'));
}

// K-P11: a hook can block without reading its input, even if the input is one megabyte.
#[tokio::test]
async fn a_hook_that_does_not_read_can_block() {
    let bench = Bench::new().hook(
        EventKind::PreToolUse,
        r#"echo '{"blocked":true,"reason":"r"}'"#,
    );
    let outcome = bench.send(call(&json!({"cmd": "x".repeat(1 << 20)}))).await;
    assert_eq!(outcome.decision().reason(), Some("r"));
}

// K-M1, K-M2, K-M3: the first block ends the event. Unlike in kodelet, a failing gate blocks too.
#[tokio::test]
async fn the_first_block_ends_the_dispatch() {
    const BLOCKS: &str = r#"echo '{"blocked":true,"reason":"second"}'"#;
    let bench = Bench::new()
        .hook(
            EventKind::PreToolUse,
            r#"echo '{"blocked":true,"reason":"first"}'"#,
        )
        .hook(EventKind::PreToolUse, "touch ran");
    assert_eq!(
        bench.send(call(&json!({}))).await.decision().reason(),
        Some("first")
    );
    assert!(!bench.path("ran").exists());
    let bench = Bench::new()
        .hook(EventKind::UserPromptSubmit, "echo '{}'")
        .hook(EventKind::UserPromptSubmit, BLOCKS);
    let outcome = bench.send(UserPromptSubmit::default()).await;
    assert_eq!(outcome.decision().reason(), Some("second"));
    let bench = Bench::new()
        .hook(EventKind::PreToolUse, "exit 3")
        .hook(EventKind::PreToolUse, BLOCKS);
    let outcome = bench.send(call(&json!({}))).await;
    assert!(
        outcome
            .decision()
            .reason()
            .unwrap()
            .contains("exited with status 3")
    );
}

// K-M4, K-M5, K-M6, K-M7: inputs chain.
#[tokio::test]
async fn a_changed_input_goes_from_hook_to_hook() {
    for neutral in [
        "true",
        r#"echo '{"blocked":false}'"#,
        "echo '{}'",
        "echo null",
    ] {
        assert_eq!(
            input_after(CHANGES, neutral).await,
            json!({"x": 1}),
            "{neutral}"
        );
    }
    let bench = Bench::new().hook(EventKind::PreToolUse, CHANGES).hook(
        EventKind::PreToolUse,
        r#"cat > event; echo '{"input":{"y":2}}'"#,
    );
    let outcome = bench.send(call(&json!({"a": 1}))).await;
    assert_eq!(bench.json("event")["tool_input"], json!({"x": 1}));
    let event = outcome.into_rewritten().unwrap();
    assert_eq!(Value::Object(event.tool_input), json!({"y": 2}));
}

// K-M8: a second hook that fails stops the call. If its failures are ignored, the first hook's input is kept.
#[tokio::test]
async fn a_hook_that_fails_leaves_the_changes_before_it() {
    for broken in ["exit 1", "echo '{'"] {
        let mut bench = Bench::new()
            .hook(EventKind::PreToolUse, CHANGES)
            .hook(EventKind::PreToolUse, broken);
        assert!(
            bench
                .send(call(&json!({"a": 1})))
                .await
                .decision()
                .reason()
                .is_some()
        );
        for spec in &mut bench.specs {
            let warn = Some(tenterhook_engine::OnError::Warn);
            spec.policy = Kodelet::new().policy(EventKind::PreToolUse.info(), warn);
        }
        let outcome = bench.send(call(&json!({"a": 1}))).await;
        let event = outcome.into_rewritten().unwrap();
        assert_eq!(Value::Object(event.tool_input), json!({"x": 1}));
    }
}

// K-M9, K-M10, K-M11, K-M12: outputs chain. A hook without output and a failing hook change nothing.
#[tokio::test]
async fn a_changed_output_stays_unless_another_hook_changes_it() {
    let (one, two) = (output("one"), output("two"));
    for neutral in ["cat > /dev/null", "echo", "echo '{}'", "echo '{'", "exit 1"] {
        assert_eq!(result_after(&one, neutral).await, "one", "{neutral}");
    }
    assert_eq!(result_after("echo '{'", &two).await, "two");
    assert_eq!(result_after(&one, &two).await, "two");
    let bench = Bench::new()
        .hook(EventKind::PostToolUse, &one)
        .hook(EventKind::PostToolUse, "cat > event");
    bench.send(used("original")).await.into_rewritten();
    let seen = &bench.json("event")["tool_output"]["metadata"]["output"];
    assert_eq!(*seen, json!("one"));
}

// K-M13, K-M14: follow-ups are collected in the order of the hooks, including duplicates. Empty ones are
// dropped.
#[tokio::test]
async fn follow_ups_add_up() {
    let says = |texts: &str| format!("echo '{{\"follow_up_messages\":{texts}}}'");
    let bench = Bench::new()
        .hook(EventKind::Stop, &says(r#"["a"]"#))
        .hook(EventKind::Stop, "exit 1")
        .hook(EventKind::Stop, &says(r#"["b",""]"#))
        .hook(EventKind::Stop, "echo garbage")
        .hook(EventKind::Stop, &says(r#"["a"]"#));
    let outcome = bench.send(Stop::default()).await;
    assert_eq!(outcome.follow_up(), ["a", "b", "a"]);
    assert_eq!(outcome.failures().len(), 2);
}

// K-M15: the hooks of one event run one after another.
#[tokio::test]
async fn hooks_of_one_event_run_one_after_another() {
    let bench = Bench::new()
        .hook(EventKind::PreToolUse, "exec sleep 0.3")
        .hook(EventKind::PreToolUse, "exec sleep 0.3");
    let began = Instant::now();
    assert_eq!(bench.send(call(&json!({}))).await.decision().reason(), None);
    assert!(began.elapsed() >= Duration::from_millis(600));
}

// K-H22: hooks of parallel calls run in parallel. Each hook in this test waits for the other one.
#[tokio::test]
async fn hooks_of_different_calls_overlap() {
    let meet = "read -r event; name=${event#*\\\"command\\\":\\\"}; name=${name%%\\\"*}\n\
                touch \"$name\"; while [ ! -e a ] || [ ! -e b ]; do sleep 0.01; done";
    let bench = Bench::new()
        .hook(EventKind::PreToolUse, meet)
        .timeout(Duration::from_secs(20));
    let dispatcher = bench.dispatcher();
    let one = dispatcher.dispatch(call(&json!({"cmd": "a"})));
    let other = dispatcher.dispatch(call(&json!({"cmd": "b"})));
    let (one, other) = tokio::join!(one, other);
    assert_eq!(
        (one.decision().reason(), other.decision().reason()),
        (None, None)
    );
}

/// Runs one hook with a timeout of 0.3 seconds. Returns the reason of the stop and the duration.
async fn timed(script: &str) -> (Option<String>, Duration) {
    let bench = Bench::new()
        .hook(EventKind::PreToolUse, script)
        .timeout(Duration::from_millis(300));
    let began = Instant::now();
    let outcome = bench.send(call(&json!({}))).await;
    (
        outcome.decision().reason().map(str::to_owned),
        began.elapsed(),
    )
}

// K-T1, K-T2, K-T5, K-T6: nothing outlives its deadline, and a gate that has not answered by then blocks.
#[tokio::test]
async fn a_hook_ends_at_its_deadline_with_all_its_children() {
    for script in [
        "exec sleep 30",
        "sleep 30",
        "sleep 30 & sleep 30 & wait",
        r#"echo '{"blocked":false}'; sleep 30"#,
        "trap '' TERM; sleep 30; sleep 30",
    ] {
        let (stopped, took) = timed(script).await;
        assert!(
            stopped.unwrap().contains("timed out after 0.3s"),
            "{script}"
        );
        // The deadline, and the grace period for a process that ignores the first signal.
        assert!(took < Duration::from_secs(8), "{script}: {took:?}");
    }
}

// K-T3: a child that keeps the output open past the deadline causes a timeout.
#[tokio::test]
async fn a_child_that_holds_the_output_is_ended_with_the_hook() {
    let (stopped, took) = timed(r#"sleep 30 & echo '{"blocked":true,"reason":"r"}'"#).await;
    assert!(stopped.is_some());
    assert!(took < Duration::from_secs(8), "{took:?}");
}

// K-T4: a child that does not hold the output does not delay the answer.
#[tokio::test]
async fn a_child_that_holds_nothing_does_not_matter() {
    let script = r#"sleep 30 > /dev/null 2>&1 & echo '{"blocked":true,"reason":"r"}'"#;
    let (stopped, _) = timed(script).await;
    assert_eq!(stopped.as_deref(), Some("r"));
}

// K-T8: if the host cancels, the hook is ended and the call does not run.
#[tokio::test]
async fn a_host_that_gives_up_ends_the_hook() {
    let bench = Bench::new().hook(EventKind::PreToolUse, "touch began; exec sleep 30");
    let cancel = CancellationToken::new();
    let dispatcher = bench.dispatcher().with_cancel(cancel.clone());
    let began = Instant::now();
    let give_up = async {
        while !bench.path("began").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(dispatcher.dispatch(call(&json!({}))), give_up);
    assert!(outcome.decision().reason().unwrap().contains("cancelled"));
    assert!(began.elapsed() < Duration::from_secs(8));
}

// K-T9: each hook has its own full timeout.
#[tokio::test]
async fn each_hook_has_a_timeout_of_its_own() {
    let bench = Bench::new()
        .hook(EventKind::PostToolUse, "exec sleep 30")
        .hook(EventKind::PostToolUse, &output("second"))
        .timeout(Duration::from_millis(500));
    let outcome = bench.send(used("original")).await;
    assert_eq!(outcome.failures().len(), 1);
    let event = outcome.into_rewritten().unwrap();
    assert_eq!(event.result.joined_text(), "second");
}

// K-D18: if an executable was deleted, the calls that it guards are blocked.
#[tokio::test]
async fn an_executable_that_is_gone_blocks() {
    let bench = Bench::new().hook(EventKind::PreToolUse, "true");
    fs::remove_file(bench.path("hook0")).unwrap();
    let outcome = bench.send(call(&json!({}))).await;
    assert!(
        outcome
            .decision()
            .reason()
            .unwrap()
            .contains("does not exist")
    );
}

#[tokio::test]
async fn hooks_may_be_written_in_any_language() {
    let python = "#!/usr/bin/env python3\nimport json, sys\nevent = json.load(sys.stdin)\n\
                  print(json.dumps({'input': {**event['tool_input'], 'python': True}}))\n";
    let node = "#!/usr/bin/env node\nconst event = JSON.parse(require('fs').readFileSync(0, 'utf8'));\n\
                console.log(JSON.stringify({input: {...event.tool_input, node: true}}));\n";
    let bench = Bench::new()
        .program(EventKind::PreToolUse, python)
        .program(EventKind::PreToolUse, node);
    let outcome = bench.send(call(&json!({"a": 1}))).await;
    assert_eq!(outcome.decision().reason(), None);
    let event = outcome.into_rewritten().unwrap();
    let expected = json!({"a": 1, "python": true, "node": true});
    assert_eq!(Value::Object(event.tool_input), expected);
}
