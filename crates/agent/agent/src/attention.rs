//! Tracks whether the user follows what the agent does.

use tokio::sync::watch;

/// Whether the user follows what agents do.
///
/// A background agent asks the user only while the user follows, because between two prompts the user is writing the
/// next one.
#[derive(Debug)]
pub(crate) struct UserAttention(watch::Sender<bool>);

impl Default for UserAttention {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl UserAttention {
    pub(crate) fn set(&self, is_given: bool) {
        self.0.send_replace(is_given);
    }

    pub(crate) fn is_given(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the user follows.
    pub(crate) async fn given(&self) {
        // The sender is `self`, so it lives as long as this waits.
        let mut seen = self.0.subscribe();
        let _given = seen.wait_for(|is_given| *is_given).await;
    }
}
