//! What every dialect does with the output of a hook.

use tenterhook::{ReadError, Reply, cut};

/// How much of stderr is kept as the cause of a failure, in bytes.
const STDERR_TAIL: usize = 2 << 10;

/// Returns the end of stderr, if there was any.
pub(crate) fn stderr_tail(stderr: &[u8]) -> Option<String> {
    // The journal redacts a whole secret, so no part of one may be left.
    let text = String::from_utf8_lossy(stderr);
    let text = cut::tail(text.trim_end(), STDERR_TAIL).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the failure of an answer that was too long to be kept whole.
pub(crate) fn too_long(reply: &Reply<'_>) -> ReadError {
    ReadError::invalid(format!(
        "the answer is too long: {} bytes were cut out of it",
        reply.stdout_omitted
    ))
}
