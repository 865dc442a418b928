//! Extensions of kodelet as a user meets them: `list`, `explain` and `run`.

use serde_json::Value;

use crate::stage::Test;

/// An extension that blocks `sudo`, redacts results, and writes down what it is told.
const GUARD: &str = "#!/usr/bin/env python3
import json, os, sys

def answer(event, payload):
    if event == 'tool.call' and 'sudo' in payload['tool']['input']['cmd']:
        return {'block': {'reason': 'no sudo'}}
    if event == 'tool.result':
        output = payload['tool']['output']
        text = output['metadata'].get('output')
        if text:
            output['metadata']['output'] = text.replace('secret', '***')
            return {'output': output}
    if event == 'user.message':
        return {'message': payload['message'] + '!'}
    return None

events = ['session.start', 'user.message', 'agent.init', 'agent.start', 'turn.start', 'tool.call',
          'tool.result', 'turn.end', 'agent.end', 'session.end']
log = open(os.path.join(os.environ['KODELET_EXTENSION_WORKSPACE_CWD'], 'log'), 'a')
while True:
    head = sys.stdin.buffer.readline()
    if not head:
        break
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))
    params = message['params']
    if message['method'] == 'extension.initialize':
        result = {'name': 'guard', 'subscriptions': [{'event': event} for event in events],
                  'tools': [{'name': 'weather', 'description': 'Says it.'}]}
    elif message['method'] == 'extension.event.handle':
        print(json.dumps({'event': params['event'], 'payload': params['payload']}), file=log, flush=True)
        result = answer(params['event'], params['payload'])
    else:
        continue
    body = json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}).encode()
    sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
    sys.stdout.buffer.flush()
";

const SCRIPT: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo a secret}}]
  - tool_calls: [{name: shell, arguments: {cmd: sudo ls}}]
  - text: done
";

fn guarded() -> Test {
    Test::new().executable(
        "../home/.kodelet/extensions/guard/kodelet-extension-guard",
        GUARD,
    )
}

#[test]
fn an_extension_is_listed_and_explained() {
    let ran = guarded().args(["explain", "pre_tool_use"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("guard:tool.call"), "{}", ran.stdout);
    let ran = ran.again(["list"]).run();
    for event in ["tool.call", "user.message", "agent.end"] {
        assert!(
            ran.stdout.contains(&format!("guard:{event}")),
            "{}",
            ran.stdout
        );
    }
}

// E19: a blocked call has a result too, and the extension hears of it.
#[test]
fn a_run_asks_one_process_for_everything_that_happens() {
    let ran = guarded()
        .script(SCRIPT)
        .args(["run", "hi", "--yes", "--no-journal"])
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let log = ran.lines("log");
    let events: Vec<&str> = log
        .iter()
        .filter_map(|line| line["event"].as_str())
        .collect();
    let expected = [
        "session.start",
        "user.message",
        "agent.init",
        "agent.start",
        "turn.start",
        "tool.call",
        "tool.result",
        "turn.start",
        "tool.call",
        "tool.result",
        "turn.start",
        "agent.end",
        "turn.end",
        "session.end",
    ];
    assert_eq!(events, expected);
    let of = |event: &str| -> Vec<&Value> {
        let lines = log.iter().filter(|line| line["event"] == event);
        lines.map(|line| &line["payload"]).collect()
    };
    let results = of("tool.result");
    let outputs: Vec<_> = results.iter().map(|it| &it["tool"]["output"]).collect();
    assert_eq!(outputs[0]["metadata"]["output"], "a secret\n");
    assert_eq!(outputs[1]["metadataType"], "blocked");
    assert_eq!(outputs[1]["metadata"]["reason"], "no sudo");
    assert_eq!(of("agent.end")[0]["messages"][0]["content"], "hi!");
    let told = of("agent.end")[0]["messages"].to_string();
    assert!(
        told.contains("a ***") && ran.stdout.contains("    a ***\n"),
        "{told}"
    );
}
