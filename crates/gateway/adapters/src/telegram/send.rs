//! The way out: which frames become messages.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::api::{Api, ApiError};
use super::buttons;
use super::messages::{self, MAX_CAPTION, Target, TextPiece};
use super::view::{View, Views};
use crate::pieces::{PieceLimit, TextUnit, split};
use tenterhook_channel::channel::{DeliveryError, Outgoing, Receipt};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::{Frame, Media};
use tenterhook_channel::settings::Show;

/// How many short notes are sent at once. More are dropped.
const MAX_NOTES: usize = 16;
/// How many open questions are remembered.
const MAX_QUESTIONS: usize = 256;

/// The maximum length of a message of a question. The outcome is added to it later.
const MAX_QUESTION: PieceLimit = PieceLimit {
    max: 3_900,
    unit: TextUnit::Utf16,
};
/// How many messages a question may need.
const MAX_QUESTION_PIECES: usize = 8;

/// Sends what the gateway says.
pub(super) struct Outbound {
    api: Arc<Api>,
    show: Show,
    views: Views,
    questions: Mutex<HashMap<String, OpenQuestion>>,
    notes: Arc<Semaphore>,
    tasks: CancellationToken,
}

/// A question that was sent.
struct OpenQuestion {
    target: Target,
    message: i32,
    text: String,
}

impl Outbound {
    pub(super) fn new(api: Arc<Api>, show: Show, tasks: CancellationToken) -> Self {
        Self {
            api,
            show,
            views: Views::default(),
            questions: Mutex::default(),
            notes: Arc::new(Semaphore::new(MAX_NOTES)),
            tasks,
        }
    }

    /// Sends a durable frame, or a question.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Telegram shows the frames that are named"
    )]
    pub(super) async fn send(&self, outgoing: &Outgoing) -> Result<Receipt, DeliveryError> {
        let target = Target::of(&outgoing.chat).ok_or_else(|| DeliveryError::Permanent {
            cause: format!("`{}` is not a chat of Telegram", outgoing.chat),
        })?;
        let view = self.views.of(&outgoing.chat, &target);
        let _sending = view.sending.lock().await;
        let ids = match &outgoing.frame.frame {
            Frame::End {
                turn,
                text,
                is_final,
                ..
            } => {
                if *is_final {
                    view.end_turn(turn);
                }
                let key = outgoing.key();
                self.send_end(&view, &key, turn, text).await?
            }
            Frame::Message { text, reply_to, .. } => {
                let reply_to = reply_to.as_deref().and_then(|id| id.parse().ok());
                let parts = match outgoing.media() {
                    Some(media) => media_parts(media, outgoing, text, reply_to)?,
                    None => text_parts(text, None, reply_to),
                };
                self.send_parts(&view, &outgoing.key(), parts).await?
            }
            Frame::Error {
                turn,
                text,
                retry: None,
                ..
            } => {
                if let Some(turn) = turn {
                    view.close_turn(turn);
                }
                view.remove_status(&self.api).await;
                vec![messages::send_plain(&self.api, &target, &error_text(text)).await?]
            }
            Frame::Done { turn, .. } => {
                view.close_turn(turn);
                view.remove_status(&self.api).await;
                Vec::new()
            }
            question @ (Frame::Approve { .. } | Frame::Question { .. }) => {
                vec![self.ask(target, question).await?]
            }
            _ => Vec::new(),
        };
        Ok(Receipt {
            message_ids: ids.iter().map(i32::to_string).collect(),
        })
    }

    /// Sends an answer whose beginning may already be shown as a preview.
    async fn send_end(
        &self,
        view: &View,
        key: &str,
        turn: &str,
        text: &str,
    ) -> Result<Vec<i32>, DeliveryError> {
        view.remove_status(&self.api).await;
        let parts = text_parts(text, view.preview(turn), None);
        let sent = self.send_parts(view, key, parts).await;
        if !matches!(sent, Err(DeliveryError::Retry { .. })) {
            view.forget_preview(turn);
        }
        sent
    }

    /// Sends the parts of a frame in order. If one fails, the next attempt begins with it.
    async fn send_parts(
        &self,
        view: &View,
        key: &str,
        parts: Vec<Part<'_>>,
    ) -> Result<Vec<i32>, DeliveryError> {
        let mut ids = view.sent(key);
        for part in parts.iter().skip(ids.len()) {
            match part.send(&self.api, &view.target).await {
                Ok(id) => ids.push(id),
                Err(error) => {
                    let error = DeliveryError::from(error);
                    if matches!(error, DeliveryError::Permanent { .. }) {
                        ids.clear();
                    }
                    view.set_sent(key, ids);
                    return Err(error);
                }
            }
            view.set_sent(key, ids.clone());
        }
        view.set_sent(key, Vec::new());
        Ok(ids)
    }

    async fn ask(&self, target: Target, frame: &Frame) -> Result<i32, DeliveryError> {
        let question = buttons::question(frame).ok_or_else(|| DeliveryError::Permanent {
            cause: "Telegram has no buttons for this question".to_owned(),
        })?;
        // A call is shown as a whole, because a part of it could be misjudged.
        let mut pieces = split(&question.text, MAX_QUESTION);
        if pieces.len() > MAX_QUESTION_PIECES {
            return Err(DeliveryError::Permanent {
                cause: "the call is too long to be shown in Telegram".to_owned(),
            });
        }
        let text = pieces.pop().map(|piece| piece.to_string());
        let text = text.unwrap_or_default();
        for piece in pieces {
            messages::send_plain(&self.api, &target, &piece.to_string()).await?;
        }
        let message = messages::ask(&self.api, &target, &text, question.keyboard).await?;
        let open = OpenQuestion {
            target,
            message,
            text,
        };
        let mut questions = self.questions.lock();
        // A question that is forgotten keeps its buttons, which do nothing any more.
        if questions.len() < MAX_QUESTIONS {
            questions.insert(question.nonce, open);
        }
        Ok(message)
    }

    /// Shows a frame that is not durable.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "Telegram shows the frames that are named"
    )]
    pub(super) fn live(self: &Arc<Self>, chat: &ChatRef, frame: &Frame) {
        match frame {
            Frame::Start { .. } | Frame::Chunk { .. } => self.show(chat, frame),
            Frame::Notice { text } => self.notify(chat, Some(text.clone())),
            Frame::Resolved { nonce, outcome, by } => {
                if let Some(question) = self.questions.lock().remove(nonce) {
                    self.resolve(question, outcome, by.as_deref());
                }
            }
            _ => {}
        }
    }

    fn show(self: &Arc<Self>, chat: &ChatRef, frame: &Frame) {
        let Some(target) = Target::of(chat) else {
            return;
        };
        let view = self.views.of(chat, &target);
        if view.note(frame, self.show.tools) {
            let (outbound, tasks) = (Arc::clone(self), self.tasks.clone());
            tokio::spawn(async move {
                let shown = view.show(&outbound.api, outbound.show.stream);
                tasks.run_until_cancelled(shown).await;
            });
        }
    }

    /// Removes the buttons of a question, and shows its outcome.
    fn resolve(&self, question: OpenQuestion, outcome: &str, by: Option<&str>) {
        let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
        let text = format!("{}\n\n→ {outcome}{by}", question.text);
        let api = Arc::clone(&self.api);
        self.note(async move {
            let OpenQuestion {
                target, message, ..
            } = question;
            messages::edit_plain(&api, &target, message, &text).await
        });
    }

    /// Sends a short text that may be lost.
    pub(super) fn notify(&self, chat: &ChatRef, text: Option<String>) {
        let (Some(target), Some(text)) = (Target::of(chat), text) else {
            return;
        };
        let api = Arc::clone(&self.api);
        self.note(async move { messages::send_plain(&api, &target, &text).await });
    }

    fn note(&self, send: impl Future<Output = Result<i32, ApiError>> + Send + 'static) {
        let Ok(permit) = Arc::clone(&self.notes).try_acquire_owned() else {
            return;
        };
        let tasks = self.tasks.clone();
        tokio::spawn(async move {
            tasks.run_until_cancelled(send).await;
            drop(permit);
        });
    }
}

/// One message of a frame.
enum Part<'a> {
    Text {
        piece: TextPiece,
        reply_to: Option<i32>,
    },
    /// The preview becomes the message.
    Edit { preview: i32, piece: TextPiece },
    File {
        media: &'a Media,
        path: &'a Path,
        caption: &'a str,
        reply_to: Option<i32>,
    },
}

impl Part<'_> {
    async fn send(&self, api: &Api, target: &Target) -> Result<i32, ApiError> {
        match self {
            Self::Text { piece, reply_to } => messages::send(api, target, piece, *reply_to).await,
            Self::Edit { preview, piece } => messages::edit(api, target, *preview, piece).await,
            Self::File {
                media,
                path,
                caption,
                reply_to,
            } => messages::send_file(api, target, (media, path), caption, *reply_to).await,
        }
    }
}

fn text_parts(text: &str, preview: Option<i32>, reply_to: Option<i32>) -> Vec<Part<'static>> {
    let pieces = messages::pieces(text).into_iter().enumerate();
    pieces
        .map(|(i, piece)| match preview {
            Some(preview) if i == 0 => Part::Edit { preview, piece },
            _ => Part::Text {
                piece,
                reply_to: reply_to.filter(|_| i == 0),
            },
        })
        .collect()
}

/// Returns the messages for a file. A text that is too long for a caption follows it.
fn media_parts<'a>(
    media: &'a Media,
    outgoing: &'a Outgoing,
    text: &'a str,
    reply_to: Option<i32>,
) -> Result<Vec<Part<'a>>, DeliveryError> {
    let path = outgoing
        .file
        .as_deref()
        .ok_or_else(|| DeliveryError::Permanent {
            cause: format!("the copy of `{}` does not exist any more", media.name),
        })?;
    let is_caption = TextUnit::Utf16.measure(text) <= MAX_CAPTION;
    let mut parts = vec![Part::File {
        media,
        path,
        caption: if is_caption { text } else { "" },
        reply_to,
    }];
    if !is_caption {
        parts.extend(text_parts(text, None, None));
    }
    Ok(parts)
}

fn error_text(text: &str) -> String {
    let shown: String = text.chars().take(2_000).collect();
    format!("⛔ {shown}")
}
