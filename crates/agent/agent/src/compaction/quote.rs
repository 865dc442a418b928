//! Quotes a conversation as a single string, for the model that summarises it.

use std::borrow::Cow;

use tenterhook_protocol::excerpt;
use tenterhook_protocol::{Message, Role};

/// The longest quoted tool result or argument text, in bytes.
const MAX_RESULT: usize = 2000;

/// The longest quotation if the context window is unknown, in bytes.
const LONGEST: usize = 400_000;

/// Bytes of quotation for each token of the context window: about half of the window.
const BYTES_PER_TOKEN: u64 = 2;

/// Quotes the conversation. If the quotation would overflow the context window itself, its middle is omitted.
pub(super) fn quote(messages: &[Message], window: Option<u64>) -> String {
    let parts: Vec<String> = messages.iter().map(quote_message).collect();
    let text = parts.join("\n\n");
    let room =
        window.and_then(|window| usize::try_from(window.saturating_mul(BYTES_PER_TOKEN)).ok());
    let text = shortened(&text, room.unwrap_or(LONGEST));
    format!("<conversation>\n{text}\n</conversation>\n\nSummarise this conversation.")
}

fn quote_message(message: &Message) -> String {
    let mut lines = Vec::new();
    if !message.content.is_empty() {
        let text = if message.role == Role::Tool {
            shortened(&message.content, MAX_RESULT)
        } else {
            Cow::Borrowed(message.content.as_str())
        };
        lines.push(format!("[{}] {text}", message.role));
    }
    for call in &message.tool_calls {
        let arguments = call.arguments.to_string();
        let arguments = shortened(&arguments, MAX_RESULT);
        lines.push(format!(
            "[{} calls `{}`] {arguments}",
            message.role, call.name
        ));
    }
    lines.join("\n")
}

/// Cuts the middle out of text that is longer than `room` bytes.
fn shortened(text: &str, room: usize) -> Cow<'_, str> {
    excerpt::omit_middle(text, room / 4, room - room / 4)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenterhook_protocol::ToolCall;

    use super::*;

    #[test]
    fn a_conversation_is_quoted_with_its_calls() {
        let call = ToolCall::new("1", "shell", json!({"cmd": "ls"}));
        let messages = [
            Message::user("look"),
            Message::assistant("").with_tool_calls(vec![call]),
            Message::tool("1".into(), "xxx\n".repeat(1250), false),
        ];
        let text = quote(&messages, None);
        assert!(text.starts_with("<conversation>\n[user] look\n\n[assistant calls `shell`] {\"cmd\":\"ls\"}\n\n[tool] xxx"));
        assert!(text.contains("[... 3004 bytes omitted ...]"));
    }

    #[test]
    fn a_quotation_fits_into_half_of_the_window() {
        let messages = [Message::user("é".repeat(10_000))];
        assert!(quote(&messages, Some(1000)).len() < 2200);
    }
}
