//! What a running tool has so far, on its way to hooks and screen.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tenterhook_process::cut;
use tenterhook_protocol::{ContentBlock, ToolResult};
use tokio::sync::Notify;

/// How much text of a partial result is kept: its end, where the news are.
const LONGEST: usize = 16 * 1024;

/// Takes partial results of one call. Clones are of the same call.
///
/// A tool never waits here: of results that come faster than they are taken only the newest is kept.
#[derive(Debug, Clone, Default)]
pub struct Progress(Option<Arc<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    latest: Option<ToolResult>,
    is_over: bool,
}

impl Slot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// Makes one that somebody listens to.
    pub(crate) fn heard() -> Self {
        Self(Some(Arc::default()))
    }

    /// Says whether anybody wants to know. A tool that would have to work for a partial result looks here first.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Tells what there is so far, in the place of what was told before. Of long texts the end is kept.
    pub fn report(&self, mut partial: ToolResult) {
        let Some(slot) = &self.0 else {
            return;
        };
        for block in &mut partial.content {
            if let ContentBlock::Text { text } = block
                && text.len() > LONGEST
            {
                *text = cut::tail(text, LONGEST).to_owned();
            }
        }
        let mut state = slot.state();
        if !state.is_over {
            state.latest = Some(partial);
            slot.changed.notify_one();
        }
    }

    /// Says that nothing more is told.
    pub(crate) fn close(&self) {
        if let Some(slot) = &self.0 {
            slot.state().is_over = true;
            slot.changed.notify_one();
        }
    }

    /// Returns the newest partial result that was not returned yet; nothing once it is closed.
    pub(crate) async fn next(&self) -> Option<ToolResult> {
        let slot = self.0.as_ref()?;
        loop {
            {
                let mut state = slot.state();
                if let Some(latest) = state.latest.take() {
                    return Some(latest);
                }
                if state.is_over {
                    return None;
                }
            }
            slot.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_newest_is_kept_and_nothing_behind_the_end() {
        let progress = Progress::heard();
        for text in ["a", "b"] {
            progress.report(ToolResult::text(text));
        }
        progress.close();
        progress.report(ToolResult::text("late"));
        assert_eq!(progress.next().await, Some(ToolResult::text("b")));
        assert_eq!(progress.next().await, None);
    }

    #[tokio::test]
    async fn a_long_text_is_cut_at_its_beginning() {
        let progress = Progress::heard();
        progress.report(ToolResult::text("é\n".repeat(LONGEST)));
        let told = progress.next().await.unwrap().joined_text();
        assert_eq!(told, "é\n".repeat(LONGEST / 3));
    }

    #[tokio::test]
    async fn where_nobody_listens_nothing_is_kept() {
        let progress = Progress::default();
        progress.report(ToolResult::text("a"));
        assert!(!progress.is_wanted());
        assert_eq!(progress.next().await, None);
    }
}
