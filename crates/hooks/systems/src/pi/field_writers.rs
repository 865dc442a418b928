//! Writes the fields of pi's events that differ in form from the payload's fields.

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tenterhook_engine::{JsonObject, Message, ToolResult};
use tenterhook_protocol::event::{CompactionPreparation, SessionEntry, TreePreparation};
use tenterhook_protocol::{Image, ToolCall};

use super::message::{self, written_block, written_image};
use super::tool;
use crate::object::Source;

/// Returns a field of the payload as its type, or `None` if the event lacks the field. The payload was
/// written from the same type, so reading it back does not fail.
fn typed<T: DeserializeOwned>(source: Source<'_>, key: &str) -> Option<T> {
    T::deserialize(source.get(key)?).ok()
}

/// Returns the time of the event, in milliseconds since 1970.
fn now(source: Source<'_>) -> i64 {
    source.event.envelope().timestamp().as_millisecond()
}

pub(super) fn images(source: Source<'_>) -> Option<Value> {
    let images: Vec<Image> = typed(source, "images")?;
    Some(images.iter().map(written_image).collect())
}

pub(super) fn messages(source: Source<'_>) -> Option<Value> {
    let messages: Vec<Message> = typed(source, "messages")?;
    Some(message::written_all(&messages, now(source)).into())
}

pub(super) fn message(source: Source<'_>) -> Option<Value> {
    let message: Message = typed(source, "message")?;
    Some(message::written(&message, None, now(source)))
}

/// Returns what was added to a streamed message.
///
/// The worker adds the events for the beginning of a part, and for the end of the part before it.
pub(super) fn delta(source: Source<'_>) -> Option<Value> {
    let partial = message(source)?;
    let blocks = partial.get("content").and_then(Value::as_array)?;
    let place = |kind: &str| blocks.iter().position(|block| block["type"] == kind);
    let added = source.get("delta")?;
    let part = source
        .get("extra")
        .and_then(|extra| extra.get("part")?.as_str());
    Some(match part {
        Some("reasoning") => json!({
            "type": "thinking_delta", "contentIndex": place("thinking"), "delta": added, "partial": partial,
        }),
        Some("tool_call") => json!({
            "type": "toolcall_end", "contentIndex": blocks.len().checked_sub(1), "delta": added,
            "toolCall": blocks.last(), "partial": partial,
        }),
        Some("end") => json!({ "type": "end", "delta": added, "partial": partial }),
        _ => json!({
            "type": "text_delta", "contentIndex": place("text").unwrap_or_default(), "delta": added,
            "partial": partial,
        }),
    })
}

/// Returns the arguments of a running tool call.
pub(super) fn args(source: Source<'_>) -> Option<Value> {
    let input = source.get("extra")?.get("tool_input")?;
    let name = source.get("tool_name").and_then(Value::as_str)?;
    Some(tool::written(tool::own_name(name), input).1)
}

/// Returns the tool results of a turn, each with its call.
pub(super) fn tool_results(source: Source<'_>) -> Option<Value> {
    let results: Vec<ToolResult> = typed(source, "tool_results")?;
    let asked: Option<Message> = typed(source, "message");
    let calls = asked.map(|message| message.tool_calls).unwrap_or_default();
    let written = results.iter().enumerate().map(|(place, result)| {
        let call = calls.get(place);
        let name = call.map(|call: &ToolCall| tool::name(&call.name));
        json!({
            "role": "toolResult",
            "toolCallId": call.map(|call| &call.id),
            "toolName": name,
            "content": content(result),
            "details": result.details,
            "isError": result.is_error,
            "timestamp": now(source),
        })
    });
    Some(written.collect())
}

fn written_result(result: &ToolResult) -> Value {
    json!({ "content": content(result), "details": result.details })
}

fn content(result: &ToolResult) -> Vec<Value> {
    result.content.iter().map(written_block).collect()
}

fn result_of(source: Source<'_>) -> Option<ToolResult> {
    typed(source, "result")
}

pub(super) fn result(source: Source<'_>) -> Option<Value> {
    Some(written_result(&result_of(source)?))
}

pub(super) fn partial_result(source: Source<'_>) -> Option<Value> {
    let result: ToolResult = typed(source, "partial_result")?;
    Some(written_result(&result))
}

pub(super) fn result_content(source: Source<'_>) -> Option<Value> {
    Some(content(&result_of(source)?).into())
}

pub(super) fn result_details(source: Source<'_>) -> Option<Value> {
    result_of(source)?.details.map(Value::Object)
}

/// Returns whether a call failed. It can fail even if its result is not marked as an error.
pub(super) fn is_error(source: Source<'_>) -> Option<Value> {
    let of_result = result_of(source)?.is_error;
    Some((of_result || source.get("is_error") == Some(&Value::Bool(true))).into())
}

/// Writes a model, whose name is `provider/model` in our payload.
fn written_model(model: &Value) -> Option<Value> {
    let model = model.as_str()?;
    let (provider, id) = model.split_once('/').unwrap_or(("", model));
    Some(json!({ "id": id, "name": id, "provider": provider }))
}

pub(super) fn model(source: Source<'_>) -> Option<Value> {
    written_model(source.get("model")?)
}

pub(super) fn previous_model(source: Source<'_>) -> Option<Value> {
    written_model(source.get("previous_model")?)
}

/// Writes an entry of a session. The fields that are specific to its kind are next to the fields of all
/// entries.
fn written_entry(entry: &SessionEntry, timestamp: i64) -> Value {
    let mut written = JsonObject::new();
    written.insert("type".to_owned(), entry.kind.as_str().into());
    match &entry.data {
        Some(Value::Object(data)) => written.extend(particulars(&entry.kind, data)),
        Some(data) => {
            written.insert("data".to_owned(), data.clone());
        }
        None => {}
    }
    written.insert("id".to_owned(), json!(entry.id));
    written.insert("parentId".to_owned(), json!(entry.parent_id));
    if let Some(time) = entry.time {
        written.insert("timestamp".to_owned(), json!(time));
    }
    let timestamp = entry.time.map_or(timestamp, Timestamp::as_millisecond);
    match (&entry.message, &entry.data) {
        (Some(message), _) => {
            write_message(&mut written, message::written(message, None, timestamp));
        }
        (None, Some(data)) if entry.kind == "user_bash" => {
            write_message(&mut written, hidden_command(data, timestamp));
        }
        (None, _) => {}
    }
    Value::Object(written)
}

/// Adds the message of an entry. In pi, an entry with a message of an extension or with the summary of a branch has the
/// fields of the message itself, and a command of the user is a message.
fn write_message(entry: &mut JsonObject, message: Value) {
    let role = message.get("role").and_then(Value::as_str);
    let (kind, is_flat) = match role {
        Some("custom") => ("custom_message", true),
        Some("branchSummary") => ("branch_summary", true),
        Some("bashExecution") => ("message", false),
        _ => {
            entry.insert("message".to_owned(), message);
            return;
        }
    };
    entry.insert("type".to_owned(), kind.into());
    match message.as_object().filter(|_| is_flat) {
        Some(fields) => {
            let own = |key: &str| {
                [
                    "customType",
                    "content",
                    "display",
                    "details",
                    "summary",
                    "fromId",
                ]
                .contains(&key)
            };
            let fields = fields.iter().filter(|(key, _)| own(key));
            entry.extend(fields.map(|(key, value)| (key.clone(), value.clone())));
        }
        None => {
            entry.insert("message".to_owned(), message);
        }
    }
}

/// Writes a command that the user ran and that the model does not see. In pi, it is a message too.
fn hidden_command(data: &Value, timestamp: i64) -> Value {
    json!({
        "role": "bashExecution",
        "command": data.get("command"),
        "output": data.get("output"),
        "exitCode": data.get("exit_code"),
        "cancelled": data.get("cancelled"),
        "truncated": data.get("truncated"),
        "excludeFromContext": true,
        "timestamp": timestamp,
    })
}

/// Returns the fields that are specific to an entry's kind, with pi's names.
fn particulars(kind: &str, data: &JsonObject) -> JsonObject {
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let (model, level) = match kind {
        "model_change" => (text("model"), None),
        "thinking_level_change" => (None, text("level")),
        _ => (None, None),
    };
    if let Some(level) = level {
        return JsonObject::from_iter([("thinkingLevel".to_owned(), level.into())]);
    }
    if kind == "compaction" {
        let names = [
            ("summary", "summary"),
            ("first_kept_entry_id", "firstKeptEntryId"),
            ("tokens_before", "tokensBefore"),
        ];
        let copy = |(key, name): (&str, &str)| Some((name.to_owned(), data.get(key)?.clone()));
        return names.into_iter().filter_map(copy).collect();
    }
    let Some((provider, id)) = model.and_then(|model| model.split_once('/')) else {
        return data.clone();
    };
    let named = [("provider", provider), ("modelId", id)];
    let named = named.map(|(key, value)| (key.to_owned(), Value::from(value)));
    named.into_iter().collect()
}

/// Writes an entry of a session in the form that extensions read.
pub fn entry(entry: &SessionEntry) -> Value {
    written_entry(entry, 0)
}

fn entries(entries: &[SessionEntry], timestamp: i64) -> Vec<Value> {
    entries
        .iter()
        .map(|entry| written_entry(entry, timestamp))
        .collect()
}

pub(super) fn branch_entries(source: Source<'_>) -> Option<Value> {
    let branch: Vec<SessionEntry> = typed(source, "branch_entries")?;
    Some(entries(&branch, now(source)).into())
}

pub(super) fn summary_entry(source: Source<'_>) -> Option<Value> {
    let entry: SessionEntry = typed(source, "summary_entry")?;
    Some(written_entry(&entry, now(source)))
}

/// Returns the entry of a compaction with its summary. If no session stores the entry, its ids are empty.
pub(super) fn compaction_entry(source: Source<'_>) -> Option<Value> {
    let entry: SessionEntry = typed(source, "compaction_entry").unwrap_or_default();
    Some(json!({
        "type": "compaction",
        "id": entry.id,
        "parentId": entry.parent_id,
        "summary": source.get("summary")?,
        "tokensBefore": source.get("input_tokens"),
    }))
}

pub(super) fn compaction(source: Source<'_>) -> Option<Value> {
    let preparation: CompactionPreparation = typed(source, "preparation")?;
    let messages = message::written_all(&preparation.messages_to_summarize, now(source));
    Some(json!({
        "firstKeptEntryId": preparation.first_kept_entry_id,
        "messagesToSummarize": messages,
        "turnPrefixMessages": [],
        "isSplitTurn": false,
        "tokensBefore": preparation.tokens_before,
        "previousSummary": preparation.previous_summary,
    }))
}

pub(super) fn tree(source: Source<'_>) -> Option<Value> {
    let preparation: TreePreparation = typed(source, "preparation")?;
    Some(json!({
        "targetId": preparation.target_id,
        "oldLeafId": preparation.old_leaf_id,
        "commonAncestorId": preparation.common_ancestor_id,
        "entriesToSummarize": entries(&preparation.entries_to_summarize, now(source)),
        "userWantsSummary": preparation.user_wants_summary,
        "customInstructions": preparation.custom_instructions,
        "replaceInstructions": preparation.replace_instructions,
        "label": preparation.label,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_models_and_levels_are_written_by_their_names() {
        for (kind, data, expected) in [
            (
                "model_change",
                json!({"model": "openai/org/m", "name": "fast"}),
                json!({"provider": "openai", "modelId": "org/m"}),
            ),
            (
                "thinking_level_change",
                json!({"level": "high"}),
                json!({"thinkingLevel": "high"}),
            ),
            ("custom", json!({"level": "high"}), json!({"level": "high"})),
        ] {
            let written = entry(&SessionEntry {
                kind: kind.to_owned(),
                data: Some(data),
                ..SessionEntry::default()
            });
            for (key, value) in expected.as_object().unwrap() {
                assert_eq!(written[key], *value, "{kind}");
            }
            assert_eq!(written["type"], kind);
        }
    }
}
