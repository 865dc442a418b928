//! The program that runs scripts, as they see it.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tenterhook_protocol::JsonObject;

use super::refusal::Refusal;
use super::script_server::{ScriptAddition, ScriptServer};

/// The program that runs scripts, as they see it.
///
/// `docs/reference/worker-protocol.md` lists the methods with their parameters and results. No method has a default, so
/// that a host in front of another one cannot forget to pass something on.
pub trait Host: Send + Sync + fmt::Debug {
    /// Returns whether someone sees what scripts show and answers their questions.
    fn has_ui(&self) -> bool;

    /// Returns whether gates of a script deny if the script failed when the session started.
    fn is_strict(&self) -> bool;

    /// Returns the values of the flags that the user gave, by name.
    fn flags(&self) -> JsonObject;

    /// Returns the name of the state of a script for calls of `session`. `None` means that a script has only one state.
    /// A subagent uses the state of the session that started it.
    fn script_session(&self, session: &str) -> Option<String>;

    /// Returns the session of the agent that a subagent works for, if `session` belongs to a subagent that works.
    fn main_session(&self, session: &str) -> Option<String>;

    /// Receives a line that a worker or one of its scripts printed on stderr. Independently of this method, the last line
    /// is kept for the error message if the worker ends.
    fn on_output(&self, worker: &str, line: &str);

    /// Adds something that a script registers after it was loaded, for `session` if scripts have a state for each
    /// session. Without a session, nothing uses it, so a host may ignore it.
    ///
    /// # Errors
    /// Fails if it cannot be added. The script receives the error.
    fn add(
        &self,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        session: Option<&str>,
    ) -> Result<(), Refusal>;

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

/// A program without a session and without a user. It ignores what scripts print and add.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHost;

impl Host for NoHost {
    fn has_ui(&self) -> bool {
        false
    }

    fn is_strict(&self) -> bool {
        false
    }

    fn flags(&self) -> JsonObject {
        JsonObject::new()
    }

    fn script_session(&self, _session: &str) -> Option<String> {
        None
    }

    fn main_session(&self, _session: &str) -> Option<String> {
        None
    }

    fn on_output(&self, _worker: &str, _line: &str) {}

    fn add(
        &self,
        _script: Arc<dyn ScriptServer>,
        _addition: ScriptAddition,
        _session: Option<&str>,
    ) -> Result<(), Refusal> {
        Ok(())
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
