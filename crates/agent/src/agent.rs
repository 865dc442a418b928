//! The agent: what it is made of, and the sessions it leads.

use std::collections::BTreeMap;
use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tenterhook::Engine;
use tenterhook_handlers::ResponseCache;
use tenterhook_protocol::event::{
    DiscoverReason, InputSource, ModelSelectSource, SessionDirectoryResolve, SessionEndReason,
    SessionSource,
};
use tenterhook_protocol::{AgentId, AgentRef, EntryId, Image, InvokedBy, Origin, SessionId, Usage};
use thiserror::Error;
use tokio::sync::{Mutex, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::background::Attention;
use crate::compaction::{Compacted, CompactionError};
#[cfg(unix)]
use crate::extension::{Attached, ScriptHost, View};
use crate::frontend::{Frontend, NonInteractive};
use crate::hooks::Hooks;
use crate::life::{Identity, Life, Setup};
use crate::limit::{Limits, RetryPolicy};
use crate::model::{Models, SelectError, Selected, ThinkingLevel};
use crate::permission::{Permissions, RuleProblem};
use crate::protection::ProtectedFiles;
use crate::provider::{ModelId, Provider};
use crate::queue::{AgentHandle, Queues};
use crate::resource::{ResourcePlaces, Resources};
use crate::restriction::{AgentRestrictions, Restrictions};
use crate::session::{NoEntry, Session, Sessions};
use crate::swap::{ContextSwaps, Seat};
use crate::tool::{
    Agents, BACKGROUND_TOOLS, TRANSFER_TASK, Toolbox, TransferTask, add_background_tools,
};
use crate::user_command::{UserCommand, UserCommandError, UserCommandRun};

/// The instruction of the main agent unless another is given.
const DEFAULT_INSTRUCTION: &str = "You are a helpful assistant with tools for files and commands. Use them to do what the user asks, and say plainly what you did.";

/// An agent that the main agent can give tasks to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSpec {
    /// The name; tasks are given by it.
    pub name: String,
    /// What it is good for, in the words that the main agent reads.
    pub description: String,
    /// Its system prompt.
    pub instruction: String,
    /// The tools that it has, of those that the agent which gives the task has at that time. `None` is
    /// all of these.
    pub tools: Option<Vec<String>>,
}

/// An agent that cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No model was chosen.
    #[error("the agent has no model")]
    NoModel,
    /// Two agents have one name.
    #[error("two agents are named `{name}`")]
    SameName {
        /// The name.
        name: String,
    },
    /// A list of tools names one that does not exist.
    #[error("agent `{agent}`: there is no tool `{tool}`, expected some of {known}")]
    UnknownTool {
        /// The agent.
        agent: String,
        /// What was given.
        tool: String,
        /// The tools that exist.
        known: String,
    },
    /// A limit leaves no room for anything.
    #[error("the limit `{limit}` is 0, expected at least 1")]
    ZeroLimit {
        /// The limit.
        limit: &'static str,
    },
}

/// Collects what an agent is made of.
#[derive(Debug)]
pub struct AgentBuilder {
    provider: Option<Arc<dyn Provider>>,
    model_name: Option<String>,
    keeps_model: bool,
    thinking: Option<ThinkingLevel>,
    session: Option<Session>,
    parts: Parts,
}

/// What every session of an agent is made of.
#[derive(Debug)]
pub(crate) struct Parts {
    engine: Engine,
    name: String,
    instruction: String,
    cwd: PathBuf,
    sessions: Option<Sessions>,
    toolbox: Toolbox,
    tools: Option<Vec<String>>,
    permissions: Permissions,
    protected_files: Arc<ProtectedFiles>,
    frontend: Arc<dyn Frontend>,
    agents: Vec<AgentSpec>,
    restrictions: BTreeMap<String, Arc<AgentRestrictions>>,
    limits: Limits,
    models: Models,
    /// What the agent was built with, once it is.
    built_with: Option<Selected>,
    retry: RetryPolicy,
    responses: Option<ResponseCache>,
    swaps: Option<Arc<ContextSwaps>>,
    recipe: Option<String>,
    workspace: Option<String>,
    resources: ResourcePlaces,
    has_background: bool,
    #[cfg(unix)]
    scripts: Option<Arc<ScriptHost>>,
}

impl AgentBuilder {
    /// Sets the model. There is no default.
    #[must_use]
    pub fn model(mut self, provider: Arc<dyn Provider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets the name by which the model is chosen again. The default is its id.
    #[must_use]
    pub fn model_name(mut self, name: impl Into<String>) -> Self {
        self.model_name = Some(name.into());
        self
    }

    /// Sets the models that can be chosen beside that one. The default is none.
    #[must_use]
    pub fn models(mut self, models: Models) -> Self {
        self.parts.models = models;
        self
    }

    /// Leads a session that goes on with the model and the thinking level of this builder, whatever it was led with
    /// before. The default is to restore what it was led with. Sessions that the agent goes on with later are restored
    /// in any case.
    #[must_use]
    pub fn keep_model(mut self) -> Self {
        self.keeps_model = true;
        self
    }

    /// Sets how much the model thinks. The default leaves it to the service.
    #[must_use]
    pub fn thinking(mut self, level: ThinkingLevel) -> Self {
        self.thinking = Some(level);
        self
    }

    /// Sets the name. The default is `root`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.parts.name = name.into();
        self
    }

    /// Sets the system prompt. The default is a general one.
    #[must_use]
    pub fn instruction(mut self, instruction: impl Into<String>) -> Self {
        self.parts.instruction = instruction.into();
        self
    }

    /// Sets the directory that the agent works in. A relative one starts from the current directory
    /// of when the agent is made; the default is that directory itself.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.parts.cwd = cwd.into();
        self
    }

    /// Goes on with a session instead of a fresh one. One that was [opened](Sessions::open) is written on.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// Stores sessions here. The default is that they are only memory.
    #[must_use]
    pub fn sessions(mut self, sessions: Sessions) -> Self {
        self.parts.sessions = Some(sessions);
        self
    }

    /// Sets the tools that exist. The default is [`Toolbox::standard`].
    #[must_use]
    pub fn toolbox(mut self, toolbox: Toolbox) -> Self {
        self.parts.toolbox = toolbox;
        self
    }

    /// Gives the main agent only these tools. The default is all.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.parts.tools = Some(names.into_iter().collect());
        self
    }

    /// Sets the permission rules. The default is none.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.parts.permissions = permissions;
        self
    }

    /// Protects files from the file tools, whatever the rules say. By default, no file is protected.
    #[must_use]
    pub fn protected_files(mut self, files: ProtectedFiles) -> Self {
        self.parts.protected_files = Arc::new(files);
        self
    }

    /// Sets who is shown things and asked. The default is [`NonInteractive`].
    #[must_use]
    pub fn frontend(mut self, frontend: Arc<dyn Frontend>) -> Self {
        self.parts.frontend = frontend;
        self
    }

    /// Adds agents that tasks can be given to.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = AgentSpec>) -> Self {
        self.parts.agents.extend(agents);
        self
    }

    /// Restricts the main agent or a subagent of that name, and every agent that works for it.
    #[must_use]
    pub fn restrict(mut self, agent: impl Into<String>, restrictions: AgentRestrictions) -> Self {
        let restrictions = Arc::new(restrictions);
        self.parts.restrictions.insert(agent.into(), restrictions);
        self
    }

    /// Lets agents give tasks that are worked on in the background, with tools to look after them. The default is no.
    #[must_use]
    pub fn background(mut self, is_wanted: bool) -> Self {
        self.parts.has_background = is_wanted;
        self
    }

    /// Sets the bounds of a run.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.parts.limits = limits;
        self
    }

    /// Sets how failed model calls are tried again.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.parts.retry = retry;
        self
    }

    /// Answers from this cache where it can, without a model call and without a turn. The hook `cache_response`
    /// fills it. The default is none.
    #[must_use]
    pub fn responses(mut self, responses: ResponseCache) -> Self {
        self.parts.responses = Some(responses);
        self
    }

    /// Takes the summaries that handlers of recipes put in the place of the conversation. The default is to take none.
    #[must_use]
    pub fn context_swaps(mut self, swaps: Arc<ContextSwaps>) -> Self {
        self.parts.swaps = Some(swaps);
        self
    }

    /// Names the recipe that the agent runs; hooks are told. The default is none.
    #[must_use]
    pub fn recipe(mut self, name: impl Into<String>) -> Self {
        self.parts.recipe = Some(name.into());
        self
    }

    /// Names the workspace that the agent works in; hooks are told. The default is none.
    #[must_use]
    pub fn workspace(mut self, name: impl Into<String>) -> Self {
        self.parts.workspace = Some(name.into());
        self
    }

    /// Looks for prompt templates and skills here, and where hooks of `resources_discover` say. The default is only there.
    #[must_use]
    pub fn resources(mut self, places: ResourcePlaces) -> Self {
        self.parts.resources = places;
        self
    }

    /// Lets scripts see the agent. The default is that they see none.
    #[cfg(unix)]
    #[must_use]
    pub fn scripts(mut self, host: Arc<ScriptHost>) -> Self {
        self.parts.scripts = Some(host);
        self
    }

    /// Lets hooks say in which folder sessions are stored, where they are stored at all: what is opened is looked for there
    /// too. A relative path starts from the directory that the agent works in.
    pub async fn resolve_sessions(mut self) -> Self {
        let Some(sessions) = &self.parts.sessions else {
            return self;
        };
        let session = self.session.get_or_insert_with(fresh_session);
        let hooks = self.parts.hooks(session);
        let default = sessions.folder().to_owned();
        let build = || SessionDirectoryResolve {
            default_directory: default,
        };
        let outcome = hooks.fire_always(build).await;
        if let Some(event) = outcome.into_rewritten() {
            let folder = self.parts.cwd.join(event.default_directory);
            self.parts.sessions = Some(sessions.clone().in_folder(folder));
        }
        self
    }

    /// Returns where sessions are stored, if they are.
    pub fn stored_sessions(&self) -> Option<&Sessions> {
        self.parts.sessions()
    }

    /// Returns the name of the model that the session to go on with was led with, where the user chose it.
    pub fn chosen_model(&self) -> Option<String> {
        self.session.as_ref()?.model()
    }

    /// Makes the agent. Nothing is dispatched yet.
    ///
    /// # Errors
    ///
    /// Fails without a model, with two agents of one name, where a list names an unknown tool, and where
    /// `max_iterations` or `compact_at` is 0.
    pub fn build(self) -> Result<Agent, BuildError> {
        let provider = self.provider.ok_or(BuildError::NoModel)?;
        let mut parts = self.parts;
        parts.check_names()?;
        parts.check_limits()?;
        if let Ok(cwd) = path::absolute(&parts.cwd) {
            parts.cwd = cwd;
        }
        if !parts.agents.is_empty() {
            let named = parts
                .agents
                .iter()
                .map(|agent| (agent.name.clone(), agent.description.clone()));
            let agents: Agents = named.collect();
            let transfer = TransferTask::for_agents(agents.clone());
            parts.toolbox = parts.toolbox.with(transfer);
            if parts.has_background {
                parts.toolbox = add_background_tools(parts.toolbox, &agents);
            }
        }
        let name = self.model_name.unwrap_or_else(|| provider.id().to_string());
        parts.models.add(&name, &provider);
        let selected = Selected {
            name,
            provider,
            thinking: self.thinking,
        };
        parts.built_with = Some(selected.clone());
        let session = self.session.unwrap_or_else(fresh_session);
        Ok(Agent {
            stint: parts.begin(selected, session),
            parts,
            is_started: false,
            keeps_model: self.keeps_model,
        })
    }
}

/// Makes a session that no other is like.
pub(crate) fn fresh_session() -> Session {
    Session::new(SessionId::generate())
}

/// The agent with one session.
#[derive(Debug)]
pub(crate) struct Stint {
    pub(crate) life: Life,
    #[cfg(unix)]
    attached: Option<Attached>,
}

impl Parts {
    pub(crate) fn sessions(&self) -> Option<&Sessions> {
        self.sessions.as_ref()
    }

    /// Puts an agent together that leads `session`.
    fn begin(&self, selected: Selected, mut session: Session) -> Stint {
        if let Some(sessions) = &self.sessions
            && !session.is_kept()
        {
            sessions.begin(&mut session);
        }
        let hooks = self.hooks(&session);
        let identity = Identity {
            name: self.name.clone(),
            instruction: self.instruction.clone(),
            tools: self.tools.clone(),
            restrictions: Restrictions::default().and(self.restrictions.get(&self.name)),
            depth: 0,
            in_background: false,
        };
        let most_tasks = usize::try_from(self.limits.background_tasks).unwrap_or(usize::MAX);
        let most_tasks = most_tasks.min(Semaphore::MAX_PERMITS);
        let swaps = self.swaps.clone();
        let setup = Arc::new(Setup {
            built_with: self.built_with.clone().unwrap_or_else(|| selected.clone()),
            selected: std::sync::Mutex::new(selected),
            models: self.models.clone(),
            toolbox: self.toolbox.clone(),
            permissions: self.permissions.clone(),
            protected_files: Arc::clone(&self.protected_files),
            cwd: self.cwd.clone(),
            agents: self.agents.clone(),
            restrictions: self.restrictions.clone(),
            limits: self.limits,
            retry: self.retry,
            responses: self.responses.clone(),
            swaps: swaps.map(|swaps| Seat::new(swaps, session.id().clone())),
            queues: Queues::default(),
            spent: AtomicU64::new(0),
            question: Mutex::default(),
            attention: Attention::default(),
            background: Arc::new(Semaphore::new(most_tasks)),
            active_tools: std::sync::Mutex::default(),
            resources: std::sync::Mutex::default(),
        });
        #[cfg(unix)]
        let attached = self.scripts.as_ref().map(|host| {
            host.attach(View {
                setup: Arc::clone(&setup),
                identity: identity.clone(),
                handle: AgentHandle::new(Arc::clone(&setup), hooks.clone()),
                session: session.share(),
                frontend: Arc::clone(hooks.frontend()),
                run: std::sync::Mutex::default(),
            })
        });
        Stint {
            life: Life::new(setup, identity, hooks, session),
            #[cfg(unix)]
            attached,
        }
    }

    /// Returns the hooks of a session.
    fn hooks(&self, session: &Session) -> Hooks {
        let origin = Origin {
            session_id: session.id().clone(),
            cwd: self.cwd.clone(),
            agent: AgentRef {
                name: self.name.clone(),
                id: fresh_agent_id(),
                parent_id: None,
            },
            invoked_by: InvokedBy::Main,
            workspace: self.workspace.clone(),
            recipe: self.recipe.clone(),
        };
        Hooks::new(self.engine.dispatcher(origin), Arc::clone(&self.frontend))
    }

    fn check_limits(&self) -> Result<(), BuildError> {
        let limits = [
            ("max_iterations", self.limits.max_iterations == 0),
            ("compact_at", self.limits.compact_at == Some(0)),
        ];
        match limits.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((limit, _)) => Err(BuildError::ZeroLimit { limit }),
            None => Ok(()),
        }
    }

    fn check_names(&self) -> Result<(), BuildError> {
        let mut names = vec![self.name.as_str()];
        for agent in &self.agents {
            if names.contains(&agent.name.as_str()) {
                return Err(BuildError::SameName {
                    name: agent.name.clone(),
                });
            }
            names.push(&agent.name);
        }
        let lists = self.agents.iter().map(|agent| (&agent.name, &agent.tools));
        for (agent, tools) in lists.chain([(&self.name, &self.tools)]) {
            let is_known = |tool: &&String| {
                self.toolbox.get(tool).is_some()
                    || *tool == TRANSFER_TASK
                    || BACKGROUND_TOOLS.contains(&tool.as_str())
            };
            if let Some(tool) = tools.iter().flatten().find(|tool| !is_known(tool)) {
                let known: Vec<String> = self
                    .toolbox
                    .names()
                    .map(|name| format!("`{name}`"))
                    .collect();
                return Err(BuildError::UnknownTool {
                    agent: agent.clone(),
                    tool: tool.clone(),
                    known: known.join(", "),
                });
            }
        }
        Ok(())
    }
}

/// Makes an id that no other agent has.
pub(crate) fn fresh_agent_id() -> AgentId {
    AgentId::new(SessionId::generate().as_str())
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunEnd {
    /// The model had nothing left to do.
    Completed,
    /// A hook dealt with the input; no model was asked.
    Handled,
    /// The run was cancelled.
    Canceled,
    /// A hook stopped the run.
    HookBlocked {
        /// The event whose hook did.
        event: &'static str,
        /// Why.
        reason: String,
    },
    /// The model repeated one tool call.
    LoopDetected {
        /// The tool.
        tool: String,
    },
    /// The iteration cap was reached and nobody raised it.
    MaxIterations {
        /// The cap.
        limit: u32,
    },
    /// The model could not be asked.
    Error {
        /// What went wrong.
        message: String,
    },
}

/// What came of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// How the run ended.
    pub end: RunEnd,
    /// The model's last text of this run; empty where there is none.
    pub response: String,
    /// How many turns the run had.
    pub turns: u32,
    /// The tokens of the run's model calls, as far as the provider counted them.
    pub usage: Usage,
    /// What these calls cost in US dollars; `None` where the price of one of them is not known.
    pub cost: Option<f64>,
}

/// What a user says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// Images beside it.
    pub images: Vec<Image>,
    /// Where it comes from.
    pub source: InputSource,
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self {
            text,
            ..Self::default()
        }
    }
}

/// An agent and its session.
///
/// A run is ended early by cancelling its token, never by dropping its future: only then do the events
/// that close it fire.
#[derive(Debug)]
pub struct Agent {
    pub(crate) parts: Parts,
    pub(crate) stint: Stint,
    is_started: bool,
    keeps_model: bool,
}

impl Agent {
    /// The name of the main agent unless another is given.
    pub const DEFAULT_NAME: &'static str = "root";

    /// Starts an agent whose life runs through the hooks of `engine`.
    pub fn builder(engine: Engine) -> AgentBuilder {
        AgentBuilder {
            provider: None,
            model_name: None,
            keeps_model: false,
            thinking: None,
            session: None,
            parts: Parts {
                engine,
                name: Self::DEFAULT_NAME.to_owned(),
                instruction: DEFAULT_INSTRUCTION.to_owned(),
                cwd: PathBuf::from("."),
                sessions: None,
                toolbox: Toolbox::standard(),
                tools: None,
                permissions: Permissions::new(),
                protected_files: Arc::default(),
                frontend: Arc::new(NonInteractive),
                agents: Vec::new(),
                restrictions: BTreeMap::new(),
                limits: Limits::default(),
                models: Models::default(),
                built_with: None,
                retry: RetryPolicy::default(),
                responses: None,
                swaps: None,
                recipe: None,
                workspace: None,
                resources: ResourcePlaces::default(),
                has_background: false,
                #[cfg(unix)]
                scripts: None,
            },
        }
    }

    /// Returns the name. What a [`Frontend`] hears of an agent of another name is a subagent's.
    pub fn name(&self) -> &str {
        &self.stint.life.identity.name
    }

    /// Returns the permission rules that no call of any tool can match. `transfer_task` counts as a tool
    /// also where there is no agent to give tasks to.
    pub fn unmatched_rules(&self) -> Vec<RuleProblem> {
        let setup = &self.stint.life.setup;
        let is_missing = setup.toolbox.get(TRANSFER_TASK).is_none();
        let also = is_missing.then_some(TRANSFER_TASK);
        setup.permissions.unmatched(&setup.toolbox, also)
    }

    /// Returns the model that answers.
    pub fn model(&self) -> ModelId {
        self.stint.life.setup.selected().provider.id().clone()
    }

    /// Returns the names of the models that [`next_model`](Self::next_model) goes through, in order.
    pub fn models(&self) -> &[String] {
        self.stint.life.setup.models.names()
    }

    /// Chooses the model that answers from the next turn on. Says whether it is another one.
    ///
    /// # Errors
    ///
    /// Fails if there is no such model or it cannot be opened; the one before stays.
    pub async fn set_model(&mut self, name: &str) -> Result<bool, SelectError> {
        self.choose(Some(name), ModelSelectSource::Set).await
    }

    /// Chooses the next of the models that are listed.
    ///
    /// # Errors
    ///
    /// Fails if there is no other or it cannot be opened; the one before stays.
    pub async fn next_model(&mut self) -> Result<bool, SelectError> {
        self.choose(None, ModelSelectSource::Cycle).await
    }

    async fn choose(
        &mut self,
        name: Option<&str>,
        source: ModelSelectSource,
    ) -> Result<bool, SelectError> {
        self.start_session(SessionSource::Startup).await;
        let is_other = self.stint.life.select_model(name, source).await?;
        self.stint.life.save().await;
        Ok(is_other)
    }

    /// Returns how much the model thinks; `None` leaves it to the service.
    pub fn thinking(&self) -> Option<ThinkingLevel> {
        self.stint.life.setup.selected().thinking
    }

    /// Chooses how much the model thinks from the next turn on. Says whether it is another level.
    pub async fn set_thinking(&mut self, level: ThinkingLevel) -> bool {
        self.start_session(SessionSource::Startup).await;
        let is_other = self.stint.life.select_thinking(level, true).await;
        self.stint.life.save().await;
        is_other
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.stint.life.session
    }

    /// Returns the directory that the agent works in.
    pub fn cwd(&self) -> &Path {
        &self.stint.life.setup.cwd
    }

    /// Returns the model's context in tokens: as the provider counted it last, and what came since.
    pub fn context_tokens(&self) -> u64 {
        self.stint.life.context_tokens()
    }

    /// Returns the means to speak to the agent while it works.
    pub fn handle(&self) -> AgentHandle {
        let life = &self.stint.life;
        AgentHandle::new(Arc::clone(&life.setup), life.hooks.clone())
    }

    /// Begins the session. What hooks say of it stays in it as system messages.
    ///
    /// A session begins once; later calls do nothing. The first prompt begins it if nobody did.
    pub async fn start_session(&mut self, source: SessionSource) {
        if !std::mem::replace(&mut self.is_started, true) {
            self.begin(source, None).await;
            if !self.keeps_model {
                self.stint.life.restore_selection().await;
            }
        }
    }

    /// Lets hooks know that the session begins, and looks for templates and skills.
    pub(crate) async fn begin(&mut self, source: SessionSource, previous: Option<SessionId>) {
        let reason = if source == SessionSource::Reload {
            DiscoverReason::Reload
        } else {
            DiscoverReason::Startup
        };
        let life = &mut self.stint.life;
        life.start(source, previous).await;
        life.discover(reason, self.parts.resources.clone()).await;
    }

    /// Returns the templates and skills of the session: none before it begins.
    pub fn resources(&self) -> Arc<Resources> {
        self.stint.life.setup.resources()
    }

    /// Works on a prompt until the model has nothing left to do.
    pub async fn prompt(
        &mut self,
        prompt: impl Into<Prompt>,
        cancel: &CancellationToken,
    ) -> RunReport {
        self.start_session(SessionSource::Startup).await;
        let run = cancel.child_token();
        #[cfg(unix)]
        let _working = self
            .stint
            .attached
            .as_ref()
            .map(|attached| attached.working(run.clone()));
        self.stint.life.setup.attention.set(true);
        let report = Box::pin(self.stint.life.prompt(prompt.into(), &run)).await;
        self.stint.life.rest(&run).await;
        report
    }

    /// Replaces the conversation by a summary of it, as the user asked for.
    ///
    /// # Errors
    ///
    /// Fails if a hook does not want it or the summary cannot be made; the conversation is as it was.
    pub async fn compact(
        &mut self,
        instructions: Option<String>,
        cancel: &CancellationToken,
    ) -> Result<Compacted, CompactionError> {
        self.start_session(SessionSource::Startup).await;
        Box::pin(self.stint.life.compact_for_user(instructions, cancel)).await
    }

    /// Runs a command of the user. The model is told of it with the next prompt, unless the user does not want that.
    ///
    /// # Errors
    ///
    /// Fails if there is no command, if a hook stops it, and if it cannot be started.
    pub async fn run_command(
        &mut self,
        command: UserCommand,
        cancel: &CancellationToken,
    ) -> Result<UserCommandRun, UserCommandError> {
        self.start_session(SessionSource::Startup).await;
        Box::pin(self.stint.life.run_for_user(command, cancel)).await
    }

    /// Gives the session a name, which lists show. An empty one takes it away.
    pub async fn name_session(&mut self, name: &str) {
        self.start_session(SessionSource::Startup).await;
        self.stint.life.name_session(name).await;
    }

    /// Gives an entry of the session a label, or takes it away.
    ///
    /// # Errors
    ///
    /// Fails if there is no such entry; nothing is changed then.
    pub async fn label(&mut self, entry: &EntryId, label: Option<&str>) -> Result<(), NoEntry> {
        self.stint.life.session.label(entry, label)?;
        self.stint.life.save().await;
        Ok(())
    }

    /// Lets hooks and whatever else `reloading` loads be loaded anew within the session: it ends for hooks before that, and
    /// starts for those that there are then. Templates and skills are looked for anew too.
    pub async fn reload<T>(&mut self, reloading: impl Future<Output = T>) -> T {
        self.start_session(SessionSource::Startup).await;
        self.stint.life.end(SessionEndReason::Reload, None).await;
        let loaded = reloading.await;
        self.begin(SessionSource::Reload, None).await;
        loaded
    }

    /// Ends the session. Its hooks run even after a cancellation.
    pub async fn end_session(mut self, reason: SessionEndReason) {
        if self.is_started {
            self.stint.life.end(reason, None).await;
        }
    }

    /// Ends the session and leads `next` in its place; returns the id of the one that ended.
    pub(crate) async fn replace(&mut self, next: Session, reason: SessionEndReason) -> SessionId {
        let target = next.id().clone();
        self.stint.life.end(reason, Some(target)).await;
        let selected = self.stint.life.setup.selected();
        self.parts.permissions = self.parts.permissions.for_new_session();
        // Scripts see one agent at a time.
        #[cfg(unix)]
        drop(self.stint.attached.take());
        let ended = std::mem::replace(&mut self.stint, self.parts.begin(selected, next));
        ended.life.session.id().clone()
    }
}
