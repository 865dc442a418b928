//! Following a chat: what a client gets that connects, falls behind, and comes back.

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::{ChatFrame, Chunk, Frame};
use tenterhook_channel::store::{InboxState, Store};
use tenterhook_web::hub::{Followed, Follower, Hub};
use tokio::time::timeout;

use crate::echo_gateway::{done, end, live, start, text_chunk};

struct Publisher {
    _folder: TempDir,
    store: Store,
    hub: Hub,
    chat: ChatRef,
}

impl Publisher {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).unwrap();
        let chat = ChatRef {
            channel: ChannelId::new("web").unwrap(),
            chat: "ann/a".to_owned(),
            thread: None,
        };
        Self {
            _folder: folder,
            hub: Hub::new(store.clone()),
            store,
            chat,
        }
    }

    async fn append(&self, frames: Vec<Frame>) -> Vec<ChatFrame> {
        let update = (vec![], InboxState::Received);
        self.store.append(&self.chat, frames, update).await.unwrap()
    }

    async fn publish(&self, frames: Vec<Frame>) {
        for frame in self.append(frames).await {
            self.hub.publish(&self.chat, &frame);
        }
    }

    fn live(&self, frame: Frame) {
        self.hub.publish(&self.chat, &live(frame));
    }

    fn follow(&self, after: Option<u64>) -> Follower {
        self.hub.follow(self.chat.clone(), after)
    }
}

fn message(text: &str) -> Frame {
    Frame::Message {
        turn: None,
        text: text.to_owned(),
        media: None,
        reply_to: None,
    }
}

fn tool(turn: &str, id: usize) -> Frame {
    Frame::Chunk {
        turn: turn.to_owned(),
        chunk: Chunk::ToolStart {
            id: id.to_string(),
            name: "bash".to_owned(),
            args: serde_json::Map::default().into_iter().collect(),
        },
        replace: false,
    }
}

async fn next(follower: &mut Follower) -> Followed {
    let next = timeout(Duration::from_secs(20), follower.next()).await;
    next.expect("a frame arrives").expect("the follower lives")
}

/// Reads `count` items, in a short form.
async fn read(follower: &mut Follower, count: usize) -> Vec<Value> {
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(match next(follower).await {
            Followed::Frame(ChatFrame { seq: Some(seq), .. }) => json!(seq),
            Followed::Frame(frame) => {
                let frame = serde_json::to_value(&frame).unwrap();
                let replace = frame.get("replace").map(|_| "=").unwrap_or_default();
                let word = frame["kind"].as_str().or(frame["type"].as_str()).unwrap();
                let text = frame["text"].as_str().unwrap_or_default();
                json!(format!("{word}{replace} {text}").trim())
            }
            Followed::Gap { from, to } => json!({"from": from, "to": to}),
        });
    }
    items
}

async fn has_nothing(follower: &mut Follower) -> bool {
    timeout(Duration::from_millis(50), follower.next())
        .await
        .is_err()
}

#[tokio::test]
async fn a_newcomer_gets_stored_frames_then_the_running_turn_then_the_rest() {
    let chat = Publisher::new();
    chat.publish(vec![message("1"), message("2")]).await;
    chat.live(start("t", "m"));
    chat.publish(vec![message("3")]).await;
    chat.live(text_chunk("t", "first"));
    chat.publish(vec![end("t", "first")]).await;
    chat.live(text_chunk("t", "sec"));
    chat.live(tool("t", 1));
    let mut all = chat.follow(Some(0));
    let mut some = chat.follow(Some(4));
    let mut none = chat.follow(None);
    chat.live(text_chunk("t", "ond"));
    chat.publish(vec![end("t", "second"), done("t")]).await;
    assert_eq!(
        read(&mut all, 10).await,
        [
            json!(1),
            json!(2),
            json!(3),
            json!("start"),
            json!(4),
            json!("text= sec"),
            json!("tool_start"),
            json!("text ond"),
            json!(5),
            json!(6),
        ]
    );
    let rest = ["start", "text= sec", "tool_start", "text ond"].map(Value::from);
    for follower in [&mut some, &mut none] {
        assert_eq!(read(follower, 4).await, rest);
        assert_eq!(read(follower, 2).await, [json!(5), json!(6)]);
        assert!(has_nothing(follower).await);
    }
    let mut late = chat.follow(Some(6));
    assert!(has_nothing(&mut late).await);
}

#[tokio::test]
async fn an_open_question_is_shown_to_newcomers_until_it_is_resolved() {
    let chat = Publisher::new();
    let question = |nonce: &str, expires| Frame::Question {
        nonce: nonce.to_owned(),
        question: json!({"text": "why?"}),
        expires,
    };
    chat.live(question("open", i64::MAX));
    chat.live(question("expired", 1));
    assert!(chat.hub.asks(&chat.chat, "open"));
    assert!(!chat.hub.asks(&chat.chat, "expired"));
    let mut first = chat.follow(Some(0));
    assert_eq!(read(&mut first, 1).await, ["question"]);
    assert!(has_nothing(&mut first).await);
    chat.live(Frame::Resolved {
        nonce: "open".to_owned(),
        outcome: "answered".to_owned(),
        by: None,
    });
    assert!(!chat.hub.asks(&chat.chat, "open"));
    assert_eq!(read(&mut first, 1).await, ["resolved"]);
    assert!(has_nothing(&mut chat.follow(Some(0))).await);
}

#[tokio::test]
async fn frames_that_are_not_kept_are_a_gap() {
    let chat = Publisher::new();
    for frame in chat.append(vec![message("x"); 1100]).await {
        let seq = frame.seq.unwrap();
        chat.store.note_left(&chat.chat, seq).await.unwrap();
    }
    chat.append(vec![message("x")]).await;
    let mut follower = chat.follow(Some(5));
    let Followed::Gap { from, to } = next(&mut follower).await else {
        panic!("expected a gap");
    };
    assert_eq!(from, 6);
    for seq in to + 1..=1101 {
        assert_eq!(read(&mut follower, 1).await, [seq]);
    }
    assert!(has_nothing(&mut follower).await);
}

#[tokio::test]
async fn a_client_that_knows_more_than_the_store_is_told_to_begin_anew() {
    let chat = Publisher::new();
    chat.publish(vec![message("1")]).await;
    let mut follower = chat.follow(Some(40));
    assert_eq!(read(&mut follower, 1).await, [json!({"from": 2, "to": 40})]);
    chat.publish(vec![message("2")]).await;
    assert_eq!(read(&mut follower, 1).await, [2]);
}

#[tokio::test]
async fn frames_that_are_published_twice_or_too_early_are_returned_once_and_in_order() {
    let chat = Publisher::new();
    let mut follower = chat.follow(Some(0));
    let frames = chat
        .append(vec![message("1"), message("2"), message("3")])
        .await;
    for index in [0, 0, 2, 1, 2] {
        chat.hub.publish(&chat.chat, &frames[index]);
    }
    chat.publish(vec![message("4")]).await;
    assert_eq!(read(&mut follower, 4).await, [1, 2, 3, 4]);
    assert!(has_nothing(&mut follower).await);
}

// G60
#[tokio::test]
async fn a_reader_that_falls_behind_holds_up_no_one_and_misses_no_durable_frame() {
    let chat = Publisher::new();
    let (mut slow, mut fast) = (chat.follow(Some(0)), chat.follow(Some(0)));
    let count = 700;
    chat.live(start("t", "m"));
    for index in 0..count {
        chat.live(text_chunk("t", "x"));
        chat.live(tool("t", index));
        chat.publish(vec![message("x")]).await;
        let first = if index == 0 { 3 + 1 } else { 3 };
        let read = read(&mut fast, first).await;
        assert_eq!(read.last(), Some(&json!(index + 1)));
    }
    let text = "x".repeat(count);
    chat.publish(vec![end("t", &text), done("t")]).await;
    let (mut seqs, mut starts) = (Vec::new(), 0);
    while seqs.len() < count + 2 {
        match next(&mut slow).await {
            Followed::Frame(frame) => {
                seqs.extend(frame.seq);
                starts += usize::from(matches!(frame.frame, Frame::Start { .. }));
            }
            Followed::Gap { .. } => panic!("nothing is missing"),
        }
    }
    assert!(seqs.into_iter().eq(1..=702));
    assert!(starts <= 1);
}

#[tokio::test]
async fn a_chat_that_no_one_watches_is_forgotten() {
    let chat = Publisher::new();
    assert_eq!(chat.hub.viewers(&chat.chat), 0);
    assert!(!chat.hub.is_watched(&chat.chat));
    let follower = chat.follow(None);
    assert_eq!(chat.hub.viewers(&chat.chat), 1);
    drop(follower);
    assert_eq!(chat.hub.viewers(&chat.chat), 0);
    assert!(chat.hub.is_watched(&chat.chat), "its viewer may come back");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    assert!(!chat.hub.is_watched(&chat.chat));
}

/// A client as the page is one: it keeps what it has seen when its connection breaks.
#[derive(Default)]
struct Client {
    last_seq: u64,
    turn: Option<String>,
    text: String,
}

impl Client {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other frames change nothing here"
    )]
    fn take(&mut self, followed: Followed) {
        let Followed::Frame(frame) = followed else {
            panic!("nothing is missing");
        };
        if let Some(seq) = frame.seq {
            assert_eq!(seq, self.last_seq + 1);
            self.last_seq = seq;
        }
        match frame.frame {
            Frame::Start { turn, .. } => {
                assert_ne!(self.turn.as_ref(), Some(&turn), "a turn starts once");
                self.turn = Some(turn);
                self.text.clear();
            }
            Frame::Chunk {
                turn,
                chunk: Chunk::Text { text },
                replace,
            } => {
                assert_eq!(self.turn.as_ref(), Some(&turn));
                if replace {
                    self.text.clear();
                }
                self.text += &text;
            }
            Frame::End { text, .. } => {
                assert!(text.starts_with(&self.text), "{text} {}", self.text);
                self.text.clear();
            }
            Frame::Done { .. } => self.turn = None,
            _ => {}
        }
    }

    fn reconnect(&mut self) {
        self.turn = None;
        self.text.clear();
    }
}

/// Numbers that look random, and are the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % sides
    }
}

async fn talk(chat: &Publisher, mut dice: Dice) {
    for number in 0..12 {
        let turn = format!("turn-{number}");
        chat.publish(vec![message("said")]).await;
        chat.live(start(&turn, "m"));
        for part in 0..=dice.roll(3) {
            let mut whole = String::new();
            for word in 0..dice.roll(20) {
                let word = format!("{number}.{part}.{word} ");
                chat.live(text_chunk(&turn, &word));
                whole += &word;
                if dice.roll(3) == 0 {
                    tokio::task::yield_now().await;
                }
            }
            let stored = chat
                .append(vec![end(&turn, &whole), message("extra")])
                .await;
            for frame in stored {
                // Between storing and publishing, clients come and go.
                for _ in 0..dice.roll(4) {
                    tokio::task::yield_now().await;
                }
                chat.hub.publish(&chat.chat, &frame);
            }
            if dice.roll(8) == 0 {
                (0..600).for_each(|id| chat.live(tool(&turn, id)));
            }
        }
        chat.publish(vec![done(&turn)]).await;
    }
    chat.publish(vec![message("last")]).await;
}

async fn listen(chat: &Publisher, mut dice: Dice) -> u64 {
    let mut client = Client::default();
    loop {
        let mut follower = chat.follow(Some(client.last_seq));
        for _ in 0..dice.roll(60) {
            for _ in 0..dice.roll(3) {
                tokio::task::yield_now().await;
            }
            let event = next(&mut follower).await;
            let is_last = matches!(
                &event,
                Followed::Frame(ChatFrame { frame: Frame::Message { text, .. }, .. })
                    if text == "last"
            );
            client.take(event);
            if is_last {
                return client.last_seq;
            }
        }
        drop(follower);
        client.reconnect();
    }
}

// G59
#[tokio::test]
async fn clients_that_reconnect_at_any_moment_lose_nothing_and_get_nothing_twice() {
    for seed in 0_u64..30 {
        let chat = Publisher::new();
        let dice = |salt| Dice(seed * 977 + salt);
        let ((), first, second) = tokio::join!(
            talk(&chat, dice(1)),
            listen(&chat, dice(2)),
            listen(&chat, dice(3)),
        );
        let stored = chat.store.frames_before(&chat.chat, u64::MAX, 1).await;
        let last = stored.unwrap().frames[0].seq.unwrap();
        assert_eq!((first, second), (last, last), "seed {seed}");
    }
}
