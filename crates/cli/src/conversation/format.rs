//! The output formats of a conversation.

/// The output format of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The whole conversation, for people.
    Text,
    /// Only the answers.
    Answer,
    /// The report at the end, as JSON.
    Json,
    /// Every event as JSON, then the report.
    Jsonl,
    /// JSON-RPC messages.
    Rpc,
}
