//! Passes partial results of a running tool to hooks and to the screen.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tenterhook_protocol::excerpt;
use tenterhook_protocol::{ContentBlock, ToolResult};
use tokio::sync::Notify;

/// The maximum number of bytes of text that a partial result keeps. The end is kept, because it is the
/// newest part.
const MAX_BYTES: usize = 16 * 1024;

/// Accepts partial results of one call. Clones belong to the same call.
///
/// A tool never waits here. If results arrive faster than they are read, only the newest is kept.
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
        self.state.lock()
    }
}

impl Progress {
    /// Creates a progress that has a reader.
    pub fn heard() -> Self {
        Self(Some(Arc::default()))
    }

    /// Returns whether anyone reads partial results. A tool that would have to prepare them can check this first.
    pub fn is_wanted(&self) -> bool {
        self.0.is_some()
    }

    /// Replaces the current partial result. Only the end of a long text is kept.
    pub fn report(&self, mut partial: ToolResult) {
        let Some(slot) = &self.0 else {
            return;
        };
        for block in &mut partial.content {
            if let ContentBlock::Text { text } = block
                && text.len() > MAX_BYTES
            {
                *text = excerpt::tail(text, MAX_BYTES).to_owned();
            }
        }
        let mut state = slot.state();
        if !state.is_over {
            state.latest = Some(partial);
            slot.changed.notify_one();
        }
    }

    /// Ends the reports: later ones are ignored.
    pub fn close(&self) {
        if let Some(slot) = &self.0 {
            slot.state().is_over = true;
            slot.changed.notify_one();
        }
    }

    /// Waits for the newest unread partial result; returns `None` once the progress is closed.
    pub async fn next(&self) -> Option<ToolResult> {
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
        progress.report(ToolResult::text("é\n".repeat(MAX_BYTES)));
        let told = progress.next().await.unwrap().joined_text();
        assert_eq!(told, "é\n".repeat(MAX_BYTES / 3));
    }

    #[tokio::test]
    async fn where_nobody_listens_nothing_is_kept() {
        let progress = Progress::default();
        progress.report(ToolResult::text("a"));
        assert!(!progress.is_wanted());
        assert_eq!(progress.next().await, None);
    }
}
