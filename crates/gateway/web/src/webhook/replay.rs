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

/// The digests of what was signed. `None` for a request that is being taken, otherwise the time at which it can be
/// forgotten.
#[derive(Debug, Default)]
pub(super) struct RecentDeliveries(Mutex<HashMap<String, Option<Instant>>>);

/// How often a request has arrived.
#[derive(Debug)]
pub(super) enum Arrival<'a> {
    /// It is the first of its kind.
    First(FirstDelivery<'a>),
    /// Another one of its kind is being taken, and may fail.
    Pending,
    /// Another one of its kind was taken.
    Known,
}

/// A request that is being taken. It is forgotten when this is dropped, so that its service can repeat it.
#[derive(Debug)]
pub(super) struct FirstDelivery<'a> {
    recent: &'a RecentDeliveries,
    digest: String,
    /// When the request can be forgotten, if it was taken.
    until: Option<Instant>,
}

impl RecentDeliveries {
    /// Notes a request.
    pub(super) fn begin(&self, digest: &str) -> Arrival<'_> {
        let now = Instant::now();
        let is_over = |until: &Option<Instant>| until.is_some_and(|until| until <= now);
        let mut recent = self.0.lock();
        match recent.get(digest).filter(|until| !is_over(until)) {
            Some(None) => return Arrival::Pending,
            Some(Some(_)) => return Arrival::Known,
            None => {}
        }
        if recent.len() >= MAX_REMEMBERED {
            recent.retain(|_, until| !is_over(until));
        }
        // Someone who can sign has no reason to replay. So it is right to take a request although there is no room.
        if recent.len() < MAX_REMEMBERED {
            recent.insert(digest.to_owned(), None);
        }
        Arrival::First(FirstDelivery {
            recent: self,
            digest: digest.to_owned(),
            until: None,
        })
    }
}

impl FirstDelivery<'_> {
    /// Remembers the request, because it was taken.
    pub(super) fn keep(mut self) {
        self.until = Some(Instant::now() + MEMORY);
    }
}

impl Drop for FirstDelivery<'_> {
    fn drop(&mut self) {
        let mut recent = self.recent.0.lock();
        match self.until {
            Some(_) => {
                if let Some(until) = recent.get_mut(&self.digest) {
                    *until = self.until;
                }
            }
            None => drop(recent.remove(&self.digest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(recent: &RecentDeliveries, digest: &str) -> bool {
        match recent.begin(digest) {
            Arrival::First(first) => first.keep(),
            Arrival::Pending | Arrival::Known => return false,
        }
        true
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_counts_once_while_its_signature_can_be_right() {
        let recent = RecentDeliveries::default();
        assert!(take(&recent, "a"));
        assert!(matches!(recent.begin("a"), Arrival::Known));
        for number in 0..2 * MAX_REMEMBERED {
            assert!(take(&recent, &number.to_string()));
        }
        assert!(recent.0.lock().len() <= MAX_REMEMBERED);
        assert!(!take(&recent, "a"));
        tokio::time::advance(MEMORY).await;
        assert!(take(&recent, "a"));
    }

    #[test]
    fn a_request_is_not_known_before_it_is_taken() {
        let recent = RecentDeliveries::default();
        let first = recent.begin("a");
        assert!(matches!(recent.begin("a"), Arrival::Pending));
        drop(first);
        assert!(matches!(recent.begin("a"), Arrival::First(_)));
    }
}
