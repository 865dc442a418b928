//! The agents of chats: each has the hooks, the model and the rules that `tenterhook run` would have.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::agent_args::AgentArgs;
use crate::session_dir_args::SessionDirArgs;
use futures_util::future::BoxFuture;
use tenterhook_agent::extension::{ForeignCommand, ScriptHost, SessionHosts};
use tenterhook_agent::frontend::NonInteractive;
use tenterhook_agent::{Agent, AgentConfig, Frontend, ProtectedFiles, Session, Toolbox};
use tenterhook_channel::settings::Settings;
use tenterhook_discovery::Loaded;
use tenterhook_engine::journal::{HookChanges, JournalRecord};
use tenterhook_engine::{Engine, HookObserver, HookSpec, JournalSink, SessionId};
use tenterhook_gateway::conversations::profile::{OpenRequest, Profile, ToolAccess};
use tenterhook_gateway::gateway::MEDIA_FOLDER;
use tenterhook_gateway::session_key::is_owners_session;
use tenterhook_inspect::ShownSessions;
use tenterhook_journal::FileJournal;
use tenterhook_process::hide_variables;
use tenterhook_providers::{ExtensionProviders, ModelClients, Providers};
use tenterhook_runners::worker::{Extension, Worker};
use tenterhook_setup::agent_options::AgentOptions;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::extensions::{self, SessionExtensions};
use tenterhook_setup::hook_changes::HooksInForce;
use tenterhook_setup::hook_list::HookListing;
use tenterhook_setup::journal::FanOutSink;
use tenterhook_setup::live_inspector::LiveInspector;
use tenterhook_setup::session_store;
use tenterhook_setup::warning;
use tenterhook_setup::{agent, exceptions, hooks, models, protected, resources, rules};
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_trust::ProjectHook;
use tokio::runtime::Handle;

use crate::command::gateway::access;
use crate::command::gateway::client::state_folder;
use crate::command::gateway::hook_log::HookLog;
use crate::command::gateway::voice;
use tenterhook_setup::session_store::warn_of;

/// How a question describes the settings to the user.
const SETTINGS: &str = "the settings of the gateway";

/// Opens the agents of chats. Clones share everything.
#[derive(Clone)]
pub(super) struct ChatProfile(Arc<Parts>);

/// What all agents share. A reload replaces it.
struct Parts {
    start: Arc<StartParts>,
    loaded: Loaded,
    in_force: HooksInForce,
    listing: HookListing,
    engine: Engine,
    toolbox: Toolbox,
    protected: Arc<ProtectedFiles>,
    clients: Arc<ModelClients>,
    extension_providers: Arc<ExtensionProviders>,
    /// The scripts and extensions, which all chats share.
    extensions: SessionExtensions,
    commands: Vec<ForeignCommand>,
    /// Passes the requests of scripts to the chats that they belong to.
    hosts: Arc<SessionHosts>,
}

/// What stays the same until the gateway is started again.
struct StartParts {
    options: AgentOptions,
    /// The directory in which the agents work.
    folder: PathBuf,
    sessions: SessionDirArgs,
    /// The settings of the gateway, which are protected.
    settings_file: Option<PathBuf>,
    /// The hooks of the settings.
    voice: Vec<HookSpec>,
    /// The agent's own tools.
    standard: Toolbox,
    providers: Arc<Providers>,
    journal: Option<Arc<FileJournal>>,
    sink: Option<Arc<dyn JournalSink>>,
    observers: Vec<Arc<dyn HookObserver>>,
    interrupts: Interrupts,
    settings: Settings,
    /// The sessions whose contents the inspector shows.
    shown: ShownSessions,
}

/// The session of a chat that is open. Dropping it lets scripts forget the state that they have for it.
#[derive(Debug)]
struct OpenSession {
    state: String,
    workers: Vec<Worker>,
    extensions: Vec<Extension>,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        for extension in &self.extensions {
            extension.forget_session(&self.state);
        }
        // Without a runtime, the workers end as well.
        if let Ok(runtime) = Handle::try_current() {
            let (state, workers) = (self.state.clone(), std::mem::take(&mut self.workers));
            runtime.spawn(async move {
                for worker in workers {
                    worker.end_session(&state).await;
                }
            });
        }
    }
}

impl ChatProfile {
    /// Loads the hooks, and shows them in the inspector. A source that cannot be loaded is an error, unless the call is
    /// lenient.
    pub(super) async fn load(
        args: AgentArgs,
        (sessions, file): (SessionDirArgs, Option<&Path>),
        settings: &Settings,
        inspector: Option<&LiveInspector>,
        interrupts: &Interrupts,
    ) -> Result<Self, CliError> {
        let (options, journal) = (args.options(), args.journal.open()?);
        let providers = models::providers(options.hooks.config_dir.as_deref())?;
        let voice = voice::hooks(settings)?;
        // Before the first program starts: tools and hooks must not find secrets in their environment by accident.
        let secrets = providers.key_variables().into_iter();
        let secrets = secrets.chain(settings.secret_variables());
        hide_variables(secrets.filter(|name| !settings.keep_env.contains(name)));
        let written = journal.clone().map(|file| file as Arc<dyn JournalSink>);
        let live = inspector.map(LiveInspector::journal);
        let sinks: Vec<_> = written.into_iter().chain(live).collect();
        let sink = (!sinks.is_empty()).then(|| Arc::new(FanOutSink { sinks }) as _);
        let observers = inspector.and_then(LiveInspector::observer);
        let start = StartParts {
            folder: session_store::absolute(&options.cwd)?,
            sessions,
            settings_file: file.map(Path::to_owned),
            voice,
            standard: Toolbox::standard(),
            providers,
            journal,
            sink,
            observers: observers.into_iter().collect(),
            interrupts: interrupts.clone(),
            settings: settings.clone(),
            shown: inspector.map_or_else(ShownSessions::listed, |inspector| {
                inspector.sessions().clone()
            }),
            options,
        };
        let profile = Self::load_hooks(Arc::new(start)).await?;
        if let Some(inspector) = inspector {
            profile.show_in(inspector);
        }
        Ok(profile)
    }

    /// Loads the hooks as at the start. The profile itself does not change.
    pub(super) async fn load_again(&self) -> Result<Self, CliError> {
        Self::load_hooks(Arc::clone(&self.0.start)).await
    }

    async fn load_hooks(start: Arc<StartParts>) -> Result<Self, CliError> {
        let options = &start.options;
        let (services, clients) = hooks::services_with(&start.providers);
        let hosts = SessionHosts::new(options.hooks.strict, warning::show_output);
        let hosts = Arc::new(hosts);
        let (output, services) = extensions::recorded(Arc::clone(&hosts) as _, services);
        let token = start.interrupts.token();
        let load = hooks::load(&options.hooks, &options.cwd, services, &token);
        let mut hooks = load.await?;
        hooks.loaded.specs.extend(start.voice.iter().cloned());
        let listing = HookListing::new(&hooks);
        output.record_in(start.sink.clone());
        let protected = protected::files(options, &hooks.loaded, &hooks.found)?;
        let protected = match &start.settings_file {
            Some(file) => protected.add(file, SETTINGS),
            None => protected,
        };
        let observers = start.observers.clone();
        let toolbox = hooks.extras.add_to(&start.standard);
        Ok(Self(Arc::new(Parts {
            engine: hooks::engine_of(
                exceptions::builder(&options.cwd).observer(Arc::new(HookLog { observers })),
                &hooks.loaded,
                options.hooks.strict,
                start.sink.clone(),
            ),
            toolbox: rules::attempts(options, toolbox)?,
            protected: Arc::new(protected),
            extension_providers: hooks.extras.providers(&clients),
            clients,
            in_force: HooksInForce::of(&hooks.loaded, &hooks.found),
            loaded: hooks.loaded,
            listing,
            commands: hooks.extras.commands(),
            extensions: hooks.extras,
            hosts,
            start,
        })))
    }

    /// Shows the hooks in the inspector from now on.
    pub(super) fn show_in(&self, inspector: &LiveInspector) {
        inspector.follow_hooks(self.0.listing.clone(), self.0.engine.clone());
    }

    /// Compares the hooks with the hooks of an earlier load. Returns `None` if the same are in force.
    pub(super) fn changes_since(&self, before: &Self) -> Option<HookChanges> {
        self.0.in_force.changes_since(&before.0.in_force)
    }

    /// Returns the project hooks that are not in force because they were never approved.
    pub(super) fn untrusted(&self) -> impl Iterator<Item = &ProjectHook> {
        let hooks = self.0.loaded.project_hooks.iter();
        hooks.filter(|hook| hook.is_withheld())
    }

    /// Writes a record that belongs to no event into the journal.
    pub(super) fn record(&self, record: JournalRecord) {
        if let Some(sink) = &self.0.start.sink {
            sink.record_at_once(record);
        }
    }

    /// Returns the journal, if one is written.
    pub(super) fn journal(&self) -> Option<&Arc<FileJournal>> {
        self.0.start.journal.as_ref()
    }

    /// Returns whether an option or an agent file names a model.
    pub(super) fn has_model(&self) -> bool {
        let root = agent::root(&self.0.loaded);
        self.0.start.options.model.is_some() || root.is_some_and(|root| root.model.is_some())
    }

    /// Checks the tools that the settings name.
    pub(super) fn check_tools(&self, settings: &Settings) -> Result<(), CliError> {
        access::check(settings, &self.0.toolbox)
    }

    /// Builds an agent as for a chat and drops it, so that a missing key or an unusable rule is found at once.
    pub(super) fn try_out(&self) -> Result<(), CliError> {
        let config = self.0.config(
            Arc::new(NonInteractive),
            |toolbox| toolbox,
            &ToolAccess::default(),
        )?;
        let config = AgentConfig {
            sessions: None,
            ..self.0.with_model(config)?
        };
        agent::build(&self.0.start.options, config, self.0.engine.clone()).map(drop)
    }

    async fn open_agent(&self, request: OpenRequest) -> Result<Agent, CliError> {
        let OpenRequest {
            key,
            session,
            frontend,
            access,
            with_tools,
        } = request;
        let parts = Arc::clone(&self.0);
        let config = blocking(move || parts.config(frontend, with_tools, &access)).await?;
        let config = self.0.resolve_sessions(config).await;
        let parts = Arc::clone(&self.0);
        let is_owners = is_owners_session(&self.0.start.settings, &key);
        blocking(move || parts.build(config, session, is_owners)).await
    }
}

impl Profile for ChatProfile {
    fn engine(&self) -> &Engine {
        &self.0.engine
    }

    fn folder(&self) -> &Path {
        &self.0.start.folder
    }

    fn commands(&self) -> &[ForeignCommand] {
        &self.0.commands
    }

    fn sessions(&self) -> BoxFuture<'_, Option<PathBuf>> {
        Box::pin(async move {
            let parts = Arc::clone(&self.0);
            let config = move || {
                let access = ToolAccess::default();
                parts.config(Arc::new(NonInteractive), |toolbox| toolbox, &access)
            };
            let config = self.0.resolve_sessions(blocking(config).await.ok()?).await;
            config.sessions.map(|sessions| sessions.folder().to_owned())
        })
    }

    fn open(&self, request: OpenRequest) -> BoxFuture<'_, Result<Agent, String>> {
        Box::pin(async move {
            let opened = self.open_agent(request).await;
            opened.map_err(|error| error.in_one_line())
        })
    }
}

impl Parts {
    /// Lets hooks choose the folder of sessions, unless the user has named it.
    async fn resolve_sessions(&self, config: AgentConfig) -> AgentConfig {
        match &self.start.sessions.dir {
            Some(_) => config,
            None => config.resolve_sessions(&self.engine).await,
        }
    }

    /// Returns the configuration of the agent of a chat, without its session and its model.
    fn config(
        &self,
        frontend: Arc<dyn Frontend>,
        with_tools: impl FnOnce(Toolbox) -> Toolbox,
        access: &ToolAccess,
    ) -> Result<AgentConfig, CliError> {
        let (options, toolbox) = (&self.start.options, self.toolbox.clone());
        let config = AgentConfig {
            protected_files: Arc::clone(&self.protected),
            sessions: Some(self.start.sessions.stored(&options.cwd)?),
            resources: resources::places(options)?,
            toolbox: with_tools(toolbox),
            ..agent::config(options, &self.loaded, frontend)?
        };
        let media = state_folder()?.join(MEDIA_FOLDER);
        Ok(access::limited(config, &self.toolbox, access, &media))
    }

    /// Builds the agent of a chat with a new or a stored session.
    fn build(
        &self,
        config: AgentConfig,
        session: Option<SessionId>,
        is_owners: bool,
    ) -> Result<Agent, CliError> {
        let session = match (session, &config.sessions) {
            (Some(id), Some(sessions)) => {
                let opened = sessions.open(&id);
                let opened = opened.map_err(|error| session_store::refusal(&error))?;
                warn_of(opened.unfinished_line.as_ref());
                opened.session
            }
            _ => Session::new(SessionId::generate()),
        };
        if is_owners {
            self.start.shown.add(session.id());
        }
        let config = AgentConfig {
            scripts: self.open_session(session.id()),
            session: Some(session),
            ..config
        };
        let config = self.with_model(config)?;
        // `try_out` has checked the permission rules once for all chats.
        config
            .build(self.engine.clone())
            .map_err(|error| CliError::of(Exit::Config, &error))
    }

    /// Connects the scripts to the agent of a session. Returns `None` without scripts.
    fn open_session(&self, session: &SessionId) -> Option<Arc<ScriptHost>> {
        let scripts = &self.extensions.scripts;
        if scripts.is_empty() && self.extensions.extensions.is_empty() {
            return None;
        }
        let workers = scripts.iter().map(|script| script.worker.clone());
        let extensions = self.extensions.extensions.iter();
        let extensions = extensions.map(|found| found.extension.clone());
        let state = self.hosts.new_state(session);
        let open = OpenSession {
            state: state.clone(),
            workers: workers.collect(),
            extensions: extensions.collect(),
        };
        let host = extensions::host(true, &[]).strict(self.start.options.hooks.strict);
        let host = Arc::new(host.keep(Arc::new(open)));
        host.list_commands(&self.commands);
        self.hosts.open(session, state, &host);
        Some(host)
    }

    fn with_model(&self, config: AgentConfig) -> Result<AgentConfig, CliError> {
        let known = (
            &*self.start.providers,
            &self.clients,
            &self.extension_providers,
        );
        models::select_model(config, &self.start.options, &self.loaded, known)
    }
}

/// Runs work that reads files on a thread that may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CliError> + Send + 'static,
) -> Result<T, CliError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| {
        Err(CliError::new(Exit::Failed, "the agent could not be opened").cause(&error))
    })
}
