//! A sign of life while something takes longer than a second. On a terminal only.

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio_util::task::AbortOnDropHandle;

/// How long something may take without a sign of life.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows what is being waited for, with the time that it takes. Dropping it removes the line.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: Arc<ProgressBar>,
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
        let shown = Arc::clone(&bar);
        let ticker = std::io::stderr().is_terminal().then(|| {
            AbortOnDropHandle::new(tokio::spawn(async move {
                tokio::time::sleep(PATIENCE).await;
                shown.set_draw_target(ProgressDrawTarget::stderr());
                shown.enable_steady_tick(Duration::from_millis(120));
            }))
        });
        Self {
            bar,
            _ticker: ticker,
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
