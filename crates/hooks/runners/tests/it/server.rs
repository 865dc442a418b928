//! Servers on loopback: correct ones, and ones that violate the protocol in every way.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// What a server does once it has read a request.
#[derive(Debug, Clone)]
pub(crate) enum Script {
    /// Sends these bytes and closes.
    Send(Vec<u8>),
    /// Sends these bytes, then waits for the client to give up.
    Hold(Vec<u8>),
    /// Sends these bytes, then one more at a time, without end.
    Drip(Vec<u8>),
    /// Sends these bytes, reads another request on the same connection, and closes.
    Twice(Vec<u8>),
    /// Sends these bytes again and again, as fast as they are taken.
    Flood(Vec<u8>),
}

impl Script {
    /// An answer with its length.
    pub(crate) fn answer(status: &str, kind: &str, body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        Self::Send([head.as_bytes(), body].concat())
    }

    pub(crate) fn json(body: impl AsRef<[u8]>) -> Self {
        Self::answer("200 OK", "application/json", body)
    }

    async fn play(
        &self,
        stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
        seeing: &mpsc::UnboundedSender<Seen>,
    ) -> std::io::Result<()> {
        match self {
            Self::Send(bytes) => {
                stream.write_all(bytes).await?;
                stream.shutdown().await
            }
            Self::Hold(bytes) => {
                stream.write_all(bytes).await?;
                stream.read(&mut [0]).await.map(drop)
            }
            Self::Drip(bytes) => {
                stream.write_all(bytes).await?;
                loop {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    stream.write_all(b" ").await?;
                    stream.flush().await?;
                }
            }
            Self::Twice(bytes) => {
                stream.write_all(bytes).await?;
                if let Some((head, body)) = read_request(stream).await {
                    drop(seeing.send(Seen::Request(head, body)));
                }
                Ok(())
            }
            Self::Flood(bytes) => {
                let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
                stream.write_all(head).await?;
                loop {
                    stream.write_all(bytes).await?;
                }
            }
        }
    }
}

/// What a server saw.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A request: its head and its body.
    Request(String, Vec<u8>),
    /// The end of a connection on which an answer was on its way.
    Closed,
}

/// A server and what it sees.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) port: u16,
    pub(crate) seen: mpsc::UnboundedReceiver<Seen>,
}

impl Server {
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    /// Returns the next request.
    pub(crate) async fn request(&mut self) -> (String, Vec<u8>) {
        loop {
            if let Seen::Request(head, body) = self.seen.recv().await.unwrap() {
                return (head, body);
            }
        }
    }

    /// Returns how many requests came by now.
    pub(crate) fn requests(&mut self) -> usize {
        let seen = std::iter::from_fn(|| self.seen.try_recv().ok());
        seen.filter(|seen| matches!(seen, Seen::Request(..)))
            .count()
    }
}

/// Starts a server that plays a script on every connection.
pub(crate) async fn serve(script: Script) -> Server {
    serve_with(script, None).await
}

/// Starts a server with a self-signed certificate for `localhost`, and returns the certificate too, as PEM.
pub(crate) async fn serve_tls(script: Script) -> (Server, String) {
    let signed = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls::pki_types::PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![signed.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    (serve_with(script, Some(acceptor)).await, signed.cert.pem())
}

/// Starts a server that speaks first, and returns its port.
pub(crate) async fn greet(bytes: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            drop(stream.write_all(bytes).await);
            // The connection stays until the client has read what it got.
            drop(stream.read_to_end(&mut Vec::new()).await);
        }
    });
    port
}

async fn serve_with(script: Script, tls: Option<TlsAcceptor>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (seeing, seen) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (script, tls, seeing) = (script.clone(), tls.clone(), seeing.clone());
            tokio::spawn(connection(stream, script, tls, seeing));
        }
    });
    Server { port, seen }
}

async fn connection(
    stream: TcpStream,
    script: Script,
    tls: Option<TlsAcceptor>,
    seeing: mpsc::UnboundedSender<Seen>,
) {
    match tls {
        None => converse(stream, script, seeing).await,
        Some(tls) => {
            if let Ok(stream) = tls.accept(stream).await {
                converse(stream, script, seeing).await;
            }
        }
    }
}

async fn converse(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    script: Script,
    seeing: mpsc::UnboundedSender<Seen>,
) {
    let Some((head, body)) = read_request(&mut stream).await else {
        return;
    };
    drop(seeing.send(Seen::Request(head, body)));
    // A client that gives up breaks the connection, which is what the script waits for.
    drop(script.play(&mut stream, &seeing).await);
    drop(seeing.send(Seen::Closed));
}

/// Reads one request with a length.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .lines()
        .filter_map(|line| line.split_once(": "))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let mut body = vec![0; length.unwrap().1.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}
