//! The model calls of scripts that are in progress.

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::dialogs::Dialogs;

/// How many model calls of scripts run at once. Further calls wait.
const MAX_CALLS: usize = 4;

/// The model calls of the scripts of a session.
#[derive(Debug)]
pub(crate) struct ModelCalls {
    places: Semaphore,
    /// The calls that scripts can cancel.
    pub(crate) cancellable: Dialogs,
    /// Cancelled at the end of the session.
    ended: CancellationToken,
}

impl Default for ModelCalls {
    fn default() -> Self {
        Self {
            places: Semaphore::new(MAX_CALLS),
            cancellable: Dialogs::default(),
            ended: CancellationToken::new(),
        }
    }
}

impl ModelCalls {
    /// Waits until another call may run; `None` if there is no session any more.
    pub(crate) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.places.acquire().await.ok()
    }

    /// Waits until the session is over.
    pub(crate) async fn ended(&self) {
        self.ended.cancelled().await;
    }

    /// Cancels all calls, because the session is over.
    pub(crate) fn end(&self) {
        self.ended.cancel();
    }
}
