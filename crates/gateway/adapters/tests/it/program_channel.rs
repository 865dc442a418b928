//! Channels that are programs: the example of `docs/reference/channel-protocol.md`, and programs that misbehave.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenterhook_adapters::program::ProgramChannel;
use tenterhook_channel::channel::{
    Accepted, Channel, ChannelError, DeliveryError, MediaSink, Outgoing,
};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::{ChatFrame, Frame};
use tenterhook_channel::message::{Control, MediaKind, MediaRef};
use tenterhook_channel::settings::CommandSettings;
use tokio_util::sync::CancellationToken;

use crate::recording_intake::{RecordingIntake, until};

const PAGE: &str = include_str!("../../../../../docs/reference/channel-protocol.md");

/// Returns the example of the page.
fn example() -> &'static str {
    let (_, code) = PAGE.split_once("```python\n").unwrap();
    code.split_once("```").unwrap().0
}

fn channel(folder: &Path, script: &str) -> ProgramChannel {
    std::fs::write(folder.join("channel.py"), script).unwrap();
    for name in ["inbox", "outbox"] {
        std::fs::create_dir_all(folder.join(name)).unwrap();
    }
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let argv = vec!["python3".to_owned(), path("channel.py"), path("")];
    ProgramChannel::new(ChannelId::new("mine").unwrap(), &CommandSettings { argv })
}

fn outgoing(seq: u64, text: &str) -> Outgoing {
    Outgoing {
        chat: ChatRef {
            channel: ChannelId::new("mine").unwrap(),
            chat: "folder".to_owned(),
            thread: None,
        },
        frame: ChatFrame {
            seq: Some(seq),
            frame: Frame::Message {
                turn: None,
                text: text.to_owned(),
                media: None,
                reply_to: None,
            },
        },
        file: None,
        attempt: 0,
    }
}

fn start(
    channel: &Arc<ProgramChannel>,
    intake: &Arc<RecordingIntake>,
) -> (
    CancellationToken,
    tokio::task::JoinHandle<Result<(), ChannelError>>,
) {
    let (channel, inlet, stop) = (
        channel.clone(),
        intake.inlet("mine"),
        CancellationToken::new(),
    );
    let stopped = stop.clone();
    let run = tokio::spawn(async move { channel.run(inlet, stopped).await });
    (stop, run)
}

// G66
#[tokio::test]
async fn the_example_of_the_page_loses_no_message_when_it_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    // The test must know whom to kill.
    let script = format!(
        "import os, pathlib, sys\n(pathlib.Path(sys.argv[1]) / 'pid').write_text(str(os.getpid()))\n{}",
        example()
    );
    let channel = Arc::new(channel(folder.path(), &script));
    let intake = RecordingIntake::new();
    let inbox = folder.path().join("inbox");
    let put = |i: usize| {
        let unfinished = folder.path().join("unfinished");
        std::fs::write(&unfinished, format!("message {i}")).unwrap();
        std::fs::rename(unfinished, inbox.join(format!("{i:02}.txt"))).unwrap();
    };
    let not_running = channel.send(&outgoing(1, "early")).await.unwrap_err();
    assert!(matches!(not_running, DeliveryError::Retry { .. }));
    for round in 0..3 {
        (round * 10..round * 10 + 10).for_each(put);
        let (_stop, run) = start(&channel, &intake);
        until("a message", || intake.messages().len() > round * 10).await;
        let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
        let killed = std::process::Command::new("kill")
            .args(["-9", &pid])
            .status();
        assert!(killed.unwrap().success());
        let error = run.await.unwrap().unwrap_err();
        assert!(error.cause.contains("signal 9"), "{error}");
    }
    let alive = intake.alive();
    let (stop, run) = start(&channel, &intake);
    until("the start", || intake.alive() > alive).await;
    until("all messages", || intake.messages().len() == 30).await;
    until("an empty inbox", || {
        inbox.read_dir().unwrap().next().is_none()
    })
    .await;
    let mut texts = intake.texts();
    texts.sort();
    texts.dedup();
    assert_eq!(texts.len(), 30);
    let receipt = channel.send(&outgoing(7, "the answer")).await.unwrap();
    let [name] = &receipt.message_ids[..] else {
        panic!("{receipt:?}");
    };
    let answer = std::fs::read_to_string(folder.path().join("outbox").join(name)).unwrap();
    assert_eq!(answer, "the answer");
    stop.cancel();
    assert_eq!(run.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_program_says_whether_sending_again_can_help() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    answer = {"jsonrpc": "2.0", "id": message.get("id"), "result": {}}
    if message["method"] == "send":
        text = message["params"]["frame"]["text"]
        if text == "die":
            sys.stderr.write("I am gone\n")
            sys.exit(3)
        answer["error"] = {"code": 1, "message": text, "data": json.loads(text)}
        del answer["result"]
    print("not json" if message["method"] == "ping" else json.dumps(answer), flush=True)
"#;
    let channel = Arc::new(channel(folder.path(), script));
    let intake = RecordingIntake::new();
    let (_stop, run) = start(&channel, &intake);
    until("the start", || intake.alive() > 0).await;
    for (data, expected) in [
        (r#"{"permanent": true}"#, None),
        (
            r#"{"retry_after_ms": 1500}"#,
            Some(Some(Duration::from_millis(1500))),
        ),
        ("{}", Some(None)),
        ("null", Some(None)),
    ] {
        let found = match channel.send(&outgoing(1, data)).await.unwrap_err() {
            DeliveryError::Permanent { .. } => None,
            DeliveryError::Retry { after, .. } => Some(after),
        };
        assert_eq!(found, expected, "{data}");
    }
    let error = channel.send(&outgoing(1, "die")).await.unwrap_err();
    assert!(matches!(error, DeliveryError::Retry { .. }), "{error:?}");
    let error = run.await.unwrap().unwrap_err();
    assert_eq!(error.code, "ended");
    assert_eq!(
        error.cause,
        "the program ended with status 3; its last output: I am gone"
    );
}

#[tokio::test]
async fn a_program_gets_an_answer_to_each_of_its_requests() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import base64, json, pathlib, sys
answers = open(pathlib.Path(sys.argv[1]) / "answers", "w")
def write(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "method" not in message:
        answers.write(line)
        answers.flush()
    elif message["method"] == "initialize":
        write({"id": message["id"], "result": {}})
        where = {"chat": "c", "sender": {"id": "s"}}
        hello = {**where, "message_id": "1", "parts": [{"type": "text", "text": "hi"}]}
        print("no json", flush=True)
        write({"id": "a", "method": "massage", "params": hello})
        write({"id": "b", "method": "message", "params": {**hello, "chat": ""}})
        write({"id": "c", "method": "message", "params": hello})
        write({"id": "d", "method": "message", "params": hello})
        write({"id": "e", "method": "message", "params": hello})
        write({"id": "f", "method": "control", "params": {**where, "type": "cancel"}})
    elif message["method"] == "fetch":
        data = base64.b64encode(message["params"]["reference"].encode()).decode()
        write({"id": message["id"], "result": {"data": data}})
"#;
    let channel = Arc::new(channel(folder.path(), script));
    let intake = RecordingIntake::new();
    let refused = Accepted::Refused {
        code: "rate",
        notice: Some("Slower, please.".to_owned()),
    };
    let failed = Accepted::Failed {
        cause: "the disk is full".to_owned(),
    };
    intake.answer_next(vec![failed, refused]);
    let (stop, run) = start(&channel, &intake);
    let answers = || std::fs::read_to_string(folder.path().join("answers")).unwrap_or_default();
    until("seven answers", || answers().lines().count() == 7).await;
    for part in [
        r#""code":-32700"#,
        r#""id":"a","error":{"code":-32601"#,
        r#""id":"b","error":{"code":-32602"#,
        r#""id":"c","result":{"status":"refused","code":"rate","notice":"Slower, please."}"#,
        r#""id":"d","error":{"code":-32001"#,
        r#""id":"e","result":{"status":"recorded"}"#,
        r#""id":"f","result":{"text":"noted"}"#,
    ] {
        assert!(answers().contains(part), "{part} in {}", answers());
    }
    let controls = intake.controls();
    assert!(matches!(&controls[..], [Control::Cancel { sender, .. }] if sender.id == "s"));
    let media = MediaRef {
        kind: MediaKind::File,
        reference: "hello".to_owned(),
        name: None,
        duration_ms: None,
    };
    let mut sink = MediaSink::new(5);
    channel.fetch(&media, &mut sink).await.unwrap();
    assert_eq!(sink.into_bytes(), b"hello");
    let error = channel
        .fetch(&media, &mut MediaSink::new(4))
        .await
        .unwrap_err();
    assert_eq!(error.code, "too_large");
    stop.cancel();
    assert_eq!(run.await.unwrap(), Ok(()));
}

#[tokio::test]
async fn a_program_that_does_not_answer_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import json, sys, time
message = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}), flush=True)
time.sleep(1000)
"#;
    let channel = channel(folder.path(), script).with_ping(Duration::from_millis(100));
    let intake = RecordingIntake::new();
    let run = channel.run(intake.inlet("mine"), CancellationToken::new());
    let error = tokio::time::timeout(Duration::from_secs(20), run).await;
    let error = error.unwrap().unwrap_err();
    assert_eq!(error.code, "silent");
}
