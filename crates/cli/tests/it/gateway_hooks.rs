//! The hooks of a running gateway: files of Operator as its documentation shows them, and native ones.

use std::fs;
use std::io::{BufRead as _, Write as _};

use serde_json::Value;

use crate::fake_telegram::{FakeTelegram, TOKEN_VARIABLE};
use crate::stage::{Ran, Running, Test, eventually, json_lines};

pub(crate) const SETTINGS: &str = "../config/gateway.yaml";
const SCRIPT: &str = "turns: [{text: Hello from the agent., repeat: true}]";
/// Where files of Operator need no approval.
const OPERATOR: &str = "../home/.operator/profiles/default/hooks";

/// The beginning of files that note lines in the file `log` of the working directory.
fn noting(test: &Test) -> String {
    let log = test.work().join("log");
    format!(
        "def note(line):\n    with open({:?}, 'a') as log:\n        log.write(line + '\\n')\n\n",
        log.to_str().unwrap()
    )
}

pub(crate) fn gateway(args: &str) -> Test {
    Test::new()
        .args(["gateway", "run", "--no-journal"])
        .args(args.split_whitespace())
        .script(SCRIPT)
        .variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1)
}

/// Adds a file of Operator.
pub(crate) fn with_operator(test: Test, code: &str) -> Test {
    let hooks = format!("{}{code}", noting(&test));
    test.file(&format!("{OPERATOR}/gateway.py"), &hooks)
}

fn logged(running: &Running) -> Vec<String> {
    let text = fs::read_to_string(running.work().join("log")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn await_logged(running: &Running, count: usize) -> Vec<String> {
    eventually(|| {
        let lines = logged(running);
        (lines.len() >= count).then_some(lines)
    })
}

/// Returns what a command prints next to the gateway.
fn beside(running: &Running, args: &str) -> String {
    let output = running.beside(["gateway"].into_iter().chain(args.split(' ')));
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8(text).unwrap()
}

/// Returns the status of a channel.
fn channel(running: &Running, id: &str) -> Value {
    let status: Value = serde_json::from_str(&beside(running, "channels --json")).unwrap();
    let channels = status["channels"].as_array().unwrap();
    let channel = channels.iter().find(|channel| channel["id"] == id);
    channel.unwrap().clone()
}

/// The settings with the bot and the page.
fn two_channels(telegram: &FakeTelegram) -> String {
    let settings = telegram.settings("dm: allow, owners: [\"42\"]");
    format!("{settings}  web: {{ kind: web }}\n")
}

const LIFECYCLE: &str = "\
async def on_connect(event):
    note(f'connect {event.channel_id}')

async def on_startup(event):
    note('startup ' + ' '.join(event.channel_ids))

async def on_stop(event):
    note('stop ' + ' '.join(event.channel_ids))

async def on_disconnect(event):
    note(f'disconnect {event.channel_id}')

hooks = [
    ('channel:connect', on_connect),
    ('gateway:startup', on_startup),
    ('gateway:stop', on_stop),
    ('channel:disconnect', on_disconnect),
]
";

// G1, G4
#[test]
fn an_operator_file_sees_the_start_and_the_end_of_the_gateway_and_its_channels() {
    let telegram = FakeTelegram::start();
    let running = with_operator(gateway("--listen 127.0.0.1:0"), LIFECYCLE)
        .file(SETTINGS, &two_channels(&telegram))
        .start();
    let lines = await_logged(&running, 3);
    assert_eq!(lines, ["connect tg", "connect web", "startup tg web"]);
    telegram.await_poll(0);
    running.signal("TERM");
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let log = ran.file("log");
    let mut ended: Vec<&str> = log.lines().skip(3).collect();
    assert_eq!(ended.remove(0), "stop tg web");
    ended.sort_unstable();
    assert_eq!(ended, ["disconnect tg", "disconnect web"]);
}

// G4
#[test]
fn messages_arrive_until_the_hook_of_the_stop_has_returned() {
    let telegram = FakeTelegram::start();
    let test = gateway("--listen off");
    let work = test.work();
    let wait = format!(
        "import os, time\n\nasync def on_stop(event):\n    note('stopping')\n    while not os.path.exists({:?}):\n        time.sleep(0.01)\n\nhooks = [('gateway:stop', on_stop)]\n",
        work.join("go").to_str().unwrap()
    );
    let running = with_operator(test, &wait)
        .file(SETTINGS, &telegram.settings("dm: allow, owners: [\"42\"]"))
        .start();
    telegram.await_poll(0);
    running.signal("TERM");
    await_logged(&running, 1);
    telegram.add_text(1, 42, "Still there?");
    assert_eq!(telegram.await_texts(42, 1), ["Hello from the agent."]);
    fs::write(work.join("go"), "").unwrap();
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

// G2
#[test]
fn an_operator_hook_keeps_a_channel_from_connecting() {
    let telegram = FakeTelegram::start();
    let hook = "\
from operator_use.hooks.types import ChannelConnectResult

async def on_connect(event):
    if event.channel_id == 'tg':
        return ChannelConnectResult(allow=False, reason='not on this machine')

async def on_startup(event):
    note('startup ' + ' '.join(event.channel_ids))

hooks = [('channel:connect', on_connect), ('gateway:startup', on_startup)]
";
    let running = with_operator(gateway("--listen 127.0.0.1:0"), hook)
        .file(SETTINGS, &two_channels(&telegram))
        .start();
    assert_eq!(await_logged(&running, 1), ["startup web"]);
    let blocked = channel(&running, "tg");
    assert_eq!(blocked["state"], "blocked");
    assert_eq!(blocked["error"], "not on this machine");
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(telegram.polls(), 0);
}

// G3
#[test]
fn a_failing_hook_of_operator_lets_a_channel_connect_and_a_native_one_does_not() {
    let telegram = FakeTelegram::start();
    let operator = "async def on_connect(event):\n    raise ValueError('broken')\n\nhooks = [('channel:connect', on_connect)]\n";
    let running = with_operator(gateway("--listen off"), operator)
        .file(SETTINGS, &telegram.settings("dm: allow, owners: [\"42\"]"))
        .start();
    telegram.await_poll(0);
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("broken"), "{}", ran.stderr);

    let telegram = FakeTelegram::start();
    let native = "from tenterhook import on\n\n@on('channel_connect')\ndef connect(event):\n    raise ValueError('broken')\n";
    let running = gateway("--listen off")
        .file("../config/hooks/native.py", native)
        .file(SETTINGS, &telegram.settings("dm: allow, owners: [\"42\"]"))
        .start();
    let blocked = eventually(|| {
        let status: Value = serde_json::from_str(&beside(&running, "channels --json")).ok()?;
        let channel = status["channels"][0].clone();
        (channel["state"] == "blocked").then_some(channel)
    });
    assert_eq!(blocked["id"], "tg");
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(telegram.polls(), 0);
}

/// Pipes texts of one chat into a gateway, each after the answer to the one before.
fn pipe(call: Test, texts: &[&str]) -> (Vec<Value>, Ran) {
    let messages: Vec<Value> = texts
        .iter()
        .map(|text| serde_json::json!({"text": text}))
        .collect();
    pipe_messages(call, &messages)
}

/// Pipes messages of one chat into a gateway, each after the answer to the one before.
pub(crate) fn pipe_messages(call: Test, messages: &[Value]) -> (Vec<Value>, Ran) {
    let (mut running, mut stdin) = call.start_with_open_stdin();
    let stdout = running.stdout();
    writeln!(stdin, r#"{{"type":"hello","protocol":1}}"#).unwrap();
    let mut unsent = messages.iter().enumerate();
    let mut send_next = || {
        let Some((number, message)) = unsent.next() else {
            return false;
        };
        let mut message = message.clone();
        message["type"] = "message".into();
        message["chat"] = "a".into();
        message["message_id"] = number.to_string().into();
        writeln!(stdin, "{message}").unwrap();
        true
    };
    let mut frames = Vec::new();
    for line in stdout.lines() {
        let frame: Value = serde_json::from_str(&line.unwrap()).unwrap();
        let is_over = match frame["type"].as_str().unwrap() {
            "ready" | "done" => true,
            "error" => frame.get("turn").is_none() && frame["code"] != "notice",
            _ => false,
        };
        frames.push(frame);
        if is_over && !send_next() {
            break;
        }
    }
    running.interrupt();
    (frames, running.finish())
}

pub(crate) fn of_type<'a>(frames: &'a [Value], word: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| frame["type"] == word)
        .collect()
}

/// What the agent was told in each turn: a hook of `user_prompt_submit` would see it, but the session is the truth.
pub(crate) fn prompts(ran: &Ran) -> Vec<String> {
    let folder = fs::read_dir(ran.path("work/sessions")).unwrap();
    let files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    let texts = files.iter().map(|path| fs::read_to_string(path).unwrap());
    let texts: String = texts.collect();
    json_lines(&texts)
        .iter()
        .filter(|line| line["message"]["role"] == "user")
        .map(|line| line["message"]["content"].to_string())
        .collect()
}

const RECEIVE: &str = "\
from operator_use.bus import TextPart
from operator_use.hooks.types import MessageReceiveEvent, MessageReceiveResult

async def shout(event: MessageReceiveEvent):
    note(f'{event.channel_id} {event.chat_id} {event.user_id} {event.text} {len(event.parts)}')
    if event.text.startswith('say '):
        return MessageReceiveResult(action='transform', parts=[TextPart(content=event.text[4:].upper())])

async def filter_words(event: MessageReceiveEvent):
    if 'DAMN' in event.text:
        return MessageReceiveResult(action='reject', reason='Please be polite.')
    return MessageReceiveResult(action='continue')

async def after(event: MessageReceiveEvent):
    note('after ' + event.text)

hooks = [('message:receive', shout), ('message:receive', filter_words), ('message:receive', after)]
";

// G9, G10, G13
#[test]
fn an_operator_file_transforms_and_rejects_messages() {
    let args = "--listen off --stdio --session-dir sessions";
    let (frames, ran) = pipe(
        with_operator(gateway(args), RECEIVE),
        &["plain", "say hello", "say damn"],
    );
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let log = ran.file("log");
    let lines: Vec<&str> = log.lines().collect();
    let expected = [
        "stdio local/a local plain 1",
        "after plain",
        "stdio local/a local say hello 1",
        "after HELLO",
        "stdio local/a local say damn 1",
    ];
    assert_eq!(lines, expected);
    let heard = prompts(&ran).concat();
    for (text, is_heard) in [
        ("plain", true),
        ("HELLO", true),
        ("say hello", false),
        ("DAMN", false),
    ] {
        assert_eq!(heard.contains(text), is_heard, "{text}: {heard}");
    }
    let errors = of_type(&frames, "error");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0]["code"], "rejected");
    assert_eq!(errors[0]["text"], "Please be polite.");
    assert_eq!(of_type(&frames, "start").len(), 2);
}

// G14
#[test]
fn an_operator_file_rejects_without_a_word() {
    let reject = "\
from operator_use.hooks.types import MessageReceiveResult

async def drop(event):
    if event.text == 'spam':
        note('dropped')
        return MessageReceiveResult(action='reject')

hooks = [('message:receive', drop)]
";
    let telegram = FakeTelegram::start();
    let running = with_operator(gateway("--listen off"), reject)
        .file(SETTINGS, &telegram.settings("dm: allow, owners: [\"42\"]"))
        .start();
    telegram.add_text(1, 42, "spam");
    telegram.add_text(2, 42, "Hi");
    assert_eq!(telegram.await_texts(42, 1), ["Hello from the agent."]);
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.file("log"), "dropped\n");
    assert_eq!(telegram.texts(42).len(), 1);
}

// G15
#[test]
fn a_misspelled_action_of_an_operator_file_is_a_failure_that_lets_the_message_through() {
    let misspelled = "\
from operator_use.hooks.types import MessageReceiveResult

async def check(event):
    return MessageReceiveResult(action='rejct', reason='no')

hooks = [('message:receive', check)]
";
    for (strict, answers) in [("", 1), (" --strict", 0)] {
        let args = format!("--listen off --stdio{strict}");
        let (frames, ran) = pipe(with_operator(gateway(&args), misspelled), &["Hi"]);
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        assert_eq!(of_type(&frames, "done").len(), answers, "{frames:?}");
        assert!(ran.stderr.contains("`rejct`"), "{}", ran.stderr);
        if answers == 0 {
            let error = of_type(&frames, "error")[0];
            assert_eq!(error["text"], "The message could not be checked.");
        }
    }
}

const SEND: &str = "\
import os
from operator_use.bus import FilePart, TextPart
from operator_use.hooks.types import MessageSendEvent, MessageSendResult

async def sign(event: MessageSendEvent):
    note(f'{event.channel_id} {event.chat_id} {event.input_text} {event.response_text} {event.is_voice}')
    return MessageSendResult(parts=[TextPart(content='Signed.'), FilePart(path=os.path.join(WORK, 'report.txt'))])

async def fail(event: MessageSendEvent):
    raise ValueError('broken')

async def count(event: MessageSendEvent):
    return MessageSendResult(parts=[TextPart(content=f'{len(event.response_text)} letters.')])

hooks = [('message:send', sign), ('message:send', fail), ('message:send', count)]
";

// G26, G27
#[test]
fn an_operator_file_sends_parts_after_the_answer() {
    let call = gateway("--listen off --stdio").file("report.txt", "All good.");
    let hook = format!("WORK = {:?}\n{SEND}", call.work().to_str().unwrap());
    let call = with_operator(call, &hook);
    let (frames, ran) = pipe(call, &["Hi"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(
        ran.file("log"),
        "stdio local/a Hi Hello from the agent. False\n"
    );
    let end = frames.iter().position(|frame| frame["type"] == "end");
    let rest = &frames[end.unwrap() + 1..];
    let words: Vec<&str> = rest
        .iter()
        .map(|frame| frame["type"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["message", "message", "message", "done"]);
    assert_eq!(rest[0]["text"], "Signed.");
    assert_eq!(rest[1]["media"]["name"], "report.txt");
    assert_eq!(rest[2]["text"], "21 letters.");
}

const EVERY_EVENT: &str = "\
import json
from tenterhook import on

EVENTS = [
    'gateway_start', 'gateway_stop', 'channel_connect', 'channel_disconnect',
    'message_receive', 'message_deliver', 'message_send', 'message_cancel', 'gateway_error',
]

for name in EVENTS:
    def observe(event):
        note(json.dumps(event))
    observe.__name__ = 'observe_' + name
    on(name)(observe)
";

// G30
#[test]
fn a_hook_checks_what_the_command_line_sends() {
    let telegram = FakeTelegram::start();
    let hook = "\
from tenterhook import block, on, patch

@on('message_deliver')
def check(event):
    if 'secret' in event.text:
        return block('no secrets')
    return patch(text=event.text + ' (checked)')
";
    let running = gateway("--listen off")
        .file("../config/hooks/check.py", hook)
        .file(SETTINGS, &telegram.settings("dm: allow, owners: [\"42\"]"))
        .start();
    telegram.await_poll(0);
    let send = |text: &str| {
        let output = running.beside(["gateway", "send", "tg:42", text]);
        output.status.success()
    };
    assert!(send("Hi"));
    telegram.await_texts(42, 1);
    send("the secret");
    let texts = telegram.await_texts(42, 2);
    assert_eq!(texts[0], "Hi (checked)");
    assert!(texts[1].contains("withheld"), "{texts:?}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
    assert!(!telegram.texts(42).concat().contains("secret"));
}

// G6
#[test]
fn native_hooks_see_the_fields_of_every_event() {
    let telegram = FakeTelegram::start();
    let test = gateway("--listen off --for 1h");
    let hook = format!("{}{EVERY_EVENT}", noting(&test));
    let running = test
        .file("../config/hooks/every.py", &hook)
        .file(SETTINGS, &telegram.settings("dm: allow, owners: [\"42\"]"))
        .start();
    telegram.add_text(9, 42, "Hi");
    telegram.await_texts(42, 1);
    await_logged(&running, 5);
    running.interrupt();
    let ran = running.finish();
    let events = ran.lines("log");
    let fields = [
        ("channel_connect", vec!["channel_id", "kind"]),
        ("gateway_start", vec!["channel_ids"]),
        (
            "message_receive",
            vec![
                "channel_id",
                "chat_id",
                "user_id",
                "text",
                "parts",
                "message_id",
                "is_direct",
                "role",
                "sender_name",
            ],
        ),
        (
            "message_deliver",
            vec![
                "channel_id",
                "chat_id",
                "user_id",
                "kind",
                "text",
                "in_reply_to",
            ],
        ),
        (
            "message_send",
            vec![
                "channel_id",
                "chat_id",
                "input_text",
                "response_text",
                "message_ids",
                "user_id",
            ],
        ),
        ("gateway_stop", vec!["channel_ids", "reason"]),
        ("channel_disconnect", vec!["channel_id", "reason"]),
    ];
    assert_eq!(events.len(), fields.len(), "{events:?}");
    for (event, (name, fields)) in events.iter().zip(fields) {
        assert_eq!(event["hook_event_name"], name, "{event}");
        for field in fields {
            assert!(event.get(field).is_some(), "`{field}` is not in {event}");
        }
    }
    assert_eq!(events[2]["message_id"], "9");
    assert_eq!(events[4]["message_ids"], serde_json::json!(["9"]));
}

// G73
#[test]
fn a_stranger_is_paired_once_and_stays_admitted() {
    let telegram = FakeTelegram::start();
    let settings = telegram.settings("dm: pairing");
    let running = gateway("--listen off").file(SETTINGS, &settings).start();
    telegram.add_text(1, 42, "Hello?");
    let asked = telegram.await_texts(42, 1).remove(0);
    // A second message brings no second code.
    telegram.add_text(2, 42, "Hello??");
    eventually(|| telegram.is_acknowledged(2).then_some(()));
    let listed = beside(&running, "pair list");
    let code = listed
        .split_whitespace()
        .skip_while(|word| *word != "code")
        .nth(1)
        .unwrap();
    assert!(asked.contains(code), "{code} is not in {asked}");
    let wrong = beside(&running, "pair approve tg AAAAAAAA");
    assert!(wrong.starts_with("error: "), "{wrong}");
    let approved = beside(&running, &format!("pair approve tg {code}"));
    assert!(
        approved.starts_with("Admitted Ada (`42`) as "),
        "{approved}"
    );
    let listed = beside(&running, "pair list");
    assert!(listed.contains(" by the command line"), "{listed}");
    let again = beside(&running, &format!("pair approve tg {code}"));
    assert!(again.starts_with("error: "), "{again}");
    let before = telegram.texts(42).len();
    assert_eq!(before, 1, "{:?}", telegram.texts(42));
    telegram.add_text(3, 42, "Hello!");
    assert_eq!(telegram.await_texts(42, 2)[1], "Hello from the agent.");
    running.signal("KILL");
    let running = running
        .finish()
        .again(["gateway", "run", "--no-journal", "--listen", "off"])
        .script(SCRIPT)
        .variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1)
        .start();
    telegram.add_text(4, 42, "Still there?");
    assert_eq!(telegram.await_texts(42, 3)[2], "Hello from the agent.");
    telegram.add_text(5, 43, "And me?");
    let other = telegram.await_texts(43, 1).remove(0);
    assert!(!other.contains("Hello from the agent."), "{other}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}
