//! A hook that a worker serves.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tenterhook_engine::{
    Answer, AsyncHandler, Call, Dialect, EventClass, EventKind, HandlerError, Reply,
};

use tokio::time::Instant;

use super::error::WorkerError;
use super::extension::Extension;
use super::scripts::{Lease, Worker};
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

    /// Returns why a gate must not be asked: the script failed when the session started.
    fn refusal(&self, call: &Call, session: Option<&str>) -> Option<String> {
        let is_gate = call.event.info().class == EventClass::Gate;
        self.lease.as_ref().filter(|_| is_gate)?.refusal(session)
    }

    /// Returns the session whose state of the script the event belongs to. `None` if there is only one state.
    fn script_session(&self, call: &Call) -> Option<String> {
        let session = &call.event.envelope().origin.session_id;
        self.lease.as_ref()?.session(session.as_str())
    }

    /// Calls the hook of a script. The error is a refusal of a gate.
    async fn run_script(
        &self,
        worker: &Worker,
        place: (usize, usize),
        call: &Call,
        event: &[u8],
    ) -> Result<Result<Bytes, WorkerError>, HandlerError> {
        let session = self.script_session(call);
        let session = session.as_deref();
        let deadline = Instant::now() + call.timeout;
        let is_start = call.event.info().kind == EventKind::SessionStart;
        let connection = worker.reach(place.0, deadline, &call.cancel).await;
        if let (false, Some(lease), Ok(connection)) = (is_start, &self.lease, &connection) {
            lease.use_connection(session, &self.text, connection).await;
        }
        if let Some(problem) = self.refusal(call, session) {
            return Err(HandlerError::Other { problem });
        }
        let answer = match &connection {
            Ok(connection) => {
                let request = (session, place, event);
                let answer = worker.handle_on(connection, request, deadline, &call.cancel);
                answer.await
            }
            Err(error) => Err(error.clone()),
        };
        if let Some(lease) = self.lease.as_ref().filter(|_| is_start) {
            let end = answer.as_ref().map_err(ToString::to_string);
            let end = end.and_then(|_| connection.as_ref().map_err(ToString::to_string));
            let start = (place.1, session);
            lease.record_start(start, &self.text, end).await;
        }
        Ok(answer)
    }

    async fn run(&self, call: &Call) -> Answer {
        if !self.dialect.has_event(&call.event) {
            return Ok(None);
        }
        let event = call
            .event
            .encoded(&*self.dialect)
            .map_err(HandlerError::Write)?;
        let answer = match &self.server {
            Server::Script(worker, place) => self.run_script(worker, *place, call, &event).await?,
            Server::Extension(extension) => {
                let session = &call.event.envelope().origin.session_id;
                let session = Some(session.as_str());
                extension
                    .handle_in(session, &event, call.timeout, &call.cancel)
                    .await
            }
        };
        let answer = answer.map_err(|error| failure(&error, call))?;
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

fn failure(error: &WorkerError, call: &Call) -> HandlerError {
    if *error == WorkerError::TimedOut {
        HandlerError::TimedOut {
            after: call.timeout,
        }
    } else if *error == WorkerError::Cancelled {
        HandlerError::Cancelled
    } else {
        HandlerError::Other {
            problem: error.to_string(),
        }
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
        self.lease.as_ref()?.start_problem()
    }

    fn enforces_deadline(&self) -> bool {
        true
    }

    fn sequence(&self) -> Option<&'static str> {
        self.dialect.sequence()
    }
}
