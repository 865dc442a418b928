//! The control socket, through which commands reach the gateway that runs.
//!
//! It is a Unix socket in the state folder. Each line is a JSON-RPC 2.0 request. Only processes of the user who runs
//! the gateway may connect: the mode of the file says so, and the system vouches for the peer's user.
//!
//! The agent's own programs run as the same user. They may look, but only the user may change anything: a process that
//! Tenterhook runs is refused, like in the commands themselves.

use std::fmt;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_jsonrpc::{
    FrameReader, Framing, Incoming, PeerMessage, RpcError, RpcRequest, request, result,
};
use tenterhook_tools::is_run_by_tenterhook;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The name of the socket in the state folder.
pub const CONTROL_SOCKET: &str = "control.sock";

/// How many commands may be connected at once.
const MAX_CONNECTIONS: usize = 8;
/// The maximum length of a request in bytes.
const MAX_REQUEST: usize = 64 << 10;
/// The maximum length of an answer in bytes, such as a list of chats.
const MAX_ANSWER: usize = 8 << 20;
/// How long a peer may take to send a request, or to take an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a request may take, with the hooks that it runs.
const MAX_WORK: Duration = Duration::from_mins(1);
/// How long a backup may take.
const MAX_BACKUP: Duration = Duration::from_hours(1);
/// How long to wait before accepting again when the system could not accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The methods that programs of the agent may use: they change nothing and hand out no secret.
const OPEN_TO_AGENTS: [&str; 5] = ["status", "channels", "chats", "pair.list", "token.list"];

/// Carries out the requests of commands.
pub trait ControlHandler: Send + Sync {
    /// Carries out a request.
    ///
    /// # Errors
    ///
    /// Returns a sentence for the user of the command.
    fn handle<'a>(&'a self, method: &'a str, params: Value)
    -> BoxFuture<'a, Result<Value, String>>;
}

impl fmt::Debug for dyn ControlHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControlHandler")
    }
}

/// Why the control socket could not be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ControlError {
    /// No gateway listens.
    #[error("no gateway runs on this state folder")]
    NotRunning,
    /// The gateway refused the request, with a sentence for the user.
    #[error("{0}")]
    Refused(String),
    /// The socket cannot be created or used.
    #[error("cannot use the control socket `{}`", path.display())]
    Io {
        /// The socket.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// Another user's program listens.
    #[error("a program of another user listens on the control socket `{}`; nothing was sent to it", path.display())]
    ForeignPeer {
        /// The socket.
        path: PathBuf,
    },
    /// The gateway did not answer in time.
    #[error("the gateway did not answer in time")]
    NoAnswer,
    /// The answer is not a JSON-RPC response.
    #[error("the gateway's answer cannot be read: {0}")]
    Malformed(String),
}

/// A socket that commands can connect to. Dropping it removes the file.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The user who runs the gateway.
    user: u32,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // A file that stays is replaced by the next gateway.
        std::fs::remove_file(&self.path).ok();
    }
}

impl ControlSocket {
    /// Creates the socket. A socket that a killed gateway left is replaced, so the caller must hold the lock of the
    /// state folder.
    ///
    /// # Errors
    ///
    /// Fails if the socket cannot be created, for example because its path is too long for a socket.
    pub async fn bind(path: &Path) -> Result<Self, ControlError> {
        let path = path.to_owned();
        let failed = |source| ControlError::Io {
            path: path.clone(),
            source,
        };
        let named = path.clone();
        let created = tokio::task::spawn_blocking(move || listen(&named)).await;
        let (listener, user) = created
            .map_err(io::Error::other)
            .and_then(|created| created)
            .map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        Ok(Self {
            listener,
            path,
            user,
        })
    }

    /// Serves requests until `stop` is cancelled. Requests that are being carried out then are answered.
    pub async fn serve(self, handler: Arc<dyn ControlHandler>, stop: CancellationToken) {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                accepted = self.listener.accept() => accepted,
            };
            while connections.try_join_next().is_some() {}
            let Ok((stream, _)) = accepted else {
                sleep(PAUSE).await;
                continue;
            };
            let peer = stream.peer_cred().ok();
            let own = peer.filter(|peer| peer.uid() == self.user);
            // A connection that is refused is closed.
            if let Ok(place) = Arc::clone(&places).try_acquire_owned()
                && let Some(peer) = own
            {
                let (handler, stop) = (Arc::clone(&handler), stop.clone());
                let peer = PeerProcess(peer.pid());
                connections.spawn(async move {
                    serve_connection(stream, peer, &*handler, &stop).await.ok();
                    drop(place);
                });
            }
        }
        timeout(PATIENCE, async {
            while connections.join_next().await.is_some() {}
        })
        .await
        .ok();
    }
}

/// Creates the socket. Returns it with the user who owns it.
fn listen(path: &Path) -> io::Result<(std::os::unix::net::UnixListener, u32)> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it is not a socket",
            ));
        }
        Err(_) => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let user = std::fs::symlink_metadata(path)?.uid();
    Ok((listener, user))
}

/// The process at the other end of a connection, as the system vouches for it. `None` if the system does not know, for
/// example because the process is in another container.
#[derive(Debug, Clone, Copy)]
struct PeerProcess(Option<i32>);

impl PeerProcess {
    /// Refuses a request that only the user may make, if a program of the agent makes it.
    async fn check(self, method: &str) -> Result<(), String> {
        if OPEN_TO_AGENTS.contains(&method) {
            return Ok(());
        }
        let process = self.0.and_then(|id| u32::try_from(id).ok());
        let looked = tokio::task::spawn_blocking(move || match process.filter(|id| *id != 0) {
            Some(process) => process != std::process::id() && is_run_by_tenterhook(process),
            None => cfg!(target_os = "linux"),
        });
        if looked.await.unwrap_or(true) {
            let text = "a program that Tenterhook runs cannot do this; run the command in your own terminal";
            return Err(text.to_owned());
        }
        Ok(())
    }
}

/// Answers the requests of one connection, one after the other, until the peer closes it or `stop` is cancelled.
async fn serve_connection(
    mut stream: UnixStream,
    peer: PeerProcess,
    handler: &dyn ControlHandler,
    stop: &CancellationToken,
) -> io::Result<()> {
    let mut reader = FrameReader::new(Framing::Lines, 1 << 10, MAX_REQUEST);
    loop {
        let next = timeout(PATIENCE, next_line(&mut stream, &mut reader));
        let line = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            line = next => line??,
        };
        let request = match line {
            Line::End => return Ok(()),
            Line::TooLong(problem) => Err(RpcError::invalid(&problem)),
            Line::Read(line) => match Incoming::parse(&line) {
                Ok(Incoming::Request(request)) => Ok(request),
                Ok(_) => continue,
                Err(error) => Err(error),
            },
        };
        let answer = match request {
            Ok(request) => carry_out(request, peer, handler).await,
            Err(error) => error.to_message(),
        };
        write_line(&mut stream, &answer).await?;
    }
}

async fn carry_out(request: RpcRequest, peer: PeerProcess, handler: &dyn ControlHandler) -> Value {
    let params = Value::Object(request.params.into_iter().collect());
    let work = async {
        peer.check(&request.method).await?;
        handler.handle(&request.method, params).await
    };
    let done = timeout(max_work(&request.method), work).await;
    let done = done.unwrap_or_else(|_| Err("the request took too long".to_owned()));
    match done {
        Ok(value) => result(&request.id, &value),
        Err(text) => RpcError::failed(&text).about(&request.id).to_message(),
    }
}

/// Returns how long a request may take.
fn max_work(method: &str) -> Duration {
    if method == "backup" {
        MAX_BACKUP
    } else {
        MAX_WORK
    }
}

/// What was read from a connection.
enum Line {
    Read(bytes::Bytes),
    TooLong(String),
    End,
}

async fn next_line(stream: &mut UnixStream, reader: &mut FrameReader) -> io::Result<Line> {
    loop {
        match reader.next_frame() {
            Ok(Some(line)) => return Ok(Line::Read(line)),
            Ok(None) => {}
            Err(problem) => return Ok(Line::TooLong(problem.to_string())),
        }
        if stream.read_buf(reader.room(4 << 10)).await? == 0 {
            return Ok(Line::End);
        }
    }
}

async fn write_line(stream: &mut UnixStream, message: &Value) -> io::Result<()> {
    let mut line = message.to_string();
    line.push('\n');
    timeout(PATIENCE, stream.write_all(line.as_bytes())).await?
}

/// Sends a request to the gateway that runs, and returns its result.
///
/// # Errors
///
/// Fails if no gateway of this user runs, if it refuses the request, or if it does not answer within a minute. A backup
/// may take an hour.
pub async fn call(path: &Path, method: &str, params: Value) -> Result<Value, ControlError> {
    let user = rustix::process::geteuid().as_raw();
    call_of_user(path, user, method, params).await
}

async fn call_of_user(
    path: &Path,
    user: u32,
    method: &str,
    params: Value,
) -> Result<Value, ControlError> {
    let failed = |source| ControlError::Io {
        path: path.to_owned(),
        source,
    };
    let mut stream = match UnixStream::connect(path).await {
        Ok(stream) => stream,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
            ) =>
        {
            return Err(ControlError::NotRunning);
        }
        Err(error) => return Err(failed(error)),
    };
    // The folder can be one that others write to. Requests and answers contain secrets.
    if stream.peer_cred().map_err(failed)?.uid() != user {
        let path = path.to_owned();
        return Err(ControlError::ForeignPeer { path });
    }
    let message = request(&1.into(), method, &params);
    write_line(&mut stream, &message).await.map_err(failed)?;
    let mut reader = FrameReader::new(Framing::Lines, 4 << 10, MAX_ANSWER);
    let patience = max_work(method) + PATIENCE;
    let line = timeout(patience, next_line(&mut stream, &mut reader))
        .await
        .map_err(|_| ControlError::NoAnswer)?
        .map_err(failed)?;
    let line = match line {
        Line::Read(line) => line,
        Line::TooLong(problem) => return Err(ControlError::Malformed(problem)),
        Line::End => {
            return Err(ControlError::Malformed(
                "it closed the connection".to_owned(),
            ));
        }
    };
    read_answer(&line)
}

fn read_answer(line: &bytes::Bytes) -> Result<Value, ControlError> {
    let message = PeerMessage::parse(line);
    match message.map_err(|error| ControlError::Malformed(error.to_string()))? {
        Some(PeerMessage::Answer {
            result: Ok(value), ..
        }) => serde_json::from_slice(value.as_deref().unwrap_or(b"null"))
            .map_err(|error| ControlError::Malformed(error.to_string())),
        Some(PeerMessage::Answer {
            result: Err(text), ..
        }) => Err(ControlError::Refused(text)),
        _ => Err(ControlError::Malformed("it is not an answer".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    struct Echo(CancellationToken);

    impl ControlHandler for Echo {
        fn handle<'a>(
            &'a self,
            method: &'a str,
            params: Value,
        ) -> BoxFuture<'a, Result<Value, String>> {
            Box::pin(async move {
                match method {
                    "echo" | "status" => Ok(params),
                    "stop" => {
                        self.0.cancel();
                        Ok(json!({"stopping": true}))
                    }
                    other => Err(format!("unknown method `{other}`")),
                }
            })
        }
    }

    struct Running {
        path: PathBuf,
        stop: CancellationToken,
        serving: tokio::task::JoinHandle<()>,
        _folder: tempfile::TempDir,
    }

    async fn start() -> Running {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CONTROL_SOCKET);
        let stop = CancellationToken::new();
        let socket = ControlSocket::bind(&path).await.unwrap();
        let handler = Arc::new(Echo(stop.clone()));
        Running {
            serving: tokio::spawn(socket.serve(handler, stop.clone())),
            path,
            stop,
            _folder: folder,
        }
    }

    #[tokio::test]
    async fn a_command_gets_the_result_of_its_request_or_the_refusal() {
        let gateway = start().await;
        let mode = std::fs::metadata(&gateway.path).unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        let params = json!({"name": "tg"});
        let answer = call(&gateway.path, "echo", params.clone()).await.unwrap();
        assert_eq!(answer, params);
        let refused = call(&gateway.path, "dance", json!({})).await.unwrap_err();
        assert!(matches!(refused, ControlError::Refused(text) if text == "unknown method `dance`"));
        gateway.stop.cancel();
        gateway.serving.await.unwrap();
        assert!(!gateway.path.exists());
    }

    #[tokio::test]
    async fn a_socket_of_another_user_gets_no_request() {
        let gateway = start().await;
        let other = rustix::process::geteuid().as_raw() + 1;
        let called = call_of_user(&gateway.path, other, "stop", json!({})).await;
        assert!(matches!(called, Err(ControlError::ForeignPeer { .. })));
        assert!(!gateway.stop.is_cancelled());
    }

    /// Sends a request from another process. Returns the line that it gets.
    #[cfg(target_os = "linux")]
    #[expect(
        clippy::disallowed_methods,
        reason = "the program ends by itself, and this is a test"
    )]
    async fn ask_from_child(path: &Path, method: &str) -> Value {
        let script = format!(
            "import socket; s = socket.socket(socket.AF_UNIX); s.connect({:?})\n\
             s.sendall(b'{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{}}}}\\n')\n\
             print(s.makefile().readline())",
            path.display().to_string()
        );
        let mut child = tokio::process::Command::new("python3");
        let output = child.args(["-c", &script]).output().await.unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_program_of_the_agent_that_speaks_to_the_socket_may_only_look() {
        let gateway = start().await;
        let looked = ask_from_child(&gateway.path, "status").await;
        assert_eq!(looked["result"], json!({}));
        for method in ["stop", "echo", "token.create", "pair.approve", "send"] {
            let refused = ask_from_child(&gateway.path, method).await;
            let text = refused["error"]["message"].as_str().unwrap();
            assert!(text.contains("your own terminal"), "{method}: {text}");
        }
        assert!(!gateway.stop.is_cancelled());
        assert!(call(&gateway.path, "echo", json!({})).await.is_ok());
    }

    #[tokio::test]
    async fn the_request_that_stops_the_gateway_is_answered() {
        let gateway = start().await;
        let answer = call(&gateway.path, "stop", json!({})).await.unwrap();
        assert_eq!(answer, json!({"stopping": true}));
        gateway.serving.await.unwrap();
        let after = call(&gateway.path, "echo", json!({})).await.unwrap_err();
        assert!(matches!(after, ControlError::NotRunning), "{after}");
    }

    #[tokio::test]
    async fn a_malformed_line_is_answered_and_the_next_one_is_read() {
        let gateway = start().await;
        let mut stream = UnixStream::connect(&gateway.path).await.unwrap();
        let mut reader = FrameReader::new(Framing::Lines, 64, MAX_ANSWER);
        let too_long = "x".repeat(MAX_REQUEST + 10);
        let lines = format!(
            "not json\n{too_long}\n{{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"echo\",\"params\":{{}}}}\n"
        );
        stream.write_all(lines.as_bytes()).await.unwrap();
        let mut answers = Vec::new();
        for _ in 0..3 {
            let Line::Read(line) = next_line(&mut stream, &mut reader).await.unwrap() else {
                panic!("expected an answer");
            };
            answers.push(serde_json::from_slice::<Value>(&line).unwrap());
        }
        let codes: Vec<&Value> = answers.iter().map(|it| &it["error"]["code"]).collect();
        assert_eq!(codes, [&json!(-32700), &json!(-32600), &Value::Null]);
        assert_eq!(answers[2]["id"], 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_sends_nothing_loses_its_place() {
        let gateway = start().await;
        let mut silent = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            silent.push(UnixStream::connect(&gateway.path).await.unwrap());
        }
        for stream in &mut silent {
            // The server closes the connection after its patience has ended.
            assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        }
        let answer = call(&gateway.path, "echo", json!({})).await.unwrap();
        assert_eq!(answer, json!({}));
    }

    #[tokio::test]
    async fn a_socket_that_was_left_is_replaced_and_another_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(CONTROL_SOCKET);
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        drop(ControlSocket::bind(&path).await.unwrap());
        std::fs::write(&path, "mine").unwrap();
        assert!(ControlSocket::bind(&path).await.is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    }
}
