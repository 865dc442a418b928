//! What observers see of the answers of built-ins, which have no text of their own: the effect as JSON.

use serde_json::Value;
use tenterhook_engine::RawExchange;
use tenterhook_protocol::AnyEffect;

/// The maximum length of a text in an answer that observers see, in bytes. Longer ones are files, for example audio in
/// base64.
const MAX_TEXT: usize = 16 << 10;

/// Returns the exchange with a built-in that answered `effect`. Built-ins receive typed events, so the size of the input
/// is not known.
pub(super) fn of_effect(effect: &AnyEffect) -> RawExchange {
    if effect.is_empty() {
        return RawExchange::default();
    }
    let mut answer = serde_json::to_value(effect).unwrap_or_default();
    leave_out_long_texts(&mut answer);
    RawExchange::new(0, answer.to_string().as_bytes())
}

/// Replaces long texts with their lengths. A part of a text could contain a part of a secret.
fn leave_out_long_texts(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > MAX_TEXT => {
            *text = format!("[{} bytes]", text.len());
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_long_texts),
        Value::Object(fields) => fields.values_mut().for_each(leave_out_long_texts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_shown_as_json_without_long_texts() {
        let effect = AnyEffect {
            context: vec!["short".to_owned(), "x".repeat(MAX_TEXT + 1)],
            ..AnyEffect::default()
        };
        let shown = of_effect(&effect);
        assert_eq!(*shown.stdout, *br#"{"context":["short","[16385 bytes]"]}"#);
        assert!(of_effect(&AnyEffect::default()).stdout.is_empty());
    }
}
