//! How many answers of the inspector one token may read at the same time.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// The maximum number of answers that one token reads at the same time. Browsers open at most 6 connections to a server.
const MAX_OF_TOKEN: usize = 8;

/// Counts the answers that each token reads. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamLimit(Arc<Mutex<HashMap<String, usize>>>);

impl StreamLimit {
    /// Counts an answer until the result is dropped. `None` if the token reads too many.
    pub(super) fn take(&self, token: &str) -> Option<StreamPlace> {
        let mut open = self.0.lock();
        let count = open.entry(token.to_owned()).or_default();
        if *count >= MAX_OF_TOKEN {
            return None;
        }
        *count += 1;
        drop(open);
        Some(StreamPlace {
            limit: self.clone(),
            token: token.to_owned(),
        })
    }
}

/// An answer that is counted.
#[derive(Debug)]
pub(super) struct StreamPlace {
    limit: StreamLimit,
    token: String,
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.limit.0.lock();
        if let Some(count) = open.get_mut(&self.token) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_cannot_take_the_places_of_another() {
        let limit = StreamLimit::default();
        let mut taken: Vec<_> = (0..MAX_OF_TOKEN).map(|_| limit.take("a")).collect();
        assert!(taken.iter().all(Option::is_some));
        assert!(limit.take("a").is_none());
        assert!(limit.take("b").is_some());
        taken.pop();
        assert!(limit.take("a").is_some());
        drop(taken);
        assert!(limit.0.lock().is_empty());
    }
}
