//! Answers in the form of OpenAI's Responses API.

use serde_json::{Map, Value, json};

use super::reply::{Reply, StreamEvent};
use super::script::{ModelCall, ModelTurn};

/// Returns the answer to a request to `…/responses`.
pub(crate) fn answer(turn: &ModelTurn, body: &Value, number: usize) -> Reply {
    let items = items(turn, number);
    let response = |status: &str, output: &[Value]| {
        json!({
            "id": format!("resp_{number}"),
            "object": "response",
            "created_at": 0,
            "status": status,
            "model": body.get("model"),
            "output": output,
            "error": null,
            "incomplete_details": null,
            "usage": {
                "input_tokens": 1,
                "input_tokens_details": { "cached_tokens": 0 },
                "output_tokens": 1,
                "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": 2,
            },
        })
    };
    if body.get("stream") != Some(&Value::Bool(true)) {
        return Reply::ok(response("completed", &items));
    }
    let mut events = Events::default();
    let begun = response("in_progress", &[]);
    events.add("response.created", json!({ "response": begun }));
    events.add("response.in_progress", json!({ "response": begun }));
    for (index, item) in items.iter().enumerate() {
        events.item(index, item);
    }
    let done = response("completed", &items);
    events.add("response.completed", json!({ "response": done }));
    Reply::Stream(events.0)
}

fn items(turn: &ModelTurn, number: usize) -> Vec<Value> {
    let message = (!turn.text.is_empty()).then(|| {
        json!({
            "type": "message",
            "id": format!("msg_{number}"),
            "role": "assistant",
            "status": "completed",
            "content": [{ "type": "output_text", "text": turn.text, "annotations": [] }],
        })
    });
    message
        .into_iter()
        .chain(turn.calls.iter().map(call_item))
        .collect()
}

fn call_item(call: &ModelCall) -> Value {
    let (kind, field) = if call.is_free_text() {
        ("custom_tool_call", "input")
    } else {
        ("function_call", "arguments")
    };
    let (namespace, name) = match call.tool.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, call.tool),
    };
    let mut item = json!({
        "type": kind,
        "id": format!("item_{}", call.id),
        "call_id": format!("call_{}", call.id),
        "status": "completed",
        "name": name,
        field: call.arguments_text(),
    });
    if let Some(namespace) = namespace {
        item = with(&item, &[("namespace", json!(namespace))]);
    }
    item
}

/// The events of a stream. Each has its number and repeats its name in the field `type`.
#[derive(Debug, Default)]
struct Events(Vec<StreamEvent>);

impl Events {
    fn add(&mut self, name: &'static str, mut data: Value) {
        if let Value::Object(fields) = &mut data {
            fields.insert("type".to_owned(), Value::from(name));
            fields.insert("sequence_number".to_owned(), Value::from(self.0.len()));
        }
        self.0.push(StreamEvent::named(name, &data));
    }

    /// Adds the events that build one item of the output.
    fn item(&mut self, index: usize, item: &Value) {
        let begun = with(item, &[("status", json!("in_progress"))]);
        let id = item.get("id");
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default();
        let place = json!({ "item_id": id, "output_index": index });
        if kind == "message" {
            let empty = with(&begun, &[("content", json!([]))]);
            self.add(
                "response.output_item.added",
                json!({ "output_index": index, "item": empty }),
            );
            let part = item.pointer("/content/0").cloned().unwrap_or_default();
            self.message_part(&place, &part);
        } else {
            let (field, delta, done) = if kind == "custom_tool_call" {
                (
                    "input",
                    "response.custom_tool_call_input.delta",
                    "response.custom_tool_call_input.done",
                )
            } else {
                (
                    "arguments",
                    "response.function_call_arguments.delta",
                    "response.function_call_arguments.done",
                )
            };
            let empty = with(&begun, &[(field, json!(""))]);
            self.add(
                "response.output_item.added",
                json!({ "output_index": index, "item": empty }),
            );
            let text = item.get(field).cloned().unwrap_or_default();
            self.add(delta, with(&place, &[("delta", text.clone())]));
            self.add(done, with(&place, &[(field, text)]));
        }
        self.add(
            "response.output_item.done",
            json!({ "output_index": index, "item": item }),
        );
    }

    fn message_part(&mut self, place: &Value, part: &Value) {
        let place = with(place, &[("content_index", json!(0))]);
        let text = part.get("text").cloned().unwrap_or_default();
        let empty = with(part, &[("text", json!(""))]);
        self.add(
            "response.content_part.added",
            with(&place, &[("part", empty)]),
        );
        self.add(
            "response.output_text.delta",
            with(&place, &[("delta", text.clone())]),
        );
        self.add("response.output_text.done", with(&place, &[("text", text)]));
        self.add(
            "response.content_part.done",
            with(&place, &[("part", part.clone())]),
        );
    }
}

/// Returns the object with further fields.
fn with(object: &Value, fields: &[(&str, Value)]) -> Value {
    let mut all: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
    all.extend(
        fields
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone())),
    );
    Value::Object(all)
}
