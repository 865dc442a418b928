//! What other programs on this machine cannot do to the server.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use tenterhook_channel::message::Control;
use tenterhook_channel::token::AccessScope;
use tokio::io::AsyncWriteExt as _;
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
    let scopes = AccessScope::ALL;
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

#[tokio::test]
async fn two_thousand_slow_clients_hold_up_no_one_with_a_right_token() {
    let server = TestServer::start().await;
    let host = format!("host: {}\r\n", server.address);
    let mut slow = VecDeque::new();
    for number in 0..2000_u32 {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        // They send half of a head, or a head and never the body that it announces.
        let request = match number % 3 {
            0 => format!("GET /healthz HTTP/1.1\r\n{host}"),
            1 => format!(
                "POST /v1/login HTTP/1.1\r\n{host}x-tenterhook: 1\r\ncontent-length: 9\r\n\r\n"
            ),
            _ => format!("POST /v1/webhooks/hook HTTP/1.1\r\n{host}content-length: 9\r\n\r\n"),
        };
        drop(stream.write_all(request.as_bytes()).await);
        slow.push_back(stream);
        // The rest stays open. More would exceed the usual limit of open files, because the server is in this process.
        if slow.len() > 450 {
            slow.pop_front();
        }
        if number % 250 == 249 {
            let answer = tokio::time::timeout(SOON, server.get("/v1/chats"));
            assert_eq!(answer.await.unwrap().status, 200, "{number}");
        }
    }
}

#[tokio::test]
async fn five_wrong_tokens_or_codes_of_someone_else_lock_no_right_one_out() {
    let server = TestServer::start().await;
    let page = "x-tenterhook: 1";
    for _ in 0..20 {
        server
            .ask(CHATS, &["authorization: Bearer thg_guess"], "")
            .await;
        let body = json!({"code": "guess"}).to_string();
        server.ask("POST /v1/login", &[page], &body).await;
    }
    let wrong = ["authorization: Bearer thg_guess"];
    assert_eq!(server.ask(CHATS, &wrong, "").await.status, 429);
    assert_eq!(server.get("/v1/chats").await.status, 200);
    let scopes = AccessScope::all_of("ann");
    let code = server.parts.logins.code("ann", scopes).unwrap();
    let body = json!({"code": code}).to_string();
    let reply = server.ask("POST /v1/login", &[page], &body).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test]
async fn cookies_that_another_port_tosses_neither_sign_in_nor_lock_out() {
    let server = TestServer::start().await;
    let origin = server.origin();
    let (own, key) = server.cookie("owner").await;
    let (of_ann, _) = server.cookie("ann").await;
    let pair = |header: &str| header.rsplit_once("; ").unwrap().1.to_owned();
    let name = format!("tenterhook-{}", server.address.port());
    let (own, of_ann) = (pair(&own), pair(&of_ann));
    let garbage: Vec<String> = (0..4).map(|number| format!("{name}=x{number}")).collect();
    let garbage = garbage.join("; ");
    for (cookies, expected) in [
        (format!("{garbage}; {of_ann}; {own}"), 200),
        (format!("{own}; {garbage}"), 200),
        (format!("{garbage}; {of_ann}"), 401),
    ] {
        let cookies = format!("cookie: {cookies}");
        for _ in 0..6 {
            let reply = server.ask(CHATS, &[&cookies, &key, &origin], "").await;
            let status = if expected == 401 && reply.status == 429 {
                401
            } else {
                reply.status
            };
            assert_eq!(status, expected, "{cookies}");
        }
    }
}

#[tokio::test]
async fn a_right_cookie_of_someone_else_that_another_port_tosses_signs_no_one_out() {
    let server = TestServer::start().await;
    let origin = server.origin();
    let (own, _) = server.cookie("owner").await;
    let (of_ann, _) = server.cookie("ann").await;
    let cookies = format!("{own}; {}", of_ann.rsplit_once(": ").unwrap().1);
    let file = "GET /v1/media/0199a2b4-0000-7000-8000-000000000000";
    for (request, key) in [
        (file, "x-tenterhook: 1"),
        (CHATS, "x-tenterhook: of-another-tab"),
    ] {
        let reply = server.ask(request, &[&cookies, &origin, key], "").await;
        assert_eq!(reply.status, 401, "{request}");
        assert_eq!(reply.header("set-cookie"), None, "{request}");
    }
}

#[tokio::test]
async fn a_link_on_another_page_signs_no_one_in() {
    let server = TestServer::start().await;
    for site in ["cross-site", "same-site"] {
        let site = format!("sec-fetch-site: {site}");
        for (path, target) in [
            ("/", "/"),
            ("/index.html", "/"),
            ("/nothing", "/"),
            ("/inspect/", "/inspect/"),
            ("/inspect/index.html", "/inspect/"),
            ("/inspect", "/inspect/"),
        ] {
            let headers = [site.as_str(), "sec-fetch-mode: navigate"];
            let reply = server.ask(&format!("GET {path}"), &headers, "").await;
            assert_eq!(reply.status, 200);
            assert!(!reply.body.contains("<script"), "{}", reply.body);
            let link = format!("href=\"{target}\"");
            assert!(reply.body.contains(&link), "{}", reply.body);
            let policy = reply.header("content-security-policy").unwrap();
            assert!(policy.contains("default-src 'none'"), "{policy}");
        }
    }
    for headers in [
        &["sec-fetch-site: none", "sec-fetch-mode: navigate"],
        &["sec-fetch-site: same-origin", "sec-fetch-mode: navigate"],
    ] {
        let reply = server.ask("GET /", headers, "").await;
        assert!(reply.body.contains("<script"), "{headers:?}");
        // The page that opened this one cannot add a code to its address afterwards.
        let policy = reply.header("cross-origin-opener-policy");
        assert_eq!(policy, Some("same-origin"), "{headers:?}");
    }
}

#[tokio::test]
async fn a_link_of_someone_else_does_not_replace_a_sign_in_without_a_question() {
    let server = TestServer::start().await;
    let origin = server.origin();
    let (cookie, _) = server.cookie("owner").await;
    let headers = [cookie.as_str(), &origin, "x-tenterhook: 1"];
    let logins = &server.parts.logins;
    let code = logins.code("ann", AccessScope::all_of("ann")).unwrap();
    let ask = async |body: serde_json::Value| {
        server
            .ask("POST /v1/login", &headers, &body.to_string())
            .await
    };
    let reply = ask(json!({"code": code})).await;
    assert_eq!(reply.status, 409);
    let message = reply.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains("`owner`") && message.contains("`ann`"),
        "{message}"
    );
    // The code is still there for the person who agrees.
    let reply = ask(json!({"code": code, "replace": true})).await;
    assert_eq!(reply.json()["user"], "ann");
    let own = logins.code("owner", AccessScope::all_of("owner")).unwrap();
    assert_eq!(ask(json!({"code": own})).await.status, 200);
}

#[tokio::test]
async fn slow_uploads_of_one_user_hold_up_no_one_else() {
    let server = TestServer::start().await;
    let tokens = &server.parts.tokens;
    let bob = tokens.create("bob", "bob", &[AccessScope::Chat], None);
    let bob = format!(
        "authorization: Bearer {}",
        bob.await.unwrap().secret.expose()
    );
    let host = format!("host: {}", server.address);
    let slow = ["content-length: 1000", &bob, &host];
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut stream = server.open("POST /v1/media", &slow).await;
        stream.write_all(b"the beginning").await.unwrap();
        held.push(stream);
    }
    let owner = [server.bearer()];
    let owner: Vec<&str> = owner.iter().map(String::as_str).collect();
    let reply = server.ask("POST /v1/media", &owner, "a file");
    let reply = tokio::time::timeout(SOON, reply).await.unwrap();
    assert_eq!(reply.status, 200, "{}", reply.body);
}

#[tokio::test]
async fn two_requests_whose_answers_a_full_disk_cannot_store_do_not_hang() {
    let server = TestServer::start().await;
    for (text, code) in [("full disk", 502), ("full disk before the turn", 409)] {
        for accept in ["accept: application/json", "accept: text/event-stream"] {
            let body = json!({"text": text});
            let headers = [accept];
            let answered = server.post("/v1/chats/work/messages", &headers, &body);
            let reply = tokio::time::timeout(SOON, answered).await.expect(text);
            if accept.ends_with("json") {
                assert_eq!(reply.status, code, "{text}: {}", reply.body);
            }
            assert!(reply.body.contains("not_stored"), "{text}: {}", reply.body);
        }
    }
}

#[tokio::test]
async fn a_chat_called_like_a_parent_folder_does_not_exist() {
    let server = TestServer::start().await;
    for path in [
        "/v1/chats/%2e%2e/history",
        "/v1/chats/../history",
        "/v1/chats/./history",
    ] {
        let reply = server.get(path).await;
        assert!(
            [400, 404].contains(&reply.status),
            "{path}: {}",
            reply.status
        );
    }
    let message = json!({"text": "hi"});
    let reply = server
        .post("/v1/chats/%2e%2e/messages", &[], &message)
        .await;
    assert_eq!(reply.status, 400);
    assert!(server.intake.messages.lock().is_empty());
}

#[tokio::test]
async fn a_user_who_may_approve_reaches_only_their_own_chats() {
    let server = TestServer::start().await;
    let secret = json!({"text": "the secret of the owner"});
    server.post("/v1/chats/work/messages", &[], &secret).await;
    let scopes = [AccessScope::Chat, AccessScope::Approve];
    let tokens = &server.parts.tokens;
    let ada = tokens.create("ada", "ada", &scopes, None).await.unwrap();
    let ada = format!("authorization: Bearer {}", ada.secret.expose());
    let ask = async |request: &str, body: &str| {
        let json = "content-type: application/json";
        server.ask(request, &[&ada, json], body).await
    };
    for path in [
        "/v1/chats",
        "/v1/chats/work/history",
        "/v1/chats/owner%2Fwork/history",
    ] {
        let reply = ask(&format!("GET {path}"), "").await;
        assert!(!reply.body.contains("secret"), "{path}: {}", reply.body);
    }
    for path in ["/v1/status", "/v1/inspect/records", "/v1/inspect/gateway"] {
        assert_eq!(ask(&format!("GET {path}"), "").await.status, 403, "{path}");
    }
    let allow = json!({"choice": "allow"}).to_string();
    ask("POST /v1/chats/work/approvals/n1", &allow).await;
    ask("POST /v1/chats/work/cancel", "").await;
    let decided = ask("POST /v1/inspect/approvals/n1", r#"{"decision":"approve"}"#).await;
    assert_eq!(decided.status, 403);
    let controls = server.intake.controls.lock();
    assert_eq!(controls.len(), 2);
    for control in controls.iter() {
        assert_eq!(control.chat().to_string(), "http:ada/work");
        assert!(matches!(
            control,
            Control::Approval { .. } | Control::Cancel { .. }
        ));
        assert_eq!(control.sender().id, "ada");
    }
}
