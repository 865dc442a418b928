//! Gives each session key its conversation, and closes conversations that are idle.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use parking_lot::Mutex;
use tenterhook_protocol::event::SenderRole;
use thiserror::Error;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use tenterhook_channel::chat::{ChatRef, Sender, SessionKey};
use tenterhook_channel::store::InboxRecord;
use tenterhook_conversation::conversation::ChatTask;
use tenterhook_conversation::conversation_parts::ConversationParts;

/// How long an agent stays in memory without work.
const MAX_IDLE: Duration = Duration::from_mins(10);

/// How often idle conversations are looked for.
const SWEEP: Duration = Duration::from_mins(1);

/// How many messages wait while the conversation that they belong to is closed.
const MAX_WAITING: usize = 64;

/// The conversations. Clones share them.
#[derive(Clone)]
pub(crate) struct Router(Arc<Shared>);

struct Shared {
    parts: Arc<ConversationParts>,
    slots: Mutex<HashMap<SessionKey, Slot>>,
    /// Whether all conversations end, so that none begins. It changes under the lock of `slots`.
    is_stopped: AtomicBool,
    tasks: TaskTracker,
}

/// What a session key has.
enum Slot {
    Open(Open),
    /// The conversation ends. These messages wait for the next one, which must not open the session before.
    Closing(VecDeque<InboxRecord>),
}

struct Open {
    conversation: Arc<ChatTask>,
    /// The chats that wrote to it.
    chats: Vec<ChatRef>,
}

/// The error of a message for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("too many messages wait for this chat")]
pub(crate) struct NoRoom;

impl Router {
    pub(crate) fn new(parts: Arc<ConversationParts>) -> Self {
        Self(Arc::new(Shared {
            parts,
            slots: Mutex::default(),
            is_stopped: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        }))
    }

    /// Gives a message to its conversation. Once the conversations end, the next start of the program does it.
    pub(crate) fn dispatch(&self, record: InboxRecord) -> Result<(), NoRoom> {
        self.offer(&mut self.0.slots.lock(), record)
    }

    fn offer(
        &self,
        slots: &mut HashMap<SessionKey, Slot>,
        record: InboxRecord,
    ) -> Result<(), NoRoom> {
        if self.0.is_stopped.load(Ordering::Relaxed) {
            return Ok(());
        }
        let open = match self.slot(slots, &record.key) {
            Slot::Open(open) => open,
            Slot::Closing(waiting) if waiting.len() < MAX_WAITING => {
                waiting.push_back(record);
                return Ok(());
            }
            Slot::Closing(_) => return Err(NoRoom),
        };
        let chat = &record.message.chat;
        if !open.chats.contains(chat) {
            open.chats.push(chat.clone());
        }
        open.conversation.offer(record).map_err(|_| NoRoom)
    }

    fn slot<'a>(&self, slots: &'a mut HashMap<SessionKey, Slot>, key: &SessionKey) -> &'a mut Slot {
        match slots.entry(key.clone()) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => place.insert(Slot::Open(Open {
                conversation: Arc::new(ChatTask::start(Arc::clone(&self.0.parts), key.clone())),
                chats: Vec::new(),
            })),
        }
    }

    /// Reports the turn of a message that ran when the program was killed.
    pub(crate) async fn resume_interrupted(&self, record: InboxRecord) {
        let conversation = match self.slot(&mut self.0.slots.lock(), &record.key) {
            Slot::Open(open) => Arc::clone(&open.conversation),
            // Nothing is closed before the gateway has started.
            Slot::Closing(_) => return,
        };
        conversation.resume_interrupted(record).await;
    }

    /// Stops the work of a chat at a sender's request. Returns whether there was anything to stop.
    pub(crate) async fn cancel(&self, chat: &ChatRef, sender: &Sender, role: SenderRole) -> bool {
        let conversations: Vec<Arc<ChatTask>> = {
            let slots = self.0.slots.lock();
            let open = slots.values().filter_map(|slot| match slot {
                Slot::Open(open) if open.chats.contains(chat) => Some(&open.conversation),
                Slot::Open(_) | Slot::Closing(_) => None,
            });
            open.map(Arc::clone).collect()
        };
        let cancelled = conversations
            .iter()
            .map(|conversation| conversation.cancel(chat, sender, role));
        join_all(cancelled).await.contains(&true)
    }

    /// Returns how many conversations are open.
    pub(crate) fn open(&self) -> usize {
        self.0.slots.lock().len()
    }

    /// Closes idle conversations until `stop`.
    pub(crate) async fn sweep(&self, stop: &CancellationToken) {
        loop {
            let next = tokio::time::sleep(SWEEP);
            if stop.run_until_cancelled(next).await.is_none() {
                return;
            }
            for (key, conversation) in self.take_idle() {
                let router = self.clone();
                self.0.tasks.spawn(async move {
                    conversation.stop(Duration::ZERO).await;
                    router.reopen(&key);
                });
            }
        }
    }

    fn take_idle(&self) -> Vec<(SessionKey, Arc<ChatTask>)> {
        let mut slots = self.0.slots.lock();
        let now = Instant::now();
        let idle = slots.iter_mut().filter_map(|(key, slot)| {
            let Slot::Open(open) = slot else { return None };
            let since = open.conversation.is_idle_since()?;
            if now.saturating_duration_since(since) < MAX_IDLE {
                return None;
            }
            let conversation = Arc::clone(&open.conversation);
            *slot = Slot::Closing(VecDeque::new());
            Some((key.clone(), conversation))
        });
        idle.collect()
    }

    /// Begins the next conversation of a key whose last one has ended, if messages wait for it.
    fn reopen(&self, key: &SessionKey) {
        let mut slots = self.0.slots.lock();
        let Some(Slot::Closing(waiting)) = slots.remove(key) else {
            return;
        };
        for record in waiting {
            // A new conversation has room for as many messages as may wait.
            let _room = self.offer(&mut slots, record);
        }
    }

    /// Ends all conversations. Turns may continue for `drain`. It can be called again with less time.
    pub(crate) async fn stop(&self, drain: Duration) {
        let open: Vec<Arc<ChatTask>> = {
            let slots = self.0.slots.lock();
            self.0.is_stopped.store(true, Ordering::Relaxed);
            let open = slots.values().filter_map(|slot| match slot {
                Slot::Open(open) => Some(Arc::clone(&open.conversation)),
                Slot::Closing(_) => None,
            });
            open.collect()
        };
        join_all(open.iter().map(|conversation| conversation.stop(drain))).await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}
