//! The error of a request that failed.

use serde_json::Value;

use crate::write;

/// An error that the sender of a request receives.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcError {
    id: Value,
    code: i64,
    message: String,
}

impl RpcError {
    fn new(code: i64, message: &str) -> Self {
        Self {
            id: Value::Null,
            code,
            message: message.to_owned(),
        }
    }

    /// Creates the error for a message that is not JSON.
    pub fn unreadable(message: &str) -> Self {
        Self::new(-32700, message)
    }

    /// Creates the error for JSON that is not a valid message.
    pub fn invalid(message: &str) -> Self {
        Self::new(-32600, message)
    }

    /// Creates the error for a method that does not exist.
    pub fn unknown_method(message: &str) -> Self {
        Self::new(-32601, message)
    }

    /// Creates the error for parameters that the method does not accept.
    pub fn invalid_params(message: &str) -> Self {
        Self::new(-32602, message)
    }

    /// Creates the error for a request that failed.
    pub fn failed(message: &str) -> Self {
        Self::new(-32000, message)
    }

    /// Creates the error for a request that is not possible at the moment.
    pub fn busy(message: &str) -> Self {
        Self::new(-32001, message)
    }

    /// Creates the error for a request that a hook stopped.
    pub fn stopped(message: &str) -> Self {
        Self::new(-32002, message)
    }

    /// Creates the error for a request that was cancelled.
    pub fn cancelled(message: &str) -> Self {
        Self::new(-32003, message)
    }

    /// Creates the error for a feature that is not available here.
    pub fn unavailable(message: &str) -> Self {
        Self::new(-32004, message)
    }

    /// Returns the error as the answer to the request `id`.
    #[must_use]
    pub fn about(self, id: &Value) -> Self {
        Self {
            id: id.clone(),
            ..self
        }
    }

    /// Returns the code.
    pub fn code(&self) -> i64 {
        self.code
    }

    /// Returns the id of the request that failed, or `null` if it is not known.
    pub fn id(&self) -> &Value {
        &self.id
    }

    /// Returns the message that answers the request.
    pub fn to_message(&self) -> Value {
        write::error(&self.id, self.code, &self.message)
    }
}
