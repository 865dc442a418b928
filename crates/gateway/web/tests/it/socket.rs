//! Connections of clients over a real WebSocket.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::routing::get;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tenterhook_protocol::event::SenderRole;
use tenterhook_web::connection::{ClientIdentity, Login};
use tenterhook_web::socket::{SUBPROTOCOL, configure, serve_socket};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::echo_gateway::EchoGateway;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

async fn listen(gateway: &EchoGateway) -> SocketAddr {
    let (channel, stop) = (Arc::clone(&gateway.channel), gateway.stop.clone());
    let upgrade = async move |upgrade: WebSocketUpgrade| {
        let client = ClientIdentity {
            user: "ann".to_owned(),
            role: SenderRole::Owner,
        };
        let login = Login::Known(client.into());
        configure(upgrade).on_upgrade(move |socket| async move {
            serve_socket(socket, login, channel, stop).await;
        })
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/v1/ws", get(upgrade));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

async fn connect(address: SocketAddr) -> Socket {
    let mut request = format!("ws://{address}/v1/ws")
        .into_client_request()
        .unwrap();
    let protocol = SUBPROTOCOL.parse().unwrap();
    request
        .headers_mut()
        .insert("sec-websocket-protocol", protocol);
    let (socket, response) = connect_async(request).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], SUBPROTOCOL);
    socket
}

async fn next(socket: &mut Socket) -> Message {
    let next = timeout(Duration::from_secs(20), socket.next()).await;
    next.expect("a message arrives").unwrap().unwrap()
}

async fn next_frame(socket: &mut Socket) -> Value {
    let message = next(socket).await;
    serde_json::from_str(message.to_text().unwrap()).unwrap()
}

async fn close_code(socket: &mut Socket) -> u16 {
    loop {
        if let Message::Close(Some(close)) = next(socket).await {
            return close.code.into();
        }
    }
}

#[tokio::test]
async fn a_client_talks_over_a_websocket_and_resumes_over_the_next_one() {
    let gateway = EchoGateway::start("web").await;
    let address = listen(&gateway).await;
    let mut socket = connect(address).await;
    let hello = |seq: u64| json!({"type": "hello", "chats": {"work": seq}}).to_string();
    socket.send(Message::text(hello(0))).await.unwrap();
    assert_eq!(next_frame(&mut socket).await["type"], "ready");
    let message = json!({"type": "message", "chat": "work", "message_id": "1", "text": "hi"});
    socket
        .send(Message::text(message.to_string()))
        .await
        .unwrap();
    while next_frame(&mut socket).await["type"] != "end" {}
    drop(socket);
    let mut socket = connect(address).await;
    socket.send(Message::text(hello(1))).await.unwrap();
    assert_eq!(next_frame(&mut socket).await["type"], "ready");
    let end = next_frame(&mut socket).await;
    assert_eq!((&end["seq"], &end["text"]), (&json!(2), &json!("hi")));
    assert_eq!(next_frame(&mut socket).await["seq"], 3);
    gateway.stop.cancel();
    assert_eq!(next_frame(&mut socket).await["reason"], "shutdown");
    assert_eq!(close_code(&mut socket).await, 1001);
}

#[tokio::test]
async fn binary_data_is_refused_and_a_frame_that_is_too_large_ends_the_connection() {
    let gateway = EchoGateway::start("web").await;
    let mut socket = connect(listen(&gateway).await).await;
    socket.send(Message::binary(vec![0, 1])).await.unwrap();
    assert_eq!(next_frame(&mut socket).await["code"], "bad_frame");
    let large = |size| Message::text(json!({"type": "ping", "x": "x".repeat(size)}).to_string());
    socket.send(large(1 << 20)).await.unwrap();
    assert_eq!(next_frame(&mut socket).await["code"], "too_large");
    socket
        .send(Message::text(r#"{"type":"ping"}"#))
        .await
        .unwrap();
    assert_eq!(next_frame(&mut socket).await["type"], "pong");
    // The server does not read all of this, so the connection breaks somewhere.
    socket.send(large(8 << 20)).await.ok();
    let rest = timeout(Duration::from_secs(20), socket.collect::<Vec<_>>()).await;
    assert!(rest.expect("the connection ends").len() <= 3);
}
