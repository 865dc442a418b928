//! What scripts ask the program that runs them.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::script;

/// The most requests of one worker that are under way at once. More are refused.
const MOST_REQUESTS: usize = 64;
/// The stack of the thread that takes the types out of a source, in bytes. What of it is not used is not taken.
const STACK: usize = 512 << 20;
/// What is said of a method that there is none of.
const NO_METHOD: &str = "the host has no such method";

/// Why a script is not given what it asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such method.
    #[error("{NO_METHOD}")]
    NoMethod,
    /// It cannot be done, and why.
    #[error("{0}")]
    Failed(String),
    /// The request is not as it has to be, and why.
    #[error("{0}")]
    Invalid(String),
    /// There is nothing of the kind here.
    #[error("{0}")]
    Unavailable(String),
}

impl Refusal {
    /// Makes a refusal for something that needs a session.
    pub fn no_session(method: &str) -> Self {
        Self::Failed(format!("there is no session here for `{method}`"))
    }

    const fn code(&self) -> i32 {
        match self {
            Self::NoMethod => -32601,
            Self::Invalid(_) => -32602,
            Self::Failed(_) => -32000,
            Self::Unavailable(_) => -32004,
        }
    }
}

/// The program that scripts run in, as they see it. The methods and what they take and return stand in `docs/worker-protocol.md`.
pub trait Host: Send + Sync + fmt::Debug {
    /// Says whether somebody sees what scripts show, and answers what they ask.
    fn has_ui(&self) -> bool {
        false
    }

    /// Returns the values of flags that the user gave, by their names.
    fn flags(&self) -> JsonObject {
        JsonObject::new()
    }

    /// Hears a line that a worker, or one of its scripts, printed. The default is to pass over it; the last lines are kept for
    /// the message of a worker that ends.
    fn said(&self, _worker: &str, _line: &str) {}

    /// Answers a request of a script.
    ///
    /// # Errors
    /// When there is no such method, or it cannot be done; the script is told.
    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>>;
}

/// A program without a session and without anybody to ask.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        _params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match method {
            // Nobody answers, and nothing is known.
            "ui/notify" | "ui/confirm" | "ui/select" | "ui/input" | "session/read" => Ok(json!({})),
            _ if method.starts_with("session/") => Err(Refusal::no_session(method)),
            _ => Err(Refusal::NoMethod),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Answers what a worker asks.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) host: Arc<dyn Host>,
    places: Arc<Semaphore>,
}

#[derive(Deserialize)]
struct Source {
    path: String,
    text: String,
}

impl Desk {
    pub(super) fn new(host: Arc<dyn Host>) -> Self {
        Self {
            host,
            places: Arc::new(Semaphore::new(MOST_REQUESTS)),
        }
    }

    /// Returns a place for a request, if there is one.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Says, as a message, that there is no place for a request.
    pub(super) fn refusal(id: u64) -> Vec<u8> {
        let problem = format!("more than {MOST_REQUESTS} requests at once");
        message(id, Err(Refusal::Failed(problem)))
    }

    /// Says, as a message, that nobody answers a question.
    pub(super) fn unanswered(id: u64) -> Vec<u8> {
        message(id, Ok(json!({})))
    }

    /// Answers a request, as a message.
    pub(super) async fn answer(&self, id: u64, method: &str, params: Value) -> Vec<u8> {
        message(id, self.ask(method, params).await)
    }
    async fn ask(&self, method: &str, params: Value) -> Result<Value, Refusal> {
        if method != "source/strip" {
            return self.host.answer(method, &params).await;
        }
        let Source { path, text } =
            Source::deserialize(params).map_err(|error| Refusal::Failed(error.to_string()))?;
        // Deep sources take more stack than a thread has, and large ones their time.
        let (sender, receiver) = oneshot::channel();
        let work = move || drop(sender.send(script::strip_types(&path, &text)));
        std::thread::Builder::new()
            .name("strip-types".to_owned())
            .stack_size(STACK)
            .spawn(work)
            .map_err(|error| Refusal::Failed(error.to_string()))?;
        let stripped = receiver.await;
        let code = stripped.map_err(|error| Refusal::Failed(error.to_string()))??;
        Ok(json!({ "code": code }))
    }
}

/// Writes an answer.
pub(super) fn message(id: u64, answer: Result<Value, Refusal>) -> Vec<u8> {
    let message = match answer {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(refusal) => json!({
            "jsonrpc": "2.0", "id": id,
            "error": { "code": refusal.code(), "message": refusal.to_string() },
        }),
    };
    message.to_string().into_bytes()
}
