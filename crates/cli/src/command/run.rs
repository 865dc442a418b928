//! `tenterhook run`: runs the agent on one prompt, or on prompts from stdin.

pub(crate) mod args;
mod inspection;
mod recipe;

use std::io::{IsTerminal as _, stdin, stdout};
use std::sync::Arc;

use tenterhook_agent::{Agent, AgentConfig, AgentRestrictions, ContextSwaps};
use tenterhook_discovery::{FollowedSources, FoundFile, Loaded, Recipe};
use tenterhook_engine::{Engine, HookSpec, JournalSink, Scope};
use tenterhook_journal::{FileJournal, RedactingJournal};
use tenterhook_runners::Services;

use crate::command::run::args::RunArgs;
use crate::command::run::inspection::RunInspection;
use crate::command::sessions;
use crate::conversation::format::Format;
use crate::conversation::{Conversation, Program};
use crate::displaced::settle_displaced;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::agent_options::AgentOptions;
use tenterhook_setup::data_dir::data_dir;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exceptions;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::extensions::{self, SessionExtensions};
use tenterhook_setup::hook_list::HookListing;
use tenterhook_setup::hooks;
use tenterhook_setup::hooks::Hooks;
use tenterhook_setup::journal::{self, FanOutSink};
use tenterhook_setup::models;
use tenterhook_setup::warning::warn;
use tenterhook_setup::{agent, protected, resources, rules};
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::json_lines::JournalWithoutFeed;
use tenterhook_terminal::timeline::Timeline;
use tenterhook_terminal::{Terminal, Verbosity};

pub(crate) async fn run(args: RunArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    check_prompt(&args)?;
    let options = &args.agent.options();
    let providers = models::providers(options.hooks.config_dir.as_deref())?;
    let (services, judges) = hooks::services_with(&providers);
    let swaps = Arc::new(ContextSwaps::default());
    let format = args.output.format();
    let scripts = extensions::host(has_ui(format), &args.flags);
    let scripts = Arc::new(scripts.strict(options.hooks.strict));
    let (output, services) = extensions::recorded(Arc::clone(&scripts) as _, services);
    let services = Services {
        context: Some(Arc::clone(&swaps) as _),
        ..services
    };
    let recipe = recipe::load(&args, services.clone())?;
    let RunHooks {
        mut loaded,
        followed,
        extras,
        found,
        listing,
    } = RunHooks::load(&args, options, services, interrupts).await?;
    let protected = protected::files(options, &loaded, &found)?;
    extras.check_flags(&args.flags)?;
    scripts.list_commands(&extras.commands());
    let of_recipe: Vec<HookSpec> = recipe.iter().flat_map(|it| it.hooks.clone()).collect();
    loaded.specs.extend(of_recipe.iter().cloned());
    let file = args.agent.journal.open()?;
    output.record_in(file.clone().map(|file| file as _));
    let name = agent::root(&loaded).map_or(Agent::DEFAULT_NAME, |root| &root.name);
    let history = data_dir().map(|data| data.join("history"));
    let terminal = Arc::new(Terminal::new(shown(format), history, interrupts).main_agent(name));
    let has_shell = args.work.shell_lines || (args.prompt.is_none() && stdin().is_terminal());
    let inspection = RunInspection::start(args.inspect, file.as_ref()).await?;
    let sinks = sinks(&args, &loaded, file.as_ref(), &terminal);
    let engine = engine(&args, &loaded, sinks, (&inspection, listing));
    let scope = engine.scope(Scope::Global);
    let program = Program::of(format, &engine, &terminal, interrupts);
    let config = agent::config(options, &loaded, program.frontend(&terminal))?;
    let config = AgentConfig {
        protected_files: Arc::new(protected),
        permissions: config.permissions.yes(args.yes),
        toolbox: rules::attempts(options, extras.toolbox())?,
        ..config
    };
    let config = with_recipe(config, &loaded, recipe.as_ref());
    let is_shown = format == Format::Text;
    let (source, config) = sessions::of_run(&args, config, &engine, interrupts, is_shown).await?;
    let extensions = extras.providers(&judges);
    let known = (&*providers, &judges, &extensions);
    let config = models::select_model(config, options, &loaded, known)?;
    let config = AgentConfig {
        context_swaps: Some(swaps),
        resources: resources::places(options)?,
        scripts: Some(Arc::clone(&scripts)),
        ..config
    };
    terminal.update_completions(|words| words.sessions.clone_from(&config.sessions));
    let agent = agent::build(options, config, engine.clone())?;
    // A script stays loaded in its worker while any of its hooks exist, so a copy here would keep removed scripts
    // alive.
    drop(loaded);
    let conversation = Conversation {
        agent,
        source,
        commands: extras.commands(),
        engine,
        scripts,
        reloader: followed.map(|followed| followed.follow(scope, of_recipe)),
        terminal: &terminal,
        interrupts,
        is_over: false,
        format,
        program,
        has_shell,
    };
    let prompt = recipe::prompt(recipe, &args, interrupts).await?;
    let result = conversation.run(prompt.as_deref()).await;
    inspection.end().await;
    let closed = journal::close(file.as_ref());
    result.and_then(|exit| closed.map(|()| exit))
}

/// The hooks of a run, and everything else that their sources provide.
struct RunHooks {
    loaded: Loaded,
    /// The sources whose changes the run follows. `None` for a run without hooks.
    followed: Option<FollowedSources>,
    extras: SessionExtensions,
    found: Vec<FoundFile>,
    /// What the inspector shows about the sources of the hooks.
    listing: HookListing,
}

impl RunHooks {
    async fn load(
        args: &RunArgs,
        options: &AgentOptions,
        services: Services,
        interrupts: &Interrupts,
    ) -> Result<Self, CliError> {
        if args.work.no_hooks {
            return Ok(Self {
                loaded: hooks::load_agents(&options.hooks, services, &interrupts.token()).await?,
                followed: None,
                extras: SessionExtensions::default(),
                found: Vec::new(),
                listing: HookListing::without_sources(),
            });
        }
        let hooks = load_hooks(args, options, services, interrupts).await?;
        Ok(Self {
            listing: HookListing::new(&hooks),
            loaded: hooks.loaded,
            followed: Some(hooks.followed),
            extras: hooks.extras,
            found: hooks.found,
        })
    }
}

/// Loads the hooks of a run. Asks a user at a terminal what to do with approvals of another folder or repository.
async fn load_hooks(
    args: &RunArgs,
    options: &AgentOptions,
    services: Services,
    interrupts: &Interrupts,
) -> Result<Hooks, CliError> {
    let (options, cwd) = (&options.hooks, &options.cwd);
    let hooks = hooks::load(options, cwd, services.clone(), &interrupts.token()).await?;
    let is_text = args.output.format() == Format::Text;
    let has_user = is_text && stdin().is_terminal() && stdout().is_terminal();
    let diverged = &hooks.loaded.diverged;
    if has_user && settle_displaced(diverged, cwd, interrupts).await? {
        return hooks::load(options, cwd, services, &interrupts.token()).await;
    }
    Ok(hooks)
}

fn check_prompt(args: &RunArgs) -> Result<(), CliError> {
    match &args.prompt {
        Some(prompt) if prompt.trim().is_empty() => {
            Err(CliError::new(Exit::Usage, "the prompt is empty")
                .hint("leave the prompt out to enter prompts on stdin, one per line"))
        }
        _ => Ok(()),
    }
}

/// Returns whether someone can answer the questions of scripts.
fn has_ui(format: Format) -> bool {
    match format {
        Format::Text => stdin().is_terminal(),
        Format::Rpc => true,
        Format::Answer | Format::Json | Format::Jsonl => false,
    }
}

fn shown(format: Format) -> Verbosity {
    match format {
        Format::Text => Verbosity::Full,
        Format::Answer => Verbosity::AnswerOnly,
        Format::Json | Format::Jsonl | Format::Rpc => Verbosity::Silent,
    }
}

/// Returns where records go: the journal, and the timeline on the terminal.
fn sinks(
    args: &RunArgs,
    loaded: &Loaded,
    file: Option<&Arc<FileJournal>>,
    terminal: &Arc<Terminal>,
) -> Vec<Arc<dyn JournalSink>> {
    let timeline = args.timeline.then(|| {
        let timeline = Timeline::new(Arc::clone(terminal), &loaded.specs);
        Arc::new(RedactingJournal::new(Arc::new(timeline))) as Arc<dyn JournalSink>
    });
    file.map(|file| Arc::clone(file) as _)
        .into_iter()
        .chain(timeline)
        .collect()
}

/// Creates the engine, whose records go to `sinks` and to the inspector.
fn engine(
    args: &RunArgs,
    loaded: &Loaded,
    sinks: Vec<Arc<dyn JournalSink>>,
    (inspection, listing): (&RunInspection, HookListing),
) -> Engine {
    let sink = sink(sinks.into_iter().chain(inspection.journal()));
    let is_strict = args.agent.hooks.strict;
    let mut builder = exceptions::builder(&args.agent.cwd);
    if let Some(observer) = inspection.observer() {
        builder = builder.observer(observer);
    }
    let engine = hooks::engine_of(builder, loaded, is_strict, sink);
    inspection.follow_hooks(listing, &engine);
    engine
}

fn sink(sinks: impl Iterator<Item = Arc<dyn JournalSink>>) -> Option<Arc<dyn JournalSink>> {
    let sinks: Vec<_> = sinks.collect();
    (!sinks.is_empty()).then(|| {
        let sink: Arc<dyn JournalSink> = Arc::new(FanOutSink { sinks });
        Arc::new(JournalWithoutFeed(sink)) as _
    })
}

/// Gives the agent the recipe's name, and limits its tools to the recipe's. A recipe cannot add tools that the agent
/// does not have. Recipes are written for several agents, so a tool that is missing here only causes a warning.
fn with_recipe(mut config: AgentConfig, loaded: &Loaded, recipe: Option<&Recipe>) -> AgentConfig {
    let Some(recipe) = recipe else {
        return config;
    };
    config.recipe = Some(recipe.name.clone());
    if let Some(commands) = &recipe.allowed_commands {
        let own = config.restrictions.get(&config.name);
        let limited = AgentRestrictions {
            commands: Some(commands.iter().collect()),
            ..own.map_or_else(AgentRestrictions::default, |own| (**own).clone())
        };
        config.restrict(config.name.clone(), limited);
    }
    if let Some(mut tools) = recipe.allowed_tools.clone() {
        tools.retain(|tool| {
            let has_tool = config.has_tool(tool);
            if !has_tool {
                let tool = escape_line(tool);
                let name = escape_line(&recipe.name);
                warn(format_args!(
                    "the recipe `{name}` allows the tool `{tool}`, which this agent does not have"
                ));
            }
            has_tool
        });
        if let Some(own) = agent::root(loaded).and_then(|root| rules::tools(root, true)) {
            tools.retain(|tool| own.contains(tool));
        }
        config.tools = Some(tools);
    }
    config
}
