//! The state that changes while an agent works. The main agent and its subagents share it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::resource::Resources;
use parking_lot::MutexGuard;
use serde_json::Value;
use tenterhook_protocol::event::InputSource;
use tenterhook_protocol::{Message, SessionId, Usage, message_extra};
#[cfg(unix)]
use tenterhook_runners::worker::{Refusal, ScriptAddition, ScriptServer};
use tenterhook_tools::{Permissions, READ_FILE, RUN_BACKGROUND_AGENT, TRANSFER_TASK, Toolbox};
use tokio::sync::{Mutex, Semaphore};

use crate::attention::UserAttention;
use crate::config::AgentConfig;
use crate::context_swap::SwapSlot;
#[cfg(unix)]
use crate::extension::Spelling;
use crate::frontend::Frontend;
use crate::identity::AgentIdentity;
use crate::models::SelectedModel;
use crate::queue::InputQueues;

/// The state of a main agent and of the subagents that work for it, for one session.
#[derive(Debug)]
pub(crate) struct AgentState {
    pub(crate) config: Arc<AgentConfig>,
    /// The selected model. A turn keeps the model with which it began.
    selected: parking_lot::Mutex<SelectedModel>,
    /// The model that the agent was built with.
    pub(crate) initial_model: SelectedModel,
    /// The permission rules, and the user's permissions for the rest of the session.
    pub(crate) permissions: Permissions,
    pub(crate) swap_slot: Option<SwapSlot>,
    pub(crate) queues: InputQueues,
    /// Whether the main agent's run no longer reads its queues.
    is_run_over: AtomicBool,
    /// Tokens of all model calls, including the calls of subagents, so that a task cannot escape the budget.
    spent_tokens: AtomicU64,
    /// Held while the user is asked, so that there is one question at a time.
    pub(crate) question: Mutex<()>,
    /// Whether the user follows. Background agents ask only while the user does.
    pub(crate) attention: UserAttention,
    /// One permit for each background task that may run.
    pub(crate) background_slots: Arc<Semaphore>,
    /// The tools that scripts let the main agent use, or `None` for all.
    active_tools: parking_lot::Mutex<Option<Vec<String>>>,
    /// How scripts show the messages that they have sent and that are not shown yet.
    rendered: parking_lot::Mutex<VecDeque<RenderedMessage>>,
    /// The templates and skills of the main agent.
    resources: parking_lot::Mutex<Arc<Resources>>,
}

/// The maximum number of rendered messages that wait until they are shown.
const MAX_RENDERED: usize = 64;

/// How a script shows a message that it sends.
#[derive(Debug)]
pub(crate) struct RenderedMessage {
    /// The script's name for this kind of message.
    pub(crate) kind: String,
    /// The message. If hooks change it, it is shown as text.
    pub(crate) text: String,
    pub(crate) lines: Vec<String>,
}

impl AgentState {
    /// Creates the state of an agent at the beginning of a session.
    pub(crate) fn new(
        config: &Arc<AgentConfig>,
        selected: SelectedModel,
        initial_model: SelectedModel,
        permissions: Permissions,
        session: &SessionId,
    ) -> Self {
        let max_tasks = usize::try_from(config.limits.background_tasks).unwrap_or(usize::MAX);
        let swaps = config.context_swaps.clone();
        Self {
            config: Arc::clone(config),
            selected: parking_lot::Mutex::new(selected),
            initial_model,
            permissions,
            swap_slot: swaps.map(|swaps| SwapSlot::new(swaps, session.clone())),
            queues: InputQueues::default(),
            is_run_over: AtomicBool::new(false),
            spent_tokens: AtomicU64::new(0),
            question: Mutex::default(),
            attention: UserAttention::default(),
            background_slots: Arc::new(Semaphore::new(max_tasks.min(Semaphore::MAX_PERMITS))),
            active_tools: parking_lot::Mutex::default(),
            rendered: parking_lot::Mutex::default(),
            resources: parking_lot::Mutex::default(),
        }
    }

    /// Returns the model that is selected now.
    pub(crate) fn selected(&self) -> SelectedModel {
        self.lock_selected().clone()
    }

    /// Locks the selected model, to change it.
    pub(crate) fn lock_selected(&self) -> MutexGuard<'_, SelectedModel> {
        self.selected.lock()
    }

    /// Records whether the main agent's run no longer reads its queues.
    pub(crate) fn set_run_over(&self, is_over: bool) {
        self.is_run_over.store(is_over, Ordering::Release);
    }

    /// Returns whether the main agent's run no longer reads its queues.
    #[cfg(unix)]
    pub(crate) fn is_run_over(&self) -> bool {
        self.is_run_over.load(Ordering::Acquire)
    }

    /// Adds the tokens of a model call.
    pub(crate) fn spend(&self, usage: &Usage) {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        self.spent_tokens.fetch_add(tokens, Ordering::Relaxed);
    }

    /// Returns the tokens of all model calls.
    pub(crate) fn spent_tokens(&self) -> u64 {
        self.spent_tokens.load(Ordering::Relaxed)
    }

    /// Limits the main agent to these tools.
    #[cfg(unix)]
    pub(crate) fn set_active_tools(&self, names: Vec<String>) {
        *self.active_tools.lock() = Some(names);
    }

    /// Returns the agent's tools, including those that scripts have added since they were loaded.
    pub(crate) fn toolbox(&self) -> Toolbox {
        #[cfg(unix)]
        if let Some(added) = self.config.additions.toolbox() {
            return added;
        }
        self.config.toolbox.clone()
    }

    /// Adds something that a script registers after it was loaded. A tool is active at once, as in pi.
    #[cfg(unix)]
    pub(crate) fn add(
        &self,
        script: Arc<dyn ScriptServer>,
        addition: ScriptAddition,
        spelling: &Spelling,
    ) -> Result<(), Refusal> {
        let own = &self.config.toolbox;
        let added = self.config.additions.add(own, script, addition, spelling)?;
        if let (Some(name), Some(active)) = (added, &mut *self.active_tools.lock())
            && !active.contains(&name)
        {
            active.push(name);
        }
        Ok(())
    }

    /// Records how a script shows a message that it sends. The oldest record is dropped if there are too many.
    #[cfg(unix)]
    pub(crate) fn record_rendered(&self, rendered: RenderedMessage) {
        let mut all = self.rendered.lock();
        if all.len() == MAX_RENDERED {
            all.pop_front();
        }
        all.push_back(rendered);
    }

    /// Shows a message if a script sent it and wants it to be shown.
    pub(crate) fn show_script_message(
        &self,
        frontend: &dyn Frontend,
        agent: &str,
        message: &Message,
    ) {
        let of = |key: &str| message.extra.get(key);
        let is_extension =
            of(message_extra::KIND).and_then(Value::as_str) == Some(message_extra::EXTENSION);
        if !is_extension || of(message_extra::DISPLAY) != Some(&Value::Bool(true)) {
            return;
        }
        let kind = of(message_extra::CUSTOM_TYPE).and_then(Value::as_str);
        let lines = {
            let mut all = self.rendered.lock();
            let is_shown =
                |it: &RenderedMessage| Some(&*it.kind) == kind && it.text == message.content;
            let place = all.iter().position(is_shown);
            place.and_then(|place| all.remove(place))
        };
        match lines {
            Some(rendered) => frontend.extension_lines(agent, message, &rendered.lines),
            None => frontend.extension_message(agent, message),
        }
    }

    /// Returns whether scripts let the main agent use a tool.
    pub(crate) fn is_active(&self, name: &str) -> bool {
        let active = self.active_tools.lock();
        active
            .as_ref()
            .is_none_or(|names| names.iter().any(|active| active == name))
    }

    /// Returns the templates and skills.
    pub(crate) fn resources(&self) -> Arc<Resources> {
        Arc::clone(&self.resources.lock())
    }

    /// Replaces the templates and skills.
    pub(crate) fn set_resources(&self, resources: Resources) {
        *self.resources.lock() = Arc::new(resources);
    }

    /// Expands an input that names a template or skill. Input of scripts is never expanded.
    pub(crate) fn expand(&self, text: String, source: InputSource) -> String {
        if source == InputSource::Extension {
            return text;
        }
        self.resources().expand(&text).unwrap_or(text)
    }

    /// Returns the system prompt of an agent. Hooks may replace it.
    pub(crate) fn system_prompt(&self, identity: &AgentIdentity) -> String {
        let instruction = &identity.instruction;
        let reads = identity.depth == 0 && self.may_use(identity, READ_FILE);
        match self.resources().introduce().filter(|_| reads) {
            Some(skills) if instruction.is_empty() => skills,
            Some(skills) => format!("{instruction}\n\n{skills}"),
            None => instruction.clone(),
        }
    }

    /// Returns whether an agent may have this tool at all.
    pub(crate) fn may_use(&self, identity: &AgentIdentity, name: &str) -> bool {
        let is_listed = identity
            .tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|tool| tool == name));
        let is_active = identity.depth > 0 || self.is_active(name);
        is_listed
            && is_active
            && self.toolbox().admits(name, &identity.restrictions)
            && (![TRANSFER_TASK, RUN_BACKGROUND_AGENT].contains(&name)
                || identity.depth < self.config.limits.task_depth)
    }

    /// Returns the context window of the selected model in tokens, if it is known.
    pub(crate) fn context_window(&self) -> Option<u64> {
        let limit = self.config.limits.context_window;
        limit.or_else(|| self.selected().provider.context_window())
    }
}
