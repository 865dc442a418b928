//! The parts of messages, as hooks see them: how files and texts become parts, and how changes of hooks are combined.

use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;
use tenterhook_protocol::event::MessagePart;

use tenterhook_channel::labels::clean_label;
use tenterhook_channel::message::{IncomingMessage, IncomingPart, MessageReference, ReferenceKind};
use tenterhook_channel::publisher::SavedMedia;

/// The kind of a part with text.
const TEXT: &str = "text";

/// Returns a part with text.
pub(crate) fn text_part(text: &str) -> MessagePart {
    MessagePart {
        kind: TEXT.to_owned(),
        text: Some(text.to_owned()),
        ..MessagePart::default()
    }
}

/// The keys of the metadata of a part that refers to another message: how it does, and who wrote the other message.
const REFERENCE: &str = "reference";
const FROM: &str = "from";

/// Returns the part with the text that a message replies to. It is text, so that hooks that read only the text of a
/// message see everything that the agent reads.
pub(crate) fn reply_part(reference: &MessageReference) -> MessagePart {
    let mut part = text_part(&reference.text);
    // A message without text, such as a photo, adds no empty line to the text.
    part.text = part.text.filter(|text| !text.is_empty());
    mark_reference(&mut part, reference);
    part
}

/// Notes in a part that it refers to another message.
pub(crate) fn mark_reference(part: &mut MessagePart, reference: &MessageReference) {
    let kind = json!(reference.kind.word());
    part.metadata.insert(REFERENCE.to_owned(), kind);
    if let Some(from) = reference.from.as_deref().map(clean_label) {
        part.metadata.insert(FROM.to_owned(), json!(from));
    }
}

/// Returns whether a part is the text that a message replies to.
pub(crate) fn is_reply(part: &MessagePart) -> bool {
    let kind = part.metadata.get(REFERENCE).and_then(Value::as_str);
    kind == Some(ReferenceKind::Reply.word())
}

/// Describes the messages that a message refers to, for the agent. `parts` are those that hooks left.
pub(crate) fn references(message: &IncomingMessage, parts: &[MessagePart]) -> JsonObject {
    let mut described = JsonObject::new();
    if let Some(part) = parts.iter().find(|part| is_reply(part)) {
        let text = part.text.as_deref().unwrap_or_default();
        let replied = json!({ FROM: part.metadata.get(FROM), "text": text });
        described.insert("reply_to".to_owned(), replied);
    }
    match relayed(message) {
        Some(other) if other.kind == ReferenceKind::Forward => {
            let from = other.from.as_deref().map(clean_label);
            described.insert("forwarded_from".to_owned(), json!(from));
        }
        Some(_) => drop(described.insert("edited".to_owned(), Value::Bool(true))),
        None => {}
    }
    described
}

/// Returns the message that this one passes on, or of which it is a new version.
pub(crate) fn relayed(message: &IncomingMessage) -> Option<&MessageReference> {
    message.parts.iter().find_map(|part| {
        let IncomingPart::Reference(other) = part else {
            return None;
        };
        (other.kind != ReferenceKind::Reply).then_some(other)
    })
}

/// Returns the text that the sender of a message wrote.
pub(crate) fn own_text(parts: &[MessagePart]) -> String {
    joined_text(parts.iter().filter(|part| !is_reply(part)))
}

/// Returns whether a part is text.
pub(crate) fn is_text(part: &MessagePart) -> bool {
    part.kind == TEXT
}

/// Returns the part of a file: its content is the absolute path of our copy.
pub(crate) fn media_part(saved: &SavedMedia, duration_ms: Option<u64>) -> MessagePart {
    let mut metadata = JsonObject::new();
    metadata.insert("name".to_owned(), json!(saved.media.name));
    metadata.insert("size".to_owned(), json!(saved.media.size));
    if let Some(duration) = duration_ms {
        metadata.insert("duration_ms".to_owned(), json!(duration));
    }
    MessagePart {
        kind: saved.media.kind.word().to_owned(),
        text: None,
        media_type: Some(saved.media.media_type.clone()),
        data: Some(saved.path.display().to_string()),
        metadata,
    }
}

/// Returns what people in the chat should read about a part: the value of `notice` in its metadata. Hooks add it, for
/// example if a recording could not be understood.
pub(crate) fn notice_of(part: &MessagePart) -> Option<&str> {
    let notice = part.metadata.get("notice").and_then(Value::as_str);
    notice.filter(|notice| !notice.trim().is_empty())
}

/// Returns whether a part that a hook adds to an answer is the answer as audio: `spoken_answer` in its metadata is
/// `true`. The built-in `tts` writes it.
pub(crate) fn speaks_answer(part: &MessagePart) -> bool {
    part.metadata.get("spoken_answer") == Some(&Value::Bool(true))
}

/// Returns the text of a message: its text parts, joined by line ends.
pub(crate) fn joined_text<'a>(parts: impl IntoIterator<Item = &'a MessagePart>) -> String {
    let texts = parts.into_iter().filter(|part| is_text(part));
    let texts: Vec<&str> = texts.filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n")
}

/// Returns the parts of a message after its hooks. A replaced text becomes one part instead of the first text part. That
/// is also so if the parts were replaced and say something else: the text may be a redaction of the parts.
pub(crate) fn fold(
    parts: Vec<MessagePart>,
    replaced: &[String],
    text: &str,
    new_parts: Vec<MessagePart>,
) -> Vec<MessagePart> {
    let is_replaced = |field: &str| replaced.iter().any(|name| name == field);
    let parts = if is_replaced("parts") {
        new_parts
    } else {
        parts
    };
    if !is_replaced("text") || text == joined_text(&parts) {
        return parts;
    }
    let place = parts.iter().position(is_text).unwrap_or(0);
    let mut folded: Vec<MessagePart> = parts.into_iter().filter(|part| !is_text(part)).collect();
    // Everything before the first text part was kept, so the place is still valid.
    folded.insert(place.min(folded.len()), text_part(text));
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> MessagePart {
        MessagePart {
            kind: "file".to_owned(),
            ..MessagePart::default()
        }
    }

    // G11 and G12
    #[test]
    fn a_replaced_text_takes_the_place_of_the_first_also_in_replaced_parts() {
        let parts = vec![file(), text_part("a"), file(), text_part("b")];
        let names = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        let new = vec![text_part("n")];
        let table = [
            (names(&[]), parts.clone()),
            (names(&["text"]), vec![file(), text_part("t"), file()]),
            (names(&["text", "parts"]), vec![text_part("t")]),
            (names(&["parts"]), new.clone()),
        ];
        for (replaced, expected) in table {
            let folded = fold(parts.clone(), &replaced, "t", new.clone());
            assert_eq!(folded, expected, "{replaced:?}");
        }
        let without_text = fold(vec![file()], &names(&["text"]), "t", Vec::new());
        assert_eq!(without_text, [text_part("t"), file()]);
        let both = names(&["parts", "text"]);
        let same = vec![text_part("a"), text_part("b")];
        assert_eq!(fold(parts.clone(), &both, "a\nb", same.clone()), same);
        assert_eq!(joined_text(&parts), "a\nb");
    }
}
