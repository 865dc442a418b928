//! Extensions of kodelet: executables that register tools, commands and events when they are started, and are one process each.
//!
//! They speak a second form of the protocol of workers; `docs/worker-protocol.md` says what differs. What a subscription is sent and
//! what its answer means is its dialect's business.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use tenterhook_process::{CancellationToken, Command};
use tenterhook_protocol::{JsonObject, UniqueObject};
use tokio::time::Instant;

use super::connection::Connection;
use super::host::{Host, Refusal};
use super::supervisor::{Peer, Supervisor, ask};
use super::watched::Updates;
use super::wire::Wire;
use super::{ScriptVersion, WorkerError};
use crate::private_dir;

/// The version of kodelet's protocol.
pub const EXTENSION_PROTOCOL: &str = "2026-05-30";
/// The longest time for one call: what an extension without a limit of its own gets.
pub const LONGEST_CALL: Duration = Duration::from_hours(1);

/// How long a handler of an event may take that does not say it.
const EVENT: Duration = Duration::from_secs(30);
/// How long a tool may take that does not say it.
const TOOL: Duration = Duration::from_mins(10);
/// The variable that names the directory of the agent.
const WORKSPACE: &str = "KODELET_EXTENSION_WORKSPACE_CWD";

/// What an extension says that it has, once, when it is started first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Registration {
    /// What it calls itself.
    #[serde(default, deserialize_with = "or_default")]
    pub name: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The tools that it has.
    #[serde(default, deserialize_with = "or_default")]
    pub tools: Vec<ExtensionTool>,
    /// The commands that it has.
    #[serde(default, deserialize_with = "or_default")]
    pub commands: Vec<ExtensionCommand>,
    /// The events that it wants to see.
    #[serde(default, deserialize_with = "or_default")]
    pub subscriptions: Vec<Subscription>,
}

/// A tool of an extension.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionTool {
    /// What the model calls it.
    pub name: String,
    /// What the model is told of it.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// The JSON Schema of its input; an empty one is any object.
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

/// A command that the user gives, such as `/review`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionCommand {
    /// What the user calls it, without the slash.
    pub name: String,
    /// Other names of it.
    #[serde(default, deserialize_with = "or_default")]
    pub aliases: Vec<String>,
    /// What the user is told of it.
    #[serde(default, deserialize_with = "or_default")]
    pub description: String,
    /// The JSON Schema of its input; an empty one is any object.
    #[serde(default, deserialize_with = "or_default")]
    pub input_schema: JsonObject,
    /// What kind of command it is, such as `recipe`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timeout_in_sec: Option<f64>,
}

impl ExtensionCommand {
    /// Returns how long one run may take.
    pub fn timeout(&self) -> Duration {
        limit(self.timeout_in_sec, LONGEST_CALL)
    }
}

/// An event that an extension wants to see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Subscription {
    /// The event, as kodelet calls it.
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

/// Returns a time in seconds, none of which is without end: zero and less are the longest.
fn limit(seconds: Option<f64>, default: Duration) -> Duration {
    match seconds {
        None => default,
        Some(seconds) if seconds > 0.0 => {
            let said = Duration::try_from_secs_f64(seconds);
            said.unwrap_or(LONGEST_CALL).min(LONGEST_CALL)
        }
        Some(_) => LONGEST_CALL,
    }
}

/// Takes `null` for what is left out, as Go does.
fn or_default<'de, T: DeserializeOwned + Default, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// What a tool answers.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct ToolOutput {
    /// The text for the model.
    #[serde(default, deserialize_with = "or_default")]
    pub content: String,
    /// What programs may want to know.
    #[serde(default)]
    pub data: Option<JsonObject>,
    /// What went wrong; an empty text is nothing.
    #[serde(default, deserialize_with = "or_default")]
    pub error: String,
}

/// What a tool has so far.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ToolSnapshot {
    /// The text.
    pub content: String,
    /// What programs may want to know.
    #[serde(default)]
    pub data: Option<JsonObject>,
}

/// Hears what a tool of an extension has so far. It must not block.
pub type ToolSnapshots = Arc<dyn Fn(ToolSnapshot) + Send + Sync>;

/// How a command was given.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Invocation {
    /// The whole line.
    pub raw: String,
    /// The name that was used.
    pub command_name: String,
    /// The words behind it.
    pub args: Vec<String>,
    /// Those of them that are `name=value`.
    pub flags: JsonObject,
}

/// What a command answers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "Answered")]
pub enum CommandOutput {
    /// It was not meant; the line is looked at further.
    Pass,
    /// A text for the user. Nothing goes to the model.
    Respond {
        /// The text.
        response: String,
    },
    /// A prompt for the agent in the place of the line.
    RunAgent {
        /// The prompt.
        prompt: String,
        /// The recipe that it stands for.
        recipe: Option<String>,
    },
    /// An action that is not known here.
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

/// What extensions are told that ask for something: nobody sees what they show, and there is no conversation that could be forked.
#[derive(Debug)]
struct Kodelet;

impl Host for Kodelet {
    fn answer<'a>(
        &'a self,
        method: &'a str,
        _params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        let answer = match method {
            "kodelet.conversation.fork" => Err(Refusal::Unavailable(
                "conversations cannot be forked here".to_owned(),
            )),
            _ if method.starts_with("kodelet.ui.") => Ok(json!({ "status": "unavailable" })),
            _ => Err(Refusal::NoMethod),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// An extension, started when it is first needed. Clones are the same process; with the last one it ends.
#[derive(Debug, Clone)]
pub struct Extension {
    inner: Arc<Supervisor<Registering>>,
}

/// What an extension is told first, and what it answered to that the first time.
#[derive(Debug)]
struct Registering {
    id: String,
    workspace: PathBuf,
    data_dir: PathBuf,
    events: Vec<&'static str>,
    known: Option<Arc<Registration>>,
    version: Option<ScriptVersion>,
}

impl Extension {
    /// Makes an extension of its command. It is told that it works for an agent in `workspace`, that it may keep things in
    /// `data_dir`, which is made unless it is empty, and which events it may ask for.
    pub fn new(
        id: impl Into<String>,
        command: Command,
        workspace: &Path,
        data_dir: &Path,
        events: Vec<&'static str>,
    ) -> Self {
        let id = id.into();
        let command = if workspace.as_os_str().is_empty() {
            command
        } else {
            command.env(WORKSPACE, workspace)
        };
        let registering = Registering {
            id: id.clone(),
            workspace: workspace.to_owned(),
            data_dir: data_dir.to_owned(),
            events,
            known: None,
            version: None,
        };
        Self {
            inner: Arc::new(Supervisor::new(id, command, registering, Arc::new(Kodelet))),
        }
    }

    /// Says whether anybody else has this extension.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.inner) > 1
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        &self.inner.name
    }

    /// Returns what it registered when it was started first; starts it where it was not.
    ///
    /// # Errors
    /// When it cannot be started, or says what is no registration.
    pub async fn registration(&self) -> Result<Arc<Registration>, WorkerError> {
        let mut state = self.inner.state().await;
        if state.peer.known.is_none() {
            self.inner.connect(&mut state).await?;
        }
        // An empty registration in its place would be an extension whose guards are gone.
        state.peer.known.clone().ok_or_else(|| WorkerError::Start {
            worker: self.inner.name.clone(),
            problem: "it has registered nothing".to_owned(),
        })
    }

    /// Sets the version that is in force. Where its program is another one when it is started again, calls fail.
    pub async fn expect_version(&self, version: ScriptVersion) {
        let peer = &mut self.inner.state().await.peer;
        peer.version.get_or_insert(version);
    }

    /// Calls its handler of an event, and returns the answer. `params` is what its dialect wrote.
    ///
    /// # Errors
    /// When there is no answer, or the handler failed.
    pub async fn handle(
        &self,
        params: &[u8],
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let request = ("extension.event.handle", params);
        self.call(request, None, within, cancel).await
    }

    /// Runs a tool. `context` says who asks, in the form that the dialect has for it; `snapshots` hears what there is so far.
    ///
    /// # Errors
    /// When there is no answer, or none that a tool gives. A tool that went wrong answers that.
    pub async fn run_tool(
        &self,
        (name, input): (&str, &JsonObject),
        context: &JsonObject,
        snapshots: Option<ToolSnapshots>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<ToolOutput, WorkerError> {
        let params = json!({ "name": name, "input": input, "context": context });
        // Where nobody wants to know, an extension is answered all the same.
        let updates: Updates = Arc::new(move |params| {
            let snapshot = ToolSnapshot::deserialize(params).map_err(|error| error.to_string())?;
            if let Some(snapshots) = &snapshots {
                snapshots(snapshot);
            }
            Ok(())
        });
        let request = ("extension.tool.execute", &*bytes(&params));
        let answer = self.call(request, Some(updates), within, cancel).await?;
        read(&answer, "tool", name)
    }

    /// Runs a command. `input` is what its schema asks for, `invocation` how the user gave it.
    ///
    /// # Errors
    /// When there is no answer, or none that a command gives.
    pub async fn run_command(
        &self,
        name: &str,
        (input, invocation): (&JsonObject, &Invocation),
        context: &JsonObject,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<CommandOutput, WorkerError> {
        let params = json!({
            "name": name, "input": input, "invocation": invocation, "context": context,
        });
        let request = ("extension.command.execute", &*bytes(&params));
        let answer = self.call(request, None, within, cancel).await?;
        read(&answer, "command", name)
    }

    async fn call(
        &self,
        (method, params): (&str, &[u8]),
        updates: Option<Updates>,
        within: Duration,
        cancel: &CancellationToken,
    ) -> Result<Bytes, WorkerError> {
        let deadline = Instant::now() + within;
        let connection = self.inner.connected(deadline, cancel).await?;
        let request: (&str, &[&[u8]]) = (method, &[params]);
        self.inner
            .call_watched(&connection, request, updates, deadline, cancel)
            .await
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
        message: format!("the answer of {kind} `{name}` is none: {problem}"),
    })
}

/// Reads an object; a list, which stands for a struct too, is none.
fn object<T: DeserializeOwned>(answer: &[u8]) -> serde_json::Result<T> {
    let UniqueObject(object) = serde_json::from_slice(answer)?;
    serde_json::from_value(Value::Object(object))
}

/// Reads what an extension registers. Keys of later versions are passed over, but not one that is meant for a known key:
/// the guards of `Subscriptions` would be lost.
fn registration(answer: &[u8]) -> Result<Registration, String> {
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

/// The keys of a [`Registration`] without which something of an extension is lost.
const KEYS: [&str; 3] = ["tools", "commands", "subscriptions"];

impl Peer for Registering {
    const WIRE: Wire = Wire::EXTENSION;

    async fn greet(&mut self, connection: &Connection) -> Result<(), String> {
        ScriptVersion::check(self.version.as_ref()).await?;
        if !self.data_dir.as_os_str().is_empty() {
            private_dir::make(&self.data_dir).map_err(|error| {
                format!("its data folder `{}`: {error}", self.data_dir.display())
            })?;
        }
        let answer = ask(connection, "extension.initialize", &self.hello()).await?;
        let unreadable =
            |error: String| format!("cannot read its answer to `extension.initialize`: {error}");
        let version: Version = object(&answer).map_err(|error| unreadable(error.to_string()))?;
        if let Some(version) = version
            .protocol_version
            .filter(|it| it != EXTENSION_PROTOCOL)
        {
            return Err(format!(
                "it speaks version `{}` of kodelet's protocol, expected `{EXTENSION_PROTOCOL}`",
                version.escape_debug()
            ));
        }
        // What it says when it is started again changes nothing: its hooks are in force already.
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
            "protocolVersion": EXTENSION_PROTOCOL,
            // What kodelet itself says: extensions that look at it know no other.
            "kodelet": { "version": "dev" },
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
                "conversations": { "fork": false },
                "ui": { "input": false, "confirm": false, "select": false, "notify": false },
                "events": self.events,
            },
        })
    }
}
