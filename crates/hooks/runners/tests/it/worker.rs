//! Workers with real processes: the built-in worker for Python, and some that misbehave.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_engine::event::PreToolUse;
use tenterhook_engine::{
    Decision, Dispatcher, Engine, EventKind, HookSpec, OnError, Origin, Policy, Scope,
};
use tenterhook_process::{CancellationToken, Command, Program};
use tenterhook_runners::worker::{
    Registered, Script, ScriptHook, Worker, WorkerError, WorkerHandler, check, node, python,
};
use tenterhook_systems::native::Native;

/// A folder with scripts.
struct Bench {
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn script(&self, name: &str, text: &str) -> Script {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        Script {
            path,
            api: "tenterhook",
            approved: None,
        }
    }

    fn python(&self) -> Worker {
        python(self.dir.path())
    }

    /// Makes a worker from a Python program that misbehaves.
    fn rogue(&self, text: &str) -> Worker {
        let program = format!(
            "import json, os, sys, time\n\
             def say(number, result):\n    sys.stdout.write(json.dumps({{'jsonrpc': '2.0', 'id': number, 'result': result}}) + '\\n'); sys.stdout.flush()\n\
             for line in sys.stdin:\n    message = json.loads(line)\n    number, method = message.get('id'), message['method']\n    \
             if number is None:\n        continue\n    \
             if method == 'initialize':\n        say(number, {{'protocol_version': 1}})\n        continue\n    \
             if method == 'shutdown':\n        say(number, {{}})\n        break\n    \
             if method == 'script/load':\n        say(number, {{'hooks': [{{'name': 'h', 'event': 'pre_tool_use'}}]}})\n        continue\n{text}\n"
        );
        let path = self.path("rogue.py");
        fs::write(&path, program).unwrap();
        let argv = ["python3".into(), path.into_os_string()];
        Worker::new("rogue", Command::new(Program::exec(argv)))
    }
}

async fn handle(worker: &Worker, hook: usize, event: &Value) -> Result<Value, WorkerError> {
    handle_within(worker, hook, event, crate::AMPLE).await
}

async fn handle_within(
    worker: &Worker,
    hook: usize,
    event: &Value,
    within: Duration,
) -> Result<Value, WorkerError> {
    let never = CancellationToken::new();
    let event = event.to_string();
    let answer = worker
        .handle((0, hook), event.as_bytes(), within, &never)
        .await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

/// Registers the hooks of a script as gates and returns where to send events.
fn dispatcher(worker: &Worker, hooks: &[ScriptHook], timeout: Duration) -> Dispatcher {
    let specs = hooks.iter().enumerate().map(|(place, hook)| {
        let kind = EventKind::ALL
            .iter()
            .find(|kind| kind.info().name == hook.event)
            .unwrap();
        let handler =
            WorkerHandler::new(worker.clone(), (0, place), Native::new(), hook.name.clone());
        HookSpec {
            timeout,
            policy: Policy::new(OnError::Block, "test"),
            ..HookSpec::new(*kind, hook.name.clone(), Arc::new(handler))
        }
    });
    let engine = Engine::builder().build();
    engine.scope(Scope::Global).replace(specs.collect());
    engine.dispatcher(Origin::default())
}

fn call(cmd: &str) -> PreToolUse {
    PreToolUse::new("shell").with_tool_input(json!({ "cmd": cmd }).as_object().unwrap().clone())
}

const GUARD: &str = "
from tenterhook import ask, context, deny, on, patch

@on('pre_tool_use', matcher='shell', priority=7)
def guard(event):
    cmd = event.tool_input['cmd']
    if cmd.startswith('sudo'):
        return deny('no sudo here')
    if cmd == 'ls':
        return patch(tool_input={'cmd': 'ls -h'}) | context('changed')
    if cmd == 'raise':
        raise ValueError('broken')
    if cmd == 'text':
        return 'deny'

@on(['turn_end', 'stop'])
async def later(event):
    import asyncio
    await asyncio.sleep(0)
    assert event.recipe is None and event['event_id']
";

/// Returns the name, event, matcher and priority of each hook of a script.
fn short(hooks: &[ScriptHook]) -> Vec<(&str, &str, Option<&str>, i32)> {
    let hooks = hooks.iter();
    hooks
        .map(|hook| {
            (
                &*hook.name,
                &*hook.event,
                hook.matcher.as_deref(),
                hook.priority,
            )
        })
        .collect()
}

#[tokio::test]
async fn a_python_script_says_which_hooks_it_has_and_they_answer() {
    let bench = Bench::new();
    let worker = bench.python();
    let script = bench.script("guard.py", GUARD);
    let (number, Registered { hooks, .. }) = worker.load(&script).await.unwrap();
    let expected = [
        ("guard", "pre_tool_use", Some("shell"), 7),
        ("later", "turn_end", None, 0),
        ("later", "stop", None, 0),
    ];
    assert_eq!((number, short(&hooks)), (0, expected.to_vec()));
    let dispatcher = dispatcher(&worker, &hooks, crate::AMPLE);
    let denied = dispatcher.dispatch(call("sudo ls")).await;
    assert_eq!(denied.decision().reason(), Some("no sudo here"));
    let patched = dispatcher.dispatch(call("ls")).await;
    assert_eq!(patched.context(), ["changed"]);
    let event = patched.into_rewritten().unwrap();
    assert_eq!(event.tool_input["cmd"], "ls -h");
    assert_eq!(
        dispatcher.dispatch(call("pwd")).await.decision().reason(),
        None
    );
    let turn = dispatcher
        .dispatch(tenterhook_engine::event::TurnEnd::default())
        .await;
    assert!(turn.failures().is_empty(), "{:?}", turn.failures());
    for (cmd, cause) in [
        ("raise", "guard.py:12: ValueError: broken"),
        (
            "text",
            "guard.py: TypeError: the handler returned a str, expected nothing or what",
        ),
    ] {
        let outcome = dispatcher.dispatch(call(cmd)).await;
        assert!(
            outcome.decision().reason().unwrap().contains(cause),
            "{outcome:?}"
        );
    }
}

const NODE_GUARD: &str = "
import { ask, both, context, deny, on, patch } from 'tenterhook';

on('pre_tool_use', { matcher: 'shell', priority: 7 }, function guard(event) {
  const cmd = event.tool_input.cmd;
  console.log('seen', cmd);
  process.stdout.write('{}\\n');
  if (cmd.startsWith('sudo')) return deny('no sudo here');
  if (cmd === 'ls') return both(patch({ tool_input: { cmd: 'ls -h' } }), context('changed'), ask('sure?'));
  if (cmd === 'raise') throw new RangeError('broken');
  if (cmd === 'text') return 'deny';
});

on(['turn_end', 'stop'], async (event, { signal }) => {
  await new Promise((resolve) => setImmediate(resolve));
  if (signal.aborted || !event.event_id) throw new Error('no');
});
";

#[tokio::test]
async fn a_node_script_says_which_hooks_it_has_and_they_answer() {
    let bench = Bench::new();
    let worker = node(bench.dir.path());
    let script = bench.script("guard.mjs", NODE_GUARD);
    let (_, Registered { hooks, .. }) = worker.load(&script).await.unwrap();
    let expected = [
        ("guard", "pre_tool_use", Some("shell"), 7),
        ("handler", "turn_end", None, 0),
        ("handler", "stop", None, 0),
    ];
    assert_eq!(short(&hooks), expected);
    let dispatcher = dispatcher(&worker, &hooks, crate::AMPLE);
    let denied = dispatcher.dispatch(call("sudo ls")).await;
    assert_eq!(denied.decision().reason(), Some("no sudo here"));
    let patched = dispatcher.dispatch(call("ls")).await;
    assert!(matches!(patched.decision(), Decision::Ask { .. }));
    let event = patched.into_rewritten().unwrap();
    assert_eq!(event.tool_input["cmd"], "ls -h");
    let turn = dispatcher
        .dispatch(tenterhook_engine::event::TurnEnd::default())
        .await;
    assert!(turn.failures().is_empty(), "{:?}", turn.failures());
    for (cmd, cause) in [
        ("raise", "guard.mjs:10: RangeError: broken"),
        (
            "text",
            "guard.mjs: TypeError: the handler returned a string, expected nothing or what",
        ),
    ] {
        let outcome = dispatcher.dispatch(call(cmd)).await;
        assert!(
            outcome.decision().reason().unwrap().contains(cause),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_node_script_is_loaded_anew_and_a_broken_one_says_where() {
    let bench = Bench::new();
    let worker = node(bench.dir.path());
    for (text, message) in [
        (
            "import 'nowhere';\n",
            "a.mjs: Error: Cannot find package 'nowhere'",
        ),
        ("const x = ;\n", "a.mjs: SyntaxError: Unexpected token ';'"),
        ("\nthrow new Error('no');\n", "a.mjs:2: Error: no"),
        (
            "import { on } from 'tenterhook';\non('stop', 3);\n",
            "a.mjs:2: TypeError: on('stop') got a undefined",
        ),
    ] {
        let error = worker.load(&bench.script("a.mjs", text)).await.unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    let text = |answer: &str| {
        format!("import {{ deny, on }} from 'tenterhook';\non('stop', () => deny('{answer}'));\n")
    };
    worker
        .load(&bench.script("b.mjs", &text("one")))
        .await
        .unwrap();
    let pid = worker.pid().await;
    worker
        .load(&bench.script("b.mjs", &text("two")))
        .await
        .unwrap();
    let answer = handle(&worker, 0, &json!({})).await.unwrap();
    assert_eq!(answer["effect"]["permission"]["reason"], "two");
    assert_eq!(worker.pid().await, pid);
    worker.shutdown().await;
}

#[tokio::test]
async fn a_node_handler_is_told_when_nobody_waits_any_more() {
    let bench = Bench::new();
    let worker = node(bench.dir.path());
    let marks = bench.path("aborted");
    let text = format!(
        "import {{ on }} from 'tenterhook';\nimport fs from 'node:fs';\non('stop', (event, {{ signal }}) => new Promise(() => \
         signal.addEventListener('abort', () => fs.writeFileSync({:?}, ''))));\n",
        marks.display().to_string()
    );
    worker.load(&bench.script("a.mjs", &text)).await.unwrap();
    let slow = handle_within(&worker, 0, &json!({}), Duration::from_millis(300)).await;
    assert_eq!(slow, Err(WorkerError::TimedOut));
    let began = Instant::now();
    while !marks.exists() {
        assert!(began.elapsed() < crate::AMPLE, "it was not told");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_script_that_cannot_be_loaded_says_where_and_hurts_no_other() {
    let bench = Bench::new();
    let worker = bench.python();
    for (text, message) in [
        (
            "import nowhere\n",
            "a.py:1: ModuleNotFoundError: No module named 'nowhere'",
        ),
        ("x = 1\nx +\n", "a.py:2: SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(3)\n", "a.py:2: SystemExit: 3"),
        (
            "from tenterhook import on\n\non('stop')(3)\n",
            "a.py:3: TypeError: @on('stop') is followed by 3",
        ),
    ] {
        let error = worker.load(&bench.script("a.py", text)).await.unwrap_err();
        assert!(error.to_string().starts_with(message), "{error}");
    }
    let (_, Registered { hooks, .. }) =
        worker.load(&bench.script("guard.py", GUARD)).await.unwrap();
    assert_eq!(hooks.len(), 3);
    let missing = Script {
        path: bench.path("missing.py"),
        api: "tenterhook",
        approved: None,
    };
    assert!(
        worker
            .load(&missing)
            .await
            .unwrap_err()
            .to_string()
            .contains("FileNotFoundError")
    );
}

#[tokio::test]
async fn a_script_is_loaded_anew_in_its_place() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = |answer: &str| {
        format!(
            "from tenterhook import deny, on\non('pre_tool_use')(lambda event: deny('{answer}'))\n"
        )
    };
    worker
        .load(&bench.script("a.py", &text("one")))
        .await
        .unwrap();
    let pid = worker.pid().await;
    let (number, _) = worker
        .load(&bench.script("a.py", &text("two")))
        .await
        .unwrap();
    assert_eq!((number, worker.pid().await), (0, pid));
    let answer = handle(&worker, 0, &json!({})).await.unwrap();
    assert_eq!(answer["effect"]["permission"]["reason"], "two");
}

#[tokio::test]
async fn what_a_handler_prints_and_reads_is_no_message() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import sys, os, subprocess\nfrom tenterhook import on\n@on('stop')\ndef noisy(event):\n    \
                print('x' * 100000)\n    os.write(1, b'{}\\n')\n    subprocess.run(['sh', '-c', 'echo {}; cat'])\n    \
                assert sys.stdin.read() == ''\n    return {}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    assert_eq!(handle(&worker, 0, &json!({})).await.unwrap(), json!({}));
}

#[tokio::test]
async fn what_a_node_handler_prints_and_reads_is_no_message() {
    let bench = Bench::new();
    let worker = node(bench.dir.path());
    let text = "import { on } from 'tenterhook';\non('stop', async () => {\n  console.log('x'.repeat(100000));\n  \
                process.stdout.write('{}\\n');\n  let heard = '';\n  for await (const part of process.stdin) heard += part;\n  \
                return { heard };\n});\n";
    worker.load(&bench.script("a.mjs", text)).await.unwrap();
    for _ in 0..2 {
        let answer = handle(&worker, 0, &json!({})).await.unwrap();
        assert_eq!(answer, json!({"heard": ""}));
    }
}

#[tokio::test]
async fn events_and_answers_have_any_size_and_any_letters() {
    let bench = Bench::new();
    let (python_echo, node_echo) = (
        "from tenterhook import on\n@on('stop')\ndef echo(event):\n    return {'text': event.text}\n",
        "import { on } from 'tenterhook';\non('stop', ({ text }) => ({ text }));\n",
    );
    for (worker, name, text) in [
        (bench.python(), "a.py", python_echo),
        (node(bench.dir.path()), "a.mjs", node_echo),
    ] {
        worker.load(&bench.script(name, text)).await.unwrap();
        let calls = [0, 1, 100, 4 << 10, (64 << 10) - 90, 64 << 10, 1 << 20].map(|size| {
            let worker = &worker;
            async move {
                for letter in ["x", "\u{e4}", "\u{1f9f5}", "\r\n\u{2028}"] {
                    let event = json!({ "text": letter.repeat(size) });
                    assert!(
                        handle(worker, 0, &event).await.unwrap() == event,
                        "{size} {letter}"
                    );
                }
            }
        });
        futures_util::future::join_all(calls).await;
    }
}

#[tokio::test]
async fn many_calls_are_under_way_at_once() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import asyncio\nfrom tenterhook import on\ngate = None\n@on('stop')\nasync def meet(event):\n    global gate\n    \
                gate = gate or asyncio.Event()\n    if event.number == 31:\n        gate.set()\n    await gate.wait()\n    return {'number': event.number}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let calls = (0..32).map(|number| {
        let worker = worker.clone();
        async move {
            handle(&worker, 0, &json!({ "number": number }))
                .await
                .unwrap()
        }
    });
    let answers = futures_util::future::join_all(calls).await;
    for (number, answer) in answers.iter().enumerate() {
        assert_eq!(answer["number"], number);
    }
}

#[tokio::test]
async fn a_call_over_its_time_is_taken_back_and_the_worker_goes_on() {
    let bench = Bench::new();
    let worker = bench.python();
    let marks = bench.path("cancelled");
    let text = format!(
        "import asyncio\nfrom tenterhook import on\n@on('stop')\nasync def slow(event):\n    try:\n        await asyncio.sleep(300)\n    \
         except asyncio.CancelledError:\n        open({:?}, 'w').close()\n        raise\n@on('stop')\ndef quick(event):\n    return {{}}\n",
        marks.display().to_string()
    );
    worker.load(&bench.script("a.py", &text)).await.unwrap();
    let pid = worker.pid().await;
    let slow = handle_within(&worker, 0, &json!({}), Duration::from_millis(300)).await;
    assert_eq!(slow, Err(WorkerError::TimedOut));
    assert_eq!(handle(&worker, 1, &json!({})).await.unwrap(), json!({}));
    let began = Instant::now();
    while !marks.exists() {
        assert!(began.elapsed() < crate::AMPLE, "it was not told");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(worker.pid().await, pid);
    let cancel = CancellationToken::new();
    cancel.cancel();
    let given_up = worker.handle((0, 1), b"{}", crate::AMPLE, &cancel).await;
    assert_eq!(given_up, Err(WorkerError::Cancelled));
}

/// What a worker does instead of answering, and the error that the caller gets.
const FAULTS: [(&str, &str, &str); 9] = [
    ("never answers", "    continue", "timed out"),
    (
        "answers another call",
        "    say(number + 1000, {})",
        "it answered call",
    ),
    (
        "a garbage line",
        "    print('oh no', flush=True)",
        "a malformed message",
    ),
    (
        "half a message",
        "    print('{\"id\": ', flush=True)",
        "a malformed message",
    ),
    (
        "a line of 50 MB",
        "    print('x' * 50_000_000, flush=True)",
        "a line of more than",
    ),
    ("dies", "    os._exit(7)", "exited with status 7"),
    (
        "is killed",
        "    os.kill(os.getpid(), 9)",
        "killed by signal 9",
    ),
    (
        "says why it dies",
        "    sys.exit('out of luck')",
        "its last output: out of luck",
    ),
    (
        "an error without words",
        "    print(json.dumps({'id': number}), flush=True)",
        "neither a result nor an error",
    ),
];

#[tokio::test]
async fn a_gate_that_a_faulty_worker_serves_denies() {
    for (what, fault, cause) in FAULTS {
        let bench = Bench::new();
        let worker = bench.rogue(fault);
        let (_, Registered { hooks, .. }) = worker.load(&bench.script("a.py", "")).await.unwrap();
        let dispatcher = dispatcher(&worker, &hooks, Duration::from_secs(2));
        let outcome = dispatcher.dispatch(call("ls")).await;
        let decision = outcome.decision();
        let reason = decision
            .reason()
            .unwrap_or_else(|| panic!("{what}: it went through"));
        assert!(reason.contains(cause), "{what}: {reason}");
    }
}

#[tokio::test]
async fn an_answer_that_is_late_or_given_twice_is_dropped() {
    let bench = Bench::new();
    let worker = bench.rogue(
        "    if message['params']['event'].get('late'):\n        time.sleep(0.6)\n    say(number, {})\n    say(number, {'again': True})",
    );
    worker.load(&bench.script("a.py", "")).await.unwrap();
    let pid = worker.pid().await;
    let late = handle_within(
        &worker,
        0,
        &json!({"late": true}),
        Duration::from_millis(200),
    )
    .await;
    assert_eq!(late, Err(WorkerError::TimedOut));
    for _ in 0..3 {
        assert_eq!(handle(&worker, 0, &json!({})).await.unwrap(), json!({}));
    }
    assert_eq!(worker.pid().await, pid);
}

#[tokio::test]
async fn a_worker_that_ended_is_started_again_with_its_scripts() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import os\nfrom tenterhook import on\n@on('stop')\ndef maybe(event):\n    if event.get('die'):\n        os._exit(1)\n    return {}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let pid = worker.pid().await;
    let died = handle(&worker, 0, &json!({"die": true})).await;
    assert!(matches!(died, Err(WorkerError::Ended { .. })), "{died:?}");
    assert_eq!(handle(&worker, 0, &json!({})).await.unwrap(), json!({}));
    assert_ne!(worker.pid().await, pid);
}

#[tokio::test]
async fn a_script_that_broke_since_hurts_no_other_when_the_worker_is_started_again() {
    let bench = Bench::new();
    let worker = bench.python();
    let fatal =
        "import os\nfrom tenterhook import on\n@on('stop')\ndef dies(event):\n    os._exit(1)\n";
    let lives = "from tenterhook import on\n@on('stop')\ndef lives(event):\n    return {}\n";
    let (first, _) = worker.load(&bench.script("a.py", fatal)).await.unwrap();
    let (other, _) = worker.load(&bench.script("b.py", lives)).await.unwrap();
    let never = CancellationToken::new();
    let call = async |script| {
        let within = crate::AMPLE;
        let answer = worker.handle((script, 0), b"{}", within, &never).await;
        answer.map_err(|error| error.to_string())
    };
    for (text, cause) in [
        ("x = ", "a.py:1: SyntaxError: invalid syntax"),
        (
            lives,
            "does not register the same hooks as when it was first loaded",
        ),
    ] {
        bench.script("a.py", text);
        let pid = worker.pid().await.unwrap();
        let killed = std::process::Command::new("kill")
            .args(["-9", &pid.to_string()])
            .status();
        assert!(killed.unwrap().success());
        while worker.pid().await == Some(pid) {
            tokio::task::yield_now().await;
        }
        assert_eq!(call(other).await.unwrap(), "{}");
        let error = call(first).await.unwrap_err();
        assert!(error.contains(cause), "{error}");
    }
    worker.load(&bench.script("a.py", lives)).await.unwrap();
    assert_eq!(call(first).await.unwrap(), "{}");
}

#[tokio::test]
async fn a_start_goes_on_without_the_call_that_asked_for_it() {
    let bench = Bench::new();
    let starts = bench.path("starts");
    let worker = bench.rogue("    say(number, {})");
    // A slow start, as with many imports.
    let path = bench.path("rogue.py");
    let slow = format!(
        "import time\nopen({:?}, 'a').write('x')\ntime.sleep(0.5)\n{}",
        starts.display().to_string(),
        fs::read_to_string(&path).unwrap()
    );
    fs::write(path, slow).unwrap();
    let hook = ScriptHook {
        name: "h".to_owned(),
        event: "pre_tool_use".to_owned(),
        matcher: None,
        priority: 0,
    };
    let _lease = worker
        .expect(&bench.script("a.py", ""), vec![hook], None)
        .await;
    let little = Duration::from_millis(50);
    while handle_within(&worker, 0, &json!({}), little).await == Err(WorkerError::TimedOut) {}
    assert_eq!(handle(&worker, 0, &json!({})).await.unwrap(), json!({}));
    assert_eq!(fs::read_to_string(starts).unwrap(), "x");
}

#[tokio::test]
async fn calls_under_way_fail_with_the_worker() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import asyncio, os\nfrom tenterhook import on\n@on('stop')\nasync def wait(event):\n    await asyncio.sleep(300)\n\
                @on('stop')\ndef die(event):\n    os._exit(1)\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let (event, began) = (json!({}), Instant::now());
    let waiting = handle(&worker, 0, &event);
    let dying = handle(&worker, 1, &event);
    let (waiting, dying) = tokio::join!(waiting, dying);
    assert!(waiting.is_err() && dying.is_err());
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_worker_that_always_fails_is_not_started_for_a_while() {
    let bench = Bench::new();
    let worker = bench.rogue("    os._exit(1)");
    worker.load(&bench.script("a.py", "")).await.unwrap();
    let mut last = String::new();
    for _ in 0..5 {
        last = handle(&worker, 0, &json!({}))
            .await
            .unwrap_err()
            .to_string();
    }
    assert!(last.contains("failed 3 times in a row"), "{last}");
    assert!(last.contains("exited with status 1"), "{last}");
    let nothing = Worker::new("none", Command::new(Program::exec(["/nowhere/python"])));
    let error = nothing.load(&bench.script("a.py", "")).await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`/nowhere/python` does not exist"),
        "{error}"
    );
    let silent = Worker::new(
        "sh",
        Command::new(Program::exec(["sh", "-c", "echo hello; cat >/dev/null"])),
    );
    let error = silent.load(&bench.script("a.py", "")).await.unwrap_err();
    assert!(error.to_string().contains("a malformed message"), "{error}");
}

#[tokio::test]
async fn a_worker_that_hangs_is_given_up_and_started_again() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import time\nfrom tenterhook import on\n@on('stop')\ndef hang(event):\n    while event.get('hang'): time.sleep(1)\n    return {}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let pid = worker.pid().await;
    for _ in 0..2 {
        let hung = handle_within(
            &worker,
            0,
            &json!({"hang": true}),
            Duration::from_millis(200),
        )
        .await;
        assert_eq!(hung, Err(WorkerError::TimedOut));
    }
    assert_eq!(handle(&worker, 0, &json!({})).await.unwrap(), json!({}));
    assert_ne!(worker.pid().await, pid);
}

#[tokio::test]
async fn a_handler_that_blocks_keeps_no_other_waiting() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import os, time\nfrom tenterhook import on\nmark = os.path.dirname(__file__) + '/mark'\n\
                @on('stop')\ndef waits(event):\n    while not os.path.exists(mark): time.sleep(0.001)\n    return {}\n\
                @on('stop')\ndef goes(event):\n    open(mark, 'w').close()\n    return {}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let event = json!({});
    let waiting = (0..8).map(|_| handle(&worker, 0, &event));
    let going = handle(&worker, 1, &event);
    let (waited, gone) = tokio::join!(futures_util::future::join_all(waiting), going);
    assert_eq!(gone.unwrap(), json!({}));
    for answer in waited {
        assert_eq!(answer.unwrap(), json!({}));
    }
}

#[tokio::test]
async fn a_handler_that_computes_for_ever_is_ended_and_the_worker_goes_on() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "from tenterhook import on\n@on('stop')\ndef forever(event):\n    while True: pass\n\
                @on('stop')\ndef quick(event):\n    return {}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let pid = worker.pid().await;
    let hung = handle_within(&worker, 0, &json!({}), Duration::from_millis(300)).await;
    assert_eq!(hung, Err(WorkerError::TimedOut));
    // Longer than a worker may keep working on a cancelled call.
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(2500) {
        assert_eq!(handle(&worker, 1, &json!({})).await.unwrap(), json!({}));
    }
    assert_eq!(worker.pid().await, pid);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_handler_that_cannot_be_ended_is_ended_with_its_worker() {
    let sleeps = "import time\nfrom tenterhook import on\n@on('stop')\ndef sleeps(event):\n    \
                  open(event['began'], 'w').close()\n    time.sleep(300)\n";
    let blocks = sleeps.replace("def sleeps", "async def sleeps");
    let spins = "import { on } from 'tenterhook';\nimport { writeFileSync } from 'node:fs';\n\
                 on('stop', (event) => { writeFileSync(event.began, ''); for (;;); });\n";
    for (name, text) in [("a.py", sleeps), ("b.py", &blocks), ("c.mjs", spins)] {
        let mut within = Duration::from_millis(300);
        while !hangs_and_is_ended(name, text, within).await {
            within *= 4;
            assert!(within < Duration::from_mins(1), "{name} never begins");
        }
    }
}

/// Calls a handler that records its start and then hangs, and checks that its worker is killed.
/// Returns whether the handler started in time. On a busy machine the call may be cancelled before
/// that, which the worker survives.
#[cfg(target_os = "linux")]
async fn hangs_and_is_ended(name: &str, text: &str, within: Duration) -> bool {
    let bench = Bench::new();
    let worker = if name == "c.mjs" {
        node(bench.dir.path())
    } else {
        bench.python()
    };
    worker.load(&bench.script(name, text)).await.unwrap();
    let pid = worker.pid().await.unwrap();
    let began = bench.path("began");
    let hung = handle_within(&worker, 0, &json!({ "began": began }), within).await;
    assert_eq!(hung, Err(WorkerError::TimedOut), "{name}");
    let has_begun = began.exists();
    if has_begun {
        gone(pid).await;
    }
    has_begun
}

// A forked child is not a second worker: what it does after the fork is not an answer.
#[tokio::test]
async fn a_handler_that_forks_answers_once() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import os\nfrom tenterhook import on\n@on('stop')\ndef forks(event):\n    \
                pid = os.fork()\n    return {'pid': pid}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let pid = worker.pid().await;
    for _ in 0..3 {
        let answer = handle(&worker, 0, &json!({})).await.unwrap();
        gone(u32::try_from(answer["pid"].as_u64().unwrap()).unwrap()).await;
    }
    assert_eq!(worker.pid().await, pid);
}

fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit(") ").next().unwrap_or_default();
    !state.is_empty() && !state.starts_with('Z')
}

async fn gone(pid: u32) {
    let began = Instant::now();
    while is_alive(pid) {
        assert!(began.elapsed() < crate::AMPLE, "process {pid} is left");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn nothing_is_left_of_a_worker_and_what_it_started() {
    let bench = Bench::new();
    let text = "import subprocess\nfrom tenterhook import on\n@on('stop')\ndef start(event):\n    \
                return {'pid': subprocess.Popen(['sleep', '300']).pid}\n";
    let script = bench.script("a.py", text);
    for way in ["dropped", "asked", "killed"] {
        let worker = bench.python();
        worker.load(&script).await.unwrap();
        let answer = handle(&worker, 0, &json!({})).await.unwrap();
        let child = u32::try_from(answer["pid"].as_u64().unwrap()).unwrap();
        let pid = worker.pid().await.unwrap();
        assert!(is_alive(pid) && is_alive(child));
        match way {
            "asked" => worker.shutdown().await,
            "killed" => {
                let killed = std::process::Command::new("kill")
                    .args(["-9", &pid.to_string()])
                    .status();
                assert!(killed.unwrap().success());
            }
            _ => {}
        }
        drop(worker);
        gone(pid).await;
        gone(child).await;
    }
}

#[tokio::test]
async fn stderr_without_end_does_not_hold_a_worker_up() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import sys\nfrom tenterhook import on\n@on('stop')\ndef loud(event):\n    \
                sys.stderr.write('x' * 10_000_000)\n    sys.stderr.flush()\n    return {}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    assert_eq!(handle(&worker, 0, &json!({})).await.unwrap(), json!({}));
}

#[tokio::test]
async fn the_shipped_workers_speak_the_protocol_and_a_rogue_one_does_not() {
    let bench = Bench::new();
    for (worker, name, text) in [
        (bench.python(), "guard.py", GUARD),
        (node(bench.dir.path()), "guard.mjs", NODE_GUARD),
    ] {
        let script = bench.script(name, text);
        for step in check(worker.command(), &script.path, script.api).await {
            assert_eq!(step.problem, None, "{name}: {}", step.what);
        }
    }
    let rogue = bench.rogue("    sys.exit(1)");
    let steps = check(rogue.command(), &bench.path("a.py"), "tenterhook").await;
    let problems: Vec<_> = steps
        .iter()
        .filter(|step| step.problem.is_some())
        .map(|step| step.what)
        .collect();
    assert!(
        problems.contains(&"it answers a missing script with an error"),
        "{problems:?}"
    );
    assert!(
        problems.contains(&"it answers `event/handle`"),
        "{problems:?}"
    );
    let silent = Command::new(Program::exec(["true"]));
    let steps = check(&silent, &bench.path("a.py"), "tenterhook").await;
    assert_eq!(steps.len(), 2, "nothing else makes sense: {steps:?}");
}

fn sdk(path: &str) -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../sdk")
        .join(path)
}

#[test]
fn authors_try_their_hooks_in_memory() {
    let bench = Bench::new();
    bench.script("guard.py", GUARD);
    bench.script("guard.mjs", NODE_GUARD);
    let python = "
from tenterhook.testing import load
hooks = load('guard.py')
assert hooks.names[0] == ('guard', 'pre_tool_use'), hooks.names
fire = lambda cmd, tool='shell': hooks.fire('pre_tool_use', tool_name=tool, tool_input={'cmd': cmd})
assert fire('sudo ls') == [{'permission': {'permission': 'deny', 'reason': 'no sudo here'}}]
assert fire('ls') == [{'rewrite': {'tool_input': {'cmd': 'ls -h'}}, 'context': ['changed']}]
assert fire('pwd') == [] and fire('sudo ls', tool='other') == []
assert hooks.fire('turn_end', event_id='e') == []
try:
    fire('text')
except TypeError as error:
    assert 'returned a str' in str(error)
else:
    raise AssertionError
";
    let ran = std::process::Command::new("python3")
        .args(["-c", python])
        .env("PYTHONPATH", sdk("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(bench.dir.path())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let modules = bench.path("node_modules");
    fs::create_dir(&modules).unwrap();
    std::os::unix::fs::symlink(
        fs::canonicalize(sdk("javascript/tenterhook")).unwrap(),
        modules.join("tenterhook"),
    )
    .unwrap();
    let node = "
import assert from 'node:assert/strict';
import { load } from 'tenterhook/testing';
const hooks = await load('guard.mjs');
assert.deepEqual(hooks.names[0], ['guard', 'pre_tool_use']);
const fire = (cmd, tool_name = 'shell') => hooks.fire('pre_tool_use', { tool_name, tool_input: { cmd } });
assert.equal((await fire('sudo ls'))[0].permission.reason, 'no sudo here');
assert.equal((await fire('ls'))[0].permission.permission, 'ask');
assert.deepEqual([await fire('pwd'), await fire('sudo ls', 'other')], [[], []]);
await assert.rejects(fire('text'), /returned a string/);
";
    bench.script("try.mjs", node);
    let ran = std::process::Command::new("node")
        .args(["--preserve-symlinks", "try.mjs"])
        .current_dir(bench.dir.path())
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_handler_that_takes_too_much_memory_fails_and_the_worker_goes_on() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "from tenterhook import on\n@on('stop')\ndef greedy(event):\n    if event.get('greedy'):\n        bytearray(3 << 30)\n    return {}\n";
    worker.load(&bench.script("a.py", text)).await.unwrap();
    let pid = worker.pid().await;
    let error = handle(&worker, 0, &json!({"greedy": true}))
        .await
        .unwrap_err();
    assert!(error.to_string().contains("a.py:5: MemoryError"), "{error}");
    assert_eq!(handle(&worker, 0, &json!({})).await.unwrap(), json!({}));
    assert_eq!(worker.pid().await, pid);
}

#[tokio::test]
async fn a_script_is_unloaded_with_its_last_lease_and_a_changed_one_has_another_number() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = |answer: &str| {
        format!(
            "from tenterhook import deny, on\n@on('stop')\ndef hook(event):\n    return deny('{answer}')\n"
        )
    };
    let script = bench.script("a.py", &text("old"));
    let (_, registered) = worker.load(&script).await.unwrap();
    let old = worker.expect(&script, registered.hooks.clone(), None).await;
    let pid = worker.pid().await;
    bench.script("a.py", &text("new"));
    worker.renew(&script).await;
    let new = worker.expect(&script, registered.hooks.clone(), None).await;
    assert_ne!(old.number(), new.number());
    let call = async |number: usize| {
        let never = CancellationToken::new();
        let answer = worker
            .handle((number, 0), b"{}", crate::AMPLE, &never)
            .await;
        answer.map_err(|error| error.to_string())
    };
    let said = |answer: &[u8]| serde_json::from_slice::<Value>(answer).unwrap().to_string();
    assert!(said(&call(old.number()).await.unwrap()).contains("old"));
    let (gone, kept) = (old.number(), old.clone());
    drop(old);
    assert!(
        said(&call(gone).await.unwrap()).contains("old"),
        "somebody has it still"
    );
    drop(kept);
    while call(gone).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(call(gone).await.unwrap_err(), "unknown hook");
    assert!(said(&call(new.number()).await.unwrap()).contains("new"));
    let again = worker.expect(&script, registered.hooks, None).await;
    assert_eq!(again.number(), new.number());
    assert_eq!(worker.pid().await, pid, "the worker is the same");
}

/// Loads a script that has to be refused and returns why.
async fn refusal(worker: &Worker, script: &Script) -> String {
    match worker.load(script).await {
        Ok((_, registered)) => format!("it was loaded: {registered:?}"),
        Err(error) => error.to_string(),
    }
}

// Regression: a guard in the form of JavaScript was never registered, and every call went through.
#[tokio::test]
async fn on_with_a_handler_as_its_second_argument_registers_it_in_python() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "from tenterhook import deny, on\non('pre_tool_use', lambda event: deny('seen'))\n";
    let script = bench.script("a.py", text);
    let (_, Registered { hooks, .. }) = worker.load(&script).await.unwrap();
    let outcome = dispatcher(&worker, &hooks, crate::AMPLE)
        .dispatch(call("ls"))
        .await;
    assert_eq!(outcome.decision().reason(), Some("seen"));
}

#[tokio::test]
async fn on_without_an_event_or_a_handler_keeps_a_script_from_loading() {
    let bench = Bench::new();
    let worker = bench.python();
    for (line, message) in [
        ("on([])(print)", "on() got an empty list of events"),
        ("on()(print)", "on() got None as its event"),
        ("on(['stop', None])(print)", "as its event, expected"),
        ("@on\ndef guard(event): pass", "as its event, expected"),
        ("on('pre_tool_use')", "on('pre_tool_use') has no handler"),
        (
            "on('stop', {'matcher': 'a'}, print)",
            "on('stop') got {'matcher': 'a'} as its matcher",
        ),
        ("on('stop', 'a', print)", "as its priority"),
    ] {
        let text = format!("from tenterhook import on\non('stop', print)\n{line}\n");
        let error = refusal(&worker, &bench.script("a.py", &text)).await;
        assert!(error.contains(message), "{line}: {error}");
    }
    let worker = node(bench.dir.path());
    for (line, message) in [
        ("on([], () => {})", "on([]) got an empty list of events"),
        ("on(() => {})", "on() got function as its event"),
        ("on(undefined, () => {})", "on() got undefined as its event"),
        ("on()", "on() got undefined as its event"),
        ("on('stop')", "on('stop') got a undefined as its handler"),
    ] {
        let text =
            format!("import {{ on }} from 'tenterhook';\non('stop', () => {{}});\n{line};\n");
        let error = refusal(&worker, &bench.script("a.mjs", &text)).await;
        assert!(error.contains(message), "{line}: {error}");
    }
}

// Regression: a hook that was registered after the script was loaded was silently lost.
#[tokio::test]
async fn what_a_node_script_has_begun_and_not_awaited_keeps_it_from_loading() {
    let bench = Bench::new();
    let worker = node(bench.dir.path());
    let late = "registered a hook too late: hooks must be registered while the script loads";
    for (line, message) in [
        ("setTimeout(() => on('pre_tool_use', guard), 0)", late),
        ("setImmediate(() => on('pre_tool_use', guard))", late),
        (
            "(async () => { await fs.promises.readFile(import.meta.filename ?? new URL(import.meta.url)); on('pre_tool_use', guard); })()",
            late,
        ),
        (
            "(async () => { throw new RangeError('no rules'); })()",
            "RangeError: no rules",
        ),
        (
            "setImmediate(() => { throw new RangeError('no rules'); })",
            "RangeError: no rules",
        ),
    ] {
        let text = format!(
            "import {{ deny, on }} from 'tenterhook';\nimport fs from 'node:fs';\nconst guard = () => deny('no');\non('stop', () => {{}});\n{line};\n"
        );
        let error = refusal(&worker, &bench.script("a.mjs", &text)).await;
        assert!(error.contains(message), "{line}: {error}");
    }
    // A script that waits for it is loaded, and other scripts are not affected.
    let text = "import { on } from 'tenterhook';\nawait new Promise((done) => setTimeout(done, 5));\non('stop', () => {});\n";
    let (_, registered) = worker.load(&bench.script("b.mjs", text)).await.unwrap();
    assert_eq!(registered.hooks.len(), 1);
}

#[tokio::test]
async fn a_node_script_that_registers_a_hook_too_late_fails_from_then_on() {
    let bench = Bench::new();
    let worker = node(bench.dir.path());
    let text = "import { on } from 'tenterhook';\nlet open;\nconst gate = new Promise((done) => { open = done; });\n\
                gate.then(() => on('pre_tool_use', () => {})).catch(() => {});\non('pre_tool_use', () => { open(); });\n";
    let (_, Registered { hooks, .. }) = worker.load(&bench.script("a.mjs", text)).await.unwrap();
    let good = "import { on } from 'tenterhook';\non('stop', () => ({}));\n";
    let (good, _) = worker.load(&bench.script("b.mjs", good)).await.unwrap();
    let dispatcher = dispatcher(&worker, &hooks, crate::AMPLE);
    let first = dispatcher.dispatch(call("ls")).await;
    assert_eq!(first.decision().reason(), None);
    let denied = dispatcher.dispatch(call("ls")).await;
    let decision = denied.decision();
    let reason = decision.reason().unwrap();
    assert!(
        reason.contains("a.mjs registered a hook too late"),
        "{reason}"
    );
    let never = CancellationToken::new();
    let other = worker.handle((good, 0), b"{}", crate::AMPLE, &never).await;
    assert!(other.is_ok(), "{other:?}");
}

#[tokio::test]
async fn a_python_script_that_registers_a_hook_too_late_fails_from_then_on() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "import threading\nfrom tenterhook import on\ngo = threading.Event()\ndone = threading.Event()\n\
                def late():\n    go.wait()\n    try:\n        on('pre_tool_use', print)\n    except RuntimeError:\n        done.set()\n\
                threading.Thread(target=late, daemon=True).start()\n\
                @on('pre_tool_use')\ndef guard(event):\n    go.set()\n    assert done.wait(20)\n";
    let (_, Registered { hooks, .. }) = worker.load(&bench.script("a.py", text)).await.unwrap();
    let good = "from tenterhook import on\non('stop', lambda event: None)\n";
    let (good, _) = worker.load(&bench.script("b.py", good)).await.unwrap();
    let dispatcher = dispatcher(&worker, &hooks, crate::AMPLE);
    let first = dispatcher.dispatch(call("ls")).await;
    assert_eq!(first.decision().reason(), None);
    let denied = dispatcher.dispatch(call("ls")).await;
    let decision = denied.decision();
    let reason = decision.reason().unwrap();
    assert!(
        reason.contains("a.py registered a hook too late"),
        "{reason}"
    );
    let never = CancellationToken::new();
    let other = worker.handle((good, 0), b"{}", crate::AMPLE, &never).await;
    assert!(other.is_ok(), "{other:?}");
}

#[tokio::test]
async fn a_coroutine_that_a_python_script_does_not_await_keeps_it_from_loading() {
    let bench = Bench::new();
    let worker = bench.python();
    let text = "from tenterhook import deny, on\non('stop', print)\n\
                async def setup():\n    on('pre_tool_use', lambda event: deny('no'))\nsetup()\n";
    let error = refusal(&worker, &bench.script("a.py", text)).await;
    assert!(
        error.contains("coroutine 'setup' was never awaited"),
        "{error}"
    );
}

// Regression: JSON leaves out some values, so an answer looked empty. A misspelt redactor removed nothing.
#[tokio::test]
async fn an_effect_whose_values_json_would_lose_is_a_failure_that_names_the_key() {
    let bench = Bench::new();
    let worker = node(bench.dir.path());
    for (returned, problem) in [
        (
            "patch({ tool_input: undefined })",
            "undefined as `rewrite.tool_input`",
        ),
        (
            "patch({ tool_input: { cmd: undefined } })",
            "undefined as `rewrite.tool_input.cmd`",
        ),
        (
            "patch({ tool_input: new Map([['cmd', 'ls']]) })",
            "a Map as `rewrite.tool_input`",
        ),
        (
            "both(context('a'), patch({ tool_input: { cmd: NaN } }))",
            "NaN as `rewrite.tool_input.cmd`",
        ),
        (
            "{ effect: { block: undefined } }",
            "undefined as `effect.block`",
        ),
        ("new Map([['block', 'no']])", "returned a Map"),
        ("new Error('no')", "returned an Error"),
        (
            "(async function* () { yield deny('no'); })()",
            "returned an AsyncGenerator",
        ),
        (
            "new (class Verdict { get block() { return 'no'; } })()",
            "returned a Verdict",
        ),
        ("NaN", "returned NaN"),
    ] {
        let text = format!(
            "import {{ both, context, deny, on, patch }} from 'tenterhook';\non('pre_tool_use', () => ({returned}));\n"
        );
        let (_, Registered { hooks, .. }) =
            worker.load(&bench.script("a.mjs", &text)).await.unwrap();
        let outcome = dispatcher(&worker, &hooks, crate::AMPLE)
            .dispatch(call("ls"))
            .await;
        let decision = outcome.decision();
        let reason = decision.reason().unwrap_or("nothing");
        assert!(reason.contains(problem), "{returned}: {reason}");
    }
}

#[tokio::test]
async fn a_patch_in_python_with_none_or_no_json_is_a_failure() {
    let bench = Bench::new();
    let worker = bench.python();
    for returned in [
        "patch(tool_input=None)",
        "patch(tool_input=float('nan'))",
        "patch(tool_input={1, 2})",
        "patch(tool_inptu={})",
    ] {
        let text = format!(
            "from tenterhook import on, patch\non('pre_tool_use', lambda event: {returned})\n"
        );
        let (_, Registered { hooks, .. }) =
            worker.load(&bench.script("a.py", &text)).await.unwrap();
        let outcome = dispatcher(&worker, &hooks, crate::AMPLE)
            .dispatch(call("ls"))
            .await;
        assert!(
            outcome.decision().reason().is_some(),
            "{returned}: {outcome:?}"
        );
    }
}

/// A replacement for the worker for JavaScript, which records the requests that it receives.
const RECORDER: &str = "
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, number = message['method'], message.get('id')
    if method == 'initialize':
        result = {'protocol_version': 1}
    else:
        open(sys.argv[1], 'a').write(json.dumps(message.get('params')) + '\\n')
        result = {'hooks': []}
    if number is not None:
        print(json.dumps({'jsonrpc': '2.0', 'id': number, 'result': result}), flush=True)
";

#[tokio::test]
async fn a_worker_gets_the_code_of_a_script_in_typescript_with_the_state_of_its_file() {
    let bench = Bench::new();
    fs::write(bench.path("recorder.py"), RECORDER).unwrap();
    let argv: [PathBuf; 3] = [
        "python3".into(),
        bench.path("recorder.py"),
        bench.path("log"),
    ];
    let worker = Worker::new("recorder", Command::new(Program::exec(argv)));
    let scripts = [
        bench.script("a.ts", "#!/usr/bin/env node\nexport const a: number = 1;\n"),
        bench.script("b.mjs", "export const b = 2;\n"),
        bench.script("broken.ts", "export const = 3;\n"),
        bench.script("d.mts", "export const d = '4' as string;\n"),
    ];
    let mut loads = worker.load_all(&scripts).await.unwrap();
    for number in 0..scripts.len() {
        assert_eq!(loads.next().await.unwrap().unwrap().0, number);
    }
    assert!(loads.next().await.is_none() && loads.is_running());
    let log = fs::read_to_string(bench.path("log")).unwrap();
    let asked: Vec<Value> = log
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let code = |number: usize| asked[number]["source"]["code"].as_str();
    assert!(code(0).is_some() && code(3).is_some(), "{log}");
    assert!(code(0).unwrap().contains("export const a = 1;"), "{log}");
    assert!(
        code(3).unwrap().contains("export const d = \"4\";"),
        "{log}"
    );
    // The worker itself reports what is wrong with a source.
    assert_eq!((code(1), code(2)), (None, None));
    let version = "const { ino, size, mtimeNs, ctimeNs } = require('fs').statSync(process.argv[1], { bigint: true }); \
                   console.log([ino, size, mtimeNs, ctimeNs].join())";
    let argv = [
        "node".into(),
        "-e".into(),
        version.into(),
        bench.path("a.ts").into_os_string(),
    ];
    let limits = tenterhook_process::Limits::default();
    let never = CancellationToken::new();
    let stated = Command::new(Program::exec(argv))
        .run(b"", &limits, &never)
        .await
        .unwrap();
    assert_eq!(asked[0]["source"]["version"], stated.stdout.text().trim());
}
