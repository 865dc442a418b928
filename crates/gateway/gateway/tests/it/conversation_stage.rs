//! The stage for tests of conversations: a real store, real hooks and a real agent with a scripted model. Frames and
//! gateway events are logged in one list, in the order in which they happen.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use futures_util::stream::{self, BoxStream, StreamExt};
use parking_lot::Mutex;
use tempfile::TempDir;
use tenterhook_agent::extension::ForeignCommand;
use tenterhook_agent::{
    Agent, AgentConfig, AgentRestrictions, Permissions, RetryPolicy, Session, SessionStore,
};
use tenterhook_channel::channel::ChannelCapabilities;
use tenterhook_channel::chat::{ChannelId, ChatRef, Sender, SessionKey};
use tenterhook_channel::current_role::CurrentRoles;
use tenterhook_channel::fair_places::FairPlaces;
use tenterhook_channel::frame::{Chunk, Frame};
use tenterhook_channel::live_settings::LiveSettings;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::message::{IncomingMessage, IncomingPart, MediaRef};
use tenterhook_channel::pairing::Pairings;
use tenterhook_channel::publisher::{InboxUpdate, PublishError, Publisher, SavedMedia};
use tenterhook_channel::settings::Settings;
use tenterhook_channel::store::{InboxRecord, Recorded, Store};
use tenterhook_engine::Engine;
use tenterhook_gateway::conversations::approvals::OpenQuestions;
use tenterhook_gateway::conversations::conversation::{ChatTask, MailboxFull};
use tenterhook_gateway::conversations::conversation_parts::{ConversationParts, ReceiveLimits};
use tenterhook_gateway::conversations::gateway_events::GatewayEvents;
use tenterhook_gateway::conversations::profile::{LiveProfile, OpenRequest, Profile, ToolAccess};
use tenterhook_protocol::SessionId;
use tenterhook_protocol::event::SenderRole;
use tenterhook_providers::{ModelEvent, ModelId, ModelRequest, Provider, ProviderError, Scripted};
use tokio::sync::{Notify, Semaphore};

/// How long a test waits for something.
const PATIENCE: Duration = Duration::from_secs(20);

/// What happens on the stage, in order.
#[derive(Debug, Default)]
pub(crate) struct Log {
    lines: Mutex<Vec<String>>,
    changed: Notify,
}

impl Log {
    fn add(&self, line: String) {
        self.lines.lock().push(line);
        self.changed.notify_waiters();
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().clone()
    }

    /// Waits until a number of lines begin with `prefix`.
    #[track_caller]
    pub(crate) fn until(&self, prefix: &str, count: usize) -> impl Future<Output = ()> {
        let place = std::panic::Location::caller();
        async move {
            let waiting = async {
                loop {
                    let changed = self.changed.notified();
                    let lines = self.lines();
                    let found = lines.iter().filter(|line| line.starts_with(prefix)).count();
                    if found >= count {
                        return;
                    }
                    changed.await;
                }
            };
            let is_found = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
            let lines = self.lines();
            assert!(is_found, "{place}: no {count} × `{prefix}` in {lines:#?}");
        }
    }
}

/// A scripted model whose calls wait for permits.
#[derive(Debug)]
pub(crate) struct GatedModel {
    script: Arc<Scripted>,
    pub(crate) gate: Arc<Semaphore>,
    requests: Arc<Mutex<Vec<ModelRequest>>>,
    log: Arc<Log>,
}

impl Provider for GatedModel {
    fn id(&self) -> &ModelId {
        self.script.id()
    }

    fn context_window(&self) -> Option<u64> {
        self.script.context_window()
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> BoxStream<'static, Result<ModelEvent, ProviderError>> {
        self.requests.lock().push(request.clone());
        self.log.add("model".to_owned());
        let (gate, script) = (Arc::clone(&self.gate), Arc::clone(&self.script));
        let answer = async move {
            gate.acquire().await.unwrap().forget();
            script.stream(request)
        };
        stream::once(answer).flatten().boxed()
    }
}

struct TestProfile {
    engine: Engine,
    model: Arc<GatedModel>,
    folder: std::path::PathBuf,
    sessions: SessionStore,
    asks: bool,
    opened: Arc<Mutex<Vec<ToolAccess>>>,
    commands: Vec<ForeignCommand>,
}

impl Profile for TestProfile {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn folder(&self) -> &Path {
        &self.folder
    }

    fn commands(&self) -> &[ForeignCommand] {
        &self.commands
    }

    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
        self.opened.lock().push(request.access.clone());
        let opened = match &request.session {
            Some(id) => self.sessions.open(id).map(|stored| stored.session),
            None => Ok(Session::new(SessionId::generate())),
        };
        let mut session = match opened {
            Ok(session) => session,
            Err(error) => return Box::pin(future::ready(Err(error.to_string()))),
        };
        if request.session.is_none() {
            self.sessions.begin(&mut session);
        }
        let mut config = AgentConfig {
            model: Some(Arc::clone(&self.model) as Arc<dyn Provider>),
            cwd: self.folder.clone(),
            session: Some(session),
            sessions: Some(self.sessions.clone()),
            frontend: request.frontend,
            tools: request.access.tools.clone(),
            permissions: Permissions::new().yes(!self.asks),
            retry: RetryPolicy {
                first_pause: Duration::from_millis(1),
                ..RetryPolicy::default()
            },
            ..AgentConfig::default()
        };
        if request.access.is_untrusted {
            let restrictions = AgentRestrictions {
                read_only: true,
                ..AgentRestrictions::default()
            };
            config.restrict("root", restrictions);
        }
        config.toolbox = (request.with_tools)(std::mem::take(&mut config.toolbox));
        let built = config.build(self.engine.clone());
        Box::pin(future::ready(built.map_err(|error| error.to_string())))
    }
}

pub(crate) struct TestPublisher {
    pub(crate) log: Arc<Log>,
    pub(crate) frames: Mutex<Vec<(ChatRef, Frame)>>,
    pub(crate) files: Mutex<HashMap<String, SavedMedia>>,
    /// Whether the next turn panics when it ends.
    pub(crate) has_bug: AtomicBool,
    /// Whether the channel cannot play audio.
    pub(crate) is_mute: AtomicBool,
    /// How often frames cannot be stored.
    pub(crate) failures: AtomicU32,
    /// Held while frames are stored.
    pub(crate) publishing: tokio::sync::Mutex<()>,
    store: Store,
}

impl TestPublisher {
    fn show(&self, chat: &ChatRef, frame: &Frame) {
        let mut line = describe(frame);
        if chat.chat != "ann" {
            line = format!("{}: {line}", chat.chat);
        }
        self.frames.lock().push((chat.clone(), frame.clone()));
        self.log.add(line);
    }
}

impl Publisher for TestPublisher {
    fn capabilities(&self, _chat: &ChatRef) -> Option<ChannelCapabilities> {
        assert!(!self.has_bug.swap(false, Ordering::AcqRel), "a bug");
        Some(ChannelCapabilities {
            speaks_frames: true,
            max_file: 1 << 20,
            audio_formats: if self.is_mute.load(Ordering::Acquire) {
                &[]
            } else {
                &["audio/wav"]
            },
        })
    }

    fn live(&self, chat: &ChatRef, frame: &Frame) {
        self.show(chat, frame);
    }

    fn publish<'a>(
        &'a self,
        chat: &'a ChatRef,
        frames: Vec<Frame>,
        update: InboxUpdate,
    ) -> BoxFuture<'a, Result<(), PublishError>> {
        Box::pin(async move {
            if self.publishing.try_lock().is_err() {
                self.log.add("publish".to_owned());
            }
            let _turn = self.publishing.lock().await;
            let failing = self.failures.load(Ordering::Acquire);
            if failing > 0 {
                self.failures.store(failing - 1, Ordering::Release);
                let cause = "no space left".to_owned();
                return Err(PublishError { cause });
            }
            let stored = self.store.append(chat, frames, update);
            let stored = stored.await.map_err(|error| PublishError {
                cause: error.to_string(),
            })?;
            for frame in stored {
                self.show(chat, &frame.frame);
            }
            Ok(())
        })
    }

    fn fetch<'a>(
        &'a self,
        _chat: &'a ChatRef,
        media: &'a MediaRef,
    ) -> BoxFuture<'a, Result<SavedMedia, String>> {
        assert_ne!(media.reference, "bug");
        let file = self.files.lock().get(&media.reference).cloned();
        Box::pin(future::ready(
            file.ok_or_else(|| "The file is too large.".to_owned()),
        ))
    }

    fn ask<'a>(&'a self, chat: &'a ChatRef, question: &'a Frame) -> BoxFuture<'a, bool> {
        self.show(chat, question);
        Box::pin(future::ready(true))
    }
}

fn describe(frame: &Frame) -> String {
    match frame {
        Frame::Said { text, .. } => format!("said {text}"),
        Frame::Queued { how, .. } => format!("queued {how:?}"),
        Frame::Start { in_reply_to, .. } => format!("start {}", in_reply_to.join(" ")),
        Frame::Chunk { chunk, .. } => match chunk {
            Chunk::Text { text } => format!("text {text}"),
            Chunk::Thinking { text } => format!("thinking {text}"),
            Chunk::ToolStart { name, .. } => format!("tool_start {name}"),
            Chunk::ToolUpdate { name, .. } => format!("tool_update {name}"),
            Chunk::ToolEnd {
                name,
                result,
                denied_by,
                ..
            } => match denied_by {
                Some(by) => format!("tool_denied {name} {by}: {result}"),
                None => format!("tool_end {name}: {}", result.trim_end()),
            },
            Chunk::Hook { event, text, .. } => format!("hook {event}: {text}"),
        },
        Frame::Call {
            name,
            args,
            result,
            denied_by,
            ..
        } => {
            let by = denied_by.as_deref().unwrap_or("-");
            let args = serde_json::to_string(args).unwrap();
            format!("call {name} {args} {by} {}", result.trim_end())
        }
        Frame::End {
            text,
            is_final,
            reason,
            ..
        } => format!(
            "end {} {reason:?}: {text}",
            if *is_final { "final" } else { "more" }
        ),
        Frame::Message { text, media, .. } => match media {
            Some(media) => format!("message {text} [{}]", media.name),
            None => format!("message {text}"),
        },
        Frame::Error {
            code, text, retry, ..
        } => match retry {
            Some(retry) => format!(
                "retry {}/{} {}",
                retry.attempt, retry.max, retry.is_recovered
            ),
            None => format!("error {code}: {text}"),
        },
        Frame::Done { status, .. } => format!("done {status:?}"),
        Frame::Approve { tool, .. } => format!("approve {tool}"),
        Frame::Question { .. } => "question".to_owned(),
        Frame::Resolved { outcome, .. } => format!("resolved {outcome}"),
        Frame::Notice { text } => format!("notice {text}"),
    }
}

/// The names of the events that the log holds.
const LOGGED: [&str; 5] = [
    "message_receive",
    "message_send",
    "message_cancel",
    "gateway_error",
    "message_deliver",
];

pub(crate) struct Stage {
    pub(crate) engine: Engine,
    pub(crate) log: Arc<Log>,
    pub(crate) publisher: Arc<TestPublisher>,
    pub(crate) parts: Arc<ConversationParts>,
    pub(crate) requests: Arc<Mutex<Vec<ModelRequest>>>,
    pub(crate) gate: Arc<Semaphore>,
    pub(crate) opened: Arc<Mutex<Vec<ToolAccess>>>,
    conversation: Mutex<Option<Arc<ChatTask>>>,
    key: SessionKey,
    number: Mutex<u64>,
    dir: TempDir,
}

/// How a stage differs from the default one.
pub(crate) struct Options {
    pub(crate) settings: Settings,
    /// Whether tool calls need approval.
    pub(crate) asks: bool,
    /// How many model calls are answered at once. The others wait.
    pub(crate) calls: usize,
    /// The commands that extensions add.
    pub(crate) commands: Vec<ForeignCommand>,
    /// Whether the log has events. Whoever watches all events watches `save_point` too, which waits for the disk.
    pub(crate) logs_events: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            asks: false,
            calls: 1000,
            commands: Vec::new(),
            logs_events: true,
        }
    }
}

impl Stage {
    pub(crate) fn new(script: &str) -> Self {
        Self::with(script, Options::default())
    }

    pub(crate) fn with(script: &str, options: Options) -> Self {
        let dir = TempDir::new().unwrap();
        let cwd = dir.path().join("work");
        std::fs::create_dir(&cwd).unwrap();
        let engine = Engine::new();
        let log: Arc<Log> = Arc::default();
        let seen = Arc::clone(&log);
        // A subscription watches only, so it never withholds anything.
        if options.logs_events {
            drop(engine.subscribe(move |event| {
                let name = event.event().name();
                if LOGGED.contains(&name) {
                    let kind = event.payload().unwrap().get("kind").cloned();
                    let kind = kind.and_then(|kind| kind.as_str().map(|kind| format!(" {kind}")));
                    seen.add(format!("event {name}{}", kind.unwrap_or_default()));
                }
            }));
        }
        let kept = dir.path().join("state");
        let store = Store::open(&kept).unwrap();
        let media = MediaFolder::open(&kept.join("media")).unwrap();
        let publisher = Arc::new(TestPublisher {
            log: Arc::clone(&log),
            frames: Mutex::default(),
            files: Mutex::default(),
            has_bug: AtomicBool::new(false),
            is_mute: AtomicBool::new(false),
            failures: AtomicU32::new(0),
            publishing: tokio::sync::Mutex::default(),
            store: store.clone(),
        });
        let shown = Arc::clone(&publisher) as Arc<dyn Publisher>;
        let gate = Arc::new(Semaphore::new(options.calls));
        let requests: Arc<Mutex<Vec<ModelRequest>>> = Arc::default();
        let opened: Arc<Mutex<Vec<ToolAccess>>> = Arc::default();
        let profile = TestProfile {
            engine: engine.clone(),
            model: Arc::new(GatedModel {
                script: Arc::new(Scripted::parse("play", script).unwrap()),
                gate: Arc::clone(&gate),
                requests: Arc::clone(&requests),
                log: Arc::clone(&log),
            }),
            sessions: SessionStore::of_project(&kept, &cwd),
            folder: cwd.clone(),
            asks: options.asks,
            opened: Arc::clone(&opened),
            commands: options.commands,
        };
        let settings = LiveSettings::from(options.settings);
        let roles = CurrentRoles::new(settings.clone(), Pairings::new(store.clone()));
        let parts = Arc::new(ConversationParts {
            profile: LiveProfile::from(Arc::new(profile) as Arc<dyn Profile>),
            store,
            publisher: Arc::clone(&shown),
            approvals: OpenQuestions::new(shown, settings.current().approvals_to.clone()),
            events: GatewayEvents::new(&engine, &cwd),
            turns: FairPlaces::new(8),
            receives: ReceiveLimits::new(32),
            roles,
            settings,
            media,
        });
        let stage = Self {
            engine,
            log,
            publisher,
            parts,
            requests,
            gate,
            opened,
            conversation: Mutex::default(),
            key: SessionKey("ann".to_owned()),
            number: Mutex::new(0),
            dir,
        };
        stage.restart();
        stage
    }

    /// Starts another conversation with the same key.
    pub(crate) fn restart(&self) {
        let conversation = ChatTask::start(Arc::clone(&self.parts), self.key.clone());
        *self.conversation.lock() = Some(Arc::new(conversation));
    }

    pub(crate) fn conversation(&self) -> Arc<ChatTask> {
        Arc::clone(self.conversation.lock().as_ref().unwrap())
    }

    /// Stops the conversation.
    pub(crate) async fn stop(&self, drain: Duration) {
        let conversation = self.conversation.lock().take().unwrap();
        let conversation = Arc::into_inner(conversation).unwrap();
        tokio::time::timeout(PATIENCE, conversation.stop(drain))
            .await
            .unwrap();
    }

    pub(crate) fn cwd(&self) -> std::path::PathBuf {
        self.dir.path().join("work")
    }

    /// Returns a folder in which the agent does not work.
    pub(crate) fn elsewhere(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the log without the pieces of growing texts.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = self.log.lines();
        lines.retain(|line| !line.starts_with("text "));
        lines
    }

    /// Returns the pieces of text, joined.
    pub(crate) fn streamed(&self) -> String {
        let lines = self.log.lines();
        let pieces = lines.iter().filter_map(|line| line.strip_prefix("text "));
        pieces.collect()
    }

    /// Says something, and waits until the turn is done.
    pub(crate) async fn ask(&self, text: &str) {
        self.say(text).await;
        self.log.until("done", 1).await;
    }

    /// Records a message of Ann, who is an owner in a direct chat.
    pub(crate) async fn record(&self, change: impl FnOnce(&mut IncomingMessage)) -> InboxRecord {
        self.record_as(SenderRole::Owner, change).await
    }

    pub(crate) async fn record_as(
        &self,
        role: SenderRole,
        change: impl FnOnce(&mut IncomingMessage),
    ) -> InboxRecord {
        let number = {
            let mut number = self.number.lock();
            *number += 1;
            *number
        };
        let mut message = IncomingMessage {
            dedupe: format!("d{number}"),
            message_id: format!("m{number}"),
            chat: chat("ann"),
            sender: sender("ann"),
            is_direct: true,
            is_addressed: true,
            parts: Vec::new(),
            reply_to: None,
            at: jiff::Timestamp::now(),
        };
        change(&mut message);
        let recorded = self
            .parts
            .store
            .accept(message, role, self.key.clone())
            .await;
        match recorded.unwrap() {
            Recorded::Fresh(record) => record,
            other @ (Recorded::Duplicate | Recorded::Full) => panic!("{other:?}"),
        }
    }

    /// Sends a text of Ann.
    pub(crate) async fn say(&self, text: &str) {
        self.try_say(text).await.unwrap();
    }

    pub(crate) async fn try_say(&self, text: &str) -> Result<(), MailboxFull> {
        let record = self.record(|message| message.parts = texts(&[text])).await;
        self.conversation().offer(record)
    }

    /// Sends a text of someone else in the same chat.
    pub(crate) async fn say_as(&self, who: &str, role: SenderRole, text: &str) {
        let change = |message: &mut IncomingMessage| {
            message.parts = texts(&[text]);
            message.sender = sender(who);
        };
        let record = self.record_as(role, change).await;
        self.conversation().offer(record).unwrap();
    }

    /// Cancels as Ann.
    pub(crate) async fn cancel(&self) -> bool {
        let conversation = self.conversation();
        conversation
            .cancel(&chat("ann"), &sender("ann"), SenderRole::Owner)
            .await
    }

    /// Lets waiting model calls go on.
    pub(crate) fn answer_calls(&self, count: usize) {
        self.gate.add_permits(count);
    }

    /// Waits until the model was called this often.
    pub(crate) async fn until_called(&self, count: usize) {
        self.log.until("model", count).await;
    }

    /// Returns the user messages of a model call.
    pub(crate) fn heard(&self, call: usize) -> Vec<String> {
        let requests = self.requests.lock();
        let messages = requests[call].messages.iter();
        let of_user = messages.filter(|message| message.role == tenterhook_protocol::Role::User);
        of_user.map(|message| message.content.clone()).collect()
    }

    /// Waits until a session is stored that contains a text.
    pub(crate) async fn until_stored(&self, text: &str) {
        let folder = SessionStore::of_project(&self.dir.path().join("state"), &self.cwd());
        let folder = folder.folder().to_owned();
        let has_text = || {
            let files = std::fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut contents = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
            contents.any(|content| content.contains(text))
        };
        let waiting = async {
            while !has_text() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }

    /// Waits until the conversation is idle.
    pub(crate) async fn until_idle(&self) {
        let waiting = async {
            while self.conversation().is_idle_since().is_none() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap();
    }

    /// Waits until no message of the inbox waits or runs.
    pub(crate) async fn until_finished(&self) {
        let waiting = async {
            while !self.parts.store.unfinished().await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let is_finished = tokio::time::timeout(PATIENCE, waiting).await.is_ok();
        assert!(is_finished, "not finished: {:#?}", self.log.lines());
        // The last frames are shown after they were stored.
        if self.conversation.lock().is_some() {
            self.until_idle().await;
        }
    }
}

pub(crate) fn chat(name: &str) -> ChatRef {
    ChatRef {
        channel: ChannelId::new("web").unwrap(),
        chat: name.to_owned(),
        thread: None,
    }
}

pub(crate) fn sender(id: &str) -> Sender {
    Sender {
        id: id.to_owned(),
        name: None,
        is_bot: false,
    }
}

pub(crate) fn texts(texts: &[&str]) -> Vec<IncomingPart> {
    let part = |text: &&str| IncomingPart::Text {
        text: (*text).to_owned(),
    };
    texts.iter().map(part).collect()
}
