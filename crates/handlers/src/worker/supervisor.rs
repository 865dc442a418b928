//! One process that is started when it is first needed, and again when it ends.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use tenterhook_process::{CancellationToken, Command};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::connection::Connection;
use super::host::{Desk, Host};
use super::watched::Updates;
use super::wire::Wire;
use super::{
    BREAK, FIRST_PAUSE, GRACE, LONG_LIFE, LONGEST_PAUSE, MOST_FAILURES, MOST_UNANSWERED, START,
    WorkerError,
};

/// What is said to a process before it can be called.
pub(super) trait Peer: fmt::Debug + Send + 'static {
    /// How it is spoken to.
    const WIRE: Wire;

    /// Greets a process that was just started; an error is why it is of no use.
    fn greet(&mut self, connection: &Connection)
    -> impl Future<Output = Result<(), String>> + Send;
}

/// Keeps one process.
#[derive(Debug)]
pub(super) struct Supervisor<P> {
    pub(super) name: String,
    pub(super) command: Command,
    state: Mutex<State<P>>,
    unanswered: AtomicU32,
    desk: Desk,
}

/// The process, and what became of those before it.
#[derive(Debug)]
pub(super) struct State<P> {
    pub(super) peer: P,
    connection: Option<Arc<Connection>>,
    failures: u32,
    not_before: Option<Instant>,
    problem: String,
}

impl<P: Peer> Supervisor<P> {
    pub(super) fn new(name: String, command: Command, peer: P, host: Arc<dyn Host>) -> Self {
        Self {
            name,
            command,
            state: Mutex::new(State {
                peer,
                connection: None,
                failures: 0,
                not_before: None,
                problem: String::new(),
            }),
            unanswered: AtomicU32::new(0),
            desk: Desk::new(host),
        }
    }

    pub(super) async fn state(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().await
    }

    /// Returns the process that runs, or starts one, until the deadline. A start goes on when the call that asked for it has no more
    /// time, or calls with little time would never see its end.
    pub(super) async fn connected(
        self: &Arc<Self>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, WorkerError> {
        // Mostly it runs, and there is nothing to wait for.
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

    /// Makes one call, whose parameters may come in parts, and notes whether there is an answer.
    pub(super) async fn call(
        &self,
        connection: &Connection,
        request: (&str, &[&[u8]]),
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        self.call_watched(connection, request, None, deadline, cancel)
            .await
    }

    /// Makes a call of which somebody may want to know what it has so far.
    pub(super) async fn call_watched(
        &self,
        connection: &Connection,
        request: (&str, &[&[u8]]),
        updates: Option<Updates>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let answered = connection
            .call_watched(request, updates, deadline, cancel)
            .await;
        match &answered {
            Err(WorkerError::TimedOut) => self.note_silence(connection),
            _ => self.unanswered.store(0, Ordering::Relaxed),
        }
        answered
    }

    /// Returns the process that runs, or starts one.
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
            if state.failures >= MOST_FAILURES && Instant::now() < at {
                return Err(WorkerError::Broken {
                    worker: self.name.clone(),
                    failures: state.failures,
                    seconds: at.duration_since(Instant::now()).as_secs() + 1,
                    problem: state.problem.clone(),
                });
            }
            sleep_until(at).await;
        }
        match self.start(&mut state.peer).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                state.connection = Some(Arc::clone(&connection));
                self.unanswered.store(0, Ordering::Relaxed);
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

    async fn start(&self, peer: &mut P) -> Result<Connection, String> {
        let connection = Connection::start(&self.name, &self.command, P::WIRE, &self.desk)?;
        peer.greet(&connection).await?;
        Ok(connection)
    }

    /// Counts a call without an answer. A process that answers nobody any more is of no use.
    fn note_silence(&self, connection: &Connection) {
        let unanswered = self.unanswered.fetch_add(1, Ordering::Relaxed) + 1;
        if unanswered >= MOST_UNANSWERED && connection.is_silent_for_calls() {
            connection.kill("it does not answer any more");
        }
    }

    /// Asks the process to end, waits for it, and kills it where it does not.
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
        let pause = if self.failures >= MOST_FAILURES {
            BREAK
        } else {
            let doubled = FIRST_PAUSE * 2_u32.pow(self.failures - 1);
            doubled.min(LONGEST_PAUSE)
        };
        self.not_before = Some(Instant::now() + pause);
    }
}

/// Asks for something that belongs to the start of a process.
pub(super) async fn ask(
    connection: &Connection,
    method: &str,
    params: &serde_json::Value,
) -> Result<Bytes, String> {
    let never = CancellationToken::new();
    let params = params.to_string();
    let deadline = Instant::now() + START;
    let params = [params.as_bytes()];
    let answer = connection.call(method, &params, deadline, &never);
    match timeout(START, answer).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(WorkerError::TimedOut)) | Err(_) => Err(format!(
            "no answer to `{method}` within {} seconds",
            START.as_secs()
        )),
        Ok(Err(error)) => Err(error.to_string()),
    }
}
