//! Writing an event for a handler: its type, and the fields of its document. What is absent is left out, so that the
//! event object has its default there.

use std::borrow::Cow;

use serde_json::{Value, json};
use tenterhook::{EventRef, WriteError};
use tenterhook_protocol::JsonObject;

use super::event::{Field, From, OperatorEvent};
use super::part;

pub(super) fn write(row: &OperatorEvent, event: &EventRef) -> Result<Vec<u8>, WriteError> {
    if event.info().kind != row.kind {
        return Err(WriteError::NoSuchEvent {
            dialect: "operator",
            event: event.event().name().to_owned(),
        });
    }
    let payload = event.payload()?;
    // Keys and values stay where they are until they are written.
    let mut entries: Vec<(&str, Cow<'_, Value>)> = vec![("type", Cow::Owned(row.name.into()))];
    for Field { key, from } in row.fields {
        entries.extend(value(from, event, payload).map(|value| (*key, value)));
    }
    let entries: serde_json::Result<Vec<u8>> = {
        let mut bytes = Vec::with_capacity(256);
        let mut serializer = serde_json::Serializer::new(&mut bytes);
        serde::Serializer::collect_map(&mut serializer, entries).map(|()| bytes)
    };
    entries.map_err(WriteError::Payload)
}

fn value<'a>(from: &From, event: &EventRef, payload: &'a JsonObject) -> Option<Cow<'a, Value>> {
    let get = |key: &str| payload.get(key).filter(|value| !value.is_null());
    let result = || get("result");
    Some(match from {
        From::Payload(key) => Cow::Borrowed(get(key)?),
        From::Worded(key, words) => {
            let value = get(key)?;
            match words.iter().find(|(own, _)| value == own) {
                Some((_, theirs)) => Cow::Owned((*theirs).into()),
                None => Cow::Borrowed(value),
            }
        }
        From::Seconds(key) => Cow::Owned((get(key)?.as_f64()? / 1e3).into()),
        From::Directory => Cow::Owned(event.envelope().origin.cwd.to_string_lossy().into()),
        From::Call => {
            let input = get("tool_input");
            Cow::Owned(json!({
                "id": get("tool_use_id"), "name": get("tool_name"), "args": input, "input": input,
            }))
        }
        From::ToolResult(key) => {
            let mut shown = tool_result(get(key)?);
            if let Some(shown) = shown.as_object_mut() {
                shown.insert("id".to_owned(), json!(get("tool_use_id")));
                shown.insert("name".to_owned(), json!(get("tool_name")));
                // A call may fail without a result that says so.
                if get("is_error") == Some(&Value::Bool(true)) {
                    shown.insert("is_error".to_owned(), true.into());
                }
            }
            Cow::Owned(shown)
        }
        From::ResultText => Cow::Owned(text(result()?).into()),
        From::ResultIsError => Cow::Borrowed(result()?.get("is_error")?),
        From::ToolResults => {
            let results = get("tool_results")?.as_array()?;
            Cow::Owned(results.iter().map(tool_result).collect())
        }
        From::Parts => {
            let parts = get("parts")?.as_array()?;
            Cow::Owned(parts.iter().map(part::written).collect())
        }
        From::Delta => {
            let mut message = get("message")?.clone();
            if let Some(message) = message.as_object_mut() {
                message.insert("content".to_owned(), get("delta")?.clone());
            }
            Cow::Owned(message)
        }
        From::Request(key) => Cow::Borrowed(get("payload")?.get(*key)?),
        From::RequestOptions => {
            let mut options = get("payload")?.as_object()?.clone();
            options.retain(|key, _| !["model", "messages"].contains(&key.as_str()));
            Cow::Owned(Value::Object(options))
        }
    })
}

fn tool_result(result: &Value) -> Value {
    json!({ "content": text(result), "is_error": result.get("is_error") })
}

/// Returns the text blocks of a tool result, joined by line ends.
fn text(result: &Value) -> String {
    let blocks = result.get("content").and_then(Value::as_array);
    let texts: Vec<&str> = blocks
        .into_iter()
        .flatten()
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    texts.join("\n")
}
