//! Messages of a client that may make mistakes. Every mistake gets a specific answer.

use serde_json::Value;
use tenterhook_protocol::{JsonObject, UniqueValue};

use crate::VERSION;
use crate::error::RpcError;

/// A request of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcRequest {
    /// The id: a string or a number.
    pub id: Value,
    /// The method.
    pub method: String,
    /// The named parameters.
    pub params: JsonObject,
}

/// A message of a client.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The client requests something.
    Request(RpcRequest),
    /// The client answers a request of this program.
    Answer {
        /// The id of that request.
        id: String,
        /// The result, or the message of the error.
        result: Result<Value, String>,
    },
    /// An empty line or a notification, which requires no action.
    Nothing,
}

impl Incoming {
    /// Reads a message. An empty line is [`Incoming::Nothing`].
    ///
    /// # Errors
    /// Returns the answer to a message that is not JSON, repeats a key, or is not JSON-RPC 2.0.
    pub fn parse(line: &[u8]) -> Result<Self, RpcError> {
        let line = std::str::from_utf8(line)
            .map_err(|error| RpcError::unreadable(&format!("a message is not text: {error}")))?;
        if line.trim().is_empty() {
            return Ok(Self::Nothing);
        }
        let UniqueValue(value) = serde_json::from_str(line).map_err(|error| {
            let text = format!("cannot read the message: {error}");
            // JSON with a repeated key parses, but it has no single meaning.
            if error.is_data() {
                RpcError::invalid(&text)
            } else {
                RpcError::unreadable(&text)
            }
        })?;
        let Value::Object(message) = value else {
            return Err(RpcError::invalid(
                "the message is not a JSON object; batches are not supported, send each request on its own line",
            ));
        };
        Self::read(message)
    }

    fn read(mut message: JsonObject) -> Result<Self, RpcError> {
        let id = message.remove("id");
        let about = |error: RpcError| error.about(id.as_ref().unwrap_or(&Value::Null));
        if message.get("jsonrpc").and_then(Value::as_str) != Some(VERSION) {
            return Err(about(RpcError::invalid("`jsonrpc` is not `2.0`")));
        }
        if let Some(id) = id.as_ref().filter(|id| !(id.is_string() || id.is_number())) {
            let text = format!("`id` is {id}, expected a string or a number");
            return Err(RpcError::invalid(&text));
        }
        let Some(method) = message.remove("method") else {
            let Some(Value::String(id)) = &id else {
                return Err(RpcError::invalid(
                    "the message has neither a `method` nor a string `id`; expected a request, or an answer with an id such as `approve-1`",
                ));
            };
            return Ok(Self::answer(id, &mut message));
        };
        let Value::String(method) = method else {
            return Err(about(RpcError::invalid("`method` is not a string")));
        };
        let params = match message.remove("params") {
            None | Some(Value::Null) => JsonObject::new(),
            Some(Value::Object(params)) => params,
            Some(other) => {
                let text = format!("`params` is {other}, expected an object");
                return Err(about(RpcError::invalid_params(&text)));
            }
        };
        // Notifications are ignored, because no method is useful without its answer.
        Ok(id.map_or(Self::Nothing, |id| {
            Self::Request(RpcRequest { id, method, params })
        }))
    }

    fn answer(id: &str, message: &mut JsonObject) -> Self {
        let result = match message.remove("error") {
            Some(error) => {
                let text = error.get("message").and_then(Value::as_str);
                Err(text.unwrap_or("without a message").to_owned())
            }
            None => Ok(message.remove("result").unwrap_or_default()),
        };
        Self::Answer {
            id: id.to_owned(),
            result,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_a_request_an_answer_or_an_error_that_says_why() {
        let request = |params: Value| {
            Ok(Incoming::Request(RpcRequest {
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
            assert_eq!(Incoming::parse(line.as_bytes()), expected, "{line}");
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
            let failure = Incoming::parse(line.as_bytes()).unwrap_err();
            assert_eq!((failure.id().clone(), failure.code()), (id, code), "{line}");
        }
    }
}
