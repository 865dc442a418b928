//! Extensions of kodelet with real processes: small peers in Python that send framed messages.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_engine::event::{
    BeforeAgentStart, PostToolUse, PreToolUse, SessionStart, Stop, UserInput,
};
use tenterhook_engine::{Dispatcher, Engine, HookSpec, JsonObject, Origin, ToolResult};
use tenterhook_process::{CancellationToken, Command, Program};
use tenterhook_runners::worker::{
    CommandOutput, Extension, ExtensionProtocol, Host, Invocation, MAX_CALL, NoHost, Refusal,
    ToolOutput, ToolSnapshot, ToolSnapshots, WorkerError, WorkerHandler,
};
use tenterhook_systems::kodelet::EXTENSION_FOLDER;
use tenterhook_systems::kodelet::extension::KodeletExtension;

use crate::stage::Listener;

/// The code that every peer starts with: framing, and the answer to the first request.
const PEER: &str = r"
import json, os, sys, threading, time
lock = threading.Lock()
def send(message):
    body = json.dumps(dict(message, jsonrpc='2.0')).encode()
    with lock:
        sys.stdout.buffer.write(b'Content-Length: %d\r\n\r\n' % len(body) + body)
        sys.stdout.buffer.flush()
def say(number, result):
    send({'id': number, 'result': result})
def note(name, text):
    with open(os.path.join('DIR', name), 'a') as file:
        file.write(text + '\n')
def hear():
    length = None
    while True:
        line = sys.stdin.buffer.readline()
        if not line:
            sys.exit(0)
        if not line.strip():
            return json.loads(sys.stdin.buffer.read(length))
        name, _, value = line.partition(b':')
        if name.lower() == b'content-length':
            length = int(value)
REGISTERED = {'name': 'peer', 'tools': None, 'subscriptions': [{'event': 'tool.call'}]}
def calls():
    note('starts', str(os.getpid()))
    while True:
        message = hear()
        if message['method'] == 'extension.initialize':
            note('initialize', json.dumps(message['params']))
            say(message['id'], REGISTERED)
        else:
            yield message['method'], message.get('id'), message['params']
";

/// Returns the protocol of kodelet's extensions.
pub(crate) fn protocol() -> ExtensionProtocol {
    let programs = EXTENSION_FOLDER.extension_programs().unwrap();
    ExtensionProtocol {
        system: EXTENSION_FOLDER.system,
        version: programs.protocol_version,
        system_version: programs.system_version,
        workspace_variable: programs.workspace_variable,
        update_method: programs.update_method,
        copy_method: programs.copy_method,
        events: (programs.events.names)(),
        questions: programs.user_interface.questions,
        capabilities: programs.user_interface.capabilities,
        host_request: programs.user_interface.host_request,
        answer: programs.user_interface.answer,
        refuse: programs.refuse,
    }
}

/// A folder in which peers are written and work.
struct Bench {
    dir: TempDir,
    engine: Engine,
}

impl Bench {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            engine: Engine::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes an extension from the code that follows the common part.
    fn extension(&self, id: &str, text: &str) -> Extension {
        self.hosted(id, text, Arc::new(NoHost))
    }

    /// Makes an extension that may send requests to a host.
    fn hosted(&self, id: &str, text: &str, host: Arc<dyn Host>) -> Extension {
        let dir = self.dir.path().to_str().unwrap();
        let path = self.path(&format!("{id}.py"));
        fs::write(&path, format!("{PEER}{text}").replace("DIR", dir)).unwrap();
        let argv = ["python3".into(), path.into_os_string()];
        let command = Command::new(Program::exec(argv));
        let dirs = (self.dir.path(), &*self.path("data"));
        Extension::new(id, command, protocol(), dirs, host)
    }

    /// Registers the subscriptions of an extension, in the order in which it has them.
    async fn add(&self, extension: &Extension) {
        let registration = extension.registration().await.unwrap();
        for subscription in &registration.subscriptions {
            let event = KodeletExtension::event(&subscription.event).unwrap();
            let dialect = KodeletExtension::new();
            let policy = dialect.policy(event.kind.info(), None);
            let handler = WorkerHandler::of_extension(extension.clone(), dialect, extension.id());
            let id = format!("{}:{}", extension.id(), subscription.event);
            self.engine.register(HookSpec {
                priority: subscription.priority,
                timeout: subscription.timeout(),
                policy,
                ..HookSpec::new(event.kind, id, Arc::new(handler))
            });
        }
    }

    fn hooks(&self) -> Dispatcher {
        self.engine
            .dispatcher(Origin::new("s1", self.dir.path().to_owned()))
    }

    /// Returns the lines that peers have noted under a name.
    fn noted(&self, name: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits until a peer has noted something under a name.
    async fn waits_for(&self, name: &str) -> Vec<String> {
        let began = Instant::now();
        while self.noted(name).is_empty() {
            assert!(began.elapsed() < crate::AMPLE, "no {name}");
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.noted(name)
    }
}

fn object(value: &Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

fn call(cmd: &str) -> PreToolUse {
    PreToolUse::new("shell")
        .with_tool_use_id("call_1")
        .with_tool_input(object(&json!({ "cmd": cmd })))
}

async fn handle(extension: &Extension, event: &str) -> Result<Value, WorkerError> {
    handle_within(extension, event, crate::AMPLE).await
}

async fn handle_within(
    extension: &Extension,
    event: &str,
    within: Duration,
) -> Result<Value, WorkerError> {
    let never = CancellationToken::new();
    let params = json!({ "event": event }).to_string();
    let answer = extension.handle(params.as_bytes(), within, &never).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

// E1: the first request, whose answer is read only once.
#[tokio::test]
async fn an_extension_registers_once_and_is_told_who_asks() {
    let bench = Bench::new();
    let extension = bench.extension(
        "peer",
        "
REGISTERED = {
    'name': 'audit', 'version': '1.2', 'commands': None,
    'tools': [{'name': 'weather', 'description': 'Says it.', 'inputSchema': {'type': 'object'}, 'timeoutInSec': 1.5}],
    'subscriptions': [{'event': 'tool.call', 'priority': 3}, {'event': 'turn.end', 'timeoutInSec': 0}, {'event': 'x', 'timeoutInSec': 1e300}],
}
if os.path.exists('DIR/starts'):
    REGISTERED = {'name': 'other'}
for method, number, params in calls():
    os._exit(3)
",
    );
    let registration = extension.registration().await.unwrap();
    let (name, version) = (&*registration.name, registration.version.as_deref());
    assert_eq!((name, version), ("audit", Some("1.2")));
    let tool = &registration.tools[0];
    assert_eq!((&*tool.name, &*tool.description), ("weather", "Says it."));
    assert_eq!(tool.input_schema, object(&json!({ "type": "object" })));
    assert_eq!(tool.timeout(), Duration::from_millis(1500));
    let subscriptions: Vec<_> = registration
        .subscriptions
        .iter()
        .map(|it| (&*it.event, it.priority, it.timeout()))
        .collect();
    let expected = [
        ("tool.call", 3, Duration::from_secs(30)),
        ("turn.end", 0, MAX_CALL),
        ("x", 0, MAX_CALL),
    ];
    assert_eq!(subscriptions, expected);
    let hello: Value = serde_json::from_str(&bench.noted("initialize")[0]).unwrap();
    let dir = bench.dir.path().to_str().unwrap();
    assert_eq!(hello["protocolVersion"], "2026-05-30");
    let own = json!({ "id": "peer", "config": {}, "cwd": dir, "dataDir": format!("{dir}/data") });
    assert_eq!(hello["extension"], own);
    assert_eq!(hello["capabilities"]["events"][0], "session.start");
    for _ in 0..2 {
        handle(&extension, "tool.call").await.unwrap_err();
    }
    assert_eq!(bench.noted("starts").len(), 2);
    assert_eq!(extension.registration().await.unwrap(), registration);
}

// E1: an answer with another version is refused.
#[tokio::test]
async fn an_extension_of_another_version_is_not_used() {
    let bench = Bench::new();
    let cases = [
        (
            "{'protocolVersion': '2027-01-01'}",
            "it speaks version `2027-01-01` of kodelet's protocol, expected `2026-05-30`",
        ),
        ("[]", "cannot read its answer to `extension.initialize`"),
        (
            "{'Subscriptions': [{'event': 'tool.call'}]}",
            "unknown key `Subscriptions`; did you mean `subscriptions`?",
        ),
        (
            "{'subscription': [{'event': 'tool.call'}]}",
            "unknown key `subscription`; did you mean `subscriptions`?",
        ),
        ("{'tools': [{}]}", "missing field `name`"),
    ];
    for (number, (answer, problem)) in cases.into_iter().enumerate() {
        let text = format!("REGISTERED = {answer}\nlist(calls())\n");
        let extension = bench.extension(&format!("peer{number}"), &text);
        let error = extension.registration().await.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

const APPEND: &str = "
REGISTERED['subscriptions'][0]['priority'] = PRIORITY
for method, number, params in calls():
    tool = params['payload']['tool']
    note('order', 'NAME ' + tool['input']['command'])
    if tool['input']['command'].startswith('sudo'):
        say(number, {'block': {'reason': 'no sudo'}, 'input': {'command': 'nothing'}})
    else:
        say(number, {'input': {'command': tool['input']['command'] + ' NAME'}})
";

// E2, E3, E4: each handler sees the changes of the one before, a block ends the event, and priority
// comes before the order of registration.
#[tokio::test]
async fn changes_chain_in_the_order_of_priorities_until_one_blocks() {
    let bench = Bench::new();
    for (name, priority) in [("a", "0"), ("b", "0"), ("c", "10")] {
        let text = APPEND.replace("NAME", name).replace("PRIORITY", priority);
        bench.add(&bench.extension(name, &text)).await;
    }
    let hooks = bench.hooks();
    let changed = hooks.dispatch(call("ls")).await.into_rewritten().unwrap();
    assert_eq!(changed.tool_input["cmd"], "ls c a b");
    assert_eq!(bench.noted("order"), ["c ls", "a ls c", "b ls c a"]);
    fs::remove_file(bench.path("order")).unwrap();
    let blocked = hooks.dispatch(call("sudo ls")).await;
    assert_eq!(blocked.decision().reason(), Some("no sudo"));
    assert!(blocked.rewritten().is_none());
    assert_eq!(bench.noted("order"), ["c sudo ls"]);
}

// E13, E14: two extensions build on each other's prompt; changes to tools by both are reported.
#[tokio::test]
async fn prompts_are_replaced_and_added_to_in_turn() {
    let bench = Bench::new();
    for (name, answer) in [
        (
            "a",
            "{'systemPrompt': {'append': 'Z', 'prepend': 'A', 'replace': 'new'}, 'tools': {'disable': [' shell ']}}",
        ),
        (
            "b",
            "{'systemPrompt': {'prepend': 'B of ' + params['payload']['systemPrompt'][:1]}, 'tools': {'disable': ['edit', 'edit']}}",
        ),
    ] {
        let text = format!(
            "REGISTERED['subscriptions'] = [{{'event': 'agent.init'}}]\nfor _, number, params in calls():\n    say(number, {answer})\n"
        );
        bench.add(&bench.extension(name, &text)).await;
    }
    let start = BeforeAgentStart::new("do it").with_system_prompt("old");
    let outcome = bench.hooks().dispatch(start).await;
    assert_eq!(outcome.disabled_tools(), ["shell", "edit"]);
    let start = outcome.into_rewritten().unwrap();
    assert_eq!(start.system_prompt, "B of A\nA\nnew\nZ");
}

const THREADS: &str = "
held = {}
def work(number, event):
    if event == 'slow':
        note('slow', str(number))
        time.sleep(SECONDS)
    say(number, {'event': event})
for method, number, params in calls():
    if method == '$/cancelRequest':
        note('cancelled', str(params['id']))
    else:
        threading.Thread(target=work, args=(number, params['event']), daemon=True).start()
";

// E5, E6: a call that times out is cancelled by its id; neither its late answer nor the
// cancellation affects other calls.
#[tokio::test]
async fn a_call_over_its_time_is_cancelled_and_nothing_else() {
    let bench = Bench::new();
    let extension = bench.extension("peer", &THREADS.replace("SECONDS", "2.5"));
    extension.registration().await.unwrap();
    let pid = extension.pid().await;
    let late = handle_within(&extension, "slow", Duration::from_millis(200));
    let beside = handle(&extension, "slow");
    let (late, beside) = tokio::join!(late, beside);
    assert_eq!(late, Err(WorkerError::TimedOut));
    assert_eq!(beside, Ok(json!({ "event": "slow" })));
    let cancelled = bench.waits_for("cancelled").await;
    assert_eq!(cancelled.len(), 1);
    assert!(bench.noted("slow").contains(&cancelled[0]));
    assert_eq!(handle(&extension, "quick").await.unwrap()["event"], "quick");
    assert_eq!(
        (extension.pid().await, bench.noted("starts").len()),
        (pid, 1)
    );
}

// E5: a gate whose handler is late denies.
#[tokio::test]
async fn a_gate_that_is_not_answered_in_time_denies() {
    let bench = Bench::new();
    let text = "
REGISTERED['subscriptions'][0]['timeoutInSec'] = 0.2
for method, number, params in calls():
    note('heard', method)
";
    bench.add(&bench.extension("peer", text)).await;
    let outcome = bench.hooks().dispatch(call("ls")).await;
    assert!(
        outcome.decision().reason().unwrap().contains("timed out"),
        "{outcome:?}"
    );
    let heard = ["extension.event.handle", "$/cancelRequest"];
    let began = Instant::now();
    while bench.noted("heard") != heard {
        assert!(began.elapsed() < crate::AMPLE);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn an_extension_that_answers_nobody_is_ended() {
    let bench = Bench::new();
    let extension = bench.extension("peer", "list(calls())\n");
    extension.registration().await.unwrap();
    for _ in 0..2 {
        assert!(extension.pid().await.is_some());
        let late = handle_within(&extension, "tool.call", Duration::from_millis(100)).await;
        assert_eq!(late, Err(WorkerError::TimedOut));
    }
    assert_eq!(extension.pid().await, None);
}

// The message that JavaScript sends for a handler that returns nothing.
#[tokio::test]
async fn an_answer_without_a_result_changes_nothing() {
    let bench = Bench::new();
    let text = "for _, number, params in calls():\n    send({'id': number})\n";
    bench.add(&bench.extension("peer", text)).await;
    let outcome = bench.hooks().dispatch(call("ls")).await;
    assert_eq!(
        (outcome.decision().reason(), outcome.failures().len()),
        (None, 0)
    );
}

// E7: malformed messages of every kind.
#[tokio::test]
async fn what_is_no_message_ends_the_connection() {
    let bench = Bench::new();
    let frame = |body: &str| format!("raw(b'Content-Length: {}\\r\\n\\r\\n{body}')", body.len());
    let cases = [
        (
            "say(99, {})".to_owned(),
            "it answered call 99, which was never made",
        ),
        (frame("nonsense"), "it sent a malformed message"),
        (frame("{}"), "a message without `id` and `method`"),
        (
            "raw(b'Content-Type: x\\r\\n\\r\\n{}')".to_owned(),
            "it sent a message without `Content-Length`",
        ),
        (
            "raw(b'Content-Length: -1\\r\\n\\r\\n')".to_owned(),
            "its `Content-Length` is `-1`, expected a number",
        ),
        (
            "raw(b'Content-Length: 16777217\\r\\n\\r\\n')".to_owned(),
            "it sent a message of 16777217 bytes, expected at most 16777216",
        ),
        (
            "raw(b'x' * 70000)".to_owned(),
            "the header of a message has more than 65536 bytes",
        ),
        (
            "raw(b'x\\n' * 40000)".to_owned(),
            "the header of a message has more than 65536 bytes",
        ),
        (
            "os.close(1); time.sleep(60)".to_owned(),
            "it was killed by signal 9",
        ),
        ("os._exit(4)".to_owned(), "it exited with status 4"),
    ];
    for (number, (says, problem)) in cases.into_iter().enumerate() {
        let text = format!(
            "def raw(text):\n    sys.stdout.buffer.write(text); sys.stdout.buffer.flush()\nfor _ in calls():\n    {says}\n"
        );
        let extension = bench.extension(&format!("peer{number}"), &text);
        let error = handle(&extension, "tool.call").await.unwrap_err();
        assert!(
            matches!(error, WorkerError::Ended { .. }),
            "{says}: {error}"
        );
        assert!(error.to_string().contains(problem), "{says}: {error}");
        assert_eq!(extension.pid().await, None);
    }
}

// E8: a crash fails the pending call; the next call waits for another process.
#[tokio::test]
async fn a_crash_fails_the_call_and_the_next_one_starts_it_again() {
    let bench = Bench::new();
    let text = "
for method, number, params in calls():
    if params['payload']['tool']['input']['command'] == 'crash':
        os._exit(3)
    say(number, {})
";
    bench.add(&bench.extension("peer", text)).await;
    let hooks = bench.hooks();
    let crashed = hooks.dispatch(call("crash")).await;
    assert!(
        crashed
            .decision()
            .reason()
            .unwrap()
            .contains("it exited with status 3"),
        "{crashed:?}"
    );
    let began = Instant::now();
    assert_eq!(hooks.dispatch(call("ls")).await.decision().reason(), None);
    assert!(began.elapsed() >= Duration::from_millis(90));
    assert_eq!(bench.noted("starts").len(), 2);
}

// E9: after three failures in a row, including crashes, the extension is not restarted.
#[tokio::test]
async fn an_extension_that_crashes_on_every_call_is_left_alone() {
    let bench = Bench::new();
    let extension = bench.extension("peer", "for _ in calls():\n    os._exit(3)\n");
    for _ in 0..3 {
        let error = handle(&extension, "tool.call").await.unwrap_err();
        assert!(matches!(error, WorkerError::Ended { .. }), "{error}");
    }
    let error = handle(&extension, "tool.call").await.unwrap_err();
    assert!(
        matches!(error, WorkerError::Broken { failures: 3, .. }),
        "{error}"
    );
    assert_eq!(bench.noted("starts").len(), 3);
}

// E10: an error is an answer: a gate denies with it, an observer continues, and the process lives.
#[tokio::test]
async fn an_error_fails_the_hook_and_not_the_extension() {
    let bench = Bench::new();
    let text = "
REGISTERED['subscriptions'].append({'event': 'tool.result'})
for method, number, params in calls():
    send({'id': number, 'error': {'code': -32603, 'message': 'handler threw'}})
";
    bench.add(&bench.extension("peer", text)).await;
    let hooks = bench.hooks();
    let denied = hooks.dispatch(call("ls")).await;
    assert!(
        denied
            .decision()
            .reason()
            .unwrap()
            .contains("handler threw"),
        "{denied:?}"
    );
    let used = PostToolUse::new("shell").with_result(ToolResult::text("kept"));
    let kept = hooks.dispatch(used).await;
    assert!(kept.rewritten().is_none());
    assert!(kept.failures()[0].cause.contains("handler threw"));
    assert_eq!(bench.noted("starts").len(), 1);
}

// E17: answers in the wrong order.
#[tokio::test]
async fn answers_are_matched_by_their_ids() {
    let bench = Bench::new();
    let text = "
held = []
for method, number, params in calls():
    held.append((number, params['event']))
    if len(held) == 8:
        for number, event in reversed(held):
            say(number, {'event': event})
";
    let extension = bench.extension("peer", text);
    let names: Vec<String> = (0..8).map(|number| format!("event {number}")).collect();
    let calls = names.iter().map(|name| handle(&extension, name));
    let answers = futures_util::future::join_all(calls).await;
    for (name, answer) in names.iter().zip(answers) {
        assert_eq!(answer.unwrap()["event"], **name);
    }
}

// E18: headers as other programs write them.
#[tokio::test]
async fn heads_are_read_whatever_their_letters_and_line_ends() {
    let bench = Bench::new();
    for (number, head) in [
        "Content-Length: %d\\n\\n",
        "content-length:%d\\n\\n",
        "CONTENT-LENGTH :  %d \\r\\n\\r\\n",
        "Content-Type: application/json\\r\\nContent-Length: %d\\r\\nX: y\\r\\n\\r\\n",
        "printed by somebody else\\nContent-Length: %d\\r\\n\\r\\n",
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!(
            "for _, number, params in calls():\n    body = json.dumps({{'jsonrpc': '2.0', 'id': number, 'result': {{'text': 'ä' * 70000}}}}).encode()\n    \
             for part in [b'{head}' % len(body), body[:9], body[9:]]:\n        sys.stdout.buffer.write(part); sys.stdout.buffer.flush()\n"
        );
        let extension = bench.extension(&format!("peer{number}"), &text);
        let answer = handle(&extension, "tool.call").await.unwrap();
        assert_eq!(
            answer["text"].as_str().unwrap().chars().count(),
            70_000,
            "{head}"
        );
    }
}

#[tokio::test]
async fn a_message_is_changed_or_stopped_and_a_result_is_redacted() {
    let bench = Bench::new();
    let text = "
REGISTERED['subscriptions'] = [{'event': event} for event in ('user.message', 'tool.result', 'agent.end')]
for method, number, params in calls():
    payload = params['payload']
    if params['event'] == 'user.message':
        text = payload['message']
        say(number, {'block': {'reason': 'rude'}} if text == 'damn' else {'message': text.upper()})
    elif params['event'] == 'tool.result':
        output = payload['tool']['output']
        output['metadata']['output'] = output['metadata']['output'].replace('secret', '***')
        say(number, {'output': output})
    else:
        say(number, {'followUpMessages': ['more of ' + payload['messages'][0]['content']]})
";
    bench.add(&bench.extension("peer", text)).await;
    let hooks = bench.hooks();
    let input = |text: &str| UserInput::new(text.to_owned());
    assert_eq!(
        hooks.dispatch(input("damn")).await.decision().reason(),
        Some("rude")
    );
    let changed = hooks.dispatch(input("hi")).await.into_rewritten().unwrap();
    assert_eq!(changed.text, "HI");
    let used = PostToolUse::new("read_file").with_result(ToolResult::text("a secret"));
    let redacted = hooks.dispatch(used).await.into_rewritten().unwrap();
    assert_eq!(redacted.result.joined_text(), "a ***");
    let stop = Stop::new().with_messages(vec![tenterhook_engine::Message::user("this")]);
    assert_eq!(hooks.dispatch(stop).await.follow_up(), ["more of this"]);
}

#[tokio::test]
async fn tools_and_commands_run() {
    let bench = Bench::new();
    let text = "
for method, number, params in calls():
    note(method, json.dumps(params))
    if method == 'extension.tool.execute':
        say(number, {'content': 'dry', 'data': {'mm': 0}} if params['name'] == 'weather' else {'error': 'no such tool'})
    else:
        say(number, {'review': {'action': 'runAgent', 'prompt': 'Review it.', 'recipeName': 'review'},
                     'hello': {'action': 'respond', 'response': 'hi'}, 'new': {'action': 'dance'}}.get(params['name'], {'action': 'pass'}))
";
    let extension = bench.extension("peer", text);
    let never = CancellationToken::new();
    let within = crate::AMPLE;
    let input = object(&json!({ "city": "Ghent" }));
    let context = object(&json!({ "sessionId": "s1" }));
    let weather = extension
        .run_tool(("weather", &input), (&context, None), None, within, &never)
        .await;
    let expected = ToolOutput {
        content: "dry".to_owned(),
        data: Some(object(&json!({ "mm": 0 }))),
        error: String::new(),
    };
    assert_eq!(weather, Ok(expected));
    let sent: Value = serde_json::from_str(&bench.noted("extension.tool.execute")[0]).unwrap();
    assert_eq!(
        sent,
        json!({ "name": "weather", "input": input, "context": context })
    );
    let other = extension
        .run_tool(("other", &input), (&context, None), None, within, &never)
        .await;
    assert_eq!(other.unwrap().error, "no such tool");
    let invocation = Invocation {
        raw: "/review now".to_owned(),
        command_name: "review".to_owned(),
        args: vec!["now".to_owned()],
        flags: JsonObject::new(),
    };
    let respond = CommandOutput::Respond {
        response: "hi".to_owned(),
    };
    let run = CommandOutput::RunAgent {
        prompt: "Review it.".to_owned(),
        recipe: Some("review".to_owned()),
    };
    let dance = CommandOutput::Other {
        action: "dance".to_owned(),
    };
    for (name, expected) in [
        ("review", run),
        ("hello", respond),
        ("new", dance),
        ("any", CommandOutput::Pass),
    ] {
        let given = (&input, &invocation);
        let answer = extension.run_command(name, given, (&context, None), within, &never);
        assert_eq!(answer.await, Ok(expected));
    }
    let cancelled = CancellationToken::new();
    cancelled.cancel();
    let given_up = extension.run_tool(
        ("weather", &input),
        (&context, None),
        None,
        within,
        &cancelled,
    );
    assert_eq!(given_up.await, Err(WorkerError::Cancelled));
}

#[tokio::test]
async fn an_extension_ends_with_whoever_needs_it() {
    let bench = Bench::new();
    let extension = bench.extension("peer", "list(calls())\n");
    extension.registration().await.unwrap();
    assert!(extension.pid().await.is_some());
    extension.shutdown().await;
    assert_eq!(extension.pid().await, None);
}

#[tokio::test]
async fn what_an_extension_asks_for_is_answered_while_its_handler_waits() {
    let bench = Bench::new();
    let extension = bench.extension(
        "peer",
        "
for method, number, params in calls():
    said = []
    for place, asked in enumerate(['kodelet.ui.notify', 'kodelet.tool.update', 'kodelet.conversation.fork', 'other']):
        send({'id': place + 1, 'method': asked, 'parentId': number, 'params': {}})
        answer = hear()
        said.append(answer['result'].get('status', 'taken') if 'result' in answer else answer['error']['code'])
    say(number, {'block': {'reason': ' '.join(map(str, said))}})
",
    );
    bench.add(&extension).await;
    let outcome = bench.hooks().dispatch(call("ls")).await;
    assert_eq!(
        outcome.decision().reason(),
        Some("unavailable -32602 -32004 -32601")
    );
}

#[tokio::test]
async fn an_extension_hears_the_start_of_the_session_again_after_its_process_ended() {
    let bench = Bench::new();
    let extension = bench.extension(
        "peer",
        "
REGISTERED['subscriptions'] = [{'event': 'session.start'}, {'event': 'tool.call'}]
rules = []
for method, number, params in calls():
    if params['event'] == 'session.start':
        note('heard', params['context'].get('sessionId', 'a session'))
        rules.append('rm')
        say(number, {})
        continue
    command = params['payload']['tool']['input']['command']
    if command == 'crash':
        os._exit(3)
    say(number, {'block': {'reason': 'guarded'}} if command in rules else {})
",
    );
    bench.add(&extension).await;
    let _started = bench.hooks().dispatch(SessionStart::default()).await;
    for heard in 1..=2 {
        let outcome = bench.hooks().dispatch(call("rm")).await;
        assert_eq!(outcome.decision().reason(), Some("guarded"));
        let lines = fs::read_to_string(bench.path("heard")).unwrap();
        assert_eq!(lines.lines().count(), heard);
        let _failed = bench.hooks().dispatch(call("crash")).await;
    }
    // A session that continues after its end is started again.
    extension.end_session("s1");
    let outcome = bench.hooks().dispatch(call("rm")).await;
    assert_eq!(outcome.decision().reason(), Some("guarded"));
}

#[tokio::test]
async fn the_host_receives_what_an_extension_prints_on_stderr() {
    let bench = Bench::new();
    let host = Arc::new(Listener::default());
    let peer = "
print('it starts', file=sys.stderr, flush=True)
for method, number, params in calls():
    print('it judges', file=sys.stderr, flush=True)
    say(number, {})
";
    let extension = bench.hosted("peer", peer, Arc::clone(&host) as _);
    bench.add(&extension).await;
    let _judged = bench.hooks().dispatch(call("ls")).await;
    assert_eq!(host.lines(2).await, ["it starts", "it judges"]);
}

/// A host with two chats, whose states have these names.
#[derive(Debug, Default)]
struct Chats {
    asked: Mutex<Vec<String>>,
}

impl Host for Chats {
    like_no_host!(flags main_session on_output add);

    fn has_ui(&self) -> bool {
        true
    }

    fn is_strict(&self) -> bool {
        false
    }

    fn script_session(&self, session: &str) -> Option<String> {
        Some(format!("{session}#0"))
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let session = params["session"].as_str().unwrap_or("no session");
        let asked = format!("{method} in {session}");
        self.asked.lock().unwrap().push(asked);
        Box::pin(std::future::ready(Ok(json!({}))))
    }
}

#[tokio::test]
async fn a_request_reaches_only_the_session_of_the_call_that_it_belongs_to() {
    let peer = "
for method, number, params in calls():
    said = []
    for place, (parent, more) in enumerate([(None, {'session': 's2#0'}), (number, {'session': 's2#0'}), (None, {}), (number, {})]):
        send({'id': place + 1, 'method': 'kodelet.ui.notify', 'parentId': parent, 'params': dict(more, message='hi')})
        answer = hear()
        said.append(answer['error']['message'] if 'error' in answer else 'done')
    say(number, {'block': {'reason': '; '.join(said)}})
";
    let bench = Bench::new();
    let host = Arc::new(Chats::default());
    let extension = bench.hosted("peer", peer, Arc::clone(&host) as _);
    bench.add(&extension).await;
    let outcome = bench.hooks().dispatch(call("ls")).await;
    let refused = "`kodelet.ui.notify` names a `session`, \
        expected only `parentId`: the id of the call that it belongs to";
    let expected = format!("{refused}; {refused}; done; done");
    assert_eq!(outcome.decision().reason(), Some(&*expected));
    let asked = host.asked.lock().unwrap();
    assert_eq!(*asked, ["ui/notify in no session", "ui/notify in s1#0"]);
}

/// A host with a session that can be copied.
#[derive(Debug)]
struct Copies;

impl Host for Copies {
    like_no_host!(has_ui flags script_session main_session on_output add);

    fn is_strict(&self) -> bool {
        false
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        _params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match method {
            "session/copy" => Ok(json!({ "session": "s2" })),
            _ => Err(Refusal::NoMethod),
        };
        Box::pin(std::future::ready(answer))
    }
}

#[tokio::test]
async fn a_running_tool_copies_the_conversation() {
    let peer = "
for method, number, params in calls():
    said = []
    for place, parent in enumerate([number, None, 99]):
        send({'id': place + 1, 'method': 'kodelet.conversation.fork', 'parentId': parent, 'params': {}})
        answer = hear()
        said.append(answer['result']['conversationId'] if 'result' in answer else answer['error']['code'])
    say(number, {'content': ' '.join(map(str, said))})
";
    let (input, context, never) = (
        JsonObject::new(),
        JsonObject::new(),
        CancellationToken::new(),
    );
    let within = crate::AMPLE;
    for (host, expected) in [
        (Arc::new(Copies) as Arc<dyn Host>, "s2 -32602 -32602"),
        (Arc::new(NoHost), "-32004 -32602 -32602"),
    ] {
        let bench = Bench::new();
        let extension = bench.hosted("peer", peer, host);
        let output = extension.run_tool(("fork", &input), (&context, None), None, within, &never);
        assert_eq!(output.await.unwrap().content, expected);
    }
}

/// A user who answers, and who thinks about a confirmation first.
#[derive(Debug)]
struct User {
    asked: Mutex<Vec<String>>,
    pause: Duration,
}

impl Host for User {
    like_no_host!(flags script_session main_session on_output add);

    fn has_ui(&self) -> bool {
        true
    }

    fn is_strict(&self) -> bool {
        false
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(async move {
            if method == "ui/confirm" {
                tokio::time::sleep(self.pause).await;
            }
            self.asked
                .lock()
                .unwrap()
                .push(format!("{method} {params}"));
            Ok(json!({ "answer": match method {
                "ui/confirm" => json!(true),
                "ui/select" => json!("b"),
                _ => json!("me"),
            }}))
        })
    }
}

/// Asks the user in a handler whose time limit is two seconds.
const ASKS: &str = "
def ask(method, number, **params):
    send({'id': 1, 'method': 'kodelet.ui.' + method, 'parentId': number, 'params': params})
    return hear()['result']
REGISTERED = {'name': 'peer', 'subscriptions': [{'event': 'tool.call', 'timeoutInSec': 2}]}
for method, number, params in calls():
    said = [
        ask('confirm', number, title='Sure?'),
        ask('select', number, title='Which?', options=['a', 'b']),
        ask('input', number, title='Name?'),
    ]
    note('said', json.dumps(said))
    say(number, {'block': {'reason': 'asked'}})
";

#[tokio::test]
async fn a_handler_does_not_time_out_while_the_user_thinks() {
    let bench = Bench::new();
    let user = Arc::new(User {
        asked: Mutex::default(),
        pause: Duration::from_millis(2_500),
    });
    let extension = bench.hosted("peer", ASKS, Arc::clone(&user) as _);
    bench.add(&extension).await;
    let outcome = bench.hooks().dispatch(call("ls")).await;
    assert_eq!(outcome.decision().reason(), Some("asked"));
    let said: Value = serde_json::from_str(&bench.noted("said")[0]).unwrap();
    let expected = json!([
        {"status": "submitted", "value": "true", "confirmed": true},
        {"status": "submitted", "value": "b"},
        {"status": "submitted", "value": "me"},
    ]);
    assert_eq!(said, expected);
    assert_eq!(user.asked.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn an_extension_learns_whether_there_is_a_user() {
    for (host, has_user) in [
        (Arc::new(NoHost) as Arc<dyn Host>, false),
        (
            Arc::new(User {
                asked: Mutex::default(),
                pause: Duration::ZERO,
            }) as _,
            true,
        ),
    ] {
        let bench = Bench::new();
        let extension = bench.hosted("peer", "list(calls())\n", host);
        extension.registration().await.unwrap();
        let hello: Value = serde_json::from_str(&bench.noted("initialize")[0]).unwrap();
        let ui = &hello["capabilities"]["ui"];
        assert_eq!(ui["confirm"], has_user);
        assert_eq!(ui["surfaces"], false);
    }
}

// E11: the output of an extension's tool so far.
#[tokio::test]
async fn a_tool_says_what_it_has_so_far_as_long_as_its_call_is_not_answered() {
    let bench = Bench::new();
    let extension = bench.extension(
        "peer",
        "
def update(number, params, **more):
    send(dict({'id': number, 'method': 'kodelet.tool.update', 'params': params}, **more))
    answer = hear()
    return 'taken' if answer.get('result') == {} else str(answer['error']['code'])
before = None
for method, number, params in calls():
    said = [
        update(1, {'content': 'one', 'data': {'step': 1}}, parentId=number),
        update(2, {'content': 'two', 'data': None}, parentId=number),
        update(3, {'content': 3}, parentId=number),
        update(4, {'content': 'nobody'}),
        update(5, {'content': 'none'}, parentId='x'),
        update(6, {'content': 'late'}, parentId=before or 99),
    ]
    before = number
    say(number, {'content': ' '.join(said)})
",
    );
    let heard = Arc::new(Mutex::new(Vec::new()));
    let (within, never) = (Duration::from_mins(1), CancellationToken::new());
    for is_wanted in [true, false] {
        let listener = Arc::clone(&heard);
        let snapshots: Option<ToolSnapshots> = is_wanted
            .then(|| -> ToolSnapshots { Arc::new(move |it| listener.lock().unwrap().push(it)) });
        let none = JsonObject::new();
        let output = extension
            .run_tool(("weather", &none), (&none, None), snapshots, within, &never)
            .await;
        assert_eq!(
            output.unwrap().content,
            "taken taken -32602 -32602 -32602 -32602"
        );
    }
    let snapshot = |content: &str, data: Option<Value>| ToolSnapshot {
        content: content.to_owned(),
        data: data.map(|data| object(&data)),
    };
    assert_eq!(
        *heard.lock().unwrap(),
        [
            snapshot("one", Some(json!({"step": 1}))),
            snapshot("two", None)
        ]
    );
}
