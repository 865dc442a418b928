//! Places that people share, such as turns that run at the same time. No one gets all of them.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many holders are remembered before those without a place are forgotten.
const MAX_REMEMBERED: usize = 64;

/// A number of places. If there are four or more, each holder gets three quarters at most. Clones share them.
///
/// Someone who has that many waits alone, so others do not wait behind these requests.
#[derive(Debug, Clone)]
pub struct FairPlaces {
    max: usize,
    free: Arc<Semaphore>,
    shares: Arc<Mutex<HashMap<String, Weak<Semaphore>>>>,
}

/// A place that someone holds, until it is dropped.
#[derive(Debug)]
pub struct HeldPlace {
    _place: OwnedSemaphorePermit,
    _of_share: OwnedSemaphorePermit,
}

impl FairPlaces {
    /// Creates `max` places.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            free: Arc::new(Semaphore::new(max)),
            shares: Arc::default(),
        }
    }

    /// Waits for a place. `None` would mean that the places are closed, which nothing does.
    pub async fn take(&self, holder: &str) -> Option<HeldPlace> {
        let share = self.share_of(holder);
        let of_share = share.acquire_owned().await.ok()?;
        let place = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(HeldPlace {
            _place: place,
            _of_share: of_share,
        })
    }

    /// Returns how many places are taken.
    pub fn taken(&self) -> usize {
        self.max.saturating_sub(self.free.available_permits())
    }

    fn share_of(&self, holder: &str) -> Arc<Semaphore> {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(holder).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() >= MAX_REMEMBERED {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new((self.max - self.max / 4).max(1)));
        shares.insert(holder.to_owned(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn take(places: &FairPlaces, holder: &str) -> Option<HeldPlace> {
        places.take(holder).now_or_never().flatten()
    }

    #[test]
    fn one_person_does_not_get_every_place() {
        for (max, of_one) in [(1, 1), (2, 2), (4, 3), (8, 6), (64, 48)] {
            let places = FairPlaces::new(max);
            let held: Vec<_> = (0..max).map_while(|_| take(&places, "bob")).collect();
            assert_eq!(held.len(), of_one, "{max}");
            let others: Vec<_> = (0..max).map_while(|_| take(&places, "ada")).collect();
            assert_eq!(others.len(), max - of_one, "{max}");
            assert_eq!(places.taken(), max);
        }
    }

    #[test]
    fn someone_who_waits_for_more_holds_up_no_one_else() {
        let places = FairPlaces::new(4);
        let mut held: Vec<_> = (0..3).map_while(|_| take(&places, "bob")).collect();
        let mut waiting = Box::pin(places.take("bob"));
        assert!((&mut waiting).now_or_never().is_none());
        assert!(take(&places, "ada").is_some());
        drop(held.pop());
        assert!(waiting.now_or_never().flatten().is_some());
    }

    #[test]
    fn holders_without_a_place_are_forgotten() {
        let places = FairPlaces::new(4);
        let held = take(&places, "ada");
        for number in 0..1_000 {
            drop(take(&places, &number.to_string()));
        }
        assert!(places.shares.lock().len() <= MAX_REMEMBERED + 1);
        assert_eq!((held.is_some(), places.taken()), (true, 1));
    }
}
