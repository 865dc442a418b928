//! Attacks on extensions in chats of the gateway: guards that a chat lacks, and prompts that outlive their turn.

use std::fs;
use std::io::Read as _;

use crate::chat_client::ChatClient;
use crate::stage::{Running, Test, eventually};

/// The model calls the tool in each turn.
const CALLS: &str = "\
turns:
  - tool_calls: [{name: work}]
  - text: Worked.
  - tool_calls: [{name: work}]
  - text: Worked.
  - tool_calls: [{name: work}]
  - text: Worked.
  - tool_calls: [{name: work}]
  - text: Worked.
";

const TOOL: &str = r#"
export default (pi) => {
  const schema = { type: "object", properties: {} };
  pi.registerTool({ name: "work", description: "Works", parameters: schema, execute: async () => "worked" });
  pi.registerCommand("crash", { handler: async () => { process.exit(3); } });
  pi.registerCommand("fail", { handler: async () => {
    pi.sendUserMessage("one more");
    await pi.getSessionName();
    throw new Error("no luck");
  } });
};
"#;

/// Whether a chat's call of the tool was stopped.
fn is_denied(client: &ChatClient, chat: &str) -> bool {
    let frames: Vec<_> = client.say(chat, "hi").collect();
    let end = frames.iter().find(|frame| frame["kind"] == "tool_end");
    end.unwrap_or_else(|| panic!("no call: {frames:#?}"))["is_error"] == true
}

fn gateway(options: &str, guard: &str) -> Test {
    gateway_of(options, guard, CALLS)
}

fn gateway_of(options: &str, guard: &str, turns: &str) -> Test {
    Test::new()
        .args("gateway run --no-journal --listen 127.0.0.1:0 --allow work".split(' '))
        .args(options.split_whitespace())
        .script(turns)
        .file("../home/.pi/agent/extensions/tool.js", TOOL)
        .file("../home/.pi/agent/extensions/guard.js", guard)
}

#[test]
fn a_guard_that_failed_when_a_chat_began_denies_in_that_chat_only() {
    let guard = r#"
let starts = 0;
export default (pi) => {
  pi.on("session_start", () => { starts += 1; if (starts === 1) throw new Error("no rules"); });
  pi.on("tool_call", () => {});
};
"#;
    let (running, client) = ChatClient::start(gateway("--strict", guard));
    assert!(is_denied(&client, "a"), "the guard has no rules");
    assert!(!is_denied(&client, "b"), "the guard of another chat failed");
    assert!(is_denied(&client, "a"), "another chat began since");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_guard_that_cannot_be_loaded_for_a_chat_denies_there() {
    let guard = r#"
let made = 0;
export default (pi) => {
  made += 1;
  // The first one is of no chat.
  if (made > 2) throw new Error("no room");
  pi.on("tool_call", () => {});
};
"#;
    let (running, client) = ChatClient::start(gateway("", guard));
    assert!(!is_denied(&client, "a"));
    assert!(is_denied(&client, "b"));
    assert!(!is_denied(&client, "a"));
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

/// Prepares its rules when a chat begins. It allows everything without rules.
const PREPARED: &str = r#"
import fs from "node:fs";
export default (pi) => {
  let rules;
  pi.on("session_start", (event, ctx) => {
    fs.appendFileSync("heard", `${ctx.sessionManager.getSessionId()}\n`);
    if (fs.existsSync("broken")) throw new Error("no rules");
    pi.appendEntry("prepared", {});
    pi.sendMessage({ customType: "rules", content: "There are rules.", display: true });
    rules = ["work"];
  });
  pi.on("tool_call", ({ toolName }) => rules?.includes(toolName) ? { block: true, reason: "guarded" } : undefined);
  pi.registerCommand("entries", { handler: async (_args, ctx) => {
    const stored = ctx.sessionManager.getBranch().filter((it) => ["prepared", "rules"].includes(it.customType));
    ctx.ui.notify(`entries ${stored.length}`);
  } });
};
"#;

/// Why a chat's call of the tool was stopped.
fn denial(client: &ChatClient, chat: &str) -> String {
    let frames: Vec<_> = client.say(chat, "hi").collect();
    let end = frames.iter().find(|frame| frame["kind"] == "tool_end");
    let end = end.unwrap_or_else(|| panic!("no call: {frames:#?}"));
    assert_eq!(end["is_error"], true, "{frames:#?}");
    end["result"].as_str().unwrap_or_default().to_owned()
}

/// Lets the command of a chat end the worker that all chats share.
fn crash(client: &ChatClient, chat: &str) {
    let crashed = client.ask(chat, "/crash");
    assert!(!crashed.is_empty());
}

#[test]
fn a_guard_has_its_rules_again_after_another_chat_ended_its_worker() {
    for options in ["", "--strict"] {
        let (running, client) = ChatClient::start(gateway(options, PREPARED));
        for _ in 0..2 {
            assert!(denial(&client, "a").contains("guarded"));
            crash(&client, "b");
        }
        assert!(denial(&client, "a").contains("guarded"));
        // The handler has prepared the chat once, although it ran three times.
        assert_eq!(client.ask("a", "/entries"), ["entries 2"]);
        running.interrupt();
        assert_eq!(running.finish().status, 0);
    }
}

#[test]
fn a_guard_that_cannot_prepare_again_denies_until_a_new_session() {
    let (running, client) = ChatClient::start(gateway("", PREPARED));
    assert!(denial(&client, "a").contains("guarded"));
    fs::write(running.path("work/broken"), "").unwrap();
    crash(&client, "b");
    for _ in 0..2 {
        let reason = denial(&client, "a");
        assert!(
            reason.contains("`guard.js` lacks what it prepared"),
            "{reason}"
        );
        assert!(reason.contains("no rules"), "{reason}");
        assert!(reason.contains("`/new`"), "{reason}");
    }
    fs::remove_file(running.path("work/broken")).unwrap();
    assert_eq!(client.ask("a", "/new"), ["A new conversation begins."]);
    assert!(denial(&client, "a").contains("guarded"));
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_session_that_a_chat_has_left_is_not_prepared_again() {
    let (running, client) = ChatClient::start(gateway("", PREPARED));
    assert!(denial(&client, "a").contains("guarded"));
    assert_eq!(client.ask("a", "/new"), ["A new conversation begins."]);
    assert!(denial(&client, "a").contains("guarded"));
    crash(&client, "b");
    assert!(denial(&client, "a").contains("guarded"));
    let heard = fs::read_to_string(running.path("work/heard")).unwrap();
    let heard: Vec<&str> = heard.lines().collect();
    let count = |session| heard.iter().filter(|it| **it == session).count();
    let (old, new) = (heard[0], heard[heard.len() - 1]);
    assert_eq!((count(old), count(new)), (1, 2), "{heard:?}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn the_prompt_of_a_command_that_failed_does_not_run_in_a_later_turn() {
    let (running, client) = ChatClient::start(gateway("", "export default () => {};"));
    let failed = client.ask("a", "/fail");
    assert!(failed[0].contains("no luck"), "{failed:?}");
    assert_eq!(client.ask("a", "hi"), ["Worked."]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_prompt_that_an_extension_sends_after_the_turn_of_a_member_does_not_run_in_an_owners_turn() {
    let late = r#"
import fs from "node:fs";
export default (pi) => {
  const send = async () => {
    if (!fs.existsSync("send")) return setTimeout(send, 5);
    await pi.sendUserMessage("one more");
    fs.writeFileSync("sent", "sent\n");
  };
  pi.on("session_start", () => { void send(); });
};
"#;
    let settings = "sessions: profile\nchannels: { http: {} }";
    let (running, client) = ChatClient::start_with(gateway("", late), settings);
    let member = client.member(&running);
    assert_eq!(member.ask("m", "hi"), ["Worked."]);
    fs::write(running.path("work/send"), "").unwrap();
    running.line_of("sent");
    assert_eq!(client.ask("a", "hi"), ["Worked."]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn no_call_passes_a_guard_whose_state_for_the_chat_is_still_being_made() {
    let slow = r#"
import fs from "node:fs";
let made = 0;
export default async (pi) => {
  made += 1;
  // The first one is of no chat.
  if (made > 1) {
    fs.appendFileSync(`begun-${made}`, "begun\n");
    while (!fs.existsSync("ready")) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  pi.on("tool_call", () => ({ block: true, reason: "guarded" }));
};
"#;
    let (running, client) = ChatClient::start(gateway("", slow));
    std::thread::scope(|scope| {
        let chats = ["a", "b"].map(|chat| {
            let client = &client;
            scope.spawn(move || denial(client, chat))
        });
        running.line_of("begun-2");
        running.line_of("begun-3");
        fs::write(running.path("work/ready"), "").unwrap();
        for chat in chats {
            assert!(chat.join().unwrap().contains("guarded"));
        }
    });
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_late_answer_of_a_tool_reaches_no_other_chat() {
    let late = r#"
import fs from "node:fs";
export default (pi) => {
  const schema = { type: "object", properties: {} };
  pi.registerTool({ name: "wait", description: "Waits", parameters: schema, async execute(_id, _input, _signal, onUpdate, ctx) {
    const chat = fs.existsSync("started-a") ? "b" : "a";
    fs.writeFileSync(`started-${chat}`, "started\n");
    while (!fs.existsSync(`release-${chat}`)) await new Promise((resolve) => setTimeout(resolve, 5));
    onUpdate(`update of ${chat}`);
    if (chat === "a") {
      ctx.ui.notify("notice of a");
      await pi.sendUserMessage("prompt of a").catch(() => {});
      try { pi.appendEntry("entry of a", {}); } catch {}
    }
    setTimeout(() => fs.writeFileSync(`done-${chat}`, "done\n"), 20);
    return `result of ${chat}`;
  } });
};
"#;
    let waits = "turns:\n  - tool_calls: [{name: wait}]\n  - text: Waited.\n  - text: Again.\n";
    let (running, client) = ChatClient::start(gateway_of("--allow wait", late, waits));
    std::thread::scope(|scope| {
        let frames_of = |chat: &'static str| {
            let client = &client;
            scope.spawn(move || client.say(chat, "hi").collect::<Vec<_>>())
        };
        let left = frames_of("a");
        running.line_of("started-a");
        let other = frames_of("b");
        running.line_of("started-b");
        assert!(!client.ask("a", "/stop").is_empty());
        left.join().unwrap();
        assert_eq!(client.ask("a", "/new"), ["A new conversation begins."]);
        fs::write(running.path("work/release-a"), "").unwrap();
        running.line_of("done-a");
        fs::write(running.path("work/release-b"), "").unwrap();
        let frames = other.join().unwrap();
        let end = frames.iter().find(|frame| frame["kind"] == "tool_end");
        assert_eq!(end.unwrap()["result"], "result of b", "{frames:#?}");
        let all = format!("{frames:?}");
        assert!(!all.contains("of a"), "{all}");
    });
    let all = format!("{:?}", client.say("b", "hi").collect::<Vec<_>>());
    assert!(!all.contains("of a") && all.contains("Again."), "{all}");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

/// Sends prompts from a timer once a file is there, and notes each call of its tool.
const TIMER: &str = r#"
import fs from "node:fs";
export default (pi) => {
  const schema = { type: "object", properties: {} };
  pi.registerTool({ name: "count", description: "Counts", parameters: schema, execute: async () => {
    fs.appendFileSync("counted", "once\n");
    while (fs.existsSync("hold")) await new Promise((resolve) => setTimeout(resolve, 5));
    return "counted";
  } });
  pi.registerCommand("crash", { handler: async () => { fs.writeFileSync("crashed", ""); } });
  let timer;
  pi.on("session_start", () => {
    timer = setInterval(() => {
      if (!fs.existsSync("send")) return;
      const text = fs.readFileSync("send", "utf8");
      if (!text.startsWith("again")) fs.unlinkSync("send");
      void pi.sendUserMessage(text).catch(() => {});
    }, 50);
  });
  pi.on("session_shutdown", () => clearInterval(timer));
};
"#;

const COUNTS: &str = "\
turns:
  - text: Hello.
  - tool_calls: [{name: count}]
  - text: Counted.
  - {text: Again., repeat: true}
";

fn with_timer() -> Test {
    Test::new()
        .args("gateway run --journal journal.jsonl --listen 127.0.0.1:0 --allow count".split(' '))
        .script(COUNTS)
        .file("../home/.pi/agent/extensions/timer.js", TIMER)
}

/// Lets the timer send a text. The file is complete when it appears.
fn send(running: &Running, text: &str) {
    fs::write(running.work().join("sending"), text).unwrap();
    fs::rename(running.work().join("sending"), running.work().join("send")).unwrap();
}

/// Waits until a text is in the history of a chat. Returns the history.
fn history_with(client: &ChatClient, chat: &str, text: &str) -> String {
    eventually(|| {
        let mut history = String::new();
        let mut stream = client.open(&format!("GET /v1/chats/{chat}/history"), "accept: */*", "");
        stream.read_to_string(&mut history).unwrap();
        history.contains(text).then_some(history)
    })
}

#[test]
fn a_prompt_that_an_extension_sends_in_an_idle_chat_begins_a_turn_and_runs_no_command() {
    let (running, client) = ChatClient::start(with_timer());
    let member = client.member(&running);
    assert_eq!(member.ask("m", "hi"), ["Hello."]);
    send(&running, "/crash");
    assert_eq!(running.line_of("counted"), "once");
    history_with(&member, "m", "Counted.");
    assert_eq!(member.ask("m", "hi"), ["Again."]);
    assert!(!running.work().join("crashed").exists());
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_timer_of_someone_who_was_removed_begins_no_turn_and_the_journal_says_so() {
    let (running, client) = ChatClient::start(with_timer());
    assert_eq!(client.of_user(&running, "ann").ask("a", "hi"), ["Hello."]);
    let revoked = running.beside(["gateway", "token", "revoke", "ann"]);
    assert!(revoked.status.success(), "{revoked:?}");
    send(&running, "count");
    let problem = running.journal_line("was dropped");
    assert!(problem.contains("not_admitted"), "{problem}");
    // Someone else continues.
    assert_eq!(client.ask("b", "hi"), ["Hello."]);
    assert!(!running.work().join("counted").exists());
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn an_extension_in_a_loop_has_to_wait_and_the_journal_says_so() {
    let (running, client) = ChatClient::start(with_timer());
    assert_eq!(client.ask("a", "hi"), ["Hello."]);
    send(&running, "again");
    let problem = running.journal_line("too fast");
    assert!(problem.contains("idle chat `http:"), "{problem}");
    fs::remove_file(running.work().join("send")).unwrap();
    assert_eq!(client.ask("b", "hi"), ["Hello."]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}

#[test]
fn a_turn_of_an_extension_that_a_crash_interrupted_is_reported_and_not_repeated() {
    let (running, client) = ChatClient::start(with_timer());
    assert_eq!(client.ask("a", "hi"), ["Hello."]);
    fs::write(running.work().join("hold"), "").unwrap();
    send(&running, "count");
    assert_eq!(running.line_of("counted"), "once");
    running.signal("KILL");
    let ran = running.finish();
    fs::remove_file(ran.path("work/hold")).unwrap();
    let again = ran.again("gateway run --no-journal --listen 127.0.0.1:0 --allow count".split(' '));
    let (running, client) = client.start_again(again.script(COUNTS));
    let told = history_with(&client, "a", "I was interrupted");
    assert!(told.contains("Hello."), "{told}");
    let counted = fs::read_to_string(running.work().join("counted")).unwrap();
    assert_eq!(counted, "once\n");
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}
