//! Attacks on extensions in chats of the gateway: guards that a chat lacks, and prompts that outlive their turn.

use crate::chat_client::ChatClient;
use crate::stage::Test;

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
    Test::new()
        .args("gateway run --no-journal --listen 127.0.0.1:0 --allow work".split(' '))
        .args(options.split_whitespace())
        .script(CALLS)
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

#[test]
fn a_guard_that_lost_its_rules_with_its_worker_denies() {
    let guard = r#"
export default (pi) => {
  let rules;
  pi.on("session_start", () => { rules = ["work"]; });
  pi.on("tool_call", ({ toolName }) => rules?.includes(toolName) ? { block: true, reason: "guarded" } : undefined);
};
"#;
    let (running, client) = ChatClient::start(gateway("--strict", guard));
    assert!(is_denied(&client, "a"));
    let crashed = client.ask("b", "/crash");
    assert!(!crashed.is_empty());
    assert!(is_denied(&client, "a"));
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
    std::fs::write(running.path("work/send"), "").unwrap();
    running.line_of("sent");
    assert_eq!(client.ask("a", "hi"), ["Worked."]);
    running.interrupt();
    assert_eq!(running.finish().status, 0);
}
