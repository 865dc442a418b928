//! A real server on the loopback. Behind it is no agent, but an intake that answers by what a message says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use tenterhook_channel::channel::{Accepted, Channel, Inlet, Intake};
use tenterhook_channel::chat::{ChannelId, ChatRef, SessionKey};
use tenterhook_channel::frame::{ChatFrame, Chunk, EndReason, Frame, TurnStatus};
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::message::{Control, IncomingMessage, IncomingPart};
use tenterhook_channel::rate::Lockout;
use tenterhook_channel::settings::{SecretSource, Settings, WebhookSettings};
use tenterhook_channel::store::{InboxId, InboxState, Recorded, Store};
use tenterhook_channel::token::{AccessScope, Tokens};
use tenterhook_inspect::{InspectedSource, Inspector, LogLimits, RecordLog};
use tenterhook_protocol::event::SenderRole;
use tenterhook_web::frame_channel::FrameChannel;
use tenterhook_web::hub::Hub;
use tenterhook_web::server::{GatewayReports, Logins, ServerParts, TlsIdentity, serve};
use tenterhook_web::webhook::WebhookChannel;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const WEBHOOK_SECRET: &str = "a secret of a webhook, long enough";

/// What the inspector of a server keeps.
pub(crate) const MAX_RECORDS: LogLimits = LogLimits {
    records: 4,
    bytes: 1 << 20,
};

/// Records messages, and plays the turn that their text names.
pub(crate) struct ScriptedIntake {
    store: Store,
    hub: Hub,
    /// What was recorded, in order.
    pub(crate) messages: Mutex<Vec<IncomingMessage>>,
    pub(crate) controls: Mutex<Vec<Control>>,
    /// Lets the next turn of a message `slow` end.
    pub(crate) go_on: Arc<Notify>,
}

impl ScriptedIntake {
    async fn publish(
        store: &Store,
        hub: &Hub,
        chat: &ChatRef,
        frames: Vec<Frame>,
        update: (Vec<InboxId>, InboxState),
    ) {
        let durable = frames.iter().filter(|frame| frame.is_durable()).cloned();
        let numbered = store.append(chat, durable.collect(), update).await.unwrap();
        let mut numbered = numbered.into_iter();
        for frame in frames {
            let frame = if frame.is_durable() {
                numbered.next().unwrap()
            } else {
                ChatFrame { seq: None, frame }
            };
            hub.publish(chat, &frame);
        }
    }

    /// Shows frames that a full disk cannot store.
    fn show_lost(hub: &Hub, chat: &ChatRef, frames: Vec<Frame>) {
        for frame in frames {
            hub.publish(chat, &ChatFrame { seq: None, frame });
        }
    }

    /// Plays a turn in a separate task, as a real chat does.
    #[expect(clippy::too_many_lines, reason = "it is a list of what can happen")]
    async fn play(
        store: Store,
        hub: Hub,
        id: InboxId,
        message: IncomingMessage,
        go_on: Arc<Notify>,
    ) {
        let (chat, text) = (message.chat.clone(), text_of(&message));
        let message_id = message.message_id.clone();
        let turn = format!("turn-{message_id}");
        let said = Frame::Said {
            message_id: message_id.clone(),
            sender: message.sender.id.clone(),
            text: text.clone(),
            media: Vec::new(),
            is_transcript: false,
        };
        let start = Frame::Start {
            turn: turn.clone(),
            in_reply_to: vec![message_id.clone()],
        };
        let error = |turn: Option<String>, message_id: Option<String>, code: &str| Frame::Error {
            turn,
            message_id,
            code: code.to_owned(),
            text: format!("it is {code}"),
            retry: None,
        };
        let done = |status| Frame::Done {
            turn: turn.clone(),
            status,
            usage: None,
        };
        if text.starts_with("full disk") {
            if text == "full disk" {
                let begun = vec![said, start];
                let state = (Vec::new(), InboxState::Running);
                Self::publish(&store, &hub, &chat, begun, state).await;
                let lost = error(Some(turn.clone()), None, "not_stored");
                Self::show_lost(&hub, &chat, vec![lost, done(TurnStatus::Failed)]);
            } else {
                let lost = error(None, Some(message_id), "not_stored");
                Self::show_lost(&hub, &chat, vec![lost]);
            }
            return;
        }
        let one = vec![id];
        match text.as_str() {
            "silence" => {
                let state = InboxState::Refused("hook".to_owned());
                store.set_inbox_state(one, state).await.unwrap();
            }
            "rejected" => {
                let frames = vec![error(None, Some(message_id), "rejected")];
                let state = InboxState::Refused("rejected".to_owned());
                Self::publish(&store, &hub, &chat, frames, (one, state)).await;
            }
            "broken" => {
                let frames = vec![
                    said,
                    start,
                    error(Some(turn.clone()), None, "model"),
                    done(TurnStatus::Failed),
                ];
                Self::publish(&store, &hub, &chat, frames, (one, InboxState::Failed)).await;
            }
            _ => {
                Self::publish(
                    &store,
                    &hub,
                    &chat,
                    vec![said, start],
                    (Vec::new(), InboxState::Running),
                )
                .await;
                if text == "slow" {
                    go_on.notified().await;
                }
                let answer = format!("you said: {text}");
                let frames = vec![
                    Frame::Chunk {
                        turn: turn.clone(),
                        chunk: Chunk::Text {
                            text: answer.clone(),
                        },
                        replace: false,
                    },
                    Frame::End {
                        turn: turn.clone(),
                        text: answer,
                        is_final: true,
                        reason: EndReason::Stop,
                    },
                    done(TurnStatus::Completed),
                ];
                Self::publish(&store, &hub, &chat, frames, (one, InboxState::Answered)).await;
            }
        }
    }
}

pub(crate) fn text_of(message: &IncomingMessage) -> String {
    let texts = message.parts.iter().filter_map(|part| match part {
        IncomingPart::Text { text } => Some(text.as_str()),
        IncomingPart::Media(_) | IncomingPart::Reference(_) | IncomingPart::Unreadable { .. } => {
            None
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

impl Intake for ScriptedIntake {
    fn offer<'a>(
        &'a self,
        _channel: &'a ChannelId,
        _verified: Option<SenderRole>,
        message: IncomingMessage,
    ) -> BoxFuture<'a, Accepted> {
        Box::pin(async move {
            let refused = |code, notice: Option<&str>| Accepted::Refused {
                code,
                notice: notice.map(str::to_owned),
            };
            match text_of(&message).as_str() {
                "stranger" => return refused("not_admitted", None),
                "too many" => return refused("queue_full", Some("busy, not taken")),
                "busy" => return refused("busy", Some("busy")),
                "slow disk" => self.go_on.notified().await,
                "disk" => {
                    return Accepted::Failed {
                        cause: "the disk is full".to_owned(),
                    };
                }
                _ => {}
            }
            let key = SessionKey(message.chat.to_string());
            let recorded = self
                .store
                .accept(message.clone(), SenderRole::Owner, key)
                .await;
            let Recorded::Fresh(record) = recorded.unwrap() else {
                return Accepted::Duplicate;
            };
            self.messages.lock().push(message.clone());
            let (store, hub) = (self.store.clone(), self.hub.clone());
            let play = Self::play(store, hub, record.id, message, Arc::clone(&self.go_on));
            drop(tokio::spawn(play));
            Accepted::Recorded
        })
    }

    fn control<'a>(
        &'a self,
        _channel: &'a ChannelId,
        _verified: Option<SenderRole>,
        control: Control,
    ) -> BoxFuture<'a, Option<String>> {
        self.controls.lock().push(control);
        Box::pin(async { Some("noted".to_owned()) })
    }

    fn is_alive(&self, _channel: &ChannelId) {}

    fn offset<'a>(
        &'a self,
        _: &'a ChannelId,
        _: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, String>> {
        Box::pin(async { Ok(None) })
    }

    fn set_offset<'a>(&'a self, _: &'a ChannelId, _: &'a str, _: i64) -> BoxFuture<'a, bool> {
        Box::pin(async { true })
    }
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// The lines of the head, as they came.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// Returns the JSON objects of server-sent events, with their ids.
    pub(crate) fn events(&self) -> Vec<(Option<u64>, Value)> {
        events_of(&self.body)
    }
}

pub(crate) fn events_of(body: &str) -> Vec<(Option<u64>, Value)> {
    let events = body.split("\n\n").filter_map(|event| {
        let field = |name| event.lines().find_map(|line| line.strip_prefix(name));
        let data = field("data: ")?;
        let id = field("id: ").map(|id| id.parse().unwrap());
        Some((id, serde_json::from_str(data).unwrap()))
    });
    events.collect()
}

/// A running server.
pub(crate) struct TestServer {
    pub(crate) address: SocketAddr,
    pub(crate) intake: Arc<ScriptedIntake>,
    pub(crate) parts: ServerParts,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
    pub(crate) folder: TempDir,
    /// Why the gateway takes no messages, if it does not.
    pub(crate) unready: Arc<Mutex<Option<&'static str>>>,
    /// The secret of a token of `owner` with all scopes.
    pub(crate) owner: String,
    /// The secret of a token of `ann` with the scope `chat`.
    pub(crate) ann: String,
}

/// Reports of a gateway that a test makes unready.
struct FixedReports(Arc<Mutex<Option<&'static str>>>);

impl GatewayReports for FixedReports {
    fn status(&self) -> Value {
        json!({"state": "up"})
    }

    fn metrics(&self) -> BoxFuture<'_, String> {
        Box::pin(async { "up 1\n".to_owned() })
    }

    fn unready(&self) -> BoxFuture<'_, Option<&'static str>> {
        let unready = *self.0.lock();
        Box::pin(async move { unready })
    }
}

fn settings() -> Settings {
    Settings {
        hosts: vec!["bot.example".to_owned()],
        origins: vec!["https://ui.example".to_owned()],
        ..Settings::default()
    }
}

fn webhook(name: &str, timestamp_header: Option<&str>) -> WebhookChannel {
    let settings = WebhookSettings {
        secret: SecretSource::Environment("UNUSED".to_owned()),
        header: "x-hub-signature-256".to_owned(),
        prefix: "sha256=".to_owned(),
        timestamp_header: timestamp_header.map(str::to_owned),
        delivery_header: "x-github-delivery".to_owned(),
        event_header: "x-github-event".to_owned(),
        events: Vec::new(),
        template: "{% if body.title %}{{ body.action }}: {{ body.title }}{% else %}{{ body.action }}{% endif %}".to_owned(),
        chat: "ops".to_owned(),
        role: SenderRole::Guest,
    };
    WebhookChannel::new(ChannelId::new(name).unwrap(), &settings, WEBHOOK_SECRET).unwrap()
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(None).await
    }

    /// Starts a server with a certificate.
    pub(crate) async fn start_with(tls: Option<TlsIdentity>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("store")).unwrap();
        let media = MediaFolder::open(&folder.path().join("media")).unwrap();
        let hub = Hub::new(store.clone());
        let tokens = Tokens::open(store.clone()).await.unwrap();
        let owner = tokens
            .create("test", "owner", &AccessScope::ALL, None)
            .await
            .unwrap();
        let ann = tokens
            .create("test", "ann", &[AccessScope::Chat], None)
            .await
            .unwrap();
        let intake = Arc::new(ScriptedIntake {
            store: store.clone(),
            hub: hub.clone(),
            messages: Mutex::default(),
            controls: Mutex::default(),
            go_on: Arc::default(),
        });
        let channel = |name| {
            let (id, hub) = (ChannelId::new(name).unwrap(), hub.clone());
            Arc::new(FrameChannel::new(id, hub, store.clone(), media.clone()))
        };
        let (web, http) = (channel("web"), channel("http"));
        let webhooks = vec![
            Arc::new(webhook("hook", None)),
            Arc::new(webhook("timed", Some("x-time"))),
        ];
        let stop = CancellationToken::new();
        let unready = Arc::default();
        let mut channels: Vec<(ChannelId, Arc<dyn Channel>)> = vec![
            (web.id().clone(), web.clone()),
            (http.id().clone(), http.clone()),
        ];
        for webhook in &webhooks {
            channels.push((webhook.id().clone(), webhook.clone()));
        }
        for (id, channel) in channels {
            let inlet = Inlet::new(id, intake.clone(), stop.child_token());
            let stop = stop.clone();
            drop(tokio::spawn(async move { channel.run(inlet, stop).await }));
        }
        while http.inlet().is_none() {
            tokio::task::yield_now().await;
        }
        let records = Arc::new(RecordLog::new(MAX_RECORDS, 1));
        let parts = ServerParts {
            settings: Arc::new(settings()),
            tls,
            tokens,
            lockout: Lockout::default(),
            hub,
            store,
            web: Some(web),
            http: Some(http),
            webhooks,
            media,
            logins: Logins::default(),
            inspector: Some(Arc::new(Inspector::new(InspectedSource::Gateway, records))),
            reports: Arc::new(FixedReports(Arc::clone(&unready))),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(serve(listener, parts.clone(), stop.clone()));
        Self {
            address,
            intake,
            parts,
            stop,
            task,
            folder,
            unready,
            owner: owner.secret.expose().to_owned(),
            ann: ann.secret.expose().to_owned(),
        }
    }

    /// Returns the header with the cookie of a browser in which `user` has logged in, and the header with the page's key.
    pub(crate) async fn cookie(&self, user: &str) -> (String, String) {
        let scopes = AccessScope::all_of(user);
        let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
        let created = self.parts.tokens.create_for_cookie(
            "browser",
            (user, &scopes),
            self.address.port(),
            expires,
        );
        let created = created.await.unwrap();
        let cookie = created.cookie.expose();
        let name = format!("tenterhook-{}", self.address.port());
        (
            format!("cookie: a=b; {name}={cookie}"),
            format!("x-tenterhook: {}", created.key.expose()),
        )
    }

    pub(crate) fn bearer(&self) -> String {
        format!("authorization: Bearer {}", self.owner)
    }

    pub(crate) fn origin(&self) -> String {
        format!("origin: http://{}", self.address)
    }

    /// Sends a request with the right host, and reads the answer until the server closes the connection.
    pub(crate) async fn ask(&self, request: &str, headers: &[&str], body: &str) -> Reply {
        let host = format!("host: {}", self.address);
        let length = format!("content-length: {}", body.len());
        let mut all = vec![host.as_str(), length.as_str()];
        all.extend(headers);
        self.ask_raw(request, &all, body.as_bytes()).await
    }

    /// Sends a request with these headers only.
    pub(crate) async fn ask_raw(&self, request: &str, headers: &[&str], body: &[u8]) -> Reply {
        let mut stream = self.open(request, headers).await;
        // A server may answer and close before it has read all.
        drop(stream.write_all(body).await);
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        read_reply(&answer)
    }

    /// Sends the head of a request.
    pub(crate) async fn open(&self, request: &str, headers: &[&str]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut head = format!("{request} HTTP/1.1\r\nconnection: close\r\n");
        for header in headers {
            head.push_str(header);
            head.push_str("\r\n");
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        stream
    }

    /// Posts JSON with the owner's token.
    pub(crate) async fn post(&self, path: &str, headers: &[&str], body: &Value) -> Reply {
        let bearer = self.bearer();
        let mut all = vec![bearer.as_str(), "content-type: application/json"];
        all.extend(headers);
        self.ask(&format!("POST {path}"), &all, &body.to_string())
            .await
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.ask(&format!("GET {path}"), &[&self.bearer()], "")
            .await
    }
}

pub(crate) fn read_reply(bytes: &[u8]) -> Reply {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    let is_chunked = head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked");
    Reply {
        status: status.unwrap_or(0),
        head: head.to_owned(),
        body: if is_chunked {
            join_chunks(body)
        } else {
            body.to_owned()
        },
    }
}

fn join_chunks(mut rest: &str) -> String {
    let mut joined = String::new();
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let (chunk, tail) = tail.split_at(size);
        joined.push_str(chunk);
        rest = tail.trim_start_matches("\r\n");
    }
    joined
}

/// Waits until something is true.
pub(crate) async fn until(mut is_true: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while !is_true() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "it never became true"
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
