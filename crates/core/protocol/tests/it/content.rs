//! Blocks of content that the catalogue does not know.

use serde_json::json;
use tenterhook_protocol::{ContentBlock, Message, ToolCall, ToolResult};

#[test]
fn blocks_that_the_catalogue_does_not_know_are_returned_as_they_came() {
    let blocks = json!([
        { "type": "text", "text": "a" },
        { "type": "audio", "data": "UklGRg==", "format": { "rate": 16000 } },
        { "type": "image", "image": { "media_type": "image/png", "data": "iVBO" } },
        { "type": "image", "source": { "type": "url", "url": "https://example.com/a.png" } },
        { "type": "text", "text": "b", "cache_control": { "type": "ephemeral" } },
    ]);
    let read: Vec<ContentBlock> = serde_json::from_value(blocks.clone()).unwrap();
    let known: Vec<bool> = read
        .iter()
        .map(|block| !matches!(block, ContentBlock::Other(_)))
        .collect();
    assert_eq!(known, [true, false, true, false, false]);
    assert_eq!(serde_json::to_value(&read).unwrap(), blocks);
    let result = ToolResult::default().with_content(read.clone());
    assert_eq!(result.joined_text(), "a\nb");
    let message = Message::user("first")
        .with_parts(read)
        .with_extra("name", "ada");
    let written = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&written).unwrap(), message);
    let call = ToolCall::new("c1", "shell", json!({})).with_extra("signature", "x");
    let written = serde_json::to_string(&call).unwrap();
    assert_eq!(serde_json::from_str::<ToolCall>(&written).unwrap(), call);
}

#[test]
fn a_block_that_is_no_block_is_an_error() {
    for (block, problem) in [
        (json!({ "text": "a" }), "`type` of a block is missing"),
        (json!({ "type": 1 }), "`type` of a block is 1"),
        (json!({ "type": "text", "txt": "a" }), "has no `text`"),
        (
            json!({ "type": "image", "image": { "data": "" } }),
            "media_type",
        ),
    ] {
        let error = serde_json::from_value::<ContentBlock>(block).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}
