//! Estimates the number of tokens in messages, for models that did not count them.

use serde_json::Value;
use tenterhook_protocol::Message;

/// The rough number of bytes per token.
pub(crate) const BYTES_PER_TOKEN: usize = 4;

/// Estimates the tokens of messages from their length.
pub fn estimate_tokens<'a>(messages: impl IntoIterator<Item = &'a Message>) -> u64 {
    let bytes: usize = messages.into_iter().map(bytes_of).sum();
    u64::try_from(bytes.div_ceil(BYTES_PER_TOKEN)).unwrap_or(u64::MAX)
}

fn bytes_of(message: &Message) -> usize {
    let calls = message
        .tool_calls
        .iter()
        .map(|call| call.name.len() + json_len(&call.arguments));
    let parts = message.parts.iter().filter_map(|part| part.as_text());
    let parts: usize = parts.map(str::len).sum();
    message.content.len() + parts + calls.sum::<usize>()
}

/// Estimates the length of a value as JSON, in bytes, without writing it.
pub fn json_len(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| json_len(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let bytes = fields.map(|(key, value)| key.len() + 4 + json_len(value));
            2 + bytes.sum::<usize>()
        }
    }
}
