//! Everything that is printed. Colour is dropped where the stream is no terminal. A reader that went away is no
//! error of ours, so failed writes are dropped.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};

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

/// Wraps `text` in a style.
pub(crate) fn styled(style: Style, text: impl Display) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints a line on stdout.
pub(crate) fn line(text: impl Display) {
    writeln!(anstream::stdout(), "{text}").ok();
}

/// Prints on stdout without ending the line.
pub(crate) fn text(text: impl Display) {
    let mut stdout = anstream::stdout();
    write!(stdout, "{text}").and_then(|()| stdout.flush()).ok();
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
    if let Some(load) = &error.load {
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
    match anstream::AutoStream::choice(&std::io::stderr()) {
        anstream::ColorChoice::Never => false,
        anstream::ColorChoice::Always | anstream::ColorChoice::AlwaysAnsi => true,
        anstream::ColorChoice::Auto => std::io::stderr().is_terminal(),
    }
}
