//! What a chat does now: what a newcomer is shown besides stored frames.

use jiff::Timestamp;

use tenterhook_channel::frame::{ChatFrame, Chunk, Frame};

/// The maximum length of the text that is kept of a running turn, in bytes. The frame `end` repeats the whole text.
const MAX_TEXT: usize = 1 << 20;
/// The maximum number of tool calls, and of questions, that are kept.
const MAX_KEPT: usize = 64;

/// A turn that runs.
#[derive(Debug, Clone)]
pub(super) struct RunningTurn {
    pub(super) id: String,
    in_reply_to: Vec<String>,
    /// The text since the last `end`.
    text: String,
    /// The tool calls that run.
    calls: Vec<(String, Chunk)>,
}

impl RunningTurn {
    pub(super) fn start(&self) -> Frame {
        Frame::Start {
            turn: self.id.clone(),
            in_reply_to: self.in_reply_to.clone(),
        }
    }

    /// Returns what is shown of the turn after its stored frames.
    pub(super) fn progress(&self) -> impl Iterator<Item = Frame> {
        let text = Chunk::Text {
            text: self.text.clone(),
        };
        let calls = self.calls.iter().map(|(_, call)| (call.clone(), false));
        std::iter::once((text, true))
            .chain(calls)
            .map(|(chunk, replace)| Frame::Chunk {
                turn: self.id.clone(),
                chunk,
                replace,
            })
    }

    fn apply(&mut self, chunk: &Chunk, replace: bool) {
        match chunk {
            Chunk::Text { text } => {
                if replace {
                    self.text.clear();
                }
                if self.text.len() + text.len() <= MAX_TEXT {
                    self.text.push_str(text);
                }
            }
            Chunk::ToolStart { id, .. } => {
                self.calls.retain(|(other, _)| other != id);
                push_bounded(&mut self.calls, (id.clone(), chunk.clone()));
            }
            Chunk::ToolEnd { id, .. } => self.calls.retain(|(other, _)| other != id),
            Chunk::Thinking { .. } | Chunk::ToolUpdate { .. } | Chunk::Hook { .. } => {}
        }
    }
}

#[derive(Debug, Clone)]
struct OpenQuestion {
    nonce: String,
    expires: i64,
    frame: Frame,
}

/// What a chat does now.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity {
    pub(super) turn: Option<RunningTurn>,
    /// The number of the last durable frame that was published.
    pub(super) last_seq: Option<u64>,
    questions: Vec<OpenQuestion>,
}

impl Activity {
    /// Follows what a published frame changes.
    pub(super) fn apply(&mut self, published: &ChatFrame) {
        self.last_seq = self.last_seq.max(published.seq);
        match &published.frame {
            Frame::Start { turn, in_reply_to } => {
                self.turn = Some(RunningTurn {
                    id: turn.clone(),
                    in_reply_to: in_reply_to.clone(),
                    text: String::new(),
                    calls: Vec::new(),
                });
            }
            Frame::Chunk {
                turn,
                chunk,
                replace,
            } => {
                if let Some(running) = self.running(turn) {
                    running.apply(chunk, *replace);
                }
            }
            Frame::End { turn, .. } => {
                if let Some(running) = self.running(turn) {
                    running.text.clear();
                }
            }
            Frame::Done { turn, .. } => {
                if self.running(turn).is_some() {
                    self.turn = None;
                }
            }
            Frame::Approve { nonce, expires, .. } | Frame::Question { nonce, expires, .. } => {
                let question = OpenQuestion {
                    nonce: nonce.clone(),
                    expires: *expires,
                    frame: published.frame.clone(),
                };
                self.questions.retain(|other| other.nonce != *nonce);
                push_bounded(&mut self.questions, question);
            }
            Frame::Resolved { nonce, .. } => self.questions.retain(|other| other.nonce != *nonce),
            Frame::Said { .. }
            | Frame::Queued { .. }
            | Frame::Call { .. }
            | Frame::Message { .. }
            | Frame::Error { .. }
            | Frame::Notice { .. } => {}
        }
    }

    fn running(&mut self, turn: &str) -> Option<&mut RunningTurn> {
        self.turn.as_mut().filter(|running| running.id == turn)
    }

    /// Returns the questions that can still be answered.
    pub(super) fn questions(&self) -> impl Iterator<Item = &Frame> {
        self.open_questions().map(|question| &question.frame)
    }

    /// Returns whether a question can still be answered.
    pub(super) fn asks(&self, nonce: &str) -> bool {
        self.open_questions()
            .any(|question| question.nonce == nonce)
    }

    fn open_questions(&self) -> impl Iterator<Item = &OpenQuestion> {
        let now = Timestamp::now().as_second();
        self.questions
            .iter()
            .filter(move |question| question.expires > now)
    }

    /// Returns whether a newcomer would be shown nothing.
    pub(super) fn is_idle(&self) -> bool {
        self.turn.is_none() && self.open_questions().next().is_none()
    }
}

fn push_bounded<T>(kept: &mut Vec<T>, new: T) {
    if kept.len() >= MAX_KEPT {
        kept.remove(0);
    }
    kept.push(new);
}
