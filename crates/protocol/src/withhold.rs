//! What takes the place of a result when the hook that may redact it has failed.
//!
//! Nothing of the old value is kept but what the conversation needs to stay valid: who speaks in a message, and which
//! call a tool message answers.

use serde_json::Value;

use crate::JsonObject;
use crate::message::{ContentBlock, Message, Messages};

/// A value that a notice can replace.
pub(crate) trait Withhold {
    /// Replaces the value by `notice`, or by nothing where the type has no place for a text.
    fn withhold(&mut self, notice: &str);
}

impl Withhold for String {
    fn withhold(&mut self, notice: &str) {
        notice.clone_into(self);
    }
}

impl Withhold for Vec<ContentBlock> {
    fn withhold(&mut self, notice: &str) {
        *self = vec![ContentBlock::text(notice)];
    }
}

impl Withhold for Option<JsonObject> {
    fn withhold(&mut self, _notice: &str) {
        *self = None;
    }
}

impl Withhold for Value {
    fn withhold(&mut self, notice: &str) {
        *self = Self::String(notice.to_owned());
    }
}

/// A withheld message asks for no tool calls: their arguments are a part of it.
impl Withhold for Message {
    fn withhold(&mut self, notice: &str) {
        *self = Self {
            role: self.role,
            tool_call_id: self.tool_call_id.take(),
            is_error: self.is_error,
            ..Self::text(self.role, notice)
        };
    }
}

/// A withheld conversation is one message of the user, which every model service accepts.
impl Withhold for Messages {
    fn withhold(&mut self, notice: &str) {
        *self = vec![Message::user(notice)].into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::PostToolUse;
    use crate::event_kind::EventKind;
    use crate::message::{Image, Role, ToolCall, ToolResult};
    use crate::{AnyEvent as _, events};

    const SECRET: &str = "hunter2";
    const NOTICE: &str = "[withheld]";

    #[test]
    fn a_withheld_message_keeps_its_place_in_the_conversation_and_nothing_else() {
        let mut message = Message {
            role: Role::Tool,
            content: SECRET.to_owned(),
            reasoning: Some(SECRET.to_owned()),
            images: vec![Image::default()],
            tool_calls: vec![ToolCall {
                arguments: json!({ "key": SECRET }),
                ..ToolCall::default()
            }],
            tool_call_id: Some("c1".into()),
            is_error: true,
        };
        message.withhold(NOTICE);
        assert_eq!(message, Message::tool("c1".into(), NOTICE, true));
    }

    #[test]
    fn a_withheld_result_keeps_neither_details_nor_images() {
        let details = json!({ "stdout": SECRET }).as_object().cloned();
        let mut event = PostToolUse {
            result: ToolResult {
                content: vec![
                    ContentBlock::text(SECRET),
                    ContentBlock::Image {
                        image: Image::default(),
                    },
                ],
                details,
                is_error: true,
                terminate: false,
            },
            ..PostToolUse::default()
        };
        event.withhold(NOTICE);
        assert_eq!(event.result, ToolResult::error(NOTICE));
    }

    #[test]
    fn events_that_hand_on_a_result_are_these() {
        let mut handing_on: Vec<EventKind> = Vec::new();
        handing_on.extend(
            events()
                .filter(|info| info.hands_on_result())
                .map(|info| info.kind),
        );
        assert_eq!(
            handing_on,
            [
                EventKind::Context,
                EventKind::BeforeLlmCall,
                EventKind::ProviderRequest,
                EventKind::MessageEnd,
                EventKind::ToolResponseTransform,
                EventKind::PostToolUse,
            ]
        );
    }
}
