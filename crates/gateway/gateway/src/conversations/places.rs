//! The places of a conversation: each message that waits or is worked on holds one.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use tenterhook_channel::chat::ChatRef;

/// The maximum number of messages that wait, or whose turn runs.
pub(crate) const MAX_WAITING: usize = 64;

/// The places of a conversation. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct Places {
    free: Arc<Semaphore>,
    /// How many messages of each chat hold a place.
    chats: Arc<Mutex<HashMap<ChatRef, usize>>>,
}

impl Places {
    pub(crate) fn new() -> Self {
        Self {
            free: Arc::new(Semaphore::new(MAX_WAITING)),
            chats: Arc::default(),
        }
    }

    /// Returns a place for a message of a chat. `None` if all are taken.
    pub(crate) fn take(&self, chat: &ChatRef) -> Option<Place> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        *self.chats.lock().entry(chat.clone()).or_default() += 1;
        Some(Place {
            places: self.clone(),
            chat: chat.clone(),
            _permit: permit,
        })
    }

    /// Returns whether no message waits or is worked on.
    pub(crate) fn are_free(&self) -> bool {
        self.free.available_permits() == MAX_WAITING
    }

    /// Returns whether a message of a chat holds a place.
    pub(crate) fn holds(&self, chat: &ChatRef) -> bool {
        self.chats.lock().contains_key(chat)
    }
}

/// The place of one message. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    places: Places,
    chat: ChatRef,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut chats = self.places.chats.lock();
        if let Some(count) = chats.get_mut(&self.chat) {
            *count -= 1;
            if *count == 0 {
                chats.remove(&self.chat);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenterhook_channel::chat::ChannelId;

    use super::*;

    #[test]
    fn only_chats_with_work_are_remembered() {
        let places = Places::new();
        let chat = |name: &str| ChatRef {
            channel: ChannelId::new("tg").unwrap(),
            chat: name.to_owned(),
            thread: None,
        };
        for number in 0..10_000 {
            let chat = chat(&number.to_string());
            let place = places.take(&chat).unwrap();
            assert!(places.holds(&chat));
            drop(place);
            assert!(!places.holds(&chat));
        }
        assert!(places.chats.lock().is_empty() && places.are_free());
        let (first, second) = (places.take(&chat("a")), places.take(&chat("a")));
        drop(first);
        assert!(places.holds(&chat("a")));
        drop(second);
        let taken: Vec<_> = (0..MAX_WAITING)
            .map(|number| places.take(&chat(&number.to_string())).unwrap())
            .collect();
        assert!(places.take(&chat("b")).is_none() && !places.holds(&chat("b")));
        drop(taken);
        assert!(places.are_free());
    }
}
