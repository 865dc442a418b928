//! Updates of Telegram per second, compared with a loop that only polls.
//!
//! | row | the messages are | goal |
//! |---|---|---|
//! | dropped | read and given to an intake that forgets them | at most 1.5 |
//! | durable | recorded in a store, from 100 chats | no goal; each poll waits for the disk |
//!
//! Both sides poll the same scripted server in another runtime. Each ratio is the median of alternating rounds. `--quick`
//! uses fewer updates.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::extract::{Json, Path as Route, State};
use axum::routing::post;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_adapters::telegram::TelegramChannel;
use tenterhook_channel::channel::{Accepted, Channel as _, Inlet, Intake};
use tenterhook_channel::chat::{ChannelId, SessionKey};
use tenterhook_channel::message::{Control, IncomingMessage};
use tenterhook_channel::settings::{SecretSource, Show, TelegramSettings};
use tenterhook_channel::store::{Recorded, Store};
use tenterhook_protocol::event::SenderRole;
use tenterhook_runners::http::tls_config_without_roots;
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many updates a poll returns.
const PAGE: usize = 100;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, updates) = if is_quick { (3, 1_000) } else { (7, 10_000) };
    // The system's folder for temporary files is often in memory.
    let folder = tempfile::TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let server = Runtime::new().unwrap();
    let address = server.block_on(serve(updates));
    let runtime = Runtime::new().unwrap();
    let (mut dropped, mut durable) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let bare = runtime.block_on(poll(&address, updates));
        let without = runtime.block_on(receive(&address, updates, None));
        let store = Store::open(&folder.path().join(round.to_string())).unwrap();
        let with = runtime.block_on(receive(&address, updates, Some(store)));
        dropped.push(without.div_duration_f64(bare));
        durable.push(with.div_duration_f64(bare));
        println!("{updates} updates: polls {bare:.1?}, dropped {without:.1?}, durable {with:.1?}");
    }
    println!("dropped: median ratio {:.2} (limit 1.50)", median(dropped));
    println!("durable: median ratio {:.2}", median(durable));
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Starts the server. Its updates are numbered from 1.
async fn serve(updates: usize) -> String {
    let app = axum::Router::new()
        .route("/{bot}/{method}", post(answer))
        .with_state(updates);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

async fn answer(
    State(updates): State<usize>,
    Route((_, method)): Route<(String, String)>,
    Json(params): Json<Value>,
) -> Json<Value> {
    let result = if method == "getMe" {
        json!({"id": 7, "is_bot": true, "first_name": "B", "username": "Bot"})
    } else {
        let offset = params["offset"].as_u64().unwrap_or(1);
        let first = usize::try_from(offset).unwrap();
        if first > updates {
            std::future::pending::<()>().await;
        }
        let page = first..(first + PAGE).min(updates + 1);
        page.map(update).collect()
    };
    Json(json!({"ok": true, "result": result}))
}

fn update(id: usize) -> Value {
    // Not the number of the bot, whose own messages are ignored.
    let chat = id % 100 + 100;
    json!({"update_id": id, "message": {
        "message_id": id, "date": 1_700_000_000, "text": "What is the weather today?",
        "from": {"id": chat, "is_bot": false, "first_name": "Ada"},
        "chat": {"id": chat, "type": "private", "first_name": "Ada"},
    }})
}

/// Returns how long a loop takes that only reads the numbers of the updates.
async fn poll(address: &str, updates: usize) -> Duration {
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls_config_without_roots().unwrap())
        .no_proxy();
    let client = client.build().unwrap();
    let began = Instant::now();
    let mut offset = 1;
    while offset <= updates {
        let params = json!({"offset": offset, "limit": PAGE, "timeout": 50});
        let request = client.post(format!("{address}/bot7:x/getUpdates"));
        let answer = request.json(&params).send().await.unwrap();
        let answer: Value = answer.json().await.unwrap();
        offset += answer["result"].as_array().unwrap().len();
    }
    began.elapsed()
}

/// Returns how long the channel takes to offer all updates.
async fn receive(address: &str, updates: usize, store: Option<Store>) -> Duration {
    let settings = TelegramSettings {
        token: SecretSource::Environment("UNUSED".to_owned()),
        api_base: address.to_owned(),
    };
    let id = ChannelId::new("tg").unwrap();
    let show = Show::default();
    let channel = TelegramChannel::new(id.clone(), &settings, "7:x".to_owned(), show).unwrap();
    let intake = Arc::new(Counting {
        store,
        left: AtomicUsize::new(updates),
        done: Notify::new(),
    });
    let inlet = Inlet::new(id, Arc::clone(&intake) as _, CancellationToken::new());
    let began = Instant::now();
    tokio::select! {
        ended = channel.run(inlet, CancellationToken::new()) => ended.unwrap(),
        () = intake.done.notified() => {}
    }
    began.elapsed()
}

/// An intake that notifies after the last message.
struct Counting {
    store: Option<Store>,
    left: AtomicUsize,
    done: Notify,
}

impl Intake for Counting {
    fn offer<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<SenderRole>,
        message: IncomingMessage,
    ) -> BoxFuture<'a, Accepted> {
        Box::pin(async move {
            if let Some(store) = &self.store {
                let key = SessionKey(message.chat.to_string());
                let recorded = store.accept(message, SenderRole::Owner, key).await;
                if let Recorded::Full = recorded.unwrap() {
                    return Accepted::Failed {
                        cause: "the inbox is full".to_owned(),
                    };
                }
            }
            if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
                self.done.notify_one();
            }
            Accepted::Recorded
        })
    }

    fn control<'a>(
        &'a self,
        _: &'a ChannelId,
        _: Option<SenderRole>,
        _: Control,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(async { None })
    }

    fn is_alive(&self, _: &ChannelId) {}

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
