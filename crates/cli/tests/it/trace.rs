//! An agent's life as the hooks of each system see it: one conversation for each hook system, with hooks on every
//! event that the system documents. The golden files have the events and the hooks' inputs, in order.
//!
//! `cargo test -p tenterhook-cli --test it trace -- --nocapture` prints which event fires in which of them.

mod golden;
mod play;
mod table;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::json;
use tenterhook_systems::{docker_agent, kodelet, morphix, operator, pi};

use self::golden::golden;
use self::play::{Play, Step};
use crate::stage::Test;

/// Writes a file into the test's folder or a subfolder.
fn place(test: Test, path: &str, content: &str) -> Test {
    let path = test.work().join("..").join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    test
}

fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    names.join(", ")
}

/// Events of gateways, channels and voice. The agent has none of these.
fn is_of_a_gateway(name: &str) -> bool {
    name.contains(':')
}

/// Two models, so that the conversation can switch between them.
const MODELS: &str = "models: {first: \"scripted:script.yaml\", second: \"scripted:second.yaml\", empty: \"scripted:empty.yaml\"}";

// --- docker-agent -----------------------------------------------------------------------------

/// Events whose hooks are nested under a matcher.
const MATCHED: [&str; 6] = [
    "tool_guard",
    "pre_tool_use",
    "post_tool_use",
    "permission_request",
    "tool_input_transform",
    "tool_response_transform",
];

/// The main agent uses a tool that fills the context, so the context is compacted. It gets messages while it works.
/// It gives the helper a task that succeeds and a task that fails. It reaches the limit of model calls and may
/// continue.
const DOCKER_SCRIPT: &str = "\
turns:
  - text: I look first.
    tool_calls: [{ name: shell, arguments: { cmd: echo hi } }]
    usage: { input_tokens: 900, output_tokens: 50 }
  - summary: The user wants to go.
  - text: I wait.
    tool_calls: [{ name: shell, arguments: { cmd: \"until test -e go; do sleep 0.01; done\" } }]
  - text: I ask for help.
    tool_calls: [{ name: transfer_task, arguments: { agent: helper, task: look around } }]
  - for: helper
    text: There is nothing.
  - text: I ask again.
    tool_calls: [{ name: transfer_task, arguments: { agent: helper, task: look again } }]
  - for: helper
    error: the service is gone
  - text: That was all.
  - text: And what is more.
";

fn docker_agent_file() -> String {
    let mut text =
        "agents:\n  root:\n    model: scripted:script.yaml\n    sub_agents: [helper]\n    hooks:\n"
            .to_owned();
    for event in docker_agent::EVENTS {
        let name = event.name;
        if name == "worktree_create" {
            continue;
        }
        let command = "printf '{\\\"name\\\":\\\"%s\\\",\\\"event\\\":%s}\\\\n' NAME \\\"$(cat)\\\" >> trace.jsonl";
        let hook = format!(
            "{{type: command, timeout: 30, command: \"{}\"}}",
            command.replace("NAME", name)
        );
        if MATCHED.contains(&name) {
            writeln!(text, "      {name}: [{{matcher: \"*\", hooks: [{hook}]}}]").unwrap();
        } else {
            writeln!(text, "      {name}: [{hook}]").unwrap();
        }
    }
    text + "  helper:\n    description: looks around\n"
}

#[test]
fn the_life_of_an_agent_as_docker_agent_has_it() {
    let test = Test::new()
        .args(["run", "--no-journal", "--hooks", "agent.yaml"])
        .args(["--max-iterations", "4", "--compact-at", "500"])
        .file("agent.yaml", &docker_agent_file())
        .file("script.yaml", DOCKER_SCRIPT);
    let played = Play::start(test)
        .answer("approve", &json!({"decision": "allow"}))
        .answer("question", &json!({"answer": "5"}))
        .run(&[
            Step::SayAndStay("go", "tool_approval_decision", 2),
            Step::Steer("to the left"),
            Step::FollowUp("and then"),
            Step::Touch("go"),
            Step::Wait,
        ]);
    insta::assert_snapshot!("docker_agent", golden(&played));
}

// --- kodelet ----------------------------------------------------------------------------------

/// One executable for each event.
fn kodelet_hook(event: &str) -> String {
    format!(
        "#!/bin/sh
case $1 in
  hook) echo {event} ;;
  run) printf '{{\"name\":\"{event}\",\"event\":%s}}\\n' \"$(cat)\" >> trace.jsonl ;;
esac
"
    )
}

fn kodelet_extension_program() -> String {
    let names = quoted(kodelet::extension::EVENTS.iter().map(|event| event.name));
    format!(
        "#!/usr/bin/env python3
import json, os, sys
log = open(os.path.join(os.environ['KODELET_EXTENSION_WORKSPACE_CWD'], 'trace.jsonl'), 'a')
while True:
    head = sys.stdin.buffer.readline()
    if not head:
        break
    sys.stdin.buffer.readline()
    message = json.loads(sys.stdin.buffer.read(int(head.split(b':')[1])))
    params = message.get('params')
    if message['method'] == 'extension.initialize':
        result = {{'name': 'trace', 'subscriptions': [{{'event': event}} for event in [{names}]]}}
    elif message['method'] == 'extension.event.handle':
        print(json.dumps({{'name': params['event'], 'event': params['payload']}}), file=log, flush=True)
        result = None
    else:
        continue
    body = json.dumps({{'jsonrpc': '2.0', 'id': message['id'], 'result': result}}).encode()
    sys.stdout.buffer.write(b'Content-Length: %d\\r\\n\\r\\n' % len(body) + body)
    sys.stdout.buffer.flush()
"
    )
}

const KODELET_SCRIPT: &str = "\
turns:
  - text: I look first.
    tool_calls: [{ name: shell, arguments: { cmd: echo hi } }]
  - text: That was all.
";

#[test]
fn the_life_of_an_agent_as_kodelet_has_it() {
    let hooks = kodelet::EVENTS.iter().fold(Test::new(), |test, event| {
        let path = format!("../home/.kodelet/hooks/{}", event.name);
        test.executable(&path, &kodelet_hook(event.name))
    });
    let test = hooks
        .args(["run", "--no-journal", "--yes"])
        .executable(
            "../home/.kodelet/extensions/trace/kodelet-extension-trace",
            &kodelet_extension_program(),
        )
        .script(KODELET_SCRIPT);
    let played = Play::start(test).run(&[Step::Say("go"), Step::Say("/reload")]);
    insta::assert_snapshot!("kodelet", golden(&played));
}

// --- pi ---------------------------------------------------------------------------------------

fn pi_extension() -> String {
    let names = quoted(pi::EVENTS.iter().map(|event| event.name));
    format!(
        "import {{ appendFileSync }} from 'node:fs';
export default function (pi: any) {{
  for (const name of [{names}]) {{
    pi.on(name, (event: object) => appendFileSync('trace.jsonl', JSON.stringify({{ name, event }}) + '\\n'));
  }}
}}
"
    )
}

const PI_SCRIPT: &str = "\
turns:
  - text: I look first.
    tool_calls: [{ name: shell, arguments: { cmd: echo hi } }]
  - text: That was all.
  - text: There is more.
  - summary: There was more.
";

/// A long day of a user: prompts, shell commands, other models, branches and sessions.
const DAY: &[Step] = &[
    Step::Say("go"),
    Step::Say("!echo mine"),
    Step::Say("/model second"),
    Step::Say("/thinking high"),
    Step::Say("/name notes"),
    Step::Say("/compact"),
    Step::Say("/model empty"),
    Step::SayInVain("/compact"),
    Step::Say("/model first"),
    Step::Say("more"),
    Step::Say("/tree 1 summary"),
    Step::Say("/fork 1"),
    Step::Say("/new"),
    Step::Say("/resume $FIRST"),
    Step::Say("/reload"),
];

fn day(test: Test) -> Test {
    place(test, "config/models.yaml", MODELS)
        .args([
            "run",
            "--no-journal",
            "--yes",
            "--shell-lines",
            "--model",
            "first",
        ])
        .file("script.yaml", PI_SCRIPT)
        .file("second.yaml", "turns: [{summary: The user wanted to go.}]")
        .file("empty.yaml", "turns: []")
}

#[test]
fn the_life_of_an_agent_as_pi_has_it() {
    let test = place(
        day(Test::new()),
        "home/.pi/agent/extensions/trace.ts",
        &pi_extension(),
    );
    let played = Play::start(test).run(DAY);
    insta::assert_snapshot!("pi", golden(&played));
}

/// A Python function that returns the public attributes of an event.
const PUBLIC: &str = "
def public(event):
    return {key: value for key, value in vars(event).items() if not key.startswith('_')}
";

// --- Operator ---------------------------------------------------------------------------------

fn operator_hooks() -> String {
    let names = operator::EVENTS.iter().map(|event| event.name);
    let names = quoted(names.filter(|name| !is_of_a_gateway(name)));
    format!(
        "import json
{PUBLIC}
def watch(name):
    def handler(event):
        with open('trace.jsonl', 'a') as log:
            print(json.dumps({{'name': name, 'event': public(event)}}, default=public), file=log)
    return handler

hooks = [(name, watch(name)) for name in [{names}]]
"
    )
}

const OPERATOR_AGENTS: &str = "\
agents:
  root: { model: first, sub_agents: [helper] }
  helper: { description: looks around }
";

const OPERATOR_SCRIPT: &str = "\
turns:
  - text: I look first.
    tool_calls: [{ name: shell, arguments: { cmd: \"echo hi; until test -e go; do sleep 0.01; done; exit 3\" } }]
  - text: I ask for help.
    tool_calls: [{ name: transfer_task, arguments: { agent: helper, task: look around } }]
  - for: helper
    text: There is nothing.
  - error: the service is busy
    retryable: true
  - text: That was all.
  - text: And what is more.
  - error: the service is gone
  - text: There is more.
  - summary: There was more.
";

#[test]
fn the_life_of_an_agent_as_operator_has_it() {
    let test = place(
        day(Test::new()),
        "home/.operator/profiles/default/hooks/trace.py",
        &operator_hooks(),
    )
    .args(["--hooks", "agent.yaml"])
    .file("agent.yaml", OPERATOR_AGENTS)
    .file("script.yaml", OPERATOR_SCRIPT);
    let played = Play::start(test)
        .then(&[
            Step::SayAndStay("go", "tool_execution_update", 1),
            Step::FollowUp("and then"),
            Step::Touch("go"),
            Step::Wait,
        ])
        .run(&DAY[1..]);
    insta::assert_snapshot!("operator", golden(&played));
}

// --- morphix ----------------------------------------------------------------------------------

fn morphix_hooks() -> String {
    let names = quoted(morphix::EVENTS.iter().map(|event| event.name));
    format!(
        "import json
from core.hooks_registry import hooks_registry
{PUBLIC}
def watch(name):
    async def handler(ctx):
        with open('trace.jsonl', 'a') as log:
            print(json.dumps({{'name': name, 'event': public(ctx)}}, default=str), file=log)
    handler.__name__ = name
    return handler

for name in [{names}]:
    hooks_registry.register(name)(watch(name))
"
    )
}

const MORPHIX_SCRIPT: &str = "\
turns:
  - tool_calls: [{ name: shell, arguments: { cmd: echo hi } }]
  - tool_calls: [{ name: read_file, arguments: { path: nothing } }]
  - tool_calls: [{ name: shell, arguments: { cmd: rm -rf x } }]
  - tool_calls: [{ name: write_file, arguments: { path: x, content: x } }]
    usage: { input_tokens: 900, output_tokens: 200 }
  - tool_calls: [{ name: shell, arguments: { cmd: echo too much } }]
  - text: That was all.
";

const MORPHIX_AGENT: &str = "\
agents:
  root:
    model: scripted:script.yaml
    toolsets: [{type: shell}, {type: filesystem, tools: [read_file]}]
permissions: { deny: [\"shell(cmd=rm*)\"] }
";

#[test]
fn the_life_of_an_agent_as_morphix_has_it() {
    let test = place(Test::new(), "work/core/hooks/trace.py", &morphix_hooks());
    let trusted = test.args(["trust", "--all"]).run();
    assert_eq!(trusted.status, 0, "{}", trusted.stderr);
    let test = trusted
        .again(["run", "--no-journal", "--yes", "--hooks", "agent.yaml"])
        .args(["--token-budget", "1000"])
        .file("agent.yaml", MORPHIX_AGENT)
        .file("script.yaml", MORPHIX_SCRIPT);
    let played = Play::start(test).run(&[Step::Say("go")]);
    insta::assert_snapshot!("morphix", golden(&played));
}

/// Returns the golden file of a conversation.
fn stored(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    fs::read_to_string(folder.join(format!("it__trace__{name}.snap"))).unwrap()
}
