//! The requests that scripts make to the program that runs them.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;
use tenterhook_sdk::javascript;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::refusal::Refusal;
use super::script;
use super::script_server::{ScriptAddition, ScriptServer};

/// How many requests of one worker may be pending at once. More are refused.
const MAX_REQUESTS: usize = 64;

/// The program that runs scripts, as they see it.
///
/// `docs/reference/worker-protocol.md` lists the methods with their parameters and results.
pub trait Host: Send + Sync + fmt::Debug {
    /// Returns whether someone sees what scripts show and answers their questions.
    fn has_ui(&self) -> bool {
        false
    }

    /// Returns whether gates of a script deny if the script failed when the session started. There is
    /// no default, so that a host in front of another one cannot forget it.
    fn is_strict(&self) -> bool;

    /// Returns the values of the flags that the user gave, by name.
    fn flags(&self) -> JsonObject {
        JsonObject::new()
    }

    /// Returns the name of the state of a script for calls of `session`. `None` means that a script has only one state,
    /// which is the default. A subagent uses the state of the session that started it.
    fn script_session(&self, _session: &str) -> Option<String> {
        None
    }

    /// Returns the session of the agent that a subagent works for, if `session` belongs to a subagent that works. The
    /// default knows no subagents.
    fn main_session(&self, _session: &str) -> Option<String> {
        None
    }

    /// Returns the answer to a question whose call has ended, so that no one needs the answer any more. The default
    /// is an empty object.
    fn unanswered(&self, _method: &str, _params: &Value) -> Value {
        json!({})
    }

    /// Receives a line that a worker or one of its scripts printed on stderr. The default ignores
    /// it. Independently of this method, the last lines are kept for the error message if the
    /// worker ends.
    fn on_output(&self, _worker: &str, _line: &str) {}

    /// Adds something that a script registers after it was loaded, for `session` if scripts have a state for each
    /// session. The default ignores it, because without a session nothing uses it.
    ///
    /// # Errors
    /// Fails if it cannot be added. The script receives the error.
    fn add(
        &self,
        _script: Arc<dyn ScriptServer>,
        _addition: ScriptAddition,
        _session: Option<&str>,
    ) -> Result<(), Refusal> {
        Ok(())
    }

    /// Answers a request of a script.
    ///
    /// # Errors
    /// Fails if there is no such method, or if the request cannot be fulfilled. The script receives
    /// the error.
    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>>;
}

/// A program without a session and without a user.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn is_strict(&self) -> bool {
        false
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        _params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match method {
            // An empty object means: the user did not answer, or nothing is known.
            "ui/notify" | "ui/show" | "ui/confirm" | "ui/select" | "ui/input" | "ui/editor"
            | "ui/editor_text" | "ui/dismiss" | "session/read" => Ok(json!({})),
            "session/copy" => Err(Refusal::NoMethod),
            _ if method.starts_with("session/") || method.starts_with("model/") => {
                Err(Refusal::no_session(method))
            }
            _ => Err(Refusal::NoMethod),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Answers the requests of a worker.
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
            places: Arc::new(Semaphore::new(MAX_REQUESTS)),
        }
    }

    /// Reserves a place for a request. Returns `None` if too many are pending.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Returns the message that refuses a request because too many are pending.
    pub(super) fn refusal(id: u64) -> Vec<u8> {
        let problem = format!("more than {MAX_REQUESTS} requests at once");
        message(id, Err(Refusal::Failed(problem)))
    }

    /// Returns the message for a question that got no answer.
    pub(super) fn unanswered(&self, id: u64, method: &str, params: &Value) -> Vec<u8> {
        message(id, Ok(self.host.unanswered(method, params)))
    }

    /// Answers a request. Returns the answer as a message.
    pub(super) async fn answer(&self, id: u64, method: &str, params: &Value) -> Vec<u8> {
        message(id, self.ask(method, params).await)
    }

    async fn ask(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        match method {
            "source/strip" => strip(params).await,
            "source/modules" => Ok(modules()),
            _ => self.host.answer(method, params).await,
        }
    }
}

/// Returns the modules that replace packages, by name. A worker needs most of them, so they are sent together.
fn modules() -> Value {
    let texts = javascript::MODULES.iter();
    let texts: JsonObject = texts
        .map(|(name, text)| ((*name).to_owned(), (*text).into()))
        .collect();
    json!({ "modules": texts })
}

/// Removes the types from a source.
async fn strip(params: &Value) -> Result<Value, Refusal> {
    let Source { path, text } =
        Source::deserialize(params).map_err(|error| Refusal::Failed(error.to_string()))?;
    let (sender, receiver) = oneshot::channel();
    let work = move || drop(sender.send(script::strip_types(&path, &text)));
    script::strip_thread(work).map_err(|error| Refusal::Failed(error.to_string()))?;
    let stripped = receiver.await;
    let code = stripped.map_err(|error| Refusal::Failed(error.to_string()))??;
    Ok(json!({ "code": code }))
}

/// Writes an answer as a message.
pub(super) fn message(id: u64, answer: Result<Value, Refusal>) -> Vec<u8> {
    let id = Value::from(id);
    let message = match answer {
        Ok(result) => tenterhook_jsonrpc::result(&id, &result),
        Err(refusal) => refusal.to_error().about(&id).to_message(),
    };
    message.to_string().into_bytes()
}
