//! A sign of life while something takes longer than a second. On a terminal only.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};
use tokio_util::task::AbortOnDropHandle;

/// How long something may take without a sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often in a second the sign is drawn at most.
const DRAWN: u8 = 20;

/// How much of a row stays free: for the `^C` of a terminal, which would go to the next row otherwise, where nobody takes the
/// sign away any more.
const FREE: u16 = 4;

/// The row that the sign stands in.
#[derive(Debug)]
struct Row;

impl Row {
    /// Moves the cursor; no step is no move.
    fn step(steps: usize, direction: char) -> io::Result<()> {
        if steps == 0 {
            return Ok(());
        }
        write!(io::stderr(), "\u{1b}[{steps}{direction}")
    }
}

impl TermLike for Row {
    fn width(&self) -> u16 {
        termimad::terminal_size().0.saturating_sub(FREE)
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

    fn write_str(&self, text: &str) -> io::Result<()> {
        write!(io::stderr(), "{text}")
    }

    fn clear_line(&self) -> io::Result<()> {
        write!(io::stderr(), "\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Shows what is being waited for, with the time that it takes. Dropping it removes the line.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Arc<ProgressBar>,
    /// Held while the line is made visible or removed, so that it cannot appear after its end.
    is_over: Arc<Mutex<bool>>,
    _ticker: Option<AbortOnDropHandle<()>>,
}

impl Progress {
    /// Starts waiting for `what`.
    pub(crate) fn start(what: impl Into<String>) -> Self {
        let bar = Arc::new(ProgressBar::with_draw_target(
            None,
            ProgressDrawTarget::hidden(),
        ));
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(what.into());
        let is_over = Arc::new(Mutex::new(false));
        let (shown, ended) = (Arc::clone(&bar), Arc::clone(&is_over));
        let ticker = io::stderr().is_terminal().then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                let is_over = ended.lock().unwrap_or_else(PoisonError::into_inner);
                if !*is_over {
                    let row = ProgressDrawTarget::term_like_with_hz(Box::new(Row), DRAWN);
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
}

impl Drop for Progress {
    fn drop(&mut self) {
        let mut is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        *is_over = true;
        self.bar.finish_and_clear();
    }
}
