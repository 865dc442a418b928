//! Starts one process when it is first needed, and restarts it after it has ended.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tenterhook_process::{CancellationToken, Command};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::calls::CallNotes;
use super::connection::Connection;
use super::error::WorkerError;
use super::host::Host;
use super::requests::Requests;
use super::wire::Wire;

/// How long a worker may take to start, and to load one file.
const START: Duration = Duration::from_secs(30);
/// The pause before a restart after the first failure. Each further failure doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause before a restart.
const MAX_PAUSE: Duration = Duration::from_secs(2);
/// How many failures in a row are allowed before calls fail without a restart.
const MAX_FAILURES: u32 = 3;
/// How long calls then fail without a restart.
const BREAK: Duration = Duration::from_secs(30);
/// A worker that ran for this long resets the count of failures.
const LONG_LIFE: Duration = Duration::from_mins(1);
/// How long a worker may take to end after `shutdown`.
const GRACE: Duration = Duration::from_secs(2);

/// The start of a conversation with a process, before it can be called.
pub(super) trait Peer: fmt::Debug + Send + 'static {
    /// Returns how messages are written.
    fn wire(&self) -> Wire;

    /// Greets a process that was just started. An error says why the process cannot be used.
    fn greet(&mut self, connection: &Connection)
    -> impl Future<Output = Result<(), String>> + Send;
}

/// Starts and restarts one process.
#[derive(Debug)]
pub(super) struct Supervisor<P> {
    pub(super) name: String,
    pub(super) command: Command,
    state: Mutex<State<P>>,
    requests: Requests,
}

/// The current process, and the failures of earlier ones.
#[derive(Debug)]
pub(super) struct State<P> {
    pub(super) peer: P,
    connection: Option<Arc<Connection>>,
    /// How many processes were started.
    starts: u64,
    failures: u32,
    not_before: Option<Instant>,
    problem: String,
}

impl<P: Peer> Supervisor<P> {
    pub(super) fn new(name: String, command: Command, peer: P, requests: Requests) -> Self {
        Self {
            name,
            command,
            state: Mutex::new(State {
                peer,
                connection: None,
                starts: 0,
                failures: 0,
                not_before: None,
                problem: String::new(),
            }),
            requests,
        }
    }

    /// Returns the host that answers the requests of the process.
    pub(super) fn host(&self) -> &dyn Host {
        &*self.requests.host
    }

    pub(super) async fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().await
    }

    /// Returns the running process, or starts one, within the deadline. A start continues after the
    /// deadline of the call that began it. Otherwise a process that starts slowly could never serve
    /// calls with short deadlines.
    pub(super) async fn connected(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, WorkerError> {
        // Usually the process is running, and there is nothing to wait for.
        let at_once = self.state.try_lock().ok().and_then(|it| it.running());
        if let Some(connection) = at_once {
            return Ok(connection);
        }
        let connected = async {
            let running = self.state().await.running();
            if let Some(connection) = running {
                return Ok(connection);
            }
            let supervisor = Arc::clone(self);
            let starting = tokio::spawn(async move {
                let mut state = supervisor.state().await;
                supervisor.connect(&mut state).await
            });
            starting.await.unwrap_or(Err(WorkerError::Cancelled))
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(WorkerError::Cancelled),
            connected = timeout_at(deadline, connected) => {
                connected.unwrap_or(Err(WorkerError::TimedOut))
            }
        }
    }

    /// Returns the running process, or starts one.
    pub(super) async fn connect(
        &self,
        state: &mut State<P>,
    ) -> Result<Arc<Connection>, WorkerError> {
        if let Some(connection) = &state.connection {
            match connection.death() {
                None => return Ok(Arc::clone(connection)),
                Some(problem) => {
                    let lived = connection.age();
                    state.connection = None;
                    state.fail(problem, lived);
                }
            }
        }
        if let Some(at) = state.not_before {
            if state.failures >= MAX_FAILURES && Instant::now() < at {
                return Err(WorkerError::Broken {
                    worker: self.name.clone(),
                    failures: state.failures,
                    seconds: at.duration_since(Instant::now()).as_secs() + 1,
                    problem: state.problem.clone(),
                });
            }
            sleep_until(at).await;
        }
        match self.start(state).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                Ok(connection)
            }
            Err(problem) => {
                state.fail(problem.clone(), Duration::ZERO);
                Err(WorkerError::Start {
                    worker: self.name.clone(),
                    problem,
                })
            }
        }
    }

    async fn start(&self, state: &mut State<P>) -> Result<Connection, String> {
        let State { peer, starts, .. } = state;
        *starts += 1;
        let (name, command, requests) = (&self.name, &self.command, &self.requests);
        let connection = Connection::start(name, *starts, command, peer.wire(), requests)?;
        peer.greet(&connection).await?;
        Ok(connection)
    }

    /// Asks the process to end, and kills it if it does not end in time.
    pub(super) async fn shutdown(&self) {
        let connection = self.state().await.connection.take();
        if let Some(connection) = connection {
            connection.shutdown(GRACE).await;
        }
    }

    /// Returns the process id, if the process runs.
    pub(super) async fn pid(&self) -> Option<u32> {
        let running = self.state().await.running();
        running.map(|connection| connection.pid())
    }
}

impl<P> State<P> {
    /// Returns the process, if it runs.
    pub(super) fn running(&self) -> Option<Arc<Connection>> {
        let connection = self.connection.as_ref();
        connection
            .filter(|connection| connection.death().is_none())
            .map(Arc::clone)
    }

    fn fail(&mut self, problem: String, lived: Duration) {
        if lived >= LONG_LIFE {
            self.failures = 0;
        }
        self.failures += 1;
        self.problem = problem;
        let pause = if self.failures >= MAX_FAILURES {
            BREAK
        } else {
            let doubled = FIRST_PAUSE * 2_u32.pow(self.failures - 1);
            doubled.min(MAX_PAUSE)
        };
        self.not_before = Some(Instant::now() + pause);
    }
}

/// Makes a request that belongs to the start of a process. It has its own, longer time limit.
pub(super) async fn ask(
    connection: &Connection,
    method: &str,
    params: &serde_json::Value,
) -> Result<Bytes, String> {
    let never = CancellationToken::new();
    let params = params.to_string();
    let deadline = Instant::now() + START;
    let request: (&str, &[&[u8]]) = (method, &[params.as_bytes()]);
    let answer = connection.call_once(request, CallNotes::default(), deadline, &never);
    match timeout(START, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(WorkerError::TimedOut)) | Err(_) => Err(format!(
            "no answer to `{method}` within {} seconds",
            START.as_secs()
        )),
        Ok(Err(error)) => Err(error.to_string()),
    }
}
