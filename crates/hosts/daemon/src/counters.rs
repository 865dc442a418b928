//! How many events the daemon has handled, and what happened to them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts events since the daemon started.
#[derive(Debug, Default)]
pub(crate) struct EventCounters {
    /// All events.
    pub(crate) events: Counter,
    /// Events that hooks stopped.
    pub(crate) stopped: Counter,
    /// Gates that denied because their hooks could not be asked.
    pub(crate) failed: Counter,
    /// Failures of hooks after which the operation continued.
    pub(crate) let_through: Counter,
    /// Effects that a host could not honour.
    pub(crate) downgrades: Counter,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
