//! Reads the object that a handler returned, and the fields that it changed in place.

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_engine::{ReadError, Reply};
use tenterhook_protocol::AnyEffect;
use tenterhook_protocol::JsonObject;

use super::event::{Answer, PiEvent};
use super::message;
use crate::returned::{self, NO_REASON, collect, rewrite, summary};

/// The worker's report about a handler that answered.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answered {
    /// The value that the handler returned; null if it returned nothing.
    #[serde(default)]
    result: Value,
    /// The fields of the event that the handler changed in place.
    #[serde(default)]
    changed: JsonObject,
}

pub(super) fn read(event: &PiEvent, reply: &Reply<'_>) -> Result<AnyEffect, ReadError> {
    let answered: Option<Answered> = returned::parse(reply)?;
    let mut effect = AnyEffect::default();
    let Some(answered) = answered.filter(|_| event.answer != Answer::None) else {
        return Ok(effect);
    };
    // The payload of a request may be anything; every other result is an object.
    if event.answer == Answer::ProviderRequest {
        let changed = answered.changed.get("payload");
        let payload = Some(&answered.result).filter(|payload| !payload.is_null());
        rewrite(&mut effect, "payload", payload.or(changed));
        return Ok(effect);
    }
    let fields = match answered.result {
        Value::Object(fields) => fields,
        Value::Null => JsonObject::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            return Err(ReadError::invalid(format!(
                "a handler of `{}` returned {other}, expected an object or nothing",
                event.name
            )));
        }
    };
    let fields = Fields {
        returned: fields,
        changed: answered.changed,
    };
    fill(event.answer, &fields, &mut effect)?;
    Ok(effect)
}

fn before_tree(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    fields.cancel(effect)?;
    effect.supply = fields.get("summary").map(summary).transpose()?;
    let mut change = |own, theirs| rewrite(effect, own, fields.get(theirs));
    change("custom_instructions", "customInstructions");
    change("replace_instructions", "replaceInstructions");
    change("label", "label");
    Ok(())
}

fn fill(answer: Answer, fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    match answer {
        Answer::None | Answer::ProviderRequest => {}
        Answer::Directory => rewrite(effect, "default_directory", fields.get("sessionDir")),
        Answer::Discover => {
            collect(effect, "skill_paths", fields.get("skillPaths"));
            collect(effect, "prompt_paths", fields.get("promptPaths"));
            collect(effect, "theme_paths", fields.get("themePaths"));
        }
        Answer::BeforeSwitch => fields.cancel(effect)?,
        Answer::BeforeFork => {
            fields.cancel(effect)?;
            let skip = fields.get("skipConversationRestore");
            rewrite(effect, "skip_conversation_restore", skip);
        }
        Answer::BeforeCompact => {
            fields.cancel(effect)?;
            effect.supply = fields.get("compaction").map(summary).transpose()?;
        }
        Answer::BeforeTree => before_tree(fields, effect)?,
        Answer::Input => input(fields, effect)?,
        Answer::UserBash => effect.supply = fields.get("result").map(bash_result).transpose()?,
        Answer::BeforeAgentStart => {
            rewrite(effect, "system_prompt", fields.get("systemPrompt"));
            if let Some(injected) = fields.get("message") {
                effect.inject.push(message::read_custom(injected)?);
            }
        }
        Answer::Context => {
            if let Some(messages) = fields.get("messages") {
                let messages = json!(message::read_all(messages)?);
                rewrite(effect, "messages", Some(&messages));
            }
        }
        Answer::MessageEnd => {
            if let Some(replaced) = fields.get("message") {
                let replaced = json!(message::read(replaced)?);
                rewrite(effect, "message", Some(&replaced));
            }
        }
        Answer::ToolCall => tool_call(fields, effect)?,
        Answer::ToolResult => tool_result(fields, effect)?,
    }
    Ok(())
}

/// The fields that a handler returned. Where it returned none, the fields that it changed in place.
struct Fields {
    returned: JsonObject,
    changed: JsonObject,
}

impl Fields {
    fn get(&self, key: &str) -> Option<&Value> {
        let returned = self.returned.get(key).filter(|value| !value.is_null());
        returned.or_else(|| self.changed.get(key))
    }

    fn stops(&self, flag: &str) -> Result<bool, ReadError> {
        returned::stops(flag, self.get(flag), is_true)
    }

    fn cancel(&self, effect: &mut AnyEffect) -> Result<(), ReadError> {
        effect.block = self.stops("cancel")?.then(|| NO_REASON.to_owned());
        Ok(())
    }

    fn reason(&self) -> String {
        returned::reason(self.get("reason"))
    }
}

/// Returns whether JavaScript treats a value as true in a condition.
fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(flag) => *flag,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

fn input(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    let Some(action) = fields.get("action") else {
        return Ok(());
    };
    match action.as_str() {
        Some("continue") => {}
        Some("handled") => effect.handled = true,
        Some("transform") => {
            rewrite(effect, "text", fields.get("text"));
            if let Some(images) = fields.get("images") {
                let images = images
                    .as_array()
                    .ok_or_else(|| ReadError::invalid("`images` is not a list"))?;
                let images: Result<Vec<_>, _> = images.iter().map(message::read_image).collect();
                rewrite(effect, "images", Some(&json!(images?)));
            }
        }
        _ => {
            return Err(ReadError::invalid(format!(
                "`action` is {action}, expected `continue`, `transform` or `handled`"
            )));
        }
    }
    Ok(())
}

fn bash_result(result: &Value) -> Result<Value, ReadError> {
    let output = result.get("output").and_then(Value::as_str);
    let output =
        output.ok_or_else(|| ReadError::invalid("`result.output` is missing or not a string"))?;
    let flag = |key: &str| result.get(key).is_some_and(is_true);
    Ok(json!({
        "output": output,
        "exit_code": result.get("exitCode"),
        "cancelled": flag("cancelled"),
        "truncated": flag("truncated"),
    }))
}

fn tool_call(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    let known = ["block", "reason", "input"];
    let unknown = fields
        .returned
        .keys()
        .find(|key| !known.contains(&key.as_str()));
    if let Some(key) = unknown {
        // The key may be a misspelt `block`, so ignoring it could let the call through.
        return Err(ReadError::invalid(format!(
            "a handler of `tool_call` returned the key `{}`, expected `block` and `reason`",
            key.escape_debug()
        )));
    }
    if fields.stops("block")? {
        effect.block = Some(fields.reason());
        return Ok(());
    }
    // As in pi, a returned `input` has no effect. Only a change to `event.input` in place counts.
    match fields.changed.get("input") {
        None => Ok(()),
        Some(Value::Object(input)) => {
            let input = input.clone();
            rewrite(effect, "whole_input", Some(&input.into()));
            Ok(())
        }
        Some(other) => Err(ReadError::invalid(format!(
            "`event.input` was changed to {other}, expected an object"
        ))),
    }
}

fn tool_result(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    if let Some(content) = fields.get("content") {
        let content = json!(message::read_blocks(content)?);
        rewrite(effect, "content", Some(&content));
    }
    // Unlike the other fields, a handler can remove the details by returning null.
    let taken_away = fields
        .returned
        .get("details")
        .filter(|value| value.is_null());
    let details = taken_away.or_else(|| fields.get("details"));
    rewrite(effect, "details", details.map(message::details).as_ref());
    rewrite(effect, "is_error", fields.get("isError"));
    Ok(())
}
