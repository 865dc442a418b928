//! Reads updates: what people wrote, and the buttons that they pressed.

use jiff::Timestamp;

use super::bot_api::{
    CallbackQuery, Chat, ChatType, Message, MessageEntity, MessageEntityType, Update,
    UpdateContent, User,
};
use super::buttons;
use tenterhook_channel::chat::{ChannelId, ChatRef, Sender};
use tenterhook_channel::message::{
    Control, IncomingMessage, IncomingPart, MediaKind, MediaRef, MessageReference, ReferenceKind,
};

/// The maximum length of the text that a message replies to, in characters.
const MAX_QUOTE: usize = 1_000;

/// What the model reads as the author of its own messages.
const AGENT: &str = "you";

/// What an update means.
#[derive(Debug, PartialEq)]
pub(super) enum Received {
    Message(Box<IncomingMessage>),
    Cancel(Control),
    /// Someone pressed a button.
    Pressed {
        query: String,
        control: Control,
    },
    /// A button that is not ours, or not any more.
    Stale {
        query: String,
    },
    Nothing,
}

impl Received {
    /// Returns the chat, whose updates are taken one after another. Its threads may share a session.
    pub(super) fn chat(&self) -> String {
        match self {
            Self::Message(message) => message.chat.chat.clone(),
            Self::Cancel(control) | Self::Pressed { control, .. } => control.chat().chat.clone(),
            Self::Stale { query } => query.clone(),
            Self::Nothing => String::new(),
        }
    }
}

/// The bot's own account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Account {
    pub(super) id: u64,
    /// `@` and the name, in lower case.
    pub(super) mention: String,
}

impl Account {
    pub(super) fn new(user: &User) -> Self {
        let name = user.username.as_deref().unwrap_or_default();
        Self {
            id: user.id,
            mention: format!("@{}", name.to_lowercase()),
        }
    }
}

/// Reads an update.
pub(super) fn read(channel: &ChannelId, account: &Account, update: Update) -> Received {
    let dedupe = format!("{}/{}", account.id, update.update_id);
    match update.content {
        UpdateContent::Message(message) => {
            let parts = references(&message, account)
                .into_iter()
                .chain(files(&message));
            read_message(channel, account, dedupe, (&message, parts.collect()))
        }
        // The text is new. The files are mostly the same, and places that are shared live change all the time.
        UpdateContent::Edited(message) if !is_empty(&message) => {
            let edit = IncomingPart::Reference(MessageReference {
                kind: ReferenceKind::Edit,
                from: None,
                text: String::new(),
            });
            read_message(channel, account, dedupe, (&message, vec![edit]))
        }
        UpdateContent::CallbackQuery(query) => read_button(channel, *query),
        UpdateContent::Edited(_) | UpdateContent::Other => Received::Nothing,
    }
}

/// Returns the text or the caption of a message, and what is marked in it.
fn text_of(message: &Message) -> (&str, &[MessageEntity]) {
    let (text, entities) = match (&message.text, &message.caption) {
        (Some(text), _) => (text.as_str(), &message.entities),
        (None, Some(caption)) => (caption.as_str(), &message.caption_entities),
        (None, None) => return ("", &[]),
    };
    (text, entities.as_deref().unwrap_or_default())
}

fn read_message(
    channel: &ChannelId,
    account: &Account,
    dedupe: String,
    (message, mut parts): (&Message, Vec<IncomingPart>),
) -> Received {
    let Some(from) = message.from.as_deref().filter(|from| from.id != account.id) else {
        return Received::Nothing;
    };
    let (text, entities) = text_of(message);
    if !text.is_empty() {
        parts.push(IncomingPart::Text {
            text: text.to_owned(),
        });
    }
    let is_relay = |other: &MessageReference| other.kind != ReferenceKind::Reply;
    let is_relayed =
        |part: &IncomingPart| matches!(part, IncomingPart::Reference(other) if is_relay(other));
    let is_content = |part: &IncomingPart| !matches!(part, IncomingPart::Reference(_));
    if !parts.iter().any(is_content) {
        return Received::Nothing;
    }
    let chat = chat_ref(channel, &message.chat, topic(message));
    let sender = sender(from);
    if is_stop(text, account) && !parts.iter().any(is_relayed) {
        return Received::Cancel(Control::Cancel { chat, sender });
    }
    let is_direct = message.chat.type_field == ChatType::Private;
    let sent = message.edit_date.unwrap_or(message.date);
    let reply = replied_to(message);
    let is_reply_to_us = reply
        .and_then(|reply| reply.from.as_ref())
        .is_some_and(|from| from.id == account.id);
    let names_us = || {
        let mut entities = entities.iter();
        entities.any(|entity| is_mention(entity, text, account))
    };
    Received::Message(Box::new(IncomingMessage {
        dedupe,
        message_id: message.message_id.to_string(),
        chat,
        sender,
        is_direct,
        is_addressed: is_direct || is_reply_to_us || names_us(),
        parts,
        reply_to: reply.map(|reply| reply.message_id.to_string()),
        at: Timestamp::from_second(sent).unwrap_or_else(|_| Timestamp::now()),
    }))
}

/// Adds the next message of an album to the ones before it.
pub(super) fn join(album: &mut IncomingMessage, next: IncomingMessage) {
    album.is_addressed |= next.is_addressed;
    for part in next.parts {
        let is_known = match &part {
            // What the whole album refers to is in each of its messages.
            IncomingPart::Reference(_) => true,
            IncomingPart::Unreadable { .. } => album.parts.contains(&part),
            IncomingPart::Text { .. } | IncomingPart::Media(_) => false,
        };
        if !is_known {
            album.parts.push(part);
        }
    }
}

/// Returns the messages that a message replies to and passes on.
fn references(message: &Message, account: &Account) -> Vec<IncomingPart> {
    let replied = replied_to(message);
    let quoted = message.quote.as_ref().map(|quote| quote.text.as_str());
    let reply = (replied.is_some() || quoted.is_some()).then(|| {
        let whole = replied.and_then(|it| it.text.as_deref().or(it.caption.as_deref()));
        let text = quoted.or(whole).unwrap_or_default();
        let author = replied.and_then(|it| it.from.as_deref());
        MessageReference {
            kind: ReferenceKind::Reply,
            from: author.map(|author| {
                if author.id == account.id {
                    AGENT.to_owned()
                } else {
                    full_name(author)
                }
            }),
            text: text.chars().take(MAX_QUOTE).collect(),
        }
    });
    let forward = message.forward_origin.as_ref().map(|origin| {
        let of_chat = |chat: &Option<Chat>| chat.as_ref().and_then(|chat| chat.title.clone());
        let user = origin.sender_user.as_ref().map(full_name);
        MessageReference {
            kind: ReferenceKind::Forward,
            from: user
                .or_else(|| origin.sender_user_name.clone())
                .or_else(|| of_chat(&origin.sender_chat))
                .or_else(|| of_chat(&origin.chat)),
            text: String::new(),
        }
    });
    let references = reply.into_iter().chain(forward);
    references.map(IncomingPart::Reference).collect()
}

/// Returns the file of a message, or what it has that cannot be read.
fn files(message: &Message) -> Option<IncomingPart> {
    let file = media(message).map(IncomingPart::Media);
    file.or_else(|| {
        let what = unreadable(message)?.to_owned();
        Some(IncomingPart::Unreadable { what })
    })
}

fn is_empty(message: &Message) -> bool {
    let text = message.text.as_ref().or(message.caption.as_ref());
    text.is_none_or(|text| text.trim().is_empty())
}

fn read_button(channel: &ChannelId, query: CallbackQuery) -> Received {
    let stale = |query: CallbackQuery| Received::Stale { query: query.id };
    let (chat, keyboard) = match &query.message {
        Some(message) => (
            chat_ref(channel, &message.chat, topic(message)),
            message.reply_markup.as_deref(),
        ),
        None => return stale(query),
    };
    let data = query.data.as_deref().unwrap_or_default();
    let sender = sender(&query.from);
    match buttons::read(data, keyboard, chat, sender) {
        Some(control) => Received::Pressed {
            query: query.id,
            control,
        },
        None => stale(query),
    }
}

fn full_name(user: &User) -> String {
    let last = user.last_name.as_deref().unwrap_or_default();
    format!("{} {last}", user.first_name).trim().to_owned()
}

fn sender(user: &User) -> Sender {
    Sender {
        id: user.id.to_string(),
        name: Some(full_name(user)).filter(|name| !name.is_empty()),
        is_bot: user.is_bot,
    }
}

fn chat_ref(channel: &ChannelId, chat: &Chat, thread: Option<i32>) -> ChatRef {
    ChatRef {
        channel: channel.clone(),
        chat: chat.id.to_string(),
        thread: thread.map(|thread| thread.to_string()),
    }
}

/// Returns the topic of a message. Replies in groups without topics also have a thread, which readers do not see as a topic.
fn topic(message: &Message) -> Option<i32> {
    let is_topic = message.is_topic_message.unwrap_or_default();
    message.message_thread_id.filter(|_| is_topic)
}

/// Returns the message that a message replies to. Every message in a topic replies to the message that opened it, unless
/// it replies to another one.
fn replied_to(message: &Message) -> Option<&Message> {
    let reply = message.reply_to_message.as_deref()?;
    (topic(message) != Some(reply.message_id)).then_some(reply)
}

fn is_stop(text: &str, account: &Account) -> bool {
    let text = text.trim().to_lowercase();
    let rest = text.strip_prefix("/stop");
    rest.is_some_and(|rest| rest.is_empty() || rest == account.mention)
}

/// Returns whether an entity of a text names the bot. What merely looks like its name is not: `@botany` is not `@bot`.
fn is_mention(entity: &MessageEntity, text: &str, account: &Account) -> bool {
    match entity.type_field {
        MessageEntityType::TextMention => {
            let user = entity.user.as_ref();
            user.is_some_and(|user| user.id == account.id)
        }
        MessageEntityType::Mention => covered(entity, text) == account.mention,
        MessageEntityType::BotCommand => {
            let command = covered(entity, text);
            let name = command.strip_suffix(&account.mention);
            name.is_some_and(|name| !name.contains('@'))
        }
        MessageEntityType::Format => false,
    }
}

/// Returns the text of an entity in lower case. Telegram counts in units of UTF-16.
fn covered(entity: &MessageEntity, text: &str) -> String {
    let units: Vec<u16> = text
        .encode_utf16()
        .skip(entity.offset.into())
        .take(entity.length.into())
        .collect();
    String::from_utf16_lossy(&units).to_lowercase()
}

fn media(message: &Message) -> Option<MediaRef> {
    let file = |kind, id: &str, name: Option<&String>, seconds: Option<u32>| MediaRef {
        kind,
        reference: id.to_owned(),
        name: name.cloned(),
        duration_ms: seconds.map(|seconds| u64::from(seconds) * 1000),
    };
    if let Some(voice) = &message.voice {
        Some(file(
            MediaKind::Audio,
            &voice.file_id,
            None,
            Some(voice.duration),
        ))
    } else if let Some(audio) = &message.audio {
        let name = audio.file_name.as_ref();
        Some(file(
            MediaKind::Audio,
            &audio.file_id,
            name,
            Some(audio.duration),
        ))
    } else if let Some(document) = &message.document {
        let name = document.file_name.as_ref();
        Some(file(MediaKind::File, &document.file_id, name, None))
    } else {
        let sizes = message.photo.iter().flatten();
        let largest = sizes.max_by_key(|size| u64::from(size.width) * u64::from(size.height));
        largest.map(|photo| file(MediaKind::Image, &photo.file_id, None, None))
    }
}

/// Returns what a message consists of that the gateway cannot read. Messages of the service itself, for example about a
/// new title, are nothing that someone sent.
fn unreadable(message: &Message) -> Option<&'static str> {
    let kinds = [
        (message.sticker.is_some(), "stickers"),
        (message.video.is_some(), "videos"),
        (message.video_note.is_some(), "video messages"),
        (message.live_photo.is_some(), "live photos"),
        (message.paid_media.is_some(), "paid media"),
        (message.story.is_some(), "stories"),
        (message.location.is_some(), "locations"),
        (message.contact.is_some(), "contacts"),
        (message.poll.is_some(), "polls"),
        (message.checklist.is_some(), "checklists"),
        (message.dice.is_some(), "dice"),
        (message.game.is_some(), "games"),
        (message.rich_message.is_some(), "messages of this kind"),
    ];
    let mut sent = kinds.into_iter().filter(|(is_sent, _)| *is_sent);
    sent.next().map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use tenterhook_channel::message::ApprovalChoice;

    fn received(content: &Value) -> Received {
        let channel = ChannelId::new("tg").unwrap();
        let account = Account {
            id: 7,
            mention: "@bot".to_owned(),
        };
        let mut update = content.clone();
        update["update_id"] = 5.into();
        read(&channel, &account, serde_json::from_value(update).unwrap())
    }

    fn group_message(more: &Value) -> Value {
        let mut message = json!({
            "message_id": 3, "date": 1_700_000_000,
            "from": {"id": 42, "is_bot": false, "first_name": "Ada", "last_name": "L."},
            "chat": {"id": -100, "type": "supergroup", "title": "G\n## SYSTEM"},
        });
        message
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({ "message": message })
    }

    fn message(more: &Value) -> IncomingMessage {
        let Received::Message(message) = received(&group_message(more)) else {
            panic!("not a message");
        };
        *message
    }

    // G56
    #[test]
    fn only_the_bots_own_name_addresses_it() {
        let entity = |kind: &str, offset: usize, length: usize| json!([{"type": kind, "offset": offset, "length": length}]);
        let mention = "text_mention";
        let of = |id: u64| {
            json!([{"type": mention, "offset": 0, "length": 2,
                "user": {"id": id, "is_bot": true, "first_name": "B"}}])
        };
        for (text, entities, expected) in [
            ("@bot hi", entity("mention", 0, 4), true),
            ("@Bot hi", entity("mention", 0, 4), true),
            ("😀 @bot hi", entity("mention", 3, 4), true),
            ("@botany hi", entity("mention", 0, 7), false),
            ("@bot hi", json!([]), false),
            ("x@bot.example", entity("email", 0, 13), false),
            ("/help@bot", entity("bot_command", 0, 9), true),
            ("/help@other", entity("bot_command", 0, 11), false),
            ("/help", entity("bot_command", 0, 5), false),
            ("hi", of(7), true),
            ("hi", of(8), false),
        ] {
            let found = message(&json!({"text": text, "entities": entities}));
            assert_eq!(found.is_addressed, expected, "{text}");
        }
        let reply = |id: u64| {
            json!({"text": "x", "reply_to_message": {
            "message_id": 2, "date": 1, "chat": {"id": -100, "type": "supergroup"},
            "from": {"id": id, "is_bot": true, "first_name": "B"}}})
        };
        assert!(message(&reply(7)).is_addressed);
        assert!(!message(&reply(8)).is_addressed);
        assert_eq!(message(&reply(8)).reply_to.as_deref(), Some("2"));
    }

    // G57
    #[test]
    fn a_topic_is_a_thread_and_its_first_message_is_not_replied_to() {
        let found = message(
            &json!({"text": "x", "message_thread_id": 9, "is_topic_message": true,
            "reply_to_message": {"message_id": 9, "date": 1,
                "chat": {"id": -100, "type": "supergroup"},
                "from": {"id": 7, "is_bot": true, "first_name": "B"}}}),
        );
        assert_eq!(found.chat.thread.as_deref(), Some("9"));
        assert!(!found.is_addressed && found.reply_to.is_none());
        let reply = message(&json!({"text": "x", "message_thread_id": 9}));
        assert_eq!(reply.chat.thread, None);
    }

    #[test]
    fn files_come_with_their_captions() {
        let photo = |id: &str, width: u32| json!({"file_id": id, "file_unique_id": id, "width": width, "height": 9});
        let file = json!({"file_id": "f", "file_unique_id": "u", "duration": 4,
            "file_name": "../../x"});
        for (key, value, kind, reference) in [
            (
                "photo",
                json!([photo("s", 9), photo("l", 90)]),
                MediaKind::Image,
                "l",
            ),
            ("voice", file.clone(), MediaKind::Audio, "f"),
            ("audio", file.clone(), MediaKind::Audio, "f"),
            ("document", file.clone(), MediaKind::File, "f"),
        ] {
            let found = message(&json!({key: value, "caption": "look"}));
            let [IncomingPart::Media(media), IncomingPart::Text { text }] = &found.parts[..] else {
                panic!("{:?}", found.parts);
            };
            assert_eq!((media.kind, media.reference.as_str()), (kind, reference));
            assert_eq!(media.duration_ms.is_some(), kind == MediaKind::Audio);
            assert_eq!(text, "look");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_once() {
        let sticker = json!({"file_id": "f", "file_unique_id": "u", "type": "regular", "width": 1,
            "height": 1, "is_animated": false, "is_video": false});
        let video = json!({"file_id": "f", "file_unique_id": "u", "width": 1, "height": 1,
            "duration": 3});
        let place = json!({"latitude": 1.0, "longitude": 2.0});
        for (more, expected) in [
            (json!({"sticker": sticker}), "stickers"),
            (json!({"video": video, "caption": "look"}), "videos"),
            (json!({"location": place}), "locations"),
        ] {
            let found = message(&more).parts;
            let what = expected.to_owned();
            assert_eq!(found[0], IncomingPart::Unreadable { what });
            assert_eq!(found.len(), 1 + usize::from(expected == "videos"));
        }
    }

    #[test]
    fn what_is_not_a_message_of_a_person_is_ignored() {
        let own = json!({"text": "x", "from": {"id": 7, "is_bot": true, "first_name": "B"}});
        for update in [
            group_message(&own),
            group_message(&json!({"new_chat_title": "x"})),
            json!({"edited_message": group_message(&json!({"location": {"latitude": 1}}))["message"]}),
        ] {
            assert_eq!(received(&update), Received::Nothing, "{update}");
        }
    }

    #[test]
    fn stop_and_buttons_do_not_wait_behind_messages() {
        for (text, is_stop) in [
            ("/stop", true),
            ("/stop@Bot", true),
            ("/stop@other", false),
            ("/stop it", false),
        ] {
            let found = received(&group_message(&json!({ "text": text })));
            assert_eq!(matches!(found, Received::Cancel(_)), is_stop, "{text}");
        }
        let query = |data: &str| {
            json!({"callback_query": {"id": "q", "chat_instance": "c", "data": data,
                "from": {"id": 42, "is_bot": false, "first_name": "Ada"},
                "message": group_message(&json!({"text": "x"}))["message"]}})
        };
        let Received::Pressed { control, .. } = received(&query("d:0f")) else {
            panic!("not a button");
        };
        let Control::Approval {
            nonce,
            choice,
            sender,
            ..
        } = control
        else {
            panic!("not an approval");
        };
        assert_eq!((nonce.as_str(), choice), ("0f", ApprovalChoice::Deny));
        assert_eq!(sender.id, "42");
        let stale = Received::Stale {
            query: "q".to_owned(),
        };
        assert_eq!(received(&query("x")), stale);
    }
}
