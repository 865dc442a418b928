//! Hosts that call a plugin in their own process. The plugin starts the shim for each event, and carries out
//! the answer.
//!
//! The plugin and this module agree on the form of events and answers, so they belong to the same version.
//! `call_hooks.js` is the part of a plugin that starts the shim. It treats everything that is not a valid
//! answer as a failure.

use serde_json::{Value, json};
use tenterhook_engine::{ContentBlock, Decision};

use super::answer::HostAnswer;
use super::event::HostEvent;
use super::verdict::HostVerdict;
use crate::command_hook::AnswerObject;

const CALL_HOOKS: &str = include_str!("in_process/call_hooks.js");
/// How every plugin begins.
const MARK: &str = "// Tenterhook wrote this file.";

/// Returns whether a file is a plugin of Tenterhook's. It is not a hook: as one, it would call the hooks again.
pub(crate) fn is_plugin(text: &[u8]) -> bool {
    text.starts_with(MARK.as_bytes())
}

/// Returns the text of a plugin that starts the shim for the events of a host.
pub(crate) fn plugin_text(host: &str, shim: &str, plugin: &str) -> String {
    let text = |value: &str| Value::from(value).to_string();
    let call_hooks = CALL_HOOKS
        .replace("__SHIM__", &text(shim))
        .replace("__HOST__", &text(host));
    call_hooks + plugin
}

/// Writes an answer for a plugin. `block` writes the blocks of a result in the host's form.
pub(crate) fn write(
    event: &HostEvent,
    verdict: &HostVerdict,
    block: fn(&ContentBlock) -> Value,
) -> HostAnswer {
    let mut answer = AnswerObject::default();
    match &verdict.decision {
        Decision::Stop { reason, .. } => answer.set("deny", reason.as_str()),
        Decision::Ask { reason, .. } => answer.set("ask", reason.as_str()),
        Decision::Proceed => {}
    }
    if let Some(input) = &verdict.input {
        answer.set("input", input.clone());
    }
    if let Some(prompt) = &verdict.prompt {
        answer.set("prompt", prompt.as_str());
    }
    if let Some(result) = &verdict.result {
        let content: Vec<Value> = result.content.iter().map(block).collect();
        answer.set(
            "result",
            json!({
                "text": result.joined_text(),
                "content": content,
                "details": result.details.clone().unwrap_or_default(),
                "is_error": result.is_error,
            }),
        );
    }
    for (key, texts) in [
        ("context", &verdict.context),
        ("follow_up", &verdict.follow_up),
        ("notices", &verdict.notices),
    ] {
        if !texts.is_empty() {
            answer.set(key, texts.clone());
        }
    }
    answer.print(event)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_recognised_and_contains_the_path_as_a_literal() {
        let text = plugin_text("acme", r#"/a "b"\c"#, "");
        assert!(is_plugin(text.as_bytes()));
        assert!(text.contains(r#"const SHIM = "/a \"b\"\\c";"#), "{text}");
    }
}
