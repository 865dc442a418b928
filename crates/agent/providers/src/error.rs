//! The errors of model calls, and whether a retry may succeed.

use std::time::Duration;

use thiserror::Error;

/// The kind of failure that ended a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProviderErrorKind {
    /// The service is busy or has an internal error. A retry may succeed.
    Unavailable,
    /// The answer ended early. A retry may succeed.
    Broken,
    /// The conversation does not fit into the model's context.
    ContextOverflow,
    /// The service rejected the request: wrong key, unknown model, invalid parameters.
    Refused,
}

/// The error of a failed model call.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct ProviderError {
    /// The kind of failure.
    pub kind: ProviderErrorKind,
    /// What went wrong.
    pub message: String,
    /// How long the service asks to wait before a retry.
    pub retry_after: Option<Duration>,
}

impl ProviderError {
    /// Creates an error without a requested wait.
    pub fn new(kind: ProviderErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Returns whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self.kind,
            ProviderErrorKind::Unavailable | ProviderErrorKind::Broken
        )
    }
}

/// Phrases in errors that say that the conversation is too long. The services share no error code for it.
const OVERFLOW_WORDS: [&str; 8] = [
    "context_length_exceeded",
    "maximum context length",
    "context window",
    "prompt is too long",
    "input is too long",
    "exceeds the maximum number of tokens",
    "input token count",
    "exceed context limit",
];

/// Reports whether an error text says that the conversation is too long.
pub(crate) fn is_overflow(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    OVERFLOW_WORDS.iter().any(|words| text.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_is_known_by_the_words_of_the_services() {
        assert!(is_overflow(
            "This model's maximum context length is 128000 tokens"
        ));
        assert!(is_overflow(r#"{"code":"context_length_exceeded"}"#));
        assert!(is_overflow(
            "prompt is too long: 210000 tokens > 200000 maximum"
        ));
        assert!(!is_overflow("rate limit reached"));
    }
}
