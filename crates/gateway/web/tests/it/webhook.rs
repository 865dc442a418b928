//! Webhooks over the server.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::http_server::{Reply, TestServer, WEBHOOK_SECRET, text_of};

/// How long a request that has to wait is waited for.
const SOON: Duration = Duration::from_millis(300);

const BODY: &str = r#"{"action":"opened","title":"it {{ breaks }}"}"#;

fn sign(text: &str) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes()).unwrap();
    let bytes = mac.chain_update(text).finalize().into_bytes();
    let start = "x-hub-signature-256: sha256=".to_owned();
    bytes
        .iter()
        .fold(start, |text, byte| format!("{text}{byte:02x}"))
}

async fn deliver(server: &TestServer, name: &str, headers: &[&str], body: &str) -> Reply {
    server
        .ask(&format!("POST /v1/webhooks/{name}"), headers, body)
        .await
}

// G65
#[tokio::test]
async fn a_webhook_needs_the_right_signature_and_counts_once() {
    let server = TestServer::start().await;
    let (right, id) = (sign(BODY), "x-github-delivery: 1");
    let wrong = sign("other");
    for headers in [
        vec![id],
        vec![id, &wrong],
        vec![id, "x-hub-signature-256: sha256="],
    ] {
        let refused = deliver(&server, "hook", &headers, BODY).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]["code"]),
            (401, &"wrong_signature".into())
        );
    }
    assert!(server.intake.messages.lock().is_empty());

    let taken = deliver(&server, "hook", &[id, &right], BODY).await;
    assert_eq!(
        (taken.status, taken.json()["status"].as_str()),
        (200, Some("recorded"))
    );
    let again = deliver(&server, "hook", &[id, &right], BODY).await;
    assert_eq!(
        (again.status, again.json()["status"].as_str()),
        (200, Some("duplicate"))
    );

    let messages = server.intake.messages.lock();
    assert_eq!(messages.len(), 1);
    assert_eq!(text_of(&messages[0]), "opened: it {{ breaks }}");
    assert_eq!(messages[0].chat.to_string(), "hook:ops");
    assert_eq!(messages[0].sender.id, "webhook");
}

// G65
#[tokio::test]
async fn a_webhook_with_a_time_is_refused_when_it_is_old() {
    let server = TestServer::start().await;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    for (age, expected) in [(-2, 200), (-240, 200), (400, 401)] {
        let time = now.strict_sub_signed(age);
        let signature = sign(&format!("{time}.{BODY}"));
        let (time, id) = (
            format!("x-time: {time}"),
            format!("x-github-delivery: {age}"),
        );
        let reply = deliver(&server, "timed", &[&signature, &time, &id], BODY).await;
        assert_eq!(reply.status, expected, "{age}");
    }
    let unsigned = deliver(&server, "timed", &[&sign(BODY)], BODY).await;
    assert_eq!(unsigned.status, 401);
}

#[tokio::test]
async fn a_delivery_without_an_id_is_known_by_what_it_says() {
    let server = TestServer::start().await;
    let signature = sign(BODY);
    for expected in ["recorded", "duplicate"] {
        let reply = deliver(&server, "hook", &[&signature], BODY).await;
        assert_eq!(reply.json()["status"], expected);
    }
}

#[tokio::test]
async fn requests_that_make_no_message_are_told_so() {
    let server = TestServer::start().await;
    let long = format!("{{\"action\":\"{}\"}}", "x".repeat(300 << 10));
    let rows = [
        ("hook", r#"{"other":1}"#, 200),
        ("hook", "not JSON", 422),
        ("hook", &long, 413),
        ("unknown", BODY, 404),
        ("web", BODY, 404),
    ];
    for (name, body, expected) in rows {
        let reply = deliver(&server, name, &[&sign(body)], body).await;
        assert_eq!(reply.status, expected, "{name} {}", reply.body);
    }
    assert!(server.intake.messages.lock().is_empty());
}

#[tokio::test]
async fn a_captured_request_cannot_be_replayed_under_a_new_id() {
    let server = TestServer::start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let time = now.as_secs() + 2;
    let timed = sign(&format!("{time}.{BODY}"));
    let time = format!("x-time: {time}");
    let untimed = sign(BODY);
    let captured: [(&str, Vec<&str>); 2] =
        [("hook", vec![&untimed]), ("timed", vec![&timed, &time])];
    for (name, headers) in captured {
        for (id, expected) in [("1", "recorded"), ("2", "duplicate"), ("3", "duplicate")] {
            let id = format!("x-github-delivery: {id}");
            let headers: Vec<&str> = headers.iter().copied().chain([id.as_str()]).collect();
            let reply = deliver(&server, name, &headers, BODY).await;
            assert_eq!(reply.json()["status"], expected, "{name} {id}");
        }
    }
    assert_eq!(server.intake.messages.lock().len(), 2);
}

#[tokio::test]
async fn a_request_that_was_captured_before_a_restart_cannot_be_replayed_after_it() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let started = now.as_secs();
    let server = TestServer::start().await;
    // The server has started since, or in the same second.
    for time in [now.as_secs() - 60, started] {
        let (signature, time) = (sign(&format!("{time}.{BODY}")), format!("x-time: {time}"));
        let headers = [signature.as_str(), &time, "x-github-delivery: new"];
        let reply = deliver(&server, "timed", &headers, BODY).await;
        assert_eq!(reply.status, 503, "{}", reply.body);
    }
    assert!(server.intake.messages.lock().is_empty());
}

#[tokio::test]
async fn a_delivery_that_is_repeated_while_the_disk_is_slow_is_not_called_delivered() {
    let server = TestServer::start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let (time, body) = (now.as_secs() + 2, r#"{"action":"slow disk"}"#);
    let timed = sign(&format!("{time}.{body}"));
    let time = format!("x-time: {time}");
    let untimed = sign(body);
    for (name, headers) in [
        ("hook", vec![untimed.as_str()]),
        ("timed", vec![&timed, &time]),
    ] {
        // Its client goes away, and it is still being taken.
        let first = deliver(&server, name, &headers, body);
        assert!(tokio::time::timeout(SOON, first).await.is_err());
        let again = deliver(&server, name, &headers, body);
        if let Ok(again) = tokio::time::timeout(SOON, again).await {
            assert_eq!(again.status, 503, "{name}: {}", again.body);
        }
        let going_on = async {
            loop {
                server.intake.go_on.notify_waiters();
                tokio::task::yield_now().await;
            }
        };
        let taken = async {
            loop {
                let reply = deliver(&server, name, &headers, body).await;
                if reply.status == 200 {
                    return reply.json()["status"].clone();
                }
            }
        };
        let status = tokio::select! {
            status = taken => status,
            () = going_on => unreachable!("it goes on until the delivery is taken"),
        };
        assert_eq!(status, "duplicate", "{name}");
    }
    assert_eq!(server.intake.messages.lock().len(), 2);
}

#[tokio::test]
async fn a_service_may_repeat_a_delivery_that_was_not_recorded() {
    let server = TestServer::start().await;
    let body = r#"{"action":"disk"}"#;
    let signature = sign(body);
    for _ in 0..2 {
        let reply = deliver(&server, "hook", &[&signature], body).await;
        assert_eq!(reply.status, 503, "{}", reply.body);
    }
}

#[tokio::test]
async fn a_ping_makes_no_message_and_stores_nothing() {
    let server = TestServer::start().await;
    let right = sign(BODY);
    for (event, expected) in [("ping", "ignored"), ("issues", "recorded")] {
        let event = format!("x-github-event: {event}");
        let reply = deliver(&server, "hook", &[&right, &event], BODY).await;
        assert_eq!(reply.json()["status"], expected, "{event}");
    }
    let unsigned = deliver(&server, "hook", &["x-github-event: ping"], BODY).await;
    assert_eq!(unsigned.status, 401);
}
