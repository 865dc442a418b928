//! Prints everything that the program prints. Colour is dropped if the stream is not a terminal. A reader that closes
//! the stream is not an error. Any other failed write to stdout is kept and reported at the end of the program.

pub mod canvas;
pub mod drawn_line;
pub mod json_lines;
pub mod markdown;
pub mod plural;
pub mod progress;
pub mod script_output;
pub mod scrollback;
pub mod table;
pub mod width;

use std::fmt::Display;
use std::io::{self, IsTerminal as _, Write as _};

use anstream::adapter::strip_str;
use anstyle::{AnsiColor, Style};
use parking_lot::Mutex;
use serde::Serialize;

/// The styles of the different kinds of text.
pub mod style {
    use super::{AnsiColor, Style};

    /// A success, or an operation that may proceed.
    pub const GOOD: Style = AnsiColor::Green.on_default();
    /// An error or a denial.
    pub const BAD: Style = AnsiColor::Red.on_default().bold();
    /// A warning, a question or a change.
    pub const CARE: Style = AnsiColor::Yellow.on_default();
    /// A name, a command or a hint.
    pub const NAME: Style = AnsiColor::Cyan.on_default();
    /// The most important part of a line.
    pub const STRONG: Style = Style::new().bold();
    /// Text that matters less than the text around it.
    pub const QUIET: Style = Style::new().dimmed();
}

/// The error of the first failed write to stdout.
static FAILURE: Mutex<Option<io::Error>> = Mutex::new(None);

/// Keeps the error of a write for [`finish`], unless the reader has closed the stream.
pub fn keep(written: io::Result<()>) {
    if let Err(error) = written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let mut failure = FAILURE.lock();
        failure.get_or_insert(error);
    }
}

/// Flushes stdout and returns the first error of all writes to it.
pub fn finish() -> Option<io::Error> {
    scrollback::wait();
    keep(io::stdout().flush());
    FAILURE.lock().take()
}

/// Wraps `text` in a style.
pub fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a line on stdout.
pub fn line(text: impl Display) {
    let text = format!("{text}\n");
    if !is_kept(&text) {
        keep(write!(anstream::stdout(), "{text}"));
    }
}

/// Queues text if a line is being edited. Returns whether it was queued.
fn is_kept(text: &str) -> bool {
    if is_colourful_terminal() {
        scrollback::put(text)
    } else {
        scrollback::put(&strip_str(text).to_string())
    }
}

/// Ends a line that other code began.
pub fn end_line() {
    keep(writeln!(anstream::stdout()));
}

/// Prints lines on stdout, even while a line is being edited.
pub fn print_now<'a>(lines: impl IntoIterator<Item = &'a String>) {
    let mut stdout = anstream::stdout();
    for line in lines {
        keep(writeln!(stdout, "{line}"));
    }
}

/// Prints on stdout without ending the line, even while a line is being edited.
pub fn text_now(text: &str) {
    let mut stdout = anstream::stdout();
    keep(write!(stdout, "{text}").and_then(|()| stdout.flush()));
}

/// Prints on stdout without ending the line.
pub fn text(text: impl Display) {
    let text = text.to_string();
    if !is_kept(&text) {
        let mut stdout = anstream::stdout();
        keep(write!(stdout, "{text}").and_then(|()| stdout.flush()));
    }
}

/// Sets the title of the terminal's window. The title must not contain control characters.
pub fn title(title: &str) {
    // The cursor does not move, so this does not disturb a line that is being edited.
    let mut stdout = io::stdout();
    keep(write!(stdout, "\u{1b}]0;{title}\u{7}").and_then(|()| stdout.flush()));
}

/// Writes a control sequence that does not move the cursor.
pub fn sequence(sequence: &str) {
    let mut stdout = io::stdout();
    keep(write!(stdout, "{sequence}").and_then(|()| stdout.flush()));
}

/// Clears the current line, if stdout is a terminal.
pub fn clear_line() {
    if io::stdout().is_terminal() {
        text("\r\u{1b}[2K");
    }
}

/// Prints complete lines on stdout. An empty text prints nothing.
pub fn set(lines: &str) {
    if !lines.is_empty() {
        text(lines);
    }
}

/// Prints a line on stderr.
pub fn note(text: impl Display) {
    let text = format!("{text}\n");
    if !is_kept(&text) {
        write!(anstream::stderr(), "{text}").ok();
    }
}

/// Prints a JSON object on stdout.
pub fn json(value: &impl Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => line(text),
        Err(error) => note(format_args!("error: cannot write JSON: {error}")),
    }
}

/// Returns whether stderr supports colour.
pub fn is_coloured() -> bool {
    takes_colour(&io::stderr())
}

/// Returns whether stdout is a terminal that supports colour.
pub fn is_colourful_terminal() -> bool {
    io::stdout().is_terminal() && takes_colour(&io::stdout())
}

fn takes_colour(stream: &impl anstream::stream::RawStream) -> bool {
    match anstream::AutoStream::choice(stream) {
        anstream::ColorChoice::Never => false,
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => true,
        anstream::ColorChoice::Auto => stream.is_terminal(),
    }
}
