//! Extensions of kodelet as a user sees them: `list`, `explain` and `run`.

use serde_json::{Value, json};

use crate::stage::{Test, json_lines};
use crate::terminal::{Sitting, run};

/// An extension that blocks `sudo`, redacts results, and logs its events.
const GUARD: &str = "#!/usr/bin/env python3
import json, os, sys

def answer(event, payload):
    if event == 'tool.call' and 'sudo' in payload['tool']['input']['command']:
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

// E19: a blocked call has a result too, and the extension receives it.
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
    let reason = outputs[1]["metadata"]["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("no sudo\nIf this was wrong, "),
        "{reason}"
    );
    assert_eq!(of("agent.end")[0]["messages"][0]["content"], "hi!");
    let told = of("agent.end")[0]["messages"].to_string();
    assert!(
        told.contains("a ***") && ran.stdout.contains("    a ***\n"),
        "{told}"
    );
}

/// An extension with a tool and commands.
const HELPER: &str = "#!/usr/bin/env python3
import json, sys

def answer(method, params):
    if method == 'extension.initialize':
        schema = {'type': 'object', 'properties': {'city': {'type': 'string'}}, 'required': ['city']}
        commands = [{'name': name, 'aliases': aliases, 'description': ''} for name, aliases in
                    [('say', ['s']), ('plan', []), ('skip', []), ('odd', [])]]
        return {'name': 'helper', 'subscriptions': [], 'commands': commands,
                'tools': [{'name': 'weather', 'description': 'Says it.', 'inputSchema': schema}]}
    if method == 'extension.tool.execute':
        city = params['input']['city']
        return {'content': f'rain in {city}'} if city != 'nowhere' else {'error': 'no such city'}
    given = params['invocation']
    return {
        'say': {'action': 'respond', 'response': f\"{given['commandName']} {given['args']} {params['input']}\"},
        'plan': {'action': 'runAgent', 'prompt': 'a plan'},
        'skip': {'action': 'pass'},
        'odd': {'action': 'dance'},
    }[params['name']]

while True:
    head = sys.stdin.buffer.readline()
    if not head:
        break
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))
    if 'id' in message:
        result = answer(message['method'], message['params'])
        body = json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': result}).encode()
        sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
        sys.stdout.buffer.flush()
";

#[test]
fn tools_and_commands_of_an_extension_are_those_of_the_agent() {
    let ran = Test::new()
        .executable(
            "../home/.kodelet/extensions/helper/kodelet-extension-helper",
            HELPER,
        )
        .script(
            "turns:\n  - tool_calls: [{name: weather, arguments: {city: Paris}}]\n  - tool_calls: [{name: weather, arguments: {city: nowhere}}]\n  \
             - text: first\n  - text: second\n",
        )
        .args(["run", "--no-journal", "--allow", "weather"])
        .hooks("hooks: [{name: log, event: user_prompt_submit, command: cat >> prompts; echo >> prompts}]")
        .stdin("/s a --b=c\n/plan\n/skip this\n/odd\n")
        .run();
    for text in [
        "s ['a', '--b=c'] {'b': 'c'}",
        "rain in Paris",
        "no such city",
        "first",
        "second",
    ] {
        assert!(
            ran.stdout.contains(text),
            "{text}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
    let refused =
        "command `/odd`: unknown action `dance`, expected `pass`, `respond` or `runAgent`";
    assert!(ran.stderr.contains(refused), "{}", ran.stderr);
    let prompts = ran.lines("prompts");
    let prompts: Vec<&Value> = prompts.iter().map(|event| &event["prompt"]).collect();
    assert_eq!(prompts, ["a plan", "/skip this"]);
}

#[test]
fn a_reload_replaces_the_code_of_an_extensions_commands_and_tools() {
    let next = HELPER
        .replace("rain in", "sun in")
        .replace("{given['commandName']}", "changed {given['commandName']}")
        .replace("('odd', [])", "('odd', []), ('more', [])");
    let ran = Test::new()
        .executable(
            "../home/.kodelet/extensions/helper/kodelet-extension-helper",
            HELPER,
        )
        .file("next", &next)
        .script(
            "turns:\n  - tool_calls: [{name: weather, arguments: {city: Paris}}]\n  - text: first\n",
        )
        .args(["run", "--no-journal", "--shell-lines", "--allow", "weather"])
        .stdin(
            "/say 1\n!cat next > ../home/.kodelet/extensions/helper/kodelet-extension-helper\n/say 2\n/reload\n/say 3\n\
             weather\n/more\n",
        )
        .run();
    for text in ["\nsay ['2']", "\nchanged say ['3']", "sun in Paris"] {
        assert!(
            ran.stdout.contains(text),
            "{text}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
    let warning =
        "`helper` registers other tools, commands, flags or providers than when the session began";
    assert!(ran.stderr.contains(warning), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("Unknown command `/more`"),
        "{}",
        ran.stderr
    );
}

/// An extension whose tool sends partial results and logs the answers.
const TELLER: &str = "#!/usr/bin/env python3
import json, sys

def hear():
    head = sys.stdin.buffer.readline()
    if not head:
        sys.exit(0)
    sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))

def send(message):
    body = json.dumps(dict(message, jsonrpc='2.0')).encode()
    sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
    sys.stdout.buffer.flush()

while True:
    message = hear()
    if message['method'] == 'extension.initialize':
        assert message['params']['capabilities']['toolUpdates']
        weather = {'name': 'weather', 'description': 'Says it.'}
        broken = {'name': 'broken', 'description': 'Has no schema.', 'inputSchema': {'type': 'objct'}}
        send({'id': message['id'], 'result': {'name': 'teller', 'tools': [weather, broken]}})
    elif message['method'] == 'extension.tool.execute':
        send({'id': 1, 'parentId': message['id'], 'method': 'kodelet.tool.update',
              'params': {'content': 'clouds', 'data': {'percent': 50}}})
        said = hear()['result']
        send({'id': message['id'], 'result': {'content': 'rain, and ' + json.dumps(said)}})
";

fn teller() -> Test {
    Test::new().executable(
        "../home/.kodelet/extensions/teller/kodelet-extension-teller",
        TELLER,
    )
}

#[test]
fn what_a_tool_of_an_extension_has_so_far_is_an_event() {
    let ran = teller()
        .args(["run", "go", "--yes", "--no-journal"])
        .args(["--output-format", "jsonl"])
        .script("turns: [{tool_calls: [{name: weather, arguments: {}}]}, {text: done}]")
        .run();
    let lines = json_lines(&ran.stdout);
    let of = |name: &str| lines.iter().find(|line| line["event"] == name).unwrap();
    let partial = &of("tool_execution_update")["partial_result"];
    assert_eq!(
        (&partial["content"][0]["text"], &partial["details"]),
        (&json!("clouds"), &json!({"percent": 50}))
    );
    assert_eq!(
        of("tool_execution_end")["result"]["content"][0]["text"],
        "rain, and {}"
    );
}

#[test]
fn a_tool_whose_schema_is_none_is_left_out_with_a_warning() {
    let ran = teller()
        .args(["run", "go", "--yes", "--no-journal"])
        .script("turns: [{tool_calls: [{name: broken, arguments: {}}]}, {text: done}]")
        .run();
    assert!(
        ran.stderr.contains("warning:") && ran.stderr.contains("`broken`"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stdout.contains("Unknown tool `broken`") && ran.stdout.contains("`weather`"),
        "{}",
        ran.stdout
    );
}

/// An extension that asks the user about each call and runs it only after a yes.
const ASKER: &str = "#!/usr/bin/env python3
import json, os, sys

def hear():
    head = sys.stdin.buffer.readline()
    if not head:
        sys.exit(0)
    sys.stdin.buffer.readline()
    return json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))

def send(message):
    body = json.dumps({'jsonrpc': '2.0', **message}).encode()
    sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
    sys.stdout.buffer.flush()

def ask(method, call, params):
    send({'id': 1, 'parentId': call, 'method': 'kodelet.ui.' + method, 'params': params})
    return hear()['result']

log = open(os.path.join(os.environ['KODELET_EXTENSION_WORKSPACE_CWD'], 'said'), 'a')
while True:
    message = hear()
    if message['method'] == 'extension.initialize':
        result = {'name': 'asker', 'subscriptions': [{'event': 'tool.call'}]}
    elif message['method'] == 'extension.event.handle':
        command = message['params']['payload']['tool']['input']['command']
        said = [
            ask('notify', message['id'], {'title': 'Asker', 'message': 'a call'}),
            ask('confirm', message['id'], {'title': 'Run this?', 'message': command}),
            ask('select', message['id'], {'title': 'Where?', 'options': ['here', 'there']}),
            ask('input', message['id'], {'title': 'Why?', 'defaultValue': 'because'}),
            ask('surface.open', message['id'], {'id': 'game'}),
        ]
        print(json.dumps(said), file=log, flush=True)
        result = None if said[1].get('confirmed') else {'block': {'reason': 'not confirmed'}}
    else:
        continue
    send({'id': message['id'], 'result': result})
";

const TOUCH: &str =
    "turns: [{tool_calls: [{name: shell, arguments: {cmd: touch made}}]}, {text: done}]";

fn asking() -> Test {
    run()
        .executable(
            "../home/.kodelet/extensions/asker/kodelet-extension-asker",
            ASKER,
        )
        .args(["--yes"])
        .script(TOUCH)
}

#[test]
fn an_extension_asks_the_user_at_the_terminal() {
    let sitting = Sitting::start(asking());
    sitting.until_prompt("");
    sitting.press("go\r");
    sitting.answer("[y]es or [n]o:", "y\r");
    sitting.answer("which one? Enter for none:", "2\r");
    sitting.answer("answer:", "\r");
    let screen = sitting.until(|screen| screen.ends_with("done\n>"));
    assert!(screen.contains("Asker: a call"), "{screen}");
    assert!(screen.contains("? Run this?: touch made"), "{screen}");
    sitting.press("\u{4}");
    let (_, status, folder) = sitting.end();
    assert_eq!(status, 0);
    let said = std::fs::read_to_string(folder.path().join("work/said")).unwrap();
    let expected = json!([
        {"status": "submitted"},
        {"status": "submitted", "value": "true", "confirmed": true},
        {"status": "submitted", "value": "there"},
        {"status": "submitted", "value": "because"},
        {"accepted": false, "reason": "it cannot be shown"},
    ]);
    assert_eq!(json_lines(&said), [expected]);
    assert!(folder.path().join("work/made").exists());
}

#[test]
fn without_a_terminal_an_extension_learns_that_no_one_can_be_asked() {
    let ran = asking().args(["go"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let said = ran.lines("said");
    for answer in &said[0].as_array().unwrap()[..4] {
        assert_eq!(answer["status"], "unavailable", "{said:?}");
    }
    assert!(ran.stdout.contains("not confirmed"), "{}", ran.stdout);
    assert!(!ran.path("work/made").exists());
}

/// Copies the conversation in a tool.
const COPIES: &str = "while True:
    message = hear()
    if message['method'] == 'extension.initialize':
        assert message['params']['capabilities']['conversations']['fork']
        send({'id': message['id'], 'result': {'name': 'copier', 'tools': [{'name': 'copy', 'description': 'Copies.'}]}})
    elif message['method'] == 'extension.tool.execute':
        send({'id': 1, 'parentId': message['id'], 'method': 'kodelet.conversation.fork'})
        said = hear()
        copied = said['result']['conversationId'] if 'result' in said else said['error']['code']
        send({'id': message['id'], 'result': {'content': f'copied to {copied}'}})
";

#[test]
fn a_tool_copies_the_conversation_up_to_its_own_call() {
    let (helpers, _) = TELLER.split_once("while True").unwrap();
    let test = || {
        Test::new()
            .executable(
                "../home/.kodelet/extensions/copier/kodelet-extension-copier",
                &format!("{helpers}{COPIES}"),
            )
            .script("turns:\n  - tool_calls: [{name: copy}]\n  - text: first\n")
            .args(["run", "--no-journal", "--allow", "copy", "remember"])
    };
    let ran = test().run();
    let (_, copied) = ran.stdout.split_once("copied to ").unwrap();
    let id = copied.lines().next().unwrap().to_owned();
    let resume = ["run", "--no-journal", "--resume", &id];
    let ran = ran
        .again(resume)
        .script("turns: [{text: second}]")
        .stdin("/tree\ngo on\n")
        .run();
    assert_eq!(ran.stdout, "● 1 user: remember\nsecond\n", "{}", ran.stderr);
    let ran = test().args(["--no-session"]).run();
    assert!(ran.stdout.contains("copied to -32004"), "{}", ran.stdout);
}
