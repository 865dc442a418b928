//! A server that behaves like Telegram's, with scripted updates and answers. It records all calls.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequest as _, Multipart, Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Json, Response};
use axum::routing::{get, post};
use parking_lot::Mutex;
use serde_json::{Map, Value, json};
use tokio::sync::Notify;

/// The token of the bot 7, `@bot`.
pub(crate) const TOKEN: &str = "7:secret-Token_1";
/// The token of the bot 8.
pub(crate) const OTHER_TOKEN: &str = "8:other-Token_2";

#[derive(Clone)]
pub(crate) struct FakeTelegram {
    shared: Arc<Shared>,
    pub(crate) address: String,
}

#[derive(Default)]
struct Shared {
    state: Mutex<Scripted>,
    changed: Notify,
}

#[derive(Default)]
struct Scripted {
    /// By the token of their bot.
    updates: HashMap<String, Vec<Value>>,
    calls: Vec<Call>,
    refusals: HashMap<String, VecDeque<Refusal>>,
    files: HashMap<String, Vec<u8>>,
    last_message: i64,
    hangs: bool,
    /// A group that has moved, and its new id.
    moved: Option<(i64, i64)>,
}

/// A call of a method. Uploaded files are in `params` as `NAME (SIZE)`.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// A scripted error.
#[derive(Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) description: &'static str,
    pub(crate) retry_after: Option<u16>,
}

impl FakeTelegram {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let app = Router::new()
            .route("/{bot}/{method}", post(call))
            .route("/file/{bot}/{*path}", get(file))
            .with_state(Arc::clone(&shared));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { shared, address }
    }

    pub(crate) fn add_update(&self, update: Value) {
        self.add_update_for(TOKEN, update);
    }

    pub(crate) fn add_update_for(&self, token: &str, update: Value) {
        let mut state = self.shared.state.lock();
        let updates = state.updates.entry(token.to_owned()).or_default();
        updates.push(update);
        drop(state);
        self.shared.changed.notify_waiters();
    }

    /// Adds a message of the user 42 in a direct chat.
    pub(crate) fn add_text(&self, update: u32, text: &str) {
        self.add_text_for(TOKEN, update, text);
    }

    pub(crate) fn add_text_for(&self, token: &str, update: u32, text: &str) {
        let update = json!({"update_id": update, "message": {
            "message_id": update, "date": 1_700_000_000, "text": text,
            "from": {"id": 42, "is_bot": false, "first_name": "Ada"},
            "chat": {"id": 42, "type": "private", "first_name": "Ada"},
        }});
        self.add_update_for(token, update);
    }

    pub(crate) fn add_file(&self, path: &str, bytes: Vec<u8>) {
        self.shared
            .state
            .lock()
            .files
            .insert(path.to_owned(), bytes);
    }

    /// Makes the next call of a method fail.
    pub(crate) fn refuse(&self, method: &str, status: u16, description: &'static str) {
        self.refuse_for(method, status, description, None);
    }

    pub(crate) fn refuse_for(
        &self,
        method: &str,
        status: u16,
        description: &'static str,
        retry_after: Option<u16>,
    ) {
        let mut state = self.shared.state.lock();
        let refusals = state.refusals.entry(method.to_owned()).or_default();
        refusals.push_back(Refusal {
            status,
            description,
            retry_after,
        });
    }

    /// Makes a group have another id.
    pub(crate) fn move_group(&self, old: i64, new: i64) {
        self.shared.state.lock().moved = Some((old, new));
    }

    /// Makes polls never complete.
    pub(crate) fn hang(&self, hangs: bool) {
        self.shared.state.lock().hangs = hangs;
    }

    pub(crate) fn calls(&self, method: &str) -> Vec<Value> {
        let state = self.shared.state.lock();
        let calls = state.calls.iter().filter(|call| call.method == method);
        calls.map(|call| call.params.clone()).collect()
    }

    /// Returns all calls that change what a chat shows, in order.
    pub(crate) fn visible(&self) -> Vec<Call> {
        let state = self.shared.state.lock();
        let hidden = ["getMe", "getUpdates", "sendChatAction", "getFile"];
        let calls = state.calls.iter();
        calls
            .filter(|call| !hidden.contains(&call.method.as_str()))
            .cloned()
            .collect()
    }
}

fn refused(status: u16, description: &str, retry_after: Option<u16>) -> Response {
    let mut body = json!({"ok": false, "error_code": status, "description": description});
    if let Some(seconds) = retry_after {
        body["parameters"] = json!({ "retry_after": seconds });
    }
    (StatusCode::from_u16(status).unwrap(), Json(body)).into_response()
}

async fn call(
    State(shared): State<Arc<Shared>>,
    Path((bot, method)): Path<(String, String)>,
    request: Request,
) -> Response {
    let account = match bot.strip_prefix("bot") {
        Some(TOKEN) => json!({"id": 7, "is_bot": true, "first_name": "B", "username": "Bot"}),
        Some(OTHER_TOKEN) => json!({"id": 8, "is_bot": true, "first_name": "C", "username": "Cot"}),
        _ => return refused(401, "Unauthorized", None),
    };
    let params = read_params(request).await;
    {
        let mut state = shared.state.lock();
        state.calls.push(Call {
            method: method.clone(),
            params: params.clone(),
        });
        if let Some((old, new)) = state.moved
            && params["chat_id"] == old
        {
            let body = json!({"ok": false, "error_code": 400,
                "description": "Bad Request: group chat was upgraded to a supergroup chat",
                "parameters": {"migrate_to_chat_id": new}});
            return (StatusCode::BAD_REQUEST, Json(body)).into_response();
        }
        let refusals = state.refusals.get_mut(&method);
        if let Some(refusal) = refusals.and_then(VecDeque::pop_front) {
            return refused(refusal.status, refusal.description, refusal.retry_after);
        }
    }
    let result = match method.as_str() {
        "getMe" => account,
        "getUpdates" => poll(&shared, bot.trim_start_matches("bot"), &params).await,
        "getFile" => json!({"file_id": "f", "file_unique_id": "u", "file_path": params["file_id"]}),
        "sendMessage" | "editMessageText" => {
            let text = params["text"].as_str().unwrap();
            if text.trim().is_empty() {
                return refused(400, "Bad Request: message text is empty", None);
            }
            if text.encode_utf16().count() > 4_096 {
                return refused(400, "Bad Request: message is too long", None);
            }
            message(&shared, &params)
        }
        "sendPhoto" | "sendVoice" | "sendAudio" | "sendDocument" => message(&shared, &params),
        _ => json!(true),
    };
    Json(json!({"ok": true, "result": result})).into_response()
}

async fn read_params(request: Request) -> Value {
    let kind = request.headers().get(header::CONTENT_TYPE).cloned();
    let is_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"multipart/"));
    if !is_form {
        let body = axum::body::to_bytes(request.into_body(), 1 << 20)
            .await
            .unwrap();
        return serde_json::from_slice(&body).unwrap_or_default();
    }
    let mut params = Map::new();
    let mut form = Multipart::from_request(request, &()).await.unwrap();
    while let Some(field) = form.next_field().await.unwrap() {
        let name = field.name().unwrap().to_owned();
        let file = field.file_name().map(str::to_owned);
        let bytes = field.bytes().await.unwrap();
        let value = match file {
            Some(file) => format!("{file} ({})", bytes.len()),
            None => String::from_utf8(bytes.to_vec()).unwrap(),
        };
        params.insert(name, value.into());
    }
    params.into()
}

fn message(shared: &Shared, params: &Value) -> Value {
    let mut state = shared.state.lock();
    let id = params["message_id"].as_i64().unwrap_or_else(|| {
        state.last_message += 1;
        state.last_message + 1_000
    });
    json!({"message_id": id, "date": 1, "chat": {"id": 42, "type": "private"}})
}

async fn poll(shared: &Shared, token: &str, params: &Value) -> Value {
    let offset = params["offset"].as_i64().unwrap_or_default();
    let deadline = Duration::from_secs(params["timeout"].as_u64().unwrap_or_default());
    let waited = async {
        loop {
            let mut changed = std::pin::pin!(shared.changed.notified());
            changed.as_mut().enable();
            {
                let mut state = shared.state.lock();
                let updates = state.updates.entry(token.to_owned()).or_default();
                updates.retain(|update| update["update_id"].as_i64().unwrap() >= offset);
                if !updates.is_empty() {
                    return updates.clone();
                }
            }
            changed.await;
        }
    };
    if shared.state.lock().hangs {
        std::future::pending::<()>().await;
    }
    tokio::time::timeout(deadline, waited)
        .await
        .unwrap_or_default()
        .into()
}

async fn file(
    State(shared): State<Arc<Shared>>,
    Path((bot, path)): Path<(String, String)>,
) -> Response {
    if bot != format!("bot{TOKEN}") {
        return refused(401, "Unauthorized", None);
    }
    if path == "moved" {
        return (StatusCode::FOUND, [(header::LOCATION, "/file/elsewhere")]).into_response();
    }
    match shared.state.lock().files.get(&path) {
        // Without a length, as a server that lies would send it.
        Some(bytes) => {
            let chunks: Vec<_> = bytes.chunks(64 << 10).map(<[u8]>::to_vec).collect();
            let chunks = chunks.into_iter().map(Ok::<_, std::io::Error>);
            Body::from_stream(futures_util::stream::iter(chunks)).into_response()
        }
        None => refused(404, "Not Found", None),
    }
}
