//! What every dialect does with the output of a hook.

use tenterhook::{ReadError, Reply};

/// How much of stderr is kept as the cause of a failure, in bytes.
const STDERR_TAIL: usize = 2 << 10;

/// Returns the end of stderr, if there was any.
pub(crate) fn stderr_tail(stderr: &[u8]) -> Option<String> {
    let start = stderr.len().saturating_sub(STDERR_TAIL);
    let text = String::from_utf8_lossy(stderr.get(start..).unwrap_or_default())
        .trim()
        .to_owned();
    (!text.is_empty()).then_some(text)
}

/// Returns the failure of an answer that was too long to be kept whole.
pub(crate) fn too_long(reply: &Reply<'_>) -> ReadError {
    ReadError::invalid(format!(
        "the answer is too long: {} bytes were cut out of it",
        reply.stdout_omitted
    ))
}
