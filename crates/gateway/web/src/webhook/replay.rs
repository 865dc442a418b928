//! Remembers which signed requests arrived lately, so that a captured one cannot be sent again with another id.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::signature::MAX_AGE;

/// How long a signature can be right: its time may be that far in the past and in the future.
const MEMORY: Duration = MAX_AGE.saturating_mul(2);

/// The maximum number of requests that are remembered. It is more than the limit of a webhook lets through.
const MAX_REMEMBERED: usize = 4_096;

/// The digests of what was signed, with the time at which each can be forgotten.
#[derive(Debug, Default)]
pub(super) struct RecentDeliveries(Mutex<HashMap<String, Instant>>);

impl RecentDeliveries {
    /// Notes a request. Returns whether it is the first one of its kind.
    pub(super) fn begin(&self, digest: &str) -> bool {
        let now = Instant::now();
        let mut recent = self.0.lock();
        if recent.get(digest).is_some_and(|until| *until > now) {
            return false;
        }
        if recent.len() >= MAX_REMEMBERED {
            recent.retain(|_, until| *until > now);
        }
        // Someone who can sign has no reason to replay. So it is right to take a request although there is no room.
        if recent.len() < MAX_REMEMBERED {
            recent.insert(digest.to_owned(), now + MEMORY);
        }
        true
    }

    /// Forgets a request that was not taken, so that its service can repeat it.
    pub(super) fn forget(&self, digest: &str) {
        self.0.lock().remove(digest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_request_counts_once_while_its_signature_can_be_right() {
        let recent = RecentDeliveries::default();
        assert!(recent.begin("a"));
        assert!(!recent.begin("a"));
        recent.forget("a");
        assert!(recent.begin("a"));
        for number in 0..2 * MAX_REMEMBERED {
            assert!(recent.begin(&number.to_string()));
        }
        assert!(recent.0.lock().len() <= MAX_REMEMBERED);
        assert!(!recent.begin("a"));
        tokio::time::advance(MEMORY).await;
        assert!(recent.begin("a"));
    }
}
