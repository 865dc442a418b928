//! One connection of a shim or a command: one request and its answer.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tenterhook_shim::frame::{
    DaemonAnswer, DaemonRequest, HEADER, Header, InvalidFrame, MAX_BODY, PROTOCOL,
};
use tenterhook_tools::is_run_by_tenterhook;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::requests::{self, ControlRequest};
use crate::shared_daemon::SharedDaemon;

/// How long a peer may take to send its request, or to take its answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The unit in which the memory of requests is counted, in bytes.
const UNIT: usize = 64 << 10;

/// Serves one connection. An error means that the peer does not follow the protocol or has gone.
pub(crate) async fn serve_connection(
    mut stream: UnixStream,
    daemon: &SharedDaemon,
) -> io::Result<()> {
    let peer = stream.peer_cred()?.pid();
    let peer = peer.and_then(|id| u32::try_from(id).ok());
    let greeting = Header::write(0);
    timeout(PATIENCE, stream.write_all(&greeting)).await??;
    let mut header = [0; HEADER];
    timeout(PATIENCE, stream.read_exact(&mut header)).await??;
    let header = Header::read(header).map_err(invalid)?;
    if header.protocol != PROTOCOL {
        // The shim has another version. If the program has it too, the next daemon will answer.
        daemon.is_ending();
        return Ok(());
    }
    let units = header.length.min(MAX_BODY).div_ceil(UNIT);
    let units = u32::try_from(units).unwrap_or(u32::MAX);
    let memory = daemon.memory.acquire_many(units).await;
    let memory = memory.map_err(io::Error::other)?;
    let mut body = vec![0; header.length];
    timeout(PATIENCE, stream.read_exact(&mut body)).await??;
    let request = DaemonRequest::read(&body).map_err(invalid)?;
    drop(body);
    let answer = tokio::select! {
        biased;
        // A shim that has ended needs no answer, and its hooks are cancelled.
        () = closed(&stream) => return Ok(()),
        answer = answer(request, peer, daemon) => answer,
    };
    drop(memory);
    timeout(PATIENCE, stream.write_all(&answer.write())).await??;
    Ok(())
}

async fn answer(request: DaemonRequest, peer: Option<u32>, daemon: &SharedDaemon) -> DaemonAnswer {
    match request {
        DaemonRequest::Event(_) if daemon.is_ending() => DaemonAnswer::Retry,
        DaemonRequest::Event(event) => DaemonAnswer::Print(daemon.events.handle(event, peer).await),
        DaemonRequest::Control(json) => {
            let answer = control(&json, peer, daemon).await;
            DaemonAnswer::Control(answer.to_string().into_bytes())
        }
    }
}

async fn control(json: &[u8], peer: Option<u32>, daemon: &SharedDaemon) -> serde_json::Value {
    let request = match serde_json::from_slice::<ControlRequest>(json) {
        Ok(request) => request,
        Err(error) => return requests::refused(&format!("the request cannot be read: {error}")),
    };
    if request.changes_hooks() && is_program_of_agent(peer, daemon).await {
        let text = "a program of an agent cannot do this; run the command in your own terminal";
        return requests::refused(text);
    }
    request.carry_out(daemon).await
}

/// Returns whether an agent or Tenterhook started a process. One that cannot be looked at counts as such.
async fn is_program_of_agent(peer: Option<u32>, daemon: &SharedDaemon) -> bool {
    let Some(peer) = peer.filter(|peer| *peer != std::process::id()) else {
        return peer.is_none() && cfg!(target_os = "linux");
    };
    let hosts = Arc::clone(&daemon.events.hosts);
    let look = move || hosts.started(peer) || is_run_by_tenterhook(peer);
    tokio::task::spawn_blocking(look).await.unwrap_or(true)
}

/// Waits until the peer closes the connection, or sends more than a request.
async fn closed(stream: &UnixStream) {
    loop {
        if stream.readable().await.is_err() {
            return;
        }
        match stream.try_read(&mut [0; 1]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn invalid(error: InvalidFrame) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Serves a connection whose peer belongs to this user. All others are closed.
pub(crate) async fn serve_own(stream: UnixStream, user: u32, daemon: Arc<SharedDaemon>) {
    let is_own = stream.peer_cred().is_ok_and(|peer| peer.uid() == user);
    if is_own {
        // A peer that breaks the protocol is closed, and the shim denies.
        serve_connection(stream, &daemon).await.ok();
    }
}
