//! Tools for the model and commands for the user that scripts and extensions provide in addition to hooks.

mod additions;
mod host;
mod replacement;
mod session_hosts;
mod session_request;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, SessionId, ToolResult};
use tenterhook_runners::worker::{
    CommandOutput, ExtensionCommand, ExtensionInForce, ExtensionTool, Invocation, Rendered,
    ScriptCommand, ScriptServer, ScriptTool, ScriptToolCall, ToolSnapshots, ToolUpdates,
    WorkerError,
};
use tokio_util::sync::CancellationToken;

pub use self::additions::ScriptAdditions;
pub(crate) use self::host::ScriptedAgent;
pub use self::host::{ReplacedTool, ScriptHost, Spelling};
pub use self::replacement::add_script_tool;
pub use self::session_hosts::SessionHosts;
pub(crate) use self::session_request::SessionRequestParams;
pub use self::session_request::{PendingRequest, SessionRequest};
pub use tenterhook_tools::ArgumentSchemaError;
use tenterhook_tools::{ArgumentSchema, InvalidInput, Progress, Tool, ToolContext, ToolFailure};

/// The time limit of a tool or command that declares none: the default of kodelet.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(10);

/// The process that serves a tool or command.
#[derive(Debug, Clone)]
enum Server {
    /// A script, which stays loaded in its worker.
    Script(Arc<dyn ScriptServer>),
    /// The extension's own process.
    Process(Arc<ExtensionInForce>),
}

/// A tool that a script or extension provides.
#[derive(Debug, Clone)]
pub struct ForeignTool {
    server: Server,
    name: String,
    description: String,
    arguments: ArgumentSchema,
    timeout: Duration,
    renders_call: bool,
    renders_result: bool,
}

impl ForeignTool {
    /// Creates the tool of a script. The tool keeps the script loaded in its worker.
    ///
    /// # Errors
    /// Fails if the tool's JSON schema is invalid, so that arguments cannot be checked against it.
    pub fn of_script(
        script: Arc<dyn ScriptServer>,
        tool: ScriptTool,
    ) -> Result<Self, ArgumentSchemaError> {
        Ok(Self {
            server: Server::Script(script),
            renders_call: tool.renders_call,
            renders_result: tool.renders_result,
            arguments: ArgumentSchema::compile(&tool.name, tool.parameters)?,
            name: tool.name,
            description: tool.description,
            timeout: DEFAULT_TIMEOUT,
        })
    }

    /// Creates the tool of a kodelet extension.
    ///
    /// # Errors
    /// Fails if the tool's JSON schema is invalid, so that arguments cannot be checked against it.
    pub fn of_process(
        extension: Arc<ExtensionInForce>,
        tool: ExtensionTool,
    ) -> Result<Self, ArgumentSchemaError> {
        let timeout = tool.timeout();
        Ok(Self {
            server: Server::Process(extension),
            arguments: ArgumentSchema::compile(&tool.name, tool.input_schema.into())?,
            name: tool.name,
            description: tool.description,
            timeout,
            renders_call: false,
            renders_result: false,
        })
    }

    async fn run(
        &self,
        input: JsonObject,
        context: ToolContext<'_>,
    ) -> Result<ToolResult, ToolFailure> {
        let cancel = &context.cancel;
        let result = match &self.server {
            Server::Script(script) => script
                .run_tool(
                    &self.name,
                    ScriptToolCall {
                        session: Some(context.session.as_str()),
                        id: context.call.as_str(),
                        input: &Value::Object(input),
                    },
                    updates(&context.progress),
                    self.timeout,
                    cancel,
                )
                .await
                .map(ToolResult::from),
            Server::Process(extension) => {
                let session = session_context(context.session, context.cwd);
                let output = extension
                    .get()
                    .run_tool(
                        (&self.name, &input),
                        (&session, Some(context.session.as_str())),
                        snapshots(&context.progress),
                        self.timeout,
                        cancel,
                    )
                    .await;
                output.map(|output| {
                    if output.error.is_empty() {
                        text_with(output.content, output.data)
                    } else {
                        ToolResult::error(output.error)
                    }
                })
            }
        };
        // No extension protocol can say that a failure is permanent, so the call may be retried.
        result.map_err(|error| ToolFailure::new(format!("tool `{}`: {error}", self.name)))
    }
}

impl ForeignTool {
    /// Returns the lines with which the script shows a call or result. If it fails, the default form is shown.
    async fn lines(&self, rendered: Rendered<'_>) -> Option<Vec<String>> {
        let Server::Script(script) = &self.server else {
            return None;
        };
        let never = CancellationToken::new();
        script.render(rendered, &never).await.ok().flatten()
    }

    async fn call_lines(&self, input: &JsonObject) -> Option<Vec<String>> {
        if !self.renders_call {
            return None;
        }
        let input = Value::Object(input.clone());
        self.lines(Rendered::ToolCall(&self.name, &input)).await
    }

    async fn result_lines(&self, result: &ToolResult) -> Option<Vec<String>> {
        if !self.renders_result {
            return None;
        }
        self.lines(Rendered::ToolResult(&self.name, result)).await
    }
}

/// Returns the receiver of partial results of a script's tool, if anyone reads them.
fn updates(progress: &Progress) -> Option<ToolUpdates> {
    let progress = progress.is_wanted().then(|| progress.clone())?;
    Some(Arc::new(move |partial| progress.report(partial.into())))
}

/// Returns the receiver of partial results of a kodelet extension's tool, if anyone reads them.
fn snapshots(progress: &Progress) -> Option<ToolSnapshots> {
    let progress = progress.is_wanted().then(|| progress.clone())?;
    Some(Arc::new(move |snapshot| {
        progress.report(text_with(snapshot.content, snapshot.data));
    }))
}

fn text_with(text: String, details: Option<JsonObject>) -> ToolResult {
    ToolResult::text(text).with_details(details)
}

/// Describes the session in the form that kodelet's extensions expect.
fn session_context(session: &SessionId, cwd: &std::path::Path) -> JsonObject {
    let mut context = JsonObject::new();
    for key in ["sessionId", "conversationId"] {
        context.insert(key.to_owned(), session.as_str().into());
    }
    context.insert("cwd".to_owned(), cwd.to_string_lossy().into());
    context.insert("invokedBy".to_owned(), "main".into());
    context
}

impl Tool for ForeignTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> String {
        self.description.clone()
    }

    fn schema(&self) -> Value {
        self.arguments.schema().clone()
    }

    fn category(&self) -> &'static str {
        "extension"
    }

    /// It is not known whether the tool changes anything.
    fn is_read_only(&self) -> bool {
        false
    }

    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput> {
        self.arguments.check(input).map_err(|problem| InvalidInput {
            tool: self.name.clone(),
            problem: problem.to_string(),
        })
    }

    fn call_lines<'a>(&'a self, input: &'a JsonObject) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(self.call_lines(input))
    }

    fn result_lines<'a>(&'a self, result: &'a ToolResult) -> BoxFuture<'a, Option<Vec<String>>> {
        Box::pin(self.result_lines(result))
    }

    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>> {
        Box::pin(self.run(input, context))
    }
}

/// A command that a script or extension provides.
#[derive(Debug, Clone)]
pub struct ForeignCommand {
    server: Server,
    /// The names by which the user can call it, without the slash. The first is its main name, the others are
    /// aliases.
    pub names: Vec<String>,
    /// The description for the user.
    pub description: String,
    /// The file of the script.
    pub path: Option<PathBuf>,
    timeout: Duration,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandEnd {
    /// The command has done its work.
    Done,
    /// The command returned text for the user.
    Respond(String),
    /// The command returned a prompt for the agent.
    Prompt(String),
    /// The command does not apply, so the line is an ordinary prompt.
    Passed,
}

/// The error of a command that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("command `/{name}`: {problem}")]
pub struct CommandFailure {
    /// The command.
    pub name: String,
    /// What went wrong.
    pub problem: String,
}

impl ForeignCommand {
    /// Creates the command of a script. The command keeps the script loaded in its worker.
    pub fn of_script(
        script: Arc<dyn ScriptServer>,
        command: ScriptCommand,
        path: &std::path::Path,
    ) -> Self {
        Self {
            path: Some(path.to_owned()),
            server: Server::Script(script),
            names: vec![command.name],
            description: command.description,
            timeout: DEFAULT_TIMEOUT,
        }
    }

    /// Creates the command of a kodelet extension.
    pub fn of_process(extension: Arc<ExtensionInForce>, command: ExtensionCommand) -> Self {
        let timeout = command.timeout();
        let mut names = vec![command.name];
        names.extend(command.aliases);
        Self {
            path: None,
            server: Server::Process(extension),
            names,
            description: command.description,
            timeout,
        }
    }

    /// Runs the command on a line that begins with a slash and one of its names.
    ///
    /// # Errors
    /// Fails if the command fails or gives no valid answer.
    pub async fn run(
        &self,
        line: &str,
        (session, cwd): (&SessionId, &std::path::Path),
        cancel: &CancellationToken,
    ) -> Result<CommandEnd, CommandFailure> {
        let (used, args) = split(line);
        let name = self.names.first().map_or(used, String::as_str);
        let failure = |problem: String| CommandFailure {
            name: name.to_owned(),
            problem,
        };
        let failed = |error: WorkerError| failure(error.to_string());
        match &self.server {
            Server::Script(script) => {
                let session = session.as_str();
                let run = script.run_command((name, args), session, self.timeout, cancel);
                run.await.map_err(failed)?;
                Ok(CommandEnd::Done)
            }
            Server::Process(extension) => {
                let (input, invocation) = invocation(line, used, args);
                let context = session_context(session, cwd);
                let context = (&context, Some(session.as_str()));
                let given = (&input, &invocation);
                let extension = extension.get();
                let run = extension.run_command(name, given, context, self.timeout, cancel);
                match run.await.map_err(failed)? {
                    CommandOutput::Pass => Ok(CommandEnd::Passed),
                    CommandOutput::Respond { response } => Ok(CommandEnd::Respond(response)),
                    CommandOutput::RunAgent { prompt, .. } => Ok(CommandEnd::Prompt(prompt)),
                    CommandOutput::Other { action } => Err(failure(format!(
                        "unknown action `{}`, expected `pass`, `respond` or `runAgent`",
                        action.escape_debug()
                    ))),
                }
            }
        }
    }
}

/// Splits a line into the name of the command and its arguments.
fn split(line: &str) -> (&str, &str) {
    let line = line.strip_prefix('/').unwrap_or(line);
    let (name, args) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    (name, args.trim())
}

/// Returns the words of a line in kodelet's form. Words of the form `name=value` become the input.
fn invocation(line: &str, used: &str, args: &str) -> (JsonObject, Invocation) {
    let words: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    let flags: JsonObject = words
        .iter()
        .filter_map(|word| word.trim_start_matches('-').split_once('='))
        .map(|(name, value)| (name.to_owned(), value.into()))
        .collect();
    let invocation = Invocation {
        raw: line.to_owned(),
        command_name: used.to_owned(),
        args: words,
        flags: flags.clone(),
    };
    (flags, invocation)
}

impl fmt::Display for ForeignCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.names.first().map(String::as_str).unwrap_or_default();
        write!(f, "/{name}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_is_a_name_and_what_stands_behind_it() {
        assert_eq!(split("/hello"), ("hello", ""));
        assert_eq!(split("/hello  to  all "), ("hello", "to  all"));
        let (input, invocation) = invocation("/review a --base=main", "review", "a --base=main");
        assert_eq!(Value::from(input), json!({ "base": "main" }));
        assert_eq!(invocation.args, ["a", "--base=main"]);
    }
}
