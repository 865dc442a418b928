//! Converts the answers of a service to [`ModelEvent`]s.

use genai::chat::{ChatStreamEvent, StreamEnd};
use serde_json::Value;
use tenterhook_protocol::{JsonObject, ToolCall, Usage};

use super::failure::model_error;
use super::known_calls::KnownCalls;
use crate::error::ProviderError;
use crate::provider::ModelEvent;

/// Converts the answers of one service.
pub(super) struct Reader {
    pub(super) known: KnownCalls,
    /// Whether the service gives a reason for the end of each answer. The library reports an end even if the stream
    /// was cut off. In that case, only the missing reason reveals it.
    pub(super) names_its_end: bool,
}

impl Reader {
    pub(super) fn events(
        &self,
        event: genai::Result<ChatStreamEvent>,
    ) -> Vec<Result<ModelEvent, ProviderError>> {
        match event {
            Ok(ChatStreamEvent::Chunk(chunk)) => vec![Ok(ModelEvent::Text(chunk.content))],
            Ok(ChatStreamEvent::ReasoningChunk(chunk)) => {
                vec![Ok(ModelEvent::Reasoning(chunk.content))]
            }
            Ok(ChatStreamEvent::End(end))
                if self.names_its_end && end.captured_stop_reason.is_none() =>
            {
                Vec::new()
            }
            Ok(ChatStreamEvent::End(end)) => self.end_events(end),
            Ok(
                ChatStreamEvent::Start
                | ChatStreamEvent::ThoughtSignatureChunk(_)
                | ChatStreamEvent::ToolCallChunk(_)
                | ChatStreamEvent::Heartbeat,
            ) => Vec::new(),
            Err(error) => vec![Err(model_error(&error))],
        }
    }

    /// Tool calls are read at the end, after the library has joined their parts.
    fn end_events(&self, end: StreamEnd) -> Vec<Result<ModelEvent, ProviderError>> {
        let usage = end.captured_usage.as_ref().map(usage);
        let mut events = Vec::new();
        for call in end.captured_into_tool_calls().unwrap_or_default() {
            events.push(Ok(ModelEvent::ToolCall(ToolCall::new(
                self.known.adopt(call.call_id, call.thought_signatures),
                call.fn_name,
                object_or_raw(call.fn_arguments),
            ))));
        }
        events.extend(usage.map(|usage| Ok(ModelEvent::Usage(usage))));
        events.push(Ok(ModelEvent::End));
        events
    }
}

/// Returns an empty object for missing arguments, which some services send as an empty text or null.
fn object_or_raw(arguments: Value) -> Value {
    match &arguments {
        Value::Null => Value::Object(JsonObject::new()),
        Value::String(text) if text.trim().is_empty() => Value::Object(JsonObject::new()),
        Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => arguments,
    }
}

fn usage(usage: &genai::chat::Usage) -> Usage {
    let count = |tokens: Option<i32>| tokens.and_then(|tokens| u64::try_from(tokens).ok());
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    Usage::new(
        count(usage.prompt_tokens).unwrap_or_default(),
        count(usage.completion_tokens).unwrap_or_default(),
    )
    .with_cached_input_tokens(
        count(prompt.and_then(|details| details.cached_tokens)).unwrap_or_default(),
    )
    .with_cached_write_tokens(
        count(prompt.and_then(|details| details.cache_creation_tokens)).unwrap_or_default(),
    )
    .with_reasoning_tokens(count(
        completion.and_then(|details| details.reasoning_tokens),
    ))
}
