//! Takes secrets out of tool arguments, tool results, and messages.

use std::borrow::Cow;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook::{Call, EventRef, HandlerError};
use tenterhook_protocol::event::{
    BeforeLlmCall, Context, MessageEnd, PostToolUse, PreToolUse, ToolInputTransform,
    ToolResponseTransform, UserInput,
};
use tenterhook_protocol::{AnyEffect, ContentBlock, Effect, EventKind, JsonObject, Message};

use super::{Builtin, Run, blocking, takes_none};
use crate::secret::Redactor;

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
    make: |setup| takes_none(setup.arguments).map(|()| Box::new(RedactSecrets) as Box<dyn Run>),
};

struct RedactSecrets;

impl Run for RedactSecrets {
    fn run<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Result<AnyEffect, HandlerError>> {
        let event = call.event.clone();
        Box::pin(async move {
            let effect = blocking(move || redact(&event)).await??;
            Ok(effect.map(|effect| *effect).unwrap_or_default())
        })
    }
}

/// Returns what changes; each event carries its texts elsewhere.
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

/// Returns what changes of an event without arguments.
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

/// Returns a text without its secrets; `None` if it has none.
fn changed(text: &str) -> Option<String> {
    match Redactor::shared().redact(text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(redacted) => Some(redacted),
    }
}

/// Returns the top-level arguments that change, and what the human is told.
///
/// # Errors
/// When the name of an argument holds a secret: a patch cannot take the name out.
fn arguments(tool: &str, input: &JsonObject) -> Result<Option<(JsonObject, String)>, HandlerError> {
    let redactor = Redactor::shared();
    let mut patch = JsonObject::new();
    for (name, value) in input {
        if let Some(name) = changed(name) {
            return Err(HandlerError::Other {
                problem: format!("the name of the argument `{name}` holds a secret"),
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

/// Returns all messages if there is a secret in any.
fn messages(messages: &[Message]) -> Option<Vec<Message>> {
    let redactor = Redactor::shared();
    let mut redacted = messages.to_vec();
    let mut any = false;
    for message in &mut redacted {
        any |= redactor.redact_text(&mut message.content);
        if let Some(reasoning) = &mut message.reasoning {
            any |= redactor.redact_text(reasoning);
        }
        for call in &mut message.tool_calls {
            any |= redact_name(&mut call.name);
            any |= redactor.redact_value(&mut call.arguments);
        }
    }
    any.then_some(redacted)
}

/// Replaces secrets in the name of a tool, which is still a name then: services refuse others.
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
    let texts = content.iter_mut().filter_map(|block| match block {
        ContentBlock::Text { text } => Some(text),
        ContentBlock::Image { .. } | _ => None,
    });
    if texts.fold(false, |any, text| redactor.redact_text(text) | any) {
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
