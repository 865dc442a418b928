//! The program of `docs/how-to/channel-program.md` connects a made-up messenger.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_adapters::program::ProgramChannel;
use tenterhook_channel::channel::{Accepted, Channel as _, MediaSink, Outgoing};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::{ChatFrame, EndReason, Frame, Media};
use tenterhook_channel::message::{IncomingPart, MediaKind};
use tenterhook_channel::settings::CommandSettings;
use tokio_util::sync::CancellationToken;

use crate::recording_intake::{RecordingIntake, until};

const PAGE: &str = include_str!("../../../../../docs/how-to/channel-program.md");
const RECORDING: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";

/// What the messenger got: the chat, `text` or `voice`, and the content.
type Sent = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

#[derive(serde::Deserialize)]
struct After {
    after: usize,
}

/// Returns the letters above a number, or waits for a while if there are none.
async fn letters(Query(After { after }): Query<After>) -> String {
    let letters = [
        json!({"number": 1, "chat": "ann", "from": "me", "text": "Grüße"}),
        json!({"number": 2, "chat": "ann", "from": "me", "voice": "r1"}),
    ];
    let new: Vec<&Value> = letters.iter().skip(after).collect();
    if new.is_empty() {
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    json!(new).to_string()
}

async fn receive(
    State(sent): State<Sent>,
    Path((chat, kind)): Path<(String, String)>,
    body: Bytes,
) {
    sent.lock().push((chat, kind, body.to_vec()));
}

/// Starts the messenger. Returns its address.
async fn pigeon(sent: &Sent) -> String {
    let app = Router::new()
        .route("/letters", get(letters))
        .route("/files/r1", get(|| async { RECORDING }))
        .route("/chats/{chat}/{kind}", post(receive))
        .with_state(Arc::clone(sent));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

fn outgoing(seq: u64, frame: Frame) -> Outgoing {
    Outgoing {
        chat: ChatRef {
            channel: ChannelId::new("pigeon").unwrap(),
            chat: "ann".to_owned(),
            thread: None,
        },
        frame: ChatFrame {
            seq: Some(seq),
            frame,
        },
        file: None,
        attempt: 0,
    }
}

fn spoken_answer() -> Frame {
    let media = Media {
        kind: MediaKind::Audio,
        id: "a".to_owned(),
        media_type: "audio/x-wav".to_owned(),
        name: "answer.wav".to_owned(),
        size: RECORDING.len() as u64,
    };
    Frame::Message {
        turn: None,
        text: String::new(),
        media: Some(media),
        reply_to: None,
    }
}

#[tokio::test]
async fn the_example_carries_text_and_voice_in_both_directions() {
    let (_, code) = PAGE.split_once("```python file=pigeon.py\n").unwrap();
    let (code, _) = code.split_once("```").unwrap();
    let lines = code.lines().filter(|line| !line.trim().is_empty());
    assert!(lines.count() <= 40, "the example is short");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("pigeon.py");
    std::fs::write(&script, code).unwrap();
    let sent = Sent::default();
    let server = pigeon(&sent).await;
    let argv = vec![
        "python3".to_owned(),
        script.to_str().unwrap().to_owned(),
        server,
    ];
    let settings = CommandSettings { argv };
    let channel = Arc::new(ProgramChannel::new(
        ChannelId::new("pigeon").unwrap(),
        &settings,
    ));
    let intake = RecordingIntake::new();
    // The disk is full at first, so the first letter is offered again.
    let cause = "the disk is full".to_owned();
    intake.answer_next(vec![Accepted::Failed { cause }]);
    let (running, inlet) = (Arc::clone(&channel), intake.inlet("pigeon"));
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let run = tokio::spawn(async move { running.run(inlet, stopped).await });

    until("both letters", || intake.messages().len() == 2).await;
    let messages = intake.messages();
    assert_eq!(intake.texts()[0], "Grüße");
    assert!(
        messages
            .iter()
            .all(|message| message.is_direct && message.sender.id == "me")
    );
    let [IncomingPart::Media(voice)] = &messages[1].parts[..] else {
        panic!("{messages:?}");
    };
    assert_eq!(voice.kind, MediaKind::Audio);
    let mut sink = MediaSink::new(1000);
    channel.fetch(voice, &mut sink).await.unwrap();
    assert_eq!(sink.into_bytes(), RECORDING);

    assert!(channel.capabilities().audio_formats.contains(&"audio/wav"));
    let end = Frame::End {
        turn: "t".to_owned(),
        text: "Schöne Grüße".to_owned(),
        is_final: true,
        reason: EndReason::Stop,
    };
    channel.send(&outgoing(1, end)).await.unwrap();
    let answer = folder.path().join("answer.wav");
    std::fs::write(&answer, RECORDING).unwrap();
    let mut spoken = outgoing(2, spoken_answer());
    spoken.file = Some(answer);
    channel.send(&spoken).await.unwrap();
    let expected = [
        (
            "ann".to_owned(),
            "text".to_owned(),
            "Schöne Grüße".as_bytes().to_vec(),
        ),
        ("ann".to_owned(), "voice".to_owned(), RECORDING.to_vec()),
    ];
    assert_eq!(*sent.lock(), expected);
    stop.cancel();
    assert_eq!(run.await.unwrap(), Ok(()));
}
