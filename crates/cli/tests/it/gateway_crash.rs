//! What a gateway does after it was killed, after the service refused a message, and with a full disk.

use crate::fake_telegram::{FakeTelegram, Refusal, TOKEN_VARIABLE};
use crate::stage::{Ran, Running, Test, eventually};

use std::fs;
use std::time::{Duration, Instant};

const SETTINGS: &str = "../config/gateway.yaml";
const SCRIPT: &str = "turns: [{text: Hello from the agent., repeat: true}]";
const ANSWER: &str = "Hello from the agent.";
const ARGS: [&str; 5] = ["gateway", "run", "--no-journal", "--listen", "off"];
const RULES: &str = "dm: allow, members: [\"41\", \"42\", \"43\"]";

fn prepare(test: Test) -> Test {
    test.args(ARGS).variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1)
}

fn gateway(telegram: &FakeTelegram) -> Test {
    prepare(Test::new()).file(SETTINGS, &telegram.settings(RULES))
}

fn kill(running: Running) -> Ran {
    running.signal("KILL");
    running.finish()
}

fn restart(ran: Ran) -> Test {
    prepare(ran.again([]))
}

/// Sends a message to another chat, and waits for its answer: everything before it has been processed then.
fn probe(telegram: &FakeTelegram, update: i64) {
    let before = telegram.texts(43).len();
    telegram.add_text(update, 43, "Probe");
    telegram.await_texts(43, before + 1);
}

// G41
#[test]
fn a_message_that_was_recorded_before_a_kill_is_answered_once() {
    let telegram = FakeTelegram::start();
    let hold = "hooks: [{event: message_receive, command: \"touch held; until [ -e go ]; do sleep 0.02; done\", timeout: 100}]";
    let running = gateway(&telegram).script(SCRIPT).hooks(hold).start();
    telegram.add_text(1, 42, "Hi");
    let work = running.work();
    eventually(|| {
        let is_held = fs::exists(work.join("held")).unwrap();
        (is_held && telegram.is_acknowledged(1)).then_some(())
    });
    let ran = kill(running);
    assert_eq!(telegram.texts(42), [""; 0]);
    let running = restart(ran).script(SCRIPT).start();
    assert_eq!(telegram.await_texts(42, 1), [ANSWER]);
    probe(&telegram, 2);
    let running = restart(kill(running)).script(SCRIPT).start();
    probe(&telegram, 3);
    assert_eq!(telegram.texts(42), [ANSWER]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

// The model has never seen the message, so it cannot continue it.
#[test]
fn a_message_that_only_hooks_had_seen_before_a_kill_is_told_and_not_continued() {
    let telegram = FakeTelegram::start();
    let hold =
        "hooks: [{event: user_prompt_submit, command: \"touch held; sleep 60\", timeout: 100}]";
    let settings = format!("on_restart: resume\n{}", telegram.settings(RULES));
    let running = gateway(&telegram)
        .file(SETTINGS, &settings)
        .script(SCRIPT)
        .hooks(hold)
        .start();
    telegram.add_text(1, 42, "Hi");
    let work = running.work();
    eventually(|| fs::exists(work.join("held")).unwrap().then_some(()));
    let running = restart(kill(running)).script(SCRIPT).start();
    let told = telegram.await_texts(42, 1);
    assert!(told[0].contains("I was interrupted"), "{told:?}");
    probe(&telegram, 2);
    assert_eq!(telegram.texts(42).len(), 1);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

/// Holds messages until they are killed with the gateway.
const HOLD: &str = "hooks: [{event: message_receive, command: \"echo held >> held; until [ -e go ]; do sleep 0.02; done\", timeout: 100}]";

#[test]
fn a_message_that_waited_during_a_restart_is_refused_if_its_sender_was_removed_meanwhile() {
    let telegram = FakeTelegram::start();
    let running = gateway(&telegram).script(SCRIPT).hooks(HOLD).start();
    add_held(&telegram, &running, &[41, 42]);
    let rules = "dm: allow, members: [\"42\", \"43\"]";
    let args = "gateway run --journal journal.jsonl --listen off".split(' ');
    let restarted = kill(running)
        .again(args)
        .variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1);
    let restarted = restarted.file(SETTINGS, &telegram.settings(rules));
    let running = restarted.script(SCRIPT).start();
    assert_eq!(telegram.await_texts(42, 1), [ANSWER]);
    probe(&telegram, 3);
    let noted = running.journal_line("was refused");
    for part in ["`tg:41`", "not_admitted"] {
        assert!(noted.contains(part), "{noted}");
    }
    // It was finished, so it does not come back with its sender.
    let restarted = restart(kill(running)).file(SETTINGS, &telegram.settings(RULES));
    let running = restarted.script(SCRIPT).start();
    probe(&telegram, 4);
    assert_eq!(telegram.texts(41), [""; 0]);
    assert_eq!(telegram.texts(42), [ANSWER]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_message_of_a_channel_that_is_off_after_a_restart_waits_until_it_is_on_again() {
    let telegram = FakeTelegram::start();
    let running = gateway(&telegram).script(SCRIPT).hooks(HOLD).start();
    add_held(&telegram, &running, &[42]);
    let off = telegram.settings(&format!("{RULES}, enabled: false")) + "  http: {}\n";
    let args = "gateway run --journal journal.jsonl --listen 127.0.0.1:0".split(' ');
    let restarted = kill(running)
        .again(args)
        .variable(TOKEN_VARIABLE.0, TOKEN_VARIABLE.1);
    let running = restarted.file(SETTINGS, &off).script(SCRIPT).start();
    let noted = running.journal_line("waits for");
    assert!(noted.contains("`tg` is not in use"), "{noted}");
    let restarted = restart(kill(running)).file(SETTINGS, &telegram.settings(RULES));
    let running = restarted.script(SCRIPT).start();
    assert_eq!(telegram.await_texts(42, 1), [ANSWER]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

/// Adds a message of each user, and waits until a hook holds all of them and the service does not deliver them again.
fn add_held(telegram: &FakeTelegram, running: &Running, users: &[i64]) {
    let mut last = 0;
    for (update, user) in (1..).zip(users) {
        telegram.add_text(update, *user, "Hi");
        last = update;
    }
    let held = running.work().join("held");
    eventually(|| {
        let count = fs::read_to_string(&held).ok()?.lines().count();
        (count == users.len() && telegram.is_acknowledged(last)).then_some(())
    });
}

// G42
#[test]
fn a_message_that_was_not_recorded_before_a_kill_is_delivered_again() {
    let telegram = FakeTelegram::start();
    let running = gateway(&telegram).script(SCRIPT).start();
    telegram.kill_at_update(running.pid());
    telegram.add_text(1, 42, "Hi");
    let ran = running.finish();
    assert_eq!(ran.status, -1);
    let running = restart(ran).script(SCRIPT).start();
    assert_eq!(telegram.await_texts(42, 1), [ANSWER]);
    probe(&telegram, 2);
    assert_eq!(telegram.texts(42), [ANSWER]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

// G43
#[test]
fn a_tool_that_ran_during_a_kill_does_not_run_again() {
    let telegram = FakeTelegram::start();
    let script = "turns:\n  - tool_calls: [{name: shell, arguments: {cmd: echo ran >> runs; sleep 600; true}}]\n  - {text: Hello from the agent., repeat: true}\n";
    let running = gateway(&telegram)
        .args(["--allow", "shell"])
        .script(script)
        .start();
    telegram.add_text(1, 42, "Work");
    assert_eq!(running.line_of("runs"), "ran");
    let ran = kill(running);
    let running = restart(ran)
        .args(["--allow", "shell"])
        .script(script)
        .start();
    let told = telegram.await_texts(42, 1).remove(0);
    assert!(told.contains("I was interrupted"), "{told}");
    let running = restart(kill(running)).script(SCRIPT).start();
    probe(&telegram, 2);
    telegram.add_text(3, 42, "Continue");
    let mut texts = eventually(|| {
        let texts = telegram.texts(42);
        texts.iter().any(|text| text == ANSWER).then_some(texts)
    });
    // If the kill came before the receipt was stored, the notice is sent once more.
    assert!((2..=3).contains(&texts.len()), "{texts:?}");
    assert_eq!(texts.pop().as_deref(), Some(ANSWER));
    assert!(texts.iter().all(|text| *text == told), "{texts:?}");
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.file("runs"), "ran\n");
}

// G44
#[test]
fn an_answer_whose_receipt_was_lost_in_a_kill_is_sent_once_more_at_most() {
    let telegram = FakeTelegram::start();
    let running = gateway(&telegram).script(SCRIPT).start();
    telegram.kill_at_receipt(running.pid());
    telegram.add_text(1, 42, "Hi");
    let ran = running.finish();
    assert_eq!(ran.status, -1);
    let running = restart(ran).script(SCRIPT).start();
    probe(&telegram, 2);
    let running = restart(kill(running)).script(SCRIPT).start();
    probe(&telegram, 3);
    let texts = telegram.texts(42);
    assert!((1..=2).contains(&texts.len()), "{texts:?}");
    assert!(texts.iter().all(|text| text == ANSWER), "{texts:?}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

// G45
#[test]
fn an_update_that_comes_again_is_ignored_also_after_a_restart() {
    let telegram = FakeTelegram::start();
    let running = gateway(&telegram).script(SCRIPT).start();
    telegram.add_text(1, 42, "Hi");
    telegram.await_texts(42, 1);
    telegram.repeat_text(1, 42, "Hi");
    probe(&telegram, 2);
    let running = restart(kill(running)).script(SCRIPT).start();
    telegram.repeat_text(1, 42, "Hi");
    probe(&telegram, 3);
    assert_eq!(telegram.texts(42), [ANSWER]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

// G46
#[test]
fn a_chat_that_has_to_wait_does_not_hold_up_others() {
    let telegram = FakeTelegram::start();
    let refusal = Refusal {
        status: 429,
        retry_after: Some(1),
    };
    telegram.refuse(42, refusal);
    let running = gateway(&telegram).script(SCRIPT).start();
    let begun = Instant::now();
    telegram.add_text(1, 42, "Hi");
    telegram.add_text(2, 41, "Hi");
    telegram.await_texts(42, 1);
    let sent = telegram.sent();
    let chats: Vec<i64> = sent.iter().map(|sent| sent.chat).collect();
    assert_eq!(chats, [41, 42]);
    assert!(sent[1].at - begun >= Duration::from_secs(1));
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

// G47
#[test]
fn a_chat_that_blocks_the_bot_is_given_up() {
    let telegram = FakeTelegram::start();
    let refusal = Refusal {
        status: 403,
        retry_after: None,
    };
    telegram.refuse(42, refusal);
    let test = gateway(&telegram).script(SCRIPT);
    let error = test.work().join("error.json");
    // The hooks of the gateway's own events run in its state folder.
    let hooks = format!(
        "hooks: [{{event: gateway_error, command: \"cat > {}\"}}]",
        error.display()
    );
    let running = test.hooks(&hooks).start();
    telegram.add_text(1, 42, "Hi");
    telegram.add_text(2, 41, "Hi");
    assert_eq!(telegram.await_texts(41, 1), [ANSWER]);
    let event = eventually(|| {
        let written = fs::read_to_string(&error).ok()?;
        serde_json::from_str::<serde_json::Value>(&written).ok()
    });
    assert_eq!(event["chat_id"], "42", "{event}");
    assert_ne!(event["will_retry"], true, "{event}");
    let running = restart(kill(running)).script(SCRIPT).start();
    probe(&telegram, 3);
    assert_eq!(telegram.texts(42), [""; 0]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

// G50
#[cfg(target_os = "linux")]
#[test]
fn a_message_waits_at_the_service_while_the_disk_is_full() {
    let telegram = FakeTelegram::start();
    let running = gateway(&telegram)
        .script(SCRIPT)
        // Writes beyond the limit fail, instead of ending the program.
        .after("trap '' XFSZ")
        .start();
    probe(&telegram, 1);
    let limit = running.disk();
    limit(Some(0));
    telegram.add_text(2, 42, "Hi");
    let status = await_failed_channel(&running);
    assert!(!telegram.is_acknowledged(2), "{status}");
    assert_eq!(telegram.texts(42), [""; 0]);
    limit(None);
    assert_eq!(telegram.await_texts(42, 1), [ANSWER]);
    probe(&telegram, 3);
    assert_eq!(telegram.texts(42), [ANSWER]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

/// Waits until the channel has failed and waits before it is tried again.
fn await_failed_channel(running: &Running) -> String {
    eventually(|| {
        let output = running.beside(["gateway", "channels"]);
        let text = String::from_utf8(output.stdout).unwrap();
        text.contains("backing").then_some(text)
    })
}

/// Makes each answer name the messages that it answers.
const NAMING_HOOK: &str = "\
from tenterhook import on, patch

@on('message_deliver')
def name_messages(event):
    return patch(text=event.kind + ' ' + ' '.join(event.in_reply_to))
";

#[cfg(target_os = "linux")]
#[test]
fn an_answer_whose_receipt_a_full_disk_cannot_store_is_not_sent_again_after_a_restart() {
    let telegram = FakeTelegram::start();
    let running = gateway(&telegram)
        .file("../config/hooks/name.py", NAMING_HOOK)
        .script(SCRIPT)
        .after("trap '' XFSZ")
        .start();
    probe(&telegram, 1);
    let (limit, fill) = (running.disk(), running.disk());
    telegram.before_receipt(move || fill(Some(0)));
    telegram.add_text(2, 42, "Hi");
    assert_eq!(telegram.await_texts(42, 1), ["answer 2"]);
    // When the channel has failed to store a message, storing the receipt has failed, too.
    telegram.add_text(3, 43, "Hi");
    await_failed_channel(&running);
    limit(None);
    telegram.await_texts(43, 2);
    // The next answer of the chat waits until the receipt of this one is stored.
    telegram.add_text(4, 42, "Hi");
    telegram.await_texts(42, 2);
    probe(&telegram, 5);
    let running = restart(kill(running)).script(SCRIPT).start();
    probe(&telegram, 6);
    let texts = telegram.texts(42);
    let first = texts.iter().filter(|text| *text == "answer 2").count();
    assert_eq!(first, 1, "{texts:?}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn messages_that_waited_at_the_service_are_all_answered_although_they_arrive_at_once() {
    let telegram = FakeTelegram::start();
    for number in 1..=30 {
        let age = Duration::from_secs(u64::try_from(4 * (31 - number)).unwrap());
        telegram.add_old_text(number, 42, "Hi", age);
    }
    let running = gateway(&telegram)
        .file("../config/hooks/name.py", NAMING_HOOK)
        .script(SCRIPT)
        .start();
    let expected: Vec<String> = (1..=30).map(|number| format!("answer {number}")).collect();
    assert_eq!(telegram.await_texts(42, 30), expected);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}
