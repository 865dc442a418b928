//! Reads the answer of a finished hook.

use serde_json::Value;
use tenterhook_engine::{EventInfo, ReadError, Reply};
use tenterhook_protocol::AnyEffect;

use super::event::{EVENTS, row};
use super::output;
use crate::entries::Entries;
use crate::reply::{stderr_tail, too_long};

pub(super) fn read(
    info: &EventInfo,
    reply: &Reply<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    let text = match *reply {
        Reply::Exited {
            status: 0,
            stdout,
            stdout_omitted: 0,
            ..
        } => stdout,
        Reply::Exited {
            status: 0,
            stdout_omitted,
            ..
        } => return Err(too_long(stdout_omitted)),
        Reply::Exited { status, stderr, .. } => {
            return Err(ReadError::Status {
                status,
                stderr: stderr_tail(stderr),
            });
        }
        Reply::Returned { json } => json,
        Reply::Http { body } => body,
    };
    let text =
        std::str::from_utf8(text).map_err(|_| ReadError::invalid("the answer is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(AnyEffect::default());
    }
    let answer: Option<Entries> =
        serde_json::from_str(text).map_err(|error| ReadError::invalid(error.to_string()))?;
    let mut answer = answer.unwrap_or_default();
    let own = row(info.kind).map_or(&[][..], |row| row.keys);
    let known = || EVENTS.iter().flat_map(|event| event.keys.iter().copied());
    answer.check(own, known, strict)?;
    effect(info, &mut answer)
}

fn effect(info: &EventInfo, answer: &mut Entries) -> Result<AnyEffect, ReadError> {
    if let Some(true) = answer.take("blocked")? {
        let reason: Option<String> = answer.take("reason")?;
        return Ok(info.stopping_effect(reason.unwrap_or_default()));
    }
    let mut effect = AnyEffect::default();
    rewrite_input(answer, &mut effect)?;
    if let Some(value) = answer.take_value("output") {
        output::read(&value, &mut effect)?;
    }
    let texts: Option<Vec<String>> = answer.take("follow_up_messages")?;
    let texts = texts.unwrap_or_default().into_iter();
    effect.follow_up = texts.filter(|text| !text.trim().is_empty()).collect();
    Ok(effect)
}

/// Reads the key `input`, which replaces all arguments of a tool.
pub(super) fn rewrite_input(answer: &mut Entries, effect: &mut AnyEffect) -> Result<(), ReadError> {
    match answer.take_value("input") {
        None => Ok(()),
        Some(input @ Value::Object(_)) => {
            effect.rewrite.insert("whole_input".to_owned(), input);
            Ok(())
        }
        Some(_) => Err(ReadError::invalid("`input` is not a JSON object")),
    }
}
