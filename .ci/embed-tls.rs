//! A program that uses `rustls` with the provider aws-lc-rs, and adds HTTP hooks of Tenterhook. `.ci/embed` builds it.
//!
//! With the argument `installs`, it installs the provider itself, as a program must that has two in its build. Without, a
//! library lets `rustls` choose by the features of the build, which panics if there are two.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use tenterhook::event::PreToolUse;
use tenterhook::files::{LoadOptions, load_text};
use tenterhook::{Engine, Layer, Origin, Scope};

/// Answers one request with a denial.
fn serve(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    while !request.windows(4).any(|part| part == b"\r\n\r\n") {
        let count = stream.read(&mut bytes).unwrap();
        request.extend_from_slice(&bytes[..count]);
    }
    let body = r#"{"decision": "deny", "reason": "not on a Friday"}"#;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{body}", body.len()).unwrap();
}

fn hook_file(port: u16) -> String {
    format!("hooks: [{{name: web, event: pre_tool_use, http: 'http://127.0.0.1:{port}/', allow_private: true}}]")
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = hook_file(listener.local_addr().unwrap().port());
    let load = || load_text(Path::new("hooks.yaml"), &text, Layer::Explicit, &LoadOptions::of_process());

    // A hook that could not ask is not loaded, and the error says what is missing.
    assert!(CryptoProvider::get_default().is_none());
    let error = load().unwrap_err().render(false);
    assert!(error.contains("no TLS provider"), "{error}");
    assert!(CryptoProvider::get_default().is_none(), "loading installed a provider");

    if std::env::args().any(|word| word == "installs") {
        aws_lc_rs::default_provider().install_default().unwrap();
    }
    // What another library does.
    let config = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let own = format!("{:?}", aws_lc_rs::default_provider().secure_random);
    assert_eq!(format!("{:?}", config.crypto_provider().secure_random), own);

    let engine = Engine::new();
    engine.scope(Scope::Global).replace(load().unwrap().into_specs());
    let server = std::thread::spawn(move || serve(&listener));
    let hooks = engine.dispatcher(Origin::default());
    let decision = hooks.dispatch(PreToolUse::new("shell")).await.decision();
    server.join().unwrap();
    let installed = CryptoProvider::get_default().unwrap();
    assert_eq!(format!("{:?}", installed.secure_random), own);
    println!("the provider is still {own}, and the hook answered: {decision:?}");
}
