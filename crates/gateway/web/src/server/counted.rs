//! Counts what clients hold at the same time, so that none of them takes everything.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::Mutex;

/// Counts places by who holds them. Clones share the counts.
#[derive(Debug, Clone)]
pub(super) struct Counts<K> {
    max: usize,
    held: Arc<Mutex<HashMap<K, usize>>>,
}

impl<K: Clone + Eq + Hash> Counts<K> {
    /// Creates counts of which each holder has at most `max`.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            held: Arc::default(),
        }
    }

    /// Counts a place until the result is dropped. `None` if the holder has too many.
    pub(super) fn take(&self, holder: K) -> Option<Counted<K>> {
        let mut held = self.held.lock();
        let count = held.entry(holder.clone()).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        drop(held);
        let counts = self.clone();
        Some(Counted { counts, holder })
    }
}

/// A place that is counted.
#[derive(Debug)]
pub(super) struct Counted<K: Clone + Eq + Hash> {
    counts: Counts<K>,
    holder: K,
}

impl<K: Clone + Eq + Hash> Drop for Counted<K> {
    fn drop(&mut self) {
        let mut held = self.counts.held.lock();
        if let Some(count) = held.get_mut(&self.holder) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holder_cannot_take_the_places_of_another() {
        let counts = Counts::new(8);
        let mut taken: Vec<_> = (0..8).map(|_| counts.take("a")).collect();
        assert!(taken.iter().all(Option::is_some));
        assert!(counts.take("a").is_none());
        assert!(counts.take("b").is_some());
        taken.pop();
        assert!(counts.take("a").is_some());
        drop(taken);
        assert!(counts.held.lock().is_empty());
    }
}
