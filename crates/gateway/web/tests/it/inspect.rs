//! The inspector: who may see it, and how records reach the page.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use tenterhook_inspect::{InspectedSource, Inspector, LogLimits, RecordLog};
use tenterhook_web::server::InspectorServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::http_server::{Reply, TestServer, events_of, read_reply};

/// How long an answer may take.
const SOON: Duration = Duration::from_secs(10);

fn records(numbers: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Bytes> {
    let lines = numbers.into_iter().map(|number| json!({ "n": number }));
    lines.map(|line| Bytes::from(line.to_string()))
}

fn log_of(server: &TestServer) -> &Arc<RecordLog> {
    server.parts.inspector.as_ref().unwrap().log()
}

fn numbers(reply: &Reply) -> Vec<u64> {
    let lines = reply.body.lines();
    let lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.map(|line| line["n"].as_u64().unwrap()).collect()
}

// I6
#[tokio::test]
async fn records_need_the_scope_inspect_and_the_files_of_the_page_need_nothing() {
    let server = TestServer::start().await;
    let ann = format!("authorization: Bearer {}", server.ann);
    let paths = [
        "source",
        "records",
        "events",
        "hooks",
        "export.html",
        "export.jsonl",
        "dispatches/x",
    ];
    for path in paths {
        let request = format!("GET /v1/inspect/{path}");
        assert_eq!(
            server.ask(&request, &[&ann], "").await.status,
            403,
            "{path}"
        );
        assert_eq!(server.ask(&request, &[], "").await.status, 401, "{path}");
    }
    let page = server.ask("GET /inspect/", &[], "").await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
    let etag = format!("if-none-match: {}", page.header("etag").unwrap());
    let again = server.ask("GET /inspect/", &[&etag], "").await;
    assert_eq!(again.status, 304);
    let moved = server.ask("GET /inspect?event=pre_tool_use", &[], "").await;
    assert_eq!(
        moved.header("location"),
        Some("/inspect/?event=pre_tool_use")
    );
    assert_eq!(
        server.ask("GET /inspect/nope.js", &[], "").await.status,
        404
    );
}

#[tokio::test]
async fn pages_of_other_sites_cannot_use_the_inspector() {
    let server = TestServer::start().await;
    let (bearer, host) = (server.bearer(), format!("host: {}", server.address));
    for path in ["/inspect/", "/v1/inspect/records"] {
        let request = format!("GET {path}");
        let rebound = [bearer.as_str(), "host: evil.example"];
        assert_eq!(server.ask_raw(&request, &rebound, b"").await.status, 421);
        let foreign = [bearer.as_str(), &host, "origin: https://evil.example"];
        assert_eq!(server.ask_raw(&request, &foreign, b"").await.status, 403);
    }
}

#[tokio::test]
async fn records_are_read_from_a_position_on() {
    let server = TestServer::start().await;
    log_of(&server).append(records(1..=6));
    let reply = server.get("/v1/inspect/records").await;
    assert_eq!(reply.header("content-type"), Some("application/x-ndjson"));
    let head = |reply: &Reply, name: &str| reply.header(name).unwrap().to_owned();
    assert_eq!(numbers(&reply), [3, 4, 5, 6]);
    assert_eq!(head(&reply, "tenterhook-position"), "6");
    assert_eq!(head(&reply, "tenterhook-first"), "3");
    assert_eq!(head(&reply, "tenterhook-skipped"), "0");
    let reply = server.get("/v1/inspect/records?after=4&limit=1").await;
    assert_eq!(numbers(&reply), [5]);
    assert_eq!(head(&reply, "tenterhook-position"), "5");
    let reply = server.get("/v1/inspect/records?after=x").await;
    assert_eq!(reply.status, 400);
    let source = server.get("/v1/inspect/source").await.json();
    assert_eq!(source["kind"], "gateway");
    assert_eq!(source["live"], true);
    assert_eq!(source["kept"]["records"], 4);
}

#[tokio::test]
async fn an_export_is_a_download() {
    let server = TestServer::start().await;
    log_of(&server).append(records(1..=2));
    let journal = server.get("/v1/inspect/export.jsonl").await;
    assert_eq!(numbers(&journal), [1, 2]);
    let page = server.get("/v1/inspect/export.html").await;
    for reply in [&journal, &page] {
        let disposition = reply.header("content-disposition").unwrap();
        assert!(disposition.starts_with("attachment"), "{disposition}");
    }
    assert!(page.body.contains("{\"n\":1}\n{\"n\":2}\n</script>"));
}

/// Opens the stream of events. Reads until `end` is there, and returns the events.
async fn follow(server: &TestServer, query: &str, header: &str) -> TcpStream {
    let (bearer, host) = (server.bearer(), format!("host: {}", server.address));
    let headers = [host.as_str(), &bearer, header];
    let request = format!("GET /v1/inspect/events{query}");
    server.open(&request, &headers).await
}

async fn read_until(stream: &mut TcpStream, end: &str) -> Vec<(Option<u64>, Value)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    while !String::from_utf8_lossy(&bytes).contains(end) {
        let count = tokio::time::timeout(SOON, stream.read(&mut buffer)).await;
        let count = count.expect(end).unwrap();
        assert!(count > 0, "{}", String::from_utf8_lossy(&bytes));
        bytes.extend_from_slice(&buffer[..count]);
    }
    let text = String::from_utf8(bytes).unwrap();
    let is_event = |line: &&str| {
        let fields = ["data: ", "id: ", "event: "];
        line.is_empty() || fields.iter().any(|field| line.starts_with(field))
    };
    events_of(&text.lines().filter(is_event).collect::<Vec<_>>().join("\n"))
}

// I1
#[tokio::test]
async fn a_record_reaches_an_open_page() {
    let server = TestServer::start().await;
    log_of(&server).append(records([1]));
    let mut stream = follow(&server, "", "accept: text/event-stream").await;
    assert_eq!(
        read_until(&mut stream, "\"n\":1}").await,
        [(Some(1), json!({"n": 1}))]
    );
    log_of(&server).append(records([2]));
    assert_eq!(
        read_until(&mut stream, "\"n\":2}").await,
        [(Some(2), json!({"n": 2}))]
    );
}

// I7
#[tokio::test]
async fn a_page_that_connects_again_misses_nothing_and_sees_nothing_twice() {
    let server = TestServer::start().await;
    let log = log_of(&server);
    log.append(records(1..=2));
    let mut stream = follow(&server, "?after=1", "accept: */*").await;
    assert_eq!(read_until(&mut stream, "\"n\":2}").await.len(), 1);
    drop(stream);
    log.append(records(3..=5));
    let mut stream = follow(&server, "?after=1", "last-event-id: 2").await;
    let seen = read_until(&mut stream, "\"n\":5}").await;
    let ids: Vec<Option<u64>> = seen.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [Some(3), Some(4), Some(5)]);
    drop(stream);

    // While the page is away, more records arrive than are kept.
    log.append(records(6..=20));
    let mut stream = follow(&server, "", "last-event-id: 5").await;
    let seen = read_until(&mut stream, "\"n\":20}").await;
    assert_eq!(seen[0].1, json!({"first": 17, "missed": 11}));
    let ids: Vec<Option<u64>> = seen[1..].iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [Some(17), Some(18), Some(19), Some(20)]);

    // A position of a server that ran before is a gap, too.
    let mut stream = follow(&server, "?after=1000", "accept: */*").await;
    let seen = read_until(&mut stream, "\"n\":20}").await;
    assert_eq!(seen[0].1, json!({"first": 17, "missed": null}));
    let wrong = follow(&server, "", "last-event-id: x").await;
    assert_eq!(reply_of(wrong).await.status, 400);
}

#[tokio::test]
async fn an_open_stream_ends_with_its_token_and_with_the_server() {
    let server = TestServer::start().await;
    let mut streams = [
        follow(&server, "", "accept: */*").await,
        follow(&server, "", "accept: */*").await,
    ];
    log_of(&server).append(records([1]));
    for stream in &mut streams {
        read_until(stream, "\"n\":1}").await;
    }
    server.stop.cancel();
    for mut stream in streams {
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(SOON, stream.read_to_end(&mut rest));
        ended.await.unwrap().unwrap();
    }
    let server = TestServer::start().await;
    let mut stream = follow(&server, "", "accept: */*").await;
    log_of(&server).append(records([1]));
    read_until(&mut stream, "\"n\":1}").await;
    server.parts.tokens.revoke("test").await.unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(SOON, stream.read_to_end(&mut rest));
    ended.await.unwrap().unwrap();
}

// The gateway takes 256 connections in all.
#[tokio::test]
async fn one_token_cannot_take_every_connection_with_streams() {
    let server = TestServer::start().await;
    log_of(&server).append(records([1]));
    let mut streams = Vec::new();
    for _ in 0..8 {
        let mut stream = follow(&server, "", "accept: */*").await;
        read_until(&mut stream, "\"n\":1}").await;
        streams.push(stream);
    }
    let refused = reply_of(follow(&server, "", "connection: close").await).await;
    assert_eq!(refused.status, 429, "{}", refused.body);
    assert!(refused.header("retry-after").is_some());
}

async fn reply_of(mut stream: TcpStream) -> Reply {
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    read_reply(&answer)
}

async fn ask(address: SocketAddr, request: &str, headers: &[&str], body: &str) -> Reply {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let length = body.len();
    let mut text =
        format!("{request} HTTP/1.1\r\nconnection: close\r\ncontent-length: {length}\r\n");
    for header in headers {
        text.push_str(header);
        text.push_str("\r\n");
    }
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
        .write_all(format!("\r\n{body}").as_bytes())
        .await
        .unwrap();
    reply_of(stream).await
}

#[tokio::test]
async fn a_private_server_is_open_to_the_browser_with_its_link_only() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = InspectorServer::new(listener, "tenterhook inspect")
        .await
        .unwrap();
    let link = server.link().unwrap();
    let code = link
        .strip_prefix(&format!("http://{address}/inspect/#code="))
        .unwrap()
        .to_owned();
    let log = Arc::new(RecordLog::new(LogLimits::FILES, 1));
    log.append(records([7]));
    let names = vec!["a.jsonl".to_owned()];
    let inspector = Inspector::new(InspectedSource::Files(names), log);
    let stop = CancellationToken::new();
    let task = tokio::spawn(server.serve(Arc::new(inspector), stop.clone()));

    let (host, origin) = (
        format!("host: {address}"),
        format!("origin: http://{address}"),
    );
    let request = "GET /v1/inspect/records";
    assert_eq!(ask(address, request, &[&host], "").await.status, 401);
    assert_eq!(
        ask(address, request, &["host: evil.example"], "")
            .await
            .status,
        421
    );
    let page = [host.as_str(), &origin, "x-tenterhook: 1"];
    let body = json!({ "code": code }).to_string();
    let login = ask(address, "POST /v1/login", &page, &body).await;
    assert_eq!(login.status, 200);
    let again = ask(address, "POST /v1/login", &page, &body).await;
    assert_eq!(again.status, 401);
    assert!(again.body.contains("tenterhook inspect"), "{}", again.body);

    let cookie = login.header("set-cookie").unwrap();
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    let key = format!("x-tenterhook: {}", login.json()["key"].as_str().unwrap());
    let headers = [host.as_str(), &origin, &cookie, &key];
    assert_eq!(numbers(&ask(address, request, &headers, "").await), [7]);
    for missing in ["events", "hooks", "gateway"] {
        let request = format!("GET /v1/inspect/{missing}");
        assert_eq!(
            ask(address, &request, &headers, "").await.status,
            404,
            "{missing}"
        );
    }
    assert_eq!(
        ask(address, "GET /v1/chats", &headers, "").await.status,
        404
    );
    stop.cancel();
    tokio::time::timeout(SOON, task).await.unwrap().unwrap();
}
