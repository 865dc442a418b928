//! Who may open a web socket at the server.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tenterhook_channel::token::AccessScope;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderName;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::http_server::TestServer;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Returns the status if the server refuses.
async fn connect(server: &TestServer, headers: &[&str]) -> Result<Socket, u16> {
    let address = format!("ws://{}/v1/ws", server.address);
    let mut request = address.into_client_request().unwrap();
    for header in headers {
        let (name, value) = header.split_once(": ").unwrap();
        let name: HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    match connect_async(request).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) => Err(response.status().as_u16()),
        Err(error) => panic!("{error}"),
    }
}

async fn say(socket: &mut Socket, frame: &Value) {
    let text = Message::text(frame.to_string());
    socket.send(text).await.unwrap();
}

async fn hear(socket: &mut Socket) -> Message {
    let next = timeout(Duration::from_secs(20), socket.next()).await;
    next.unwrap().unwrap().unwrap()
}

async fn hear_frame(socket: &mut Socket) -> Value {
    serde_json::from_str(hear(socket).await.to_text().unwrap()).unwrap()
}

async fn close_code(socket: &mut Socket) -> u16 {
    loop {
        if let Message::Close(Some(close)) = hear(socket).await {
            return close.code.into();
        }
    }
}

// G68
#[tokio::test]
async fn a_socket_needs_an_own_origin_or_none_and_a_token_that_is_right() {
    let server = TestServer::start().await;
    let bearer = server.bearer();
    let rows: [(&[&str], Result<&str, u16>); 3] = [
        (&[&bearer], Ok("owner")),
        (&[&bearer, "origin: https://evil.example"], Err(403)),
        (&["authorization: Bearer thg_wrong"], Err(401)),
    ];
    for (headers, expected) in rows {
        let mut found = connect(&server, headers).await;
        if let Ok(socket) = &mut found {
            say(socket, &json!({"type": "hello"})).await;
            let ready = hear_frame(socket).await;
            assert_eq!(Some(ready["user"].as_str().unwrap()), expected.ok());
        }
        assert_eq!(found.err(), expected.err(), "{headers:?}");
    }
}

#[tokio::test]
async fn a_page_shows_its_part_of_the_token_in_the_first_frame() {
    let server = TestServer::start().await;
    let origin = server.origin();
    let (cookie, key) = server.cookie("ann").await;
    let key = key.strip_prefix("x-tenterhook: ").unwrap();
    let (foreign, _) = server.cookie("owner").await;
    let no_cookie = "cookie: a=b".to_owned();
    for (cookie, token, expected) in [
        (&cookie, json!(key), "ready"),
        (&cookie, json!(null), "error"),
        (&cookie, json!("wrong"), "error"),
        (&foreign, json!(key), "error"),
        (&no_cookie, json!(key), "error"),
    ] {
        let mut socket = connect(&server, &[cookie, &origin]).await.unwrap();
        say(&mut socket, &json!({"type": "hello", "token": token})).await;
        let answer = hear_frame(&mut socket).await;
        assert_eq!(answer["type"], expected, "{answer}");
    }
}

#[tokio::test]
async fn a_socket_can_show_its_token_in_the_first_frame() {
    let server = TestServer::start().await;
    let mut socket = connect(&server, &[]).await.unwrap();
    let hello = json!({"type": "hello", "token": server.ann, "chats": {}});
    say(&mut socket, &hello).await;
    let ready = hear_frame(&mut socket).await;
    assert_eq!(
        (&ready["type"], &ready["user"]),
        (&json!("ready"), &json!("ann"))
    );
    let message = json!({"type": "message", "chat": "c", "message_id": "1", "text": "hi"});
    say(&mut socket, &message).await;
    while hear_frame(&mut socket).await["type"] != "done" {}
    let chat = server.intake.messages.lock()[0].chat.to_string();
    assert_eq!(chat, "web:ann/c");
    server.stop.cancel();
    assert_eq!(close_code(&mut socket).await, 1001);
    server.task.await.unwrap();
}

// G67, G71
#[tokio::test]
async fn a_socket_without_a_right_token_is_closed_and_counts() {
    let server = TestServer::start().await;
    let first_frames = [
        json!({"type": "hello"}),
        json!({"type": "hello", "token": "thg_wrong"}),
    ];
    for frame in first_frames.iter().chain([&first_frames[1]; 4]) {
        let mut socket = connect(&server, &[]).await.unwrap();
        say(&mut socket, frame).await;
        let error = hear_frame(&mut socket).await;
        assert_eq!(error["code"], "unauthorized");
        assert_eq!(close_code(&mut socket).await, 1008);
    }
    let wrong = ["authorization: Bearer thg_wrong"];
    let reply = server.ask("GET /v1/chats", &wrong, "").await;
    assert_eq!(reply.status, 429);
    assert_eq!(server.get("/v1/chats").await.status, 200);
}

#[tokio::test]
async fn sockets_that_show_no_token_hold_up_no_one_who_has_one() {
    let server = TestServer::start().await;
    let mut waiting = Vec::new();
    for _ in 0..40 {
        waiting.push(connect(&server, &[]).await.unwrap());
    }
    let mut socket = connect(&server, &[]).await.unwrap();
    let hello = json!({"type": "hello", "token": server.ann});
    say(&mut socket, &hello).await;
    assert_eq!(hear_frame(&mut socket).await["type"], "ready");
    // The oldest ones have given way: their connections ended without an answer.
    let first = timeout(Duration::from_secs(2), waiting[0].next()).await;
    assert!(!matches!(first, Ok(Some(Ok(_))) | Err(_)), "{first:?}");
}

#[tokio::test]
async fn one_token_cannot_take_every_connection_with_sockets() {
    let server = TestServer::start().await;
    let bearer = server.bearer();
    let mut open = Vec::new();
    let refused = loop {
        match connect(&server, &[&bearer]).await {
            Ok(socket) => open.push(socket),
            Err(status) => break status,
        }
        assert!(open.len() < 500, "there is no limit");
    };
    assert_eq!(refused, 429);
    assert_eq!(open.len(), 96);
    // Others are not affected, and neither is the limit of the first frame avoided.
    let ann = format!("authorization: Bearer {}", server.ann);
    assert!(connect(&server, &[&ann]).await.is_ok());
    let mut by_frame = connect(&server, &[]).await.unwrap();
    let hello = json!({"type": "hello", "token": server.owner});
    say(&mut by_frame, &hello).await;
    let answer = hear_frame(&mut by_frame).await;
    assert_eq!(answer["code"], "too_many_connections", "{answer}");
    open.pop();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(10);
    while connect(&server, &[&bearer]).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline);
    }
}

#[tokio::test]
async fn one_user_cannot_take_every_connection_with_many_tokens() {
    let server = TestServer::start().await;
    let mut open = Vec::new();
    for number in 0..3 {
        let name = format!("phone {number}");
        let scopes = [AccessScope::Chat];
        let tokens = &server.parts.tokens;
        let token = tokens.create(&name, "ann", &scopes, None).await.unwrap();
        let bearer = format!("authorization: Bearer {}", token.secret.expose());
        while let Ok(socket) = connect(&server, &[&bearer]).await {
            open.push(socket);
            assert!(open.len() < 500, "there is no limit");
        }
    }
    assert_eq!(open.len(), 128);
    assert!(connect(&server, &[&server.bearer()]).await.is_ok());
}

#[tokio::test]
async fn an_open_socket_ends_when_its_token_is_revoked() {
    let server = TestServer::start().await;
    let bearer = format!("authorization: Bearer {}", server.ann);
    let mut by_header = connect(&server, &[&bearer]).await.unwrap();
    let mut by_frame = connect(&server, &[]).await.unwrap();
    let mut of_owner = connect(&server, &[&server.bearer()]).await.unwrap();
    let hello = json!({"type": "hello", "token": server.ann});
    say(&mut by_frame, &hello).await;
    for socket in [&mut by_header, &mut of_owner] {
        say(socket, &json!({"type": "hello"})).await;
    }
    for socket in [&mut by_header, &mut by_frame, &mut of_owner] {
        assert_eq!(hear_frame(socket).await["type"], "ready");
    }
    let tokens = server.parts.tokens.list();
    let ann = tokens.iter().find(|token| token.user == "ann").unwrap();
    server.parts.tokens.revoke(&ann.id).await.unwrap();
    for socket in [&mut by_header, &mut by_frame] {
        let bye = hear_frame(socket).await;
        assert_eq!(
            (&bye["type"], &bye["reason"]),
            (&json!("bye"), &json!("unauthorized"))
        );
        assert_eq!(close_code(socket).await, 1008);
    }
    say(&mut of_owner, &json!({"type": "ping"})).await;
    assert_eq!(hear_frame(&mut of_owner).await["type"], "pong");
}
