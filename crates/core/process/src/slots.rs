//! Limits how many children run at once.
//!
//! Running more children than twice the number of cores saves no time, and each child needs
//! descriptors while it starts. With this limit, a burst of a thousand runs works even with few
//! descriptors: the runs wait for a slot instead of failing.

use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::sys;

/// How many descriptors one child may need: both ends of three pipes, its exit watch, and one to spare.
const DESCRIPTORS_PER_CHILD: usize = 8;

static SHARED: LazyLock<Slots> = LazyLock::new(|| Slots::new(default_count()));

/// Limits how many children run at once. Clones share the same slots.
#[derive(Debug, Clone)]
pub struct Slots {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    count: usize,
    semaphore: Arc<Semaphore>,
    freed: Notify,
}

impl Slots {
    /// Creates `count` slots, but at least one.
    pub fn new(count: usize) -> Self {
        let count = count.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            inner: Arc::new(Inner {
                count,
                semaphore: Arc::new(Semaphore::new(count)),
                freed: Notify::new(),
            }),
        }
    }

    /// Returns the default slots of all commands of this process. There are two for each core and at
    /// least four, but fewer if the descriptor limit is low.
    pub fn shared() -> &'static Self {
        &SHARED
    }

    /// Returns the number of slots.
    pub fn count(&self) -> usize {
        self.inner.count
    }

    /// Returns the number of free slots.
    pub fn available(&self) -> usize {
        self.inner.semaphore.available_permits()
    }

    /// Returns whether at most one slot is taken.
    pub(crate) fn is_one_taken(&self) -> bool {
        self.available() + 1 >= self.count()
    }

    /// Waits for a slot. Callers get slots in the order of arrival.
    pub(crate) async fn take(&self) -> Slot {
        let semaphore = Arc::clone(&self.inner.semaphore);
        // The semaphore is never closed, so this always gets a permit eventually.
        let permit = semaphore.acquire_owned().await.ok();
        Slot {
            inner: Arc::clone(&self.inner),
            permit,
        }
    }

    /// Waits at most `pause` until a run frees its slot.
    pub(crate) async fn freed(&self, pause: Duration) {
        // The caller tries again in both cases.
        let _elapsed = timeout(pause, self.inner.freed.notified()).await;
    }
}

/// The right to run one child.
#[derive(Debug)]
pub(crate) struct Slot {
    inner: Arc<Inner>,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        drop(self.permit.take());
        self.inner.freed.notify_waiters();
    }
}

fn default_count() -> usize {
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let wanted = (2 * cores).max(4);
    match sys::free_descriptors() {
        Some(free) => wanted.min(free / DESCRIPTORS_PER_CHILD).max(1),
        None => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_always_a_slot() {
        assert_eq!(Slots::new(0).count(), 1);
        assert!(Slots::shared().count() >= 1);
    }

    #[tokio::test]
    async fn a_dropped_slot_is_free_again() {
        let slots = Slots::new(1);
        let slot = slots.take().await;
        assert_eq!(slots.available(), 0);
        drop(slot);
        assert_eq!(slots.available(), 1);
    }
}
