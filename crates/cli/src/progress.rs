//! A sign of life while something takes longer than a second. On a terminal only.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio_util::task::AbortOnDropHandle;

/// How long something may take without a sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

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
        let ticker = std::io::stderr().is_terminal().then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                let is_over = ended.lock().unwrap_or_else(PoisonError::into_inner);
                if !*is_over {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
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
