//! Shortens text from a file so that a message can quote it.

use tenterhook_journal::Redactor;
use tenterhook_protocol::excerpt;

/// Returns the first line of a string, with secrets redacted, cut to at most 60 bytes.
pub fn shorten(text: &str) -> String {
    const LIMIT: usize = 60;
    let redacted = Redactor::shared().redact(text);
    let line = redacted.lines().next().unwrap_or_default();
    let short = excerpt::head(line, LIMIT);
    if short.len() == redacted.trim_end().len() {
        short.to_owned()
    } else {
        format!("{}…", short.trim_end())
    }
}
