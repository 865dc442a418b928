//! Shows a progress line while something takes longer than a second. It is shown only on a terminal.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;
use std::time::Duration;

use anstream::adapter::strip_str;
use anstyle::Style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use parking_lot::Mutex;
use tokio_util::task::AbortOnDropHandle;

use crate::output::{self, style, styled};
use tenterhook_protocol::escape::escape_untrusted;

/// How long something may take before the progress line appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// The maximum number of times per second that the line is drawn.
const DRAWN: u8 = 20;

/// How many columns of a row stay free for the terminal's `^C`. Otherwise it could move to the next row, and the
/// progress line could not be removed any more.
const FREE: u16 = 4;

/// How many lines of partial output are shown above the progress line.
const LINES: usize = 2;

/// The indentation of these lines, the same as for the final result.
const INDENT: usize = 4;

/// Clears a row after the cursor.
const CLEAR_REST: &str = "\u{1b}[K";

/// The row of the progress line, and the rows above it.
#[derive(Debug)]
struct StatusRow;

impl StatusRow {
    /// Moves the cursor by `steps`, which may be 0.
    fn step(steps: usize, direction: char) -> io::Result<()> {
        if steps == 0 {
            return Ok(());
        }
        write!(io::stderr(), "\u{1b}[{steps}{direction}")
    }
}

fn width() -> u16 {
    termimad::terminal_size().0.saturating_sub(FREE)
}

/// Returns whether progress lines are visible.
pub fn is_seen() -> bool {
    io::stderr().is_terminal()
}

/// Returns the last lines of a string for display above the progress line, each with its end and cut to a row.
fn last_lines(text: &str, width: usize, look: Style) -> String {
    // Text after a carriage return has overwritten the text before it.
    let pieces = text.rsplit(['\n', '\r']);
    let pieces = pieces.filter(|piece| !piece.trim().is_empty());
    let mut pieces: Vec<&str> = pieces.take(LINES).collect();
    pieces.reverse();
    let room = width.saturating_sub(INDENT);
    let lines = pieces.into_iter().map(|piece| {
        let plain = escape_untrusted(&strip_str(piece).to_string()).replace('\t', " ");
        let line: String = plain.chars().take(room).collect();
        format!("{:INDENT$}{}{CLEAR_REST}\n", "", styled(look, line))
    });
    lines.collect()
}

impl TermLike for StatusRow {
    fn width(&self) -> u16 {
        width()
    }

    fn move_cursor_up(&self, steps: usize) -> io::Result<()> {
        Self::step(steps, 'A')
    }

    fn move_cursor_down(&self, steps: usize) -> io::Result<()> {
        Self::step(steps, 'B')
    }

    fn move_cursor_right(&self, steps: usize) -> io::Result<()> {
        Self::step(steps, 'C')
    }

    fn move_cursor_left(&self, steps: usize) -> io::Result<()> {
        Self::step(steps, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{text}")
    }

    /// Ends rows itself and clears the rest of each. The library would fill them with spaces instead, and a row that
    /// is narrower than the terminal would not end in the right place.
    fn write_str(&self, text: &str) -> io::Result<()> {
        if let Some(line) = text.strip_suffix(CLEAR_REST) {
            return writeln!(io::stderr(), "{line}{CLEAR_REST}\r");
        }
        let is_filler = !text.is_empty() && text.chars().all(|c| c == ' ');
        let text = if is_filler { CLEAR_REST } else { text };
        write!(io::stderr(), "{text}")
    }

    fn clear_line(&self) -> io::Result<()> {
        write!(io::stderr(), "\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Shows what the program waits for, and for how long. Dropping it removes the line.
#[derive(Debug)]
pub struct ProgressLine {
    bar: Arc<ProgressBar>,
    /// Held while the line is made visible or removed, so that it cannot appear after its end.
    is_over: Arc<Mutex<bool>>,
    _ticker: Option<AbortOnDropHandle<()>>,
}

impl ProgressLine {
    /// Starts waiting for `what`.
    pub fn start(what: impl Into<String>) -> Self {
        let bar = Arc::new(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::hidden(),
        ));
        let style = ProgressStyle::with_template("{prefix}{spinner} {msg} ({elapsed})");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(what.into());
        let is_over = Arc::new(Mutex::new(false));
        let (shown, ended) = (Arc::clone(&bar), Arc::clone(&is_over));
        let ticker = is_seen().then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                let is_over = ended.lock();
                if !*is_over {
                    let row = ProgressDrawTarget::term_like_with_hz(Box::new(StatusRow), DRAWN);
                    shown.set_draw_target(row);
                    shown.enable_steady_tick(Duration::from_millis(120));
                }
            }))
        });
        Self {
            bar,
            is_over,
            _ticker: ticker,
        }
    }

    /// Changes what the program waits for.
    pub fn set_text(&self, what: impl Into<String>) {
        self.bar.set_message(what.into());
    }

    /// Shows the last lines of partial output above the progress line.
    pub fn show_partial(&self, so_far: &str) {
        let look = if output::is_coloured() {
            style::QUIET
        } else {
            Style::new()
        };
        let lines = last_lines(so_far, usize::from(width()), look);
        self.bar.set_prefix(lines);
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        let mut is_over = self.is_over.lock();
        *is_over = true;
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_stand_above_the_sign_and_are_harmless() {
        for (text, expected) in [
            ("", ""),
            ("one\n", "    one\n"),
            ("one\ntwo\nthree", "    two\n    three\n"),
            ("one\n\n  \ntwo\r\n\n", "    one\n    two\n"),
            ("1%\r50%\r99%", "    50%\n    99%\n"),
            ("\u{1b}[31mred\u{1b}[0m\u{1b}[2J", "    red\n"),
            ("a\tb\u{7}\u{202e}", "    a b\\u{202e}\n"),
            ("sixteen columns and more", "    sixteen columns \n"),
        ] {
            let lines = last_lines(text, 20, Style::new());
            assert_eq!(lines.replace(CLEAR_REST, ""), expected, "{text:?}");
        }
    }
}
