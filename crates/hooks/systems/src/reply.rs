//! Helpers with which every dialect reads the output of a hook.

use tenterhook_engine::{ReadError, Reply};

/// The largest part of stderr that is kept as the cause of a failure, in bytes.
const STDERR_TAIL: usize = 2 << 10;

/// Returns the end of stderr, or `None` if there was no output.
pub(crate) fn stderr_tail(stderr: &[u8]) -> Option<String> {
    // `tail` does not cut a secret in two: the journal redacts only whole secrets.
    let text = String::from_utf8_lossy(stderr);
    let text = tenterhook_protocol::excerpt::tail(text.trim_end(), STDERR_TAIL).trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns the error for an answer that was too long, so that `omitted` bytes are missing.
pub(crate) fn too_long(omitted: u64) -> ReadError {
    ReadError::invalid(format!(
        "the answer is too long: {omitted} bytes were dropped"
    ))
}

/// Returns the JSON text that a worker answered.
///
/// # Errors
/// Fails if the reply came from any other kind of handler, because only workers speak the dialect.
pub(crate) fn returned_json<'a>(reply: &Reply<'a>) -> Result<&'a [u8], ReadError> {
    let found = match *reply {
        Reply::Returned { json } => return Ok(json),
        Reply::Exited { .. } => "a process that exited",
        Reply::Http { .. } => "an HTTP endpoint",
    };
    Err(ReadError::invalid(format!(
        "the answer came from {found}, expected an answer from a worker"
    )))
}
