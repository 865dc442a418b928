//! Reads the object that a handler returned.

use crate::tool_names::is_true_in_python;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_engine::{ReadError, Reply};
use tenterhook_protocol::{AnyEffect, JsonObject};

use super::event::{Answer, OperatorEvent};
use super::part;
use crate::returned::{self, collect, rewrite, summary};

/// The worker's description of the object that a handler returned.
#[derive(Deserialize)]
struct Returned {
    class: String,
    #[serde(default)]
    fields: JsonObject,
}

pub(super) fn read(event: &OperatorEvent, reply: &Reply<'_>) -> Result<AnyEffect, ReadError> {
    let returned: Option<Returned> = returned::parse(reply)?;
    let (Some(returned), Some(class)) = (returned, event.answer.class()) else {
        return Ok(AnyEffect::default());
    };
    if returned.class != class {
        let found = returned.class;
        return Err(ReadError::invalid(format!(
            "a handler of `{}` returned a `{found}`, expected a `{class}` or None",
            event.name
        )));
    }
    let fields = Fields(returned.fields);
    let mut effect = AnyEffect::default();
    match event.answer {
        Answer::None => {}
        Answer::ToolCall => tool_call(&fields, &mut effect)?,
        Answer::ToolResult => tool_result(&fields, &mut effect)?,
        Answer::Context => rewrite(&mut effect, "messages", fields.get("messages")),
        Answer::BeforeAgentStart => {
            rewrite(&mut effect, "system_prompt", fields.get("system_prompt"));
        }
        Answer::BeforeSwitch | Answer::BeforeFork => cancel(&fields, &mut effect)?,
        Answer::BeforeCompact => {
            cancel(&fields, &mut effect)?;
            effect.supply = fields.get("compaction").map(summary).transpose()?;
        }
        Answer::BeforeTree => before_tree(&fields, &mut effect)?,
        Answer::Input => input(&fields, &mut effect)?,
        Answer::Receive => receive(&fields, &mut effect)?,
        Answer::Send => {
            let parts = fields.get("parts").map(part::read).transpose()?;
            collect(&mut effect, "parts", parts.map(Value::from).as_ref());
        }
        Answer::MessageEnd => rewrite(&mut effect, "message", fields.get("message")),
        Answer::Connect => connect(&fields, &mut effect)?,
        Answer::Discover => {
            for list in ["skill_paths", "prompt_paths", "theme_paths"] {
                collect(&mut effect, list, fields.get(list));
            }
        }
    }
    Ok(effect)
}

/// The fields of a result. A field that is `None` counts as not set.
struct Fields(JsonObject);

impl Fields {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn stops(&self, flag: &str) -> Result<bool, ReadError> {
        returned::stops(flag, self.get(flag), is_true_in_python)
    }

    fn text(&self, key: &str) -> Result<Option<&str>, ReadError> {
        let text = |value: &'_ Value| value.is_string();
        match self.get(key) {
            Some(value) if !text(value) => Err(ReadError::invalid(format!(
                "`{key}` is {value}, expected a string"
            ))),
            value => Ok(value.and_then(Value::as_str)),
        }
    }

    fn reason(&self) -> String {
        returned::reason(self.get("reason"))
    }

    /// Returns the value of `action`: `continue` or one of the two `others`.
    fn action(&self, others: [&'static str; 2]) -> Result<&str, ReadError> {
        let action = self.text("action")?.unwrap_or("continue");
        if action == "continue" || others.contains(&action) {
            return Ok(action);
        }
        Err(ReadError::invalid(format!(
            "`action` is `{action}`, expected `continue`, `{}` or `{}`",
            others[0], others[1]
        )))
    }
}

fn cancel(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    effect.block = fields.stops("cancel")?.then(|| fields.reason());
    Ok(())
}

/// Reads `allow`. Every value that is false in Python refuses, and only `True` allows.
fn connect(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    match fields.get("allow") {
        None | Some(Value::Bool(true)) => Ok(()),
        Some(allow) if !is_true_in_python(allow) => {
            effect.block = Some(fields.reason());
            Ok(())
        }
        Some(other) => Err(ReadError::invalid(format!(
            "`allow` is {other}, expected true or false"
        ))),
    }
}

fn tool_call(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    if fields.stops("block")? {
        effect.block = Some(fields.reason());
        return Ok(());
    }
    match fields.get("params") {
        Some(params) if !params.is_object() => Err(ReadError::invalid("`params` is not a dict")),
        params => {
            rewrite(effect, "whole_input", params);
            Ok(())
        }
    }
}

fn tool_result(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    if let Some(content) = fields.text("content")? {
        let blocks = json!([{ "type": "text", "text": content }]);
        rewrite(effect, "content", Some(&blocks));
    }
    rewrite(effect, "is_error", fields.get("is_error"));
    // A handler cannot revoke `terminate`: a result that already ends the run still ends it.
    if fields.stops("terminate")? {
        rewrite(effect, "terminate", Some(&Value::Bool(true)));
    }
    Ok(())
}

fn before_tree(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    cancel(fields, effect)?;
    effect.supply = fields.get("summary").map(summary).transpose()?;
    for field in ["custom_instructions", "replace_instructions", "label"] {
        rewrite(effect, field, fields.get(field));
    }
    Ok(())
}

fn input(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    match fields.action(["transform", "handled"])? {
        "transform" => rewrite(effect, "text", fields.get("text")),
        "handled" => effect.handled = true,
        _ => {}
    }
    Ok(())
}

fn receive(fields: &Fields, effect: &mut AnyEffect) -> Result<(), ReadError> {
    match fields.action(["transform", "reject"])? {
        "reject" => effect.block = Some(fields.text("reason")?.unwrap_or_default().to_owned()),
        "transform" => {
            rewrite(effect, "text", fields.get("text"));
            if let Some(parts) = fields.get("parts") {
                let parts = part::read(parts)?;
                // The parts determine the text, even if the handler also returns `text`.
                let text = part::joined_text(&parts).into();
                rewrite(effect, "text", Some(&text));
                rewrite(effect, "parts", Some(&parts.into()));
            }
        }
        _ => {}
    }
    Ok(())
}
