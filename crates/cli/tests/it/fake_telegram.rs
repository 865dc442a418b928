//! A server that behaves like Telegram's, for the whole program. It can kill the program at chosen moments.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::Notify;

use crate::stage::eventually;

/// The token of the bot.
const TOKEN: &str = "7:secret-Token_1";

/// The maximum number of updates of one poll.
const MAX_UPDATES: usize = 100;

/// The variable in which the gateway finds the token.
pub(crate) const TOKEN_VARIABLE: (&str, &str) = ("TG_TOKEN", TOKEN);

pub(crate) struct FakeTelegram {
    /// Runs the server until the test ends.
    _runtime: Runtime,
    shared: Arc<Shared>,
    address: String,
}

#[derive(Default)]
struct Shared {
    scripted: Mutex<Scripted>,
    changed: Notify,
}

#[derive(Default)]
struct Scripted {
    /// Updates that wait until a poll acknowledges them.
    updates: Vec<Value>,
    /// Updates that the next poll returns, whatever it acknowledges.
    repeated: Vec<Value>,
    /// The offset of each poll.
    offsets: Vec<i64>,
    sent: Vec<SentMessage>,
    /// The file that people send as voice messages.
    recording: Vec<u8>,
    refusals: HashMap<i64, VecDeque<Refusal>>,
    /// The status of all answers while the service is out of order.
    outage: Option<u16>,
    /// The process to kill instead of the next answer with updates.
    dies_at_update: Option<u32>,
    /// The process to kill instead of the next receipt of a message.
    dies_at_receipt: Option<u32>,
    /// Runs before the next receipt of a message.
    before_receipt: Option<Box<dyn FnOnce() + Send>>,
}

/// A message that the bot sent.
#[derive(Clone, Debug)]
pub(crate) struct SentMessage {
    pub(crate) chat: i64,
    pub(crate) text: String,
    /// The method by which it was sent.
    pub(crate) method: String,
    /// The form with the file, as it was sent. Empty without a file.
    pub(crate) form: Vec<u8>,
    pub(crate) at: Instant,
}

/// A refusal of the next message to a chat.
#[derive(Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<u64>,
}

impl FakeTelegram {
    pub(crate) fn start() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let shared = Arc::new(Shared::default());
        let app = Router::new()
            .route("/{bot}/{method}", post(answer))
            .route("/file/{bot}/{*path}", get(download))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            _runtime: runtime,
            shared,
            address,
        }
    }

    /// Returns the settings of a gateway with this bot as `tg`. `rules` are further keys of the channel.
    pub(crate) fn settings(&self, rules: &str) -> String {
        format!(
            "channels:\n  tg: {{ kind: telegram, token_env: {}, api_base: \"{}\", show: {{ tools: off, stream: off }}, {rules} }}\n",
            TOKEN_VARIABLE.0, self.address
        )
    }

    fn scripted<T>(&self, change: impl FnOnce(&mut Scripted) -> T) -> T {
        let result = change(&mut self.shared.scripted.lock().unwrap());
        self.shared.changed.notify_waiters();
        result
    }

    /// Adds a message in the direct chat of a user, whose id is also that of the chat.
    pub(crate) fn add_text(&self, update: i64, user: i64, text: &str) {
        self.add_old_text(update, user, text, Duration::ZERO);
    }

    /// Adds a message that a user sent some time ago.
    pub(crate) fn add_old_text(&self, update: i64, user: i64, text: &str, age: Duration) {
        let mut message = text_update(update, user, text);
        let sent = SystemTime::now() - age;
        let seconds = sent.duration_since(UNIX_EPOCH).unwrap().as_secs();
        message["message"]["date"] = seconds.into();
        self.scripted(|scripted| scripted.updates.push(message));
    }

    /// Adds a voice message of a user.
    pub(crate) fn add_voice(&self, update: i64, user: i64, recording: &[u8]) {
        let mut message = text_update(update, user, "");
        let fields = message["message"].as_object_mut().unwrap();
        fields.remove("text");
        let voice = json!({"file_id": "voice", "file_unique_id": "u", "duration": 3, "mime_type": "audio/ogg"});
        fields.insert("voice".to_owned(), voice);
        self.scripted(|scripted| {
            scripted.recording = recording.to_vec();
            scripted.updates.push(message);
        });
    }

    /// Delivers an update once more, although it was acknowledged.
    pub(crate) fn repeat_text(&self, update: i64, user: i64, text: &str) {
        self.scripted(|scripted| scripted.repeated.push(text_update(update, user, text)));
    }

    /// Refuses the next message to a chat.
    pub(crate) fn refuse(&self, chat: i64, refusal: Refusal) {
        self.scripted(|scripted| {
            scripted
                .refusals
                .entry(chat)
                .or_default()
                .push_back(refusal);
        });
    }

    /// Answers everything with this status from now on. `None` ends the outage.
    pub(crate) fn fail(&self, status: Option<u16>) {
        self.scripted(|scripted| scripted.outage = status);
    }

    /// Kills a process instead of giving it the next updates.
    pub(crate) fn kill_at_update(&self, pid: u32) {
        self.scripted(|scripted| scripted.dies_at_update = Some(pid));
    }

    /// Kills a process after its next message arrived, before it knows that.
    pub(crate) fn kill_at_receipt(&self, pid: u32) {
        self.scripted(|scripted| scripted.dies_at_receipt = Some(pid));
    }

    /// Does something after the next message of the bot arrived, before the bot knows that.
    pub(crate) fn before_receipt(&self, act: impl FnOnce() + Send + 'static) {
        self.scripted(|scripted| scripted.before_receipt = Some(Box::new(act)));
    }

    pub(crate) fn polls(&self) -> usize {
        self.scripted(|scripted| scripted.offsets.len())
    }

    /// Returns whether the bot has acknowledged an update.
    pub(crate) fn is_acknowledged(&self, update: i64) -> bool {
        self.scripted(|scripted| scripted.offsets.iter().any(|offset| *offset > update))
    }

    /// Waits for the first poll, or for the first one after `polls` polls.
    pub(crate) fn await_poll(&self, polls: usize) {
        eventually(|| (self.polls() > polls).then_some(()));
    }

    pub(crate) fn sent(&self) -> Vec<SentMessage> {
        self.scripted(|scripted| scripted.sent.clone())
    }

    /// Returns the texts that a chat got.
    pub(crate) fn texts(&self, chat: i64) -> Vec<String> {
        let sent = self.sent().into_iter();
        sent.filter(|sent| sent.chat == chat)
            .map(|sent| sent.text)
            .collect()
    }

    /// Waits until a chat has got some texts, and returns them.
    pub(crate) fn await_texts(&self, chat: i64, count: usize) -> Vec<String> {
        eventually(|| {
            let texts = self.texts(chat);
            (texts.len() >= count).then_some(texts)
        })
    }
}

fn text_update(update: i64, user: i64, text: &str) -> Value {
    json!({"update_id": update, "message": {
        "message_id": update, "date": 1_700_000_000, "text": text,
        "from": {"id": user, "is_bot": false, "first_name": "Ada"},
        "chat": {"id": user, "type": "private", "first_name": "Ada"},
    }})
}

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.try_into().unwrap()).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
}

fn respond(status: u16, body: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    let status = StatusCode::from_u16(status).unwrap();
    (status, kind, body.to_string()).into_response()
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Path((bot, method)): Path<(String, String)>,
    body: Bytes,
) -> Response {
    assert_eq!(bot, format!("bot{TOKEN}"));
    let params: Value = serde_json::from_slice(&body).unwrap_or_default();
    let outage = shared.scripted.lock().unwrap().outage;
    if let Some(status) = outage {
        let refused = json!({"ok": false, "error_code": status, "description": "out of order"});
        return respond(status, &refused);
    }
    let result = match method.as_str() {
        "getMe" => json!({"id": 7, "is_bot": true, "first_name": "B", "username": "Bot"}),
        "getUpdates" => poll(&shared, &params).await,
        "getFile" => json!({"file_id": "voice", "file_unique_id": "u", "file_path": "voice.oga"}),
        "sendVoice" | "sendAudio" | "sendDocument" => {
            let form = body.to_vec();
            let mut scripted = shared.scripted.lock().unwrap();
            scripted.sent.push(SentMessage {
                chat: form_field(&form, "chat_id").parse().unwrap(),
                text: form_field(&form, "caption"),
                method,
                form,
                at: Instant::now(),
            });
            let id = 1_000 + scripted.sent.len();
            json!({"message_id": id, "date": 1, "chat": {"id": 1, "type": "private"}})
        }
        "sendMessage" => match receive(&shared, &params) {
            Ok(message) => message,
            Err(Some(refusal)) => {
                let mut refused =
                    json!({"ok": false, "error_code": refusal.status, "description": "refused"});
                if let Some(seconds) = refusal.retry_after {
                    refused["parameters"] = json!({ "retry_after": seconds });
                }
                return respond(refusal.status, &refused);
            }
            Err(None) => std::future::pending().await,
        },
        _ => json!(true),
    };
    respond(200, &json!({"ok": true, "result": result}))
}

/// Returns a text of a form.
fn form_field(form: &[u8], name: &str) -> String {
    let form = String::from_utf8_lossy(form);
    let start = format!("name=\"{name}\"\r\n\r\n");
    let value = form.split(&start).nth(1).unwrap_or_default();
    value.split("\r\n").next().unwrap_or_default().to_owned()
}

async fn download(State(shared): State<Arc<Shared>>) -> Vec<u8> {
    shared.scripted.lock().unwrap().recording.clone()
}

/// Takes a message. Fails without a refusal if the sender was killed.
fn receive(shared: &Shared, params: &Value) -> Result<Value, Option<Refusal>> {
    let mut scripted = shared.scripted.lock().unwrap();
    let chat = params["chat_id"].as_i64().unwrap();
    let refusals = scripted.refusals.get_mut(&chat);
    if let Some(refusal) = refusals.and_then(VecDeque::pop_front) {
        return Err(Some(refusal));
    }
    scripted.sent.push(SentMessage {
        chat,
        text: params["text"].as_str().unwrap().to_owned(),
        method: "sendMessage".to_owned(),
        form: Vec::new(),
        at: Instant::now(),
    });
    if let Some(act) = scripted.before_receipt.take() {
        act();
    }
    if let Some(pid) = scripted.dies_at_receipt.take() {
        kill(pid);
        return Err(None);
    }
    let id = 1_000 + scripted.sent.len();
    Ok(json!({"message_id": id, "date": 1, "chat": {"id": chat, "type": "private"}}))
}

async fn poll(shared: &Shared, params: &Value) -> Value {
    let offset = params["offset"].as_i64().unwrap_or_default();
    shared.scripted.lock().unwrap().offsets.push(offset);
    let seconds = params["timeout"].as_u64().unwrap();
    let updates = async {
        loop {
            let mut changed = std::pin::pin!(shared.changed.notified());
            changed.as_mut().enable();
            if let Some(updates) = waiting(shared, offset) {
                return updates;
            }
            if shared.scripted.lock().unwrap().outage.is_some() {
                return Vec::new();
            }
            changed.await;
        }
    };
    let updates = tokio::time::timeout(Duration::from_secs(seconds), updates);
    updates.await.unwrap_or_default().into()
}

fn waiting(shared: &Shared, offset: i64) -> Option<Vec<Value>> {
    let mut scripted = shared.scripted.lock().unwrap();
    scripted
        .updates
        .retain(|update| update["update_id"].as_i64().unwrap() >= offset);
    let mut updates = std::mem::take(&mut scripted.repeated);
    updates.extend(scripted.updates.iter().take(MAX_UPDATES).cloned());
    if updates.is_empty() {
        return None;
    }
    if let Some(pid) = scripted.dies_at_update.take() {
        kill(pid);
        return None;
    }
    Some(updates)
}
