//! Hooks that are web services: each event is a POST request, and the answer decides.
//!
//! The request body is what a command hook reads on stdin, and the answer is what a command hook
//! prints on stdout. The dialect writes the one and reads the other. This module handles what is
//! special about HTTP: where a request may go (`target`, `address`), how it is sent (`client`), and
//! what a status means (`answer`). A request is never repeated, because only the author of a hook
//! knows whether it may see an event twice. A request that fails is a failure of the hook.

mod address;
mod answer;
mod client;
mod target;
mod tls;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tenterhook_engine::{Answer, AsyncHandler, Call, Dialect, HandlerError, Reply};
use thiserror::Error;

use crate::exchange;

pub use answer::drain;
pub use client::{direct_client, post, prepare};
pub use target::{HeaderError, Headers, Target, TargetError};
pub use tls::{ClientTlsError, tls_config, tls_config_without_roots};

/// Posts each event to a URL and reads the answer in a dialect.
///
/// The engine enforces the hook's timeout and cancellation. Both close the connection.
#[derive(Debug)]
pub struct HttpHandler {
    target: Target,
    headers: Headers,
    dialect: Arc<dyn Dialect>,
    strict_output: bool,
}

/// Why this machine cannot send requests.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct ClientError {
    problem: String,
}

impl HttpHandler {
    /// Makes a handler that posts to `target` with these headers in addition to its own. No request
    /// is sent yet.
    ///
    /// # Errors
    /// Fails if the target is `https` and this machine has no root certificates to verify it with.
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

    /// Makes answers a failure that a lenient reader would ignore.
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
        let input_bytes = body.len();
        let posted = post(&self.target, &self.headers, body)
            .await
            .map_err(|error| failed(&error))?;
        let body = answer::read(posted, &self.headers)
            .await
            .map_err(|error| failed(&error))?;
        call.exchange
            .fill(|| exchange::of_answer(input_bytes, body.as_deref().unwrap_or_default()));
        let Some(body) = body else { return Ok(None) };
        let reply = Reply::Http { body: &body };
        let effect = call
            .event
            .read_answer(&*self.dialect, &reply, self.strict_output)?;
        Ok((!effect.is_empty()).then(|| Box::new(effect)))
    }
}

/// Converts an error to a failure that the engine records.
pub fn failed(error: &dyn std::error::Error) -> HandlerError {
    HandlerError::Other {
        problem: error.to_string(),
    }
}

impl AsyncHandler for HttpHandler {
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
