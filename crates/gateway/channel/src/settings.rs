//! The settings of a gateway: the contents of `gateway.yaml`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tenterhook_protocol::event::SenderRole;
use tenterhook_voice::{SttSettings, TtsSettings};
use thiserror::Error;

use crate::chat::{ChannelId, ChatRef, InvalidChannelId};
use crate::token::DEFAULT_USER;

/// The settings of a gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The address of the server for the page, HTTP and webhooks. `None` for no server.
    pub listen: Option<SocketAddr>,
    /// Whether the server may listen on an address that other machines reach.
    pub is_public: bool,
    /// Names under which the server is reached, as `host` or `host:port`, in addition to the names of the loopback.
    pub hosts: Vec<String>,
    /// Origins of pages that may use the server, besides its own.
    pub origins: Vec<String>,
    /// Addresses of proxies whose forwarded headers are believed.
    pub trusted_proxies: Vec<std::net::IpAddr>,
    /// The certificate of the server. `None` for a server without TLS.
    pub tls: Option<TlsFiles>,
    /// The limits of turns.
    pub turns: TurnLimits,
    /// How chats share sessions.
    pub sessions: SessionMode,
    /// What happens to a message while the agent works.
    pub busy: BusyMode,
    /// What happens to a turn that a crash interrupted.
    pub on_restart: RestartMode,
    /// The owner's direct chat in which approvals are asked that cannot be asked in their own chat.
    pub approvals_to: Option<ChatRef>,
    /// What the inspector shows.
    pub inspect: InspectSettings,
    /// The environment variables with secrets that programs of tools and hooks inherit nevertheless.
    pub keep_env: Vec<String>,
    /// Persons who share one session across channels.
    pub links: Vec<Link>,
    /// How voice messages become text. `None` if they do not.
    pub stt: Option<SttSettings>,
    /// How answers become audio. `None` if they do not.
    pub tts: Option<TtsSettings>,
    /// The channels, in the order of the file.
    pub channels: Vec<ChannelSettings>,
}

/// The settings without a file: the page in a browser, on the loopback.
impl Default for Settings {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::from(([127, 0, 0, 1], 7878))),
            is_public: false,
            hosts: Vec::new(),
            origins: Vec::new(),
            trusted_proxies: Vec::new(),
            tls: None,
            turns: TurnLimits::default(),
            sessions: SessionMode::default(),
            busy: BusyMode::default(),
            on_restart: RestartMode::default(),
            approvals_to: None,
            inspect: InspectSettings::default(),
            keep_env: Vec::new(),
            links: Vec::new(),
            stt: None,
            tts: None,
            channels: ChannelId::new("web")
                .map(|id| ChannelSettings::new(id, ChannelKind::Web))
                .into_iter()
                .collect(),
        }
    }
}

/// The channel `stdio` cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StdioError {
    /// A channel of another kind has the name.
    #[error("the channel `stdio` is of the kind `{kind}`; rename it")]
    Taken {
        /// The kind of that channel.
        kind: &'static str,
    },
    /// The name is not allowed.
    #[error(transparent)]
    Name(#[from] InvalidChannelId),
}

impl Settings {
    /// Returns the environment variables with the secrets of channels, also of those that are not enabled, and with the
    /// keys of services for speech.
    pub fn secret_variables(&self) -> Vec<String> {
        let kinds = self.channels.iter().map(|channel| &channel.kind);
        let of_channels = kinds.filter_map(ChannelKind::secret_variable).cloned();
        let of_speech = [
            self.stt.as_ref().and_then(SttSettings::secret_variable),
            self.tts.as_ref().and_then(TtsSettings::secret_variable),
        ];
        let of_speech = of_speech.into_iter().flatten().map(str::to_owned);
        of_channels.chain(of_speech).collect()
    }

    /// Returns the channels in which other people can make the agent use a shell, which runs with the rights of the account.
    pub fn channels_with_open_shell(&self) -> impl Iterator<Item = &ChannelSettings> {
        self.channels.iter().filter(|channel| {
            let has_shell = channel
                .tools
                .as_ref()
                .is_none_or(|tools| tools.iter().any(|tool| tool == SHELL));
            channel.is_enabled && !channel.is_untrusted && has_shell && channel.has_others()
        })
    }

    /// Returns the address of the server. `None` if no server is started: no channel needs it, and the inspector has no address
    /// of its own.
    pub fn server_address(&self) -> Option<SocketAddr> {
        let mut channels = self.channels.iter();
        if channels.any(|channel| channel.is_enabled && channel.kind.needs_server()) {
            self.listen
        } else {
            self.inspect.listen
        }
    }

    /// Returns whether a chat is the owner's own: no one else writes in it. What is said in other chats is shown to the
    /// owner only if [`InspectSettings::shows_all_chats`].
    pub fn is_owners_chat(&self, channel: &ChannelId, chat: &str) -> bool {
        let approvals = self.approvals_to.as_ref();
        if approvals.is_some_and(|own| own.channel == *channel && own.chat == chat) {
            return true;
        }
        let mut channels = self.channels.iter();
        let Some(settings) = channels.find(|settings| settings.id == *channel) else {
            return false;
        };
        match settings.kind {
            ChannelKind::Web | ChannelKind::Http => {
                let user = chat.split_once('/').map(|(user, _)| user);
                user == Some(DEFAULT_USER)
            }
            // No person but the one who started the gateway, or a service, writes in these.
            ChannelKind::Stdio | ChannelKind::Webhook(_) => true,
            // The id of a direct chat is the id of its sender. Groups are on another list.
            ChannelKind::Telegram(_) | ChannelKind::Command(_) => {
                settings.access.owners.iter().any(|owner| owner == chat)
                    && !settings.access.lists_group(chat)
            }
        }
    }

    /// Adds the channel `stdio`, unless there is one of this kind already.
    ///
    /// # Errors
    ///
    /// Fails if a channel of another kind is called `stdio`.
    pub fn with_stdio(mut self) -> Result<Self, StdioError> {
        let mut channels = self.channels.iter_mut();
        if let Some(channel) = channels.find(|channel| channel.kind == ChannelKind::Stdio) {
            channel.is_enabled = true;
            return Ok(self);
        }
        let id = ChannelId::new("stdio")?;
        if let Some(taken) = self.channels.iter().find(|channel| channel.id == id) {
            let kind = taken.kind.word();
            return Err(StdioError::Taken { kind });
        }
        self.channels
            .push(ChannelSettings::new(id, ChannelKind::Stdio));
        Ok(self)
    }

    /// Checks the address of the server. Other machines may reach it only with `public: true`.
    ///
    /// # Errors
    ///
    /// Fails if the address is not on the loopback and `is_public` is false.
    pub fn check_listen(address: SocketAddr, is_public: bool) -> Result<(), PublicAddress> {
        if is_public || address.ip().is_loopback() {
            Ok(())
        } else {
            Err(PublicAddress { address })
        }
    }
}

/// The error of an address that other machines reach although the settings do not say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "other machines can reach `{address}`; expected a loopback address such as `127.0.0.1:7878`, or `public: true`"
)]
pub struct PublicAddress {
    /// The address.
    pub address: SocketAddr,
}

/// What the inspector shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InspectSettings {
    /// Whether it keeps the payloads of events and the answers of hooks in memory.
    pub has_payloads: bool,
    /// Whether the owner also sees what is said in the chats of others, and may answer their questions.
    pub shows_all_chats: bool,
    /// The loopback address of a server for the inspector alone, if no channel needs a server. `None` for no such server.
    pub listen: Option<SocketAddr>,
}

impl Default for InspectSettings {
    fn default() -> Self {
        Self {
            has_payloads: true,
            shows_all_chats: false,
            listen: None,
        }
    }
}

/// The files with which a server proves its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by the certificates of its issuers, as PEM.
    pub cert: PathBuf,
    /// The private key as PEM, in a file that only its owner can read.
    pub key: PathBuf,
}

/// The limits of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnLimits {
    /// How many turns may run at once.
    pub max: usize,
    /// How long one may take.
    pub timeout: Duration,
    /// How long turns may continue when the gateway stops.
    pub drain: Duration,
}

impl Default for TurnLimits {
    fn default() -> Self {
        Self {
            max: 8,
            timeout: Duration::from_mins(30),
            drain: Duration::from_secs(10),
        }
    }
}

/// How chats share sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SessionMode {
    /// Each chat, and each thread of it, has its own.
    #[default]
    Chat,
    /// Each sender in each chat has their own.
    Sender,
    /// All chats of all channels share one.
    Profile,
}

/// What happens to a message while the agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusyMode {
    /// The agent hears it at its next step.
    #[default]
    Steer,
    /// It begins the next turn.
    FollowUp,
    /// Messages of a short time become one prompt for the next turn.
    Collect,
    /// It ends the current turn and begins the next one.
    Interrupt,
    /// It is refused.
    Refuse,
}

/// What happens to a turn that a crash interrupted. Tools may have run, so it is never run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RestartMode {
    /// The chat gets a message that the turn was interrupted.
    #[default]
    Tell,
    /// The agent is asked to continue.
    Resume,
    /// Nothing is said.
    Quiet,
}

/// Senders who share one session in their direct chats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// The name of the session.
    pub name: String,
    /// The senders: channel and the channel's id of the sender.
    pub senders: Vec<(ChannelId, String)>,
}

/// One channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelSettings {
    /// Its id: the key in the settings.
    pub id: ChannelId,
    /// Whether it is started.
    pub is_enabled: bool,
    /// Who may do what.
    pub access: AccessRules,
    /// Its own way to share sessions, if it has one.
    pub sessions: Option<SessionMode>,
    /// Its own way to treat messages while the agent works, if it has one.
    pub busy: Option<BusyMode>,
    /// Whether all threads of a chat share a session.
    pub has_shared_threads: bool,
    /// The only tools that turns of this channel may use. `None` for all tools of the agent.
    pub tools: Option<Vec<String>>,
    /// Whether turns of this channel may only read.
    pub is_untrusted: bool,
    /// What the channel shows of a turn besides its text.
    pub show: Show,
    /// Whether recordings of this channel become text, if it differs from `stt`.
    pub stt_enabled: Option<bool>,
    /// Whether answers in this channel are spoken, if it differs from `tts`.
    pub tts_enabled: Option<bool>,
    /// The rest depends on the kind.
    pub kind: ChannelKind,
}

impl ChannelSettings {
    /// Returns a channel with the defaults of its settings.
    pub fn new(id: ChannelId, kind: ChannelKind) -> Self {
        Self {
            id,
            is_enabled: true,
            access: AccessRules::default(),
            sessions: None,
            busy: None,
            has_shared_threads: false,
            tools: None,
            is_untrusted: false,
            show: Show::default(),
            stt_enabled: None,
            tts_enabled: None,
            kind,
        }
    }
}

/// What a channel shows of a turn besides its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Show {
    /// Whether tool calls are shown.
    pub tools: bool,
    /// Whether the model's reasoning is shown.
    pub thinking: bool,
    /// How often the preview of an answer is refreshed in channels that edit messages. `None` for no preview.
    pub stream: Option<Duration>,
}

impl Default for Show {
    fn default() -> Self {
        Self {
            tools: true,
            thinking: false,
            stream: Some(Duration::from_secs(1)),
        }
    }
}

/// The kind of a channel, with its own settings.
#[derive(Debug, Clone, PartialEq)]
pub enum ChannelKind {
    /// The page in a browser.
    Web,
    /// Requests over HTTP.
    Http,
    /// Frames on standard input and output.
    Stdio,
    /// Signed requests of another service.
    Webhook(WebhookSettings),
    /// A bot of Telegram.
    Telegram(TelegramSettings),
    /// A program that speaks the channel protocol.
    Command(CommandSettings),
}

impl ChannelKind {
    /// Returns the word that names the kind in the settings.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Http => "http",
            Self::Stdio => "stdio",
            Self::Webhook(_) => "webhook",
            Self::Telegram(_) => "telegram",
            Self::Command(_) => "command",
        }
    }

    /// Returns the environment variable in which the channel has its secret.
    pub(crate) fn secret_variable(&self) -> Option<&String> {
        let source = match self {
            Self::Telegram(telegram) => &telegram.token,
            Self::Webhook(webhook) => &webhook.secret,
            Self::Web | Self::Http | Self::Stdio | Self::Command(_) => return None,
        };
        match source {
            SecretSource::Environment(variable) => Some(variable),
            SecretSource::File(_) => None,
        }
    }

    /// Returns whether the channel is a part of the gateway's server.
    pub fn needs_server(&self) -> bool {
        matches!(self, Self::Web | Self::Http | Self::Webhook(_))
    }
}

/// Where a secret is. [`read_secrets`](crate::channel_secrets::read_secrets) reads it. It is never in the settings themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// In an environment variable.
    Environment(String),
    /// In a file that only its owner can read.
    File(PathBuf),
}

/// The settings of a webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct WebhookSettings {
    /// The key of the signature.
    pub secret: SecretSource,
    /// The header with the signature. The default is `x-hub-signature-256`.
    pub header: String,
    /// What precedes the hexadecimal digits in it. The default is `sha256=`.
    pub prefix: String,
    /// The header with the time of the request in seconds since 1970, if the service sends one. The signature then
    /// covers `TIME.BODY`.
    pub timestamp_header: Option<String>,
    /// The header with the id of the delivery. The default is `x-github-delivery`.
    pub delivery_header: String,
    /// The header with the name of the event. The default is `x-github-event`.
    pub event_header: String,
    /// The events that become messages: `EVENT`, or `EVENT.ACTION` with the `action` of the body. Empty for all events
    /// except `ping`, with which a service only tries the address.
    pub events: Vec<String>,
    /// The template of the message. `{{ body.… }}` inserts values of the request.
    pub template: String,
    /// The chat that gets the message.
    pub chat: String,
    /// What the service may do.
    pub role: SenderRole,
}

/// The settings of a bot of Telegram.
#[derive(Debug, Clone, PartialEq)]
pub struct TelegramSettings {
    /// The bot's token.
    pub token: SecretSource,
    /// The address of the service, without a slash at its end. The default is `https://api.telegram.org`.
    pub api_base: String,
}

/// The settings of a channel that is a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSettings {
    /// The program and its arguments.
    pub argv: Vec<String>,
}

/// Who may do what in a channel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccessRules {
    /// How direct chats are admitted.
    pub direct: DirectPolicy,
    /// The senders who may do everything, by their ids in the channel.
    pub owners: Vec<String>,
    /// The senders who may talk, for [`DirectPolicy::Allow`].
    pub members: Vec<String>,
    /// How groups are admitted. `None` for no groups.
    pub groups: Option<GroupRules>,
    /// The bots that may talk.
    pub bots: Vec<String>,
}

/// The tool that runs any program.
const SHELL: &str = "shell";

impl ChannelSettings {
    /// Returns whether the settings admit people who are not owners. Tokens and pairings can admit more.
    fn has_others(&self) -> bool {
        match &self.kind {
            ChannelKind::Web | ChannelKind::Http | ChannelKind::Stdio => false,
            ChannelKind::Webhook(_) => true,
            ChannelKind::Telegram(_) | ChannelKind::Command(_) => {
                let access = &self.access;
                !access.members.is_empty()
                    || access.groups.is_some()
                    || access.direct == DirectPolicy::Open
            }
        }
    }
}

impl AccessRules {
    /// Returns whether a chat is one of the groups that are admitted.
    pub(crate) fn lists_group(&self, chat: &str) -> bool {
        let groups = self.groups.iter().flat_map(|groups| &groups.allow);
        groups.into_iter().any(|group| group == chat)
    }

    /// Returns whether someone can be an owner: one is listed, or can become one with a code.
    pub(crate) fn can_have_owners(&self) -> bool {
        !self.owners.is_empty() || self.direct == DirectPolicy::Pairing
    }
}

/// How direct chats are admitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DirectPolicy {
    /// Owners, members, and senders whom an owner has admitted by a code.
    #[default]
    Pairing,
    /// Owners and members only.
    Allow,
    /// Everyone, as a guest.
    Open,
    /// No one.
    Off,
}

/// How groups are admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupRules {
    /// The groups, by their ids in the channel.
    pub allow: Vec<String>,
    /// Whether only messages that are addressed to the agent count.
    pub needs_mention: bool,
    /// Who may talk there. `None` for everyone, as a guest.
    pub senders: Option<Vec<String>>,
}
