//! A hook that a worker serves.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook::{Answer, Call, Dialect, Handler, HandlerError, Reply};

use super::{Extension, Lease, Worker, WorkerError};

/// Runs a hook in the process that serves it: the event goes there in a dialect, and so comes the answer.
pub struct WorkerHandler {
    server: Server,
    dialect: Arc<dyn Dialect>,
    text: String,
    lease: Option<Lease>,
}

/// Who is asked.
enum Server {
    /// A hook of a script: the script's number in its worker, and the hook's place in it.
    Script(Worker, (usize, usize)),
    /// A subscription of an extension.
    Extension(Extension),
}

impl WorkerHandler {
    /// Makes the handler of a hook: the number of its script in the worker and its place in the script. `text` is shown to people.
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

    /// Makes the handler of an extension's subscription. `text` is shown to people.
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

    /// Makes the handler of a hook of a script that stays in its worker as long as one of its handlers is there.
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

    async fn run(&self, call: &Call) -> Answer {
        if !self.dialect.has_event(&call.event) {
            return Ok(None);
        }
        let event = call
            .event
            .encoded(&*self.dialect)
            .map_err(HandlerError::Write)?;
        let answer = match &self.server {
            Server::Script(worker, place) => {
                worker
                    .handle(*place, &event, call.timeout, &call.cancel)
                    .await
            }
            Server::Extension(extension) => {
                extension.handle(&event, call.timeout, &call.cancel).await
            }
        };
        let answer = answer.map_err(|error| failure(&error, call))?;
        if *answer == *b"null" {
            return Ok(None);
        }
        let reply = Reply {
            status: 0,
            stdout: &answer,
            stderr: b"",
            stdout_omitted: 0,
        };
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

impl Handler for WorkerHandler {
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

    fn is_bounded(&self) -> bool {
        true
    }
}
