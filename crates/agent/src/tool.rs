//! What the agent can do: tools with typed arguments.
//!
//! A tool declares what it is and runs; it judges nothing. Permission rules, hooks and the user have
//! spoken before [`Tool::run`] is called, and its result passes the hooks before anyone sees it.

mod arguments;
mod background;
mod directory;
mod edit;
mod excerpt;
mod key_block;
mod progress;
mod read;
mod retry;
mod search;
mod shell;
mod transfer;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tenterhook_protocol::{JsonObject, SessionId, TaskId, ToolResult, ToolUseId};
use thiserror::Error;
use tokio_util::sync::CancellationToken;

pub(crate) use self::arguments::ArgumentSchema;
pub use self::arguments::SchemaProblem;
pub(crate) use self::background::{
    NAMES as BACKGROUND_TOOLS, RUN as RUN_BACKGROUND_AGENT, add as add_background_tools,
};
pub use self::directory::ListDirectory;
pub use self::edit::EditFile;
pub(crate) use self::excerpt::{excerpt, shortened};
pub use self::progress::Progress;
pub(crate) use self::read::NAME as READ_FILE;
pub use self::read::ReadFile;
pub use self::retry::ToolRetry;
pub use self::search::Search;
pub use self::shell::{AGENT_VARIABLE, ShellTool};
pub use self::transfer::TransferTask;
pub(crate) use self::transfer::{Agents, NAME as TRANSFER_TASK};
pub use self::write::WriteFile;
use crate::background::Tasks;
use crate::protection::WriteGuard;
use crate::provider::ToolSpec;
use crate::restriction::{Folders, Restrictions};

/// What the agent can call.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns the name that models and rules use.
    fn name(&self) -> &str;

    /// Describes the tool to the model.
    fn description(&self) -> String;

    /// Returns the JSON Schema of the arguments.
    fn schema(&self) -> Value;

    /// Returns the kind of tool that hooks see: `shell`, `filesystem`, `agent` …
    fn category(&self) -> &'static str;

    /// Says whether the tool changes nothing. Such tools run without a question by default, and beside
    /// each other.
    fn is_read_only(&self) -> bool;

    /// Says whether the user is asked by default. The default follows [`Tool::is_read_only`].
    fn wants_approval(&self) -> bool {
        !self.is_read_only()
    }

    /// Says whether the tool ends by itself, and soon, when its context is cancelled. It is then awaited
    /// however long it takes; any other is dropped when the [grace](crate::Limits::grace) is over. The
    /// default is no.
    fn ends_itself(&self) -> bool {
        false
    }

    /// Says whether the same call again and again is no sign of a loop: the model looks whether something came about. The default is no.
    fn may_repeat(&self) -> bool {
        false
    }

    /// Says how runs that failed are tried again. The default is [not at all](ToolRetry::once). A run that failed
    /// [permanently](ToolFailure::is_permanent_failure) is never tried again.
    fn retry(&self) -> ToolRetry {
        ToolRetry::once()
    }

    /// Checks arguments; called for each call, and again whenever a hook changed them.
    ///
    /// # Errors
    ///
    /// Says what is wrong in words that the model can act on.
    fn check(&self, input: &JsonObject) -> Result<(), InvalidInput>;

    /// Returns the path of the file that a call changes, as the call names it. If the file is
    /// [protected](crate::ProtectedFiles), the user is asked. The default is that a call changes no file.
    fn changed_file<'a>(&self, _input: &'a JsonObject) -> Option<&'a str> {
        None
    }

    /// Runs the tool on arguments that [`Tool::check`] accepted.
    ///
    /// A tool that ends by itself when `context` is cancelled can leave things in order; one that does
    /// not is dropped after a grace, see [`Tool::ends_itself`].
    fn run<'a>(
        &'a self,
        input: JsonObject,
        context: ToolContext<'a>,
    ) -> BoxFuture<'a, Result<ToolResult, ToolFailure>>;
}

/// What a running tool may use.
#[derive(Clone)]
pub struct ToolContext<'a> {
    /// The session's directory; relative paths start here.
    pub cwd: &'a Path,
    /// The session.
    pub session: &'a SessionId,
    /// The call, by the id that the model gave it.
    pub call: &'a ToolUseId,
    /// Cancelled when the run is.
    pub cancel: CancellationToken,
    /// Takes what the tool has so far.
    pub progress: Progress,
    pub(crate) delegate: &'a dyn Delegate,
    pub(crate) write_guard: WriteGuard,
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolContext")
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

impl ToolContext<'_> {
    fn path(&self, given: &str) -> PathBuf {
        self.cwd.join(given)
    }

    /// Returns the folders that the tool of that name may use.
    fn folders(&self, tool: &str) -> Folders {
        self.delegate.restrictions().folders(tool, self.cwd)
    }
}

/// Gives tasks to subagents.
pub(crate) trait Delegate: Send + Sync {
    /// Runs a subagent on a task and returns its answer.
    fn transfer<'a>(
        &'a self,
        agent: &'a str,
        task: String,
    ) -> BoxFuture<'a, Result<String, ToolFailure>>;

    /// Has a subagent begin with a task in the background and returns the task's id.
    fn begin(&self, agent: &str, task: String) -> Result<TaskId, ToolFailure>;

    /// Returns the tasks in the background.
    fn background(&self) -> Result<&Tasks, ToolFailure>;

    /// Returns what the agent that calls may not do.
    fn restrictions(&self) -> &Restrictions;
}

/// Arguments that a tool does not take.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid arguments for `{tool}`: {problem}")]
pub struct InvalidInput {
    /// The tool.
    pub tool: String,
    /// What is wrong.
    pub problem: String,
}

/// A tool that could not do its work: what the model gets, and whether the same call would fail again.
///
/// ```
/// use tenterhook_agent::tool::ToolFailure;
/// assert!(!ToolFailure::new("the service is busy").is_permanent_failure());
/// assert!(ToolFailure::permanent("there is no issue 12").is_permanent_failure());
/// ```
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{}", .result.joined_text())]
pub struct ToolFailure {
    result: Box<ToolResult>,
    is_permanent: bool,
}

impl From<InvalidInput> for ToolFailure {
    fn from(error: InvalidInput) -> Self {
        Self::permanent(error.to_string())
    }
}

impl ToolFailure {
    /// Makes a failure that another attempt may mend.
    pub fn new(text: impl Into<String>) -> Self {
        Self::with_result(ToolResult::error(text))
    }

    /// Makes a failure that the same call would have again, so that it is not tried again.
    pub fn permanent(text: impl Into<String>) -> Self {
        Self::new(text).permanently()
    }

    /// Makes a failure with more than a text, such as `details`. The result counts as an error.
    pub fn with_result(result: ToolResult) -> Self {
        let result = ToolResult {
            is_error: true,
            ..result
        };
        Self {
            result: Box::new(result),
            is_permanent: false,
        }
    }

    /// Says that the same call would fail again.
    #[must_use]
    pub fn permanently(self) -> Self {
        Self {
            is_permanent: true,
            ..self
        }
    }

    /// Returns whether the same call would fail again, so that it is not tried again.
    pub fn is_permanent_failure(&self) -> bool {
        self.is_permanent
    }

    /// Returns what the model gets.
    pub fn into_result(self) -> ToolResult {
        *self.result
    }

    fn io(action: &str, path: &Path, error: &std::io::Error) -> Self {
        let failure = Self::new(format!("cannot {action} `{}`: {error}", path.display()));
        let is_permanent = matches!(
            error.kind(),
            ErrorKind::NotFound
                | ErrorKind::PermissionDenied
                | ErrorKind::NotADirectory
                | ErrorKind::IsADirectory
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::InvalidFilename
                | ErrorKind::InvalidData
        );
        if is_permanent {
            failure.permanently()
        } else {
            failure
        }
    }

    fn no_file(action: &str, path: &Path) -> Self {
        Self::permanent(format!(
            "cannot {action} `{}`: it is no file",
            path.display()
        ))
    }
}

/// Reads arguments into the type that declares them. Unknown ones are refused.
fn read_input<T: DeserializeOwned>(tool: &str, input: &JsonObject) -> Result<T, InvalidInput> {
    serde_json::from_value(Value::Object(input.clone())).map_err(|error| InvalidInput {
        tool: tool.to_owned(),
        problem: error.to_string(),
    })
}

/// Runs file work on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ToolFailure> + Send + 'static,
) -> Result<T, ToolFailure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(ToolFailure::new(format!("the tool broke: {error}"))),
    }
}

/// Returns what is known of a file, or why there is none. Asked before anything is opened: opening a
/// pipe waits for its other end, and a device may never end.
fn regular_file(action: &str, path: &Path) -> Result<Metadata, ToolFailure> {
    let metadata = fs::metadata(path).map_err(|error| ToolFailure::io(action, path, &error))?;
    if metadata.is_file() {
        Ok(metadata)
    } else {
        Err(ToolFailure::no_file(action, path))
    }
}

/// Returns the schema of the arguments `T` in the plain form that every model service takes.
fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    simplify(&mut schema);
    schema
}

/// Drops what services refuse or ignore: titles, formats, and `null` as a second type of an optional
/// argument, which may be left out anyway.
fn simplify(value: &mut Value) {
    match value {
        Value::Object(object) => {
            for key in ["$schema", "title", "format", "default", "minimum"] {
                if !object.get(key).is_some_and(Value::is_object) {
                    object.shift_remove(key);
                }
            }
            if let Some(Value::Array(kinds)) = object.get("type") {
                let kind = kinds.iter().find(|kind| *kind != "null").cloned();
                object.insert("type".to_owned(), kind.unwrap_or(Value::Null));
            }
            for (_, inner) in object.iter_mut() {
                simplify(inner);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The tools of an agent, in the order in which the model is offered them.
#[derive(Debug, Clone, Default)]
pub struct Toolbox {
    tools: Vec<Arc<dyn Tool>>,
    retries: BTreeMap<String, ToolRetry>,
}

impl Toolbox {
    /// Makes an empty box.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Makes a box of the tools for files and commands.
    pub fn standard() -> Self {
        Self::empty()
            .with(ShellTool)
            .with(ReadFile)
            .with(WriteFile)
            .with(EditFile)
            .with(ListDirectory)
            .with(Search)
    }

    /// Adds a tool; one of the same name makes way.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.retain(|known| known.name() != tool.name());
        self.tools.push(Arc::new(tool));
        self
    }

    /// Sets how failed runs of the tool of that name are tried again, whatever the tool itself says.
    #[must_use]
    pub fn retry(mut self, tool: impl Into<String>, retry: ToolRetry) -> Self {
        self.retries.insert(tool.into(), retry);
        self
    }

    /// Returns how failed runs of a tool are tried again.
    pub(crate) fn retry_of(&self, tool: &dyn Tool) -> ToolRetry {
        let set = self.retries.get(tool.name()).copied();
        set.unwrap_or_else(|| tool.retry())
    }

    /// Returns the tool of that name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.iter().find(|tool| tool.name() == name)
    }

    /// Returns the names in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name())
    }

    /// Returns what the model is told of the tool of that name.
    pub(crate) fn spec(&self, name: &str) -> Option<ToolSpec> {
        let tool = self.get(name)?;
        Some(ToolSpec {
            name: tool.name().to_owned(),
            description: tool.description(),
            schema: tool.schema(),
        })
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! A place to run tools in.

    use super::*;

    /// Refuses every task.
    #[derive(Debug, Default)]
    pub(crate) struct NoDelegate(Restrictions);

    impl Delegate for NoDelegate {
        fn transfer<'a>(
            &'a self,
            agent: &'a str,
            _: String,
        ) -> BoxFuture<'a, Result<String, ToolFailure>> {
            Box::pin(async move { Err(ToolFailure::permanent(format!("no agent `{agent}`"))) })
        }

        fn begin(&self, agent: &str, _: String) -> Result<TaskId, ToolFailure> {
            Err(ToolFailure::permanent(format!("no agent `{agent}`")))
        }

        fn background(&self) -> Result<&Tasks, ToolFailure> {
            Err(ToolFailure::permanent("no tasks"))
        }

        fn restrictions(&self) -> &Restrictions {
            &self.0
        }
    }

    /// Makes a named pipe `pipe` in a folder.
    pub(crate) fn make_fifo(folder: &Path) {
        let made = std::process::Command::new("mkfifo")
            .arg(folder.join("pipe"))
            .status();
        assert!(made.unwrap().success());
    }

    /// Checks and runs a tool in `cwd`, and returns the text that a model would get.
    pub(crate) async fn run(
        tool: &dyn Tool,
        cwd: &Path,
        input: Value,
    ) -> Result<ToolResult, String> {
        let Value::Object(input) = input else {
            panic!("arguments are an object")
        };
        tool.check(&input).map_err(|error| error.to_string())?;
        let cancel = CancellationToken::new();
        let context = ToolContext {
            cwd,
            session: &"s".into(),
            call: &"c".into(),
            cancel,
            progress: Progress::default(),
            delegate: &NoDelegate::default(),
            write_guard: WriteGuard::default(),
        };
        tool.run(input, context)
            .await
            .map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_plain_objects_that_forbid_unknown_arguments() {
        for name in Toolbox::standard().names() {
            let schema = Toolbox::standard().spec(name).unwrap().schema;
            assert_eq!(schema["type"], "object", "{name}");
            assert_eq!(schema["additionalProperties"], false, "{name}");
            assert!(!schema.to_string().contains("null"), "{schema}");
        }
        let shell = Toolbox::standard().spec("shell").unwrap().schema;
        assert_eq!(shell["required"], json!(["cmd"]));
        assert_eq!(shell["properties"]["timeout"]["type"], "integer");
    }

    #[test]
    fn an_unknown_argument_is_answered_with_the_known_ones() {
        let input = json!({"cmd": "ls", "dir": "/"});
        let error = ShellTool
            .check(input.as_object().unwrap())
            .unwrap_err()
            .to_string();
        assert_eq!(
            error,
            "invalid arguments for `shell`: unknown field `dir`, expected one of `cmd`, `cwd`, `timeout`"
        );
        let missing = ShellTool.check(&JsonObject::new()).unwrap_err().to_string();
        assert_eq!(
            missing,
            "invalid arguments for `shell`: missing field `cmd`"
        );
    }

    #[test]
    fn a_tool_takes_the_place_of_one_of_its_name() {
        let toolbox = Toolbox::empty().with(ReadFile).with(Search).with(ReadFile);
        assert_eq!(toolbox.names().collect::<Vec<_>>(), ["search", "read_file"]);
    }
}
