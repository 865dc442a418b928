//! The open dialogs of scripts, which scripts can close again.

use std::collections::HashMap;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The open dialogs of scripts, by the ids that the scripts chose. Each has a token that withdraws its question. There
/// are never more dialogs than requests that workers may have open.
#[derive(Debug, Default)]
pub(crate) struct Dialogs(Mutex<HashMap<String, CancellationToken>>);

/// An open dialog, until it is dropped.
pub(crate) struct OpenDialog<'a> {
    dialogs: &'a Dialogs,
    id: String,
    withdrawn: CancellationToken,
}

impl Dialogs {
    /// Opens a dialog.
    pub(crate) fn open(&self, id: String) -> OpenDialog<'_> {
        let withdrawn = CancellationToken::new();
        self.0.lock().insert(id.clone(), withdrawn.clone());
        OpenDialog {
            dialogs: self,
            id,
            withdrawn,
        }
    }

    /// Withdraws the question of a dialog. Returns whether there is such a dialog.
    pub(crate) fn dismiss(&self, id: &str) -> bool {
        let dialogs = self.0.lock();
        let found = dialogs.get(id);
        found.inspect(|withdrawn| withdrawn.cancel()).is_some()
    }
}

impl OpenDialog<'_> {
    /// Waits until the script withdraws the question.
    pub(crate) async fn withdrawn(&self) {
        self.withdrawn.cancelled().await;
    }
}

impl Drop for OpenDialog<'_> {
    fn drop(&mut self) {
        self.dialogs.0.lock().remove(&self.id);
    }
}
