//! Everything that is printed. Colour is dropped where the stream is no terminal. A reader that went away is no
//! error of ours; any other write to stdout that fails is kept for the end of the program.

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::error::CliError;

/// How kinds of text look.
pub(crate) mod style {
    use super::{AnsiColor, Style};

    pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
    pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
    pub(crate) const CARE: Style = AnsiColor::Yellow.on_default();
    pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
    pub(crate) const STRONG: Style = Style::new().bold();
    pub(crate) const QUIET: Style = Style::new().dimmed();
}

/// The first write to stdout that failed.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Keeps the error of a write, unless the reader only went away.
pub(crate) fn keep(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let mut failure = FAILURE.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(error);
    }
}

/// Writes out what is left and returns the first error of all writes to stdout.
pub(crate) fn finish() -> Option<io::Error> {
    keep(io::stdout().flush());
    FAILURE
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
}

/// Wraps `text` in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a line on stdout.
pub(crate) fn line(text: impl Display) {
    keep(writeln!(anstream::stdout(), "{text}"));
}

/// Prints on stdout without ending the line.
pub(crate) fn text(text: impl Display) {
    let mut stdout = anstream::stdout();
    keep(write!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Prints a line on stderr.
pub(crate) fn note(text: impl Display) {
    writeln!(anstream::stderr(), "{text}").ok();
}

/// Prints one JSON object on stdout.
pub(crate) fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(text),
        Err(error) => note(format_args!("error: cannot write JSON: {error}")),
    }
}

/// Prints an error, its causes and what to do about it.
pub(crate) fn error(error: &CliError) {
    if let Some(load) = error.load.as_ref().filter(|_| error.causes.is_empty()) {
        note(load.render(is_coloured()));
        note("");
    }
    note(format_args!(
        "{} {}",
        styled(style::BAD, "error:"),
        error.message
    ));
    for cause in &error.causes {
        note(format_args!("  caused by: {cause}"));
    }
    if let Some(hint) = &error.hint {
        note(format_args!("{} {hint}", styled(style::NAME, "hint:")));
    }
}

/// Says whether stderr takes colour.
pub(crate) fn is_coloured() -> bool {
    match anstream::AutoStream::choice(&io::stderr()) {
        anstream::ColorChoice::Never => false,
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => true,
        anstream::ColorChoice::Auto => io::stderr().is_terminal(),
    }
}
