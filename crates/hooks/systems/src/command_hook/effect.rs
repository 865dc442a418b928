//! Reads the answers of hooks.

use serde_json::{Value, json};
use tenterhook_engine::{EventClass, EventInfo, EventKind, Permission, ReadError};
use tenterhook_protocol::capability::Capability;
use tenterhook_protocol::{AnyEffect, JsonObject, UniqueValue};

use super::dialect::Printed;
use crate::reply::stderr_tail;
use crate::settings_file::SettingsEvent;

/// The object that a hook printed: general keys, and keys of the event.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    general: JsonObject,
    specific: JsonObject,
}

/// The key of an event with its name.
const PASSED_NAME: &str = "hook_event_name";
/// The key with the keys of an event.
const SPECIFIC: &str = "hookSpecificOutput";
/// The key with the name of the event.
const EVENT_NAME: &str = "hookEventName";

impl Answer {
    /// Reads an object. Its part for the event must name the event.
    pub(crate) fn parse(event: &SettingsEvent, text: &str) -> Result<Self, ReadError> {
        let mut answer = Self::parse_object(text)?;
        if !answer.specific.is_empty() {
            let name = answer.take(EVENT_NAME).unwrap_or_default();
            check_name(event, &name)?;
        }
        Ok(answer)
    }

    /// Reads an object. Its part for the event may leave out the name of the event.
    pub(crate) fn parse_unnamed(event: &SettingsEvent, text: &str) -> Result<Self, ReadError> {
        let mut answer = Self::parse_object(text)?;
        if let Some(name) = answer.take(EVENT_NAME) {
            check_name(event, &name)?;
        }
        Ok(answer)
    }

    fn parse_object(text: &str) -> Result<Self, ReadError> {
        let invalid = |error: serde_json::Error| ReadError::invalid(error.to_string());
        let UniqueValue(value) = serde_json::from_str(text).map_err(invalid)?;
        let Value::Object(mut general) = value else {
            return Err(ReadError::invalid("the answer is not a JSON object"));
        };
        general.retain(|_, value| !value.is_null());
        let mut specific = match general.remove(SPECIFIC) {
            None => JsonObject::new(),
            Some(Value::Object(specific)) => specific,
            Some(other) => {
                return Err(ReadError::invalid(format!(
                    "`{SPECIFIC}` is {other}, expected an object"
                )));
            }
        };
        specific.retain(|_, value| !value.is_null());
        Ok(Self { general, specific })
    }

    /// Removes the keys of the event that the hook passed through, if it printed the event. Many hooks print what they
    /// read when they have no opinion.
    pub(crate) fn drop_event(&mut self, event: &SettingsEvent, keys: &[&str]) {
        if self
            .general
            .get(PASSED_NAME)
            .is_some_and(|name| name == event.name)
        {
            self.general
                .retain(|key, _| key != PASSED_NAME && !keys.contains(&key.as_str()));
        }
    }

    /// Removes the decision that a person must be asked. Returns its reason.
    pub(crate) fn take_question(&mut self) -> Result<Option<String>, ReadError> {
        if self.general.get("decision").is_none_or(|it| it != "ask") {
            return Ok(None);
        }
        self.general.remove("decision");
        Ok(Some(self.take_text("reason")?.unwrap_or_default()))
    }

    /// Removes a key, which may be in either part.
    pub(crate) fn take(&mut self, key: &str) -> Option<Value> {
        let specific = self.specific.remove(key);
        specific.or_else(|| self.general.remove(key))
    }

    /// Removes a key whose value must be a string.
    pub(crate) fn take_text(&mut self, key: &str) -> Result<Option<String>, ReadError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(key, &other, "a string")),
        }
    }

    /// Removes a key whose value must be an object.
    pub(crate) fn take_object(&mut self, key: &str) -> Result<Option<JsonObject>, ReadError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Object(object)) => Ok(Some(object)),
            Some(other) => Err(wrong(key, &other, "an object")),
        }
    }

    fn take_flag(&mut self, key: &str) -> Result<Option<bool>, ReadError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => Err(wrong(key, &other, "`true` or `false`")),
        }
    }

    /// Refuses keys that are left, if they could be a misspelt decision: the answer of a gate has none, or
    /// `strict` is set.
    pub(crate) fn check_rest(
        &self,
        info: &EventInfo,
        effect: &AnyEffect,
        strict: bool,
    ) -> Result<(), ReadError> {
        let mut keys = self.general.keys().chain(self.specific.keys());
        let is_unclear = info.class == EventClass::Gate && effect.is_empty();
        match keys.next() {
            Some(key) if strict || is_unclear => {
                Err(ReadError::invalid(format!("unknown key `{key}`")))
            }
            _ => Ok(()),
        }
    }
}

fn wrong(key: &str, found: &Value, expected: &str) -> ReadError {
    ReadError::invalid(format!("`{key}` is {found}, expected {expected}"))
}

fn check_name(event: &SettingsEvent, name: &Value) -> Result<(), ReadError> {
    if name == event.name {
        return Ok(());
    }
    Err(ReadError::invalid(format!(
        "`{EVENT_NAME}` is {name}, expected \"{}\"",
        event.name
    )))
}

/// What a block does to the result of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockedResult {
    /// The model sees the reason next to the result.
    AddsReason,
    /// The model sees the reason instead of the result.
    IsReplaced,
}

/// Reads the keys that the systems share. Keys that it does not know stay in the answer.
pub(crate) fn read_shared(
    info: &EventInfo,
    answer: &mut Answer,
    blocked_result: BlockedResult,
) -> Result<AnyEffect, ReadError> {
    let mut effect = AnyEffect::default();
    read_decision(info, answer, blocked_result, &mut effect)?;
    read_permission(info, answer, &mut effect)?;
    if let Some(text) = answer.take_text("additionalContext")? {
        add_context(info, text, &mut effect);
    }
    let reason = answer.take_text("stopReason")?;
    if answer.take_flag("continue")? == Some(false) {
        end_run(info, reason.unwrap_or_default(), &mut effect);
    }
    effect.notices.extend(answer.take_text("systemMessage")?);
    for ignored in ["suppressOutput", "terminalSequence"] {
        let _shown_only = answer.take(ignored);
    }
    Ok(effect)
}

fn read_decision(
    info: &EventInfo,
    answer: &mut Answer,
    blocked_result: BlockedResult,
    effect: &mut AnyEffect,
) -> Result<(), ReadError> {
    if info.kind == EventKind::PermissionRequest {
        return read_request(answer, effect);
    }
    let decision = answer.take_text("decision")?;
    let reason = answer.take_text("reason")?.unwrap_or_default();
    match decision.as_deref() {
        Some("block" | "deny") => block(info, reason, blocked_result, effect),
        Some("approve" | "allow") if info.honours(Capability::Permission) => {
            effect.set_permission(Permission::Allow, Some(reason));
        }
        None | Some("approve" | "allow") => {}
        Some(other) => {
            let problem = format!("`decision` is `{other}`, expected `block`");
            return Err(ReadError::invalid(problem));
        }
    }
    Ok(())
}

/// Reads the answer to a question that the person would be asked.
fn read_request(answer: &mut Answer, effect: &mut AnyEffect) -> Result<(), ReadError> {
    let Some(decision) = answer.take_object("decision")? else {
        return Ok(());
    };
    let get = |key: &str| decision.get(key).and_then(Value::as_str);
    match get("behavior") {
        Some("allow") => effect.set_permission(Permission::Allow, None),
        Some("deny") => {
            let message = get("message").map(str::to_owned);
            effect.set_permission(Permission::Deny, message);
        }
        other => {
            return Err(ReadError::invalid(format!(
                "`decision.behavior` is {other:?}, expected `allow` or `deny`"
            )));
        }
    }
    if let Some(input) = decision.get("updatedInput") {
        effect
            .rewrite
            .insert("tool_input".to_owned(), input.clone());
    }
    Ok(())
}

fn read_permission(
    info: &EventInfo,
    answer: &mut Answer,
    effect: &mut AnyEffect,
) -> Result<(), ReadError> {
    let decision = answer.take_text("permissionDecision")?;
    let reason = answer.take_text("permissionDecisionReason")?;
    let permission = match decision.as_deref() {
        None => None,
        Some("allow") => Some(Permission::Allow),
        Some("ask") => Some(Permission::Ask),
        Some("deny") => Some(Permission::Deny),
        Some(other) => {
            let problem =
                format!("`permissionDecision` is `{other}`, expected `allow`, `ask` or `deny`");
            return Err(ReadError::invalid(problem));
        }
    };
    if let Some(permission) = permission {
        effect.set_permission(permission, reason);
    }
    if info.kind == EventKind::PreToolUse
        && let Some(input) = answer.take_object("updatedInput")?
    {
        effect
            .rewrite
            .insert("whole_input".to_owned(), input.into());
    }
    Ok(())
}

/// Blocks an event in the strongest way that it honours.
pub(crate) fn block(
    info: &EventInfo,
    reason: String,
    blocked_result: BlockedResult,
    effect: &mut AnyEffect,
) {
    if info.class == EventClass::Gate {
        let stop = info.stopping_effect(reason);
        effect.permission = stop.permission.or(effect.permission.take());
        effect.block = stop.block.or(effect.block.take());
        effect.stop_run = stop.stop_run.or(effect.stop_run.take());
    } else if info.kind == EventKind::Stop {
        effect.follow_up.push(reason);
    } else if info.kind == EventKind::PostToolUse && blocked_result == BlockedResult::IsReplaced {
        replace_result(&reason, effect);
    } else {
        add_context(info, reason, effect);
    }
}

/// Replaces the result of a tool by a text.
pub(crate) fn replace_result(text: &str, effect: &mut AnyEffect) {
    let content = json!([{ "type": "text", "text": text }]);
    effect.rewrite.insert("content".to_owned(), content);
}

/// Adds a text for the model, or for the person if the event has no texts for the model.
pub(crate) fn add_context(info: &EventInfo, text: String, effect: &mut AnyEffect) {
    if text.is_empty() {
    } else if info.honours(Capability::Context) {
        effect.context.push(text);
    } else if info.kind == EventKind::Stop {
        effect.follow_up.push(text);
    } else {
        effect.notices.push(text);
    }
}

fn end_run(info: &EventInfo, reason: String, effect: &mut AnyEffect) {
    let reason = if reason.is_empty() {
        "a hook ended the run".to_owned()
    } else {
        reason
    };
    if info.honours(Capability::StopRun) {
        effect.stop_run = Some(reason);
    } else if info.class == EventClass::Gate {
        block(info, reason, BlockedResult::AddsReason, effect);
    } else {
        // The agent ends by itself.
        effect.follow_up.clear();
        effect.notices.push(reason);
    }
}

/// Returns the effect of exit status 2, which blocks with the text of standard error.
pub(crate) fn blocked_by_status(
    info: &EventInfo,
    printed: &Printed<'_>,
    blocked_result: BlockedResult,
) -> AnyEffect {
    let mut effect = AnyEffect::default();
    let reason = printed.stderr.trim();
    let reason = if reason.is_empty() {
        "a hook exited with status 2"
    } else {
        reason
    };
    block(info, reason.to_owned(), blocked_result, &mut effect);
    effect
}

/// From here on, a shell reports that it could not run a program, or that a signal killed it.
const NOT_RUN: i32 = 126;

/// Returns the failure for an exit status that the system documents as a warning. A program that did not run
/// or was killed judged nothing, so that the shell's statuses for it are failures of another kind.
pub(crate) fn documented(printed: &Printed<'_>) -> ReadError {
    let status = printed.status;
    let stderr = stderr_tail(printed.stderr.as_bytes());
    if status < NOT_RUN {
        ReadError::Documented { status, stderr }
    } else {
        ReadError::Status { status, stderr }
    }
}
