//! Prepares the output of hooks, scripts and other processes for people: removes secrets and escapes control
//! characters.

use std::borrow::Cow;

use tenterhook_journal::Redactor;

use crate::output::{style, styled};
use tenterhook_protocol::escape::escape_line;

/// Returns a line that a script printed, ready to be shown.
pub fn script_line(worker: &str, line: &str) -> String {
    let before = styled(style::QUIET, format_args!("{}:", escape_line(worker)));
    format!("  {before} {}", escape_line(&without_secrets(line)))
}

/// Returns a message of a hook or process without secrets, because no redacting hook has seen it.
pub fn without_secrets(text: &str) -> Cow<'_, str> {
    Redactor::shared().redact(text)
}
