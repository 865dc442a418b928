//! Hooks that are web services, and every way in which they fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use futures_util::future::join_all;
use serde_json::{Value, json};
use tenterhook_engine::event::{
    BeforeCompaction, PreToolUse, SessionStart, Stop, ToolResponseTransform, UserPromptSubmit,
};
use tenterhook_engine::journal::JournalRecord;
use tenterhook_engine::{
    Decision, Dialect, Engine, EventKind, HookSpec, MemoryJournal, OnError, StopKind,
};
use tenterhook_process::{Capture, Command, End, HeldPipe, Limits, Program};
use tenterhook_runners::CommandHandler;
use tenterhook_runners::http::{Headers, HttpHandler, Target};
use tenterhook_systems::docker_agent::DockerAgent;
use tenterhook_systems::native::Native;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::server::{Script, Seen, Server, greet, serve, serve_tls};
use crate::{engine, on_error, origin, shell_call, spec};

fn handler(url: &str, dialect: Arc<dyn Dialect>) -> HttpHandler {
    let target = Target::parse(url, true).unwrap();
    let mut headers = Headers::default();
    headers
        .add("Authorization", b"Bearer canary-token")
        .unwrap();
    HttpHandler::new(target, headers, dialect).unwrap()
}

/// A native hook that posts to `url`.
fn hook(kind: EventKind, url: &str) -> HookSpec {
    spec(kind, "guard", Arc::new(handler(url, Native::new())))
}

fn gate(url: &str) -> HookSpec {
    hook(EventKind::PreToolUse, url)
}

const DENY: &str = r#"{"decision":"deny","reason":"not here"}"#;

#[tokio::test]
async fn a_service_is_sent_what_a_command_reads() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("event");
    let line = format!("cat > '{}'", file.display());
    for dialect in [Native::new(), DockerAgent::agent_file()] {
        let mut server = serve(Script::json("{}")).await;
        let command = CommandHandler::new(
            Command::new(Program::shell(&line)),
            "cat",
            Arc::clone(&dialect),
        );
        let engine = engine([
            spec(
                EventKind::PreToolUse,
                "http",
                Arc::new(handler(&server.url(), dialect)),
            ),
            spec(EventKind::PreToolUse, "command", Arc::new(command)),
        ]);
        let mut origin = origin();
        origin.cwd = dir.path().to_owned();
        let outcome = engine
            .dispatcher(origin)
            .dispatch(shell_call("ls \"a\"\n"))
            .await;
        assert_eq!(outcome.decision().reason(), None);
        let (head, body) = server.request().await;
        assert_eq!(body, std::fs::read(&file).unwrap());
        let head = head.to_ascii_lowercase();
        for line in [
            "post /hook http/1.1\r\n".to_owned(),
            "content-type: application/json\r\n".to_owned(),
            "authorization: bearer canary-token\r\n".to_owned(),
            format!("user-agent: tenterhook/{}\r\n", env!("CARGO_PKG_VERSION")),
        ] {
            assert!(head.contains(&line), "{line} is not in {head}");
        }
    }
}

#[tokio::test]
async fn a_service_has_the_powers_of_a_command_on_every_class_of_event() {
    let answering = async |kind, body: &str| {
        let server = serve(Script::json(body)).await;
        (
            engine([hook(kind, &server.url())]).dispatcher(origin()),
            server,
        )
    };
    let (hooks, _server) = answering(EventKind::PreToolUse, DENY).await;
    assert_eq!(
        hooks.dispatch(shell_call("ls")).await.decision().reason(),
        Some("not here")
    );

    let rewrite = r#"{"updated_input":{"cmd":"ls -h"}}"#;
    let (hooks, _server) = answering(EventKind::PreToolUse, rewrite).await;
    let outcome = hooks.dispatch(shell_call("ls")).await;
    let input = outcome.into_rewritten().unwrap().tool_input;
    assert_eq!(json!(input), json!({ "cmd": "ls -h" }));

    let context = r#"{"additional_context":"be brief"}"#;
    let (hooks, _server) = answering(EventKind::SessionStart, context).await;
    let outcome = hooks.dispatch(SessionStart::default()).await;
    assert_eq!(outcome.context(), ["be brief"]);

    let block = r#"{"decision":"block","reason":"no"}"#;
    let (hooks, _server) = answering(EventKind::UserPromptSubmit, block).await;
    assert_eq!(
        hooks
            .dispatch(UserPromptSubmit::default())
            .await
            .decision()
            .reason(),
        Some("no")
    );

    let (hooks, _server) = answering(
        EventKind::ToolResponseTransform,
        r#"{"updated_tool_response":"x"}"#,
    )
    .await;
    let event = ToolResponseTransform::default().with_tool_response("secret");
    let outcome = hooks.dispatch(event).await;
    assert_eq!(outcome.into_rewritten().unwrap().tool_response, "x");

    let (hooks, _server) = answering(EventKind::BeforeCompaction, r#"{"summary":"short"}"#).await;
    let outcome = hooks.dispatch(BeforeCompaction::default()).await;
    assert_eq!(outcome.failures(), []);

    let (hooks, _server) =
        answering(EventKind::Stop, r#"{"decision":"block","reason":"go on"}"#).await;
    let outcome = hooks.dispatch(Stop::default()).await;
    assert_eq!(outcome.follow_up(), ["go on"]);
}

#[tokio::test]
async fn plain_text_is_context_where_a_commands_would_be() {
    let server = serve(Script::answer("200 OK", "text/plain", "be brief\n")).await;
    let hooks = engine([hook(EventKind::SessionStart, &server.url())]).dispatcher(origin());
    let outcome = hooks.dispatch(SessionStart::default()).await;
    assert_eq!(outcome.context(), ["be brief"]);
}

#[tokio::test]
async fn answers_that_say_nothing_let_the_call_through() {
    let no_content = b"HTTP/1.1 204 No Content\r\n\r\n".to_vec();
    for script in [
        Script::Send(no_content),
        Script::json(""),
        Script::json(" \r\n"),
        Script::json("{}"),
        Script::json(r#"{"decision":"allow"}"#),
        Script::answer("200 OK", "text/plain; charset=utf-8", ""),
        Script::Send(b"HTTP/1.1 200 OK\r\n\r\n{}".to_vec()),
        Script::Send(
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec(),
        ),
    ] {
        let server = serve(script.clone()).await;
        let hooks = engine([gate(&server.url())]).dispatcher(origin());
        let outcome = hooks.dispatch(shell_call("ls")).await;
        assert_eq!(outcome.decision().reason(), None, "{script:?}");
        assert_eq!(outcome.failures(), [], "{script:?}");
    }
}

#[tokio::test]
async fn strict_output_refuses_what_a_lenient_reader_passes_over() {
    let server = serve(Script::json(r#"{"decision":"allow","colour":"red"}"#)).await;
    let strict = handler(&server.url(), Native::new()).strict_output(true);
    let hooks =
        engine([spec(EventKind::PreToolUse, "guard", Arc::new(strict))]).dispatcher(origin());
    let outcome = hooks.dispatch(shell_call("ls")).await;
    assert!(
        outcome
            .decision()
            .reason()
            .unwrap()
            .contains("unknown key `colour`")
    );
}

/// A server that gives no usable answer, and what the failure says.
#[expect(clippy::too_many_lines, reason = "the table is the test")]
fn faults() -> Vec<(&'static str, Script, &'static str)> {
    let raw = |bytes: &str| Script::Send(bytes.as_bytes().to_vec());
    let ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    vec![
        (
            "closes at once",
            raw(""),
            "no answer from `127.0.0.1`: connection closed before message completed",
        ),
        (
            "speaks no HTTP",
            raw("220 ready\r\n\r\n"),
            "no answer from `127.0.0.1`: invalid HTTP version parsed",
        ),
        (
            "has endless headers",
            raw(&format!(
                "HTTP/1.1 200 OK\r\nX-Long: {}\r\n\r\n",
                "x".repeat(8 << 20)
            )),
            "no answer from `127.0.0.1`: ",
        ),
        (
            "never answers",
            Script::Hold(Vec::new()),
            "timed out after 0.4s",
        ),
        (
            "stops in its headers",
            Script::Hold(b"HTTP/1.1 200 OK\r\nContent-".to_vec()),
            "timed out after 0.4s",
        ),
        (
            "drips its headers",
            Script::Drip(b"HTTP/1.1 200 OK\r\nX-Slow: a".to_vec()),
            "timed out after 0.4s",
        ),
        (
            "drips its body",
            Script::Drip(format!("{ok}\r\n{{").into_bytes()),
            "timed out after 0.4s",
        ),
        (
            "stops in its body",
            Script::Hold(format!("{ok}Content-Length: 90\r\n\r\n{{").into_bytes()),
            "timed out after 0.4s",
        ),
        (
            "breaks off",
            raw(&format!("{ok}Content-Length: 90\r\n\r\n{DENY}")),
            "the answer ended early: ",
        ),
        (
            "breaks off in a chunk",
            raw(&format!("{ok}Transfer-Encoding: chunked\r\n\r\n20\r\n{{")),
            "the answer ended early: ",
        ),
        (
            "says that it will be too long",
            Script::json("x".repeat((1 << 20) + 1)),
            "the answer is too long: more than 1048576 bytes",
        ),
        (
            "never ends",
            Script::Flood(vec![b'x'; 1 << 16]),
            "the answer is too long: more than 1048576 bytes",
        ),
        (
            "fails",
            Script::answer(
                "500 Internal Server Error",
                "text/plain",
                "out of\r\n  beans",
            ),
            "`127.0.0.1` answered 500 Internal Server Error: out of beans",
        ),
        (
            "fails without a word",
            raw("HTTP/1.1 503 Service Unavailable\r\n\r\n"),
            "`127.0.0.1` answered 503 Service Unavailable",
        ),
        (
            "fails and drips",
            Script::Drip(b"HTTP/1.1 500 Oh\r\n\r\nwait".to_vec()),
            "answered 500 Internal Server Error: wait",
        ),
        (
            "shows the key",
            Script::answer("401 Unauthorized", "text/plain", "bad: Bearer canary-token"),
            "answered 401 Unauthorized: bad: ***",
        ),
        (
            "is not there",
            Script::answer("404 Not Found", "text/html", "<h1>"),
            "answered 404 Not Found: <h1>",
        ),
        (
            "denies with a wrong status",
            Script::answer("403 Forbidden", "application/json", DENY),
            "answered 403 Forbidden",
        ),
        (
            "only took note",
            Script::answer("202 Accepted", "application/json", "{}"),
            "answered 202 Accepted",
        ),
        (
            "redirects",
            raw(
                "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://other.test/?key=canary\r\nContent-Length: 0\r\n\r\n",
            ),
            "`127.0.0.1` answered 307 Temporary Redirect and redirects to `other.test`; redirects are not followed",
        ),
        (
            "redirects nowhere",
            raw("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
            "redirects to an unnamed address",
        ),
        (
            "shows a page",
            Script::answer("200 OK", "text/html", "<html>"),
            "the answer is `text/html`, expected `application/json` or `text/plain` in UTF-8",
        ),
        (
            "writes Latin-1",
            Script::answer("200 OK", "application/json; charset=iso-8859-1", DENY),
            "charset=iso-8859-1`, expected",
        ),
        (
            "is not UTF-8",
            Script::json(b"{\"reason\":\"\xff\"}"),
            "the answer is not UTF-8",
        ),
        (
            "compresses",
            raw(&format!(
                "{ok}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{{}}"
            )),
            "the answer is encoded as `gzip`, which was not requested",
        ),
        (
            "sends a list",
            Script::json("[]"),
            "the answer is `application/json`, but not a JSON object",
        ),
        (
            "sends half an object",
            Script::json("{\"decision\":"),
            "invalid hook output: EOF while parsing",
        ),
        (
            "misspells",
            Script::json("{\"decision\":\"dney\"}"),
            "`decision` is `dney`",
        ),
        (
            "chats",
            Script::answer("200 OK", "text/plain", "ok"),
            "the answer is plain text, but a gate expects one JSON object or no output",
        ),
    ]
}

/// Returns the hooks of a gate, one for each server.
async fn broken_gates() -> Vec<(&'static str, HookSpec, &'static str, Option<Server>)> {
    let mut gates = Vec::new();
    for (case, script, cause) in faults() {
        let server = serve(script).await;
        let mut gate = gate(&server.url());
        if cause.starts_with("timed out") {
            gate.timeout = Duration::from_millis(400);
        }
        gates.push((case, gate, cause, Some(server)));
    }
    let closed = serve(Script::json("{}")).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("http://127.0.0.1:{port}/");
    gates.push(("listens no more", gate(&url), "Connection refused", None));
    let mut stalled = gate(&format!("https://127.0.0.1:{}/", closed.port));
    stalled.timeout = Duration::from_millis(400);
    let cause = "timed out after 0.4s";
    gates.push(("stalls before TLS", stalled, cause, Some(closed)));
    let url = format!("https://127.0.0.1:{}/", greet(b"220 ready\r\n").await);
    let cause = "no answer from `127.0.0.1`: received corrupt message";
    gates.push(("speaks no TLS", gate(&url), cause, None));
    let (server, _) = serve_tls(Script::json("{}")).await;
    let url = format!("https://localhost:{}/", server.port);
    let cause = "no answer from `localhost`: invalid peer certificate: ";
    gates.push(("nobody vouches for", gate(&url), cause, Some(server)));
    gates
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_service_that_gives_no_usable_answer_denies_and_says_which_hook_and_why() {
    join_all(
        broken_gates()
            .await
            .into_iter()
            .map(async |(case, gate, cause, server)| {
                let outcome = engine([gate])
                    .dispatcher(origin())
                    .dispatch(shell_call("ls"))
                    .await;
                let Decision::Stop { reason, kind, .. } = outcome.decision() else {
                    panic!("a service that {case} let the call through");
                };
                assert_eq!(kind, StopKind::Failed, "{case}");
                assert!(
                    reason.starts_with("pre_tool_use hook failed to execute: hook \"guard\": "),
                    "{case}: {reason}"
                );
                assert!(reason.contains(cause), "{case}: {reason}");
                assert!(!reason.contains("canary"), "{case}: {reason}");
                if let Some(mut server) = server {
                    assert!(
                        server.requests() <= 1,
                        "the request to one that {case} was repeated"
                    );
                }
            }),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_service_lets_the_call_through_only_where_its_author_said_so() {
    join_all(
        broken_gates()
            .await
            .into_iter()
            .map(async |(case, gate, cause, _server)| {
                let journal = Arc::new(MemoryJournal::new());
                let engine = Engine::builder().journal(journal.clone()).build();
                engine.register(on_error(gate, OnError::Ignore));
                let outcome = engine.dispatcher(origin()).dispatch(shell_call("ls")).await;
                assert_eq!(outcome.decision().reason(), None, "{case}");
                let [failure] = outcome.failures() else {
                    panic!("{case}: {:?}", outcome.failures())
                };
                assert!(
                    failure.let_through && failure.cause.contains(cause),
                    "{case}: {failure:?}"
                );
                let records = journal.take();
                let run = records.iter().find_map(|record| match record {
                    JournalRecord::Run(run) => Some(run),
                    JournalRecord::Dispatch(_) | _ => None,
                });
                let run = serde_json::to_string(run.unwrap()).unwrap();
                assert!(run.contains(r#""handler":"http""#), "{case}: {run}");
                assert!(!run.contains("canary"), "{case}: {run}");
            }),
    )
    .await;
}

/// Sends a call to a gate whose service never answers. Returns the reason of its denial, or `None` if the gate's time was
/// over before the service had the request.
async fn reason_of_silent_gate(timeout: Duration, is_cancelled: bool) -> Option<String> {
    let mut server = serve(Script::Hold(Vec::new())).await;
    let mut gate = gate(&server.url());
    gate.timeout = timeout;
    let cancel = CancellationToken::new();
    let hooks = engine([gate])
        .dispatcher(origin())
        .with_cancel(cancel.clone());
    let mut dispatch = tokio::spawn(async move {
        let outcome = hooks.dispatch(shell_call("ls")).await;
        outcome.decision().reason().map(str::to_owned)
    });
    tokio::select! {
        _ = server.request() => {}
        _ = &mut dispatch => return None,
    }
    if is_cancelled {
        cancel.cancel();
    }
    assert_eq!(server.seen.recv().await, Some(Seen::Closed));
    dispatch.await.unwrap()
}

#[tokio::test]
async fn a_cancelled_gate_closes_the_connection() {
    let reason = reason_of_silent_gate(Duration::from_mins(10), true).await;
    assert!(
        reason.as_ref().unwrap().ends_with("cancelled"),
        "{reason:?}"
    );
}

#[tokio::test]
async fn a_gate_whose_time_is_over_closes_the_connection() {
    // A busy machine may need more than a second to send the request.
    for seconds in [1, 10, 100] {
        let timeout = Duration::from_secs(seconds);
        if let Some(reason) = reason_of_silent_gate(timeout, false).await {
            let expected = format!("timed out after {seconds}s");
            assert!(reason.ends_with(&expected), "{reason}");
            return;
        }
    }
    panic!("the service never had a request");
}

#[tokio::test]
async fn a_dropped_dispatch_closes_the_connection() {
    let mut server = serve(Script::Hold(b"HTTP/1.1 200 OK\r\n\r\n{".to_vec())).await;
    let hooks = engine([gate(&server.url())]).dispatcher(origin());
    let dispatch = tokio::spawn(async move { drop(hooks.dispatch(shell_call("ls")).await) });
    server.request().await;
    dispatch.abort();
    assert_eq!(server.seen.recv().await, Some(Seen::Closed));
}

#[tokio::test]
async fn a_kept_connection_is_used_again_and_a_request_that_it_lost_is_not_repeated() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec();
    let mut server = serve(Script::Twice(answer)).await;
    let hooks = engine([gate(&server.url())]).dispatcher(origin());
    let first = hooks.dispatch(shell_call("ls")).await;
    assert_eq!(first.failures(), []);
    let second = hooks.dispatch(shell_call("rm")).await;
    let decision = second.decision();
    let reason = decision.reason().unwrap();
    assert!(
        reason.ends_with("connection closed before message completed"),
        "{reason}"
    );
    assert!(server.request().await.1 != server.request().await.1);
    assert_eq!(server.seen.recv().await, Some(Seen::Closed));
    assert_eq!(server.requests(), 0);
}

/// Set for the process that trusts the certificate: where it finds the service.
const TRUSTED_URL: &str = "TENTERHOOK_INTERNAL__TRUSTED_URL";

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_certificate_that_the_machine_trusts_is_accepted() {
    if let Ok(url) = std::env::var(TRUSTED_URL) {
        let hooks = engine([gate(&url)]).dispatcher(origin());
        let outcome = hooks.dispatch(shell_call("ls")).await;
        assert_eq!(outcome.decision().reason(), Some("not here"));
        // The provider of the process is the host's to choose.
        assert!(rustls::crypto::CryptoProvider::get_default().is_none());
        return;
    }
    let (mut server, certificate) = serve_tls(Script::json(DENY)).await;
    let dir = tempfile::tempdir().unwrap();
    let roots = dir.path().join("roots.pem");
    std::fs::write(&roots, certificate).unwrap();
    // What a machine trusts is read once in a process, so the test is one of its own.
    let program = std::env::current_exe().unwrap();
    let argv = [
        program.as_os_str(),
        "--exact".as_ref(),
        "http::a_certificate_that_the_machine_trusts_is_accepted".as_ref(),
    ];
    let url = format!("https://localhost:{}/", server.port);
    let command = Command::new(Program::Exec {
        argv: argv.map(Into::into).to_vec(),
    })
    .env("SSL_CERT_FILE", roots.as_os_str())
    // Nothing listens there, and no request is made.
    .env("HTTPS_PROXY", "http://127.0.0.1:9")
    .env("ALL_PROXY", "http://127.0.0.1:9")
    .env(TRUSTED_URL, url.as_str());
    let limits = Limits {
        timeout: Duration::from_mins(1),
        grace: Duration::from_secs(1),
        stdout: Capture {
            head: 0,
            tail: 4096,
        },
        stderr: Capture {
            head: 0,
            tail: 4096,
        },
        held_pipe: HeldPipe::Wait,
    };
    let finished = command
        .run(&[], &limits, &CancellationToken::new())
        .await
        .unwrap();
    assert!(
        matches!(finished.end, End::Exited(0)),
        "{}",
        finished.stdout.text()
    );
    assert_eq!(server.requests(), 1);
}

/// Says how many requests are being answered, and how many there were at most.
#[derive(Default)]
struct Load {
    now: AtomicUsize,
    most: AtomicUsize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_events_at_once_are_so_many_requests_and_no_more() {
    let load = Arc::new(Load::default());
    let (full, is_full) = watch::channel(false);
    let full = Arc::new(full);
    let answer = {
        let load = Arc::clone(&load);
        move || {
            let (load, full, mut is_full) = (Arc::clone(&load), Arc::clone(&full), is_full.clone());
            async move {
                let now = load.now.fetch_add(1, Ordering::SeqCst) + 1;
                load.most.fetch_max(now, Ordering::SeqCst);
                if now == 64 {
                    full.send_replace(true);
                }
                is_full.wait_for(|full| *full).await.unwrap();
                load.now.fetch_sub(1, Ordering::SeqCst);
                axum::Json(json!({ "decision": "deny", "reason": "counted" }))
            }
        }
    };
    let app = Router::new().route("/", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let hooks = engine([gate(&url)]).dispatcher(origin());
    let outcomes = join_all((0..200).map(|_| hooks.dispatch(shell_call("ls")))).await;
    for outcome in outcomes {
        assert_eq!(
            outcome.decision().reason(),
            Some("counted"),
            "{:?}",
            outcome.failures()
        );
    }
    assert_eq!(load.most.load(Ordering::SeqCst), 64);
}

#[tokio::test]
async fn a_megabyte_goes_out_and_comes_back() {
    let text = "x".repeat((1 << 20) - 100);
    let body = json!({ "updated_input": { "cmd": text } }).to_string();
    let mut server = serve(Script::json(body)).await;
    let hooks = engine([gate(&server.url())]).dispatcher(origin());
    let began = Instant::now();
    let outcome = hooks.dispatch(shell_call(&"y".repeat(4 << 20))).await;
    assert_eq!(outcome.decision().reason(), None);
    let event: PreToolUse = outcome.into_rewritten().unwrap();
    assert_eq!(event.tool_input.get("cmd"), Some(&Value::from(text)));
    assert!(server.request().await.1.len() > 4 << 20);
    assert!(began.elapsed() < Duration::from_mins(1));
}
