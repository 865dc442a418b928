//! Answers in the form of OpenAI's Chat Completions API.

use serde_json::{Value, json};

use super::reply::{Reply, StreamEvent};
use super::script::{ModelCall, ModelTurn};

/// Returns the answer to a request to `…/chat/completions`.
pub(crate) fn answer(turn: &ModelTurn, body: &Value, number: usize) -> Reply {
    let finish_reason = if turn.calls.is_empty() {
        "stop"
    } else {
        "tool_calls"
    };
    let usage = json!({ "prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2 });
    let completion = |object: &str, choices: Value, usage: Value| {
        json!({
            "id": format!("chatcmpl-{number}"),
            "object": object,
            "created": 0,
            "model": body.get("model"),
            "choices": choices,
            "usage": usage,
        })
    };
    if body.get("stream") != Some(&Value::Bool(true)) {
        let mut message = json!({ "role": "assistant", "content": turn.text });
        if let (Value::Object(fields), false) = (&mut message, turn.calls.is_empty()) {
            let calls: Vec<Value> = turn.calls.iter().map(tool_call).collect();
            fields.insert("tool_calls".to_owned(), Value::from(calls));
        }
        let choice = json!({ "index": 0, "message": message, "finish_reason": finish_reason });
        return Reply::ok(completion("chat.completion", json!([choice]), usage));
    }
    let chunk = |delta: Value, finish_reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish_reason });
        let data = completion("chat.completion.chunk", json!([choice]), Value::Null);
        StreamEvent::unnamed(&data)
    };
    let mut events = vec![chunk(
        json!({ "role": "assistant", "content": turn.text }),
        Value::Null,
    )];
    for (index, call) in turn.calls.iter().enumerate() {
        let mut call = tool_call(call);
        if let Value::Object(fields) = &mut call {
            fields.insert("index".to_owned(), Value::from(index));
        }
        events.push(chunk(json!({ "tool_calls": [call] }), Value::Null));
    }
    events.push(chunk(json!({}), json!(finish_reason)));
    let total = completion("chat.completion.chunk", json!([]), usage);
    events.push(StreamEvent::unnamed(&total));
    events.push(StreamEvent {
        name: None,
        data: "[DONE]".to_owned(),
    });
    Reply::Stream(events)
}

fn tool_call(call: &ModelCall) -> Value {
    json!({
        "id": format!("call_{}", call.id),
        "type": "function",
        "function": { "name": call.tool, "arguments": call.arguments_text() },
    })
}
