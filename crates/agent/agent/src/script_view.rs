//! The agent as scripts see it: answers their requests to ask the user, and to read and change the session.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::resource::{ResourceSource, Resources};
use crate::sessions::entry_kind::COMPACTION;
use crate::sessions::{Session, SessionView, estimate_tokens};
use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_protocol::event::{
    InputSource, MessageStart, ModelSelectSource, NotificationLevel, QueueKind, SessionEntry,
};
use tenterhook_protocol::{EntryId, JsonObject, Message, SessionId, Usage, message_extra};
use tenterhook_providers::{
    ConnectError, InvalidThinkingLevel, OpenError, Provider, ThinkingLevel,
};
use tenterhook_runners::worker::{Refusal, ScriptAddition, ScriptServer};
use tokio_util::sync::CancellationToken;

use crate::dialogs::Dialogs;
use crate::drawing::Drawings;
use crate::extension::{ScriptHost, ScriptedAgent, SessionRequest, SessionRequestParams};
use crate::frontend::Frontend;
use crate::handle::AgentHandle;
use crate::identity::AgentIdentity;
use crate::model_calls::ModelCalls;
use crate::models::SelectError;
use crate::run_report::Prompt;
use crate::selection::SelectionChange;
use crate::session_name::one_line;
use crate::state::{AgentState, RenderedMessage};

/// The agent as scripts see it.
pub(crate) struct AgentView {
    pub(crate) state: Arc<AgentState>,
    pub(crate) identity: AgentIdentity,
    pub(crate) handle: AgentHandle,
    pub(crate) session: SessionView,
    pub(crate) frontend: Arc<dyn Frontend>,
    pub(crate) dialogs: Dialogs,
    pub(crate) model_calls: ModelCalls,
    pub(crate) drawings: Drawings,
    /// The run in progress.
    run: Mutex<Option<CancellationToken>>,
}

impl fmt::Debug for AgentView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentView")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl ScriptedAgent for AgentView {
    fn serve<'a>(
        &'a self,
        host: &'a ScriptHost,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(self.answer(host, method, params))
    }

    fn session(&self) -> SessionId {
        self.session.id()
    }

    fn show_output(&self, worker: &str, line: &str) {
        self.frontend.script_output(worker, line);
    }

    fn add(
        &self,
        host: &ScriptHost,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
    ) -> Result<(), Refusal> {
        if let ScriptAddition::Tool(tool) = &addition
            && let name = (host.spelling().own_tool)(&tool.name)
            && self.state.config.toolbox.get(name).is_some()
        {
            let text = format!("an extension replaces the tool `{name}`");
            self.frontend
                .notification(NotificationLevel::Warning, &text);
        }
        self.state.add(script, addition, host.spelling())
    }
}

/// The attachment of an agent to a host. Dropping it detaches the agent.
#[derive(Debug)]
pub(crate) struct ScriptAttachment {
    host: Arc<ScriptHost>,
    view: Arc<AgentView>,
}

impl ScriptAttachment {
    /// Attaches an agent to a host.
    pub(crate) fn new(host: &Arc<ScriptHost>, view: AgentView) -> Self {
        let view = Arc::new(view);
        host.attach(Arc::clone(&view) as _);
        Self {
            host: Arc::clone(host),
            view,
        }
    }

    /// Marks a run as in progress until the guard is dropped.
    pub(crate) fn begin_run(&self, run: CancellationToken) -> RunGuard<'_> {
        *self.view.run() = Some(run);
        RunGuard(self)
    }
}

impl Drop for ScriptAttachment {
    fn drop(&mut self) {
        self.host.detach();
        self.view.model_calls.end();
    }
}

/// The guard of a run that scripts may stop.
pub(crate) struct RunGuard<'a>(&'a ScriptAttachment);

impl Drop for RunGuard<'_> {
    fn drop(&mut self) {
        *self.0.view.run() = None;
        self.0.host.idle().notify_waiters();
    }
}

impl AgentView {
    /// Creates the view of an idle agent.
    pub(crate) fn new(handle: AgentHandle, identity: AgentIdentity, session: SessionView) -> Self {
        Self {
            state: Arc::clone(handle.state()),
            frontend: Arc::clone(handle.hooks().frontend()),
            identity,
            handle,
            session,
            dialogs: Dialogs::default(),
            model_calls: ModelCalls::default(),
            drawings: Drawings::default(),
            run: Mutex::default(),
        }
    }

    async fn answer(
        &self,
        host: &ScriptHost,
        method: &str,
        params: &Value,
    ) -> Result<Value, Refusal> {
        match method {
            "session/read" => self.read(host, params),
            "session/send" => self.send(host, params).await,
            "session/copy" => self.copy_session().await,
            "session/append" => {
                let AppendParams { custom_type, data } = read(params)?;
                self.session.add_custom(&custom_type, &data);
                Ok(json!({}))
            }
            "session/lead" => {
                let params: SessionRequestParams = read(params)?;
                if params.what == "wait" {
                    self.wait_for_idle(host).await;
                    return Ok(json!({}));
                }
                host.requests().submit(params.request()?).await
            }
            "session/compact" => {
                let CompactParams {
                    custom_instructions,
                } = read(params)?;
                host.requests()
                    .submit(SessionRequest::Compact(custom_instructions))
                    .await
            }
            "session/set" => self.set(host, params).await,
            "session/model" => {
                let name = model_name(params)?;
                Ok(match self.state.config.models.find(&name).await {
                    Ok(provider) => described(&*provider),
                    // A script may look at a model that it cannot call, and find out why.
                    Err(SelectError::Open(
                        OpenError::Key(_) | OpenError::Connect(ConnectError::NoKey { .. }),
                    )) => described_by_name(&name, Some(false)),
                    // Null if the model cannot be opened, because then a script cannot use it.
                    Err(_) => Value::Null,
                })
            }
            "model/call" => self.call_model(params).await,
            "model/cancel" => self.cancel_model_call(params),
            "session/stop" => self.stop_from_script(host, params),
            _ if method.starts_with("ui/") => self.answer_ui(host, method, params).await,
            _ if method.starts_with("session/") => Err(Refusal::Failed(format!(
                "this agent does not let scripts use `{method}`"
            ))),
            _ => Err(Refusal::NoMethod),
        }
    }

    fn read(&self, host: &ScriptHost, params: &Value) -> Result<Value, Refusal> {
        let ReadParams { what } = read(params)?;
        let keys = what.into_iter();
        let known = keys.filter_map(|key| {
            let value = self.value_of(host, &key)?;
            Some((key, value))
        });
        Ok(Value::Object(known.collect()))
    }

    fn value_of(&self, host: &ScriptHost, key: &str) -> Option<Value> {
        let state = &self.state;
        let tool = |name: &str| Value::from((host.spelling().tool)(name));
        Some(match key {
            "id" => json!(self.session.id()),
            "entries" => self.session.with_entries(|entries| {
                entries.iter().map(host.spelling().entry).collect::<Value>()
            }),
            "all_entries" => self
                .session
                .with_tree(|entries| entries.iter().map(host.spelling().entry).collect::<Value>()),
            "leaf" => self
                .session
                .with_entries(|entries| json!(entries.last().map(|entry| &entry.id))),
            "labels" => json!(self.session.labels()),
            "file" => json!(self.session.file()),
            "parent" => json!(self.session.forked_from()),
            "model" => described(&*state.selected().provider),
            "models" => described_models(state),
            "thinking_level" => {
                let level = state.selected().thinking;
                level.unwrap_or(ThinkingLevel::Off).as_str().into()
            }
            "system_prompt" => state.system_prompt(&self.identity).into(),
            "can_draw" => self.frontend.can_draw().into(),
            "is_idle" => (!self.is_working()).into(),
            "has_pending_messages" => (self.handle.waiting() > 0).into(),
            "usage" => {
                let tokens = self.session.with_entries(context_tokens);
                json!({ "tokens": tokens, "contextWindow": state.context_window() })
            }
            "all_tools" => described_tools(state, host),
            "active_tools" => {
                let toolbox = state.toolbox();
                let active = toolbox.names().filter(|name| state.is_active(name));
                active.map(tool).collect()
            }
            "name" => self.session.name().into(),
            "commands" => {
                let mut all = host.commands();
                all.extend(commands(&state.resources()));
                Value::Array(all)
            }
            _ => return None,
        })
    }

    /// Copies the session up to the tool calls in progress, and returns the id of the copy.
    async fn copy_session(&self) -> Result<Value, Refusal> {
        let Some(store) = &self.state.config.sessions else {
            let reason = "the session is not stored, so it cannot be copied";
            return Err(Refusal::Unavailable(reason.to_owned()));
        };
        let mut copy = Session::copy_of(&self.session, SessionId::generate());
        store.begin(&mut copy);
        match copy.save().await {
            Ok(true) => Ok(json!({ "session": copy.id() })),
            Ok(false) => Err(Refusal::Failed("the session has no messages".to_owned())),
            Err(error) => Err(Refusal::Failed(format!("cannot store the copy: {error}"))),
        }
    }

    async fn send(&self, host: &ScriptHost, params: &Value) -> Result<Value, Refusal> {
        let sent: SendParams = read(params)?;
        let message = Prompt {
            source: InputSource::Extension,
            extra: sent.extra(),
            ..Prompt::from(text_of(&sent.content))
        };
        if let Some(CustomParams {
            custom_type,
            lines: Some(lines),
            ..
        }) = sent.custom
        {
            self.state.record_rendered(RenderedMessage {
                kind: custom_type,
                text: message.text.clone(),
                lines,
            });
        }
        let reads_queues = self.is_working() && !self.state.is_run_over();
        if sent.trigger && !reads_queues {
            host.queue_prompt(message)?;
        } else if reads_queues || sent.deliver_as == "nextTurn" {
            let queue = if sent.deliver_as == "followUp" {
                QueueKind::FollowUp
            } else {
                QueueKind::Steering
            };
            let submitted = self.handle.submit_prompt(message, queue).await;
            submitted.map_err(|full| Refusal::Failed(full.to_string()))?;
        } else if let Ok(message) = self.handle.judge(message).await {
            self.add_message(message.into_message()).await;
        }
        Ok(json!({}))
    }

    /// Adds a message to the session while no run is in progress. The model sees it with its next call.
    async fn add_message(&self, message: Message) {
        let hooks = self.handle.hooks();
        hooks.announce(|| MessageStart::new(message.clone())).await;
        let message = hooks.finish_message(message).await;
        let agent = &self.identity.name;
        self.state
            .show_script_message(&*self.frontend, agent, &message);
        self.session.add_message(message);
    }

    async fn set(&self, host: &ScriptHost, params: &Value) -> Result<Value, Refusal> {
        let keys = params.as_object().into_iter().flatten();
        for (key, value) in keys {
            match key.as_str() {
                "active_tools" => {
                    let names: Vec<String> = read(value)?;
                    let own = |name: &String| (host.spelling().own_tool)(name).to_owned();
                    self.state.set_active_tools(names.iter().map(own).collect());
                }
                "model" => {
                    let name = model_name(value)?;
                    let source = ModelSelectSource::Set;
                    let chosen = self.change_selection().model(Some(&name), source).await;
                    chosen.map_err(|error| Refusal::Failed(error.to_string()))?;
                }
                "thinking_level" => {
                    let level: String = read(value)?;
                    let level = level.parse();
                    let level = level.map_err(|error: InvalidThinkingLevel| {
                        Refusal::Failed(error.to_string())
                    })?;
                    self.change_selection().thinking(level, true).await;
                }
                "name" => {
                    let name = one_line(&read::<String>(value)?);
                    if self.session.rename(&name) {
                        self.handle.announce_name(name).await;
                    }
                }
                "label" => {
                    let LabelParams { entry, label } = read(value)?;
                    let labelled = self.session.label(entry, label);
                    labelled.map_err(|error| Refusal::Failed(error.to_string()))?;
                }
                _ => {
                    return Err(Refusal::Failed(format!(
                        "this agent does not let scripts change `{key}`"
                    )));
                }
            }
        }
        Ok(json!({}))
    }

    /// Waits until no run is in progress.
    async fn wait_for_idle(&self, host: &ScriptHost) {
        loop {
            let idle = host.idle().notified();
            if !self.is_working() {
                return;
            }
            idle.await;
        }
    }

    fn stop_from_script(&self, host: &ScriptHost, params: &Value) -> Result<Value, Refusal> {
        let StopParams { what } = read(params)?;
        if what == "program" {
            // The program ends when the run is over, so that the model still gets the result of a tool that stops it.
            host.end_program();
        } else {
            self.stop();
        }
        Ok(json!({}))
    }

    /// Returns the token of the run in progress.
    pub(crate) fn current_run(&self) -> Option<CancellationToken> {
        self.run().clone()
    }

    fn run(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.run.lock()
    }

    fn is_working(&self) -> bool {
        self.run().is_some()
    }

    fn change_selection(&self) -> SelectionChange<'_, impl FnMut(&'static str, Value)> {
        SelectionChange {
            state: &self.state,
            hooks: self.handle.hooks(),
            record: |kind, data| self.session.add_entry(kind, data),
        }
    }

    fn stop(&self) {
        if let Some(run) = &*self.run() {
            run.cancel();
        }
    }
}

/// Describes the models that the agent can change to.
fn described_models(state: &AgentState) -> Value {
    let models = state.config.models.list().into_iter();
    let described = models.map(|(name, model)| match model {
        Some(model) => described(&*model),
        None => described_by_name(name, None),
    });
    described.collect()
}

/// Describes all tools, with the names that scripts of the host use.
fn described_tools(state: &AgentState, host: &ScriptHost) -> Value {
    let toolbox = state.toolbox();
    let tools = toolbox.names().filter_map(|name| {
        let spec = toolbox.spec(name)?;
        Some(json!({
            "name": (host.spelling().tool)(name),
            "description": spec.description,
            "parameters": spec.schema,
        }))
    });
    tools.collect()
}

/// Describes a model in pi's format.
fn described(provider: &dyn Provider) -> Value {
    let id = provider.id();
    json!({
        "id": id.name,
        "name": id.name,
        "provider": id.provider,
        "base_url": provider.chosen_url(),
        "contextWindow": provider.context_window(),
        "cost": provider.price().map(|price| json!({
            "input": price.input,
            "output": price.output,
            "cacheRead": price.cached_input,
            "cacheWrite": price.cached_write,
        })),
    })
}

/// Describes, in pi's format, a model that is not open. `has_key` is `None` if that is not known.
fn described_by_name(name: &str, has_key: Option<bool>) -> Value {
    let (provider, id) = name.split_once([':', '/']).unwrap_or(("", name));
    json!({ "id": id, "name": id, "provider": provider, "has_key": has_key })
}

/// Returns the tokens of the context: the service's last count, and an estimate of newer messages. `None` if the
/// conversation was compacted since the last count.
fn context_tokens(entries: &[SessionEntry]) -> Option<u64> {
    let mut newer = 0_u64;
    for entry in entries.iter().rev() {
        if entry.kind == COMPACTION {
            return None;
        }
        let Some(message) = &entry.message else {
            continue;
        };
        let usage = message.extra.get(message_extra::USAGE);
        if let Some(Ok(usage)) = usage.map(Usage::deserialize) {
            let counted = usage.input_tokens.saturating_add(usage.output_tokens);
            return Some(counted.saturating_add(newer));
        }
        newer = newer.saturating_add(estimate_tokens([message]));
    }
    Some(newer)
}

/// Returns the templates and skills that a user can call, in pi's format.
fn commands(resources: &Resources) -> Vec<Value> {
    let listed = |name: String, description: &str, source: &str, path: &Path, from| {
        json!({
            "name": name,
            "description": description,
            "source": source,
            "location": match from {
                &ResourceSource::User => "user",
                ResourceSource::Project { .. } => "project",
                ResourceSource::Hooks => "path",
            },
            "path": path,
        })
    };
    let templates = resources.templates().iter().map(|template| {
        let (name, source) = (template.name.clone(), &template.source);
        listed(
            name,
            &template.description,
            "prompt",
            &template.path,
            source,
        )
    });
    let skills = resources.skills().iter().map(|skill| {
        let (name, source) = (format!("skill:{}", skill.name), &skill.source);
        listed(name, &skill.description, "skill", &skill.path, source)
    });
    templates.chain(skills).collect()
}

pub(crate) fn read<'a, T: Deserialize<'a>>(params: &'a Value) -> Result<T, Refusal> {
    T::deserialize(params).map_err(|error| Refusal::Failed(error.to_string()))
}

#[derive(Deserialize)]
struct ReadParams {
    what: Vec<String>,
}

#[derive(Deserialize)]
struct SendParams {
    content: Value,
    #[serde(default)]
    deliver_as: String,
    #[serde(default)]
    trigger: bool,
    /// The extension's name for this kind of message, its details, and whether the user sees it. Missing if the
    /// extension speaks for the user.
    custom: Option<CustomParams>,
}

#[derive(Deserialize)]
struct CustomParams {
    #[serde(default)]
    custom_type: String,
    #[serde(default)]
    display: bool,
    details: Option<Value>,
    /// The lines with which the extension shows the message.
    lines: Option<Vec<String>>,
}

impl SendParams {
    /// Returns what hooks should know about the message.
    fn extra(&self) -> JsonObject {
        let mut extra = JsonObject::new();
        if let Some(custom) = &self.custom {
            let mut set = |key: &str, value: Value| extra.insert(key.to_owned(), value);
            set(message_extra::KIND, message_extra::EXTENSION.into());
            set(
                message_extra::CUSTOM_TYPE,
                custom.custom_type.as_str().into(),
            );
            set(message_extra::DISPLAY, custom.display.into());
            if let Some(details) = &custom.details {
                set(message_extra::DETAILS, details.clone());
            }
        }
        extra
    }
}

#[derive(Deserialize)]
struct AppendParams {
    custom_type: String,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
struct CompactParams {
    custom_instructions: Option<String>,
}

#[derive(Deserialize)]
struct LabelParams {
    entry: EntryId,
    label: Option<String>,
}

#[derive(Deserialize)]
struct StopParams {
    what: String,
}

/// Returns the name of the model that a script selects: a string, or an object with `provider` and `id`.
pub(crate) fn model_name(value: &Value) -> Result<String, Refusal> {
    if let Value::String(name) = value {
        return Ok(name.clone());
    }
    let part = |key: &str| value.get(key)?.as_str();
    match (part("provider"), part("id")) {
        (Some(provider), Some(id)) if !provider.is_empty() => Ok(format!("{provider}/{id}")),
        (_, Some(id)) => Ok(id.to_owned()),
        (_, None) => Err(Refusal::Failed(
            "the model has no `id`, expected a name or an object with `provider` and `id`"
                .to_owned(),
        )),
    }
}

/// Returns the text of a message: a string, or a list of blocks of which some have text.
fn text_of(content: &Value) -> String {
    if let Value::String(text) = content {
        return text.clone();
    }
    let blocks = content.as_array().into_iter().flatten();
    let texts: Vec<&str> = blocks
        .filter_map(|block| block.get("text")?.as_str())
        .collect();
    texts.join("\n")
}
