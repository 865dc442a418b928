//! Answers in the form of Anthropic's Messages API.

use serde_json::{Value, json};

use super::reply::{Reply, StreamEvent};
use super::script::ModelTurn;

/// Returns the answer to a request to `…/messages`.
pub(crate) fn answer(turn: &ModelTurn, body: &Value, number: usize) -> Reply {
    let blocks = blocks(turn);
    let stop_reason = if turn.calls.is_empty() {
        "end_turn"
    } else {
        "tool_use"
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let message = |content: &[Value], stop_reason: Value| {
        json!({
            "id": format!("msg_{number}"),
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": content,
            "stop_reason": stop_reason,
            "stop_sequence": null,
            "usage": usage,
        })
    };
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Reply::ok(message(&blocks, json!(stop_reason)));
    }
    let mut events = Events::default();
    events.add(
        "message_start",
        json!({ "message": message(&[], Value::Null) }),
    );
    for (index, block) in blocks.iter().enumerate() {
        let (start, delta) = opened(block);
        events.add(
            "content_block_start",
            json!({ "index": index, "content_block": start }),
        );
        events.add(
            "content_block_delta",
            json!({ "index": index, "delta": delta }),
        );
        events.add("content_block_stop", json!({ "index": index }));
    }
    let ended = json!({ "stop_reason": stop_reason, "stop_sequence": null });
    events.add("message_delta", json!({ "delta": ended, "usage": usage }));
    events.add("message_stop", json!({}));
    Reply::Stream(events.0)
}

/// The events of a stream. The API repeats the name of each event in its field `type`.
#[derive(Debug, Default)]
struct Events(Vec<StreamEvent>);

impl Events {
    fn add(&mut self, name: &'static str, mut data: Value) {
        if let Value::Object(fields) = &mut data {
            fields.insert("type".to_owned(), Value::from(name));
        }
        self.0.push(StreamEvent::named(name, &data));
    }
}

fn blocks(turn: &ModelTurn) -> Vec<Value> {
    let text = (!turn.text.is_empty()).then(|| json!({ "type": "text", "text": turn.text }));
    let calls = turn.calls.iter().map(|call| {
        json!({
            "type": "tool_use",
            "id": format!("toolu_{}", call.id),
            "name": call.tool,
            "input": call.arguments,
        })
    });
    text.into_iter().chain(calls).collect()
}

/// Returns the empty block that a stream begins with, and the change that completes it.
fn opened(block: &Value) -> (Value, Value) {
    let mut start = block.clone();
    let delta = if block.get("type") == Some(&json!("text")) {
        json!({ "type": "text_delta", "text": block.get("text") })
    } else {
        let input = block.get("input").map(Value::to_string);
        json!({ "type": "input_json_delta", "partial_json": input })
    };
    if let Value::Object(fields) = &mut start {
        if fields.contains_key("text") {
            fields.insert("text".to_owned(), json!(""));
        }
        if fields.contains_key("input") {
            fields.insert("input".to_owned(), json!({}));
        }
    }
    (start, delta)
}
