//! Reads the answer of an extension.

use serde::Deserialize;
use tenterhook_engine::event::BeforeAgentStart;
use tenterhook_engine::{EventInfo, EventKind, EventRef, ReadError, Reply, ToolNames as _};
use tenterhook_protocol::AnyEffect;

use super::event::{EVENTS, row};
use crate::entries::Entries;
use crate::kodelet::output;
use crate::kodelet::read::rewrite_input;
use crate::kodelet::tools::TOOLS;
use crate::reply::returned_json;

/// Reads an answer. `event` is the event that it answers, if it is known.
pub(super) fn read(
    info: &EventInfo,
    event: Option<&EventRef>,
    reply: &Reply<'_>,
    strict: bool,
) -> Result<AnyEffect, ReadError> {
    let answer: Option<Entries> = serde_json::from_slice(returned_json(reply)?)
        .map_err(|error| ReadError::invalid(error.to_string()))?;
    let mut answer = answer.unwrap_or_default();
    let own = row(info.kind).map_or(&[][..], |row| row.keys);
    let known = || EVENTS.iter().flat_map(|event| event.keys.iter().copied());
    answer.check(own, known, strict)?;
    if let Some(block) = answer.take::<Block>("block")? {
        return Ok(info.stopping_effect(block.reason.unwrap_or_default()));
    }
    let mut effect = AnyEffect::default();
    if let Some(message) = answer.take::<String>("message")? {
        effect.rewrite.insert("text".to_owned(), message.into());
    }
    rewrite_input(&mut answer, &mut effect)?;
    if let Some(value) = answer.take_value("output") {
        if info.kind == EventKind::ToolExecutionUpdate {
            return Err(ReadError::invalid(
                "`output` cannot be changed on `tool.update`; answer `tool.result` with it instead",
            ));
        }
        output::read(&value, &mut effect)?;
    }
    if let Some(patch) = answer.take::<PromptPatch>("systemPrompt")? {
        let prompt = patch.applied(event)?;
        effect
            .rewrite
            .extend(prompt.map(|text| ("system_prompt".to_owned(), text.into())));
    }
    if let Some(tools) = answer.take::<Tools>("tools")? {
        tools.select(&mut effect);
    }
    let texts: Option<Vec<String>> = answer.take("followUpMessages")?;
    let texts = texts.unwrap_or_default().into_iter();
    effect.follow_up = texts.filter(|text| !text.trim().is_empty()).collect();
    Ok(effect)
}

#[derive(Deserialize)]
struct Block {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct PromptPatch {
    #[serde(default)]
    replace: Option<String>,
    #[serde(default)]
    prepend: Option<String>,
    #[serde(default)]
    append: Option<String>,
}

impl PromptPatch {
    /// Returns the patched prompt, or `None` if the patch changes nothing.
    fn applied(self, event: Option<&EventRef>) -> Result<Option<String>, ReadError> {
        let around = [&self.prepend, &self.append];
        if around
            .iter()
            .all(|text| text.as_deref().unwrap_or_default().is_empty())
        {
            return Ok(self.replace);
        }
        let current = || {
            let start = event?.downcast::<BeforeAgentStart>()?;
            Some(start.system_prompt.clone())
        };
        let prompt = self.replace.or_else(current).ok_or_else(|| {
            ReadError::invalid(
                "`systemPrompt` has `prepend` or `append`, but the current prompt is unknown",
            )
        })?;
        let texts = [
            self.prepend.unwrap_or_default(),
            prompt,
            self.append.unwrap_or_default(),
        ];
        let texts: Vec<String> = texts.into_iter().filter(|text| !text.is_empty()).collect();
        Ok(Some(texts.join("\n")))
    }
}

#[derive(Deserialize)]
struct Tools {
    #[serde(default)]
    disable: Option<Vec<String>>,
    #[serde(default)]
    enable: Option<Vec<String>>,
}

impl Tools {
    /// Adds the tools to the lists of the event, under their canonical names.
    fn select(self, effect: &mut AnyEffect) {
        for (list, names) in [
            ("disabled_tools", self.disable),
            ("enabled_tools", self.enable),
        ] {
            let names = distinct(names.unwrap_or_default());
            let names = names.iter().map(|name| TOOLS.canonical_name(name));
            let names: Vec<&str> = names.collect();
            if !names.is_empty() {
                effect.collect.insert(list.to_owned(), names.into());
            }
        }
    }
}

/// Returns the names without spaces around them and without duplicates, in the same order.
fn distinct(names: Vec<String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::with_capacity(names.len());
    for name in names {
        let name = name.trim();
        if !name.is_empty() && !distinct.iter().any(|known| known == name) {
            distinct.push(name.to_owned());
        }
    }
    distinct
}
