//! Starts a gateway, with its channels, its intake and its outbox, and stops them in order.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::Timestamp;
use parking_lot::Mutex;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::assembly::{Assembled, ChannelContext};
use crate::channel_table::ChannelTable;
use crate::commands::Commands;
use crate::control::{CONTROL_SOCKET, ControlSocket};
use crate::conversations::approvals::OpenQuestions;
use crate::conversations::conversation_parts::{ConversationParts, ReceiveLimits};
use crate::conversations::gateway_events::GatewayEvents;
use crate::conversations::profile::Profile;
use crate::conversations::session_tails::restore_session_tails;
pub use crate::gateway_notice::{GatewayNotice, Observer};
use crate::grants::{Grants, PassphraseCheck};
use crate::inspection::GatewayView;
use crate::intake::{Counts, GatewayIntake};
use crate::metrics::RunningReports;
use crate::outbox::{FailureSink, Outbox, SendFailure};
use crate::reload::{ReloadSource, Reloads};
use crate::router::Router;
pub use crate::running::GatewayEnd;
use crate::running::{GatewayViews, LinkedPage, Running};
use crate::secrets::{SecretsError, read_channel_secrets};
use tenterhook_channel::channel::Channel;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::current_role::CurrentRoles;
use tenterhook_channel::fair_places::FairPlaces;
use tenterhook_channel::live_settings::LiveSettings;
pub use tenterhook_channel::media_folder::MEDIA_FOLDER;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::pairing::Pairings;
use tenterhook_channel::rate::RateLimit;
use tenterhook_channel::secret::HiddenSecret;
use tenterhook_channel::settings::Settings;
use tenterhook_channel::store::{Store, StoreError};
use tenterhook_channel::token::Tokens;
use tenterhook_inspect::Inspector;
use tenterhook_protocol::error_chain;
use tenterhook_web::hub::Hub;
pub use tenterhook_web::server::TlsIdentity;
use tenterhook_web::server::{Logins, ServerParts, serve};

/// How many hooks of `message_receive` may run at once, over all chats.
const MAX_RECEIVING: usize = 32;

/// How many failures of sending wait for their hooks. Further ones are only logged.
const MAX_FAILURES: usize = 256;

/// What a gateway is started with.
pub struct GatewayConfig {
    /// Its settings.
    pub settings: Settings,
    /// Opens agents, and has the hooks.
    pub profile: Arc<dyn Profile>,
    /// Everything that survives a restart.
    pub state: OpeningState,
    /// Receives what happens, for the log. It must not block.
    pub observer: Observer,
    /// Whether frames are also read from standard input and written to standard output. Its end stops the gateway.
    pub stdio: bool,
    /// Channels of the program that starts the gateway, by their ids in the settings. Each runs instead of the one that
    /// the gateway would create.
    pub own_channels: BTreeMap<ChannelId, Arc<dyn Channel>>,
    /// What the page `/inspect` shows. `None` for no such page.
    pub inspector: Option<Inspector>,
    /// Reads the settings and the hooks again for a reload. Without it, the gateway keeps both.
    pub reloads_from: Option<Arc<dyn ReloadSource>>,
}

impl fmt::Debug for GatewayConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayConfig")
            .field("state", &self.state.folder)
            .field("stdio", &self.stdio)
            .finish_non_exhaustive()
    }
}

/// The state of a gateway, which is being opened. Only one gateway can use its folder.
#[derive(Debug)]
pub struct OpeningState {
    folder: PathBuf,
    opening: JoinHandle<Result<(Store, MediaFolder), StartError>>,
}

impl OpeningState {
    /// Begins to open the state in a folder, on a thread of Tokio's for work that blocks. Begin early: the disk is waited
    /// for while the program loads its hooks.
    pub fn begin(folder: PathBuf) -> Self {
        let path = folder.clone();
        let opening = tokio::task::spawn_blocking(move || open_state(&path));
        Self { folder, opening }
    }

    async fn finish(self) -> Result<(Store, MediaFolder), StartError> {
        let opened = self.opening.await;
        // The library of the store panics for some files whose pages were overwritten.
        opened.unwrap_or_else(|_| Err(StartError::State(UNREADABLE.to_owned())))
    }
}

const UNREADABLE: &str = "cannot use the store `gateway.redb`: the file is damaged; restore the file from a backup, or move \
    it away to begin with an empty store";

/// Why a gateway cannot start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another gateway uses the state folder.
    #[error("another gateway uses the state folder `{}`", folder.display())]
    Locked {
        /// The folder.
        folder: PathBuf,
    },
    /// The settings cannot be used.
    #[error("{0}")]
    Settings(String),
    /// The state cannot be read or written.
    #[error("{0}")]
    State(String),
    /// The server's address cannot be used.
    #[error("cannot listen on {address}: {cause}")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What happened.
        cause: String,
    },
}

impl From<SecretsError> for StartError {
    fn from(problem: SecretsError) -> Self {
        match problem {
            SecretsError::Settings(text) => Self::Settings(text),
            SecretsError::Unreadable => Self::State(problem.to_string()),
        }
    }
}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        Self::State(error.to_string())
    }
}

/// What a gateway has opened for itself before its parts are connected.
struct Opened {
    settings: Arc<Settings>,
    profile: Arc<dyn Profile>,
    observer: Observer,
    store: Store,
    media: MediaFolder,
    tokens: Tokens,
    hub: Hub,
    assembled: Assembled,
    listener: Option<TcpListener>,
    tls: Option<TlsIdentity>,
    control: ControlSocket,
    state_folder: PathBuf,
    inspector: Option<Inspector>,
    secrets: BTreeMap<ChannelId, HiddenSecret>,
    own_channels: BTreeMap<ChannelId, Arc<dyn Channel>>,
    reloads_from: Option<Arc<dyn ReloadSource>>,
}

/// A gateway that runs.
pub struct Gateway {
    running: Arc<Running>,
    server: Option<(TcpListener, ServerParts)>,
    control: ControlSocket,
    failures: mpsc::Receiver<SendFailure>,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("address", &self.running.address)
            .finish_non_exhaustive()
    }
}

impl Gateway {
    /// Waits for the state, makes the channels and binds the server's address. Nothing is received yet.
    ///
    /// # Errors
    ///
    /// Says what prevents the start. Then nothing runs.
    pub async fn start(config: GatewayConfig) -> Result<Self, StartError> {
        let GatewayConfig {
            mut settings,
            profile,
            state,
            observer,
            stdio,
            own_channels,
            inspector,
            reloads_from,
        } = config;
        if stdio {
            let with_stdio = settings.with_stdio();
            settings = with_stdio.map_err(|error| StartError::Settings(error.to_string()))?;
        }
        let settings = Arc::new(settings);
        let folder = state.folder.clone();
        let (store, media) = state.finish().await?;
        for problem in restore_session_tails(&store).await {
            observer(GatewayNotice::Failure(problem));
        }
        let tokens = Tokens::open(store.clone()).await;
        let tokens = tokens.map_err(|error| StartError::State(error.to_string()))?;
        let secrets = read_channel_secrets(&settings, &tokens).await?;
        let hub = Hub::new(store.clone());
        let context = ChannelContext {
            hub: &hub,
            store: &store,
            media: &media,
            secrets: &secrets,
            own: &own_channels,
        };
        let assembled = Assembled::of(&settings, &context).map_err(StartError::Settings)?;
        let tls = read_tls(&settings, &assembled).await?;
        let listener = bind(&settings, &assembled, inspector.is_some()).await?;
        let control = ControlSocket::bind(&folder.join(CONTROL_SOCKET)).await;
        let control = control.map_err(|error| StartError::State(error_chain(&error)))?;
        Ok(Self::connect_parts(Opened {
            settings,
            profile,
            observer,
            store,
            media,
            tokens,
            hub,
            assembled,
            listener,
            tls,
            control,
            state_folder: folder,
            inspector,
            secrets,
            own_channels,
            reloads_from,
        }))
    }

    /// Connects the intake, the outbox and the conversations to one another.
    fn connect_parts(opened: Opened) -> Self {
        let (observer, store, media) = (opened.observer, opened.store, opened.media);
        let (profile, assembled) = (opened.profile, opened.assembled);
        let settings = LiveSettings::from(Settings::clone(&opened.settings));
        let address = opened.listener.as_ref().and_then(|it| it.local_addr().ok());
        let (failed, failures) = mpsc::channel(MAX_FAILURES);
        let sink = failure_sink(failed, &observer);
        let outbox = Outbox::new(store.clone(), media.clone(), assembled.by_id(), sink);
        let (channels, pairings) = (ChannelTable::default(), Pairings::new(store.clone()));
        let events = GatewayEvents::new(profile.engine(), profile.folder());
        let approvers = opened.settings.approvals_to.clone();
        let approvals = OpenQuestions::new(Arc::new(outbox.clone()), approvers);
        let roles = CurrentRoles::new(settings.clone(), pairings.clone());
        let router = Router::new(Arc::new(ConversationParts {
            profile: profile.into(),
            store: store.clone(),
            publisher: Arc::new(outbox.clone()),
            approvals: approvals.clone(),
            events: events.clone(),
            turns: FairPlaces::new(opened.settings.turns.max),
            receives: ReceiveLimits::new(MAX_RECEIVING),
            roles: roles.with_tokens(opened.tokens.clone()),
            settings: settings.clone(),
            media: media.clone(),
        }));
        let intake = Arc::new(GatewayIntake {
            settings: settings.clone(),
            store: store.clone(),
            pairings: pairings.clone(),
            approvals,
            tokens: opened.tokens.clone(),
            router: router.clone(),
            events: events.clone(),
            channels: channels.clone(),
            rate: RateLimit::per_sender(),
            webhook_rate: RateLimit::per_webhook(),
            refusals: RateLimit::of_refusals(),
            reports: RateLimit::of_reports(),
            counts: Counts::default(),
            observer: Arc::clone(&observer),
            is_closed: AtomicBool::new(false),
        });
        let running = Arc::new(Running {
            settings,
            observer,
            events,
            store,
            state_folder: opened.state_folder,
            tokens: opened.tokens,
            pairings,
            logins: Logins::default(),
            media,
            outbox,
            router,
            intake,
            channels,
            address,
            serves_channels: assembled.needs_server(),
            stdio: assembled.stdio.clone(),
            started: Timestamp::now(),
            stop: CancellationToken::new(),
            channel_stop: CancellationToken::new(),
            stdio_ended: CancellationToken::new(),
            tasks: TaskTracker::new(),
            hub: opened.hub,
            secrets: Mutex::new(opened.secrets),
            own_channels: opened.own_channels,
            reloads_from: opened.reloads_from,
            changing: tokio::sync::Mutex::default(),
            last_reload: Mutex::default(),
            grants: Grants::default(),
        });
        running.add_channels(&assembled);
        let views = views(opened.inspector, &running);
        let parts = running.server(opened.settings, opened.tls, assembled, views);
        Self {
            running,
            server: opened.listener.map(|listener| (listener, parts)),
            control: opened.control,
            failures,
        }
    }

    /// Returns the address of the server, if there is one.
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }

    /// Returns whether the server speaks TLS.
    pub fn has_tls(&self) -> bool {
        self.running.has_tls()
    }

    /// Returns an address that logs a browser in as `user`, once and within a minute. `None` without a page.
    pub fn login_url(&self, user: &str) -> Option<String> {
        self.running.login_url(user, LinkedPage::Chats).ok()
    }

    /// Accepts the user's passphrase as a proof that the user gives a command that gives rights.
    pub fn check_passphrase_with(&self, check: PassphraseCheck) {
        self.running.grants.check_passphrase_with(check);
    }

    /// Returns whether an owner was there once. Until then, the gateway is being set up, and commands give rights without a
    /// proof.
    pub fn is_set_up(&self) -> bool {
        self.running.tokens.is_set_up()
    }

    /// Returns what reloads the settings and the hooks while the gateway runs.
    pub fn reloads(&self) -> Reloads {
        Reloads(Arc::clone(&self.running))
    }

    /// Runs until `stop` or `now` is cancelled, or standard input ends in a gateway that reads it. `stop` lets running
    /// turns end; `now` cancels them.
    pub async fn run(self, stop: CancellationToken, now: CancellationToken) -> GatewayEnd {
        let running = self.running;
        let tasks = &running.tasks;
        let server_stop = CancellationToken::new();
        let starting = running.changing.lock().await;
        let reports = tokio::spawn(Arc::clone(&running).report_failures(self.failures));
        let ids = running.connect().await;
        running.recover().await;

        running.start_channels(&ids);
        if let Some((listener, parts)) = self.server {
            tasks.spawn(serve(listener, parts, server_stop.clone()));
        }
        let handler = Arc::new(Commands(Arc::clone(&running)));
        tasks.spawn(self.control.serve(handler, server_stop.clone()));
        let (sweeper, token) = (running.router.clone(), server_stop.clone());
        tasks.spawn(async move { sweeper.sweep(&token).await });
        tasks.spawn(Arc::clone(&running).sweep_files(server_stop.clone()));
        running.events.started(&running.working()).await;
        drop(starting);

        tokio::select! {
            () = stop.cancelled() => {}
            () = now.cancelled() => {}
            () = running.stop.cancelled() => {}
            () = running.stdio_ended.cancelled() => {}
        }
        let end = running.shut_down(&now).await;
        running.channel_stop.cancel();
        server_stop.cancel();
        tasks.close();
        let _in_time = tokio::time::timeout(end.channel_patience(), tasks.wait()).await;
        running.disconnect().await;
        reports.abort();
        end
    }
}

/// Opens the store and the folder of files.
fn open_state(folder: &Path) -> Result<(Store, MediaFolder), StartError> {
    let store = Store::open(folder).map_err(|error| {
        if error == StoreError::Locked {
            let folder = folder.to_owned();
            return StartError::Locked { folder };
        }
        error.into()
    })?;
    let media = MediaFolder::open_in_state(folder);
    Ok((
        store,
        media.map_err(|error| StartError::State(error.to_string()))?,
    ))
}

/// Reads the server's certificate, if it has one.
async fn read_tls(
    settings: &Settings,
    assembled: &Assembled,
) -> Result<Option<TlsIdentity>, StartError> {
    let files = settings.tls.clone().filter(|_| assembled.needs_server());
    let Some(files) = files else { return Ok(None) };
    let read = tokio::task::spawn_blocking(move || TlsIdentity::read(&files)).await;
    let identity =
        read.map_err(|_| StartError::State("the certificate cannot be read".to_owned()))?;
    identity
        .map(Some)
        .map_err(|error| StartError::Settings(error.to_string()))
}

/// Lets the inspector show and decide about the gateway.
/// Returns what the server shows of the gateway: the inspector, if there is one, and reports.
fn views(inspector: Option<Inspector>, running: &Arc<Running>) -> GatewayViews {
    let running = Arc::downgrade(running);
    let view = GatewayView(running.clone());
    let inspector = inspector.map(|it| Arc::new(it.with_gateway(Arc::new(view))));
    (inspector, Arc::new(RunningReports(running)))
}

/// Binds the server's address, if a channel or the inspector alone needs the server.
async fn bind(
    settings: &Settings,
    assembled: &Assembled,
    has_inspector: bool,
) -> Result<Option<TcpListener>, StartError> {
    let address = if assembled.needs_server() {
        settings.listen
    } else {
        settings.inspect.listen.filter(|_| has_inspector)
    };
    let Some(address) = address else {
        return Ok(None);
    };
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) => Err(StartError::Bind {
            address,
            cause: error.to_string(),
        }),
    }
}

/// Hands failures of sending to the task that reports them. Those that are too many are only logged.
fn failure_sink(failed: mpsc::Sender<SendFailure>, observer: &Observer) -> FailureSink {
    let observer = Arc::clone(observer);
    Arc::new(move |failure| {
        observer(GatewayNotice::Failure(format!(
            "cannot send to {}: {}",
            failure.chat, failure.cause
        )));
        let _dropped_if_full = failed.try_send(failure);
    })
}

#[cfg(test)]
mod tests {
    use crate::conversations::profile::OpenRequest;
    use futures_util::future::{self, BoxFuture};
    use tenterhook_agent::Agent;
    use tenterhook_engine::Engine;

    use super::*;

    struct FolderProfile(Engine, PathBuf);

    impl Profile for FolderProfile {
        fn engine(&self) -> &Engine {
            &self.0
        }

        fn folder(&self) -> &Path {
            &self.1
        }

        fn open(&self, _: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
            Box::pin(future::pending())
        }
    }

    // A hook may add files of the directory that it runs in to messages, and the state has secrets.
    #[tokio::test]
    async fn hooks_of_the_gateways_own_events_run_in_the_folder_of_the_agents() {
        let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let profile = FolderProfile(Engine::new(), folder.path().to_owned());
        let gateway = Gateway::start(GatewayConfig {
            settings: Settings {
                listen: None,
                channels: Vec::new(),
                ..Settings::default()
            },
            profile: Arc::new(profile),
            state: OpeningState::begin(state.path().to_owned()),
            own_channels: BTreeMap::new(),
            inspector: None,
            reloads_from: None,
            observer: Arc::new(|_| {}),
            stdio: false,
        });
        let gateway = gateway.await.unwrap();
        let dispatcher = gateway.running.events.dispatcher();
        assert_eq!(dispatcher.origin().cwd, folder.path());
    }

    #[tokio::test]
    async fn a_store_whose_pages_were_overwritten_is_called_damaged() {
        const PAGE: usize = 4096;
        let folder = tempfile::tempdir().unwrap();
        let open = || OpeningState::begin(folder.path().to_owned()).finish();
        drop(open().await.unwrap());
        let file = folder.path().join(tenterhook_channel::store::STORE_FILE);
        let whole = std::fs::read(&file).unwrap();
        let mut damaged = 0;
        for first in 0..16 {
            let mut bytes = whole.clone();
            bytes[first * PAGE..(first + 1) * PAGE].fill(0xFF);
            std::fs::write(&file, bytes).unwrap();
            // A page that nothing uses does no harm.
            if let Err(error) = open().await {
                damaged += 1;
                let text = error.to_string();
                assert!(text.contains("the file is damaged"), "{first}: {text}");
            }
        }
        assert!(damaged > 1, "{damaged}");
    }
}
