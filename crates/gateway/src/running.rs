//! A gateway that runs: what its tasks share, how it begins and how it ends.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};
use tenterhook_protocol::event::{ChannelDisconnectReason, GatewayStopReason};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::assembly::Assembled;
use crate::gateway_notice::{GatewayNotice, Observer};
use crate::intake::GatewayIntake;
use crate::outbox::{Outbox, SendFailure};
use crate::router::Router;
use crate::supervisor::{ChannelState, ChannelStatus, Supervised};
use tenterhook_channel::channel::Intake;
use tenterhook_channel::chat::ChannelId;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::pairing::Pairings;
use tenterhook_channel::rate::Lockout;
use tenterhook_channel::settings::Settings;
use tenterhook_channel::store::{InboxState, Store};
use tenterhook_channel::token::{AccessScope, Tokens};
use tenterhook_conversation::deliver::Delivery;
use tenterhook_conversation::gateway_events::{GatewayEvents, GatewayFailure};
use tenterhook_web::hub::Hub;
use tenterhook_web::server::{Logins, ServerParts};
use tenterhook_web::stdio::StdioChannel;

/// How long frames may still be sent when the gateway stops.
const OUTBOX_PATIENCE: Duration = Duration::from_secs(5);

/// How long channels may take to end. Programs get 5 seconds of it, twice.
const CHANNEL_PATIENCE: Duration = Duration::from_secs(10);

/// How long channels may take to end if the gateway stops at once, and how long the hooks of their ends may take.
const SHORT_PATIENCE: Duration = Duration::from_secs(5);

/// How a gateway ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GatewayEnd {
    /// It was stopped, and everything ended in order.
    Stopped,
    /// It was stopped at once. Running turns were cancelled.
    Interrupted,
}

impl GatewayEnd {
    /// Returns how long channels may take to end.
    pub(crate) fn channel_patience(self) -> Duration {
        match self {
            Self::Stopped => CHANNEL_PATIENCE,
            Self::Interrupted => SHORT_PATIENCE,
        }
    }
}

/// What the gateway's tasks share.
pub(crate) struct Running {
    pub(crate) settings: Arc<Settings>,
    pub(crate) observer: Observer,
    pub(crate) events: GatewayEvents,
    pub(crate) store: Store,
    pub(crate) tokens: Tokens,
    pub(crate) pairings: Pairings,
    pub(crate) logins: Logins,
    pub(crate) media: MediaFolder,
    pub(crate) outbox: Outbox,
    pub(crate) router: Router,
    pub(crate) intake: Arc<GatewayIntake>,
    pub(crate) delivery: Delivery,
    /// In the order of the settings.
    pub(crate) channels: Vec<Arc<Supervised>>,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) stdio: Option<Arc<StdioChannel>>,
    pub(crate) started: Timestamp,
    /// Ends the gateway in order.
    pub(crate) stop: CancellationToken,
}

impl Running {
    pub(crate) fn server(self: &Arc<Self>, hub: Hub, assembled: Assembled) -> ServerParts {
        let running = Arc::downgrade(self);
        ServerParts {
            settings: Arc::clone(&self.settings),
            tokens: self.tokens.clone(),
            lockout: Lockout::default(),
            hub,
            store: self.store.clone(),
            web: assembled.web,
            http: assembled.http,
            webhooks: assembled.webhooks,
            media: self.media.clone(),
            logins: self.logins.clone(),
            status: Arc::new(move || match running.upgrade() {
                Some(running) => running.status(),
                None => Value::Null,
            }),
        }
    }

    /// Describes the gateway.
    pub(crate) fn status(&self) -> Value {
        let channels: Vec<ChannelStatus> = self
            .channels
            .iter()
            .map(|channel| channel.status())
            .collect();
        json!({
            "address": self.address,
            "started": self.started,
            "channels": channels,
            "messages": self.intake.counts.to_json(),
            "conversations": self.router.open(),
        })
    }

    /// Returns an address that logs a browser in, once and within a minute.
    pub(crate) fn login_url(&self, user: &str) -> Result<String, String> {
        let address = self
            .address
            .ok_or("the gateway has no page: no channel of kind `web` is enabled")?;
        let code = self
            .logins
            .code(user, AccessScope::ALL.to_vec())
            .map_err(|error| error.to_string())?;
        let host = if address.ip().is_unspecified() {
            format!("127.0.0.1:{}", address.port())
        } else {
            address.to_string()
        };
        Ok(format!("http://{host}/#code={code}"))
    }

    /// Asks hooks about each channel. Returns those that may connect.
    pub(crate) async fn connect(&self) -> Vec<ChannelId> {
        let mut allowed = Vec::new();
        for channel in &self.channels {
            let status = channel.status();
            match self.events.connecting(&status.id, status.kind, None).await {
                Ok(()) => allowed.push(status.id),
                Err(reason) => channel.block(reason),
            }
        }
        allowed
    }

    /// Continues with what an earlier process left: its frames, and its messages in their order.
    pub(crate) async fn recover(&self) {
        if let Err(error) = self.outbox.resume().await {
            (self.observer)(GatewayNotice::Failure(error.to_string()));
        }
        let unsettled = match self.store.unsettled().await {
            Ok(unsettled) => unsettled,
            Err(error) => {
                let text = format!("cannot read the messages of the last run: {error}");
                return (self.observer)(GatewayNotice::Failure(text));
            }
        };
        for record in unsettled {
            if record.state == InboxState::Running {
                self.router.resume_interrupted(record).await;
            } else if let Err(full) = self.router.dispatch(record) {
                // The record stays in the store, and the next start finds it.
                (self.observer)(GatewayNotice::Failure(full.to_string()));
            }
        }
    }

    /// Starts the channels that may connect. The returned token is cancelled when standard input has ended.
    pub(crate) fn start_channels(
        self: &Arc<Self>,
        allowed: &[ChannelId],
        stop: &CancellationToken,
        tasks: &TaskTracker,
    ) -> CancellationToken {
        let ended = CancellationToken::new();
        for channel in &self.channels {
            if !allowed.contains(channel.id()) {
                continue;
            }
            let (running, channel) = (Arc::clone(self), Arc::clone(channel));
            let (stop, ended) = (stop.clone(), ended.clone());
            tasks.spawn(async move {
                let intake = Arc::clone(&running.intake) as Arc<dyn Intake>;
                let reason = channel.supervise(&intake, &running.events, &stop).await;
                if channel.status().kind == "stdio" && reason == ChannelDisconnectReason::Removed {
                    ended.cancel();
                }
            });
        }
        ended
    }

    /// Returns the channels that run or will be tried again.
    pub(crate) fn working(&self) -> Vec<ChannelId> {
        let is_working = |channel: &&Arc<Supervised>| {
            !matches!(
                channel.state(),
                ChannelState::Blocked | ChannelState::Failed | ChannelState::Off
            )
        };
        let working = self.channels.iter().filter(is_working);
        working.map(|channel| channel.id().clone()).collect()
    }

    /// Stops taking messages, lets turns end, and sends what is left. The channels stay connected meanwhile: someone may
    /// answer a question of a turn, or cancel it.
    pub(crate) async fn shut_down(&self, now: &CancellationToken) -> GatewayEnd {
        (self.observer)(GatewayNotice::Stopping);
        let ids: Vec<ChannelId> = self
            .channels
            .iter()
            .map(|channel| channel.id().clone())
            .collect();
        self.events
            .stopping(&ids, GatewayStopReason::Shutdown)
            .await;
        self.intake.is_closed.store(true, Ordering::Release);
        let drain = self.settings.turns.drain;
        let drained = now.run_until_cancelled(self.router.stop(drain)).await;
        let end = if drained.is_some() {
            GatewayEnd::Stopped
        } else {
            self.router.stop(Duration::ZERO).await;
            GatewayEnd::Interrupted
        };
        let patience = match end {
            GatewayEnd::Stopped => OUTBOX_PATIENCE,
            GatewayEnd::Interrupted => Duration::ZERO,
        };
        self.outbox.close(patience).await;
        if let Some(stdio) = &self.stdio {
            let _in_time = tokio::time::timeout(SHORT_PATIENCE, stdio.close()).await;
        }
        end
    }

    /// Lets hooks know that the channels have disconnected.
    pub(crate) async fn disconnect(&self) {
        let announced = self.channels.iter().filter_map(|channel| {
            let reason = channel.disconnect_reason()?;
            Some(self.events.disconnected(channel.id(), reason))
        });
        let _in_time = tokio::time::timeout(SHORT_PATIENCE, join_all(announced)).await;
    }

    /// Lets hooks know of frames that could not be sent.
    pub(crate) async fn report_failures(
        self: Arc<Self>,
        mut failures: mpsc::Receiver<SendFailure>,
    ) {
        while let Some(failure) = failures.recv().await {
            let channel = failure.chat.channel.clone();
            let failed = GatewayFailure {
                code: "send".to_owned(),
                error: failure.cause,
                chat: Some(failure.chat),
                message_id: None,
                will_retry: failure.will_retry,
            };
            self.events.failed(&channel, failed).await;
        }
    }
}
