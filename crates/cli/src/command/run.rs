//! `tenterhook run`: runs the agent on one prompt, or on prompts from stdin.

pub(crate) mod args;
mod protected;
mod recipe;
mod resources;
mod rules;

use std::io::{IsTerminal as _, stdin, stdout};
use std::sync::Arc;

use tenterhook_agent::{
    Agent, AgentConfig, AgentLimits, AgentRestrictions, AgentSpec, ContextSwaps, Frontend,
};
use tenterhook_builtins::ResponseCache;
use tenterhook_discovery::{FollowedSources, FoundFile, Loaded, Recipe};
use tenterhook_engine::{Engine, HookSpec, JournalSink, Scope};
use tenterhook_hookfile::{AgentDefinition, AgentFile};
use tenterhook_journal::FileJournal;
use tenterhook_runners::Services;

use crate::approval;
use crate::command::run::args::RunArgs;
use crate::command::sessions;
use crate::config_dir;
use crate::conversation::format::Format;
use crate::conversation::{Conversation, Program};
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::extensions::{self, SessionExtensions};
use crate::hooks;
use crate::hooks::Hooks;
use crate::journal::{self, FanOutSink};
use crate::models;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::json_lines::JournalWithoutFeed;
use tenterhook_terminal::timeline::Timeline;
use tenterhook_terminal::{Terminal, Verbosity};

pub(crate) async fn run(args: RunArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    check_prompt(&args)?;
    let providers = models::providers(&args.hooks.config)?;
    let (services, judges) = hooks::services_with(&providers);
    let swaps = Arc::new(ContextSwaps::default());
    let format = args.output.format();
    let scripts = extensions::host(has_ui(format), &args.flags);
    let scripts = Arc::new(scripts.strict(args.hooks.strict));
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
    } = RunHooks::load(&args, services, interrupts).await?;
    let protected = protected::files(&args.hooks, &args.journal, &args.cwd, &loaded, &found)?;
    extras.check_flags(&args.flags)?;
    scripts.list_commands(&extras.commands());
    let hooks = recipe.iter().flat_map(|recipe| recipe.hooks.iter());
    let of_recipe: Vec<HookSpec> = hooks.cloned().collect();
    loaded.specs.extend(of_recipe.iter().cloned());
    let file = journal::open(&args.journal)?;
    output.record_in(file.clone().map(|file| journal::without_secrets(file)));
    let name = root(&loaded).map_or(Agent::DEFAULT_NAME, |root| &root.name);
    let history = data_dir().map(|data| data.join("history"));
    let terminal = Arc::new(Terminal::new(shown(format), history, interrupts).main_agent(name));
    let has_shell = args.work.shell_lines || (args.prompt.is_none() && stdin().is_terminal());
    let engine = hooks::engine(
        &loaded,
        args.hooks.strict,
        sink(&args, &loaded, file.as_ref(), &terminal),
    );
    let scope = engine.scope(Scope::Global);
    let program = Program::of(format, &engine, &terminal, interrupts);
    let frontend = program.frontend(&terminal);
    let config = AgentConfig {
        protected_files: Arc::new(protected),
        ..agent(&args, &loaded, frontend)?
    };
    let config = with_recipe(config, &loaded, recipe.as_ref());
    let is_shown = format == Format::Text;
    let (source, config) = sessions::of_run(&args, config, &engine, interrupts, is_shown).await?;
    let recorded = config.recorded_model();
    let extensions = extras.providers(&judges);
    let known = (&*providers, &judges, &extensions);
    let config = models::select_model(config, &args, root(&loaded), recorded.as_deref(), known)?;
    let config = AgentConfig {
        context_swaps: Some(swaps),
        toolbox: rules::attempts(&args, extras.toolbox())?,
        resources: resources::places(&args.hooks.config, &args.cwd)?,
        scripts: Some(Arc::clone(&scripts)),
        ..config
    };
    terminal.update_completions(|words| words.sessions.clone_from(&config.sessions));
    let agent = build(&args, config, engine.clone())?;
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
}

impl RunHooks {
    async fn load(
        args: &RunArgs,
        services: Services,
        interrupts: &Interrupts,
    ) -> Result<Self, CliError> {
        if args.work.no_hooks {
            return Ok(Self {
                loaded: hooks::load_agents(&args.hooks, services, interrupts).await?,
                followed: None,
                extras: SessionExtensions::default(),
                found: Vec::new(),
            });
        }
        let hooks = load_hooks(args, services, interrupts).await?;
        Ok(Self {
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
    services: Services,
    interrupts: &Interrupts,
) -> Result<Hooks, CliError> {
    let (hook_args, lines, cwd) = (&args.hooks, &args.lines, &args.cwd);
    let hooks = hooks::load(hook_args, lines, cwd, services.clone(), interrupts).await?;
    let is_text = args.output.format() == Format::Text;
    let has_user = is_text && stdin().is_terminal() && stdout().is_terminal();
    let diverged = &hooks.loaded.diverged;
    if has_user && approval::settle_displaced(diverged, cwd, interrupts).await? {
        return hooks::load(hook_args, lines, cwd, services, interrupts).await;
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

fn sink(
    args: &RunArgs,
    loaded: &Loaded,
    file: Option<&Arc<FileJournal>>,
    terminal: &Arc<Terminal>,
) -> Option<Arc<dyn JournalSink>> {
    let timeline = args.timeline.then(|| {
        Arc::new(Timeline::new(Arc::clone(terminal), &loaded.specs)) as Arc<dyn JournalSink>
    });
    let sinks: Vec<Arc<dyn JournalSink>> = file
        .map(|file| Arc::clone(file) as _)
        .into_iter()
        .chain(timeline)
        .collect();
    (!sinks.is_empty()).then(|| {
        let sink: Arc<dyn JournalSink> = Arc::new(FanOutSink { sinks });
        journal::without_secrets(Arc::new(JournalWithoutFeed(sink)))
    })
}

fn root(loaded: &Loaded) -> Option<&AgentDefinition> {
    file_of_root(loaded).and_then(AgentFile::root)
}

/// Returns the agent file whose agents run.
fn file_of_root(loaded: &Loaded) -> Option<&AgentFile> {
    loaded.agent_files.iter().find(|file| file.root().is_some())
}

fn agent(
    args: &RunArgs,
    loaded: &Loaded,
    frontend: Arc<dyn Frontend>,
) -> Result<AgentConfig, CliError> {
    let cwd = sessions::absolute(&args.cwd)?;
    if !cwd.is_dir() {
        let message = format!("`{}` is not a directory", cwd.display());
        return Err(
            CliError::new(Exit::Usage, message).hint("name the folder to work in with `--cwd DIR`")
        );
    }
    let defaults = AgentLimits::default();
    let limits = AgentLimits {
        max_iterations: args
            .max_iterations
            .or_else(|| root(loaded)?.max_iterations)
            .unwrap_or(defaults.max_iterations),
        repeated_calls: root(loaded)
            .and_then(|root| root.max_consecutive_tool_calls)
            .unwrap_or(defaults.repeated_calls),
        compact_at: args.compact_at,
        token_budget: args.token_budget,
        ..defaults
    };
    let permissions = rules::permissions(args, loaded)?;
    let workspace = config_dir::workspace(&args.hooks.place)?;
    let mut config = AgentConfig {
        cwd,
        permissions,
        limits,
        frontend,
        agents: subagents(loaded),
        has_background_tasks: true,
        workspace: workspace.map(|workspace| workspace.as_str().to_owned()),
        responses: responses(loaded),
        ..AgentConfig::default()
    };
    if let Some(root) = root(loaded) {
        config.name.clone_from(&root.name);
        config.tools = rules::tools(root, true);
        if let Some(instruction) = &root.instruction {
            config.instruction.clone_from(instruction);
        }
        // The limits above already include the root agent's, which may be larger than the defaults.
        let own = AgentRestrictions {
            max_iterations: None,
            repeated_calls: None,
            ..rules::restrictions(root)?
        };
        config.restrict(&root.name, own);
    }
    let file = file_of_root(loaded);
    let others = file.into_iter().flat_map(|file| &file.agents);
    for agent in others.filter(|agent| root(loaded).is_some_and(|root| root.name != agent.name)) {
        config.restrict(&agent.name, rules::restrictions(agent)?);
    }
    Ok(config)
}

/// Gives the agent the recipe's name, and limits its tools to the recipe's. A recipe cannot add tools that the agent
/// does not have.
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
        if let Some(own) = root(loaded).and_then(|root| rules::tools(root, true)) {
            tools.retain(|tool| own.contains(tool));
        }
        config.tools = Some(tools);
    }
    config
}

fn build(args: &RunArgs, config: AgentConfig, engine: Engine) -> Result<Agent, CliError> {
    let agent = config
        .build(engine)
        .map_err(|error| CliError::of(Exit::Config, &error))?;
    rules::check(args, &agent)?;
    Ok(agent)
}

/// Returns the cache of answers, if a hook fills it.
fn responses(loaded: &Loaded) -> Option<ResponseCache> {
    let fills = |spec: &HookSpec| {
        spec.handling.kind() == "builtin" && spec.handling.describe() == "cache_response"
    };
    let is_filled = loaded.specs.iter().any(fills);
    is_filled
        .then(data_dir)
        .flatten()
        .map(|dir| ResponseCache::new(&dir))
}

/// Returns the agents that the root agent may give tasks to: the agents it names, else all other agents of its file,
/// else a copy of itself.
fn subagents(loaded: &Loaded) -> Vec<AgentSpec> {
    let file = file_of_root(loaded);
    let root = file.and_then(AgentFile::root);
    let others = file
        .into_iter()
        .flat_map(|file| &file.agents)
        .filter(|agent| {
            root.is_some_and(|root| {
                agent.name != root.name
                    && (root.sub_agents.is_empty() || root.sub_agents.contains(&agent.name))
            })
        });
    let others: Vec<AgentSpec> = others.map(subagent).collect();
    if others.is_empty() {
        vec![copy_of(root)]
    } else {
        others
    }
}

/// Returns a copy of the root agent that works on separate tasks.
fn copy_of(root: Option<&AgentDefinition>) -> AgentSpec {
    let taken = root.map_or(Agent::DEFAULT_NAME, |root| &root.name);
    let name = ["helper", "second_helper"]
        .into_iter()
        .find(|name| *name != taken);
    AgentSpec {
        name: name.unwrap_or_default().to_owned(),
        description: "A copy of you that works on a separate task.".to_owned(),
        instruction: root
            .and_then(|root| root.instruction.clone())
            .unwrap_or_default(),
        tools: root.and_then(|root| rules::tools(root, true)),
    }
}

fn subagent(agent: &AgentDefinition) -> AgentSpec {
    AgentSpec {
        name: agent.name.clone(),
        description: agent.description.clone().unwrap_or_default(),
        instruction: agent.instruction.clone().unwrap_or_default(),
        tools: rules::tools(agent, !agent.sub_agents.is_empty()),
    }
}
