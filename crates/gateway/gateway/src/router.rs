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

use crate::conversations::conversation::{ChatTask, may_remove, report_removed};
use crate::conversations::conversation_parts::ConversationParts;
use crate::conversations::profile::Profile;
use tenterhook_channel::chat::{ChatRef, Sender, SessionKey};
use tenterhook_channel::current_role::CurrentRoles;
use tenterhook_channel::store::InboxRecord;

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
    Open(Arc<ChatTask>),
    /// The conversation ends. These messages wait for the next one, which must not open the session before.
    Closing(VecDeque<InboxRecord>),
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

    /// Returns what finds the roles that senders have now.
    pub(crate) fn roles(&self) -> &CurrentRoles {
        &self.0.parts.roles
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
        match self.slot(slots, &record.key) {
            Slot::Open(conversation) => conversation.offer(record).map_err(|_| NoRoom),
            Slot::Closing(waiting) if waiting.len() < MAX_WAITING => {
                waiting.push_back(record);
                Ok(())
            }
            Slot::Closing(_) => Err(NoRoom),
        }
    }

    fn slot<'a>(&self, slots: &'a mut HashMap<SessionKey, Slot>, key: &SessionKey) -> &'a mut Slot {
        match slots.entry(key.clone()) {
            Entry::Occupied(slot) => slot.into_mut(),
            Entry::Vacant(place) => {
                let conversation = ChatTask::start(Arc::clone(&self.0.parts), key.clone());
                place.insert(Slot::Open(Arc::new(conversation)))
            }
        }
    }

    /// Reports the turn of a message that ran when the program was killed.
    pub(crate) async fn resume_interrupted(&self, record: InboxRecord) {
        let conversation = match self.slot(&mut self.0.slots.lock(), &record.key) {
            Slot::Open(conversation) => Arc::clone(conversation),
            // Nothing is closed before the gateway has started.
            Slot::Closing(_) => return,
        };
        conversation.resume_interrupted(record).await;
    }

    /// Stops the work of a chat at a sender's request. Returns whether there was anything to stop.
    pub(crate) async fn cancel(&self, chat: &ChatRef, sender: &Sender, role: SenderRole) -> bool {
        let mut conversations = Vec::new();
        let mut removed = Vec::new();
        self.0
            .slots
            .lock()
            .values_mut()
            .for_each(|slot| match slot {
                Slot::Open(open) if open.has_work_of(chat) => conversations.push(Arc::clone(open)),
                Slot::Open(_) => {}
                Slot::Closing(waiting) => removed.extend(take_removed(waiting, |record| {
                    record.message.chat == *chat && may_remove(record, sender, role)
                })),
            });
        join_all(
            removed
                .iter()
                .map(|record| report_removed(&self.0.parts, record)),
        )
        .await;
        let cancelled = conversations
            .iter()
            .map(|conversation| conversation.cancel(chat, sender, role));
        join_all(cancelled).await.contains(&true) || !removed.is_empty()
    }

    /// Returns the profile in force.
    pub(crate) fn profile(&self) -> Arc<dyn Profile> {
        self.0.parts.profile.current()
    }

    /// Lets chats open their agents with another profile: at once, or after the turn that runs.
    pub(crate) fn replace_profile(&self, profile: Arc<dyn Profile>) {
        self.0.parts.profile.replace(profile);
    }

    /// Returns how many turns run.
    pub(crate) fn running_turns(&self) -> usize {
        self.0.parts.turns.taken()
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
            let since = open.is_idle_since()?;
            if now.saturating_duration_since(since) < MAX_IDLE {
                return None;
            }
            let conversation = Arc::clone(open);
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
                Slot::Open(open) => Some(Arc::clone(open)),
                Slot::Closing(_) => None,
            });
            open.collect()
        };
        join_all(open.iter().map(|conversation| conversation.stop(drain))).await;
        self.0.tasks.close();
        self.0.tasks.wait().await;
    }
}

/// Takes messages out of a queue.
fn take_removed(
    waiting: &mut VecDeque<InboxRecord>,
    is_removed: impl Fn(&InboxRecord) -> bool,
) -> VecDeque<InboxRecord> {
    let (removed, kept) = std::mem::take(waiting).into_iter().partition(is_removed);
    *waiting = kept;
    removed
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use crate::conversations::approvals::OpenQuestions;
    use crate::conversations::conversation_parts::ReceiveLimits;
    use crate::conversations::gateway_events::GatewayEvents;
    use crate::conversations::profile::OpenRequest;
    use futures_util::future::{self, BoxFuture};
    use jiff::Timestamp;
    use tempfile::TempDir;
    use tenterhook_agent::Agent;
    use tenterhook_channel::chat::ChannelId;
    use tenterhook_channel::fair_places::FairPlaces;
    use tenterhook_channel::live_settings::LiveSettings;
    use tenterhook_channel::media_folder::MediaFolder;
    use tenterhook_channel::message::{IncomingMessage, IncomingPart};
    use tenterhook_channel::pairing::Pairings;
    use tenterhook_channel::settings::Settings;
    use tenterhook_channel::store::{Recorded, Store};
    use tenterhook_engine::Engine;

    use super::*;
    use crate::outbox::Outbox;

    /// Agents that are never opened, so that each message waits.
    struct Unopened(Engine);

    impl Profile for Unopened {
        fn engine(&self) -> &Engine {
            &self.0
        }

        fn folder(&self) -> &Path {
            Path::new("/")
        }

        fn open(&self, _: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
            Box::pin(future::pending())
        }
    }

    struct Stage {
        router: Router,
        store: Store,
        _folder: TempDir,
    }

    impl Stage {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path()).unwrap();
            let media = MediaFolder::open_in_state(folder.path()).unwrap();
            let engine = Engine::new();
            let failed = Arc::new(|_| {});
            let outbox = Outbox::new(store.clone(), media.clone(), BTreeMap::new(), failed);
            let publisher = Arc::new(outbox);
            let settings = LiveSettings::from(Settings::default());
            let parts = ConversationParts {
                events: GatewayEvents::new(&engine, "/"),
                profile: (Arc::new(Unopened(engine)) as Arc<dyn Profile>).into(),
                store: store.clone(),
                approvals: OpenQuestions::new(Arc::clone(&publisher) as _, None),
                publisher,
                turns: FairPlaces::new(1),
                receives: ReceiveLimits::new(1),
                roles: CurrentRoles::new(settings.clone(), Pairings::new(store.clone())),
                settings,
                media,
            };
            Self {
                router: Router::new(Arc::new(parts)),
                store,
                _folder: folder,
            }
        }

        async fn record(&self, chat: &str, sender: &str) -> InboxRecord {
            let message_id = tenterhook_protocol::EventId::generate().to_string();
            let message = IncomingMessage {
                dedupe: message_id.clone(),
                message_id,
                chat: chat_ref(chat),
                sender: person(sender),
                is_direct: true,
                is_addressed: true,
                parts: vec![IncomingPart::Text {
                    text: "hi".to_owned(),
                }],
                reply_to: None,
                at: Timestamp::now(),
            };
            let key = SessionKey("profile".to_owned());
            let recorded = self.store.accept(message, SenderRole::Member, key).await;
            match recorded.unwrap() {
                Recorded::Fresh(record) => record,
                Recorded::Duplicate | Recorded::Full => panic!("not recorded"),
            }
        }

        async fn cancel(&self, chat: &str, sender: &str) -> bool {
            let (chat, sender) = (chat_ref(chat), person(sender));
            self.router.cancel(&chat, &sender, SenderRole::Member).await
        }
    }

    fn chat_ref(name: &str) -> ChatRef {
        ChatRef {
            channel: ChannelId::new("tg").unwrap(),
            chat: name.to_owned(),
            thread: None,
        }
    }

    fn person(id: &str) -> Sender {
        Sender {
            id: id.to_owned(),
            name: None,
            is_bot: false,
        }
    }

    #[tokio::test]
    async fn stop_reaches_only_conversations_with_work_of_the_chat() {
        let stage = Stage::new();
        stage
            .router
            .dispatch(stage.record("1", "ada").await)
            .unwrap();
        assert!(!stage.cancel("2", "ada").await);
        assert!(stage.cancel("1", "ada").await);
        assert!(!stage.cancel("1", "ada").await);
    }

    #[tokio::test]
    async fn stop_removes_messages_that_wait_for_a_conversation_that_closes() {
        let stage = Stage::new();
        let key = SessionKey("profile".to_owned());
        let closing = Slot::Closing(VecDeque::new());
        stage.router.0.slots.lock().insert(key.clone(), closing);
        for (chat, sender) in [("1", "ada"), ("1", "bob"), ("2", "ada")] {
            stage
                .router
                .dispatch(stage.record(chat, sender).await)
                .unwrap();
        }
        assert!(stage.cancel("1", "ada").await);
        assert!(!stage.cancel("1", "ada").await);
        let left = stage.store.unfinished().await.unwrap();
        let senders: Vec<_> = left
            .iter()
            .map(|record| &*record.message.sender.id)
            .collect();
        assert_eq!(senders, ["bob", "ada"]);
        let slots = stage.router.0.slots.lock();
        assert!(matches!(&slots[&key], Slot::Closing(waiting) if waiting.len() == 2));
    }
}
