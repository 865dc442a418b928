//! The messages of JSON-RPC 2.0.

use serde_json::{Value, json};
use tenterhook::{JsonObject, UniqueValue};

/// The version that every message names.
const VERSION: &str = "2.0";

/// A request of the client's.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    pub(super) id: Value,
    pub(super) method: String,
    pub(super) params: JsonObject,
}

/// A message of the client's.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Incoming {
    Request(Request),
    /// The answer to a request of the agent's: its result, or the words of its error.
    Answer {
        id: String,
        result: Result<Value, String>,
    },
    /// A message that asks for nothing.
    Nothing,
}

/// An error that the client is told.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failure {
    id: Value,
    code: i64,
    text: String,
}

impl Failure {
    fn new(code: i64, text: &str) -> Self {
        Self {
            id: Value::Null,
            code,
            text: text.to_owned(),
        }
    }

    /// What was said is no JSON.
    pub(super) fn unreadable(text: &str) -> Self {
        Self::new(-32700, text)
    }

    fn invalid(text: &str) -> Self {
        Self::new(-32600, text)
    }

    pub(super) fn unknown_method(text: &str) -> Self {
        Self::new(-32601, text)
    }

    pub(super) fn invalid_params(text: &str) -> Self {
        Self::new(-32602, text)
    }

    /// It could not be done.
    pub(super) fn failed(text: &str) -> Self {
        Self::new(-32000, text)
    }

    /// It cannot be done now.
    pub(super) fn busy(text: &str) -> Self {
        Self::new(-32001, text)
    }

    /// A hook does not want it.
    pub(super) fn stopped(text: &str) -> Self {
        Self::new(-32002, text)
    }

    /// It was cancelled.
    pub(super) fn canceled(text: &str) -> Self {
        Self::new(-32003, text)
    }

    /// Says which request it answers.
    pub(super) fn about(self, id: &Value) -> Self {
        Self {
            id: id.clone(),
            ..self
        }
    }

    pub(super) fn message(&self) -> Value {
        json!({
            "jsonrpc": VERSION,
            "id": self.id,
            "error": {"code": self.code, "message": self.text},
        })
    }
}

/// Reads a message. A blank line is none.
pub(super) fn parse(line: &str) -> Result<Incoming, Failure> {
    if line.trim().is_empty() {
        return Ok(Incoming::Nothing);
    }
    let UniqueValue(value) = serde_json::from_str(line).map_err(|error| {
        let text = format!("cannot read the message: {error}");
        // JSON with a repeated key parses, but it has no single meaning.
        if error.is_data() {
            Failure::invalid(&text)
        } else {
            Failure::unreadable(&text)
        }
    })?;
    let Value::Object(mut message) = value else {
        return Err(Failure::invalid(
            "the message is not a JSON object; batches are not supported, send each request on its own line",
        ));
    };
    let id = message.remove("id");
    let about = |failure: Failure| failure.about(id.as_ref().unwrap_or(&Value::Null));
    if message.get("jsonrpc").and_then(Value::as_str) != Some(VERSION) {
        return Err(about(Failure::invalid("`jsonrpc` is not `2.0`")));
    }
    if let Some(id) = id.as_ref().filter(|id| !(id.is_string() || id.is_number())) {
        let text = format!("`id` is {id}, expected a string or a number");
        return Err(Failure::invalid(&text));
    }
    let Some(method) = message.remove("method") else {
        let Some(Value::String(id)) = &id else {
            return Err(Failure::invalid(
                "the message has no `method`, and its `id` names no question; expected an id such as `approve-1`",
            ));
        };
        return Ok(answer(id, &mut message));
    };
    let Value::String(method) = method else {
        return Err(about(Failure::invalid("`method` is no string")));
    };
    let params = match message.remove("params") {
        None | Some(Value::Null) => JsonObject::new(),
        Some(Value::Object(params)) => params,
        Some(other) => {
            let text = format!("`params` is {other}, expected an object");
            return Err(about(Failure::invalid_params(&text)));
        }
    };
    // A notification asks for no answer, and there is nothing that could be done without one.
    Ok(id.map_or(Incoming::Nothing, |id| {
        Incoming::Request(Request { id, method, params })
    }))
}

fn answer(id: &str, message: &mut JsonObject) -> Incoming {
    let result = match message.remove("error") {
        Some(error) => {
            let text = error.get("message").and_then(Value::as_str);
            Err(text.unwrap_or("without a message").to_owned())
        }
        None => Ok(message.remove("result").unwrap_or_default()),
    };
    Incoming::Answer {
        id: id.to_owned(),
        result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_request_an_answer_or_an_error_that_says_why() {
        let request = |params: Value| {
            Ok(Incoming::Request(Request {
                id: 1.into(),
                method: "prompt".to_owned(),
                params: params.as_object().cloned().unwrap_or_default(),
            }))
        };
        let answer = |result: Result<Value, &str>| {
            Ok(Incoming::Answer {
                id: "q1".to_owned(),
                result: result.map_err(str::to_owned),
            })
        };
        let cases = [
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"prompt"}"#,
                request(json!({})),
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"prompt","params":{"text":"hi"}}"#,
                request(json!({"text": "hi"})),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"q1","result":7}"#,
                answer(Ok(json!(7))),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"q1","error":{"code":1,"message":"no"}}"#,
                answer(Err("no")),
            ),
            (" ", Ok(Incoming::Nothing)),
            (
                r#"{"jsonrpc":"2.0","method":"prompt"}"#,
                Ok(Incoming::Nothing),
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(parse(line), expected, "{line}");
        }
        for (line, id, code) in [
            ("{", json!(null), -32700),
            ("[]", json!(null), -32600),
            (
                r#"{"jsonrpc":"2.0","id":"q1","result":{"decision":"deny","decision":"allow"}}"#,
                json!(null),
                -32600,
            ),
            (
                r#"{"jsonrpc":"2.0","id":"q1","error":{},"result":1,"result":2}"#,
                json!(null),
                -32600,
            ),
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
                json!(null),
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","result":{}}"#, json!(null), -32600),
            (r#"{"id":4,"method":"x"}"#, json!(4), -32600),
            (
                r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#,
                json!(null),
                -32600,
            ),
            (r#"{"jsonrpc":"2.0","id":4,"method":5}"#, json!(4), -32600),
            (
                r#"{"jsonrpc":"2.0","id":4,"method":"x","params":[1]}"#,
                json!(4),
                -32602,
            ),
        ] {
            let failure = parse(line).unwrap_err();
            assert_eq!((failure.id, failure.code), (id, code), "{line}");
        }
    }
}
