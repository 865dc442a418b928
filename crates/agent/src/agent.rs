//! The agent: what it is made of, and the sessions it leads.

use std::path::{self, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use tenterhook::Engine;
use tenterhook_handlers::ResponseCache;
use tenterhook_protocol::event::{InputSource, SessionEndReason, SessionSource};
use tenterhook_protocol::{AgentId, AgentRef, Image, InvokedBy, Origin, SessionId, Usage};
use thiserror::Error;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use crate::compaction::{Compacted, CompactionError};
#[cfg(unix)]
use crate::extension::{Attached, ScriptHost, View};
use crate::frontend::{Frontend, NonInteractive};
use crate::hooks::Hooks;
use crate::life::{Identity, Life, Setup};
use crate::limit::{Limits, RetryPolicy};
use crate::permission::{Permissions, RuleProblem};
use crate::provider::Provider;
use crate::queue::{AgentHandle, Queues};
use crate::session::Session;
use crate::swap::{ContextSwaps, Seat};
use crate::tool::{TRANSFER_TASK, Toolbox, TransferTask};

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
    engine: Engine,
    provider: Option<Arc<dyn Provider>>,
    name: String,
    instruction: String,
    cwd: PathBuf,
    session: Option<Session>,
    toolbox: Toolbox,
    tools: Option<Vec<String>>,
    permissions: Permissions,
    frontend: Arc<dyn Frontend>,
    agents: Vec<AgentSpec>,
    limits: Limits,
    retry: RetryPolicy,
    responses: Option<ResponseCache>,
    swaps: Option<Arc<ContextSwaps>>,
    recipe: Option<String>,
    workspace: Option<String>,
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

    /// Sets the name. The default is `root`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the system prompt. The default is a general one.
    #[must_use]
    pub fn instruction(mut self, instruction: impl Into<String>) -> Self {
        self.instruction = instruction.into();
        self
    }

    /// Sets the directory that the agent works in. A relative one starts from the current directory
    /// of when the agent is made; the default is that directory itself.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Goes on with a session instead of a fresh one.
    #[must_use]
    pub fn session(mut self, session: Session) -> Self {
        self.session = Some(session);
        self
    }

    /// Sets the tools that exist. The default is [`Toolbox::standard`].
    #[must_use]
    pub fn toolbox(mut self, toolbox: Toolbox) -> Self {
        self.toolbox = toolbox;
        self
    }

    /// Gives the main agent only these tools. The default is all.
    #[must_use]
    pub fn tools(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.tools = Some(names.into_iter().collect());
        self
    }

    /// Sets the permission rules. The default is none.
    #[must_use]
    pub fn permissions(mut self, permissions: Permissions) -> Self {
        self.permissions = permissions;
        self
    }

    /// Sets who is shown things and asked. The default is [`NonInteractive`].
    #[must_use]
    pub fn frontend(mut self, frontend: Arc<dyn Frontend>) -> Self {
        self.frontend = frontend;
        self
    }

    /// Adds agents that tasks can be given to.
    #[must_use]
    pub fn agents(mut self, agents: impl IntoIterator<Item = AgentSpec>) -> Self {
        self.agents.extend(agents);
        self
    }

    /// Sets the bounds of a run.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how failed model calls are tried again.
    #[must_use]
    pub fn retry(mut self, retry: RetryPolicy) -> Self {
        self.retry = retry;
        self
    }

    /// Answers from this cache where it can, without a model call and without a turn. The hook `cache_response`
    /// fills it. The default is none.
    #[must_use]
    pub fn responses(mut self, responses: ResponseCache) -> Self {
        self.responses = Some(responses);
        self
    }

    /// Takes the summaries that handlers of recipes put in the place of the conversation. The default is to take none.
    #[must_use]
    pub fn context_swaps(mut self, swaps: Arc<ContextSwaps>) -> Self {
        self.swaps = Some(swaps);
        self
    }

    /// Names the recipe that the agent runs; hooks are told. The default is none.
    #[must_use]
    pub fn recipe(mut self, name: impl Into<String>) -> Self {
        self.recipe = Some(name.into());
        self
    }

    /// Names the workspace that the agent works in; hooks are told. The default is none.
    #[must_use]
    pub fn workspace(mut self, name: impl Into<String>) -> Self {
        self.workspace = Some(name.into());
        self
    }

    /// Lets scripts see the agent. The default is that they see none.
    #[cfg(unix)]
    #[must_use]
    pub fn scripts(mut self, host: Arc<ScriptHost>) -> Self {
        self.scripts = Some(host);
        self
    }

    /// Makes the agent. Nothing is dispatched yet.
    ///
    /// # Errors
    ///
    /// Fails without a model, with two agents of one name, where a list names an unknown tool, and where
    /// `max_iterations` or `compact_at` is 0.
    pub fn build(self) -> Result<Agent, BuildError> {
        let provider = self.provider.clone().ok_or(BuildError::NoModel)?;
        self.check_names()?;
        self.check_limits()?;
        let cwd = path::absolute(&self.cwd).unwrap_or(self.cwd);
        let mut toolbox = self.toolbox;
        if !self.agents.is_empty() {
            let named = self
                .agents
                .iter()
                .map(|agent| (agent.name.clone(), agent.description.clone()));
            toolbox = toolbox.with(TransferTask::new(named));
        }
        #[cfg_attr(not(unix), expect(unused_mut, reason = "only scripts are shown it"))]
        let mut session = self
            .session
            .unwrap_or_else(|| Session::new(SessionId::generate()));
        let origin = Origin {
            session_id: session.id().clone(),
            cwd: cwd.clone(),
            agent: AgentRef {
                name: self.name.clone(),
                id: fresh_agent_id(),
                parent_id: None,
            },
            invoked_by: InvokedBy::Main,
            workspace: self.workspace,
            recipe: self.recipe,
        };
        let hooks = Hooks::new(self.engine.dispatcher(origin), self.frontend);
        let identity = Identity {
            name: self.name,
            instruction: self.instruction,
            tools: self.tools,
            depth: 0,
        };
        let setup = Setup {
            provider,
            toolbox,
            permissions: self.permissions,
            cwd,
            agents: self.agents,
            limits: self.limits,
            retry: self.retry,
            responses: self.responses,
            swaps: self
                .swaps
                .map(|swaps| Seat::new(swaps, session.id().clone())),
            queues: Queues::default(),
            spent: AtomicU64::new(0),
            question: Mutex::default(),
            active_tools: std::sync::Mutex::default(),
        };
        let setup = Arc::new(setup);
        #[cfg(unix)]
        let attached = self.scripts.map(|host| {
            host.attach(View {
                setup: Arc::clone(&setup),
                identity: identity.clone(),
                handle: AgentHandle::new(setup.queues.clone(), hooks.clone()),
                session: session.share(),
                frontend: Arc::clone(hooks.frontend()),
                run: std::sync::Mutex::default(),
            })
        });
        Ok(Agent {
            life: Life::new(setup, identity, hooks, session),
            is_started: false,
            #[cfg(unix)]
            attached,
        })
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
            let is_known =
                |tool: &&String| self.toolbox.get(tool).is_some() || *tool == TRANSFER_TASK;
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunReport {
    /// How the run ended.
    pub end: RunEnd,
    /// The model's last text of this run; empty where there is none.
    pub response: String,
    /// How many turns the run had.
    pub turns: u32,
    /// The tokens of the run's model calls, as far as the provider counted them.
    pub usage: Usage,
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
    life: Life,
    is_started: bool,
    #[cfg(unix)]
    attached: Option<Attached>,
}

impl Agent {
    /// The name of the main agent unless another is given.
    pub const DEFAULT_NAME: &'static str = "root";

    /// Starts an agent whose life runs through the hooks of `engine`.
    pub fn builder(engine: Engine) -> AgentBuilder {
        AgentBuilder {
            engine,
            provider: None,
            name: Self::DEFAULT_NAME.to_owned(),
            instruction: DEFAULT_INSTRUCTION.to_owned(),
            cwd: PathBuf::from("."),
            session: None,
            toolbox: Toolbox::standard(),
            tools: None,
            permissions: Permissions::new(),
            frontend: Arc::new(NonInteractive),
            agents: Vec::new(),
            limits: Limits::default(),
            retry: RetryPolicy::default(),
            responses: None,
            swaps: None,
            recipe: None,
            workspace: None,
            #[cfg(unix)]
            scripts: None,
        }
    }

    /// Returns the name. What a [`Frontend`] hears of an agent of another name is a subagent's.
    pub fn name(&self) -> &str {
        &self.life.identity.name
    }

    /// Returns the permission rules that no call of any tool can match. `transfer_task` counts as a tool
    /// also where there is no agent to give tasks to.
    pub fn unmatched_rules(&self) -> Vec<RuleProblem> {
        let setup = &self.life.setup;
        let is_missing = setup.toolbox.get(TRANSFER_TASK).is_none();
        let also = is_missing.then_some(TRANSFER_TASK);
        setup.permissions.unmatched(&setup.toolbox, also)
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.life.session
    }

    /// Returns the directory that the agent works in.
    pub fn cwd(&self) -> &Path {
        &self.life.setup.cwd
    }

    /// Returns the model's context in tokens: as the provider counted it last, and what came since.
    pub fn context_tokens(&self) -> u64 {
        self.life.context_tokens()
    }

    /// Returns the means to speak to the agent while it works.
    pub fn handle(&self) -> AgentHandle {
        AgentHandle::new(self.life.setup.queues.clone(), self.life.hooks.clone())
    }

    /// Begins the session. What hooks say of it stays in it as system messages.
    ///
    /// A session begins once; later calls do nothing. The first prompt begins it if nobody did.
    pub async fn start_session(&mut self, source: SessionSource) {
        if !std::mem::replace(&mut self.is_started, true) {
            self.life.start(source).await;
        }
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
            .attached
            .as_ref()
            .map(|attached| attached.working(run.clone()));
        Box::pin(self.life.prompt(prompt.into(), &run)).await
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
        Box::pin(self.life.compact_for_user(instructions, cancel)).await
    }

    /// Ends the session. Its hooks run even after a cancellation.
    pub async fn end_session(self, reason: SessionEndReason) {
        if self.is_started {
            self.life.end(reason).await;
        }
    }
}
