//! Backups of a gateway that runs, and starting again from one.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;

use crate::chat_client::ChatClient;
use crate::stage::{Ran, Running, Test, eventually};

const SCRIPT: &str = "turns: [{text: Hello from the agent., repeat: true}]";
pub(crate) const ANSWER: &str = "Hello from the agent.";

/// Holds messages of the chat `held` until a file exists.
pub(crate) const HOLD: &str = "\
hooks:
  - event: message_receive
    command: \"grep -q held && touch held && until [ -e go ]; do sleep 0.02; done; true\"
    timeout: 100
";

pub(crate) fn prepare(test: Test) -> Test {
    test.args("gateway run --no-journal --listen 127.0.0.1:0".split(' '))
        .script(SCRIPT)
}

fn kill(running: Running) -> Ran {
    running.signal("KILL");
    running.finish()
}

fn state(ran: &Ran) -> PathBuf {
    ran.path("home/.local/share/tenterhook/gateway")
}

/// Returns the frames of a chat.
fn history(client: &ChatClient, chat: &str) -> Vec<Value> {
    let mut answer = String::new();
    let request = format!("GET /v1/chats/{chat}/history?limit=200");
    let mut stream = client.open(&request, "accept: */*", "");
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
    body["frames"].as_array().unwrap().clone()
}

/// Returns the texts of a chat's frames of a type.
fn texts(client: &ChatClient, chat: &str, kind: &str) -> Vec<String> {
    let frames = history(client, chat).into_iter();
    let of_kind = frames.filter(|frame| frame["type"] == kind);
    of_kind
        .map(|frame| frame["text"].as_str().unwrap().to_owned())
        .collect()
}

/// Returns the lines of all sessions.
fn session_lines(ran: &Ran) -> Vec<String> {
    let sessions = ran.path("home/.local/share/tenterhook/sessions");
    let projects = fs::read_dir(sessions).unwrap();
    let files = projects.flat_map(|project| fs::read_dir(project.unwrap().path()).unwrap());
    let texts = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap());
    texts
        .flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>())
        .collect()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_backup_of_a_running_gateway_brings_back_chats_waiting_messages_and_sessions() {
    let (running, client) = ChatClient::start(prepare(Test::new()).hooks(HOLD));
    assert_eq!(client.ask("a", "before")[0], ANSWER);
    let (status, answer) = client.post("/v1/chats/b/messages", r#"{"text":"held"}"#);
    assert_eq!(status, "202", "{answer}");
    let work = running.work();
    eventually(|| work.join("held").exists().then_some(()));
    let output = running.beside(["gateway", "backup", "saved.tar"]);
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        printed.contains("with 1 session and 0 files: "),
        "{printed}"
    );
    assert_eq!(mode(&work.join("saved.tar")), 0o600);
    assert_eq!(client.ask("a", "after")[0], ANSWER);
    let ran = kill(running);

    let ran = ran.again(["gateway", "restore", "saved.tar"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("with 1 session"), "{}", ran.stdout);
    assert!(!session_lines(&ran).concat().contains("after"));
    assert_eq!(mode(&state(&ran).join("gateway.redb")), 0o600);
    let replaced = fs::read_dir(state(&ran)).unwrap();
    let replaced: Vec<PathBuf> = replaced
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("replaced-"))
        .collect();
    assert!(replaced[0].join("gateway.redb").is_file());
    let (running, client) = client.start_again(prepare(ran.again([])));
    // The token counts as before.
    eventually(|| (texts(&client, "b", "end") == [ANSWER]).then_some(()));
    assert_eq!(texts(&client, "a", "said"), ["before"]);
    assert_eq!(client.ask("a", "again")[0], ANSWER);
    let lines = session_lines(&kill(running)).concat();
    assert!(lines.contains("before") && lines.contains("again") && lines.contains("held"));
}

#[test]
fn no_message_that_was_acknowledged_before_a_backup_is_missing_in_it() {
    let (running, client) = ChatClient::start(prepare(Test::new()));
    let stop = AtomicBool::new(false);
    let acknowledged = thread::scope(|scope| {
        let writers: Vec<_> = ["a", "b", "c", "d"]
            .map(|chat| {
                let (client, stop) = (&client, &stop);
                scope.spawn(move || {
                    let path = format!("/v1/chats/{chat}/messages");
                    for number in 0.. {
                        let body = format!("{{\"text\":\"{chat}-{number}\"}}");
                        let (status, _) = client.post(&path, &body);
                        // The gateway limits the messages of a user.
                        if status == "429" || stop.load(Ordering::SeqCst) {
                            break;
                        }
                        assert_eq!(status, "202");
                    }
                })
            })
            .into();
        // Some were acknowledged, and more arrive.
        let said = eventually(|| {
            let said = ["a", "b", "c", "d"].map(|chat| texts(&client, chat, "said"));
            said.iter().all(|said| !said.is_empty()).then_some(said)
        });
        let output = running.beside(["gateway", "backup", "saved.tar"]);
        assert!(output.status.success(), "{output:?}");
        stop.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.join().unwrap();
        }
        said
    });
    let ran = kill(running);
    let ran = ran.again(["gateway", "restore", "saved.tar"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let (running, client) = client.start_again(prepare(ran.again([])));
    for (chat, before) in ["a", "b", "c", "d"].into_iter().zip(acknowledged) {
        // The last message waits for all others of its chat.
        client.ask(chat, "last");
        let said = texts(&client, chat, "said");
        assert_eq!(said[..before.len()], before);
        let answered = texts(&client, chat, "end").len() + texts(&client, chat, "error").len();
        assert!(answered <= said.len(), "{said:?}");
    }
    assert_eq!(kill(running).status, -1);
}

/// A backup of a gateway with one chat, and the gateway that is stopped.
fn backed_up() -> (Ran, ChatClient) {
    let (running, client) = ChatClient::start(prepare(Test::new()));
    assert_eq!(client.ask("a", "before")[0], ANSWER);
    let output = running.beside(["gateway", "backup", "saved.tar"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(client.ask("a", "after")[0], ANSWER);
    (kill(running), client)
}

/// Changes the bytes of a backup.
type Damage = fn(Vec<u8>) -> Vec<u8>;

fn replace(mut bytes: Vec<u8>, from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let found = bytes
        .windows(from.len())
        .position(|it| it == from.as_bytes());
    let found = found.unwrap();
    bytes[found..found + to.len()].copy_from_slice(to.as_bytes());
    bytes
}

/// What is done to a backup, and what the refusal says.
const DAMAGED: [(&str, Damage, &str); 6] = [
    ("empty", |_| Vec::new(), "is not a backup"),
    ("a text", |_| b"hello".repeat(1000), "is not a backup"),
    (
        "cut",
        |bytes| bytes[..bytes.len() / 2].to_vec(),
        "is damaged",
    ),
    (
        "without its end",
        |bytes| {
            let end = bytes.windows(9).position(|it| it == b"checksums");
            bytes[..end.unwrap()].to_vec()
        },
        "is damaged",
    ),
    (
        "changed",
        |bytes| replace(bytes, "\"before\"", "\"beyond\""),
        "is not as it was written",
    ),
    (
        "newer",
        |bytes| replace(bytes, "\"layout\":1", "\"layout\":2"),
        "with layout 2; expected layout 1",
    ),
];

#[test]
fn a_backup_that_is_damaged_or_newer_changes_nothing() {
    let (mut ran, client) = backed_up();
    let good = fs::read(ran.path("work/saved.tar")).unwrap();
    let before = fs::read(state(&ran).join("gateway.redb")).unwrap();
    let lines = session_lines(&ran);
    for (name, damage, expected) in DAMAGED {
        fs::write(ran.path("work/bad.tar"), damage(good.clone())).unwrap();
        ran = ran.again(["gateway", "restore", "bad.tar"]).run();
        assert_eq!(ran.status, 1, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{name}: {}", ran.stderr);
        let store = fs::read(state(&ran).join("gateway.redb")).unwrap();
        assert!(store == before, "{name}");
        assert_eq!(session_lines(&ran), lines, "{name}");
        let left: Vec<_> = fs::read_dir(state(&ran)).unwrap().collect();
        let left = left.iter().filter(|entry| {
            let name = entry.as_ref().unwrap().file_name();
            name.to_string_lossy().starts_with('r')
        });
        assert_eq!(left.count(), 0, "{name}");
    }
    let (running, client) = client.start_again(prepare(ran.again([])));
    assert_eq!(texts(&client, "a", "said"), ["before", "after"]);
    assert_eq!(kill(running).status, -1);
}

#[test]
fn a_running_gateway_is_not_replaced_and_a_backup_replaces_no_file() {
    let (ran, client) = backed_up();
    let (running, client) = client.start_again(prepare(ran.again([])));
    let refused = running.beside(["gateway", "restore", "saved.tar"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(5), "{text}");
    assert!(text.contains("a gateway uses the state folder"), "{text}");
    let refused = running.beside(["gateway", "backup", "saved.tar"]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1), "{text}");
    assert!(text.contains("never replaces a file"), "{text}");
    assert_eq!(texts(&client, "a", "said"), ["before", "after"]);
    assert_eq!(kill(running).status, -1);
}

#[test]
fn a_stopped_gateway_is_backed_up_too_and_restored_into_an_empty_place() {
    let (ran, client) = backed_up();
    let ran = ran.again(["gateway", "backup", "stopped.tar"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let data = ran.path("home/.local/share/tenterhook");
    fs::rename(&data, ran.path("home/lost")).unwrap();
    let ran = ran.again(["gateway", "restore", "stopped.tar"]).run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(!ran.stdout.contains("replaced"), "{}", ran.stdout);
    let (running, client) = client.start_again(prepare(ran.again([])));
    assert_eq!(texts(&client, "a", "said"), ["before", "after"]);
    assert_eq!(client.ask("a", "again")[0], ANSWER);
    let lines = session_lines(&kill(running)).concat();
    assert!(lines.contains("before") && lines.contains("again"));
}

#[test]
fn sessions_of_another_directory_are_not_restored_where_no_agent_finds_them() {
    let (ran, _) = backed_up();
    fs::create_dir(ran.path("work/elsewhere")).unwrap();
    let command = "cd elsewhere";
    let ran = ran
        .again(["gateway", "restore", "../saved.tar"])
        .after(command)
        .run();
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains("agents that start here have theirs in"),
        "{}",
        ran.stderr
    );
    let ran = ran
        .again(["gateway", "restore", "../saved.tar", "--cwd", ".."])
        .after(command)
        .run();
    assert_eq!(ran.status, 0, "{}", ran.stderr);
}

/// What an agent's shell tries, and what must not be there afterwards.
#[test]
fn a_program_of_the_agent_neither_backs_up_nor_restores() {
    let program = env!("CARGO_BIN_EXE_tenterhook");
    let script = format!(
        "turns:
  - tool_calls: [{{name: shell, arguments: {{cmd: \"{program} gateway backup stolen.tar 2> backup; {program} gateway restore saved.tar 2> restore\"}}}}]
  - {{text: Done., repeat: true}}
"
    );
    let test = Test::new()
        .args("gateway run --no-journal --listen 127.0.0.1:0 --allow shell".split(' '))
        .script(&script);
    let (running, client) = ChatClient::start(test);
    client.ask("a", "go");
    let ran = kill(running);
    assert!(!ran.path("work/stolen.tar").exists());
    for name in ["backup", "restore"] {
        let said = ran.file(name);
        assert!(said.contains("in your own terminal"), "{name}: {said}");
    }
}
