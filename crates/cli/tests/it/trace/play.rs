//! Plays a conversation step by step, and records everything that happens.

use std::fs;

use serde_json::{Value, json};

use crate::client::Client;
use crate::stage::{Ran, Test};

/// A step of the conversation.
pub(crate) enum Step {
    /// Sends a prompt and waits until it is done. `$FIRST` is the id of the first session.
    Say(&'static str),
    /// Sends a prompt that fails.
    SayInVain(&'static str),
    /// Sends a prompt, and continues after a number of events of one kind.
    SayAndStay(&'static str, &'static str, usize),
    /// Sends a steering message to the working agent.
    Steer(&'static str),
    /// Sends a follow-up message for the time when the agent has finished.
    FollowUp(&'static str),
    /// Creates a file.
    Touch(&'static str),
    /// Waits until the oldest open prompt is done.
    Wait,
}

pub(crate) struct Play {
    client: Client,
    answers: Vec<(&'static str, Value)>,
    events: Vec<Value>,
    last: u64,
    open: Option<u64>,
}

/// The events, and the inputs that the hooks logged.
pub(crate) struct Played {
    pub(crate) events: Vec<Value>,
    pub(crate) ran: Ran,
}

impl Play {
    pub(crate) fn start(test: Test) -> Self {
        Self {
            client: Client::start(test),
            answers: Vec::new(),
            events: Vec::new(),
            last: 0,
            open: None,
        }
    }

    /// Answers every request of a method.
    pub(crate) fn answer(mut self, method: &'static str, result: &Value) -> Self {
        self.answers.push((method, result.clone()));
        self
    }

    pub(crate) fn then(mut self, steps: &[Step]) -> Self {
        for step in steps {
            self.take(step);
        }
        self
    }

    /// Plays the last steps and ends the session.
    pub(crate) fn run(self, steps: &[Step]) -> Played {
        self.then(steps).end()
    }

    fn end(mut self) -> Played {
        let id = self.ask("shutdown", json!({}));
        self.until(|message| message["id"] == id);
        let Self {
            client, mut events, ..
        } = self;
        let ran = client.end_after(|message| events.push(message["params"].clone()));
        Played { events, ran }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Say(text) => {
                let id = self.say(text);
                self.finish(id);
            }
            Step::SayInVain(text) => {
                let id = self.say(text);
                assert!(self.answer_to(id).get("error").is_some(), "{text}");
            }
            Step::SayAndStay(text, event, times) => {
                self.open = Some(self.say(text));
                for _ in 0..*times {
                    self.until(|message| message["params"]["event"] == *event);
                }
            }
            Step::Steer(text) => {
                let id = self.ask("steer", json!({"text": text}));
                self.finish(id);
            }
            Step::FollowUp(text) => {
                let id = self.ask("follow_up", json!({"text": text}));
                self.finish(id);
            }
            Step::Touch(name) => {
                fs::write(self.client.running.path("work").join(name), "").unwrap();
            }
            Step::Wait => {
                let id = self.open.take().unwrap();
                self.finish(id);
            }
        }
    }

    fn say(&mut self, text: &str) -> u64 {
        let first = self.events.first();
        let first = first.map_or("", |event| event["session_id"].as_str().unwrap());
        let text = text.replace("$FIRST", first);
        self.ask("prompt", json!({ "text": text }))
    }

    fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        self.client.ask(self.last, method, params);
        self.last
    }

    fn answer_to(&mut self, id: u64) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
    }

    fn finish(&mut self, id: u64) {
        let answer = self.answer_to(id);
        assert!(answer.get("error").is_none(), "{answer}");
    }

    /// Reads messages until one matches. Keeps the events and answers requests.
    fn until(&mut self, is_meant: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.client.until(|_| true);
            if message["method"] == "event" {
                self.events.push(message["params"].clone());
            }
            let wanted = self
                .answers
                .iter()
                .find(|(method, _)| message["method"] == *method);
            if let Some((_, result)) = wanted {
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                self.client.say(&answer);
            }
            if is_meant(&message) {
                return message;
            }
        }
    }
}
