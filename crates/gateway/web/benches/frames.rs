//! How fast frames reach clients over web sockets.
//!
//! | row | compares | goal |
//! |---|---|---|
//! | one chunk | from the gateway to a client, with a bare echo of the same text by axum | at most 1.3 |
//! | a stalled client | the 99th percentile of 99 clients, with and without one more that does not read | at most 1.1 |
//!
//! Rounds alternate, and each ratio is the median of the rounds. `--quick` runs fewer rounds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a benchmark prints its result and has no caller to return an error to"
)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::ws::{Message as Answer, WebSocketUpgrade};
use axum::routing::get;
use futures_util::future::join_all;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::json;
use tenterhook_channel::chat::{ChannelId, ChatRef};
use tenterhook_channel::frame::{ChatFrame, Chunk, Frame};
use tenterhook_channel::media_folder::MediaFolder;
use tenterhook_channel::store::Store;
use tenterhook_protocol::event::SenderRole;
use tenterhook_web::connection::{ClientIdentity, Login};
use tenterhook_web::frame_channel::FrameChannel;
use tenterhook_web::hub::Hub;
use tenterhook_web::socket::{configure, serve_socket};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};
use tokio_util::sync::CancellationToken;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// How many clients read.
const CLIENTS: usize = 99;

fn main() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let (rounds, chunks) = if is_quick { (5, 200) } else { (15, 1_000) };
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let server = Server::start(folder.path()).await;
        one_chunk(&server, rounds, chunks).await;
        stalled(&server, rounds, chunks / 10).await;
    });
}

async fn one_chunk(server: &Server, rounds: usize, chunks: usize) {
    let mut viewer = server.view("one").await;
    let address = format!("ws://{}/echo", server.address);
    let (mut echo, _) = connect_async(address).await.unwrap();
    let (mut ratios, mut ours, mut theirs) = (vec![], vec![], vec![]);
    for _ in 0..rounds {
        let began = Instant::now();
        for _ in 0..chunks {
            server.publish("one");
            next_chunk(&mut viewer).await;
        }
        let with = began.elapsed();
        let text = r#"{"chat":"one","type":"chunk","turn":"t","kind":"text","text":"a few words"}"#;
        let began = Instant::now();
        for _ in 0..chunks {
            echo.send(Message::text(text)).await.unwrap();
            echo.next().await.unwrap().unwrap();
        }
        let without = began.elapsed();
        ratios.push(with.div_duration_f64(without));
        ours.push(micros(with, chunks));
        theirs.push(micros(without, chunks));
    }
    println!(
        "one chunk: {:.0} us, an echo {:.0} us; ratio {:.2} (limit 1.30)",
        median(ours),
        median(theirs),
        median(ratios)
    );
}

async fn stalled(server: &Server, rounds: usize, chunks: usize) {
    let all_read = viewers(server, "all-read").await;
    let one_stalled = viewers(server, "one-stalled").await;
    let _stalled = server.view("one-stalled").await;
    let (mut readers, mut ratios) = ([all_read, one_stalled], vec![]);
    for _ in 0..rounds {
        let mut times = [vec![], vec![]];
        for chunk in 0..2 * chunks {
            // Each side is first as often as the other.
            let side = usize::from(chunk % 4 == 1 || chunk % 4 == 2);
            let chat = ["all-read", "one-stalled"][side];
            times[side].extend(times_of_chunk(server, chat, &mut readers[side]).await);
        }
        let [without, with] = times.map(slowest_percent);
        ratios.push(with.div_duration_f64(without));
    }
    println!(
        "a stalled client: 99th percentile of {CLIENTS} others; ratio {:.2} (limit 1.10)",
        median(ratios)
    );
}

async fn viewers(server: &Server, chat: &str) -> Vec<Socket> {
    join_all((0..CLIENTS).map(|_| server.view(chat))).await
}

/// Returns how long a chunk took to each client.
async fn times_of_chunk(server: &Server, chat: &str, clients: &mut [Socket]) -> Vec<Duration> {
    let began = Instant::now();
    server.publish(chat);
    let read = clients.iter_mut().map(|client| async move {
        next_chunk(client).await;
        began.elapsed()
    });
    join_all(read).await
}

fn slowest_percent(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() * 99 / 100]
}

async fn next_chunk(socket: &mut Socket) {
    loop {
        let message = socket.next().await.unwrap().unwrap();
        if matches!(&message, Message::Text(text) if text.contains("\"chunk\"")) {
            return;
        }
    }
}

/// Serves a channel at `/ws` and an echo at `/echo`.
struct Server {
    hub: Hub,
    address: SocketAddr,
}

impl Server {
    async fn start(folder: &Path) -> Self {
        let store = Store::open(&folder.join("state")).unwrap();
        let media = MediaFolder::open(&folder.join("media")).unwrap();
        let hub = Hub::new(store.clone());
        let id = ChannelId::new("web").unwrap();
        let channel = Arc::new(FrameChannel::new(id, hub.clone(), store, media));
        let connect = async move |upgrade: WebSocketUpgrade| {
            configure(upgrade).on_upgrade(async move |socket| {
                let ann = ClientIdentity {
                    user: "ann".to_owned(),
                    role: SenderRole::Owner,
                };
                let login = Login::Known(ann.into());
                serve_socket(socket, login, channel, CancellationToken::new()).await;
            })
        };
        let echo = async |upgrade: WebSocketUpgrade| {
            upgrade.on_upgrade(async |mut socket| {
                while let Some(Ok(message)) = socket.recv().await {
                    if let Answer::Close(_) = message {
                        return;
                    }
                    socket.send(message).await.unwrap();
                }
            })
        };
        let app = axum::Router::new()
            .route("/ws", get(connect))
            .route("/echo", get(echo));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { hub, address }
    }

    /// Connects a client that follows a chat.
    async fn view(&self, chat: &str) -> Socket {
        let before = self.hub.viewers(&chat_ref(chat));
        let address = format!("ws://{}/ws", self.address);
        let (mut socket, _) = connect_async(address).await.unwrap();
        let hello = json!({"type": "hello", "protocol": 1, "chats": {chat: 0}});
        socket.send(Message::text(hello.to_string())).await.unwrap();
        while self.hub.viewers(&chat_ref(chat)) <= before {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        socket
    }

    fn publish(&self, chat: &str) {
        let frame = Frame::Chunk {
            turn: "t".to_owned(),
            chunk: Chunk::Text {
                text: "a few words".to_owned(),
            },
            replace: false,
        };
        self.hub
            .publish(&chat_ref(chat), &ChatFrame { seq: None, frame });
    }
}

/// Returns a chat of the user `ann`.
fn chat_ref(chat: &str) -> ChatRef {
    ChatRef {
        channel: ChannelId::new("web").unwrap(),
        chat: format!("ann/{chat}"),
        thread: None,
    }
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
