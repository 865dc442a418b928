//! One agent with one session: what a main agent and a subagent have in common.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tenterhook_handlers::ResponseCache;
use tenterhook_process::cut;
use tenterhook_protocol::event::{
    DiscoverReason, InputSource, NotificationLevel, ResourcesDiscover, SavePoint, SessionEnd,
    SessionEndReason, SessionInfoChange, SessionSource, SessionStart,
};
use tenterhook_protocol::{Message, SessionId, Usage};
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::agent::AgentSpec;
use crate::background::{Attention, Tasks};
use crate::hooks::Hooks;
use crate::limit::{Limits, RetryPolicy};
use crate::model::{Models, Selected};
use crate::permission::Permissions;
use crate::protection::ProtectedFiles;
use crate::queue::Queues;
use crate::resource::{ResourcePlaces, Resources};
use crate::restriction::{AgentRestrictions, Restrictions};
use crate::session::{Session, estimate_tokens};
use crate::swap::Seat;
use crate::tool::{READ_FILE, RUN_BACKGROUND_AGENT, TRANSFER_TASK, Toolbox};

/// How many files that cannot be used are told of one by one.
const MOST_TOLD: usize = 20;

/// The longest name of a session, in characters.
const LONGEST_NAME: usize = 200;

/// What the agents of one family share.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The model that answers; a turn is led with the one of its beginning.
    pub(crate) selected: std::sync::Mutex<Selected>,
    /// What is chosen where nobody chose anything.
    pub(crate) built_with: Selected,
    /// The models that there are to choose from.
    pub(crate) models: Models,
    pub(crate) toolbox: Toolbox,
    pub(crate) permissions: Permissions,
    pub(crate) protected_files: Arc<ProtectedFiles>,
    pub(crate) cwd: PathBuf,
    pub(crate) agents: Vec<AgentSpec>,
    /// The restrictions of agents, by name.
    pub(crate) restrictions: BTreeMap<String, Arc<AgentRestrictions>>,
    pub(crate) limits: Limits,
    pub(crate) retry: RetryPolicy,
    pub(crate) responses: Option<ResponseCache>,
    pub(crate) swaps: Option<Seat>,
    pub(crate) queues: Queues,
    /// Tokens of all model calls, subagents' included, so that a task cannot escape the budget.
    pub(crate) spent: AtomicU64,
    /// Held while the user is asked: one question at a time.
    pub(crate) question: Mutex<()>,
    /// Whether the user follows; who works in the background asks only then.
    pub(crate) attention: Attention,
    /// Places for tasks in the background.
    pub(crate) background: Arc<Semaphore>,
    /// The tools that scripts let the main agent have; `None` is all.
    pub(crate) active_tools: std::sync::Mutex<Option<Vec<String>>>,
    /// The templates and skills of the main agent.
    pub(crate) resources: std::sync::Mutex<Arc<Resources>>,
}

impl Setup {
    pub(crate) fn spend(&self, usage: &Usage) {
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        self.spent.fetch_add(tokens, Ordering::Relaxed);
    }

    fn active(&self) -> std::sync::MutexGuard<'_, Option<Vec<String>>> {
        self.active_tools
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Lets the main agent have no other tools than these.
    pub(crate) fn activate(&self, names: Vec<String>) {
        *self.active() = Some(names);
    }

    /// Says whether scripts let the main agent have a tool.
    pub(crate) fn is_active(&self, name: &str) -> bool {
        self.active()
            .as_ref()
            .is_none_or(|names| names.iter().any(|active| active == name))
    }

    /// Returns the templates and skills.
    pub(crate) fn resources(&self) -> Arc<Resources> {
        let resources = self.resources.lock();
        Arc::clone(&resources.unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Returns what an input stands for: the template or skill that it names, or itself. What a script says is meant as it is.
    pub(crate) fn expand(&self, text: String, source: InputSource) -> String {
        if source == InputSource::Extension {
            return text;
        }
        self.resources().expand(&text).unwrap_or(text)
    }

    fn take_resources(&self, resources: Resources) {
        let held = self.resources.lock();
        *held.unwrap_or_else(std::sync::PoisonError::into_inner) = Arc::new(resources);
    }

    /// Returns what the model is told first, unless hooks tell it something else.
    pub(crate) fn system_prompt(&self, identity: &Identity) -> String {
        let instruction = &identity.instruction;
        let reads = identity.depth == 0 && self.may_use(identity, READ_FILE);
        match self.resources().introduce().filter(|_| reads) {
            Some(skills) if instruction.is_empty() => skills,
            Some(skills) => format!("{instruction}\n\n{skills}"),
            None => instruction.clone(),
        }
    }

    /// Says whether an agent may have the tool of that name at all.
    fn may_use(&self, identity: &Identity, name: &str) -> bool {
        let is_listed = identity
            .tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|tool| tool == name));
        let is_active = identity.depth > 0 || self.is_active(name);
        is_listed
            && is_active
            && identity.restrictions.admit(name, &self.toolbox)
            && (![TRANSFER_TASK, RUN_BACKGROUND_AGENT].contains(&name)
                || identity.depth < self.limits.task_depth)
    }

    pub(crate) fn context_window(&self) -> Option<u64> {
        self.limits
            .context_window
            .or_else(|| self.selected().provider.context_window())
    }
}

/// Who an agent is.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) instruction: String,
    /// The tools it may use; `None` is all.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) restrictions: Restrictions,
    /// How many agents stand between it and the main agent.
    pub(crate) depth: u32,
    /// It works, or an agent that it works for does, while the user speaks to another.
    pub(crate) in_background: bool,
}

impl Identity {
    /// Returns the name if the agent is a subagent.
    pub(crate) fn subagent(&self) -> Option<&str> {
        (self.depth > 0).then_some(self.name.as_str())
    }
}

/// How much of the model's context is used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Gauge {
    /// What the provider counted in the last call.
    pub(crate) usage: Usage,
    /// How many live messages of the session that count covers.
    covered: usize,
}

/// Returns a text as one line that is short enough for a list.
pub(crate) fn one_line(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let plain: String = plain.collect();
    let words: Vec<&str> = plain.split_whitespace().collect();
    let line = words.join(" ");
    cut::head(&line, LONGEST_NAME).trim_end().to_owned()
}

/// An agent and its session.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) setup: Arc<Setup>,
    pub(crate) identity: Identity,
    pub(crate) hooks: Hooks,
    pub(crate) session: Session,
    pub(crate) turns: u32,
    pub(crate) gauge: Gauge,
    /// What subagents do for it in the background.
    pub(crate) tasks: Tasks,
    /// The context's size from which a compaction that did not come about is tried again.
    put_off_until: Option<u64>,
    /// Something could not be stored, and the user knows.
    is_behind: bool,
}

impl Life {
    pub(crate) fn new(
        setup: Arc<Setup>,
        identity: Identity,
        hooks: Hooks,
        session: Session,
    ) -> Self {
        Self {
            turns: session.answers(),
            setup,
            identity,
            hooks,
            session,
            gauge: Gauge::default(),
            tasks: Tasks::default(),
            put_off_until: None,
            is_behind: false,
        }
    }

    /// Begins the session.
    pub(crate) async fn start(&mut self, source: SessionSource, previous: Option<SessionId>) {
        let build = || SessionStart {
            source,
            previous_session: previous,
        };
        let outcome = self.hooks.fire_always(build).await;
        for text in outcome.context() {
            self.session.push_context(text.clone());
        }
    }

    /// Looks for templates and skills, in these places and where hooks say.
    pub(crate) async fn discover(&mut self, reason: DiscoverReason, mut places: ResourcePlaces) {
        let outcome = self
            .hooks
            .fire_always(|| ResourcesDiscover { reason })
            .await;
        let (prompts, skills) = (outcome.prompt_paths(), outcome.skill_paths());
        places.add_of_hooks(prompts, skills, &self.setup.cwd);
        let loading = tokio::task::spawn_blocking(move || Resources::load(&places));
        let resources = loading.await.unwrap_or_default();
        for problem in resources.problems().iter().take(MOST_TOLD) {
            let text = problem.to_string();
            self.hooks
                .notify(NotificationLevel::Warning, "resource_problem", &text)
                .await;
        }
        if let Some(more @ 1..) = resources.problems().len().checked_sub(MOST_TOLD) {
            let text = format!("{more} more files of templates and skills cannot be used");
            self.hooks
                .notify(NotificationLevel::Warning, "resource_problem", &text)
                .await;
        }
        self.setup.take_resources(resources);
    }

    /// Puts the summary that a hook asked for in the place of the conversation.
    pub(crate) fn swap_context(&mut self) {
        let seat = self.setup.swaps.as_ref();
        let Some(summary) = seat.and_then(|seat| seat.take(self.session.id())) else {
            return;
        };
        let tokens = self.context_tokens();
        self.session.swap(summary, tokens);
        self.reset_gauge();
    }

    /// Gives the session a name and lets hooks know.
    pub(crate) async fn name_session(&mut self, name: &str) {
        let name = one_line(name);
        if !self.session.set_name(&name) {
            return;
        }
        self.hooks.tell(|| SessionInfoChange { name }).await;
        self.save().await;
    }

    /// Stores what the user said before a model is asked for an answer to it: a program that is killed then has lost
    /// no words of the user.
    pub(crate) async fn store_ahead(&mut self) {
        self.write().await;
    }

    /// Stores what is new in the session, where it is stored at all.
    pub(crate) async fn save(&mut self) {
        if self.write().await {
            self.hooks.tell(|| SavePoint {}).await;
        }
    }

    /// Says whether there was something to store. What could not be stored is stored with what comes next.
    async fn write(&mut self) -> bool {
        let error = match self.session.save().await {
            Ok(is_written) => {
                self.is_behind &= !is_written;
                return is_written;
            }
            Err(error) => error,
        };
        // Once is enough: a full disk stays full.
        if !std::mem::replace(&mut self.is_behind, true) {
            let cause = error.source().map(|cause| format!(": {cause}"));
            let cause = cause.unwrap_or_default();
            let text = format!("the session is not stored: {error}{cause}");
            self.hooks
                .notify(NotificationLevel::Error, "session_not_stored", &text)
                .await;
        }
        false
    }

    /// Leaves the user to the next prompt. Nobody asks anything then, and a run that was cancelled leaves nothing behind.
    pub(crate) async fn rest(&self, cancel: &CancellationToken) {
        if cancel.is_cancelled() {
            self.tasks.stop_all().await;
        }
        // Who asks just now is answered first.
        let _asked = cancel.run_until_cancelled(self.setup.question.lock()).await;
        self.setup.attention.set(false);
    }

    /// Ends the session.
    pub(crate) async fn end(&mut self, reason: SessionEndReason, target: Option<SessionId>) {
        // A session whose hooks are loaded anew goes on, and so do its tasks.
        if reason != SessionEndReason::Reload {
            self.tasks.stop_all().await;
        }
        self.save().await;
        let build = || SessionEnd {
            reason,
            target_session: target,
        };
        self.hooks.tell(build).await;
        // Hooks of the end may have added something.
        self.write().await;
    }

    /// Says whether the agent may have the tool of that name at all.
    pub(crate) fn may_use(&self, name: &str) -> bool {
        self.setup.may_use(&self.identity, name)
    }

    /// Returns the names of the tools that it has, in the toolbox's order.
    pub(crate) fn tool_names(&self) -> Vec<String> {
        let names = self.setup.toolbox.names();
        names
            .filter(|name| self.may_use(name))
            .map(str::to_owned)
            .collect()
    }

    /// Says whether the context should be compacted before the next model call.
    pub(crate) fn wants_compaction(&self) -> bool {
        let threshold = self.compaction_threshold().max(self.put_off_until);
        threshold.is_some_and(|threshold| self.context_tokens() >= threshold)
    }

    /// Notes that a compaction did not come about. Hooks are not asked again, and no model, until the
    /// context grew.
    pub(crate) fn put_off_compaction(&mut self) {
        let step = self.compaction_threshold().unwrap_or_default() / 10;
        self.put_off_until = Some(self.context_tokens().saturating_add(step.max(1)));
    }

    fn compaction_threshold(&self) -> Option<u64> {
        let threshold = self.setup.limits.compact_at;
        threshold.or_else(|| Some(self.setup.context_window()?.saturating_mul(9) / 10))
    }

    /// Notes what the provider counted for a call whose answer is stored next.
    pub(crate) fn note_usage(&mut self, usage: Usage) {
        self.setup.spend(&usage);
        self.gauge = Gauge {
            usage,
            covered: self.session.live().count() + 1,
        };
    }

    /// Charges a call that the provider did not count: a budget holds all the same.
    pub(crate) fn spend_estimate(&self, answer: &Message) {
        let usage = Usage {
            input_tokens: self.session.estimated_tokens(),
            output_tokens: estimate_tokens([answer]),
            ..Usage::default()
        };
        self.setup.spend(&usage);
    }

    /// Forgets the count, and what followed from it: the messages that it covered are gone.
    pub(crate) fn reset_gauge(&mut self) {
        self.gauge = Gauge::default();
        self.put_off_until = None;
    }

    /// Returns the context's size in tokens: what was counted last, and an estimate of what came since.
    pub(crate) fn context_tokens(&self) -> u64 {
        let counted = self
            .gauge
            .usage
            .input_tokens
            .saturating_add(self.gauge.usage.output_tokens);
        if counted == 0 {
            return self.session.estimated_tokens();
        }
        let newer = self
            .session
            .live()
            .skip(self.gauge.covered)
            .filter_map(|entry| entry.message.as_ref());
        counted.saturating_add(estimate_tokens(newer))
    }
}
