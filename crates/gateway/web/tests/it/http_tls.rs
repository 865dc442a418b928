//! The server with a certificate.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tenterhook_channel::settings::TlsFiles;
use tenterhook_channel::token::AccessScope;
use tenterhook_web::server::TlsIdentity;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::http_server::{Reply, TestServer, read_reply};

/// Writes a certificate for `localhost` and its key, and returns the certificate too.
fn write_files(folder: &Path) -> (TlsFiles, CertificateDer<'static>) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let files = TlsFiles {
        cert: folder.join("cert.pem"),
        key: folder.join("key.pem"),
    };
    fs::write(&files.cert, signed.cert.pem()).unwrap();
    fs::write(&files.key, signed.signing_key.serialize_pem()).unwrap();
    set_mode(&files.key, 0o600);
    (files, signed.cert.der().clone())
}

fn set_mode(file: &Path, mode: u32) {
    fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
}

/// Sends a request over TLS.
async fn ask(server: &TestServer, trusted: CertificateDer<'static>, request: &str) -> Reply {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, stream).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    drop(stream.read_to_end(&mut answer).await);
    read_reply(&answer)
}

#[tokio::test]
async fn a_server_with_a_certificate_speaks_tls_only_and_its_cookie_is_secure() {
    let folder = tempfile::tempdir().unwrap();
    let (files, certificate) = write_files(folder.path());
    let server = TestServer::start_with(Some(TlsIdentity::read(&files).unwrap())).await;
    let port = server.address.port();
    let code = server.parts.logins.code("ann", AccessScope::all_of("ann"));
    let body = format!("{{\"code\":\"{}\"}}", code.unwrap());
    let head = format!(
        "POST /v1/login HTTP/1.1\r\nhost: localhost:{port}\r\norigin: https://localhost:{port}\r\n\
         x-tenterhook: 1\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let reply = ask(&server, certificate, &format!("{head}{body}")).await;
    assert_eq!(reply.status, 200, "{}{}", reply.head, reply.body);
    let cookie = format!("set-cookie: __Host-tenterhook-{port}=");
    assert!(reply.head.contains(&cookie), "{}", reply.head);
    assert!(reply.head.contains("; Secure"), "{}", reply.head);
    // Without TLS, there is no answer.
    let plain = server.ask("GET /healthz", &[], "").await;
    assert_eq!(plain.status, 0, "{}", plain.head);
    assert!(rustls::crypto::CryptoProvider::get_default().is_none());
}

#[test]
fn a_certificate_that_cannot_be_used_is_described() {
    let folder = tempfile::tempdir().unwrap();
    let (files, _) = write_files(folder.path());
    let refused = |files: &TlsFiles| TlsIdentity::read(files).unwrap_err().to_string();
    set_mode(&files.key, 0o640);
    assert!(refused(&files).contains("(its mode is 0640); run `chmod 600` on it"));
    set_mode(&files.key, 0o600);
    let swapped = TlsFiles {
        cert: files.key.clone(),
        key: files.key.clone(),
    };
    assert!(refused(&swapped).contains("has no certificate"));
    let without_key = TlsFiles {
        key: folder.path().join("none.pem"),
        ..files.clone()
    };
    assert!(refused(&without_key).contains("none.pem"));
    let other = tempfile::tempdir().unwrap();
    let (other, _) = write_files(other.path());
    let mixed = TlsFiles {
        key: other.key,
        ..files
    };
    assert!(refused(&mixed).contains("cannot be used with the key"));
}
