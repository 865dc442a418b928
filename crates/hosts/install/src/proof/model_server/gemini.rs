//! Answers in the form of Google's Gemini API.

use serde_json::{Value, json};

use super::reply::{Reply, StreamEvent};
use super::script::ModelTurn;

/// How a request wants its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GeminiForm {
    /// `…:generateContent`
    Plain,
    /// `…:streamGenerateContent`, a list of JSON values.
    List,
    /// `…:streamGenerateContent?alt=sse`
    Events,
}

/// Returns the answer to a request for content.
pub(crate) fn answer(turn: &ModelTurn, form: GeminiForm, number: usize) -> Reply {
    let text = (!turn.text.is_empty()).then(|| json!({ "text": turn.text }));
    let calls = turn.calls.iter().map(|call| {
        json!({ "functionCall": { "id": call.id, "name": call.tool, "args": call.arguments } })
    });
    let parts: Vec<Value> = text.into_iter().chain(calls).collect();
    let content = json!({
        "candidates": [{
            "index": 0,
            "content": { "role": "model", "parts": parts },
            "finishReason": "STOP",
        }],
        "usageMetadata": {
            "promptTokenCount": 1,
            "candidatesTokenCount": 1,
            "totalTokenCount": 2,
        },
        "modelVersion": "scripted",
        "responseId": format!("response_{number}"),
    });
    match form {
        GeminiForm::Plain => Reply::ok(content),
        GeminiForm::List => Reply::ok(json!([content])),
        GeminiForm::Events => Reply::Stream(vec![StreamEvent::unnamed(&content)]),
    }
}
