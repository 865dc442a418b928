//! A gateway that runs: what its tasks share, how it begins and how it ends.

use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tenterhook_protocol::event::{ChannelDisconnectReason, GatewayStopReason};
use tenterhook_protocol::journal::{JournalRecord, OutputRecord};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::assembly::Assembled;
use crate::channel_table::ChannelTable;
use crate::conversations::gateway_events::{GatewayEvents, GatewayFailure};
use crate::gateway_notice::{GatewayNotice, Observer};
use crate::grants::Grants;
use crate::intake::GatewayIntake;
use crate::outbox::{Outbox, SendFailure};
use crate::reload_result::{LastReload, ReloadSource};
use crate::router::Router;
use crate::supervisor::{ChannelState, ChannelStatus, Supervised};
use tenterhook_channel::channel::{Channel, Intake};
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::current_role::CurrentRoleError;
use tenterhook_channel::live_settings::LiveSettings;
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::message::IncomingPart;
use tenterhook_channel::pairing::Pairings;
use tenterhook_channel::rate::Lockout;
use tenterhook_channel::secret::HiddenSecret;
use tenterhook_channel::settings::Settings;
use tenterhook_channel::store::{InboxRecord, InboxState, Store};
use tenterhook_channel::token::{AccessScope, DEFAULT_USER, Tokens, check_user};
use tenterhook_inspect::Inspector;
use tenterhook_web::hub::Hub;
use tenterhook_web::server::{GatewayReports, Logins, ServerParts, TlsIdentity};
use tenterhook_web::stdio::StdioChannel;

/// How long frames may still be sent when the gateway stops.
const OUTBOX_PATIENCE: Duration = Duration::from_secs(5);

/// How long channels may take to end. Programs get 5 seconds of it, twice.
const CHANNEL_PATIENCE: Duration = Duration::from_secs(10);

/// How long channels may take to end if the gateway stops at once, and how long the hooks of their ends may take.
const SHORT_PATIENCE: Duration = Duration::from_secs(5);

/// How often files that are not needed any more are looked for.
const FILE_SWEEP: Duration = Duration::from_mins(10);

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

/// A page of the gateway that a link opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkedPage {
    /// The chats.
    Chats,
    /// The inspector, which only shows.
    Inspector,
    /// The inspector, which also decides about approvals and pairings.
    DecidingInspector,
}

impl LinkedPage {
    fn path(self) -> &'static str {
        match self {
            Self::Chats => "",
            Self::Inspector | Self::DecidingInspector => "inspect/",
        }
    }

    /// Returns what a browser that opened the link may do for a user. It is empty if the page is not for the user.
    fn scopes(self, user: &str) -> Vec<AccessScope> {
        let mut scopes = AccessScope::all_of(user);
        match self {
            Self::Chats => {}
            Self::Inspector => scopes.retain(|scope| *scope == AccessScope::Inspect),
            Self::DecidingInspector => {
                scopes.retain(|scope| [AccessScope::Inspect, AccessScope::Admin].contains(scope));
            }
        }
        scopes
    }
}

/// What the gateway's tasks share.
pub(crate) struct Running {
    pub(crate) settings: LiveSettings,
    pub(crate) observer: Observer,
    pub(crate) events: GatewayEvents,
    pub(crate) store: Store,
    /// The folder with everything that survives a restart.
    pub(crate) state_folder: PathBuf,
    pub(crate) tokens: Tokens,
    pub(crate) pairings: Pairings,
    pub(crate) logins: Logins,
    pub(crate) media: MediaFolder,
    pub(crate) outbox: Outbox,
    pub(crate) router: Router,
    pub(crate) intake: Arc<GatewayIntake>,
    pub(crate) channels: ChannelTable,
    pub(crate) address: Option<SocketAddr>,
    /// Whether the server is for channels. Otherwise, it has the inspector only.
    pub(crate) serves_channels: bool,
    pub(crate) stdio: Option<Arc<StdioChannel>>,
    pub(crate) started: Timestamp,
    /// Ends the gateway in order.
    pub(crate) stop: CancellationToken,
    /// Ends the channels.
    pub(crate) channel_stop: CancellationToken,
    /// Cancelled when standard input has ended.
    pub(crate) stdio_ended: CancellationToken,
    pub(crate) tasks: TaskTracker,
    pub(crate) hub: Hub,
    /// The secrets of the channels that are enabled.
    pub(crate) secrets: Mutex<BTreeMap<ChannelId, HiddenSecret>>,
    pub(crate) own_channels: BTreeMap<ChannelId, Arc<dyn Channel>>,
    pub(crate) reloads_from: Option<Arc<dyn ReloadSource>>,
    /// Held while the channels begin, and while they change.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) last_reload: Mutex<Option<LastReload>>,
    pub(crate) grants: Grants,
}

/// What the server shows of the gateway: the inspector, if there is one, and reports.
pub(crate) type GatewayViews = (Option<Arc<Inspector>>, Arc<dyn GatewayReports>);

impl Running {
    pub(crate) fn server(
        self: &Arc<Self>,
        settings: Arc<Settings>,
        tls: Option<TlsIdentity>,
        assembled: Assembled,
        (inspector, reports): GatewayViews,
    ) -> ServerParts {
        ServerParts {
            settings,
            tls,
            tokens: self.tokens.clone(),
            lockout: Lockout::default(),
            hub: self.hub.clone(),
            store: self.store.clone(),
            web: assembled.web,
            http: assembled.http,
            webhooks: assembled.webhooks,
            media: self.media.clone(),
            logins: self.logins.clone(),
            inspector,
            reports,
        }
    }

    /// Describes the gateway.
    pub(crate) fn status(&self) -> Value {
        let channels: Vec<ChannelStatus> = self
            .channels
            .all()
            .iter()
            .map(|channel| channel.status())
            .collect();
        let mut status = json!({
            "address": self.address,
            "tls": self.has_tls(),
            "started": self.started,
            "channels": channels,
            "messages": self.intake.counts.all().into_iter().map(|(result, count)| (result.to_owned(), json!(count))).collect::<Value>(),
            "conversations": self.router.open(),
        });
        if let (Some(status), Some(reload)) = (status.as_object_mut(), &*self.last_reload.lock()) {
            status.insert("reload".to_owned(), json!(reload));
        }
        status
    }

    /// Returns whether the inspector shows the owner what is said in a chat, and lets the owner answer its questions.
    pub(crate) fn shows_contents(&self, chat: &ChatRef) -> bool {
        let settings = self.settings.current();
        settings.inspect.shows_all_chats || settings.is_owners_chat(&chat.channel, &chat.chat)
    }

    /// Returns whether the server speaks TLS.
    pub(crate) fn has_tls(&self) -> bool {
        self.serves_channels && self.settings.current().tls.is_some()
    }

    /// Returns the address of a page that logs a browser in, once and within a minute.
    pub(crate) fn login_url(&self, user: &str, page: LinkedPage) -> Result<String, String> {
        if page == LinkedPage::Chats && !self.serves_channels {
            return Err("the gateway has no page: no channel of kind `web` is enabled".to_owned());
        }
        let address = self.address.ok_or(
            "the gateway has no server: no channel needs one, and its settings have no `inspect`",
        )?;
        let scopes = page.scopes(user);
        if scopes.is_empty() {
            return Err(format!(
                "the inspector is for the user `{DEFAULT_USER}` alone, and not for `{user}`"
            ));
        }
        check_user(user).map_err(|error| error.to_string())?;
        let code = self
            .logins
            .code(user, scopes)
            .map_err(|error| error.to_string())?;
        let host = if address.ip().is_unspecified() {
            format!("127.0.0.1:{}", address.port())
        } else {
            address.to_string()
        };
        let page = page.path();
        let settings = self.settings.current();
        if !self.has_tls() {
            return Ok(format!("http://{host}/{page}#code={code}"));
        }
        // A certificate is for a name, and rarely for a loopback address.
        let host = match settings.hosts.first() {
            Some(name) if name.contains(':') => name.clone(),
            Some(name) => format!("{name}:{}", address.port()),
            None => host,
        };
        Ok(format!("https://{host}/{page}#code={code}"))
    }

    /// Asks hooks about each channel. Returns those that may connect.
    pub(crate) async fn connect(&self) -> Vec<ChannelId> {
        let mut allowed = Vec::new();
        for channel in self.channels.all() {
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
            let text = format!("cannot read the answers of the last run: {error}");
            (self.observer)(GatewayNotice::Failure(text));
        }
        let unfinished = match self.store.unfinished().await {
            Ok(unfinished) => unfinished,
            Err(error) => {
                let text = format!("cannot read the messages of the last run: {error}");
                return (self.observer)(GatewayNotice::Failure(text));
            }
        };
        for mut record in unfinished {
            match self
                .router
                .roles()
                .at_most(record.role, &record.message)
                .await
            {
                Ok(role) => record.role = role,
                Err(error) => {
                    self.refuse_leftover(&record, &error).await;
                    continue;
                }
            }
            if record.state == InboxState::Running {
                self.router.resume_interrupted(record).await;
            } else if let Err(full) = self.router.dispatch(record) {
                // The record stays in the store, and the next start finds it.
                (self.observer)(GatewayNotice::Failure(full.to_string()));
            }
        }
    }

    /// Does not process a message of an earlier run, because its sender may no longer talk to the agent. If that is
    /// unknown, or the channel is not in use, the message stays in the store, and the next start finds it.
    async fn refuse_leftover(&self, record: &InboxRecord, error: &CurrentRoleError) {
        let chat = &record.message.chat;
        let text = if let CurrentRoleError::Refused { refusal } = error {
            let refused = InboxState::Refused(refusal.code().to_owned());
            match self.store.set_inbox_state(vec![record.id], refused).await {
                Ok(()) => format!("a message of the last run in `{chat}` was refused: {error}"),
                Err(failure) => format!("cannot refuse a message in `{chat}`: {failure}"),
            }
        } else {
            format!("a message of the last run in `{chat}` waits for the next start: {error}")
        };
        let dispatcher = self.events.dispatcher();
        dispatcher.record(|| JournalRecord::Output(OutputRecord::now("gateway", text.as_str())));
        (self.observer)(GatewayNotice::Failure(text));
    }

    /// Creates what watches a channel.
    pub(crate) fn supervised(
        &self,
        id: &ChannelId,
        kind: &'static str,
        channel: Arc<dyn Channel>,
    ) -> Arc<Supervised> {
        let observer = Arc::clone(&self.observer);
        let changed = Arc::new(move |status: &ChannelStatus| {
            observer(GatewayNotice::Channel(status.clone()));
        });
        Arc::new(Supervised::new(id.clone(), kind, channel, changed))
    }

    /// Adds channels without starting them.
    pub(crate) fn add_channels(&self, assembled: &Assembled) {
        for (id, kind, channel) in &assembled.channels {
            let supervised = self.supervised(id, kind, Arc::clone(channel));
            self.channels.insert(supervised);
        }
    }

    /// Starts the channels that may connect.
    pub(crate) fn start_channels(self: &Arc<Self>, allowed: &[ChannelId]) {
        let channels = self.channels.all();
        for channel in channels
            .iter()
            .filter(|channel| allowed.contains(channel.id()))
        {
            self.start_channel(channel);
        }
    }

    /// Starts a channel.
    pub(crate) fn start_channel(self: &Arc<Self>, channel: &Arc<Supervised>) {
        let (running, channel) = (Arc::clone(self), Arc::clone(channel));
        self.tasks.spawn(async move {
            let intake = Arc::clone(&running.intake) as Arc<dyn Intake>;
            let stop = &running.channel_stop;
            let reason = channel.supervise(&intake, &running.events, stop).await;
            if channel.status().kind == "stdio" && reason == ChannelDisconnectReason::Removed {
                running.stdio_ended.cancel();
            }
        });
    }

    /// Returns the channels that run or will be tried again.
    pub(crate) fn working(&self) -> Vec<ChannelId> {
        let is_working = |channel: &&Arc<Supervised>| {
            !matches!(channel.state(), ChannelState::Blocked | ChannelState::Off)
        };
        let channels = self.channels.all();
        let working = channels.iter().filter(is_working);
        working.map(|channel| channel.id().clone()).collect()
    }

    /// Returns how long an orderly end takes at most.
    pub(crate) fn max_shutdown(&self) -> Duration {
        // Hooks of `gateway_stop`, the turns, the outbox, standard output, the channels, and hooks of their ends.
        let drain = self.settings.current().turns.drain;
        drain + OUTBOX_PATIENCE + CHANNEL_PATIENCE + SHORT_PATIENCE * 3
    }

    /// Stops taking messages, lets turns end, and sends what is left. The channels stay connected meanwhile: someone may
    /// answer a question of a turn, or cancel it.
    pub(crate) async fn shut_down(&self, now: &CancellationToken) -> GatewayEnd {
        (self.observer)(GatewayNotice::Stopping);
        let ids = self.channels.ids();
        self.events
            .stopping(&ids, GatewayStopReason::Shutdown)
            .await;
        self.intake.is_closed.store(true, Ordering::Release);
        let drain = self.settings.current().turns.drain;
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
        let channels = self.channels.all();
        let announced = channels.iter().filter_map(|channel| {
            let reason = channel.disconnect_reason()?;
            Some(self.events.disconnected(channel.id(), reason))
        });
        let _in_time = tokio::time::timeout(SHORT_PATIENCE, join_all(announced)).await;
    }

    /// Removes files that are too old or make room, until `stop`. Files of messages that wait stay.
    pub(crate) async fn sweep_files(self: Arc<Self>, stop: CancellationToken) {
        loop {
            // Without knowing what waits, nothing is removed.
            if let Ok(waiting) = self.store.unfinished().await {
                let files = waiting.iter().flat_map(|record| &record.message.parts);
                let ids: HashSet<&str> = files
                    .filter_map(|part| match part {
                        IncomingPart::Media(media) => media.reference.rsplit('/').next(),
                        IncomingPart::Text { .. }
                        | IncomingPart::Reference(_)
                        | IncomingPart::Unreadable { .. } => None,
                    })
                    .collect();
                if let Err(error) = self.media.sweep(&|id| ids.contains(id)).await {
                    (self.observer)(GatewayNotice::Failure(error.to_string()));
                }
            }
            let next = tokio::time::sleep(FILE_SWEEP);
            if stop.run_until_cancelled(next).await.is_none() {
                return;
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_to_the_inspector_decides_nothing_and_reads_no_chats() {
        let scopes = |page: LinkedPage| page.scopes(DEFAULT_USER);
        assert_eq!(scopes(LinkedPage::Inspector), [AccessScope::Inspect]);
        let deciding = scopes(LinkedPage::DecidingInspector);
        assert_eq!(deciding, [AccessScope::Inspect, AccessScope::Admin]);
    }

    #[test]
    fn a_link_for_another_user_gives_no_rights_of_the_owner() {
        let own = [AccessScope::Chat, AccessScope::Approve];
        assert_eq!(LinkedPage::Chats.scopes("ada"), own);
        assert_eq!(LinkedPage::Inspector.scopes("ada"), []);
        assert_eq!(LinkedPage::DecidingInspector.scopes("ada"), []);
        assert_eq!(LinkedPage::Chats.scopes(DEFAULT_USER), AccessScope::ALL);
    }
}
