//! A hook that a worker serves.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tenterhook_engine::event::SessionSwitch;
use tenterhook_engine::{Answer, AsyncHandler, Call, Dialect, HandlerError, Reply};
use tenterhook_process::CancellationToken;
use tokio::time::Instant;

use super::connection::Connection;
use super::error::WorkerError;
use super::extension::Extension;
use super::script_session::CallRole;
use super::script_sessions::{EndInProgress, ScriptSessions, Use};
use super::scripts::{HookCall, Lease, Worker};
use crate::exchange;

/// Runs a hook in the process that serves it. A dialect writes the event and reads the answer.
pub struct WorkerHandler {
    server: Server,
    dialect: Arc<dyn Dialect>,
    text: String,
    lease: Option<Lease>,
}

/// The process that serves the hook.
enum Server {
    /// A hook of a script: the number of the script in its worker, and the index of the hook in the script.
    Script(Worker, (usize, usize)),
    /// A subscription of an extension.
    Extension(Extension),
}

impl WorkerHandler {
    /// Makes the handler of a script's hook. `place` is the number of the script in the worker and
    /// the index of the hook in the script. Messages show the hook as `text`.
    pub fn new(
        worker: Worker,
        place: (usize, usize),
        dialect: Arc<dyn Dialect>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            server: Server::Script(worker, place),
            dialect,
            text: text.into(),
            lease: None,
        }
    }

    /// Makes the handler of an extension's subscription. Messages show the hook as `text`.
    pub fn of_extension(
        extension: Extension,
        dialect: Arc<dyn Dialect>,
        text: impl Into<String>,
    ) -> Self {
        Self {
            server: Server::Extension(extension),
            dialect,
            text: text.into(),
            lease: None,
        }
    }

    /// Makes the handler of a script's hook that keeps the script loaded. The worker unloads the
    /// script when its last handler is dropped.
    pub fn leased(
        worker: Worker,
        (lease, hook): (Lease, usize),
        dialect: Arc<dyn Dialect>,
        text: impl Into<String>,
    ) -> Self {
        let place = (lease.number(), hook);
        Self {
            lease: Some(lease),
            ..Self::new(worker, place, dialect, text)
        }
    }

    /// Returns the sessions that the script or the extension has started.
    fn sessions(&self) -> Option<&Arc<ScriptSessions>> {
        match &self.server {
            Server::Script(..) => self.lease.as_ref().map(Lease::sessions),
            Server::Extension(extension) => Some(extension.sessions()),
        }
    }

    async fn reach(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, WorkerError> {
        match &self.server {
            Server::Script(worker, (script, _)) => worker.reach(*script, deadline, cancel).await,
            Server::Extension(extension) => extension.reach(deadline, cancel).await,
        }
    }

    async fn restore(
        &self,
        used: Use<'_>,
        connection: &Arc<Connection>,
    ) -> Result<bool, WorkerError> {
        match (&self.server, &self.lease) {
            (Server::Script(..), Some(lease)) => lease.restore(used, connection).await,
            (Server::Script(..), None) => Ok(false),
            (Server::Extension(extension), _) => extension.restore(used, connection).await,
        }
    }

    /// Calls the hook on a connection, once its script has what it prepared when the session began.
    async fn call_on(
        &self,
        connection: &Result<Arc<Connection>, WorkerError>,
        (call, event): (&Call, &[u8]),
        (role, session_end): (CallRole, Option<EndInProgress>),
        deadline: Instant,
    ) -> Result<Bytes, WorkerError> {
        let session = call.event.envelope().origin.session_id.as_str();
        let sessions = self.sessions();
        let connection = connection.as_ref().map_err(|error| {
            let sessions = sessions.filter(|_| role != CallRole::Start);
            let lost = sessions.and_then(|sessions| sessions.out_of_reach(session, error));
            lost.unwrap_or_else(|| error.clone())
        })?;
        let used = Use {
            session,
            role,
            deadline,
            cancel: &call.cancel,
        };
        let watch = sessions
            .map(|sessions| sessions.watch_end(call))
            .transpose()?
            .flatten();
        if self.restore(used, connection).await? {
            let note =
                "it handled `session_start` again first, because its worker or session had ended";
            call.notes.add_problem(|| note.to_owned());
        }
        if let Some(message) = sessions.and_then(|sessions| sessions.refusal(call)) {
            return Err(WorkerError::Call { message });
        }
        let answer = match &self.server {
            Server::Script(_, place) => {
                let session = sessions.and_then(|sessions| sessions.state_of(session));
                let request = HookCall {
                    place: *place,
                    session: session.as_deref(),
                    is_replay: false,
                    event,
                    session_end,
                };
                Worker::handle_on(connection, request, deadline, &call.cancel).await
            }
            Server::Extension(extension) => {
                let request = (Some(session), event, session_end);
                let answer = extension.handle_on(connection, request, deadline, &call.cancel);
                answer.await
            }
        }?;
        if let (Some(sessions), Some(watch)) = (sessions, &watch) {
            sessions.check_end(watch)?;
        }
        Ok(answer)
    }

    /// Calls the hook, and records how it handled the start of a session.
    async fn ask(&self, call: &Call, event: &Bytes) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + call.timeout;
        let hook = match &self.server {
            Server::Script(_, (_, hook)) => *hook,
            Server::Extension(_) => 0,
        };
        let sessions = self.sessions();
        let start = sessions.and_then(|sessions| sessions.begin(call, hook, event));
        let session_end = sessions.and_then(|sessions| sessions.begin_end(call));
        let role = match (&start, &session_end) {
            (Some(_), _) => CallRole::Start,
            (None, Some(_)) => CallRole::End,
            (None, None) if call.event.downcast::<SessionSwitch>().is_some() => CallRole::Start,
            (None, None) => CallRole::Other,
        };
        let connection = self.reach(deadline, &call.cancel).await;
        let answer = self.call_on(&connection, (call, event), (role, session_end), deadline);
        let answer = answer.await;
        if let (Some(sessions), Some(start)) = (sessions, start) {
            let end = answer.as_ref().map(drop).map_err(Clone::clone);
            let process = connection.as_ref().ok().map(|it| it.number());
            sessions.end(start, &self.text, process, end).await;
        }
        answer
    }

    async fn run(&self, call: &Call) -> Answer {
        if !self.dialect.has_event(&call.event) {
            return Ok(None);
        }
        let event = call
            .event
            .encoded(&*self.dialect)
            .map_err(HandlerError::Write)?;
        let answer = self.ask(call, &event).await;
        let answer = answer.map_err(|error| failure(error, call))?;
        call.exchange
            .fill(|| exchange::of_answer(event.len(), &answer));
        if *answer == *b"null" {
            return Ok(None);
        }
        let reply = Reply::Returned { json: &answer };
        let effect = call.event.read_answer(&*self.dialect, &reply, false)?;
        Ok((!effect.is_empty()).then(|| Box::new(effect)))
    }
}

fn failure(error: WorkerError, call: &Call) -> HandlerError {
    match error {
        WorkerError::TimedOut => HandlerError::TimedOut {
            after: call.timeout,
        },
        WorkerError::Cancelled => HandlerError::Cancelled,
        WorkerError::NotReady { message } => HandlerError::NotReady { problem: message },
        error @ (WorkerError::Start { .. }
        | WorkerError::Ended { .. }
        | WorkerError::Broken { .. }
        | WorkerError::Call { .. }) => HandlerError::Other {
            problem: error.to_string(),
        },
    }
}

impl fmt::Debug for WorkerHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let server = match &self.server {
            Server::Script(worker, _) => worker.name(),
            Server::Extension(extension) => extension.id(),
        };
        f.debug_struct("WorkerHandler")
            .field("worker", &server)
            .field("hook", &self.text)
            .field("lease", &self.lease)
            .finish_non_exhaustive()
    }
}

impl AsyncHandler for WorkerHandler {
    fn kind(&self) -> &'static str {
        match self.server {
            Server::Script(..) => "worker",
            Server::Extension(_) => "extension",
        }
    }

    fn describe(&self) -> String {
        self.text.clone()
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(self.run(call))
    }

    fn problem(&self) -> Option<String> {
        self.sessions()?.problem()
    }

    fn enforces_deadline(&self) -> bool {
        true
    }

    fn sequence(&self) -> Option<&'static str> {
        self.dialect.sequence()
    }
}
