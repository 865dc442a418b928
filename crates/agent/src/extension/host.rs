//! The agent as its scripts see it: what they may ask the user, read of the session, and have done.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};
use tenterhook_handlers::worker::{Host, NoHost, Refusal};
use tenterhook_protocol::event::{
    InputSource, ModelSelectSource, NotificationLevel, QueueKind, SessionEntry,
};
use tenterhook_protocol::{EntryId, JsonObject};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::wish::{Lead, PendingWish, Wish, Wishes};
use crate::frontend::Frontend;
use crate::life::{Identity, Setup, one_line};
use crate::model::{Change, Chooser, InvalidThinkingLevel, ThinkingLevel};
use crate::queue::AgentHandle;
use crate::resource::Resources;
use crate::session::{SessionView, estimate_tokens};

/// The most prompts of scripts that wait for the agent.
const MOST_PROMPTS: usize = 64;

/// What a script asks the user.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Question {
    /// Yes or no; the answer is `yes` or `no`.
    Confirm {
        /// What it is about.
        title: String,
        /// The question.
        message: String,
    },
    /// One of several; the answer is one of the options.
    Select {
        /// What it is about.
        title: String,
        /// What can be answered.
        options: Vec<String>,
    },
    /// A text.
    Input {
        /// What it is about.
        title: String,
        /// What stands there before something is written.
        placeholder: Option<String>,
    },
}

/// How scripts name and write what the agent has. The default is as the agent does.
#[derive(Debug, Clone, Copy)]
pub struct Spelling {
    /// Writes an entry of the session.
    pub entry: fn(&SessionEntry) -> Value,
    /// Returns the name of a tool.
    pub tool: fn(&str) -> &str,
    /// Returns the agent's name of a tool.
    pub own_tool: fn(&str) -> &str,
}

impl Default for Spelling {
    fn default() -> Self {
        Self {
            entry: |entry| json!(entry),
            tool: |name| name,
            own_tool: |name| name,
        }
    }
}

/// The agent as its scripts see it. Scripts are loaded before there is an agent; they are answered from
/// [`AgentBuilder::build`](crate::AgentBuilder::build) on.
#[derive(Debug)]
pub struct ScriptHost {
    has_ui: bool,
    flags: JsonObject,
    spelling: Spelling,
    view: Mutex<Option<Arc<View>>>,
    /// What scripts want the agent to work on next.
    prompts: Mutex<VecDeque<String>>,
    /// What scripts want done with the session.
    wishes: Wishes,
    /// Told when a run is over.
    idle: Notify,
    /// A script wants the program to end.
    is_over: AtomicBool,
}

impl ScriptHost {
    /// Makes the view of an agent that is still to come. `has_ui` says whether somebody sees what scripts show and answers what they
    /// ask; `flags` are those that the user gave, by their names.
    pub fn new(has_ui: bool, flags: JsonObject, spelling: Spelling) -> Self {
        Self {
            has_ui,
            flags,
            spelling,
            view: Mutex::default(),
            prompts: Mutex::default(),
            wishes: Wishes::default(),
            idle: Notify::new(),
            is_over: AtomicBool::new(false),
        }
    }

    /// Returns what a script wants the agent to work on next, once.
    pub fn take_prompt(&self) -> Option<String> {
        self.prompts().pop_front()
    }

    /// Forgets what scripts want the agent to work on, and returns how many prompts that were.
    pub fn forget_prompts(&self) -> usize {
        self.prompts().drain(..).count()
    }

    /// Returns what a script wants done with the session, once.
    pub fn take_wish(&self) -> Option<PendingWish> {
        self.wishes.take()
    }

    /// Waits for what a script wants done with the session. A command that asks meanwhile waits until that is done, so grant
    /// wishes while a command runs, and wait for the next one after each of them.
    pub async fn next_wish(&self) -> PendingWish {
        self.wishes.next().await
    }

    /// Says whether a script wants the program to end.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn prompts(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> MutexGuard<'_, Option<Arc<View>>> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that there is an agent now, until what is returned is dropped.
    pub(crate) fn attach(self: &Arc<Self>, view: View) -> Attached {
        *self.view() = Some(Arc::new(view));
        Attached(Arc::clone(self))
    }

    async fn serve(&self, method: &str, params: &Value) -> Result<Value, Refusal> {
        let view = self.view().clone();
        let Some(view) = view else {
            return NoHost.answer(method, params).await;
        };
        match method {
            "ui/notify" => {
                let Notice { message, level } = read(params)?;
                view.frontend.notification(level_of(&level), &message);
                Ok(json!({}))
            }
            "ui/confirm" | "ui/select" | "ui/input" => self.ask(&view, method, params).await,
            "session/read" => self.read(&view, params),
            "session/send" => self.send(&view, params).await,
            "session/append" => {
                let Note { custom_type, data } = read(params)?;
                view.session.note(&custom_type, &data);
                Ok(json!({}))
            }
            "session/lead" => {
                let lead: Lead = read(params)?;
                if lead.what == "wait" {
                    self.wait_for_idle(&view).await;
                    return Ok(json!({}));
                }
                self.wishes.ask(lead.wish()?).await
            }
            "session/compact" => {
                let Compaction {
                    custom_instructions,
                } = read(params)?;
                self.wishes.ask(Wish::Compact(custom_instructions)).await
            }
            "session/set" => self.set(&view, params).await,
            "session/stop" => self.stop(&view, params),
            _ if method.starts_with("session/") => Err(Refusal::Failed(format!(
                "this agent does not let scripts use `{method}`"
            ))),
            _ => Err(Refusal::NoMethod),
        }
    }

    async fn ask(&self, view: &View, method: &str, params: &Value) -> Result<Value, Refusal> {
        if !self.has_ui {
            return Ok(json!({}));
        }
        let Asked {
            title,
            message,
            options,
            placeholder,
        } = read(params)?;
        let is_confirm = method == "ui/confirm";
        let question = match method {
            "ui/confirm" => Question::Confirm { title, message },
            "ui/select" => Question::Select { title, options },
            _ => Question::Input { title, placeholder },
        };
        let _one_at_a_time = view.setup.question.lock().await;
        let answer = view.frontend.question(&question).await;
        Ok(match answer {
            None => json!({}),
            Some(answer) if is_confirm => json!({ "answer": answer == "yes" }),
            Some(answer) => json!({ "answer": answer }),
        })
    }

    fn read(&self, view: &View, params: &Value) -> Result<Value, Refusal> {
        let Wanted { what } = read(params)?;
        let keys = what.into_iter();
        let known = keys.filter_map(|key| {
            let value = self.known(view, &key)?;
            Some((key, value))
        });
        Ok(Value::Object(known.collect()))
    }

    fn known(&self, view: &View, key: &str) -> Option<Value> {
        let setup = &view.setup;
        let tool = |name: &str| Value::from((self.spelling.tool)(name));
        Some(match key {
            "id" => json!(view.session.id()),
            "entries" => view
                .session
                .with_entries(|entries| entries.iter().map(self.spelling.entry).collect::<Value>()),
            "model" => {
                let id = setup.selected().id();
                let (provider, name) = id.split_once([':', '/']).unwrap_or(("", &id));
                json!({ "id": name, "name": name, "provider": provider })
            }
            "thinking_level" => {
                let level = setup.selected().thinking;
                level.unwrap_or(ThinkingLevel::Off).as_str().into()
            }
            "system_prompt" => setup.system_prompt(&view.identity).into(),
            "is_idle" => (!view.is_working()).into(),
            "has_pending_messages" => (view.handle.waiting() > 0).into(),
            "usage" => {
                let tokens = view.session.with_entries(|entries| {
                    estimate_tokens(entries.iter().filter_map(|entry| entry.message.as_ref()))
                });
                let window = setup.context_window();
                json!({ "tokens": tokens, "contextWindow": window })
            }
            "all_tools" => {
                let names = setup.toolbox.names();
                let told = names.filter_map(|name| {
                    let spec = setup.toolbox.spec(name)?;
                    Some(json!({ "name": tool(name), "description": spec.description }))
                });
                told.collect()
            }
            "active_tools" => {
                let names = setup.toolbox.names();
                let active = names.filter(|name| setup.is_active(name));
                active.map(tool).collect()
            }
            "name" => view.session.name().into(),
            "commands" => commands(&setup.resources()),
            _ => return None,
        })
    }

    async fn send(&self, view: &View, params: &Value) -> Result<Value, Refusal> {
        let Sent {
            content,
            deliver_as,
            trigger,
        } = read(params)?;
        let text = text_of(&content);
        if !view.is_working() && trigger {
            let mut prompts = self.prompts();
            if prompts.len() == MOST_PROMPTS {
                return Err(Refusal::Failed(format!(
                    "{MOST_PROMPTS} prompts wait already"
                )));
            }
            prompts.push_back(text);
        } else {
            let queue = if deliver_as == "followUp" {
                QueueKind::FollowUp
            } else {
                QueueKind::Steering
            };
            let submitted = view
                .handle
                .submit(text, InputSource::Extension, queue)
                .await;
            submitted.map_err(|full| Refusal::Failed(full.to_string()))?;
        }
        Ok(json!({}))
    }

    async fn set(&self, view: &View, params: &Value) -> Result<Value, Refusal> {
        let keys = params.as_object().into_iter().flatten();
        for (key, value) in keys {
            match key.as_str() {
                "active_tools" => {
                    let names: Vec<String> = read(value)?;
                    let own = |name: &String| (self.spelling.own_tool)(name).to_owned();
                    view.setup.activate(names.iter().map(own).collect());
                }
                "model" => {
                    let name = model_name(value)?;
                    let source = ModelSelectSource::Set;
                    let chosen = view.chooser().model(Some(&name), source).await;
                    chosen.map_err(|error| Refusal::Failed(error.to_string()))?;
                }
                "thinking_level" => {
                    let level: String = read(value)?;
                    let level = level.parse();
                    let level = level.map_err(|error: InvalidThinkingLevel| {
                        Refusal::Failed(error.to_string())
                    })?;
                    view.chooser().thinking(level, true).await;
                }
                "name" => {
                    let name = one_line(&read::<String>(value)?);
                    if view.session.rename(&name) {
                        view.handle.announce_name(name).await;
                    }
                }
                "label" => {
                    let Label { entry, label } = read(value)?;
                    view.session.label(entry, label);
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

    /// Waits until no run is under way.
    async fn wait_for_idle(&self, view: &View) {
        loop {
            let idle = self.idle.notified();
            if !view.is_working() {
                return;
            }
            idle.await;
        }
    }

    fn stop(&self, view: &View, params: &Value) -> Result<Value, Refusal> {
        let Stop { what } = read(params)?;
        if what == "program" {
            self.is_over.store(true, Ordering::Relaxed);
        }
        view.stop();
        Ok(json!({}))
    }
}

impl Host for ScriptHost {
    fn has_ui(&self) -> bool {
        self.has_ui
    }

    fn flags(&self) -> JsonObject {
        self.flags.clone()
    }

    fn said(&self, worker: &str, line: &str) {
        let view = self.view().clone();
        if let Some(view) = view {
            view.frontend.script_output(worker, line);
        }
    }

    fn answer<'a>(
        &'a self,
        method: &'a str,
        params: &'a Value,
    ) -> BoxFuture<'a, Result<Value, Refusal>> {
        Box::pin(self.serve(method, params))
    }
}

/// What scripts are answered from.
pub(crate) struct View {
    pub(crate) setup: Arc<Setup>,
    pub(crate) identity: Identity,
    pub(crate) handle: AgentHandle,
    pub(crate) session: SessionView,
    pub(crate) frontend: Arc<dyn Frontend>,
    /// The run under way.
    pub(crate) run: Mutex<Option<CancellationToken>>,
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

impl View {
    fn run(&self) -> MutexGuard<'_, Option<CancellationToken>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_working(&self) -> bool {
        self.run().is_some()
    }

    fn chooser(&self) -> Chooser<'_, impl FnMut(Change)> {
        Chooser {
            setup: &self.setup,
            hooks: self.handle.hooks(),
            note: |change| self.session.add(change),
        }
    }

    fn stop(&self) {
        if let Some(run) = &*self.run() {
            run.cancel();
        }
    }
}

/// An agent that scripts may ask for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Attached(Arc<ScriptHost>);

impl Attached {
    /// Notes that a run is under way, until what is returned is dropped.
    pub(crate) fn working(&self, run: CancellationToken) -> Working<'_> {
        if let Some(view) = &*self.0.view() {
            *view.run() = Some(run);
        }
        Working(&self.0)
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        *self.0.view() = None;
    }
}

/// A run that scripts may stop.
pub(crate) struct Working<'a>(&'a ScriptHost);

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if let Some(view) = &*self.0.view() {
            *view.run() = None;
        }
        self.0.idle.notify_waiters();
    }
}

/// Returns what a user can call beside commands, as pi tells it.
fn commands(resources: &Resources) -> Value {
    let templates = resources.templates().iter().map(|template| {
        json!({ "name": template.name, "description": template.description, "source": "prompt" })
    });
    let skills = resources.skills().iter().map(|skill| {
        let name = format!("skill:{}", skill.name);
        json!({ "name": name, "description": skill.description, "source": "skill" })
    });
    templates.chain(skills).collect()
}

fn read<'a, T: Deserialize<'a>>(params: &'a Value) -> Result<T, Refusal> {
    T::deserialize(params).map_err(|error| Refusal::Failed(error.to_string()))
}

#[derive(Deserialize)]
struct Notice {
    message: String,
    #[serde(default)]
    level: String,
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Asked {
    title: String,
    message: String,
    options: Vec<String>,
    placeholder: Option<String>,
}

#[derive(Deserialize)]
struct Wanted {
    what: Vec<String>,
}

#[derive(Deserialize)]
struct Sent {
    content: Value,
    #[serde(default)]
    deliver_as: String,
    #[serde(default)]
    trigger: bool,
}

#[derive(Deserialize)]
struct Note {
    custom_type: String,
    #[serde(default)]
    data: Value,
}

#[derive(Deserialize)]
struct Compaction {
    custom_instructions: Option<String>,
}

#[derive(Deserialize)]
struct Label {
    entry: EntryId,
    label: Option<String>,
}

#[derive(Deserialize)]
struct Stop {
    what: String,
}

/// Returns the name of a model that a script means: a text, or `provider` and `id`.
fn model_name(value: &Value) -> Result<String, Refusal> {
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

fn level_of(word: &str) -> NotificationLevel {
    match word {
        "error" => NotificationLevel::Error,
        "warning" => NotificationLevel::Warning,
        _ => NotificationLevel::Info,
    }
}

/// Returns the text of a message: a text, or blocks of which some are.
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
