//! Results that a notice replaces after a redactor has failed.

use serde_json::json;
use tenterhook_protocol::event::{MessageEnd, PostToolUse};
use tenterhook_protocol::{
    AnyEvent as _, ContentBlock, EventKind, Image, Message, ToolCall, ToolResult, events,
};

const SECRET: &str = "hunter2";
const NOTICE: &str = "[withheld]";

fn opaque() -> ContentBlock {
    serde_json::from_value(json!({ "type": "document", "text": SECRET })).unwrap()
}

#[test]
fn a_withheld_message_keeps_its_place_in_the_conversation_and_nothing_else() {
    let call = ToolCall::new("c0", "shell", json!({ "key": SECRET }));
    let message = Message::tool("c1".into(), SECRET, true)
        .with_reasoning(SECRET)
        .with_images(vec![Image::default()])
        .with_tool_calls(vec![call])
        .with_parts(vec![opaque()])
        .with_extra("note", SECRET);
    let mut event = MessageEnd::new(message);
    event.withhold(NOTICE);
    assert_eq!(event.message, Message::tool("c1".into(), NOTICE, true));
}

#[test]
fn a_withheld_result_keeps_neither_details_nor_images_nor_opaque_blocks() {
    let details = json!({ "stdout": SECRET }).as_object().cloned();
    let image = Image::default();
    let result = ToolResult::error(SECRET)
        .with_content(vec![
            ContentBlock::text(SECRET),
            ContentBlock::Image { image },
            opaque(),
        ])
        .with_details(details);
    let mut event = PostToolUse::new("shell").with_result(result);
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
