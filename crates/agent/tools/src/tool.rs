//! The interface of a tool, and the services that a running tool may use.
//!
//! A tool describes itself and runs; it does not judge calls. Permission rules, hooks and the user have decided before
//! [`Tool::run`] is called, and the result passes the hooks before anyone sees it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use serde_json::Value;
use tenterhook_protocol::{JsonObject, SessionId, TaskId, ToolResult, ToolUseId};
use tokio_util::sync::CancellationToken;

use crate::failure::{InvalidInput, ToolFailure};
use crate::progress::Progress;
use crate::protected_file::WriteGuard;
use crate::restriction::{AllowedFolders, Restrictions};
use crate::retry::ToolRetry;

/// A tool that the agent can call.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns the name that models and rules use.
    fn name(&self) -> &str;

    /// Returns the description for the model.
    fn description(&self) -> String;

    /// Returns the JSON Schema of the arguments.
    fn schema(&self) -> Value;

    /// Returns the tool's category for hooks: `shell`, `filesystem`, `agent` …
    fn category(&self) -> &'static str;

    /// Returns whether the tool changes nothing. By default, such tools run without a question, and several can run at
    /// the same time.
    fn is_read_only(&self) -> bool;

    /// Returns whether the tool only gives a task to another agent, which has the same restrictions. The default is no.
    fn delegates(&self) -> bool {
        false
    }

    /// Returns whether a call needs the user's approval by default. The default follows [`Tool::is_read_only`].
    fn wants_approval(&self) -> bool {
        !self.is_read_only()
    }

    /// Returns whether the tool ends by itself, and soon, when its context is cancelled. The agent then waits for it as
    /// long as it takes. Any other tool is dropped after the agent's grace period. The default is `false`.
    fn ends_itself(&self) -> bool {
        false
    }

    /// Returns whether repeating the same call is normal, such as polling for a result, and not a sign of a loop. The
    /// default is `false`.
    fn may_repeat(&self) -> bool {
        false
    }

    /// Returns how failed runs are retried. By default, they are [not retried](ToolRetry::once). A
    /// [permanent failure](ToolFailure::is_permanent_failure) is never retried.
    fn retry(&self) -> ToolRetry {
        ToolRetry::once()
    }

    /// Checks the arguments of a call. It is called for each call, and again after a hook changed them.
    ///
    /// # Errors
    ///
    /// Describes what is wrong in words that the model can act on.
    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput>;

    /// Returns the path of the file that a call changes, as the call names it. If the file is
    /// [protected](crate::ProtectedFiles), the user is asked. By default a call changes no file.
    fn changed_file<'a>(&self, _input: &'a JsonObject) -> Option<&'a str> {
        None
    }

    /// Returns the lines with which a terminal shows a call, if the tool has its own form for them. Nothing has judged
    /// the arguments yet. By default, a terminal shows the name and the arguments.
    fn call_lines<'a>(&'a self, _input: &'a JsonObject) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(future::ready(None))
    }

    /// Returns the lines with which a terminal shows a result, if the tool has its own form for them.
    fn result_lines<'a>(&'a self, _result: &'a ToolResult) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(future::ready(None))
    }

    /// Runs the tool on arguments that [`Tool::check`] accepted.
    ///
    /// A tool that ends by itself when `context` is cancelled can clean up first. Any other is dropped after a grace
    /// period, see [`Tool::ends_itself`].
    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>>;
}

/// The services that a running tool may use.
#[derive(Clone)]
pub struct ToolContext<'a> {
    /// The session's directory. Relative paths start here.
    pub cwd: &'a Path,
    /// The id of the session.
    pub session: &'a SessionId,
    /// The id that the model gave the call.
    pub call: &'a ToolUseId,
    /// Cancelled when the run is cancelled.
    pub cancel: CancellationToken,
    /// Accepts partial results.
    pub progress: Progress,
    /// Passes tasks to other agents.
    pub delegate: &'a dyn Delegate,
    /// The restrictions of the agent.
    pub restrictions: &'a Restrictions,
    /// Writes files, except protected ones whose change the user did not approve.
    pub write_guard: WriteGuard,
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl ToolContext<'_> {
    pub(crate) fn path(&self, given: &str) -> PathBuf {
        self.cwd.join(given)
    }

    /// Returns the folders that the tool called `tool` may use.
    pub(crate) fn folders(&self, tool: &str) -> AllowedFolders {
        self.restrictions.folders(tool, self.cwd)
    }
}

/// Passes tasks to other agents. The agent implements it; the tools [`TransferTask`](crate::TransferTask) and those for
/// [background tasks](crate::add_background_tools) call it.
pub trait Delegate: Send + Sync {
    /// Has another agent work on a task, waits for it and returns its answer.
    fn transfer<'a>(
        &'a self,
        agent: &'a str,
        task: String,
    ) -> BoxFuture<'a, Result<String, ToolFailure>>;

    /// Starts a background task of another agent, and returns the task's id.
    ///
    /// # Errors
    /// Fails if there is no such agent, or too many tasks are running.
    fn start(&self, agent: &str, task: String) -> Result<TaskId, ToolFailure>;

    /// Lists the background tasks with their states, for the model.
    ///
    /// # Errors
    /// Fails if the agent has no background tasks.
    fn list(&self) -> Result<String, ToolFailure>;

    /// Waits up to `wait` for a background task to end, then describes the task to the model.
    fn view<'a>(
        &'a self,
        task: &'a str,
        wait: Duration,
    ) -> BoxFuture<'a, Result<String, ToolFailure>>;

    /// Cancels a background task, waits for it to end and describes it to the model.
    fn stop<'a>(&'a self, task: &'a str) -> BoxFuture<'a, Result<String, ToolFailure>>;
}
