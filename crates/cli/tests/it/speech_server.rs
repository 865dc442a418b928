//! A server that speaks the interface of OpenAI for speech, with the programs of a distribution as its engines.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// The variable in which the gateway finds the key of the service.
pub(crate) const KEY_VARIABLE: (&str, &str) = ("SPEECH_KEY", "canary-key-1");

pub(crate) struct SpeechServer {
    /// Runs the server until the test ends.
    _runtime: Runtime,
    shared: Arc<Shared>,
    /// The base URL.
    pub(crate) url: String,
}

struct Shared {
    /// The grammar of what can be understood.
    grammar: &'static str,
    /// The names of uploaded files, and the texts that were spoken.
    log: Mutex<Vec<String>>,
}

impl SpeechServer {
    pub(crate) fn start(grammar: &'static str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let shared = Arc::new(Shared {
            grammar,
            log: Mutex::default(),
        });
        let app = Router::new()
            .route("/v1/audio/transcriptions", post(transcribe))
            .route("/v1/audio/speech", post(speak))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&shared));
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        runtime.spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            _runtime: runtime,
            shared,
            url,
        }
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.shared.log.lock().unwrap().clone()
    }
}

fn has_key(headers: &HeaderMap) -> bool {
    let expected = format!("Bearer {}", KEY_VARIABLE.1);
    headers
        .get(header::AUTHORIZATION)
        .is_some_and(|key| *key == *expected)
}

async fn transcribe(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    if !has_key(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let Some((name, file)) = uploaded(&headers, &body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let file = file.to_vec();
    shared.log.lock().unwrap().push(name.clone());
    let text = tokio::task::spawn_blocking(move || understood(&name, &file, shared.grammar));
    Json(json!({ "text": text.await.unwrap() })).into_response()
}

async fn speak(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    Json(request): Json<Value>,
) -> Response {
    if !has_key(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let text = request["input"].as_str().unwrap().to_owned();
    let format = request["response_format"].as_str().unwrap().to_owned();
    shared.log.lock().unwrap().push(text.clone());
    let audio = tokio::task::spawn_blocking(move || spoken(&text, &format));
    audio.await.unwrap().into_response()
}

/// Returns the name and the content of the part `file` of a form.
fn uploaded<'a>(headers: &HeaderMap, body: &'a [u8]) -> Option<(String, &'a [u8])> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let boundary = kind.strip_prefix("multipart/form-data; boundary=")?;
    let find = |text: &str, from: usize| {
        let mut windows = body.get(from..)?.windows(text.len());
        Some(from + windows.position(|window| window == text.as_bytes())?)
    };
    let part = find("name=\"file\"", 0)?;
    let start = find("\r\n\r\n", part)? + 4;
    let end = find(&format!("\r\n--{boundary}"), start)?;
    let head = String::from_utf8_lossy(&body[part..start]).into_owned();
    let name = head.split("filename=\"").nth(1)?.split('"').next()?;
    Some((name.to_owned(), &body[start..end]))
}

/// Returns what `pocketsphinx` understands.
fn understood(name: &str, file: &[u8], grammar: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join(name), file).unwrap();
    fs::write(folder.join("home.jsgf"), grammar).unwrap();
    let convert = [
        "ffmpeg",
        "-loglevel",
        "error",
        "-i",
        name,
        "-ac",
        "1",
        "-ar",
        "16000",
        "in.wav",
    ];
    run(folder, &convert);
    let listen = [
        "pocketsphinx_continuous",
        "-infile",
        "in.wav",
        "-jsgf",
        "home.jsgf",
        "-logfn",
        "/dev/null",
    ];
    String::from_utf8(run(folder, &listen)).unwrap()
}

/// Returns what `espeak-ng` says, in the format that was asked for.
fn spoken(text: &str, format: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run(
        folder,
        &["espeak-ng", "-v", "en-us", "-w", "out.wav", "--", text],
    );
    if format == "wav" {
        return fs::read(folder.join("out.wav")).unwrap();
    }
    let container = if format == "opus" { "ogg" } else { format };
    let converted = format!("converted.{container}");
    run(
        folder,
        &["ffmpeg", "-loglevel", "error", "-i", "out.wav", &converted],
    );
    fs::read(folder.join(converted)).unwrap()
}

/// Runs a program that must succeed. Returns its output.
pub(crate) fn run(folder: &Path, argv: &[&str]) -> Vec<u8> {
    let ran = Command::new(argv[0])
        .args(&argv[1..])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        ran.status.success(),
        "{argv:?}: {}",
        String::from_utf8_lossy(&ran.stderr)
    );
    ran.stdout
}
