//! What the routes share.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::client_places::{ClientPlace, ClientPlaces};
use super::http_error::HttpError;
use super::idle::{Activity, IdleConnections};
use super::login::Logins;
use super::origin::AllowedOrigins;
use super::tls::TlsIdentity;
use crate::frame_channel::FrameChannel;
use crate::hub::Hub;
use crate::webhook::WebhookChannel;
use tenterhook_channel::fair_places::FairPlaces;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::rate::{Lockout, RateLimit};
use tenterhook_channel::settings::Settings;
use tenterhook_channel::store::Store;
use tenterhook_channel::token::Tokens;
use tenterhook_inspect::Inspector;

/// The maximum number of web sockets whose clients have not shown a token yet.
const MAX_UNKNOWN_SOCKETS: usize = 16;

/// The maximum number of requests that bring files at once.
const MAX_UPLOADS: usize = 4;

/// Describes the gateway for programs that watch it.
pub trait GatewayReports: Send + Sync {
    /// Returns what `GET /v1/status` shows.
    fn status(&self) -> Value;

    /// Returns what `GET /metrics` shows, in the text format of Prometheus.
    fn metrics(&self) -> BoxFuture<'_, String>;

    /// Returns why the gateway takes no messages now, or `None` if it does. Everyone may see it.
    fn unready(&self) -> BoxFuture<'_, Option<&'static str>>;
}

/// What the server serves.
#[derive(Clone)]
pub struct ServerParts {
    /// The settings: the names of the server, and the limits of turns.
    pub settings: Arc<Settings>,
    /// The certificate of the server. `None` for a server without TLS.
    pub tls: Option<TlsIdentity>,
    /// Who may use the server.
    pub tokens: Tokens,
    /// Addresses that sent wrong tokens.
    pub lockout: Lockout,
    /// The frames of the chats.
    pub hub: Hub,
    /// What is kept of the chats.
    pub store: Store,
    /// The channel of the page. `None` if there is no page.
    pub web: Option<Arc<FrameChannel>>,
    /// The channel of requests over HTTP, if there is one.
    pub http: Option<Arc<FrameChannel>>,
    /// The channels of kind `webhook`.
    pub webhooks: Vec<Arc<WebhookChannel>>,
    /// The files of the chats.
    pub media: MediaFolder,
    /// Codes with which browsers log in.
    pub logins: Logins,
    /// What the inspector shows, if there is one.
    pub inspector: Option<Arc<Inspector>>,
    /// Describes the gateway.
    pub reports: Arc<dyn GatewayReports>,
}

impl fmt::Debug for ServerParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerParts").finish_non_exhaustive()
    }
}

/// Decides who may send which requests, before any route.
#[derive(Debug)]
pub(crate) struct Gatekeeper {
    pub(crate) allowed: AllowedOrigins,
    /// The port of the server.
    pub(crate) port: u16,
    /// Who may use the server.
    pub(crate) tokens: Tokens,
    /// Addresses that sent wrong tokens.
    pub(crate) lockout: Lockout,
    /// Codes with which browsers log in.
    pub(crate) logins: Logins,
    /// The command that prints a link with a new code.
    pub(crate) link_command: &'static str,
    /// The limit of requests with a token.
    pub(crate) rate: RateLimit,
    /// The connections of clients with a right token.
    pub(super) clients: ClientPlaces,
}

pub(crate) type SharedGatekeeper = Arc<Gatekeeper>;

/// The web sockets whose clients have not shown a token yet. For a further one, the oldest gives way.
#[derive(Debug)]
pub(super) struct UnknownSockets {
    places: Arc<Semaphore>,
    waiting: IdleConnections,
}

impl Default for UnknownSockets {
    fn default() -> Self {
        Self {
            places: Arc::new(Semaphore::new(MAX_UNKNOWN_SOCKETS)),
            waiting: IdleConnections::default(),
        }
    }
}

impl UnknownSockets {
    /// Waits for a place among these sockets. The token of the activity is cancelled when the socket has to give way.
    pub(super) async fn take(&self) -> Option<(OwnedSemaphorePermit, Arc<Activity>)> {
        let permit = self.waiting.make_room(&self.places).await?;
        Some((permit, self.waiting.begin()))
    }
}

/// The parts, and what the server adds to them.
pub(crate) struct ServerState {
    pub(crate) parts: ServerParts,
    pub(crate) gatekeeper: SharedGatekeeper,
    pub(super) unknown_sockets: UnknownSockets,
    /// The requests that bring files. Each holds one file in memory.
    pub(crate) uploads: FairPlaces,
    /// Ends streams and sockets.
    pub(crate) stop: CancellationToken,
}

pub(crate) type SharedState = Arc<ServerState>;

/// The address of the other end of the connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer(pub(crate) IpAddr);

/// The place of a connection among those that the server takes. A web socket keeps it after its request is answered.
#[derive(Clone)]
pub(crate) struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
    _task: TaskTrackerToken,
    /// What counts the connection for its source, until its client is known.
    share: Arc<Mutex<Option<Box<dyn Send>>>>,
    activity: Weak<Activity>,
}

impl Place {
    /// `permit` is dropped when the connection has ended. `task` makes the server wait for it when the server stops.
    pub(super) fn new(
        (permit, task): (OwnedSemaphorePermit, TaskTrackerToken),
        share: impl Send + 'static,
        activity: &Arc<Activity>,
    ) -> Self {
        Self {
            _permit: Arc::new(permit),
            _task: task,
            share: Arc::new(Mutex::new(Some(Box::new(share)))),
            activity: Arc::downgrade(activity),
        }
    }

    /// Notes that a client with a right token sends the request. It counts for its token and user, and not for its
    /// source any more.
    pub(super) fn identify(&self, client: ClientPlace) {
        self.forget_source();
        if let Some(activity) = self.activity.upgrade() {
            activity.identify(client);
        }
    }

    /// Does not count the connection for its source any more.
    pub(super) fn forget_source(&self) {
        drop(self.share.lock().take());
    }
}

impl ServerState {
    pub(crate) fn new(parts: ServerParts, port: u16, stop: CancellationToken) -> Self {
        let settings = &parts.settings;
        let gatekeeper = Gatekeeper {
            allowed: AllowedOrigins::new(
                &settings.hosts,
                &settings.origins,
                &settings.trusted_proxies,
                port,
                parts.tls.is_some(),
            ),
            port,
            tokens: parts.tokens.clone(),
            lockout: parts.lockout.clone(),
            logins: parts.logins.clone(),
            link_command: "tenterhook gateway open",
            rate: RateLimit::per_token(),
            clients: ClientPlaces::default(),
        };
        Self {
            gatekeeper: Arc::new(gatekeeper),
            unknown_sockets: UnknownSockets::default(),
            uploads: FairPlaces::new(MAX_UPLOADS),
            stop,
            parts,
        }
    }

    /// Returns the channel of requests over HTTP.
    ///
    /// # Errors
    ///
    /// Fails with 404 if the settings have none.
    pub(crate) fn http(&self) -> Result<&Arc<FrameChannel>, HttpError> {
        let missing = "no channel of kind `http` is enabled; add one to gateway.yaml";
        self.parts
            .http
            .as_ref()
            .ok_or(HttpError::not_found(missing))
    }
}
