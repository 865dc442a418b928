//! The configuration of an agent. It does not change after the agent is built.
//!
//! What changes while an agent works is its [state](crate::state).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::resource::ResourcePlaces;
use crate::sessions::{Session, SessionStore};
use tenterhook_builtins::ResponseCache;
use tenterhook_engine::Engine;
use tenterhook_protocol::event::SessionDirectoryResolve;
use tenterhook_protocol::{AgentRef, InvokedBy, Origin, SessionId};
use tenterhook_providers::{Provider, ThinkingLevel};
use tenterhook_tools::{
    AgentRestrictions, BACKGROUND_TOOLS, Permissions, ProtectedFiles, TRANSFER_TASK, Toolbox,
};
use thiserror::Error;

use crate::context_swap::ContextSwaps;
#[cfg(unix)]
use crate::extension::{ScriptAdditions, ScriptHost};
use crate::frontend::{Frontend, NonInteractive};
use crate::hooks::Hooks;
use crate::identity::fresh_agent_id;
use crate::limit::{AgentLimits, RetryPolicy};
use crate::models::Models;

/// The default name of the main agent.
pub(crate) const DEFAULT_NAME: &str = "root";

/// The default instruction of the main agent.
const DEFAULT_INSTRUCTION: &str = "You are a helpful assistant with tools for files and commands. Use them to do what the user asks, and say plainly what you did.";

/// An agent that the main agent can give tasks to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSpec {
    /// The name by which tasks are given to the agent.
    pub name: String,
    /// What the agent is good for. The main agent's model reads this.
    pub description: String,
    /// Its system prompt.
    pub instruction: String,
    /// The tools that the agent may use, or `None` for all. It never gets a tool that the agent which gives the task
    /// does not have at that time.
    pub tools: Option<Vec<String>>,
}

/// Why an agent cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No model was chosen.
    #[error("the agent has no model")]
    NoModel,
    /// Two agents have the same name.
    #[error("two agents are named `{name}`")]
    SameName {
        /// The name.
        name: String,
    },
    /// A list of tools names a tool that does not exist.
    #[error("agent `{agent}`: unknown tool `{tool}`, available: {known}")]
    UnknownTool {
        /// The agent.
        agent: String,
        /// The unknown name.
        tool: String,
        /// The tools that exist.
        known: String,
    },
    /// A limit is 0.
    #[error("the limit `{limit}` is 0, expected at least 1")]
    ZeroLimit {
        /// The limit.
        limit: &'static str,
    },
}

/// The configuration of an agent. Only [`model`](Self::model) has no usable default.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tenterhook_agent::{AgentConfig, AgentLimits};
/// use tenterhook_engine::Engine;
/// use tenterhook_providers::Scripted;
///
/// let script = Scripted::parse("demo", "turns: [{ text: hello }]")?;
/// let agent = AgentConfig {
///     model: Some(Arc::new(script)),
///     instruction: "Answer briefly.".to_owned(),
///     limits: AgentLimits { max_iterations: 20, ..AgentLimits::default() },
///     ..AgentConfig::default()
/// }
/// .build(Engine::new())?;
/// assert_eq!(agent.name(), "root");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AgentConfig {
    /// The model. An agent cannot be built without one.
    pub model: Option<Arc<dyn Provider>>,
    /// The name under which the model can be selected again. The default is its id.
    pub model_name: Option<String>,
    /// Further models that the user can choose. Empty by default.
    pub models: Models,
    /// Whether a resumed session uses the model and the thinking level of this configuration. By default, the
    /// session's own are restored. In sessions that the agent resumes later, they are always restored.
    pub keeps_model: bool,
    /// How much the model thinks. By default, the model service decides.
    pub thinking: Option<ThinkingLevel>,
    /// The name of the main agent. The default is `root`.
    pub name: String,
    /// The system prompt. The default is a general one.
    pub instruction: String,
    /// The directory that the agent works in. A relative path starts from the current directory at the time when the
    /// agent is built. The default is that directory itself.
    pub cwd: PathBuf,
    /// The session to resume. The default is a new session. New entries are appended to the file of a session that
    /// was [opened](SessionStore::open).
    pub session: Option<Session>,
    /// Where sessions are stored. By default, they are kept in memory only.
    pub sessions: Option<SessionStore>,
    /// The tools that exist. The default is [`Toolbox::standard`].
    pub toolbox: Toolbox,
    /// The names of the main agent's tools. The default is all tools.
    pub tools: Option<Vec<String>>,
    /// The permission rules. Empty by default.
    pub permissions: Permissions,
    /// The files that the file tools change only with the user's consent, whatever the permission rules are. Empty by
    /// default.
    pub protected_files: Arc<ProtectedFiles>,
    /// The frontend that shows the agent's work and answers its questions. The default is [`NonInteractive`].
    pub frontend: Arc<dyn Frontend>,
    /// The agents that the main agent can give tasks to. Empty by default.
    pub agents: Vec<AgentSpec>,
    /// The restrictions of the main agent and of subagents, by name. An agent's restrictions also apply to every
    /// agent that works for it.
    pub restrictions: BTreeMap<String, Arc<AgentRestrictions>>,
    /// Whether agents may give background tasks, and get the tools to manage them. Off by default.
    pub has_background_tasks: bool,
    /// The limits of a run.
    pub limits: AgentLimits,
    /// How failed model calls are retried.
    pub retry: RetryPolicy,
    /// The cache of answers. An answer from it needs no model call and no turn. The built-in `cache_response` fills
    /// it. By default, nothing is cached.
    pub responses: Option<ResponseCache>,
    /// The summaries with which recipe handlers replace the conversation. By default, no summaries are accepted.
    pub context_swaps: Option<Arc<ContextSwaps>>,
    /// The name of the recipe that the agent runs. Hooks receive it with every event.
    pub recipe: Option<String>,
    /// The name of the workspace that the agent works in. Hooks receive it with every event.
    pub workspace: Option<String>,
    /// The places of prompt templates and skills, in addition to the places that hooks of `resources_discover` name.
    pub resources: ResourcePlaces,
    /// The host through which scripts reach the agent. By default, scripts cannot reach it.
    #[cfg(unix)]
    pub scripts: Option<Arc<ScriptHost>>,
    /// What scripts have added after they were loaded. Nothing by default.
    #[cfg(unix)]
    pub additions: ScriptAdditions,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            model: None,
            model_name: None,
            models: Models::default(),
            keeps_model: false,
            thinking: None,
            name: DEFAULT_NAME.to_owned(),
            instruction: DEFAULT_INSTRUCTION.to_owned(),
            cwd: PathBuf::from("."),
            session: None,
            sessions: None,
            toolbox: Toolbox::standard(),
            tools: None,
            permissions: Permissions::new(),
            protected_files: Arc::default(),
            frontend: Arc::new(NonInteractive),
            agents: Vec::new(),
            restrictions: BTreeMap::new(),
            has_background_tasks: false,
            limits: AgentLimits::default(),
            retry: RetryPolicy::default(),
            responses: None,
            context_swaps: None,
            recipe: None,
            workspace: None,
            resources: ResourcePlaces::default(),
            #[cfg(unix)]
            scripts: None,
            #[cfg(unix)]
            additions: ScriptAdditions::default(),
        }
    }
}

impl AgentConfig {
    /// Lets hooks choose the folder in which sessions are stored, if they are stored at all. Stored sessions are also
    /// opened from that folder. A relative path starts from the directory that the agent works in.
    pub async fn resolve_sessions(mut self, engine: &Engine) -> Self {
        let Some(sessions) = &self.sessions else {
            return self;
        };
        let session = self.session.get_or_insert_with(fresh_session).id().clone();
        let hooks = self.hooks(engine, &session);
        let default = sessions.folder().to_owned();
        let build = || SessionDirectoryResolve::new(default);
        let outcome = hooks.fire_always(build).await;
        if let Some(event) = outcome.into_rewritten() {
            let folder = self.cwd.join(event.default_directory);
            self.sessions = Some(sessions.clone().in_folder(folder));
        }
        self
    }

    /// Returns the name of the model that the session to resume used last, if the user chose it.
    pub fn recorded_model(&self) -> Option<String> {
        self.session.as_ref()?.model()
    }

    /// Restricts the main agent or a subagent by its name, and every agent that works for it.
    pub fn restrict(&mut self, agent: impl Into<String>, restrictions: AgentRestrictions) {
        self.restrictions
            .insert(agent.into(), Arc::new(restrictions));
    }

    /// Returns whether a list of tools may name this tool.
    pub fn has_tool(&self, name: &str) -> bool {
        self.toolbox.get(name).is_some()
            || name == TRANSFER_TASK
            || BACKGROUND_TOOLS.contains(&name)
    }

    /// Returns the hooks of a session of the main agent.
    pub(crate) fn hooks(&self, engine: &Engine, session: &SessionId) -> Hooks {
        let origin = Origin::new(session.clone(), self.cwd.clone())
            .with_agent(AgentRef::new(self.name.clone()).with_id(fresh_agent_id()))
            .with_invoked_by(InvokedBy::Main)
            .with_workspace(self.workspace.clone())
            .with_recipe(self.recipe.clone());
        Hooks::new(engine.dispatcher(origin), Arc::clone(&self.frontend))
    }

    /// Returns an error if an agent cannot be built from this configuration.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        self.check_names()?;
        self.check_limits()
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
            if let Some(tool) = tools.iter().flatten().find(|tool| !self.has_tool(tool)) {
                return Err(self.unknown_tool(agent, tool));
            }
        }
        Ok(())
    }

    fn unknown_tool(&self, agent: &str, tool: &str) -> BuildError {
        let names = self.toolbox.names();
        let known: Vec<String> = names.map(|name| format!("`{name}`")).collect();
        BuildError::UnknownTool {
            agent: agent.to_owned(),
            tool: tool.to_owned(),
            known: known.join(", "),
        }
    }
}

/// Creates an empty session with a new id.
pub(crate) fn fresh_session() -> Session {
    Session::new(SessionId::generate())
}
