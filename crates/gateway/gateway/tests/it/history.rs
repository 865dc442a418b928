//! What a client finds that reads a conversation later.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use tenterhook_agent::SessionStore;
use tenterhook_channel::frame::Frame;
use tenterhook_channel::store::DocumentKind;
use tenterhook_gateway::conversations::session_tails::restore_session_tails;

use crate::conversation_stage::{Options, Stage, chat};

#[tokio::test]
async fn finished_tool_calls_are_part_of_the_history() {
    let script = r"
turns:
  - text: I look.
    tool_calls: [{name: write_file, arguments: {path: a.txt, content: LONG}}]
  - tool_calls: [{name: shell, arguments: {cmd: echo found}}]
  - text: Done.
";
    let stage = Stage::new(&script.replace("LONG", &"x".repeat(5_000)));
    stage.ask("look").await;
    let ann = chat("ann");
    let page = stage.parts.store.frames_before(&ann, u64::MAX, 100);
    let mut frames = page.await.unwrap().frames;
    frames.sort_by_key(|stored| stored.seq);
    let kinds: Vec<String> = frames
        .iter()
        .map(|stored| serde_json::to_value(&stored.frame).unwrap())
        .map(|frame| {
            frame["name"]
                .as_str()
                .or(frame["type"].as_str())
                .unwrap()
                .to_owned()
        })
        .collect();
    let expected = ["said", "end", "write_file", "shell", "end", "done"];
    assert_eq!(kinds, expected);
    let Frame::Call { args, is_error, .. } = &frames[2].frame else {
        panic!("not a call");
    };
    assert!(!is_error);
    assert_eq!(args["path"], "a.txt");
    assert_eq!(args["content"].as_str().unwrap().len(), 300);
}

/// Returns the only session's file.
fn session_file(stage: &Stage) -> PathBuf {
    let sessions = SessionStore::of_project(&stage.elsewhere().join("state"), &stage.cwd());
    let mut files = fs::read_dir(sessions.folder()).unwrap();
    files.next().unwrap().unwrap().path()
}

/// Returns what the store has of the end of the session.
async fn tail(stage: &Stage) -> Value {
    let kind = DocumentKind::SessionTail;
    let tails = stage.parts.store.documents(kind).await.unwrap();
    let mut tails = tails.into_iter().map(|(_, tail)| tail);
    tails.next().unwrap_or_default()
}

/// Does what a loss of power can do: the file loses everything for which no one has waited.
async fn lose_power(stage: &Stage) {
    let synced = tail(stage).await["offset"].as_u64().unwrap();
    let file = fs::File::options().write(true).open(session_file(stage));
    file.unwrap().set_len(synced).unwrap();
}

#[tokio::test]
async fn a_loss_of_power_takes_nothing_from_the_session_that_was_heard_or_answered() {
    let options = Options {
        calls: 1,
        logs_events: false,
        ..Options::default()
    };
    let stage = Stage::with("turns: [{text: hello, repeat: true}]", options);
    stage.say("one").await;
    stage.until_finished().await;
    stage.say("two").await;
    stage.until_called(2).await;
    // The model is not asked before the disk has the message.
    let heard = tail(&stage).await;
    assert!(heard["lines"].as_str().unwrap().contains("two"), "{heard}");
    stage.answer_calls(2);
    stage.until_finished().await;
    let whole = fs::read_to_string(session_file(&stage)).unwrap();
    assert_eq!(whole.matches("hello").count(), 2);
    stage.stop(Duration::ZERO).await;
    lose_power(&stage).await;
    assert_ne!(fs::read_to_string(session_file(&stage)).unwrap(), whole);

    let problems = restore_session_tails(&stage.parts.store).await;
    assert_eq!(problems, [""; 0]);
    assert_eq!(fs::read_to_string(session_file(&stage)).unwrap(), whole);
    assert_eq!(tail(&stage).await, Value::Null);
    stage.restart();
    stage.say("three").await;
    stage.until_finished().await;
    assert_eq!(stage.heard(2), ["one", "two", "three"]);
}

#[tokio::test]
async fn hooks_that_watch_save_points_find_the_session_on_the_disk() {
    let stage = Stage::new("turns: [{text: hello, repeat: true}]");
    for text in ["one", "two"] {
        stage.say(text).await;
        stage.until_finished().await;
    }
    let kept = tail(&stage).await;
    let lines = kept["lines"].as_str().unwrap();
    assert!(lines.contains("two") && !lines.contains("hello"), "{kept}");
}
