//! What a session can ask of a script, apart from calling its hooks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::Value;
use tenterhook_process::CancellationToken;

use super::error::WorkerError;
use super::script::{ScriptTool, ToolAnswer};

/// A call of a script's tool.
#[derive(Debug, Clone, Copy)]
pub struct ScriptToolCall<'a> {
    /// The session that makes the call. `None` outside of sessions.
    pub session: Option<&'a str>,
    /// The id of the call.
    pub id: &'a str,
    /// The arguments.
    pub input: &'a Value,
}

/// Receives the output of a tool so far.
pub type ToolUpdates = Arc<dyn Fn(ToolAnswer) + Send + Sync>;

/// A script that is loaded in a worker. The script stays loaded while this exists.
pub trait ScriptServer: Send + Sync + fmt::Debug {
    /// Runs a tool of the script. `updates` receives the tool's output so far, in order and before the answer. It must
    /// not block.
    ///
    /// # Errors
    /// Fails if there is no answer, if the answer is invalid, or if the tool failed.
    fn run_tool<'a>(
        &'a self,
        tool: &'a str,
        call: ScriptToolCall<'a>,
        updates: Option<ToolUpdates>,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolAnswer, WorkerError>>;

    /// Runs a command of the script in a session. The command is given by its name and the text after it.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the command failed.
    fn run_command<'a>(
        &'a self,
        command: (&'a str, &'a str),
        session: &'a str,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), WorkerError>>;

    /// Returns the lines with which the script shows something: its footer, or a call or result of one of its tools.
    /// `None` if the script has no form of its own for it.
    ///
    /// # Errors
    /// Fails if there is no answer within a second, or if the script failed.
    fn render<'a>(
        &'a self,
        rendered: Rendered<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Vec<String>>, WorkerError>>;
}

/// A script whose version can be replaced. Tools and commands refer to it, so that they run the version in force.
#[derive(Debug)]
pub struct ScriptInForce {
    server: Mutex<Arc<dyn ScriptServer>>,
}

impl ScriptInForce {
    /// Puts a version of a script in force.
    pub fn new(server: Arc<dyn ScriptServer>) -> Self {
        Self {
            server: Mutex::new(server),
        }
    }

    /// Replaces the version. Calls in progress finish with the version that they started with.
    pub fn replace_with(&self, other: &Self) {
        let server = other.server();
        *self.server.lock() = server;
    }

    fn server(&self) -> Arc<dyn ScriptServer> {
        Arc::clone(&self.server.lock())
    }
}

impl ScriptServer for ScriptInForce {
    fn run_tool<'a>(
        &'a self,
        tool: &'a str,
        call: ScriptToolCall<'a>,
        updates: Option<ToolUpdates>,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ToolAnswer, WorkerError>> {
        let server = self.server();
        Box::pin(async move { server.run_tool(tool, call, updates, within, cancel).await })
    }

    fn run_command<'a>(
        &'a self,
        command: (&'a str, &'a str),
        session: &'a str,
        within: Duration,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<(), WorkerError>> {
        let server = self.server();
        Box::pin(async move { server.run_command(command, session, within, cancel).await })
    }

    fn render<'a>(
        &'a self,
        rendered: Rendered<'a>,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Option<Vec<String>>, WorkerError>> {
        let server = self.server();
        Box::pin(async move { server.render(rendered, cancel).await })
    }
}

/// Something that a script shows as lines of text.
#[derive(Debug, Clone, Copy)]
pub enum Rendered<'a> {
    /// A call of the tool with this name, with its arguments.
    ToolCall(&'a str, &'a Value),
    /// The result of the tool with this name.
    ToolResult(&'a str, &'a tenterhook_protocol::ToolResult),
    /// The lines above the prompt.
    Footer,
}

/// Something that a script registers after it was loaded.
#[derive(Debug, Clone, PartialEq)]
pub enum ScriptAddition {
    /// A tool for the model.
    Tool(ScriptTool),
    /// Lines above the prompt, which the script renders whenever they are shown.
    Footer,
}
