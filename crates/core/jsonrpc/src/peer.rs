//! Messages of a program that this process started. They are parsed once, and results are not
//! copied.

use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use thiserror::Error;

/// A message of a peer that uses numbers as ids.
#[derive(Debug, Clone, PartialEq)]
pub enum PeerMessage {
    /// The peer requests something.
    Request {
        /// The id of the request.
        id: u64,
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
        /// The call that the request belongs to, if the peer sent `parentId`.
        parent: Value,
    },
    /// The peer reports something and expects no answer.
    Notification {
        /// The method.
        method: String,
        /// The parameters.
        params: Value,
    },
    /// The peer answers a call of this program.
    Answer {
        /// The id of the call.
        id: u64,
        /// The result as JSON, which is a slice of the message. `None` if the answer contains
        /// neither `result` nor `error`. For an error, its message.
        result: Result<Option<Bytes>, String>,
    },
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, rename = "parentId")]
    parent: Value,
    #[serde(default)]
    params: Value,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<ErrorFields>,
}

#[derive(Deserialize)]
struct ErrorFields {
    #[serde(default)]
    message: String,
}

/// Deserialises a value that is present, even if it is `null`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Bytes that are not a message. The text begins with `it`, the peer.
#[derive(Debug, Error)]
pub enum MalformedMessage {
    /// They are not JSON, or not of the right shape.
    #[error("it sent a malformed message: {0}")]
    Json(#[from] serde_json::Error),
    /// They are neither a request nor an answer.
    #[error("it sent a message without `id` and `method`")]
    NoIdAndNoMethod,
}

impl PeerMessage {
    /// Reads a message. Returns `None` for an empty line.
    ///
    /// # Errors
    /// Fails if the bytes are not a message.
    pub fn parse(frame: &Bytes) -> Result<Option<Self>, MalformedMessage> {
        if frame.trim_ascii().is_empty() {
            return Ok(None);
        }
        let fields: Fields<'_> = serde_json::from_slice(frame)?;
        let message = match (fields.id, fields.method) {
            (Some(id), Some(method)) => Self::Request {
                id,
                method,
                params: fields.params,
                parent: fields.parent,
            },
            (None, Some(method)) => Self::Notification {
                method,
                params: fields.params,
            },
            (Some(id), None) => Self::Answer {
                id,
                result: match (fields.error, fields.result) {
                    (Some(error), _) => Err(error.message),
                    (None, result) => {
                        Ok(result.map(|result| frame.slice_ref(result.get().as_bytes())))
                    }
                },
            },
            (None, None) => return Err(MalformedMessage::NoIdAndNoMethod),
        };
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_told_from_the_others_by_its_keys() {
        let answer = |result| PeerMessage::Answer { id: 7, result };
        for (text, expected) in [
            (
                r#"{"id":7,"method":"m","params":{"a":1},"parentId":3}"#,
                PeerMessage::Request {
                    id: 7,
                    method: "m".to_owned(),
                    params: json!({"a": 1}),
                    parent: json!(3),
                },
            ),
            (
                r#"{"method":"m"}"#,
                PeerMessage::Notification {
                    method: "m".to_owned(),
                    params: Value::Null,
                },
            ),
            (
                r#"{"id":7,"result":null}"#,
                answer(Ok(Some(Bytes::from_static(b"null")))),
            ),
            (r#"{"id":7}"#, answer(Ok(None))),
            (
                r#"{"id":7,"result":1,"error":{"message":"no"}}"#,
                answer(Err("no".to_owned())),
            ),
        ] {
            let frame = Bytes::copy_from_slice(text.as_bytes());
            assert_eq!(
                PeerMessage::parse(&frame).unwrap(),
                Some(expected),
                "{text}"
            );
        }
        let empty = PeerMessage::parse(&Bytes::from_static(b" \n"));
        assert_eq!(empty.unwrap(), None);
        for text in ["{}", "7", "{\"id\":-1}", "{\"id\":", "\u{0}"] {
            let frame = Bytes::copy_from_slice(text.as_bytes());
            assert!(PeerMessage::parse(&frame).is_err(), "{text}");
        }
    }
}
