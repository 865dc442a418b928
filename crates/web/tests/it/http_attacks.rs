//! What other programs on this machine cannot do to the server.

use std::time::Duration;

use tokio::net::TcpStream;

use crate::http_server::TestServer;

const CHATS: &str = "GET /v1/chats";

/// How long an answer may take.
const SOON: Duration = Duration::from_secs(10);

#[tokio::test]
async fn idle_connections_do_not_hold_up_others() {
    let server = TestServer::start().await;
    let mut idle = Vec::new();
    for _ in 0..400 {
        idle.push(TcpStream::connect(server.address).await.unwrap());
        // The answers show that the server has accepted the connections before.
        if idle.len() % 50 == 0 {
            let answer = tokio::time::timeout(SOON, server.ask("GET /healthz", &[], ""));
            assert_eq!(answer.await.unwrap().status, 200);
        }
    }
    let answer = tokio::time::timeout(SOON, server.get("/v1/chats"));
    assert_eq!(answer.await.unwrap().status, 200);
}

#[tokio::test]
async fn a_cookie_that_another_port_has_read_is_useless_without_the_key_of_the_page() {
    let server = TestServer::start().await;
    let origin = server.origin();
    let (cookie, key) = server.cookie("owner").await;
    let part = cookie.rsplit_once('=').unwrap().1;
    let key_part = key.rsplit_once(' ').unwrap().1;
    let bearer = |secret: &str| format!("authorization: Bearer {secret}");
    let (half, whole) = (bearer(part), bearer(&format!("{part}{key_part}")));
    let rows: [(&[&str], u16); 6] = [
        (&[&cookie, &key, &origin], 200),
        (&[&cookie, &origin], 401),
        (&[&cookie, &origin, "x-tenterhook: 1"], 401),
        (&[&cookie, &origin, "x-tenterhook: guess"], 401),
        (&[&half], 401),
        (&[&whole], 401),
    ];
    for (headers, expected) in rows {
        let reply = server.ask(CHATS, headers, "").await;
        assert_eq!(reply.status, expected, "{headers:?}");
    }
    // Images are loaded with the cookie only. Their addresses are known only to those who can read the chat.
    let file = "/v1/media/0199a2b4-0000-7000-8000-000000000000";
    let request = format!("GET {file}");
    let reply = server.ask(&request, &[&cookie, &origin], "").await;
    assert_eq!(reply.status, 404);
    assert_eq!(server.get("/v1/chats").await.status, 200);
}

#[tokio::test]
async fn a_token_of_a_program_and_a_cookie_of_another_gateway_do_not_count_in_a_cookie() {
    let server = TestServer::start().await;
    let (origin, port) = (server.origin(), server.address.port());
    let own_name = format!("tenterhook-{port}");
    let expires = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    let scopes = tenterhook_channel::token::AccessScope::ALL;
    let tokens = &server.parts.tokens;
    let other = tokens.create_for_cookie("browser", ("owner", &scopes), port ^ 1, expires);
    let other = other.await.unwrap();
    let (own, key) = server.cookie("owner").await;
    let (own, key) = (
        own.rsplit_once('=').unwrap().1,
        key.rsplit_once(' ').unwrap().1,
    );
    let (program, program_key) = server.owner.split_at(own.len());
    for (name, cookie, key, expected) in [
        (own_name.as_str(), own, key, 200),
        (&own_name, program, program_key, 401),
        (&own_name, other.cookie.expose(), other.key.expose(), 401),
        ("tenterhook", own, key, 401),
        (&format!("tenterhook-{}", port ^ 1), own, key, 401),
    ] {
        let cookie = format!("cookie: {name}={cookie}");
        let key = format!("x-tenterhook: {key}");
        let reply = server.ask(CHATS, &[&cookie, &key, &origin], "").await;
        assert_eq!(reply.status, expected, "{cookie}");
    }
}
