//! Extensions in chats of the gateway: their tools, commands and questions, and a state for each chat.

use crate::chat_client::ChatClient;
use crate::stage::Test;

/// Counts in a variable of the extension. Each chat must have its own.
const COUNTER: &str = r#"
export default (pi) => {
  let count = 0;
  pi.registerTool({
    name: "count", description: "Counts", parameters: { type: "object", properties: {} },
    async execute(_id, _input, _signal, _onUpdate, ctx) {
      count += 1;
      pi.appendEntry("count", { count });
      return { content: [{ type: "text", text: `count ${count} in ${ctx.sessionManager.getSessionId()}` }] };
    },
  });
  pi.on("before_agent_start", () => ({ message: { customType: "seen", content: `so far ${count}`, display: false } }));
  pi.registerCommand("total", { description: "Shows the count", handler: async (args, ctx) => {
    const stored = ctx.sessionManager.getBranch().filter((entry) => entry.customType === "count");
    ctx.ui.notify(`total ${count}, ${stored.length} stored, said '${args}'`);
  } });
  pi.registerCommand("quiet", { handler: async () => { count += 10; console.log("ten more"); } });
  pi.registerCommand("go", { handler: async () => { pi.sendUserMessage("count it"); } });
  pi.registerCommand("fail", { handler: async () => { throw new Error("no luck"); } });
  pi.registerCommand("sure", { handler: async (_args, ctx) => {
    ctx.ui.notify(`sure: ${await ctx.ui.confirm("Delete", "everything?")}`);
  } });
  pi.registerCommand("fresh", { handler: async (_args, ctx) => {
    await ctx.newSession().catch((error) => ctx.ui.notify(error.message));
  } });
  pi.registerCommand("draw", { handler: async (_args, ctx) => {
    await ctx.ui.custom(() => ({ render: () => ["x"] })).catch((error) => ctx.ui.notify(`no: ${error.message}`));
  } });
};
"#;

/// An extension of kodelet, whose process all chats share.
const HELPER: &str = "#!/usr/bin/env python3
import json, sys

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

while True:
    message = hear()
    params = message.get('params', {})
    if message['method'] == 'extension.initialize':
        result = {'name': 'helper', 'tools': [{'name': 'count', 'description': 'Counts'}],
                  'commands': [{'name': 'hello', 'description': 'Greets'}, {'name': 'sure'}, {'name': 'more'}]}
    elif message['method'] == 'extension.tool.execute':
        result = {'content': 'count'}
    elif params.get('name') == 'hello':
        result = {'action': 'respond', 'response': 'hello ' + ' '.join(params['invocation']['args'])}
    elif params.get('name') == 'sure':
        answer = ask('confirm', message['id'], {'title': 'Delete', 'message': 'everything?'})
        result = {'action': 'respond', 'response': json.dumps(answer.get('confirmed'))}
    elif params.get('name') == 'more':
        result = {'action': 'runAgent', 'prompt': 'count it'}
    else:
        continue
    send({'id': message['id'], 'result': result})
";

const COUNTS: &str = "\
turns:
  - tool_calls: [{name: count}]
  - text: Counted.
  - tool_calls: [{name: count}]
  - text: Counted.
  - tool_calls: [{name: count}]
  - text: Counted.
";

fn gateway(options: &str) -> Test {
    Test::new()
        .args("gateway run --no-journal --listen 127.0.0.1:0".split(' '))
        .args(options.split_whitespace())
        .script(COUNTS)
        .file("../home/.pi/agent/extensions/counter.js", COUNTER)
}

#[test]
fn each_chat_has_tools_and_commands_of_extensions_with_a_state_of_its_own() {
    let (running, client) = ChatClient::start(gateway("--allow count"));
    assert_eq!(client.ask("a", "hi"), ["Counted."]);
    assert_eq!(client.ask("a", "hi"), ["Counted."]);
    assert_eq!(client.ask("b", "hi"), ["Counted."]);
    let total = |count, words| format!("total {count}, {count} stored, said '{words}'");
    assert_eq!(client.ask("a", "/total so far"), [total(2, "so far")]);
    assert_eq!(client.ask("b", "/total"), [total(1, "")]);
    assert_eq!(client.ask("c", "/total"), [total(0, "")]);
    // A new session of the chat begins with a new state.
    assert_eq!(client.ask("a", "/new"), ["A new conversation begins."]);
    assert_eq!(client.ask("a", "/total"), [total(0, "")]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_command_answers_in_the_chat_that_called_it() {
    let (running, client) = ChatClient::start(gateway("--allow count"));
    assert_eq!(client.ask("a", "/quiet"), ["Done."]);
    assert_eq!(client.ask("a", "/go"), ["Counted."]);
    let failed = client.ask("a", "/fail");
    assert!(failed[0].contains("no luck"), "{failed:?}");
    let refused = client.ask("a", "/fresh");
    assert!(
        refused[0].contains("a chat keeps its session"),
        "{refused:?}"
    );
    let drawn = client.ask("a", "/draw");
    assert!(drawn[0].starts_with("no: "), "{drawn:?}");
    assert_eq!(client.ask("a", "/total"), ["total 11, 1 stored, said ''"]);
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 0);
    assert!(ran.stderr.contains("ten more"), "{}", ran.stderr);
}

/// Sends a command that asks a question, answers it, and returns the text of the first frame of a type after that.
fn say_yes(client: &ChatClient, command: &str, kind: &str) -> String {
    let mut frames = client.say("a", command);
    let question = frames.find(|frame| frame["type"] == "question").unwrap();
    let path = format!(
        "/v1/chats/a/approvals/{}",
        question["nonce"].as_str().unwrap()
    );
    let (status, answer) = client.post(&path, r#"{"text":"yes"}"#);
    assert!(status.starts_with('2'), "{answer}");
    let shown = frames.find(|frame| frame["type"] == kind).unwrap();
    shown["text"].as_str().unwrap().to_owned()
}

#[test]
fn extensions_of_kodelet_have_tools_commands_and_questions_in_chats() {
    let test = Test::new()
        .args("gateway run --no-journal --listen 127.0.0.1:0 --allow count".split(' '))
        .script(COUNTS)
        .executable(
            "../home/.kodelet/extensions/helper/kodelet-extension-helper",
            HELPER,
        );
    let (running, client) = ChatClient::start(test);
    assert_eq!(client.ask("a", "/hello ada"), ["hello ada"]);
    assert_eq!(client.ask("a", "/more"), ["Counted."]);
    assert_eq!(say_yes(&client, "/sure", "end"), "true");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_question_of_a_command_is_answered_in_the_owners_chat() {
    let (running, client) = ChatClient::start(gateway(""));
    assert_eq!(say_yes(&client, "/sure", "notice"), "sure: true");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn only_owners_use_commands_of_extensions() {
    let (running, client) = ChatClient::start(gateway("--allow count"));
    let member = client.member(&running);
    let refused = member.ask("m", "/total");
    assert_eq!(refused[0], "Only owners can use `/total`.");
    let help = |client: &ChatClient, chat| client.ask(chat, "/help").join("\n");
    assert!(!help(&member, "m").contains("/total"));
    assert!(help(&client, "a").contains("\n/total Shows the count\n"));
    // Members can use the tools, under the same rules.
    assert_eq!(member.ask("m", "hi"), ["Counted."]);
    // The gateway's own commands and those of the terminal come first.
    let refused = client.ask("a", "/model x");
    assert_eq!(refused[0], "`/model` cannot be used in a chat.");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn tools_of_extensions_are_guarded_like_others() {
    let (running, client) = ChatClient::start(gateway("--deny count"));
    let frames: Vec<_> = client.say("a", "hi").collect();
    let is_end = |kind: &str| {
        let mut chunks = frames.iter().filter(|frame| frame["type"] == "chunk");
        chunks.any(|frame| frame["kind"] == kind && frame["is_error"] == true)
    };
    assert!(is_end("tool_end"), "{frames:?}");
    assert_eq!(client.ask("a", "/total"), ["total 0, 0 stored, said ''"]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}
