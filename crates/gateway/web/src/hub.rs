//! Passes frames on to the clients that show a chat.
//!
//! The publisher never waits for a client, and a client that connects later misses no durable frame: it reads what it
//! lacks from the store, and gets the rest as it is published. [`Follower`] is the only place that does this; the web
//! page, HTTP and stdio use it alike.

mod activity;
mod queue;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use self::activity::Activity;
use self::queue::{FollowerQueue, Next, SharedFrame};
use tenterhook_channel::chat::ChatRef;
use tenterhook_channel::frame::{ChatFrame, Frame};
use tenterhook_channel::store::{Store, StoreError};

/// How many frames are read from the store at once.
const PAGE: usize = 100;
/// How long a chat counts as watched after its last viewer has left: pages are reloaded, connections break.
const RECENT: Duration = Duration::from_mins(1);
/// The minimum number of chats at which unused chats are searched for.
const MIN_SWEEP: usize = 64;

/// Passes frames on. Clones share everything.
#[derive(Debug, Clone)]
pub struct Hub(Arc<HubState>);

#[derive(Debug)]
struct HubState {
    store: Store,
    chats: Mutex<Chats>,
}

#[derive(Debug, Default)]
struct Chats {
    entries: HashMap<ChatRef, WatchedChat>,
    /// The number of entries at which unused chats are removed.
    sweep_at: usize,
}

#[derive(Debug, Default)]
struct WatchedChat {
    activity: Activity,
    followers: Vec<Arc<FollowerQueue>>,
    last_left: Option<Instant>,
}

impl WatchedChat {
    fn is_watched(&self) -> bool {
        !self.followers.is_empty() || self.last_left.is_some_and(|left| left.elapsed() < RECENT)
    }

    fn is_needed(&self) -> bool {
        self.is_watched() || !self.activity.is_idle()
    }
}

impl Chats {
    fn entry(&mut self, chat: &ChatRef) -> &mut WatchedChat {
        if self.entries.len() >= self.sweep_at.max(MIN_SWEEP) {
            self.entries.retain(|_, watched| watched.is_needed());
            self.sweep_at = self.entries.len() * 2;
        }
        self.entries.entry(chat.clone()).or_default()
    }
}

/// What a follower gets.
#[derive(Debug, Clone, PartialEq)]
pub enum Followed {
    /// A frame.
    Frame(ChatFrame),
    /// These durable frames are not stored any more.
    Gap {
        /// The number of the first one.
        from: u64,
        /// The number of the last one.
        to: u64,
    },
}

impl Hub {
    /// Creates a hub.
    pub fn new(store: Store) -> Self {
        Self(Arc::new(HubState {
            store,
            chats: Mutex::default(),
        }))
    }

    /// Shows a frame to all followers of a chat. It never blocks. Durable frames of one chat are published in order,
    /// after they were stored.
    pub fn publish(&self, chat: &ChatRef, frame: &ChatFrame) {
        let mut chats = self.0.chats.lock();
        let watched = chats.entry(chat);
        watched.activity.apply(frame);
        if !watched.followers.is_empty() {
            let shared = SharedFrame::new(frame);
            for follower in &watched.followers {
                follower.push(shared.clone());
            }
        } else if !watched.is_needed() {
            chats.entries.remove(chat);
        }
    }

    /// Returns how many followers a chat has.
    pub fn viewers(&self, chat: &ChatRef) -> usize {
        self.watched(chat, |watched| watched.followers.len())
    }

    /// Returns whether a chat has followers, or had one a minute ago.
    pub fn is_watched(&self, chat: &ChatRef) -> bool {
        self.watched(chat, WatchedChat::is_watched)
    }

    /// Returns at most `max` of the chats that are watched and that `is_wanted` selects.
    pub fn watched_chats(&self, max: usize, is_wanted: impl Fn(&ChatRef) -> bool) -> Vec<ChatRef> {
        let chats = self.0.chats.lock();
        let watched = chats.entries.iter();
        let watched = watched.filter(|(_, watched)| !watched.followers.is_empty());
        let wanted = watched.map(|(chat, _)| chat).filter(|chat| is_wanted(chat));
        wanted.take(max).cloned().collect()
    }

    /// Returns whether a question of a chat can still be answered.
    pub fn asks(&self, chat: &ChatRef, nonce: &str) -> bool {
        self.watched(chat, |watched| watched.activity.asks(nonce))
    }

    fn watched<T: Default>(&self, chat: &ChatRef, read: impl FnOnce(&WatchedChat) -> T) -> T {
        let chats = self.0.chats.lock();
        chats.entries.get(chat).map(read).unwrap_or_default()
    }

    /// Follows a chat: first the durable frames with a larger number than `after`, then the turn that runs now, then
    /// what is published from now on. `None` leaves out the first part. The result is subscribed already.
    pub fn follow(&self, chat: ChatRef, after: Option<u64>) -> Follower {
        let queue = Arc::new(FollowerQueue::default());
        let mut chats = self.0.chats.lock();
        let watched = chats.entry(&chat);
        watched.followers.push(Arc::clone(&queue));
        let activity = watched.activity.clone();
        drop(chats);
        Follower {
            hub: self.clone(),
            chat,
            queue,
            last_seq: after,
            shown_turn: None,
            catching_up: Some(CatchUp {
                until: activity.last_seq,
                then: Then::Show(activity),
            }),
            ready: VecDeque::new(),
            turns: None,
            turn: None,
        }
    }

    /// Returns what is kept of the chats.
    pub(crate) fn store(&self) -> &Store {
        &self.0.store
    }
}

/// Reads one chat. Dropping it ends that.
#[derive(Debug)]
pub struct Follower {
    hub: Hub,
    chat: ChatRef,
    queue: Arc<FollowerQueue>,
    /// The number of the last durable frame that was returned.
    last_seq: Option<u64>,
    /// The turn whose `start` was returned.
    shown_turn: Option<String>,
    catching_up: Option<CatchUp>,
    ready: VecDeque<Followed>,
    /// Where a turn is waited for before frames are read, and the turn.
    turns: Option<Arc<Semaphore>>,
    turn: Option<OwnedSemaphorePermit>,
}

/// Durable frames have to be read from the store.
#[derive(Debug)]
struct CatchUp {
    /// The last one that is read. Later ones arrive by themselves. `None` if no one has been published yet.
    until: Option<u64>,
    then: Then,
}

/// What follows the durable frames.
#[derive(Debug)]
enum Then {
    Show(Activity),
    Frame(ChatFrame),
}

impl Follower {
    /// Reads stored frames only while it has a turn, so that those who share `turns` do not all hold frames in memory that a
    /// slow client does not take.
    pub(crate) fn take_turns(&mut self, turns: Arc<Semaphore>) {
        self.turns = Some(turns);
    }

    /// Returns the next frame. `None` means that it was not read fast enough, or that the store cannot be read: the
    /// connection must be closed with the code 1013, and the client resumes later. The future can be dropped.
    pub async fn next(&mut self) -> Option<Followed> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Some(next);
            }
            if self.catching_up.is_some() {
                if let Some(turns) = self.turns.as_ref().filter(|_| self.turn.is_none()) {
                    self.turn = Some(Arc::clone(turns).acquire_owned().await.ok()?);
                }
                self.catch_up().await.ok()?;
                continue;
            }
            self.turn = None;
            match self.queue.pop() {
                Next::Frame(frame) => self.take(frame),
                Next::Lagging => self.resubscribe(),
                Next::Closed => return None,
                Next::Empty => self.queue.changed().await,
            }
        }
    }

    /// Takes a published frame, unless it was returned before. If an earlier one is missing, it is read first.
    fn take(&mut self, frame: ChatFrame) {
        match (frame.seq, self.last_seq) {
            (Some(seq), Some(last)) if seq <= last => {}
            (Some(seq), Some(last)) if seq > last + 1 => {
                self.catching_up = Some(CatchUp {
                    until: Some(seq),
                    then: Then::Frame(frame),
                });
            }
            _ => self.show(frame),
        }
    }

    fn show(&mut self, frame: ChatFrame) {
        self.last_seq = frame.seq.or(self.last_seq);
        if let Frame::Start { turn, .. } = &frame.frame {
            self.shown_turn = Some(turn.clone());
        }
        self.ready.push_back(Followed::Frame(frame));
    }

    /// Begins anew with what the chat does now, because the queue dropped frames.
    fn resubscribe(&mut self) {
        let mut chats = self.hub.0.chats.lock();
        // Under this lock nothing is published, so the queue and the activity fit together.
        let lost_from = self.queue.reset();
        let activity = chats.entry(&self.chat).activity.clone();
        drop(chats);
        self.last_seq = self.last_seq.or(lost_from.map(|seq| seq.saturating_sub(1)));
        self.catching_up = Some(CatchUp {
            until: activity.last_seq,
            then: Then::Show(activity),
        });
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        let is_complete = match self.last_seq {
            Some(after) => self.read_page(after).await?,
            None => true,
        };
        if is_complete {
            match self.catching_up.take().map(|catching_up| catching_up.then) {
                Some(Then::Show(activity)) => self.show_activity(&activity),
                Some(Then::Frame(frame)) if frame.seq > self.last_seq => self.show(frame),
                Some(Then::Frame(_)) | None => {}
            }
        }
        Ok(())
    }

    /// Reads durable frames. Returns whether these were the last ones.
    async fn read_page(&mut self, after: u64) -> Result<bool, StoreError> {
        let store = &self.hub.0.store;
        let page = store.frames_after(&self.chat, after, PAGE).await?;
        if page.frames.is_empty() {
            self.check_last(after).await?;
        }
        let until = self.catching_up.as_ref().and_then(|reading| reading.until);
        let arrives = self.queue.first_seq();
        let until = until.or(arrives.map(|seq| seq.saturating_sub(1)));
        if !page.frames.is_empty() && page.oldest > after + 1 {
            self.skip_to(page.oldest - 1, after);
        }
        let is_last = !page.has_more;
        for frame in page.frames {
            if until.is_some() && frame.seq > until {
                return Ok(true);
            }
            self.show_start_before(&frame.frame);
            self.show(frame);
        }
        Ok(is_last || (until.is_some() && self.last_seq >= until))
    }

    /// Handles a client that has seen later frames than there are, because the store was replaced.
    async fn check_last(&mut self, after: u64) -> Result<(), StoreError> {
        let store = &self.hub.0.store;
        let last = store.frames_before(&self.chat, u64::MAX, 1).await?;
        let last = last.frames.last().and_then(|frame| frame.seq).unwrap_or(0);
        if last < after {
            self.ready.push_back(Followed::Gap {
                from: last + 1,
                to: after,
            });
            self.last_seq = Some(last);
        }
        Ok(())
    }

    fn skip_to(&mut self, last: u64, after: u64) {
        self.ready.push_back(Followed::Gap {
            from: after + 1,
            to: last,
        });
        self.last_seq = Some(last);
    }

    /// Shows that a turn runs before the first stored frame of it.
    fn show_start_before(&mut self, frame: &Frame) {
        if let Some(CatchUp { then, .. }) = &self.catching_up
            && let Then::Show(activity) = then
            && let Some(turn) = &activity.turn
            && frame.turn() == Some(&turn.id)
            && self.shown_turn.as_ref() != Some(&turn.id)
        {
            let frame = turn.start();
            self.show(ChatFrame { seq: None, frame });
        }
    }

    fn show_activity(&mut self, activity: &Activity) {
        let mut frames = Vec::new();
        if let Some(turn) = &activity.turn {
            if self.shown_turn.as_ref() != Some(&turn.id) {
                frames.push(turn.start());
            }
            frames.extend(turn.progress());
        }
        frames.extend(activity.questions().cloned());
        for frame in frames {
            self.show(ChatFrame { seq: None, frame });
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let mut chats = self.hub.0.chats.lock();
        if let Some(watched) = chats.entries.get_mut(&self.chat) {
            watched
                .followers
                .retain(|queue| !Arc::ptr_eq(queue, &self.queue));
            watched.last_left = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenterhook_channel::chat::ChannelId;

    #[tokio::test(start_paused = true)]
    async fn chats_that_no_one_needs_take_no_memory() {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::new(Store::open(folder.path()).unwrap());
        let chat = |number: usize| ChatRef {
            channel: ChannelId::new("web").unwrap(),
            chat: number.to_string(),
            thread: None,
        };
        let count = || hub.0.chats.lock().entries.len();
        let notice = ChatFrame {
            seq: None,
            frame: Frame::Notice {
                text: "hi".to_owned(),
            },
        };
        hub.publish(&chat(0), &notice);
        assert_eq!(count(), 0);
        for number in 0..1000 {
            drop(hub.follow(chat(number), None));
        }
        assert_eq!(count(), 1000, "their viewers may come back");
        tokio::time::advance(RECENT).await;
        for number in 1000..2100 {
            drop(hub.follow(chat(number), None));
        }
        assert!(count() <= 1100, "{}", count());
    }
}
