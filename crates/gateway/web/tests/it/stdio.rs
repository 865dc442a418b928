//! Frames on standard input and output.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_channel::channel::Channel as _;
use tenterhook_protocol::event::SenderRole;
use tenterhook_web::stdio::StdioChannel;
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex,
};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::echo_gateway::EchoGateway;

const LIMIT: Duration = Duration::from_mins(1);

fn line(chat: &str, id: usize, text: &str) -> String {
    let message = json!({
        "type": "message", "chat": chat, "message_id": id.to_string(), "text": text,
    });
    format!("{message}\n")
}

/// Returns a channel, and the program's ends of its streams.
fn channel(gateway: &EchoGateway, buffer: usize) -> (StdioChannel, DuplexStream, DuplexStream) {
    let (input, to_channel) = duplex(buffer);
    let (output, from_channel) = duplex(buffer);
    let channel = StdioChannel::new(Arc::clone(&gateway.channel), input, output);
    (channel, to_channel, from_channel)
}

// G63
#[tokio::test]
async fn all_messages_of_a_pipe_are_answered_before_the_channel_ends() {
    let gateway = EchoGateway::new("stdio");
    // Both pipes are smaller than what goes through them.
    let (channel, mut to_channel, from_channel) = channel(&gateway, 200);
    let write = async {
        for id in 0..100 {
            let chat = format!("chat-{}", id % 3);
            let text = if id % 10 == 9 { "silent" } else { "hi" };
            let line = line(&chat, id, text);
            to_channel.write_all(line.as_bytes()).await.unwrap();
        }
        drop(to_channel);
    };
    let read = async {
        let mut lines = BufReader::new(from_channel).lines();
        let (mut counts, mut last) = (BTreeMap::<String, usize>::new(), Value::Null);
        while let Some(line) = lines.next_line().await.unwrap() {
            last = serde_json::from_str(&line).unwrap();
            let word = last["type"].as_str().unwrap().to_owned();
            *counts.entry(word).or_default() += 1;
        }
        (counts, last)
    };
    let run = channel.run(gateway.inlet.clone(), CancellationToken::new());
    let all = async { tokio::join!(run, write, read) };
    let (result, (), (counts, last)) = timeout(LIMIT, all).await.expect("it ends");
    assert_eq!(result, Ok(()));
    assert_eq!(last["type"], "bye");
    assert_eq!(counts["accepted"], 100);
    assert_eq!((counts["end"], counts["done"]), (90, 90));
    let offers = gateway.intake.offers.lock();
    assert!(offers.iter().all(|(role, _)| *role == SenderRole::Owner));
    let ids = offers.iter().map(|(_, message)| message.message_id.clone());
    assert!(ids.eq((0..100).map(|id: usize| id.to_string())));
}

#[tokio::test]
async fn lines_that_are_not_frames_get_an_error_and_the_next_line_is_read() {
    let gateway = EchoGateway::new("stdio");
    let (channel, mut to_channel, from_channel) = channel(&gateway, 1 << 16);
    let write = async {
        to_channel
            .write_all(b"\n  \r\nnonsense\n\xff\n")
            .await
            .unwrap();
        let long = vec![b'x'; (1 << 20) + 1];
        to_channel.write_all(&long).await.unwrap();
        // The last line has no line end.
        to_channel
            .write_all(b"\n{\"type\":\"ping\"}")
            .await
            .unwrap();
        drop(to_channel);
    };
    let read = async {
        let mut text = String::new();
        let mut from_channel = from_channel;
        from_channel.read_to_string(&mut text).await.unwrap();
        let frames = text.lines().map(|line| {
            let frame: Value = serde_json::from_str(line).unwrap();
            let word = frame["code"].as_str().or(frame["type"].as_str());
            word.unwrap().to_owned()
        });
        frames.collect::<Vec<_>>()
    };
    let run = channel.run(gateway.inlet.clone(), CancellationToken::new());
    let all = async { tokio::join!(run, write, read) };
    let (result, (), words) = timeout(LIMIT, all).await.expect("it ends");
    assert_eq!(result, Ok(()));
    assert_eq!(words, ["bad_json", "bad_json", "too_large", "pong", "bye"]);
}

#[tokio::test]
async fn frames_of_turns_that_end_after_the_channel_was_stopped_are_written() {
    let gateway = EchoGateway::new("stdio");
    let (channel, mut to_channel, from_channel) = channel(&gateway, 1 << 16);
    let mut lines = BufReader::new(from_channel).lines();
    let stop = CancellationToken::new();
    let begin = async {
        to_channel
            .write_all(line("a", 1, "hi").as_bytes())
            .await
            .unwrap();
        while !lines
            .next_line()
            .await
            .unwrap()
            .unwrap()
            .contains("\"done\"")
        {}
        stop.cancel();
    };
    let run = channel.run(gateway.inlet.clone(), stop.clone());
    let both = async { tokio::join!(run, begin) };
    let (result, ()) = timeout(LIMIT, both).await.expect("it ends");
    assert_eq!(result, Ok(()));
    let chat = gateway.intake.offers.lock()[0].1.chat.clone();
    let frame = tenterhook_channel::frame::Frame::Message {
        turn: None,
        text: "last words".to_owned(),
        media: None,
        reply_to: None,
    };
    gateway.append(&chat, vec![frame]).await;
    timeout(LIMIT, channel.close()).await.expect("it closes");
    let mut rest = String::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        rest += &line;
    }
    assert!(rest.contains("last words"), "{rest}");
    assert!(rest.contains("shutdown"), "{rest}");
}
