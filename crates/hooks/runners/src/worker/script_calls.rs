//! Calls of what scripts add to a session: their tools, commands and models.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_process::CancellationToken;
use tokio::time::Instant;

use super::calls::{CallNotes, Updates};
use super::connection::Connection;
use super::error::WorkerError;
use super::script::{ScriptCredentials, ScriptModelEnd, ScriptModelPart, ToolAnswer};
use super::script_server::{ScriptToolCall, ToolUpdates};
use super::scripts::Worker;

/// Receives the parts of a model's answer.
pub type ModelUpdates = Arc<dyn Fn(ScriptModelPart) + Send + Sync>;

impl Worker {
    /// Runs a tool of a script. The tool is given by the number of its script and its name. `updates` receives the
    /// tool's output so far, in order and before the answer. It must not block.
    pub(super) async fn run_tool(
        connection: &Connection,
        (script, tool): (usize, &str),
        call: ScriptToolCall<'_>,
        updates: Option<ToolUpdates>,
        (deadline, cancel): (Instant, &CancellationToken),
    ) -> Result<ToolAnswer, WorkerError> {
        let mut params = json!({
            "script": script,
            "tool": tool,
            "tool_use_id": call.id,
            "input": call.input,
            "updates": updates.is_some(),
        });
        add_session(&mut params, call.session, connection);
        let params = params.to_string();
        let updates = updates.map(|updates| -> Updates {
            Arc::new(move |partial| {
                let partial = serde_json::from_value(partial);
                partial.map(&*updates).map_err(|error| error.to_string())
            })
        });
        let request: (&str, &[&[u8]]) = ("tool/run", &[params.as_bytes()]);
        let notes = CallNotes {
            updates,
            ..CallNotes::default()
        };
        let answer = connection.call(request, notes, deadline, cancel).await?;
        serde_json::from_slice(&answer).map_err(|error| WorkerError::Call {
            message: format!("invalid answer of tool `{tool}`: {error}"),
        })
    }

    /// Returns the key and the headers with which a model of a script's provider is called. The script resolves them,
    /// because they may come from its environment or from a command.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the script has no such provider.
    pub async fn credentials(
        &self,
        (script, provider, model): (usize, &str, &str),
        within: Duration,
    ) -> Result<ScriptCredentials, WorkerError> {
        let params = json!({ "script": script, "provider": provider, "model": model }).to_string();
        let never = CancellationToken::new();
        let params = [params.as_bytes()];
        let answer = self.call("provider/credentials", script, &params, within, &never);
        // The cause could quote the key.
        serde_json::from_slice(&answer.await?).map_err(|_| WorkerError::Call {
            message: format!("the credentials of the provider `{provider}` are invalid"),
        })
    }

    /// Lets a script call a model of its provider. `updates` receives the parts of the answer, in order. It must not
    /// block.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the answer is invalid.
    pub async fn run_model(
        &self,
        script: usize,
        request: &Value,
        updates: ModelUpdates,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<ScriptModelEnd, WorkerError> {
        let params = json!({ "script": script, "request": request }).to_string();
        let deadline = Instant::now() + within;
        let connection = self.reach(script, deadline, cancel).await?;
        let updates: Updates = Arc::new(move |part| {
            let part = ScriptModelPart::deserialize(part);
            part.map(&*updates).map_err(|error| error.to_string())
        });
        let request: (&str, &[&[u8]]) = ("provider/stream", &[params.as_bytes()]);
        let notes = CallNotes {
            updates: Some(updates),
            ..CallNotes::default()
        };
        let answer = connection.call(request, notes, deadline, cancel).await?;
        serde_json::from_slice(&answer).map_err(|error| WorkerError::Call {
            message: format!("invalid answer of a model: {error}"),
        })
    }

    /// Runs a command of a script, with the state that the script has for a session, if it has one for each. The command
    /// is given by the number of its script, its name and the text after the name.
    pub(super) async fn run_command(
        connection: &Connection,
        (script, command, args): (usize, &str, &str),
        session: Option<&str>,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<(), WorkerError> {
        let mut params = json!({ "script": script, "command": command, "args": args });
        add_session(&mut params, session, connection);
        let params = params.to_string();
        let request: (&str, &[&[u8]]) = ("command/run", &[params.as_bytes()]);
        let ran = connection.call(request, CallNotes::default(), deadline, cancel);
        ran.await.map(drop)
    }
}

/// Adds the session to the parameters of a call, if there is one and the worker keeps a state for each.
fn add_session(params: &mut Value, session: Option<&str>, connection: &Connection) {
    let session = session.filter(|_| connection.separates_sessions());
    if let (Some(params), Some(session)) = (params.as_object_mut(), session) {
        params.insert("session".to_owned(), session.into());
    }
}
