//! The constants of the worker protocol, and its first message. `docs/reference/worker-protocol.md`
//! describes the protocol.

use serde_json::{Value, json};

/// The version of the protocol.
pub const PROTOCOL_VERSION: u32 = 1;
/// The longest message, in bytes.
pub const MAX_LINE: usize = 16 << 20;
/// How much memory the built-in workers may use, in bytes.
pub(super) const MAX_MEMORY: u64 = 2 << 30;

/// Returns the parameters of `initialize`, the first request.
pub(super) fn hello(has_ui: bool) -> Value {
    json!({
        "protocol_version": PROTOCOL_VERSION,
        "host": {"name": "tenterhook", "version": env!("CARGO_PKG_VERSION"), "ui": has_ui},
        "limits": {"line_bytes": MAX_LINE, "memory_bytes": MAX_MEMORY},
    })
}
