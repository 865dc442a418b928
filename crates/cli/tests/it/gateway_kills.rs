//! Many messages in many chats, while the gateway is killed again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, Write as _};
use std::process::ChildStdin;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::stage::{Ran, Running, Test};

const SCRIPT: &str = "turns: [{text: Hello from the agent., repeat: true}]";
const SETTINGS: &str = "busy: follow_up\nchannels: { in: { kind: stdio } }\n";

/// Makes each answer name the messages that it answers.
const HOOK: &str = "\
from tenterhook import on, patch

@on('message_deliver')
def name_messages(event):
    return patch(text=event.kind + ' ' + ' '.join(event.in_reply_to))
";

/// The time limit of a run.
const PATIENCE: Duration = Duration::from_mins(10);

/// A small generator of random numbers, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }
}

/// A program that talks to a gateway over a pipe, and to the next one after a kill.
#[derive(Default)]
struct Client {
    /// The messages that no gateway has accepted, in the order in which they are sent.
    unaccepted: Vec<(String, String)>,
    /// The durable frames of each chat, by their numbers.
    frames: BTreeMap<String, BTreeMap<u64, Value>>,
    /// How many messages were not resolved yet.
    unresolved: BTreeSet<String>,
    repeated: usize,
}

impl Client {
    fn new(chats: usize, messages: usize) -> Self {
        let mut client = Self::default();
        for chat in 0..chats {
            client.frames.insert(format!("c{chat}"), BTreeMap::new());
        }
        for number in 0..messages {
            for chat in 0..chats {
                let id = format!("{chat}-{number}");
                client.unresolved.insert(id.clone());
                client.unaccepted.push((format!("c{chat}"), id));
            }
        }
        client
    }

    /// Says where the client stopped reading, and sends what was not accepted.
    fn greet(&self, mut stdin: ChildStdin) -> Receiver<ChildStdin> {
        let seen: BTreeMap<&String, u64> = self
            .frames
            .iter()
            .map(|(chat, frames)| (chat, frames.keys().next_back().copied().unwrap_or(0)))
            .collect();
        let mut lines = vec![json!({"type": "hello", "protocol": 1, "chats": seen})];
        for (chat, id) in &self.unaccepted {
            lines.push(json!({"type": "message", "chat": chat, "message_id": id, "text": id}));
        }
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in lines {
                if writeln!(stdin, "{line}").is_err() {
                    break;
                }
            }
            sender.send(stdin).ok();
        });
        receiver
    }

    fn hear(&mut self, frame: Value) {
        let chat = frame["chat"].as_str().unwrap_or_default().to_owned();
        match frame["type"].as_str().unwrap() {
            "accepted" => {
                let id = frame["message_id"].as_str().unwrap();
                self.unaccepted.retain(|(_, unaccepted)| unaccepted != id);
            }
            "error" if frame["code"] != "interrupted" => panic!("{frame}"),
            "bye" | "gap" => panic!("{frame}"),
            "end" | "error" => {
                for id in frame["text"].as_str().unwrap().split(' ').skip(1) {
                    self.unresolved.remove(id);
                }
            }
            _ => {}
        }
        if let Some(seq) = frame["seq"].as_u64() {
            let frames = self.frames.entry(chat).or_default();
            if let Some(known) = frames.get(&seq) {
                assert_eq!(*known, frame);
                self.repeated += 1;
            } else {
                let next = frames.keys().next_back().map_or(1, |last| last + 1);
                assert_eq!(seq, next, "a frame is missing before {frame}");
                frames.insert(seq, frame);
            }
        }
    }

    /// Checks the whole conversation of each chat. Returns how many messages were answered, and how many interrupted.
    fn check(&self, chats: usize, messages: usize) -> (usize, usize) {
        let (mut answered, mut interrupted) = (0, 0);
        assert_eq!(self.frames.len(), chats);
        for (chat, frames) in &self.frames {
            let number = chat.trim_start_matches('c');
            let expected: Vec<String> = (0..messages)
                .map(|message| format!("{number}-{message}"))
                .collect();
            let (mut said, mut resolved, mut done) = (Vec::new(), Vec::new(), 0);
            for frame in frames.values() {
                match frame["type"].as_str().unwrap() {
                    "said" => said.push(frame["message_id"].as_str().unwrap().to_owned()),
                    "done" => done += 1,
                    word @ ("end" | "error") => {
                        let ids: Vec<_> =
                            frame["text"].as_str().unwrap().split(' ').skip(1).collect();
                        let count = if word == "end" {
                            &mut answered
                        } else {
                            &mut interrupted
                        };
                        *count += ids.len();
                        resolved.extend(ids.into_iter().map(str::to_owned));
                    }
                    _ => {}
                }
            }
            assert_eq!(said, expected, "what was said in {chat}: {frames:#?}");
            assert_eq!(
                resolved, expected,
                "what was answered in {chat}: {frames:#?}"
            );
            assert!(done <= messages, "{frames:#?}");
        }
        (answered, interrupted)
    }
}

/// Reads frames in a thread, so that the gateway never waits for the test.
fn frames_of(running: &mut Running) -> Receiver<Value> {
    let stdout = running.stdout();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            // The last line of a killed program may be cut off.
            let Ok(frame) = serde_json::from_str(&line) else {
                break;
            };
            if sender.send(frame).is_err() {
                break;
            }
        }
    });
    receiver
}

fn prepare(test: Test) -> Test {
    test.args([
        "gateway",
        "run",
        "--no-journal",
        "--stdio",
        "--listen",
        "off",
    ])
    .script(SCRIPT)
}

/// Sends messages to chats of gateways, of which all but the last are killed.
fn survive(chats: usize, messages: usize, kills: usize, seed: u64) {
    let begun = Instant::now();
    let mut random = Random(seed);
    let mut client = Client::new(chats, messages);
    let mut test = prepare(Test::new())
        .file("../config/gateway.yaml", SETTINGS)
        .file("../config/hooks/name.py", HOOK);
    let mut killed = 0;
    let ran: Ran = loop {
        let (mut running, stdin) = test.start_with_open_stdin();
        let frames = frames_of(&mut running);
        let stdin = client.greet(stdin);
        // Kills at any moment from the start on: after the program's first, or its thousandth, frame.
        let dies_after = (killed < kills).then(|| random.below(5 * chats * messages / kills));
        let mut count = 0;
        while !client.unresolved.is_empty() && dies_after.is_none_or(|most| count <= most) {
            let left = PATIENCE.saturating_sub(begun.elapsed());
            let Ok(frame) = frames.recv_timeout(left) else {
                running.signal("KILL");
                let ran = running.finish();
                panic!(
                    "seed {seed}: no answer to {:?}: {}",
                    client.unresolved, ran.stderr
                );
            };
            client.hear(frame);
            count += 1;
        }
        if client.unresolved.is_empty() {
            drop(stdin.recv().unwrap());
            for frame in frames {
                if frame["type"] != "bye" {
                    client.hear(frame);
                }
            }
            break running.finish();
        }
        running.signal("KILL");
        killed += 1;
        let ran = running.finish();
        for frame in frames {
            client.hear(frame);
        }
        test = prepare(ran.again([]));
    };
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let (answered, interrupted) = client.check(chats, messages);
    assert_eq!(answered + interrupted, chats * messages);
    let seconds = begun.elapsed().as_secs_f32();
    let repeated = client.repeated;
    report(&format!(
        "seed {seed}: {answered} answered, {interrupted} interrupted, {killed} kills, {repeated} frames repeated, {seconds:.1} s"
    ));
}

// G51
#[test]
fn no_message_is_lost_or_answered_twice_while_the_gateway_is_killed() {
    survive(20, 10, 5, 0x51);
}

// G51
#[test]
#[ignore = "takes minutes"]
fn no_message_of_many_is_lost_or_answered_twice_while_the_gateway_is_killed() {
    let seeds = std::env::var("SEED").ok();
    let seed = seeds.map_or(0x1000, |seed| seed.parse().unwrap());
    survive(100, 10, 25, seed);
}

/// Shows the figures of a run, with `--nocapture` only.
#[expect(
    clippy::print_stderr,
    reason = "the figures of a run are for the person who runs the large test"
)]
fn report(figures: &str) {
    eprintln!("{figures}");
}
