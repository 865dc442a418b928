//! Converts tool results to and from kodelet's structured form.

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_engine::{EventRef, ReadError};
use tenterhook_protocol::event::{PostToolUse, ToolExecutionUpdate};
use tenterhook_protocol::{AnyEffect, ContentBlock, JsonObject};

/// The types of metadata that kodelet knows.
const METADATA_TYPES: [&str; 17] = [
    "bash",
    "file_read",
    "file_write",
    "file_edit",
    "apply_patch",
    "grep_tool",
    "glob_tool",
    "mcp_tool",
    "custom_tool",
    "view_image",
    "subagent",
    "openai_web_search",
    "web_fetch",
    "read_conversation",
    "code_execution",
    "skill",
    "blocked",
];

/// The number of nanoseconds in a millisecond. kodelet's durations are in nanoseconds.
const NANOSECONDS: u64 = 1_000_000;

/// Returns the tool result of an event in kodelet's form.
pub(crate) fn written(event: &EventRef, payload: &JsonObject) -> Value {
    let Some(used) = event.downcast::<PostToolUse>() else {
        return Value::Null;
    };
    let text = used.result.joined_text();
    let mut output = JsonObject::new();
    let mut add = |key: &str, value: Value| output.insert(key.to_owned(), value);
    add("toolName", used.tool_name.as_str().into());
    add("success", (!used.result.is_error && !used.blocked).into());
    let duration = used.duration_ms.saturating_mul(NANOSECONDS);
    if used.blocked {
        let reason = text
            .split_once(" Reason: ")
            .map_or(&*text, |(_, reason)| reason);
        add("error", format!("blocked by hook: {reason}").into());
        add("metadataType", "blocked".into());
        add(
            "metadata",
            json!({ "tool_name": used.tool_name, "reason": reason }),
        );
    } else {
        if used.result.is_error {
            add("error", text.as_str().into());
        }
        if used.tool_category.as_deref() == Some("shell") {
            add("metadataType", "bash".into());
            add("metadata", bash(event, payload, &text, duration));
        } else {
            add("metadataType", "custom_tool".into());
            add(
                "metadata",
                json!({ "executionTime": duration, "output": text }),
            );
        }
    }
    let timestamp = event.envelope().timestamp().to_string();
    add("timestamp", timestamp.into());
    Value::Object(output)
}

/// Returns the partial result of a running tool in kodelet's form.
pub(crate) fn partial(event: &EventRef) -> Value {
    let Some(update) = event.downcast::<ToolExecutionUpdate>() else {
        return Value::Null;
    };
    json!({
        "toolName": update.tool_name,
        "success": !update.partial_result.is_error,
        "metadataType": "custom_tool",
        "metadata": { "executionTime": 0, "output": update.partial_result.joined_text() },
        "timestamp": event.envelope().timestamp().to_string(),
    })
}

fn bash(event: &EventRef, payload: &JsonObject, text: &str, duration: u64) -> Value {
    let input = payload.get("tool_input");
    let argument = |names: [&str; 2]| {
        let values = names.iter().filter_map(|name| input?.get(*name)?.as_str());
        values.into_iter().next().map(str::to_owned)
    };
    let status = payload
        .get("result")
        .and_then(|result| result.get("details")?.get("exit_status"))
        .and_then(Value::as_i64);
    let cwd = || event.envelope().origin.cwd.to_string_lossy().into_owned();
    let mut metadata = json!({
        "command": argument(["cmd", "command"]).unwrap_or_default(),
        "output": text,
        "executionTime": duration,
        "workingDir": argument(["cwd", "working_dir"]).unwrap_or_else(cwd),
    });
    if let (Some(status), Some(object)) = (status, metadata.as_object_mut()) {
        object.insert("exitCode".to_owned(), status.into());
    }
    metadata
}

#[derive(Deserialize)]
struct Output {
    #[serde(rename = "toolName")]
    tool_name: String,
    success: bool,
    #[serde(default)]
    error: Option<String>,
    #[serde(default, rename = "metadataType")]
    metadata_type: Option<String>,
    #[serde(default)]
    metadata: Option<JsonObject>,
    #[serde(default)]
    timestamp: Option<String>,
}

/// Reads a tool result with which a hook replaces the original result.
pub(crate) fn read(value: &Value, effect: &mut AnyEffect) -> Result<(), ReadError> {
    let output: Output = Deserialize::deserialize(value)
        .map_err(|error| ReadError::invalid(format!("`output`: {error}")))?;
    output.check()?;
    let content = vec![ContentBlock::text(output.text())];
    let content = serde_json::to_value(content)
        .map_err(|error| ReadError::invalid(format!("`output`: {error}")))?;
    effect.rewrite.insert("content".to_owned(), content);
    let is_error = Value::Bool(!output.success);
    effect.rewrite.insert("is_error".to_owned(), is_error);
    Ok(())
}

/// Reads back a tool result that a hook received, and the facts about the call that it contains.
pub(crate) fn read_back(shown: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let output: Output = Deserialize::deserialize(shown)
        .map_err(|error| ReadError::invalid(format!("the output of the tool: {error}")))?;
    let metadata = |key: &str| output.metadata.as_ref()?.get(key);
    let kind = output.metadata_type.as_deref().unwrap_or_default();
    let mut result = json!({
        "content": [ContentBlock::text(output.text())],
        "is_error": !output.success,
    });
    if let (Some(result), Some(status)) = (result.as_object_mut(), metadata("exitCode")) {
        result.insert("details".to_owned(), json!({ "exit_status": status }));
    }
    payload.insert("result".to_owned(), result);
    if kind == "blocked" {
        payload.insert("blocked".to_owned(), true.into());
    }
    if kind == "bash" {
        payload.insert("tool_category".to_owned(), "shell".into());
    }
    if let Some(duration) = metadata("executionTime").and_then(Value::as_u64) {
        payload.insert("duration_ms".to_owned(), (duration / NANOSECONDS).into());
    }
    Ok(())
}

/// Reads back a partial tool result that a hook received.
pub(crate) fn read_back_partial(shown: &Value, payload: &mut JsonObject) -> Result<(), ReadError> {
    let output: Output = Deserialize::deserialize(shown)
        .map_err(|error| ReadError::invalid(format!("the output of the tool: {error}")))?;
    let result = json!({
        "content": [ContentBlock::text(output.text())],
        "is_error": !output.success,
    });
    payload.insert("partial_result".to_owned(), result);
    Ok(())
}

impl Output {
    fn check(&self) -> Result<(), ReadError> {
        if self.tool_name.is_empty() {
            return Err(ReadError::invalid("`output.toolName` is empty"));
        }
        if let Some(timestamp) = &self.timestamp
            && timestamp.parse::<jiff::Timestamp>().is_err()
        {
            return Err(ReadError::invalid(format!(
                "`output.timestamp` is `{timestamp}`, expected a time such as `2026-01-31T12:00:00Z`"
            )));
        }
        if self.metadata.is_none() {
            return Ok(());
        }
        let kind = self.metadata_type.as_deref().unwrap_or_default();
        if METADATA_TYPES.contains(&kind) {
            return Ok(());
        }
        Err(ReadError::invalid(format!(
            "`output.metadataType` is `{kind}`, expected one of {}",
            METADATA_TYPES.map(|known| format!("`{known}`")).join(", ")
        )))
    }

    /// Returns the text for the model: the text in the metadata, or the error if there is no metadata.
    fn text(&self) -> String {
        let Some(metadata) = &self.metadata else {
            return self.error.clone().unwrap_or_default();
        };
        let text = ["output", "contentText", "content", "reason"]
            .iter()
            .find_map(|key| metadata.get(*key)?.as_str());
        if let Some(text) = text {
            return text.to_owned();
        }
        let lines = metadata.get("lines").and_then(Value::as_array);
        let lines = lines.map(|lines| lines.iter().filter_map(Value::as_str).collect::<Vec<_>>());
        lines.map_or_else(
            || Value::Object(metadata.clone()).to_string(),
            |lines| lines.join("\n"),
        )
    }
}
