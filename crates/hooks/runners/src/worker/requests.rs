//! Answers the requests of one worker or extension, with the help of the host.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;
use tenterhook_sdk::javascript;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::extension_protocol::ExtensionProtocol;
use super::host::Host;
use super::refusal::Refusal;
use super::script;

/// How many requests of one worker may be pending at once. More are refused.
const MAX_REQUESTS: usize = 64;

/// Answers the requests of one worker or extension.
#[derive(Debug, Clone)]
pub(super) struct Requests {
    pub(super) host: Arc<dyn Host>,
    sender: Sender,
    places: Arc<Semaphore>,
}

/// Who makes the requests.
#[derive(Debug, Clone)]
pub(super) enum Sender {
    /// The scripts of a worker.
    Scripts(Arc<dyn LateRegistration>),
    /// An extension, in the protocol of its system.
    Extension(Arc<ExtensionProtocol>),
}

/// Adds what scripts register after they were loaded.
pub(super) trait LateRegistration: fmt::Debug + Send + Sync {
    /// Answers `script/register`. This must not wait, because the script waits for it.
    fn register(&self, host: &dyn Host, params: &Value) -> Result<Value, Refusal>;
}

#[derive(Deserialize)]
struct Source {
    path: String,
    text: String,
}

impl Requests {
    pub(super) fn new(host: Arc<dyn Host>, sender: Sender) -> Self {
        Self {
            host,
            sender,
            places: Arc::new(Semaphore::new(MAX_REQUESTS)),
        }
    }

    /// Reserves a place for a request. Returns `None` if too many are pending.
    pub(super) fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).try_acquire_owned().ok()
    }

    /// Returns the message that refuses a request because too many are pending.
    pub(super) fn too_many(id: u64) -> Vec<u8> {
        let problem = format!("more than {MAX_REQUESTS} requests at once");
        message(id, Err(Refusal::Failed(problem)))
    }

    /// Returns the message for a question whose call has ended, so that no one needs the answer any more.
    pub(super) fn unanswered(&self, id: u64, method: &str, params: &Value) -> Vec<u8> {
        let nothing = json!({});
        let answer = match &self.sender {
            Sender::Scripts(_) => nothing,
            Sender::Extension(protocol) => (protocol.answer)(method, params, Some(&nothing)),
        };
        message(id, Ok(answer))
    }

    /// Answers a request. Returns the answer as a message.
    pub(super) async fn answer(&self, id: u64, method: &str, params: &Value) -> Vec<u8> {
        let host = &*self.host;
        let answer = match &self.sender {
            Sender::Scripts(scripts) => match method {
                "source/strip" => strip(params).await,
                "source/modules" => Ok(modules()),
                "script/register" => scripts.register(host, params),
                _ => host.answer(method, params).await,
            },
            Sender::Extension(protocol) => answer_extension(protocol, host, method, params).await,
        };
        message(id, answer)
    }
}

/// Passes a request of an extension on to the host, translated from the protocol of its system.
async fn answer_extension(
    protocol: &ExtensionProtocol,
    host: &dyn Host,
    method: &str,
    params: &Value,
) -> Result<Value, Refusal> {
    if method == protocol.copy_method {
        return copy_session(host).await;
    }
    let Some(request) = (protocol.host_request)(method, params) else {
        return (protocol.refuse)(method).ok_or(Refusal::NoMethod);
    };
    let (own_method, mut own_params) = request.map_err(Refusal::Invalid)?;
    if !host.has_ui() {
        return Ok((protocol.answer)(method, params, None));
    }
    if let (Some(own), Some(session)) = (own_params.as_object_mut(), params.get("session")) {
        own.insert("session".to_owned(), session.clone());
    }
    let answer = host.answer(own_method, &own_params).await?;
    Ok((protocol.answer)(method, params, Some(&answer)))
}

/// Copies the conversation to a new session. Returns its id in the form that extensions expect.
async fn copy_session(host: &dyn Host) -> Result<Value, Refusal> {
    let copied = host.answer("session/copy", &json!({})).await;
    if copied == Err(Refusal::NoMethod) {
        let reason = "there is no session to copy".to_owned();
        return Err(Refusal::Unavailable(reason));
    }
    let copied = copied?;
    Ok(json!({ "conversationId": copied.get("session") }))
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
