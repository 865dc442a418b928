//! The server, over real connections.

use std::time::Duration;

use serde_json::{Value, json};
use tenterhook_channel::message::{ApprovalChoice, Control, IncomingPart};
use tenterhook_channel::token::AccessScope;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::http_server::{Reply, TestServer, events_of, text_of, until};

const MESSAGES: &str = "/v1/chats/work/messages";

/// Returns the status and the code of a refusal.
fn refusal(reply: &Reply) -> (u16, String) {
    let code = reply.json()["error"]["code"].as_str().unwrap().to_owned();
    (reply.status, code)
}

/// The first line of a request, its headers besides the host, and the status of the answer.
type Row<'a> = (&'a str, &'a [&'a str], u16);

async fn check_rows(server: &TestServer, rows: &[Row<'_>]) {
    for (request, headers, expected) in rows {
        let reply = server.ask(request, headers, "").await;
        check_reply(&reply, *expected, &format!("{request} {headers:?}"));
    }
}

/// Checks the status of an answer, and what all answers have in common.
fn check_reply(reply: &Reply, expected: u16, request: &str) {
    assert_eq!(reply.status, expected, "{request} {}", reply.body);
    assert_eq!(
        reply.header("x-content-type-options"),
        Some("nosniff"),
        "{request}"
    );
    assert_eq!(
        reply.header("access-control-allow-origin"),
        None,
        "{request}"
    );
    if expected >= 400 {
        assert!(refusal(reply).1.len() > 2, "{request}");
    }
}

const CHATS: &str = "GET /v1/chats";
const CANCEL: &str = "POST /v1/chats/work/cancel";
const EVIL: &str = "origin: https://evil.example";

// G68
#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_before_anything_else() {
    let server = TestServer::start().await;
    let bearer = server.bearer();
    for host in [
        &["host: evil.example", &bearer][..],
        &["host: evil.example"],
        &[&bearer],
    ] {
        for request in [
            CHATS,
            "GET /",
            "GET /healthz",
            "GET /v1/ws",
            "POST /v1/login",
        ] {
            let reply = server.ask_raw(request, host, b"").await;
            check_reply(&reply, 421, request);
        }
    }
    let named = server
        .ask_raw(CHATS, &["host: bot.example", &bearer], b"")
        .await;
    check_reply(&named, 200, "a name of the settings");
    let origin = server.origin();
    let socket = [
        EVIL,
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    let rows: &[Row<'_>] = &[
        (CHATS, &[&bearer, &origin], 200),
        (CHATS, &[&bearer, "origin: https://ui.example"], 200),
        (CHATS, &[&bearer, EVIL], 403),
        (CHATS, &[&bearer, "origin: null"], 403),
        ("GET /healthz", &[EVIL], 403),
        ("GET /v1/ws", &socket, 403),
        ("OPTIONS /v1/chats", &[EVIL], 403),
    ];
    check_rows(&server, rows).await;
}

// G67
#[tokio::test]
async fn a_token_is_needed_also_on_the_loopback_and_never_in_the_address() {
    let server = TestServer::start().await;
    let bearer = server.bearer();
    let ann = format!("authorization: Bearer {}", server.ann);
    let rows: &[Row<'_>] = &[
        (CHATS, &[], 401),
        (CHATS, &[&bearer], 200),
        (CHATS, &["authorization: Basic eDp5"], 401),
        ("GET /healthz", &[], 200),
        ("GET /healthz?token=x", &[], 400),
        ("GET /v1/chats?token=x", &[&bearer], 400),
        ("GET /v1/ws?access_token=x", &[&bearer], 400),
        ("GET /v1/status", &[&ann], 403),
        ("GET /v1/status", &[&bearer], 200),
        ("GET /readyz", &[], 200),
        ("GET /metrics", &[], 401),
        ("GET /metrics", &[&ann], 403),
        ("GET /metrics", &[&bearer], 200),
        ("POST /v1/chats/work/approvals/n", &[&ann], 403),
        (CANCEL, &[&bearer], 200),
        (CANCEL, &[&ann], 200),
        (CANCEL, &[], 401),
    ];
    check_rows(&server, rows).await;
}

#[tokio::test]
async fn a_gateway_that_takes_no_messages_is_healthy_and_not_ready() {
    let server = TestServer::start().await;
    *server.unready.lock() = Some("store");
    let ready = server.ask("GET /readyz", &[], "").await;
    assert_eq!(refusal(&ready), (503, "store".to_owned()));
    assert_eq!(server.ask("GET /healthz", &[], "").await.status, 200);
}

#[tokio::test]
async fn metrics_have_the_media_type_that_prometheus_expects() {
    let server = TestServer::start().await;
    let metrics = server.get("/metrics").await;
    let kind = metrics.header("content-type");
    assert_eq!(kind, Some("text/plain; version=0.0.4"));
    assert_eq!(metrics.body, "up 1\n");
}

#[tokio::test]
async fn a_cookie_counts_only_in_requests_of_the_page() {
    let server = TestServer::start().await;
    let (cookie, key) = server.cookie("owner").await;
    let (cookie, key, origin) = (cookie.as_str(), key.as_str(), server.origin());
    let same = "sec-fetch-site: same-origin";
    let rows: &[Row<'_>] = &[
        (CHATS, &[cookie, key], 401),
        (CHATS, &[cookie, key, same], 200),
        (CHATS, &[cookie, key, &origin], 200),
        (CHATS, &[cookie, key, EVIL], 403),
        (CHATS, &[cookie, key, "sec-fetch-site: cross-site"], 401),
        (CANCEL, &[cookie, key, &origin], 200),
        (CANCEL, &[cookie, key, same], 401),
    ];
    check_rows(&server, rows).await;
}

#[tokio::test]
async fn addresses_and_methods_that_do_not_exist_are_refused() {
    let server = TestServer::start().await;
    let bearer = server.bearer();
    let rows: &[Row<'_>] = &[
        ("GET /v1/unknown", &[], 404),
        ("POST /v1/unknown", &[], 404),
        ("DELETE /v1/chats", &[&bearer], 405),
        ("GET /v1/chats/a%20b/history", &[&bearer], 400),
        ("GET /v1/chats/a%2Fb/history", &[&bearer], 400),
        ("GET /v1/chats/work/history?limit=x", &[&bearer], 400),
        (
            "GET /v1/chats/work/events",
            &[&bearer, "last-event-id: x"],
            400,
        ),
        ("GET /v1/media/%2e%2e%2fetc", &[&bearer], 404),
    ];
    check_rows(&server, rows).await;
}

// G71
#[tokio::test]
async fn the_sixth_wrong_token_of_an_address_is_not_looked_at() {
    let server = TestServer::start().await;
    let wrong = "authorization: Bearer thg_wrong";
    for _ in 0..5 {
        let reply = server.ask("GET /v1/chats", &[wrong], "").await;
        assert_eq!(reply.status, 401);
    }
    let reply = server.ask("GET /v1/chats", &[wrong], "").await;
    assert_eq!(refusal(&reply), (429, "locked".to_owned()));
    let after: u64 = reply.header("retry-after").unwrap().parse().unwrap();
    assert!((290..=300).contains(&after), "{after}");
    let right = server.get("/v1/chats").await.status;
    assert_eq!(
        right, 200,
        "a right token counts whatever others have tried"
    );
    assert_eq!(server.ask("GET /healthz", &[], "").await.status, 200);
}

#[tokio::test]
async fn a_code_becomes_a_cookie_once() {
    let server = TestServer::start().await;
    let code = server
        .parts
        .logins
        .code("ann", vec![AccessScope::Chat])
        .unwrap();
    let body = json!({"code": code}).to_string();
    let origin = server.origin();
    let page = [origin.as_str(), "x-tenterhook: 1"];
    let reply = server.ask("POST /v1/login", &[&origin], &body).await;
    assert_eq!(reply.status, 403, "a form of another page could send this");

    let reply = server.ask("POST /v1/login", &page, &body).await;
    assert_eq!((reply.status, &reply.json()["user"]), (200, &json!("ann")));
    let set = reply.header("set-cookie").unwrap().to_owned();
    let attributes = "; HttpOnly; SameSite=Strict; Path=/; Max-Age=86400";
    let pair = set.strip_suffix(attributes).unwrap();
    let name = format!("tenterhook-{}", server.address.port());
    assert!(pair.starts_with(&format!("{name}=thg_")), "{set}");
    let again = server.ask("POST /v1/login", &page, &body).await;
    assert_eq!(refusal(&again), (401, "wrong_code".to_owned()));

    let cookie = format!("cookie: {pair}");
    let key = reply.json()["key"].as_str().unwrap().to_owned();
    assert!(key.len() > 20 && !set.contains(&key), "{set}");
    let key = format!("x-tenterhook: {key}");
    let with_cookie = [&cookie, page[0], &key];
    assert_eq!(
        server.ask("GET /v1/chats", &with_cookie, "").await.status,
        200
    );
    let out = server.ask("POST /v1/logout", &with_cookie, "").await;
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    let after = server.ask("GET /v1/chats", &with_cookie, "").await;
    assert_eq!(after.status, 401);
    assert!(after.header("set-cookie").unwrap().contains("Max-Age=0"));
    let logout = server.post("/v1/logout", &[], &json!({})).await;
    assert_eq!(refusal(&logout), (400, "no_cookie".to_owned()));
}

// G64
#[tokio::test]
async fn the_same_key_gives_one_turn_and_the_same_answer() {
    let server = TestServer::start().await;
    let key = ["idempotency-key: k1"];
    let body = json!({"text": "slow"});
    let (first, second, ()) = tokio::join!(
        server.post(MESSAGES, &key, &body),
        server.post(MESSAGES, &key, &body),
        async {
            until(|| server.intake.messages.lock().len() == 1).await;
            server.intake.go_on.notify_one();
        },
    );
    assert_eq!(first.status, 200, "{first:?}");
    let expected = json!({
        "chat": "work", "message_id": "k1", "text": "you said: slow",
        "parts": [{"type": "text", "text": "you said: slow"}], "status": "completed", "seq": 3,
    });
    assert_eq!(first.json(), expected);
    assert_eq!(second.body, first.body);

    let other = server
        .post(MESSAGES, &["idempotency-key: k2"], &json!({"text": "hi"}))
        .await;
    assert_eq!(other.json()["text"], "you said: hi");
    let late = server.post(MESSAGES, &key, &body).await;
    assert_eq!(late.body, first.body);
    assert_eq!(server.intake.messages.lock().len(), 2);

    // Another user, or another chat, may use the same key.
    let ann = format!("authorization: Bearer {}", server.ann);
    let headers = [ann.as_str(), key[0], "content-type: application/json"];
    let of_ann = server
        .ask(&format!("POST {MESSAGES}"), &headers, r#"{"text":"I"}"#)
        .await;
    assert_eq!(of_ann.json()["text"], "you said: I");
    let elsewhere = server
        .post("/v1/chats/b/messages", &key, &json!({"text": "there"}))
        .await;
    assert_eq!(elsewhere.json()["text"], "you said: there");
    let chats: Vec<_> = server
        .intake
        .messages
        .lock()
        .iter()
        .map(|one| one.chat.to_string())
        .collect();
    assert_eq!(
        chats[1..],
        ["http:owner/work", "http:ann/work", "http:owner/b"]
    );
}

#[tokio::test]
async fn what_happens_to_a_message_is_a_status() {
    let server = TestServer::start().await;
    let rows = [
        ("rejected", 403, "rejected"),
        ("stranger", 403, "not_admitted"),
        ("silence", 403, "rejected"),
        ("busy", 409, "busy"),
        ("too many", 429, "queue_full"),
        ("broken", 502, "model"),
        ("disk", 503, "not_recorded"),
    ];
    for (text, status, code) in rows {
        let key = format!("idempotency-key: {}", text.replace(' ', "-"));
        let reply = server.post(MESSAGES, &[&key], &json!({"text": text})).await;
        assert_eq!(refusal(&reply), (status, code.to_owned()), "{text}");
        let has_time = reply.header("retry-after").is_some();
        assert_eq!(has_time, matches!(status, 429 | 503), "{text}");
        let again = server.post(MESSAGES, &[&key], &json!({"text": text})).await;
        assert_eq!(again.body, reply.body, "{text}");
    }
    let rows = [
        (json!({}), 400),
        (json!({"text": ""}), 400),
        (json!({"text": 7}), 400),
        (json!("text"), 400),
        (json!({"text": "x", "parts": [{"media": "nothing"}]}), 400),
        (json!({"text": "x".repeat((256 << 10) + 1)}), 413),
        (json!({"text": "x".repeat(3 << 20)}), 413),
    ];
    for (body, status) in rows {
        let reply = server.post(MESSAGES, &[], &body).await;
        assert_eq!(reply.status, status, "{}", reply.body);
    }
    let bearer = server.bearer();
    let plain = server
        .ask(&format!("POST {MESSAGES}"), &[&bearer], "hi")
        .await;
    assert_eq!(refusal(&plain), (415, "unknown_type".to_owned()));
    let key = server
        .post(MESSAGES, &["idempotency-key: a b"], &json!({"text": "x"}))
        .await;
    assert_eq!(key.status, 400);
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_nothing() {
    let server = TestServer::start().await;
    let key = ["idempotency-key: k"];
    let body = json!({"text": "slow"});
    let gone = tokio::time::timeout(
        Duration::from_millis(200),
        server.post(MESSAGES, &key, &body),
    );
    assert!(gone.await.is_err());
    server.intake.go_on.notify_one();
    let reply = server.post(MESSAGES, &key, &body).await;
    assert_eq!(reply.json()["text"], "you said: slow");
    assert!(server.intake.controls.lock().is_empty());
}

#[tokio::test]
async fn a_client_that_goes_away_too_early_is_still_heard() {
    let server = TestServer::start().await;
    let body = json!({"text": "slow disk"});
    let gone = tokio::time::timeout(
        Duration::from_millis(200),
        server.post(MESSAGES, &[], &body),
    );
    assert!(gone.await.is_err());
    server.intake.go_on.notify_one();
    until(|| server.intake.messages.lock().len() == 1).await;
}

#[tokio::test]
async fn a_client_may_only_want_to_know_that_its_message_is_recorded() {
    let server = TestServer::start().await;
    let headers = ["prefer: respond-async", "idempotency-key: k"];
    let expected =
        |is_duplicate| json!({"chat": "work", "message_id": "k", "duplicate": is_duplicate});
    for is_duplicate in [false, true] {
        let reply = server
            .post(MESSAGES, &headers, &json!({"text": "slow"}))
            .await;
        assert_eq!((reply.status, reply.json()), (202, expected(is_duplicate)));
    }
}

fn types(events: &[(Option<u64>, Value)]) -> Vec<&str> {
    events
        .iter()
        .map(|(_, event)| event["type"].as_str().unwrap())
        .collect()
}

// G64
#[tokio::test]
async fn a_turn_can_be_streamed_and_resumed() {
    let server = TestServer::start().await;
    let headers = ["accept: text/event-stream", "idempotency-key: k"];
    let reply = server
        .post(MESSAGES, &headers, &json!({"text": "hi"}))
        .await;
    assert_eq!(reply.header("content-type"), Some("text/event-stream"));
    let events = reply.events();
    assert_eq!(types(&events), ["said", "start", "chunk", "end", "done"]);
    assert_eq!(events[0].0, Some(1));
    assert_eq!(events[2].0, None);
    assert!(
        events
            .iter()
            .all(|(id, event)| event["chat"] == "work" && event["seq"].as_u64() == *id)
    );

    let other = server.post(MESSAGES, &[], &json!({"text": "more"})).await;
    assert_eq!(other.json()["seq"], 6);
    let again = server
        .post(MESSAGES, &headers, &json!({"text": "hi"}))
        .await;
    assert_eq!(types(&again.events()), ["said", "end", "done"]);
    let rest = [headers[0], headers[1], "last-event-id: 2"];
    let rest = server.post(MESSAGES, &rest, &json!({"text": "hi"})).await;
    assert_eq!(types(&rest.events()), ["done"]);
    let refused = server
        .post(
            MESSAGES,
            &["accept: text/event-stream"],
            &json!({"text": "rejected"}),
        )
        .await;
    assert_eq!(types(&refused.events()).last(), Some(&"error"));
}

// G64
#[tokio::test]
async fn the_events_of_a_chat_go_on_where_a_client_left() {
    let server = TestServer::start().await;
    server.post(MESSAGES, &[], &json!({"text": "one"})).await;
    let (bearer, host) = (server.bearer(), format!("host: {}", server.address));
    let headers = [host.as_str(), &bearer, "last-event-id: 2"];
    let mut stream = server.open("GET /v1/chats/work/events", &headers).await;
    let mut text = read_until(&mut stream, "\"done\"").await;
    server.post(MESSAGES, &[], &json!({"text": "two"})).await;
    text.push_str(&read_until(&mut stream, "\"done\"").await);
    server.stop.cancel();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.unwrap();

    // Each event is a chunk of its own: its size is a line before it.
    let is_event =
        |line: &&str| line.starts_with("data: ") || line.starts_with("id: ") || line.is_empty();
    let lines: Vec<&str> = text.lines().filter(is_event).collect();
    let ids: Vec<u64> = events_of(&lines.join("\n"))
        .iter()
        .filter_map(|(id, _)| *id)
        .collect();
    assert_eq!(ids, [3, 4, 5, 6]);
}

async fn read_until(stream: &mut tokio::net::TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&bytes).contains(end) {
        let count = stream.read(&mut buffer).await.unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..count]);
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_user_sees_only_their_own_chats() {
    let server = TestServer::start().await;
    server.post(MESSAGES, &[], &json!({"text": "hello"})).await;
    let ann = format!("authorization: Bearer {}", server.ann);
    let of_ann = async |path: &str| server.ask(&format!("GET {path}"), &[&ann], "").await.json();

    let chats = server.get("/v1/chats").await.json();
    assert_eq!(chats["chats"][0]["id"], "work");
    assert_eq!(chats["chats"][0]["last_seq"], 3);
    assert_eq!(of_ann("/v1/chats").await, json!({"chats": []}));

    let history = server
        .get("/v1/chats/work/history?limit=2&before=3")
        .await
        .json();
    let seqs: Vec<_> = history["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["seq"].clone())
        .collect();
    assert_eq!(seqs, [1, 2]);
    let history = of_ann("/v1/chats/work/history").await;
    assert_eq!(history["frames"], json!([]));
}

#[tokio::test]
async fn requests_that_are_not_messages_reach_the_gateway() {
    let server = TestServer::start().await;
    let reply = server.post("/v1/chats/work/cancel", &[], &json!({})).await;
    assert_eq!(reply.json(), json!({"notice": "noted"}));
    let path = "/v1/chats/work/approvals/n1";
    let bodies = [
        json!({"choice": "deny", "reason": "no"}),
        json!({"text": "blue"}),
        json!({"choice": "perhaps"}),
    ];
    let mut statuses = Vec::new();
    for body in bodies {
        statuses.push(server.post(path, &[], &body).await.status);
    }
    assert_eq!(statuses, [200, 200, 400]);
    let controls = server.intake.controls.lock();
    assert!(matches!(&controls[0], Control::Cancel { sender, .. } if sender.id == "owner"));
    let Control::Approval {
        nonce,
        choice,
        chat,
        ..
    } = &controls[1]
    else {
        panic!("{controls:?}");
    };
    assert_eq!((nonce.as_str(), *choice), ("n1", ApprovalChoice::Deny));
    assert_eq!(chat.to_string(), "http:owner/work");
    assert!(matches!(&controls[2], Control::Answer { text: Some(text), .. } if text == "blue"));
}

#[tokio::test]
async fn a_token_that_sends_too_much_has_to_wait() {
    let server = TestServer::start().await;
    for _ in 0..60 {
        assert_eq!(
            server
                .post("/v1/chats/a/cancel", &[], &json!({}))
                .await
                .status,
            200
        );
    }
    let reply = server.post("/v1/chats/a/cancel", &[], &json!({})).await;
    assert_eq!(refusal(&reply), (429, "rate".to_owned()));
    assert_eq!(server.get("/v1/chats").await.status, 200, "reading goes on");
}

const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89";

#[tokio::test]
async fn a_file_is_uploaded_sent_and_read_by_its_user_only() {
    let server = TestServer::start().await;
    let (bearer, host) = (server.bearer(), format!("host: {}", server.address));
    let length = format!("content-length: {}", PNG.len());
    let headers = [host.as_str(), &bearer, &length, "x-file-name: a%20b.html"];
    let reply = server.ask_raw("POST /v1/media", &headers, PNG).await;
    let media = reply.json();
    assert_eq!(
        (&media["media_type"], &media["kind"]),
        (&json!("image/png"), &json!("image"))
    );
    let path = format!("/v1/media/{}", media["id"].as_str().unwrap());

    let body = json!({"text": "look", "parts": [{"media": media["id"]}]});
    let sent = server.post(MESSAGES, &[], &body).await;
    assert_eq!(sent.json()["text"], "you said: look");
    assert!(matches!(
        &server.intake.messages.lock()[0].parts[1],
        IncomingPart::Media(_)
    ));

    let reply = server.get(&path).await;
    assert_eq!(reply.status, 200);
    assert_eq!(reply.header("content-type"), Some("image/png"));
    assert_eq!(
        reply.header("content-disposition"),
        Some("inline; filename*=UTF-8''a%20b.html")
    );
    assert!(
        reply
            .header("content-security-policy")
            .unwrap()
            .contains("sandbox")
    );
    let ann = format!("authorization: Bearer {}", server.ann);
    assert_eq!(
        server.ask(&format!("GET {path}"), &[&ann], "").await.status,
        404
    );
}

#[tokio::test]
async fn a_recording_is_played_in_parts() {
    let server = TestServer::start().await;
    let wav = "RIFF\u{24}\0\0\0WAVEfmt \u{10}\0\0\0 and the rest";
    let media = server
        .ask("POST /v1/media", &[&server.bearer()], wav)
        .await
        .json();
    assert_eq!(media["kind"], "audio");
    let request = format!("GET /v1/media/{}", media["id"].as_str().unwrap());
    let size = wav.len();
    let rows = [
        ("bytes=0-", 206, format!("bytes 0-{}/{size}", size - 1), wav),
        ("bytes=8-11", 206, format!("bytes 8-11/{size}"), "WAVE"),
        (
            "bytes=-4",
            206,
            format!("bytes {}-{}/{size}", size - 4, size - 1),
            "rest",
        ),
        ("bytes=999-", 416, format!("bytes */{size}"), ""),
    ];
    for (range, status, shown, body) in rows {
        let range = format!("range: {range}");
        let reply = server.ask(&request, &[&server.bearer(), &range], "").await;
        assert_eq!(reply.status, status, "{range}");
        assert_eq!(reply.header("content-range"), Some(&*shown), "{range}");
        assert_eq!(reply.body, body, "{range}");
    }
    let whole = server.ask(&request, &[&server.bearer()], "").await;
    assert_eq!((whole.status, &*whole.body), (200, wav));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    assert_eq!(whole.header("content-range"), None);
}

#[tokio::test]
async fn a_page_that_was_sent_as_a_file_is_not_shown() {
    let server = TestServer::start().await;
    let page = "<html><script>alert(1)</script></html>";
    let media = server
        .ask("POST /v1/media", &[&server.bearer()], page)
        .await
        .json();
    let reply = server
        .get(&format!("/v1/media/{}", media["id"].as_str().unwrap()))
        .await;
    let disposition = reply.header("content-disposition").unwrap();
    assert!(disposition.starts_with("attachment"), "{disposition}");
}

#[tokio::test]
async fn a_form_has_a_text_and_files() {
    let server = TestServer::start().await;
    let part = |head: &str, body: &str| {
        format!("--B\r\ncontent-disposition: form-data; {head}\r\n\r\n{body}\r\n")
    };
    let file = part("name=\"file\"; filename=\"../../x.txt\"", "the contents");
    let form = format!(
        "{}{file}{file}--B--\r\n",
        part("name=\"text\"", "read this")
    );
    let bearer = server.bearer();
    let headers = [
        bearer.as_str(),
        "content-type: multipart/form-data; boundary=B",
    ];
    let request = format!("POST {MESSAGES}");
    let reply = server.ask(&request, &headers, &form).await;
    assert_eq!(reply.json()["text"], "you said: read this");
    let message = server.intake.messages.lock()[0].clone();
    assert_eq!(
        (message.parts.len(), text_of(&message).as_str()),
        (3, "read this")
    );

    let many = format!("{}--B--\r\n", file.repeat(11));
    let rows = [
        (many.as_str(), 413),
        ("--B\r\nbroken", 400),
        ("--B--\r\n", 400),
        (&format!("{}--B--\r\n", part("name=\"other\"", "x")), 400),
    ];
    for (form, status) in rows {
        assert_eq!(
            server.ask(&request, &headers, form).await.status,
            status,
            "{form}"
        );
    }
}

// G80
#[tokio::test]
async fn a_file_that_never_ends_is_cut_and_leaves_nothing() {
    let server = TestServer::start().await;
    let (bearer, host) = (server.bearer(), format!("host: {}", server.address));
    let headers = [host.as_str(), &bearer, "transfer-encoding: chunked"];
    let stream = server.open("POST /v1/media", &headers).await;
    let (mut read, mut write) = stream.into_split();
    let send = async {
        let chunk = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
        for _ in 0..30 {
            if write.write_all(chunk.as_bytes()).await.is_err() {
                return;
            }
        }
    };
    let mut answer = Vec::new();
    let ((), _) = tokio::join!(send, read.read_to_end(&mut answer));
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(answer.contains("too_large"), "{answer}");
    let files = std::fs::read_dir(server.folder.path().join("media")).unwrap();
    assert_eq!(files.count(), 0);
}

#[tokio::test]
async fn long_headers_are_refused() {
    let server = TestServer::start().await;
    let long = format!("x-long: {}", "x".repeat(20 << 10));
    assert_eq!(server.ask("GET /healthz", &[&long], "").await.status, 431);
}

#[tokio::test]
async fn the_server_stops_although_clients_hold_their_connections() {
    let server = TestServer::start().await;
    let (bearer, host) = (server.bearer(), format!("host: {}", server.address));
    let headers = [host.as_str(), bearer.as_str()];
    let mut events = server.open("GET /v1/chats/work/events", &headers).await;
    let _idle = tokio::net::TcpStream::connect(server.address)
        .await
        .unwrap();
    read_until(&mut events, "\r\n\r\n").await;
    server.stop.cancel();
    server.task.await.unwrap();
}

#[tokio::test]
async fn the_page_may_load_only_what_is_its_own() {
    let server = TestServer::start().await;
    let page = server.ask("GET /", &[], "").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cache-control"), Some("no-store"));
    let policy = page.header("content-security-policy").unwrap();
    let expected = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
        img-src 'self' blob:; media-src 'self' blob:; frame-ancestors 'none'; base-uri 'none'; \
        form-action 'none'";
    assert_eq!(policy, expected);
    let etag = format!("if-none-match: {}", page.header("etag").unwrap());
    assert_eq!(server.ask("GET /", &[&etag], "").await.status, 304);
}

#[tokio::test]
async fn an_open_event_stream_ends_when_its_token_is_revoked_or_expires() {
    let server = TestServer::start().await;
    let tokens = &server.parts.tokens;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(2);
    let mut open = Vec::new();
    for (name, expires) in [("revoked", None), ("expiring", Some(soon))] {
        let made = tokens
            .create(name, "eve", &[AccessScope::Chat], expires)
            .await;
        let host = format!("host: {}", server.address);
        let bearer = format!("authorization: Bearer {}", made.unwrap().secret.expose());
        let headers = [host.as_str(), &bearer];
        let mut stream = server.open("GET /v1/chats/work/events", &headers).await;
        let mut start = [0; 15];
        stream.read_exact(&mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200 OK");
        open.push(stream);
    }
    tokens.revoke("revoked").await.unwrap();
    for mut stream in open {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest));
        ended.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_cookie_that_another_port_of_this_machine_has_set_does_not_count() {
    let server = TestServer::start().await;
    let origin = server.origin();
    let (own, key) = server.cookie("owner").await;
    let (fixed, _) = server.cookie("ann").await;
    let pair = |header: &str| header.rsplit_once("; ").unwrap().1.to_owned();
    let (own, fixed) = (pair(&own), pair(&fixed));
    let rows = [
        (format!("cookie: {own}"), 200),
        (format!("cookie: {own}; other=1; {own}"), 200),
        (format!("cookie: {fixed}; {own}"), 200),
        (format!("cookie: {own}; {fixed}"), 200),
        (format!("cookie: {fixed}"), 401),
    ];
    for (cookie, expected) in rows {
        let reply = server.ask(CHATS, &[&cookie, &key, &origin], "").await;
        assert_eq!(reply.status, expected);
        let two = [cookie.as_str(), &key, "sec-fetch-site: same-site"];
        assert_eq!(
            server.ask(CHATS, &two, "").await.status,
            401,
            "another port"
        );
    }
}

#[tokio::test]
async fn files_of_messages_that_are_not_taken_do_not_fill_the_disk() {
    let server = TestServer::start().await;
    let count = || {
        let files = std::fs::read_dir(server.folder.path().join("media")).unwrap();
        files.count()
    };
    let file = json!({"media_type": "text/plain", "data": "aGVsbG8=", "name": "a.txt"});
    let broken = json!({"media_type": "text/plain", "data": "?"});
    for (text, parts, expected) in [
        ("stranger", vec![&file], 403),
        ("too many", vec![&file; 10], 429),
        ("disk", vec![&file], 503),
        ("hi", vec![&file, &broken], 400),
        ("hi", vec![&file; 11], 413),
    ] {
        let reply = server
            .post(MESSAGES, &[], &json!({"text": text, "parts": parts}))
            .await;
        assert_eq!(reply.status, expected, "{text} {}", reply.body);
        assert_eq!(count(), 0, "{text}");
    }
    let field = |name: &str, value: &str| {
        format!("--b\r\nContent-Disposition: form-data; {name}\r\n\r\n{value}\r\n")
    };
    let (of_file, of_text) = (r#"name="file"; filename="a""#, r#"name="text""#);
    let forms = [
        (field(of_file, "x") + &field(of_text, "stranger"), 403),
        (field(of_file, "x") + &field(r#"name="other""#, "x"), 400),
    ];
    let bearer = server.bearer();
    let headers = [
        bearer.as_str(),
        "content-type: multipart/form-data; boundary=b",
    ];
    for (form, expected) in forms {
        let request = format!("POST {MESSAGES}");
        let reply = server.ask(&request, &headers, &(form + "--b--\r\n")).await;
        assert_eq!((reply.status, count()), (expected, 0), "{}", reply.body);
    }
    let once = ["idempotency-key: once"];
    for _ in 0..2 {
        let body = json!({"text": "hi", "parts": [file]});
        assert_eq!(server.post(MESSAGES, &once, &body).await.status, 200);
        assert_eq!(count(), 2, "the file and its record");
    }
}

#[tokio::test]
async fn a_client_that_tries_again_with_a_revoked_token_locks_no_one_out() {
    let server = TestServer::start().await;
    let ann = format!("authorization: Bearer {}", server.ann);
    assert_eq!(server.ask(CHATS, &[&ann], "").await.status, 200);
    let tokens = server.parts.tokens.list();
    let id = tokens.iter().find(|token| token.user == "ann").unwrap();
    server.parts.tokens.revoke(&id.id).await.unwrap();
    for _ in 0..10 {
        assert_eq!(server.ask(CHATS, &[&ann], "").await.status, 401);
    }
    assert_eq!(server.get("/v1/chats").await.status, 200);
}
