//! Hooks that are services: each event is a POST, the answer decides.
//!
//! The body is what a command hook reads on stdin, and the answer what it prints on stdout; the dialect writes the
//! one and reads the other. What is special about HTTP is here: where a request may go (`target`, `address`), how it
//! is sent (`client`), and what a status means (`answer`). Nothing is sent twice: whether a hook may see an event
//! again is not known to anyone but its author, so a request that fails is a failure of the hook.

mod address;
mod answer;
mod client;
mod target;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook::{Answer, Call, Dialect, Handler, HandlerError, Reply};
use thiserror::Error;

pub(crate) use answer::drain;
pub(crate) use client::{post, prepare};
pub use target::{HeaderError, Headers, Target, TargetError};

/// Posts each event to a URL and reads the answer in a dialect.
///
/// The engine keeps the hook's timeout and its cancellation; either closes the connection.
#[derive(Debug)]
pub struct HttpHandler {
    target: Target,
    headers: Headers,
    dialect: Arc<dyn Dialect>,
    strict_output: bool,
}

/// No requests can be made from this machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct ClientError {
    problem: String,
}

impl HttpHandler {
    /// Makes a handler that posts to `target` with these headers beside its own. No request is sent.
    ///
    /// # Errors
    /// When the target is `https` and this machine has no roots of trust to verify it against.
    pub fn new(
        target: Target,
        headers: Headers,
        dialect: Arc<dyn Dialect>,
    ) -> Result<Self, ClientError> {
        prepare(&target).map_err(|error| ClientError {
            problem: error.to_string(),
        })?;
        Ok(Self {
            target,
            headers,
            dialect,
            strict_output: false,
        })
    }

    /// Refuses answers that a lenient reader would pass over.
    #[must_use]
    pub fn strict_output(mut self, strict: bool) -> Self {
        self.strict_output = strict;
        self
    }

    async fn run(&self, call: &Call) -> Answer {
        let body = call
            .event
            .encoded(&*self.dialect)
            .map_err(HandlerError::Write)?;
        let posted = post(&self.target, &self.headers, body)
            .await
            .map_err(|error| failed(&error))?;
        let body = answer::read(posted, &self.headers)
            .await
            .map_err(|error| failed(&error))?;
        let Some(body) = body else { return Ok(None) };
        let reply = Reply {
            status: 0,
            stdout: &body,
            stderr: b"",
            stdout_omitted: 0,
        };
        let effect = call
            .event
            .read_answer(&*self.dialect, &reply, self.strict_output)?;
        Ok((!effect.is_empty()).then(|| Box::new(effect)))
    }
}

/// Returns a failure as the engine records it.
pub(crate) fn failed(error: &dyn std::error::Error) -> HandlerError {
    HandlerError::Other {
        problem: error.to_string(),
    }
}

impl Handler for HttpHandler {
    fn kind(&self) -> &'static str {
        "http"
    }

    fn describe(&self) -> String {
        format!("POST {}", self.target)
    }

    fn handle<'a>(&'a self, call: &'a Call) -> BoxFuture<'a, Answer> {
        Box::pin(self.run(call))
    }
}
