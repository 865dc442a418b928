//! Removes secrets from tool arguments, tool results and messages.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_engine::{Call, EventRef, HandlerError};
use tenterhook_protocol::event::{
    BeforeLlmCall, Context, MessageEnd, PostToolUse, PreToolUse, ToolInputTransform,
    ToolResponseTransform, UserInput,
};
use tenterhook_protocol::{
    AnyEffect, ContentBlock, Effect, EventKind, JsonObject, Message, OpaqueBlock,
};

use super::row::{Builtin, EventRunner, blocking, takes_none};
use tenterhook_journal::Redactor;

pub(super) const BUILTIN: Builtin = Builtin {
    name: "redact_secrets",
    events: &[
        EventKind::PreToolUse,
        EventKind::ToolInputTransform,
        EventKind::ToolResponseTransform,
        EventKind::PostToolUse,
        EventKind::BeforeLlmCall,
        EventKind::Context,
        EventKind::UserInput,
        EventKind::MessageEnd,
    ],
    arguments: "none",
    make: |setup| {
        takes_none(setup.arguments).map(|()| Box::new(RedactSecrets) as Box<dyn EventRunner>)
    },
};

struct RedactSecrets;

impl EventRunner for RedactSecrets {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let event = call.event.clone();
        Box::pin(async move {
            let effect = blocking(move || redact(&event)).await??;
            Ok(effect.map(|effect| *effect).unwrap_or_default())
        })
    }
}

/// Returns the changed strings. Each kind of event has them in different fields.
fn redact(event: &EventRef) -> Result<Option<Box<AnyEffect>>, HandlerError> {
    if let Some(event) = event.downcast::<ToolInputTransform>() {
        let Some((patch, notice)) = arguments(&event.tool_name, &event.tool_input)? else {
            return Ok(None);
        };
        let effect = Effect::<ToolInputTransform>::none().patch_input(patch);
        return Ok(effect.notice(notice).into_any());
    }
    if let Some(event) = event.downcast::<PreToolUse>() {
        let Some((patch, notice)) = arguments(&event.tool_name, &event.tool_input)? else {
            return Ok(None);
        };
        let effect = Effect::<PreToolUse>::none().patch_input(patch);
        return Ok(effect.notice(notice).into_any());
    }
    Ok(redact_text(event))
}

/// Returns the changed strings of an event without arguments.
fn redact_text(event: &EventRef) -> Option<Box<AnyEffect>> {
    if let Some(event) = event.downcast::<ToolResponseTransform>() {
        let text = changed(&event.tool_response)?;
        return Effect::<ToolResponseTransform>::none()
            .replace_response(text)
            .into_any();
    }
    if let Some(event) = event.downcast::<PostToolUse>() {
        return result(event).into_any();
    }
    if let Some(event) = event.downcast::<BeforeLlmCall>() {
        let messages = messages(&event.messages)?;
        return Effect::<BeforeLlmCall>::none()
            .replace_messages(messages)
            .into_any();
    }
    if let Some(event) = event.downcast::<Context>() {
        let messages = messages(&event.messages)?;
        return Effect::<Context>::none()
            .replace_messages(messages)
            .into_any();
    }
    if let Some(event) = event.downcast::<UserInput>() {
        return Effect::<UserInput>::none()
            .replace_text(changed(&event.text)?)
            .into_any();
    }
    let event = event.downcast::<MessageEnd>()?;
    let message = messages(std::slice::from_ref(&event.message))?.pop()?;
    Effect::<MessageEnd>::none()
        .replace_message(message)
        .into_any()
}

/// Returns the text without its secrets; `None` if it has no secrets.
fn changed(text: &str) -> Option<String> {
    match Redactor::shared().redact(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(redacted) => Some(redacted),
    }
}

/// Returns the top-level arguments that change, and the notice for the user.
///
/// # Errors
/// Fails if the name of an argument contains a secret, because a patch cannot remove a name.
fn arguments(tool: &str, input: &JsonObject) -> Result<Option<(JsonObject, String)>, HandlerError> {
    let redactor = Redactor::shared();
    let mut patch = JsonObject::new();
    for (name, value) in input {
        if let Some(name) = changed(name) {
            return Err(HandlerError::Other {
                problem: format!("the argument name `{name}` contains a secret"),
            });
        }
        let mut value = value.clone();
        if redactor.redact_field(name, &mut value) {
            patch.insert(name.clone(), value);
        }
    }
    let tool = redactor.redact(tool);
    let notice =
        format!("redact_secrets: redacted secret material from arguments of tool \"{tool}\"");
    Ok((!patch.is_empty()).then_some((patch, notice)))
}

/// Returns all messages if any of them contains a secret.
fn messages(messages: &[Message]) -> Option<Vec<Message>> {
    let redactor = Redactor::shared();
    let mut redacted = messages.to_vec();
    let mut any = false;
    for message in &mut redacted {
        any |= redactor.redact_text(&mut message.content);
        if let Some(reasoning) = &mut message.reasoning {
            any |= redactor.redact_text(reasoning);
        }
        for block in &mut message.parts {
            any |= redact_block(block);
        }
        any |= redact_object(&mut message.extra);
        for call in &mut message.tool_calls {
            any |= redact_name(&mut call.name);
            any |= redactor.redact_value(&mut call.arguments);
            any |= redact_object(&mut call.extra);
        }
    }
    any.then_some(redacted)
}

/// Replaces secrets in a block, including the fields of block types that the catalogue does not know.
fn redact_block(block: &mut ContentBlock) -> bool {
    match block {
        ContentBlock::Text { text } => Redactor::shared().redact_text(text),
        ContentBlock::Other(opaque) => {
            let mut object = opaque.as_object().clone();
            if !redact_object(&mut object) {
                return false;
            }
            *block = match OpaqueBlock::try_from(object) {
                Ok(opaque) => ContentBlock::Other(opaque),
                // Redaction removed the key `type`, so the block is not valid any more.
                Err(_) => ContentBlock::text("[redacted]"),
            };
            true
        }
        ContentBlock::Image { .. } | _ => false,
    }
}

/// Replaces secrets in every text of an object and in its field names.
fn redact_object(object: &mut JsonObject) -> bool {
    if object.is_empty() {
        return false;
    }
    let mut value = Value::Object(std::mem::take(object));
    let any = Redactor::shared().redact_value(&mut value);
    if let Value::Object(redacted) = value {
        *object = redacted;
    }
    any
}

/// Replaces secrets in a tool name. The result uses only characters that model services accept in names.
fn redact_name(name: &mut String) -> bool {
    let Some(redacted) = changed(name) else {
        return false;
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    *name = redacted.replace(|c: char| !is_plain(c), "_");
    true
}

fn result(event: &PostToolUse) -> Effect<PostToolUse> {
    let redactor = Redactor::shared();
    let mut effect = Effect::none();
    let mut content = event.result.content.clone();
    if content
        .iter_mut()
        .fold(false, |any, block| redact_block(block) | any)
    {
        effect = effect.replace_content(content);
    }
    if let Some(details) = &event.result.details {
        let mut details = Value::Object(details.clone());
        if redactor.redact_value(&mut details)
            && let Value::Object(details) = details
        {
            effect = effect.replace_details(Some(details));
        }
    }
    effect
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenterhook_protocol::{ToolCall, ToolResult};

    use super::*;

    /// A made-up key with the format of a cloud provider's keys.
    const SECRET: &str = "AKIAQ3EGTESTKEY7XPLZ";

    fn opaque() -> Vec<ContentBlock> {
        let blocks = json!([
            { "type": "document", "source": { "lines": [format!("key {SECRET}")] } },
            { "type": "text", "text": format!("key {SECRET}"), "cache_control": { "type": "ephemeral" } },
        ]);
        serde_json::from_value(blocks).unwrap()
    }

    #[test]
    fn a_secret_does_not_hide_in_an_opaque_part_of_a_message() {
        let call = ToolCall::new("c1", "shell", json!({})).with_extra("note", SECRET);
        let message = Message::user("hello")
            .with_parts(opaque())
            .with_extra("name", SECRET)
            .with_tool_calls(vec![call]);
        let redacted = messages(&[message]).unwrap();
        let text = serde_json::to_string(&redacted).unwrap();
        assert!(!text.contains(SECRET), "{text}");
        assert!(text.contains("cache_control"), "{text}");
    }

    #[test]
    fn a_secret_does_not_hide_in_an_opaque_part_of_a_tool_result() {
        let mut event = PostToolUse::new("read_file").with_result(ToolResult::default());
        event.result.content = opaque();
        let effect = result(&event).into_any().unwrap();
        let text = serde_json::to_string(&effect.rewrite).unwrap();
        assert!(
            !text.contains(SECRET) && text.contains("document"),
            "{text}"
        );
    }
}
