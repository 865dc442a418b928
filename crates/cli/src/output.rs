//! Everything that is printed. Colour is dropped where the stream is no terminal. A reader that went away is no
//! error of ours; any other write to stdout that fails is kept for the end of the program.

pub(crate) mod above;

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, PoisonError};

use anstream::adapter::strip_str;
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
    above::wait();
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
    let text = format!("{text}\n");
    if !is_kept(&text) {
        keep(write!(anstream::stdout(), "{text}"));
    }
}

/// Keeps a text, if a line is being edited.
fn is_kept(text: &str) -> bool {
    if is_colourful_terminal() {
        above::put(text)
    } else {
        above::put(&strip_str(text).to_string())
    }
}

/// Ends a line that somebody else began.
pub(crate) fn end_line() {
    keep(writeln!(anstream::stdout()));
}

/// Prints lines on stdout, also while a line is edited.
pub(crate) fn print_now<'a>(lines: impl IntoIterator<Item = &'a String>) {
    let mut stdout = anstream::stdout();
    for line in lines {
        keep(writeln!(stdout, "{line}"));
    }
}

/// Prints on stdout without ending the line, also while a line is edited.
pub(crate) fn text_now(text: &str) {
    let mut stdout = anstream::stdout();
    keep(write!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Prints on stdout without ending the line.
pub(crate) fn text(text: impl Display) {
    let text = text.to_string();
    if !is_kept(&text) {
        let mut stdout = anstream::stdout();
        keep(write!(stdout, "{text}").and_then(|()| stdout.flush()));
    }
}

/// Takes away what stands in the line, on a terminal.
pub(crate) fn clear_line() {
    if io::stdout().is_terminal() {
        text("\r\u{1b}[2K");
    }
}

/// Prints whole lines on stdout; nothing is no line.
pub(crate) fn set(lines: &str) {
    if !lines.is_empty() {
        text(lines);
    }
}

/// Prints a line on stderr.
pub(crate) fn note(text: impl Display) {
    let text = format!("{text}\n");
    if !is_kept(&text) {
        write!(anstream::stderr(), "{text}").ok();
    }
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
    if let Some(usage) = &error.usage {
        usage.print().ok();
        return;
    }
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
    takes_colour(&io::stderr())
}

/// Says whether stdout is a terminal that takes colour.
pub(crate) fn is_colourful_terminal() -> bool {
    io::stdout().is_terminal() && takes_colour(&io::stdout())
}

fn takes_colour(stream: &impl anstream::stream::RawStream) -> bool {
    match anstream::AutoStream::choice(stream) {
        anstream::ColorChoice::Never => false,
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => true,
        anstream::ColorChoice::Auto => stream.is_terminal(),
    }
}
