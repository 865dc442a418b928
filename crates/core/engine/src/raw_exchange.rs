//! What a hook received and returned, for observers that show it.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;

/// What a hook received and returned, before its answer was interpreted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RawExchange {
    /// The size of what the hook received, in bytes.
    pub input_bytes: usize,
    /// The standard output of a process, the answer of a worker, or the body of a response.
    pub stdout: Bytes,
    /// The standard error output of a process.
    pub stderr: Bytes,
    /// How a process ended: `exit status 2`, or the signal that ended it.
    pub exit: Option<String>,
    /// Whether a part of the output is missing.
    pub is_truncated: bool,
}

impl RawExchange {
    /// Creates the exchange with a hook that received `input_bytes` and returned `stdout`.
    pub fn new(input_bytes: usize, stdout: &[u8]) -> Self {
        Self {
            input_bytes,
            stdout: Bytes::copy_from_slice(stdout),
            ..Self::default()
        }
    }

    /// Adds how a process ended, and its standard error output. `is_truncated` is whether a part of
    /// the output is missing.
    #[must_use]
    pub fn of_process(self, exit: impl Into<String>, stderr: &[u8], is_truncated: bool) -> Self {
        Self {
            stderr: Bytes::copy_from_slice(stderr),
            exit: Some(exit.into()),
            is_truncated,
            ..self
        }
    }
}

/// Takes the raw exchange of one call, if an observer requests it.
#[derive(Debug, Clone, Default)]
pub struct ExchangeSlot(Option<Arc<OnceLock<RawExchange>>>);

impl ExchangeSlot {
    /// Returns a slot that keeps an exchange.
    pub(crate) fn requested() -> Self {
        Self(Some(Arc::default()))
    }

    /// Keeps an exchange, the first of a call. `exchange` is not called if no observer requests it.
    pub fn fill(&self, exchange: impl FnOnce() -> RawExchange) {
        if let Some(slot) = &self.0 {
            slot.get_or_init(exchange);
        }
    }

    pub(crate) fn get(&self) -> Option<&RawExchange> {
        self.0.as_deref().and_then(OnceLock::get)
    }
}
