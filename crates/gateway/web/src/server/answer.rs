//! Finds the answer to a message among the frames of its chat.
//!
//! Only durable frames count, so the answer is the same for a client that waited and for one that asks again later.

use std::borrow::Cow;
use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::http_error::HttpError;
use crate::client_chat::ClientChatId;
use tenterhook_channel::frame::{ChatFrame, Frame, TurnStatus};

/// When a client may try again that sent too much.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(10);

/// The code of a message that was removed before a turn took it.
const CANCELLED: &str = "cancelled";

/// What a client gets.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Answer {
    Given(Value),
    Refused(HttpError),
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self {
            Self::Given(body) => Json(body).into_response(),
            Self::Refused(refusal) => refusal.into_response(),
        }
    }
}

/// Collects the answer to one message.
#[derive(Debug)]
pub(crate) struct AnswerCollector {
    chat: ClientChatId,
    message_id: String,
    is_heard: bool,
    text: String,
    parts: Vec<Value>,
    failure: Option<(String, String)>,
    /// The answer of the last turn that ended before a turn took the message.
    previous: Option<Answer>,
}

impl AnswerCollector {
    pub(crate) fn new(chat: ClientChatId, message_id: String) -> Self {
        Self {
            chat,
            message_id,
            is_heard: false,
            text: String::new(),
            parts: Vec::new(),
            failure: None,
            previous: None,
        }
    }

    pub(crate) fn message_id(&self) -> &str {
        &self.message_id
    }

    /// Returns a collector of the same answer that has seen no frames.
    pub(crate) fn restarted(&self) -> Self {
        Self::new(self.chat.clone(), self.message_id.clone())
    }

    /// Returns whether a turn has taken the message.
    pub(crate) fn is_heard(&self) -> bool {
        self.is_heard
    }

    /// Adds the next durable frame of the chat. Returns the answer if it is complete. Other frames are ignored, unless they
    /// report that durable ones could not be stored, because those never come.
    pub(crate) fn add(&mut self, frame: &ChatFrame) -> Option<Answer> {
        if frame.seq.is_none() && !frame.frame.is_durable() {
            return None;
        }
        let seq = frame.seq.unwrap_or_default();
        let frame = &frame.frame;
        let is_own = |id: &String| *id == self.message_id;
        if let Frame::Said { message_id, .. } = frame
            && is_own(message_id)
        {
            self.begin();
            return None;
        }
        if let Frame::Error {
            turn,
            message_id: Some(message_id),
            code,
            text,
            ..
        } = frame
            && is_own(message_id)
        {
            match (turn, code.as_str()) {
                // A crash interrupted the turn. It ends with the next frame.
                (Some(_), _) => self.is_heard = true,
                (None, CANCELLED) => return Some(self.finish(TurnStatus::Cancelled, seq)),
                (None, _) => {
                    let refusal = refusal(code.clone(), text.clone());
                    return Some(Answer::Refused(refusal));
                }
            }
        }
        // What a command prints: there is no turn.
        if let Frame::Message {
            turn: None,
            text,
            reply_to: Some(message_id),
            ..
        } = frame
            && is_own(message_id)
        {
            self.begin();
            self.add_text(text);
            self.text.clone_from(text);
            return Some(self.finish(TurnStatus::Completed, seq));
        }
        self.add_of_turn(frame, seq)
    }

    /// Returns the answer to a message that is finished although no turn has ended after it.
    pub(crate) fn finished(self) -> Answer {
        // The agent heard it in its last step, so the turn before has answered it.
        self.previous
            .filter(|_| self.is_heard)
            .unwrap_or_else(silence)
    }

    /// Forgets what other messages were answered.
    fn begin(&mut self) {
        self.is_heard = true;
        self.text.clear();
        self.parts.clear();
        self.failure = None;
    }

    fn add_of_turn(&mut self, frame: &Frame, seq: u64) -> Option<Answer> {
        if let Frame::Done { status, .. } = frame {
            let answer = self.finish(*status, seq);
            if self.is_heard {
                return Some(answer);
            }
            self.previous = Some(answer);
            self.text.clear();
            self.parts.clear();
        } else if let Frame::Error { code, text, .. } = frame {
            self.failure = Some((code.clone(), text.clone()));
        } else if let Frame::End { text, is_final, .. } = frame {
            self.add_text(text);
            if *is_final {
                self.text.clone_from(text);
            }
        } else if let Frame::Message { text, media, .. } = frame {
            match media {
                Some(media) => {
                    let part = json!({"type": media.kind, "media": media, "text": text});
                    self.parts.push(part);
                }
                None => self.add_text(text),
            }
        }
        None
    }

    fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.parts.push(json!({"type": "text", "text": text}));
        }
    }

    fn finish(&mut self, status: TurnStatus, seq: u64) -> Answer {
        let failure = self.failure.take();
        if status == TurnStatus::Failed {
            let (code, text) = failure.unwrap_or_else(|| {
                let text = "the turn failed; the journal of the gateway has the cause";
                ("failed".to_owned(), text.to_owned())
            });
            return Answer::Refused(HttpError::new(StatusCode::BAD_GATEWAY, code, text));
        }
        Answer::Given(json!({
            "chat": self.chat,
            "message_id": self.message_id,
            "text": self.text,
            "parts": self.parts,
            "status": status,
            "seq": seq,
        }))
    }
}

/// The refusal of a message, by its code.
pub(crate) fn refusal(
    code: impl Into<Cow<'static, str>>,
    text: impl Into<Cow<'static, str>>,
) -> HttpError {
    let code = code.into();
    let status = match &*code {
        "rejected" | "blocked" | "not_admitted" | "unchecked" => StatusCode::FORBIDDEN,
        "too_large" => StatusCode::PAYLOAD_TOO_LARGE,
        "queue_full" | "rate" | "full" => return HttpError::too_many(code, text, RETRY_AFTER),
        _ => StatusCode::CONFLICT,
    };
    HttpError::new(status, code, text)
}

/// The refusal of a message that ended without any frame: a hook wanted silence, or the message was cancelled while it
/// waited.
fn silence() -> Answer {
    Answer::Refused(refusal("rejected", "the message was not answered"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenterhook_channel::frame::EndReason;

    fn said(id: &str) -> Frame {
        Frame::Said {
            message_id: id.to_owned(),
            sender: "owner".to_owned(),
            text: "hi".to_owned(),
            media: Vec::new(),
            is_transcript: false,
        }
    }

    fn end(text: &str, is_final: bool) -> Frame {
        Frame::End {
            turn: "t".to_owned(),
            text: text.to_owned(),
            is_final,
            reason: EndReason::Stop,
        }
    }

    fn done(status: TurnStatus) -> Frame {
        Frame::Done {
            turn: "t".to_owned(),
            status,
            usage: None,
        }
    }

    fn error(message_id: Option<&str>, code: &str) -> Frame {
        Frame::Error {
            turn: (code == "interrupted").then(|| "t".to_owned()),
            message_id: message_id.map(str::to_owned),
            code: code.to_owned(),
            text: "no".to_owned(),
            retry: None,
        }
    }

    fn collect(frames: Vec<Frame>) -> Option<Answer> {
        let mut collector = AnswerCollector::new(ClientChatId::new("c").unwrap(), "m".to_owned());
        let mut numbered = frames.into_iter().zip(1..);
        numbered.find_map(|(frame, seq)| {
            let seq = Some(seq).filter(|_| frame.is_durable());
            collector.add(&ChatFrame { seq, frame })
        })
    }

    #[test]
    fn an_answer_is_what_follows_the_message_up_to_the_end_of_the_turn() {
        let frames = vec![
            said("other"),
            end("before", true),
            done(TurnStatus::Completed),
            said("m"),
            end("let me look", false),
            end("found", true),
            done(TurnStatus::Completed),
        ];
        let Some(Answer::Given(body)) = collect(frames) else {
            panic!("no answer");
        };
        assert_eq!(body["text"], "found");
        assert_eq!(body["parts"].as_array().unwrap().len(), 2);
        assert_eq!(
            (&body["status"], &body["seq"]),
            (&json!("completed"), &json!(7))
        );
    }

    #[test]
    fn refusals_and_failures_have_statuses() {
        let failed = vec![said("m"), error(None, "model"), done(TurnStatus::Failed)];
        let rows = [
            (vec![error(Some("m"), "rejected")], 403),
            (vec![error(Some("m"), "queue_full")], 429),
            (vec![error(Some("m"), "busy")], 409),
            (failed, 502),
            (vec![said("m"), done(TurnStatus::Failed)], 502),
            (
                vec![error(Some("m"), "interrupted"), done(TurnStatus::Failed)],
                502,
            ),
            (vec![error(Some("m"), "cancelled")], 200),
            (vec![said("m"), done(TurnStatus::Cancelled)], 200),
        ];
        for (frames, expected) in rows {
            let status = match collect(frames.clone()).unwrap() {
                Answer::Given(_) => 200,
                Answer::Refused(refusal) => refusal.status.as_u16(),
            };
            assert_eq!(status, expected, "{frames:?}");
        }
        let other = vec![error(Some("other"), "rejected"), said("m")];
        assert_eq!(collect(other), None);
    }

    #[test]
    fn a_message_that_was_heard_last_is_answered_by_the_turn_before() {
        let mut collector = AnswerCollector::new(ClientChatId::new("c").unwrap(), "m".to_owned());
        let frames = [
            said("other"),
            end("both", true),
            done(TurnStatus::Completed),
        ];
        for (frame, seq) in frames.into_iter().zip(1..) {
            let seq = Some(seq);
            assert_eq!(collector.add(&ChatFrame { seq, frame }), None);
        }
        assert_eq!(collector.restarted().finished(), silence());
        let (seq, frame) = (Some(4), said("m"));
        collector.add(&ChatFrame { seq, frame });
        let Answer::Given(body) = collector.finished() else {
            panic!("no answer");
        };
        assert_eq!(body["text"], "both");
    }
}
