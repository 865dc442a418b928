//! Converts a conversation to the client library's types.

use std::collections::BTreeMap;

use genai::adapter::AdapterKind;
use genai::chat::{
    ChatMessage, ChatRequest, ChatResponseFormat, ContentPart, JsonSpec, MessageContent,
    ReasoningEffort, Tool, ToolResponse,
};
use tenterhook_protocol::{ContentBlock, Message, Role, ToolSpec};
use tenterhook_runners::model::ReplySchema;

use super::known_calls::KnownCalls;
use crate::provider::ModelRequest;
use crate::thinking::ThinkingLevel;

/// Returns how to request the form of the answer. The library supports no schemas for Ollama.
pub(super) fn reply_format(adapter: AdapterKind, schema: &ReplySchema) -> ChatResponseFormat {
    if adapter == AdapterKind::Ollama {
        return ChatResponseFormat::JsonMode;
    }
    JsonSpec::new(schema.name.clone(), schema.schema.clone()).into()
}

pub(super) fn effort(level: ThinkingLevel) -> ReasoningEffort {
    match level {
        ThinkingLevel::Off => ReasoningEffort::Zero,
        ThinkingLevel::Minimal => ReasoningEffort::Minimal,
        ThinkingLevel::Low => ReasoningEffort::Low,
        ThinkingLevel::Medium => ReasoningEffort::Medium,
        ThinkingLevel::High => ReasoningEffort::High,
        ThinkingLevel::XHigh => ReasoningEffort::XHigh,
    }
}

pub(super) fn chat_request(request: ModelRequest, known: &KnownCalls) -> ChatRequest {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let mut messages: Vec<ChatMessage> = Vec::new();
    let mut results: Vec<ToolResponse> = Vec::new();
    for message in request.messages.into_vec() {
        if message.role != Role::Tool && !results.is_empty() {
            // Services expect all results of one answer in a single message.
            messages.push(std::mem::take(&mut results).into());
        }
        for call in &message.tool_calls {
            names.insert(call.id.to_string(), call.name.clone());
        }
        match message.role {
            Role::System => messages.push(ChatMessage::system(message.content)),
            Role::Assistant => messages.push(assistant_message(message, known)),
            Role::Tool => results.push(tool_response(&message, &names)),
            Role::User | _ => messages.push(user_message(message)),
        }
    }
    if !results.is_empty() {
        messages.push(results.into());
    }
    let tools: Vec<Tool> = request.tools.into_iter().map(tool).collect();
    let chat = ChatRequest::new(messages);
    if tools.is_empty() {
        chat
    } else {
        chat.with_tools(tools)
    }
}

fn tool(spec: ToolSpec) -> Tool {
    Tool::new(spec.name)
        .with_description(spec.description)
        .with_schema(spec.schema)
}

fn user_message(message: Message) -> ChatMessage {
    let mut parts = vec![ContentPart::Text(message.content)];
    for image in message.images {
        parts.push(ContentPart::from_binary_base64(
            image.media_type,
            image.data,
            None,
        ));
    }
    parts.extend(message.parts.into_iter().filter_map(part));
    ChatMessage::user(MessageContent::from_parts(parts))
}

/// Converts a part of a message. Of block types that the catalogue does not know, only the text is sent.
fn part(block: ContentBlock) -> Option<ContentPart> {
    match block {
        ContentBlock::Image { image } => Some(ContentPart::from_binary_base64(
            image.media_type,
            image.data,
            None,
        )),
        ContentBlock::Text { .. } | ContentBlock::Other(_) | _ => block
            .as_text()
            .map(|text| ContentPart::Text(text.to_owned())),
    }
}

fn assistant_message(message: Message, known: &KnownCalls) -> ChatMessage {
    let mut parts = Vec::new();
    if !message.content.is_empty() {
        parts.push(ContentPart::Text(message.content));
    }
    parts.extend(message.parts.into_iter().filter_map(part));
    for call in message.tool_calls {
        parts.push(ContentPart::ToolCall(genai::chat::ToolCall {
            thought_signatures: known.signatures(call.id.as_str()),
            call_id: call.id.to_string(),
            fn_name: call.name,
            fn_arguments: call.arguments,
        }));
    }
    ChatMessage::assistant(MessageContent::from_parts(parts))
}

fn tool_response(message: &Message, names: &BTreeMap<String, String>) -> ToolResponse {
    let id = message
        .tool_call_id
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let response = ToolResponse::new(id.clone(), message.content.clone());
    match names.get(&id) {
        Some(name) => response.with_fn_name(name.clone()),
        None => response,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use tenterhook_protocol::ToolCall;

    use super::*;

    #[test]
    fn results_of_one_answer_go_into_one_message() {
        let call = |id: &str| ToolCall::new(id, "shell", Value::Null);
        let tool_calls = vec![call("a"), call("b")];
        let messages = vec![
            Message::user("do"),
            Message::assistant("").with_tool_calls(tool_calls),
            Message::tool("a".into(), "one", false),
            Message::tool("b".into(), "two", false),
            Message::user("more"),
        ];
        let chat = chat_request(
            ModelRequest {
                messages: messages.into(),
                ..ModelRequest::default()
            },
            &KnownCalls::default(),
        );
        assert_eq!(chat.messages.len(), 4);
        let results = chat.messages[2].content.tool_responses();
        let names: Vec<_> = results
            .iter()
            .map(|result| (&*result.call_id, result.fn_name.as_deref()))
            .collect();
        assert_eq!(names, [("a", Some("shell")), ("b", Some("shell"))]);
    }
}
