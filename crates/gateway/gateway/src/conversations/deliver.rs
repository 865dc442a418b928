//! What leaves a chat. Everything visible passes the hooks of `message_deliver`. Hooks of `message_send` add parts.

use tenterhook_engine::Dispatcher;
use tenterhook_protocol::event::{DeliveryKind, MessageDeliver, MessagePart, MessageSend};
use tenterhook_protocol::{Decision, EventKind};

use crate::conversations::message_parts::{
    fold, is_text, joined_text, media_part, notice_of, speaks_answer, text_part,
};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::Frame;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::message::MediaKind;
use tenterhook_channel::publisher::SavedMedia;

/// What is delivered instead of an answer that hooks withhold.
const ANSWER_WITHHELD: &str = "The answer was withheld.";

/// What is delivered instead of another message that hooks withhold.
const MESSAGE_WITHHELD: &str = "The message was withheld.";

/// Text and files that leave a chat.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Content {
    /// The text.
    pub text: String,
    /// The files.
    pub media: Vec<SavedMedia>,
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self {
            text,
            media: Vec::new(),
        }
    }
}

impl Content {
    /// Returns the frames that show the content as messages besides an answer. A text and one file share a frame.
    pub fn into_frames(self, turn: Option<&str>, reply_to: Option<&str>) -> Vec<Frame> {
        let mut media = self.media.into_iter().map(|saved| saved.media);
        let mut frames = Vec::new();
        let frame = |text, media| Frame::Message {
            turn: turn.map(str::to_owned),
            text,
            media,
            reply_to: reply_to.map(str::to_owned),
        };
        if !self.text.is_empty() {
            frames.push(frame(self.text, media.next()));
        }
        frames.extend(media.map(|media| frame(String::new(), Some(media))));
        frames
    }
}

/// Who gets something.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipient {
    /// The chat.
    pub chat: ChatRef,
    /// The sender of the message that is answered. Empty if there is no such message.
    pub user: String,
    /// The ids of the messages that are answered.
    pub in_reply_to: Vec<String>,
}

/// The answer of a turn, as hooks of `message_send` see it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answered {
    pub(crate) input: String,
    pub(crate) response: String,
    pub(crate) is_voice: bool,
    pub(crate) is_error: bool,
    /// Whether the channel's settings speak answers. `None` leaves it to the hooks.
    pub(crate) tts_enabled: Option<bool>,
    pub(crate) audio_formats: Vec<String>,
}

/// What hooks of `message_send` add to an answer.
#[derive(Debug, Default)]
pub(crate) struct Extras {
    /// The parts, in order.
    pub(crate) contents: Vec<Content>,
    /// Descriptions of parts that cannot be used.
    pub(crate) problems: Vec<String>,
    /// Whether one of the parts is the answer as audio. Other audio does not replace the text of an answer.
    pub(crate) speaks_answer: bool,
}

/// Delivers under the hooks of one session.
#[derive(Debug, Clone)]
pub struct Delivery {
    dispatcher: Dispatcher,
    media: MediaFolder,
}

impl Delivery {
    /// Creates it for the hooks that `dispatcher` reaches.
    pub fn new(dispatcher: Dispatcher, media: MediaFolder) -> Self {
        Self { dispatcher, media }
    }

    pub(crate) fn dispatcher(&self) -> &Dispatcher {
        &self.dispatcher
    }

    /// Returns whether hooks may change or withhold messages, so that nothing may be shown before they have answered.
    pub(crate) fn is_gated(&self) -> bool {
        self.dispatcher.may_change(EventKind::MessageDeliver)
    }

    /// Returns what may be delivered.
    pub async fn deliver(&self, to: &Recipient, kind: DeliveryKind, content: Content) -> Content {
        if !self.dispatcher.is_hooked::<MessageDeliver>() {
            return content;
        }
        let parts = parts_of(&content);
        let event = MessageDeliver::new(to.chat.channel.as_str())
            .with_chat_id(to.chat.chat.as_str())
            .with_user_id(to.user.as_str())
            .with_kind(kind)
            .with_text(content.text.as_str())
            .with_parts(parts.clone())
            .with_in_reply_to(to.in_reply_to.clone());
        let outcome = self.dispatcher.dispatch(event).await;
        let is_answer = matches!(kind, DeliveryKind::Answer | DeliveryKind::Intermediate);
        let withheld = || {
            let text = if is_answer {
                ANSWER_WITHHELD
            } else {
                MESSAGE_WITHHELD
            };
            Content::from(text.to_owned())
        };
        if outcome.decision() != Decision::Proceed {
            return withheld();
        }
        let Some(event) = outcome.rewritten().cloned() else {
            return content;
        };
        let replaced = outcome.into_any().rewritten;
        let folded = fold(parts, &replaced, &event.text, event.parts);
        match self.content_of(&folded, content.media, &to.chat).await {
            Ok(content) => content,
            Err(_) => withheld(),
        }
    }

    /// Sends `message_send`, and returns what its hooks add.
    pub(crate) async fn extras(&self, to: &Recipient, answered: Answered) -> Extras {
        let build = || {
            MessageSend::new(to.chat.channel.as_str())
                .with_chat_id(to.chat.chat.as_str())
                .with_input_text(answered.input)
                .with_response_text(answered.response)
                .with_is_voice(answered.is_voice)
                .with_message_ids(to.in_reply_to.clone())
                .with_user_id(to.user.as_str())
                .with_is_error(answered.is_error)
                .with_tts_enabled(answered.tts_enabled)
                .with_audio_formats(answered.audio_formats)
        };
        let outcome = self.dispatcher.dispatch_with(build).await;
        let mut extras = Extras::default();
        for part in outcome.parts() {
            match self
                .content_of(std::slice::from_ref(&part), Vec::new(), &to.chat)
                .await
            {
                Ok(mut content) => {
                    if let Some(notice) = notice_of(&part).filter(|_| content.text.is_empty()) {
                        content.text = notice.to_owned();
                    }
                    let content = self.deliver(to, DeliveryKind::Extra, content).await;
                    let is_audio = |saved: &SavedMedia| saved.media.kind == MediaKind::Audio;
                    extras.speaks_answer |=
                        speaks_answer(&part) && content.media.iter().any(is_audio);
                    extras.contents.push(content);
                }
                Err(problem) => extras.problems.push(problem),
            }
        }
        extras
    }

    /// Reads parts that hooks returned. Files must be ones of `known`, or importable.
    async fn content_of(
        &self,
        parts: &[MessagePart],
        known: Vec<SavedMedia>,
        chat: &ChatRef,
    ) -> Result<Content, String> {
        let mut media = Vec::new();
        for part in parts.iter().filter(|part| !is_text(part)) {
            let path = part.data.as_deref().map(std::path::Path::new);
            let same = known.iter().find(|saved| Some(&*saved.path) == path);
            media.push(match same {
                Some(saved) => saved.clone(),
                None => import(&self.media, &self.dispatcher, part, chat).await?,
            });
        }
        Ok(Content {
            text: joined_text(parts),
            media,
        })
    }
}

/// Copies the file of a part that a hook added. It may be in the media folder or in the session's directory.
pub(crate) async fn import(
    media: &MediaFolder,
    dispatcher: &Dispatcher,
    part: &MessagePart,
    chat: &ChatRef,
) -> Result<SavedMedia, String> {
    let allowed = [dispatcher.origin().cwd.clone()];
    media.import_part(part, &allowed, chat).await
}

fn parts_of(content: &Content) -> Vec<MessagePart> {
    let text = (!content.text.is_empty()).then(|| text_part(&content.text));
    let media = content.media.iter().map(|saved| media_part(saved, None));
    text.into_iter().chain(media).collect()
}
