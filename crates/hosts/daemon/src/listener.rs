//! The life of the daemon: from its lock and socket to its end.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tenterhook_files::{FileLock, lock_file};
use tenterhook_shim::place::DaemonPlace;
use thiserror::Error;
use tokio::net::UnixListener;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::serve_own;
use crate::daily_journal::{DaemonJournal, DailyJournal};
use crate::host_event::HostEvents;
use crate::running_program::RunningProgram;
use crate::shared_daemon::{AboutDaemon, SharedDaemon};

/// How many connections are served at once. More wait in the queue of the socket.
const MAX_CONNECTIONS: usize = 128;
/// How long to wait before accepting again when the system could not accept a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the events that are being handled may take when the daemon ends.
const MAX_DRAIN: Duration = Duration::from_secs(40);

/// The options of the daemon.
#[derive(Debug, Clone)]
pub struct DaemonOptions {
    /// Where the shims find it.
    pub place: DaemonPlace,
    /// How long it waits for an event before it ends, if no host runs.
    pub idle_exit: Duration,
    /// Where it writes its journal.
    pub journal: DaemonJournal,
    /// The file of the program. When it is replaced, the daemon ends, so that the next one is the new
    /// version.
    pub program: Option<PathBuf>,
}

/// Why the daemon ended without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DaemonEnd {
    /// Another daemon listens.
    AlreadyRunning,
    /// No host has called for a while.
    Idle,
    /// A command or a signal stopped it, or its program was replaced.
    Stopped,
}

/// Why the daemon cannot run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DaemonError {
    /// The folder cannot be used.
    #[error("cannot use the daemon's folder")]
    Folder(#[source] io::Error),
    /// The lock cannot be used.
    #[error("cannot lock `{}`", path.display())]
    Lock {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The list of host processes cannot be read.
    #[error(
        "cannot read the list of agents that run, `{}`; end your agents and delete the file",
        path.display()
    )]
    Hosts {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
    /// The socket cannot be created.
    #[error("cannot listen on `{}`", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// What happened.
        source: io::Error,
    },
}

/// Serves hosts until `stop` is cancelled or no host has called for a while. Events that are being
/// handled then are finished.
///
/// # Errors
/// Fails if the socket cannot be created.
pub async fn serve(
    options: DaemonOptions,
    stop: CancellationToken,
) -> Result<DaemonEnd, DaemonError> {
    let place = options.place;
    place.prepare().map_err(DaemonError::Folder)?;
    let lock = lock_file(&place.lock).and_then(FileLock::try_lock);
    let lock = lock.map_err(|source| DaemonError::Lock {
        path: place.lock.clone(),
        source,
    })?;
    let Some(lock) = lock else {
        return Ok(DaemonEnd::AlreadyRunning);
    };
    let failed = |source| DaemonError::Socket {
        path: place.socket.clone(),
        source,
    };
    let events = HostEvents::new(DailyJournal::new(options.journal), &place);
    let events = events.map_err(|source| DaemonError::Hosts {
        path: place.hosts.clone(),
        source,
    })?;
    let (listener, user) = listen(&place.socket).map_err(failed)?;
    let program = options.program.map(RunningProgram::new);
    let about = AboutDaemon::now(place.socket.clone());
    let daemon = Arc::new(SharedDaemon::new(events, program, stop.clone(), about));
    let mut listening = Listening {
        listener,
        user,
        daemon: Arc::clone(&daemon),
        connections: TaskTracker::new(),
    };
    let end = listening.accept_all(options.idle_exit, &stop).await;
    stop.cancel();
    // The next daemon creates its socket as soon as the lock is free.
    fs::remove_file(&place.socket).ok();
    listening.answer_queued();
    let connections = listening.connections.clone();
    drop(listening);
    drop(lock);
    connections.close();
    daemon.events.tasks.close();
    let handled = async {
        connections.wait().await;
        daemon.events.tasks.wait().await;
    };
    timeout(MAX_DRAIN, handled).await.ok();
    let journal = Arc::clone(&daemon.events.journal);
    tokio::task::spawn_blocking(move || journal.close())
        .await
        .ok();
    Ok(end)
}

/// Creates the socket. Replaces one that a killed daemon left, so the caller must hold the lock.
fn listen(path: &Path) -> io::Result<(UnixListener, u32)> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.file_type().is_socket() => fs::remove_file(path)?,
        Ok(_) => {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "it is not a socket",
            ));
        }
        Err(_) => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let user = fs::symlink_metadata(path)?.uid();
    Ok((UnixListener::from_std(listener)?, user))
}

/// The socket and the connections that are being served.
struct Listening {
    listener: UnixListener,
    user: u32,
    daemon: Arc<SharedDaemon>,
    connections: TaskTracker,
}

impl Listening {
    /// Accepts connections until `stop` is cancelled or the daemon is idle.
    async fn accept_all(&mut self, idle_exit: Duration, stop: &CancellationToken) -> DaemonEnd {
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut last_call = Instant::now();
        loop {
            let place = tokio::select! {
                biased;
                () = stop.cancelled() => return DaemonEnd::Stopped,
                place = Arc::clone(&places).acquire_owned() => place,
            };
            let idle_end = last_call.checked_add(idle_exit);
            let accepted = tokio::select! {
                biased;
                () = stop.cancelled() => return DaemonEnd::Stopped,
                accepted = self.listener.accept() => accepted,
                () = sleep_until(idle_end.unwrap_or(last_call)), if idle_end.is_some() => {
                    if self.is_needed().await {
                        last_call = Instant::now();
                        continue;
                    }
                    return DaemonEnd::Idle;
                }
            };
            last_call = Instant::now();
            let (Ok((stream, _)), Ok(place)) = (accepted, place) else {
                sleep(PAUSE).await;
                continue;
            };
            let serve = serve_own(stream, self.user, Arc::clone(&self.daemon));
            self.connections.spawn(async move {
                serve.await;
                drop(place);
            });
        }
    }

    /// Returns whether events are being handled, or a host runs whose session would lose its hooks.
    async fn is_needed(&self) -> bool {
        if !self.connections.is_empty() || !self.daemon.events.tasks.is_empty() {
            return true;
        }
        let daemon = Arc::clone(&self.daemon);
        let look = tokio::task::spawn_blocking(move || daemon.events.hosts.any_runs());
        look.await.unwrap_or(false)
    }

    /// Serves the connections that are still in the queue. The daemon is ending, so their events go to the
    /// next one.
    fn answer_queued(&mut self) {
        for _ in 0..MAX_CONNECTIONS * 16 {
            let Some(Ok((stream, _))) = self.listener.accept().now_or_never() else {
                return;
            };
            let serve = serve_own(stream, self.user, Arc::clone(&self.daemon));
            self.connections.spawn(serve);
        }
    }
}
