//! An intake that records what channels offer, as the gateway would.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _};
use parking_lot::Mutex;
use tenterhook_channel::channel::{Accepted, Inlet, Intake};
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::message::{Control, IncomingMessage, IncomingPart};
use tenterhook_protocol::event::SenderRole;
use tokio_util::sync::CancellationToken;

#[derive(Default)]
pub(crate) struct RecordingIntake {
    state: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    messages: Vec<IncomingMessage>,
    known: HashSet<String>,
    controls: Vec<Control>,
    offsets: HashMap<String, i64>,
    alive: usize,
    answers: Vec<Accepted>,
    has_damaged_offsets: bool,
}

impl RecordingIntake {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn inlet(self: &Arc<Self>, channel: &str) -> Inlet {
        let intake: Arc<dyn Intake> = self.clone();
        Inlet::new(
            ChannelId::new(channel).unwrap(),
            intake,
            CancellationToken::new(),
        )
    }

    /// Sets the answers to the next offers, the last one first.
    pub(crate) fn answer_next(&self, answers: Vec<Accepted>) {
        self.state.lock().answers = answers;
    }

    pub(crate) fn messages(&self) -> Vec<IncomingMessage> {
        self.state.lock().messages.clone()
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        let texts = |message: &IncomingMessage| {
            let texts = message.parts.iter().filter_map(|part| match part {
                IncomingPart::Text { text } => Some(text.as_str()),
                IncomingPart::Media(_)
                | IncomingPart::Reference(_)
                | IncomingPart::Unreadable { .. } => None,
            });
            texts.collect()
        };
        self.state.lock().messages.iter().map(texts).collect()
    }

    pub(crate) fn controls(&self) -> Vec<Control> {
        self.state.lock().controls.clone()
    }

    pub(crate) fn offset(&self, account: &str) -> Option<i64> {
        self.state.lock().offsets.get(account).copied()
    }

    pub(crate) fn damage_offsets(&self) {
        self.state.lock().has_damaged_offsets = true;
    }

    pub(crate) fn alive(&self) -> usize {
        self.state.lock().alive
    }
}

impl Intake for RecordingIntake {
    fn offer<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<SenderRole>,
        message: IncomingMessage,
    ) -> BoxFuture<'a, Accepted> {
        async move {
            let mut state = self.state.lock();
            if let Some(answer) = state.answers.pop() {
                return answer;
            }
            if !state.known.insert(message.dedupe.clone()) {
                return Accepted::Duplicate;
            }
            state.messages.push(message);
            Accepted::Recorded
        }
        .boxed()
    }

    fn control<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<SenderRole>,
        control: Control,
    ) -> BoxFuture<'a, Option<String>> {
        async move {
            self.state.lock().controls.push(control);
            Some("noted".to_owned())
        }
        .boxed()
    }

    fn is_alive(&self, _: &ChannelId) {
        self.state.lock().alive += 1;
    }

    fn offset<'a>(
        &'a self,
        _: &'a ChannelId,
        account: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, String>> {
        async move {
            if self.state.lock().has_damaged_offsets {
                return Err("the offset cannot be read".to_owned());
            }
            Ok(self.offset(account))
        }
        .boxed()
    }

    fn set_offset<'a>(
        &'a self,
        _: &'a ChannelId,
        account: &'a str,
        offset: i64,
    ) -> BoxFuture<'a, bool> {
        async move {
            let mut state = self.state.lock();
            state.offsets.insert(account.to_owned(), offset);
            true
        }
        .boxed()
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "never happened: {what}"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
