//! Builds messages to send.

use serde_json::{Value, json};

use crate::VERSION;

/// Returns a request.
pub fn request(id: &Value, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": VERSION, "id": id, "method": method, "params": params})
}

/// Returns a notification, which has no answer.
pub fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": VERSION, "method": method, "params": params})
}

/// Returns the answer to a request.
pub fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": VERSION, "id": id, "result": result})
}

/// Returns the error that answers a request.
pub fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": VERSION, "id": id, "error": {"code": code, "message": message}})
}

/// Returns the beginning of a request whose parameters are already JSON text. The caller appends
/// the parameters and a `}`.
pub fn call_head(id: u64, method: &str) -> String {
    format!("{{\"jsonrpc\":\"{VERSION}\",\"id\":{id},\"method\":\"{method}\",\"params\":")
}
