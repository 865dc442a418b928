//! Extensions: executables that register tools, commands and events when they start. Each is one process.
//!
//! They speak a second form of the worker protocol; `docs/reference/worker-protocol.md` lists the
//! differences. The dialect writes the events and reads the answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tenterhook_process::{CancellationToken, Command};
use tenterhook_protocol::{JsonObject, UniqueObject};
use tokio::time::Instant;

use super::calls::{CallNotes, Updates};
use super::connection::Connection;
use super::error::WorkerError;
use super::extension_protocol::ExtensionProtocol;
use super::host::Host;
use super::requests::{Requests, Sender};
use super::script_session::CallRole;
use super::script_sessions::{EndInProgress, Replay, ScriptSessions, Use};
use super::supervisor::{Peer, Supervisor, ask};
use super::version::ScriptVersion;
use super::wire::Wire;

/// The longest time for one call, and the default for commands.
pub const MAX_CALL: Duration = Duration::from_hours(1);

/// How long a handler of an event may take by default.
const EVENT: Duration = Duration::from_secs(30);
/// How long a tool may take by default.
const TOOL: Duration = Duration::from_mins(10);

/// What an extension registers when it starts for the first time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionRegistration {
    /// Its name.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its tools.
    #[serde(default, deserialize_with = "or_default")]
    pub tools: Vec<ExtensionTool>,
    /// Its commands.
    #[serde(default, deserialize_with = "or_default")]
    pub commands: Vec<ExtensionCommand>,
    /// The events that it subscribes to.
    #[serde(default, deserialize_with = "or_default")]
    pub subscriptions: Vec<Subscription>,
}

/// A tool of an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionTool {
    /// The name that the model uses.
    pub name: String,
    /// The description for the model.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// The JSON Schema of its input. An empty schema accepts any object.
    #[serde(default, deserialize_with = "or_default")]
    pub input_schema: JsonObject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_in_sec: Option<f64>,
}

impl ExtensionTool {
    /// Returns how long one run may take.
    pub fn timeout(&self) -> Duration {
        limit(self.timeout_in_sec, TOOL)
    }
}

/// A command for the user, such as `/review`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionCommand {
    /// The name, without the slash.
    pub name: String,
    /// Other names.
    #[serde(default, deserialize_with = "or_default")]
    pub aliases: Vec<String>,
    /// The description for the user.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// The JSON Schema of its input. An empty schema accepts any object.
    #[serde(default, deserialize_with = "or_default")]
    pub input_schema: JsonObject,
    /// The kind of command, such as `recipe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_in_sec: Option<f64>,
}

impl ExtensionCommand {
    /// Returns how long one run may take.
    pub fn timeout(&self) -> Duration {
        limit(self.timeout_in_sec, MAX_CALL)
    }
}

/// An event that an extension subscribes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// The name of the event in the hook system.
    pub event: String,
    /// Higher runs first.
    #[serde(default, deserialize_with = "or_default")]
    pub priority: i32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_in_sec: Option<f64>,
}

impl Subscription {
    /// Returns how long one call may take.
    pub fn timeout(&self) -> Duration {
        limit(self.timeout_in_sec, EVENT)
    }
}

/// Converts a limit in seconds. Zero and negative values mean [`MAX_CALL`], because no call may run
/// without a limit.
fn limit(seconds: Option<f64>, default: Duration) -> Duration {
    match seconds {
        None => default,
        Some(seconds) if seconds > 0.0 => {
            let said = Duration::try_from_secs_f64(seconds);
            said.unwrap_or(MAX_CALL).min(MAX_CALL)
        }
        Some(_) => MAX_CALL,
    }
}

/// Reads `null` as the default value, as Go does.
fn or_default<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// The result of a tool.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ToolOutput {
    /// The text for the model.
    #[serde(default, deserialize_with = "or_default")]
    pub content: String,
    /// Details for programs.
    #[serde(default)]
    pub data: Option<JsonObject>,
    /// What went wrong. Empty if the tool succeeded.
    #[serde(default, deserialize_with = "or_default")]
    pub error: String,
}

/// The output of a tool so far.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolSnapshot {
    /// The text.
    pub content: String,
    /// Details for programs.
    #[serde(default)]
    pub data: Option<JsonObject>,
}

/// Receives the output of an extension's tool so far. It must not block.
pub type ToolSnapshots = Arc<dyn Fn(ToolSnapshot) + Send + Sync>;

/// How the user typed a command.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// The whole line.
    pub raw: String,
    /// The name that was used.
    pub command_name: String,
    /// The words after the name.
    pub args: Vec<String>,
    /// The words of the form `name=value`.
    pub flags: JsonObject,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Answered")]
pub enum CommandOutput {
    /// The command does not apply. The line is handled as if there were no such command.
    Pass,
    /// Text for the user. Nothing is sent to the model.
    Respond {
        /// The text.
        response: String,
    },
    /// A prompt for the agent, which replaces the line.
    RunAgent {
        /// The prompt.
        prompt: String,
        /// The recipe that the prompt stands for.
        recipe: Option<String>,
    },
    /// An unknown action.
    Other {
        /// Its name.
        action: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct Answered {
    action: Option<String>,
    response: Option<String>,
    prompt: Option<String>,
    recipe_name: Option<String>,
}

impl From<Answered> for CommandOutput {
    fn from(answered: Answered) -> Self {
        match answered.action.as_deref().unwrap_or_default() {
            "" | "pass" => Self::Pass,
            "respond" => Self::Respond {
                response: answered.response.unwrap_or_default(),
            },
            "runAgent" => Self::RunAgent {
                prompt: answered.prompt.unwrap_or_default(),
                recipe: answered.recipe_name.filter(|name| !name.is_empty()),
            },
            action => Self::Other {
                action: action.to_owned(),
            },
        }
    }
}

/// An extension, which is started when it is first needed. Clones share one process. It ends when
/// the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Extension {
    inner: Arc<Supervisor<Registering>>,
    sessions: Arc<ScriptSessions>,
}

/// What an extension receives when it starts, and what it registered the first time.
#[derive(Debug)]
struct Registering {
    id: String,
    protocol: ExtensionProtocol,
    has_user: bool,
    workspace: PathBuf,
    data_dir: PathBuf,
    known: Option<Arc<ExtensionRegistration>>,
    version: Option<ScriptVersion>,
}

impl Extension {
    /// Makes an extension from the command that starts it. The extension works for an agent in
    /// `workspace`. It may store data in `data_dir`, which is created unless the path is empty. `host` shows its
    /// messages and asks its questions.
    pub fn new(
        id: impl Into<String>,
        command: Command,
        protocol: ExtensionProtocol,
        (workspace, data_dir): (&Path, &Path),
        host: Arc<dyn Host>,
    ) -> Self {
        let id = id.into();
        let command = if workspace.as_os_str().is_empty() {
            command
        } else {
            command.env(protocol.workspace_variable, workspace)
        };
        let registering = Registering {
            id: id.clone(),
            has_user: host.has_ui(),
            workspace: workspace.to_owned(),
            data_dir: data_dir.to_owned(),
            protocol: protocol.clone(),
            known: None,
            version: None,
        };
        let sessions = ScriptSessions::new(id.clone(), Arc::clone(&host));
        let requests = Requests::new(host, Sender::Extension(Arc::new(protocol)));
        Self {
            inner: Arc::new(Supervisor::new(id, command, registering, requests)),
            sessions: Arc::new(sessions),
        }
    }

    /// Returns whether other clones of this extension exist.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.inner.name
    }

    /// Returns what the extension registered when it first started. Starts it if necessary.
    ///
    /// # Errors
    /// Fails if the extension cannot be started, or if its registration is invalid.
    pub async fn registration(&self) -> Result<Arc<ExtensionRegistration>, WorkerError> {
        let mut state = self.inner.state().await;
        if state.peer.known.is_none() {
            self.inner.connect(&mut state).await?;
        }
        // Without this error, an extension without a registration would silently lose its guards.
        state.peer.known.clone().ok_or_else(|| WorkerError::Start {
            worker: self.inner.name.clone(),
            problem: "it did not register".to_owned(),
        })
    }

    /// Sets the version in force. If the program has changed when it is restarted, calls fail.
    pub async fn expect_version(&self, version: ScriptVersion) {
        let peer = &mut self.inner.state().await.peer;
        peer.version.get_or_insert(version);
    }

    /// Calls the extension's handler of an event and returns the answer. `params` are the
    /// parameters that the dialect wrote.
    ///
    /// # Errors
    /// Fails if there is no answer, or if the handler failed.
    pub async fn handle(
        &self,
        params: &[u8],
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(deadline, cancel).await?;
        let request = (None, params, None);
        self.handle_on(&connection, request, deadline, cancel).await
    }

    /// Does the same for an event of a session, on a connection. The event may report the end of the session.
    pub(super) async fn handle_on(
        &self,
        connection: &Connection,
        (session, params, session_end): (Option<&str>, &[u8], Option<EndInProgress>),
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let request: (&str, &[&[u8]]) = ("extension.event.handle", &[params]);
        let notes = CallNotes {
            session_end,
            ..self.notes(session)
        };
        connection.call(request, notes, deadline, cancel).await
    }

    /// Returns the connection.
    pub(super) async fn reach(
        &self,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Arc<Connection>, WorkerError> {
        self.inner.connected(deadline, cancel).await
    }

    /// Returns the sessions that the extension has started.
    pub(super) fn sessions(&self) -> &Arc<ScriptSessions> {
        &self.sessions
    }

    /// Lets the extension hear the starts of a session again that the process behind a connection has not heard. Returns
    /// whether there were any.
    pub(super) async fn restore(
        &self,
        used: Use<'_>,
        connection: &Arc<Connection>,
    ) -> Result<bool, WorkerError> {
        let replay = || -> Replay {
            let (extension, connection) = (self.clone(), Arc::clone(connection));
            Box::new(move |start| {
                let (extension, connection) = (extension.clone(), Arc::clone(&connection));
                Box::pin(async move {
                    let deadline = Instant::now() + start.within;
                    let request = (Some(start.session.as_str()), &*start.event, None);
                    let never = CancellationToken::new();
                    let handled = extension.handle_on(&connection, request, deadline, &never);
                    handled.await.map(drop)
                })
            })
        };
        self.sessions
            .restore(used, connection.number(), replay)
            .await
    }

    /// Records that the host reports a session as over. If it continues nevertheless, it still has its start.
    pub fn end_session(&self, session: &str) {
        self.sessions.mark_over(session);
    }

    /// Forgets a session that cannot continue: its id, or the name of the state that scripts have for it.
    pub fn forget_session(&self, session: &str) {
        self.sessions.forget(session);
    }

    /// Returns the notes of a call that belongs to a session.
    fn notes(&self, session: Option<&str>) -> CallNotes {
        let host = self.inner.host();
        CallNotes {
            session: session.and_then(|session| host.script_session(session)),
            ..CallNotes::default()
        }
    }

    /// Runs a tool in a session. `context` describes the caller in the form of the dialect. `snapshots` receives
    /// the output so far.
    ///
    /// # Errors
    /// Fails if there is no answer or it is invalid. A tool that fails reports that in
    /// [`ToolOutput::error`].
    pub async fn run_tool(
        &self,
        (name, input): (&str, &JsonObject),
        (context, session): (&JsonObject, Option<&str>),
        snapshots: Option<ToolSnapshots>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, WorkerError> {
        let params = json!({ "name": name, "input": input, "context": context });
        // The extension waits for an answer to each update, even if there is no listener.
        let updates: Updates = Arc::new(move |params| {
            let snapshot = ToolSnapshot::deserialize(params).map_err(|error| error.to_string())?;
            if let Some(snapshots) = &snapshots {
                snapshots(snapshot);
            }
            Ok(())
        });
        let request = ("extension.tool.execute", &*bytes(&params));
        let notes = CallNotes {
            updates: Some(updates),
            ..self.notes(session)
        };
        let call = self.call(session, request, notes, within, cancel);
        read(&call.await?, "tool", name)
    }

    /// Runs a command in a session. `input` matches the command's schema, and `invocation` is the line that the
    /// user typed.
    ///
    /// # Errors
    /// Fails if there is no answer or it is invalid.
    pub async fn run_command(
        &self,
        name: &str,
        (input, invocation): (&JsonObject, &Invocation),
        (context, session): (&JsonObject, Option<&str>),
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<CommandOutput, WorkerError> {
        let params = json!({
            "name": name, "input": input, "invocation": invocation, "context": context,
        });
        let request = ("extension.command.execute", &*bytes(&params));
        let notes = self.notes(session);
        let call = self.call(session, request, notes, within, cancel);
        read(&call.await?, "command", name)
    }

    async fn call(
        &self,
        session: Option<&str>,
        (method, params): (&str, &[u8]),
        notes: CallNotes,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.reach(deadline, cancel).await?;
        if let Some(session) = session {
            let used = Use {
                session,
                role: CallRole::Other,
                deadline,
                cancel,
            };
            self.restore(used, &connection).await?;
        }
        let request: (&str, &[&[u8]]) = (method, &[params]);
        connection.call(request, notes, deadline, cancel).await
    }

    /// Ends the extension.
    pub async fn shutdown(&self) {
        self.inner.shutdown().await;
    }

    /// Returns the process id, if the extension runs.
    pub async fn pid(&self) -> Option<u32> {
        self.inner.pid().await
    }
}

fn bytes(params: &Value) -> Vec<u8> {
    params.to_string().into_bytes()
}

fn read<T: DeserializeOwned>(answer: &[u8], kind: &str, name: &str) -> Result<T, WorkerError> {
    object(answer).map_err(|problem| WorkerError::Call {
        message: format!("invalid answer of {kind} `{name}`: {problem}"),
    })
}

/// Reads an object. Refuses a list, which `serde` would also accept for a struct.
fn object<T: DeserializeOwned>(answer: &[u8]) -> serde_json::Result<T> {
    let UniqueObject(object) = serde_json::from_slice(answer)?;
    serde_json::from_value(Value::Object(object))
}

/// Reads what an extension registers. Unknown keys of later versions are ignored, but a misspelt
/// known key is an error: if `Subscriptions` were ignored, the guards in it would be lost.
fn registration(answer: &[u8]) -> Result<ExtensionRegistration, String> {
    let UniqueObject(object) = serde_json::from_slice(answer).map_err(|error| error.to_string())?;
    for key in object.keys() {
        let lower = key.to_lowercase();
        let is_meant =
            |known: &&&str| lower.starts_with(**known) || known.strip_suffix('s') == Some(&lower);
        let meant = KEYS.iter().find(is_meant);
        if let Some(meant) = meant.filter(|meant| *meant != key) {
            return Err(format!("unknown key `{key}`; did you mean `{meant}`?"));
        }
    }
    serde_json::from_value(Value::Object(object)).map_err(|error| error.to_string())
}

/// The keys of an [`ExtensionRegistration`] that must not be misspelt.
const KEYS: [&str; 3] = ["tools", "commands", "subscriptions"];

impl Peer for Registering {
    fn wire(&self) -> Wire {
        let protocol = &self.protocol;
        Wire::extension(
            protocol.update_method,
            protocol.questions,
            protocol.copy_method,
        )
    }

    async fn greet(&mut self, connection: &Connection) -> Result<(), String> {
        ScriptVersion::check(self.version.as_ref()).await?;
        if !self.data_dir.as_os_str().is_empty() {
            tenterhook_files::make_private(&self.data_dir).map_err(|error| {
                format!(
                    "cannot create its data folder `{}`: {error}",
                    self.data_dir.display()
                )
            })?;
        }
        let answer = ask(connection, "extension.initialize", &self.hello()).await?;
        let unreadable =
            |error: String| format!("cannot read its answer to `extension.initialize`: {error}");
        let version: Version = object(&answer).map_err(|error| unreadable(error.to_string()))?;
        let expected = self.protocol.version;
        if let Some(version) = version.protocol_version.filter(|it| it != expected) {
            return Err(format!(
                "it speaks version `{}` of {}'s protocol, expected `{expected}`",
                version.escape_debug(),
                self.protocol.system
            ));
        }
        // After a restart, a new registration is ignored, because the hooks of the first one are in force.
        if self.known.is_none() {
            let registration = registration(&answer).map_err(unreadable)?;
            self.known = Some(Arc::new(registration));
        }
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    #[serde(default)]
    protocol_version: Option<String>,
}

impl Registering {
    fn hello(&self) -> Value {
        json!({
            "protocolVersion": self.protocol.version,
            self.protocol.system: { "version": self.protocol.system_version },
            "extension": {
                "id": self.id,
                "config": {},
                "cwd": self.workspace.to_string_lossy(),
                "dataDir": self.data_dir.to_string_lossy(),
            },
            "capabilities": {
                "tools": true,
                "toolUpdates": true,
                "commands": true,
                "conversations": { "fork": true },
                "ui": (self.protocol.capabilities)(self.has_user),
                "events": self.protocol.events,
            },
        })
    }
}
