//! Reloading the hooks of a gateway that runs.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::chat_client::ChatClient;
use crate::stage::{Running, Test, eventually, json_lines};

/// The model calls the shell in each turn.
const CALLS: &str = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: echo done}}]
  - text: Called.
  - tool_calls: [{name: shell, arguments: {cmd: echo done}}]
  - text: Called.
  - tool_calls: [{name: shell, arguments: {cmd: echo done}}]
  - text: Called.
  - tool_calls: [{name: shell, arguments: {cmd: echo done}}]
  - text: Called.
  - tool_calls: [{name: shell, arguments: {cmd: echo done}}]
  - text: Called.
";

const HOOKS: &str = "config/hooks.yaml";

const GUARD: &str = "hooks:
  - name: no-shell
    event: pre_tool_use
    matcher: shell
    command: 'echo \"no shell\" >&2; exit 2'
";

const HARMLESS: &str = "hooks:
  - name: harmless
    event: post_tool_use
    matcher: other
    command: cat
";

fn gateway(script: &str) -> Test {
    Test::new()
        .args("gateway run --listen 127.0.0.1:0 --allow shell".split(' '))
        .args(["--journal", "journal.jsonl"])
        .script(script)
}

/// Whether the call of the shell in the next turn of a chat was stopped.
fn is_denied(client: &ChatClient, chat: &str) -> bool {
    let frames: Vec<_> = client.say(chat, "hi").collect();
    let end = frames.iter().find(|frame| frame["kind"] == "tool_end");
    end.unwrap_or_else(|| panic!("no call: {frames:#?}"))["is_error"] == true
}

fn write(running: &Running, name: &str, text: &str) -> PathBuf {
    let path = running.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

/// Requests a reload. Returns the changes.
fn reload(running: &Running) -> Value {
    let output = running.beside(["gateway", "reload", "--json"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Requests a reload that fails. Returns the problem.
fn failed_reload(running: &Running) -> String {
    let output = running.beside(["gateway", "reload"]);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

fn channel(running: &Running, id: &str) -> Option<Value> {
    let listed = running.beside(["gateway", "channels", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let mut channels = listed["channels"].as_array().unwrap().iter();
    channels.find(|channel| channel["id"] == id).cloned()
}

/// Returns the records of reloads in the journal.
fn recorded(text: &str) -> Vec<Value> {
    let records = json_lines(text).into_iter();
    records
        .filter(|record| record["record"] == "reload")
        .collect()
}

fn end(running: Running) -> String {
    running.interrupt();
    let ran = running.finish();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    ran.file("journal.jsonl")
}

#[test]
fn a_guard_that_a_reload_adds_denies_in_an_open_chat_and_one_that_it_removes_does_not() {
    let (running, client) = ChatClient::start(gateway(CALLS));
    assert!(!is_denied(&client, "a"));
    let file = write(&running, HOOKS, GUARD);
    assert!(!is_denied(&client, "a"), "nothing was reloaded");
    let changes = reload(&running);
    let name = format!("no-shell on pre_tool_use ({})", file.display());
    assert_eq!(
        changes["hooks"],
        json!({"added": [name], "changed": [], "removed": []})
    );
    assert!(is_denied(&client, "a"));
    assert!(is_denied(&client, "b"), "the chat is new");
    fs::remove_file(file).unwrap();
    assert!(is_denied(&client, "a"), "nothing was reloaded");
    assert_eq!(reload(&running)["hooks"]["removed"], json!([name]));
    assert!(!is_denied(&client, "a"));
    let journal = end(running);
    let reloads = recorded(&journal);
    assert_eq!(reloads[0]["added"], json!([name]));
    assert_eq!(reloads[1]["removed"], json!([name]));
}

#[test]
fn a_chat_keeps_its_conversation_when_hooks_are_reloaded() {
    let script = "turns: [{text: First.}, {text: Second.}, {text: Third., repeat: true}]";
    let (running, client) = ChatClient::start(gateway(script));
    client.ask("a", "one");
    // A prompt of the model is the whole conversation, so a hook sees whether it is still there.
    let hook = "hooks: [{event: before_llm_call, command: 'cat > seen; echo >> seen'}]";
    write(&running, HOOKS, hook);
    reload(&running);
    client.ask("a", "two");
    let seen = running.line_of("seen");
    assert!(seen.contains("one") && seen.contains("two"), "{seen}");
    end(running);
}

#[test]
fn a_broken_hook_file_changes_nothing_and_its_position_is_shown() {
    let (running, client) = ChatClient::start(gateway(CALLS).file("../config/hooks.yaml", GUARD));
    assert!(is_denied(&client, "a"));
    write(
        &running,
        HOOKS,
        "hooks:\n  - event: pre_tool_usee\n    command: cat\n",
    );
    let problem = failed_reload(&running);
    assert!(problem.contains("hooks.yaml:2:"), "{problem}");
    assert!(problem.contains("pre_tool_usee"), "{problem}");
    assert!(is_denied(&client, "a"), "the old guard is gone");

    fs::remove_file(running.path(HOOKS)).unwrap();
    let script = "from tenterhook import on\n\n@on('pre_tool_use')\ndef guard(event:\n    pass\n";
    let file = write(&running, "config/hooks/guard.py", script);
    let problem = failed_reload(&running);
    assert!(problem.contains("guard.py"), "{problem}");
    assert!(is_denied(&client, "a"), "the old guard is gone");

    // Settings that could be used are not applied either.
    let settings = "busy: collect\nchannels: { http: {}, more: { kind: command, argv: [cat] } }";
    write(&running, "config/gateway.yaml", settings);
    failed_reload(&running);
    assert_eq!(channel(&running, "more"), None);

    fs::remove_file(file).unwrap();
    write(&running, "config/gateway.yaml", "channels: { http: {} }");
    reload(&running);
    assert!(!is_denied(&client, "a"));
    let journal = end(running);
    let reloads = recorded(&journal);
    let problem = reloads[0]["problem"].as_str().unwrap();
    assert!(problem.contains("hooks.yaml:2:"), "{problem}");
}

#[test]
fn a_project_hook_is_in_force_after_a_reload_only_if_it_was_approved() {
    let (running, client) = ChatClient::start(gateway(CALLS));
    assert!(!is_denied(&client, "a"));
    write(&running, "work/.tenterhook/hooks.yaml", GUARD);
    let changes = reload(&running);
    let unchanged = json!({"added": [], "changed": [], "removed": []});
    assert_eq!(changes["hooks"], unchanged);
    let note = changes["notes"][0].as_str().unwrap();
    assert!(note.contains("`no-shell`"), "{note}");
    assert!(!is_denied(&client, "a"));
    let approved = running.beside(["trust", "--all"]);
    assert!(approved.status.success(), "{approved:?}");
    assert!(!is_denied(&client, "a"), "nothing was reloaded");
    reload(&running);
    assert!(is_denied(&client, "a"));
    end(running);
}

#[test]
fn a_turn_that_runs_keeps_its_hooks_and_the_next_one_has_the_new_ones() {
    let script = "\
turns:
  - tool_calls: [{name: shell, arguments: {cmd: 'touch running; until [ -e go ]; do sleep 0.02; done'}}]
  - tool_calls: [{name: shell, arguments: {cmd: touch second}}]
  - text: Both.
  - tool_calls: [{name: shell, arguments: {cmd: touch third}}]
  - text: Denied.
";
    let (running, client) = ChatClient::start(gateway(script));
    let first = client.say("a", "go on");
    eventually(|| running.work().join("running").exists().then_some(()));
    write(&running, HOOKS, GUARD);
    assert_eq!(reload(&running)["turns_with_old_hooks"], 1);
    fs::write(running.work().join("go"), "").unwrap();
    let frames: Vec<Value> = first.collect();
    assert!(running.work().join("second").exists(), "{frames:#?}");
    assert!(is_denied(&client, "a"));
    assert!(!running.work().join("third").exists());
    end(running);
}

/// Stores a count in the session, and notes why sessions start and end.
const EXTENSION: &str = r#"
import fs from "node:fs";
export default (pi) => {
  let count = 0;
  const note = (line) => fs.appendFileSync("log", `VERSION ${line}\n`);
  pi.on("session_start", ({ reason }, ctx) => {
    const stored = ctx.sessionManager.getBranch().filter((entry) => entry.customType === "count");
    count = stored.length;
    note(`start ${reason} with ${count}`);
  });
  pi.on("session_shutdown", ({ reason }) => note(`end ${reason}`));
  pi.registerCommand("count", { handler: async (_args, ctx) => {
    count += 1;
    pi.appendEntry("count", { count });
    ctx.ui.notify(`VERSION ${count}`);
  } });
};
"#;

const EXTENSION_FILE: &str = "home/.pi/agent/extensions/counter.js";

fn log_of(running: &Running, lines: usize) -> Vec<String> {
    eventually(|| {
        let log = fs::read_to_string(running.work().join("log")).unwrap_or_default();
        let log: Vec<String> = log.lines().map(str::to_owned).collect();
        (log.len() >= lines).then_some(log)
    })
}

#[test]
fn an_extension_ends_and_starts_in_each_chat_with_the_reason_reload_and_finds_its_entries() {
    let first = EXTENSION.replace("VERSION", "one");
    let test = gateway(CALLS).file(&format!("../{EXTENSION_FILE}"), &first);
    let (running, client) = ChatClient::start(test);
    // A session is stored once it has a message.
    assert_eq!(client.ask("a", "hi"), ["Called."]);
    assert_eq!(client.ask("b", "hi"), ["Called."]);
    assert_eq!(client.ask("a", "/count"), ["one 1"]);
    assert_eq!(client.ask("a", "/count"), ["one 2"]);
    assert_eq!(client.ask("b", "/count"), ["one 1"]);
    // What has not changed is not loaded again, so extensions keep what they know.
    reload(&running);
    assert_eq!(client.ask("a", "/count"), ["one 3"]);

    write(
        &running,
        EXTENSION_FILE,
        &EXTENSION.replace("VERSION", "two"),
    );
    let changes = reload(&running);
    assert_eq!(changes["hooks"]["added"], json!([]), "{changes}");
    let mut log = log_of(&running, 6);
    let began = ["one start startup with 0", "one start startup with 0"];
    assert_eq!(log[..2], began);
    log.sort_unstable();
    let reloaded = [
        "one end reload",
        "one end reload",
        "two start reload with 1",
        "two start reload with 3",
    ];
    let is_reloaded = |line: &&String| line.contains("reload");
    let found: Vec<_> = log.iter().filter(is_reloaded).collect();
    assert_eq!(found, reloaded);
    assert_eq!(client.ask("a", "/count"), ["two 4"]);
    assert_eq!(client.ask("b", "/count"), ["two 2"]);

    // Without its extension, a command is a prompt.
    fs::remove_file(running.path(EXTENSION_FILE)).unwrap();
    reload(&running);
    assert_eq!(client.ask("a", "/count"), ["Called."]);
    end(running);
}

/// Sends a signal, and waits until the gateway has handled it.
fn hang_up(running: &Running) {
    let status = || {
        let status = running.beside(["gateway", "status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).unwrap();
        status["reload"].clone()
    };
    let before = status();
    running.signal("HUP");
    let after = eventually(|| Some(status()).filter(|after| *after != before));
    let note = after["notes"][0].as_str().unwrap();
    assert!(note.contains("tenterhook gateway reload"), "{note}");
}

#[test]
fn a_signal_neither_adds_nor_removes_a_hook_and_runs_no_code_of_one() {
    let (running, client) = ChatClient::start(gateway(CALLS));
    let loaded = running.work().join("loaded");
    let file = write(&running, HOOKS, GUARD);
    let code = r#"
import fs from "node:fs";
fs.writeFileSync("loaded", "");
export default () => {};
"#;
    write(&running, EXTENSION_FILE, code);
    hang_up(&running);
    assert!(!loaded.exists());
    assert!(!is_denied(&client, "a"), "a signal added a hook");
    reload(&running);
    assert!(loaded.exists());
    assert!(is_denied(&client, "a"));

    fs::remove_file(file).unwrap();
    hang_up(&running);
    assert!(is_denied(&client, "a"), "a signal removed a guard");
    reload(&running);
    assert!(!is_denied(&client, "a"));
    end(running);
}

#[test]
fn a_signal_adds_no_hook_that_answers_questions_instead_of_a_person() {
    let asking = Test::new()
        .args("gateway run --listen 127.0.0.1:0 --journal journal.jsonl".split(' '))
        .script(CALLS);
    let (running, client) = ChatClient::start(asking);
    let yes = r#"hooks: [{event: permission_request, command: "echo '{\"decision\":\"allow\"}'"}]"#;
    write(&running, HOOKS, yes);
    hang_up(&running);
    let mut frames = client.say("a", "hi");
    let question = frames.find(|frame| frame["type"] == "approve").unwrap();
    let path = format!(
        "/v1/chats/a/approvals/{}",
        question["nonce"].as_str().unwrap()
    );
    let (status, answer) = client.post(&path, r#"{"choice":"deny"}"#);
    assert!(status.starts_with('2'), "{answer}");
    assert!(frames.any(|frame| frame["type"] == "done"));
    reload(&running);
    assert!(!is_denied(&client, "a"), "the hook answers");
    end(running);
}

#[test]
fn the_gateways_own_events_run_reloaded_hooks() {
    let script = "turns: [{text: Hello., repeat: true}]";
    let (running, client) = ChatClient::start(gateway(script));
    assert_eq!(client.ask("a", "hi"), ["Hello."]);
    let hooks = "hooks:
  - event: message_receive
    command: 'grep -q secret && { echo \"no secrets\" >&2; exit 2; } || true'
  - event: channel_connect
    command: 'echo \"not here\" >&2; exit 2'
";
    write(&running, HOOKS, hooks);
    let settings = "channels: { http: {}, more: { kind: command, argv: [cat] } }";
    write(&running, "config/gateway.yaml", settings);
    assert_eq!(reload(&running)["started"], json!(["more"]));
    assert_eq!(client.ask("a", "a secret")[0], "no secrets");
    assert_eq!(client.ask("a", "hi"), ["Hello."]);
    assert_eq!(channel(&running, "more").unwrap()["state"], "blocked");
    end(running);
}

#[test]
fn a_question_that_waits_stays_open_during_a_reload() {
    let asking = r#"
export default (pi) => {
  pi.registerCommand("sure", { handler: async (_args, ctx) => {
    ctx.ui.notify(`sure: ${await ctx.ui.confirm("Delete", "everything?")}`);
  } });
};
"#;
    let test = gateway(CALLS).file(&format!("../{EXTENSION_FILE}"), asking);
    let (running, client) = ChatClient::start(test);
    let mut frames = client.say("a", "/sure");
    let question = frames.find(|frame| frame["type"] == "question").unwrap();
    write(&running, HOOKS, GUARD);
    assert_eq!(reload(&running)["turns_with_old_hooks"], 1);
    let nonce = question["nonce"].as_str().unwrap();
    let path = format!("/v1/chats/a/approvals/{nonce}");
    let (status, answer) = client.post(&path, r#"{"text":"yes"}"#);
    assert!(status.starts_with('2'), "{answer}");
    let shown = frames.find(|frame| frame["type"] == "notice").unwrap();
    assert_eq!(shown["text"], "sure: true");
    assert!(is_denied(&client, "a"));
    end(running);
}

#[test]
fn a_reload_reads_the_files_that_hook_files_import_and_that_the_command_line_names() {
    let named = HARMLESS.replace("harmless", "named");
    let test = gateway(CALLS)
        .hooks(&named)
        .file("../config/hooks.yaml", "import: more.yaml\n")
        .file("../config/more.yaml", HARMLESS);
    let (running, client) = ChatClient::start(test);
    assert!(!is_denied(&client, "a"));
    for file in ["config/more.yaml", "work/hooks.yaml"] {
        let harmless = fs::read_to_string(running.path(file)).unwrap();
        write(&running, file, GUARD);
        reload(&running);
        assert!(is_denied(&client, "a"), "{file}");
        write(&running, file, &harmless);
        reload(&running);
        assert!(!is_denied(&client, "a"), "{file}");
    }
    end(running);
}
