//! `tenterhook run`: the agent on a prompt, or on prompts from stdin.

use std::io::{IsTerminal as _, stdin, stdout};
use std::sync::Arc;

use tenterhook::{Engine, FileJournal, HookSpec, JournalSink, Scope};
use tenterhook_agent::{
    Agent, AgentBuilder, AgentRestrictions, AgentSpec, ContextSwaps, Frontend, Limits,
};
use tenterhook_config::{AgentDefinition, AgentFile, Loaded, Recipe};
use tenterhook_handlers::{ResponseCache, Services};

use crate::approval;
use crate::args::{Format, RunArgs};
use crate::converse::{Conversation, Program};
use crate::data_dir::data_dir;
use crate::error::CliError;
use crate::exit::Exit;
use crate::extras::{self, Extras};
use crate::feed::WithoutFeed;
use crate::hooks::Hooks;
use crate::interrupt::Interrupts;
use crate::journal::{self, Tee};
use crate::terminal::{Shown, Terminal};
use crate::timeline::Timeline;
use crate::{config_dir, hooks, models, protected, recipe, resources, rules, sessions};

pub(crate) async fn run(args: RunArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    check_prompt(&args)?;
    let providers = models::providers(&args.hooks.config)?;
    let (services, judges) = hooks::services_with(&providers);
    let swaps = Arc::new(ContextSwaps::default());
    let format = args.output.format();
    let scripts = extras::host(has_ui(format), &args.flags);
    let services = Services {
        context: Some(Arc::clone(&swaps) as _),
        scripts: Some(Arc::clone(&scripts) as _),
        ..services
    };
    let recipe = recipe::load(&args, services.clone())?;
    let (mut loaded, followed, extras, found) = if args.work.no_hooks {
        let loaded = hooks::load_agents(&args.hooks, services, interrupts).await?;
        (loaded, None, Extras::default(), Vec::new())
    } else {
        let hooks = load_hooks(&args, services, interrupts).await?;
        (
            hooks.loaded,
            Some(hooks.followed),
            hooks.extras,
            hooks.found,
        )
    };
    let protected = protected::files(&args.hooks, &args.journal, &args.cwd, &loaded, &found)?;
    extras.check_flags(&args.flags)?;
    let hooks = recipe.iter().flat_map(|recipe| recipe.hooks.iter());
    let of_recipe: Vec<HookSpec> = hooks.cloned().collect();
    loaded.specs.extend(of_recipe.iter().cloned());
    let file = journal::open(&args.journal)?;
    let name = root(&loaded).map_or(Agent::DEFAULT_NAME, |root| &root.name);
    let terminal = Arc::new(Terminal::new(shown(format), interrupts).root(name));
    let has_shell = args.work.shell_lines || (args.prompt.is_none() && stdin().is_terminal());
    let engine = hooks::engine(
        &loaded,
        args.hooks.strict,
        sink(&args, &loaded, file.as_ref(), &terminal),
    );
    let scope = engine.scope(Scope::Global);
    let program = Program::of(format, &engine, &terminal, interrupts);
    let frontend = program.frontend(&terminal);
    let builder = agent(&args, &loaded, engine.clone(), frontend)?.protected_files(protected);
    let builder = with_recipe(builder, &loaded, recipe.as_ref());
    let is_told = format == Format::Text;
    let (source, builder) = sessions::of_run(&args, builder, interrupts, is_told).await?;
    let noted = builder.chosen_model();
    let known = (&*providers, &judges);
    let builder = models::give(builder, &args, root(&loaded), noted.as_deref(), known)?;
    let builder = builder
        .context_swaps(swaps)
        .toolbox(rules::attempts(&args, extras.toolbox())?)
        .resources(resources::places(&args.hooks.config, &args.cwd)?)
        .scripts(Arc::clone(&scripts));
    terminal.complete(|words| words.sessions = builder.stored_sessions().cloned());
    let agent = build(&args, builder)?;
    // Scripts stay in their workers as long as somebody has their hooks.
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
    let prompt = recipe::prompt(recipe.as_ref(), args.prompt.as_deref());
    let result = conversation.lead(prompt.as_deref()).await;
    let closed = journal::close(file.as_ref());
    result.and_then(|exit| closed.map(|()| exit))
}

/// Loads the hooks of a run. A user at a terminal is asked what to do with approvals that do not fit here.
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
                .hint("leave it out to give prompts on standard input, one a line"))
        }
        _ => Ok(()),
    }
}

/// Says whether somebody answers what scripts ask.
fn has_ui(format: Format) -> bool {
    match format {
        Format::Text => stdin().is_terminal(),
        Format::Rpc => true,
        Format::Answer | Format::Json | Format::Jsonl => false,
    }
}

fn shown(format: Format) -> Shown {
    match format {
        Format::Text => Shown::Everything,
        Format::Answer => Shown::Answer,
        Format::Json | Format::Jsonl | Format::Rpc => Shown::Nothing,
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
        let sink: Arc<dyn JournalSink> = Arc::new(Tee { sinks });
        journal::without_secrets(Arc::new(WithoutFeed(sink)))
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
    engine: Engine,
    frontend: Arc<dyn Frontend>,
) -> Result<AgentBuilder, CliError> {
    let cwd = sessions::absolute(&args.cwd)?;
    if !cwd.is_dir() {
        let message = format!("`{}` is no directory", cwd.display());
        return Err(
            CliError::new(Exit::Usage, message).hint("name the folder to work in with `--cwd DIR`")
        );
    }
    let defaults = Limits::default();
    let limits = Limits {
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
    let mut builder = Agent::builder(engine)
        .cwd(cwd)
        .permissions(rules::permissions(args, loaded)?)
        .limits(limits)
        .frontend(frontend)
        .agents(subagents(loaded))
        .background(true);
    if let Some(workspace) = config_dir::workspace(&args.hooks.place)? {
        builder = builder.workspace(workspace.as_str());
    }
    if let Some(responses) = responses(loaded) {
        builder = builder.responses(responses);
    }
    if let Some(root) = root(loaded) {
        builder = builder.name(&root.name);
        if let Some(tools) = rules::tools(root, true) {
            builder = builder.tools(tools);
        }
        if let Some(instruction) = &root.instruction {
            builder = builder.instruction(instruction);
        }
        // The limits above have those of the root agent, which may be larger than the default.
        let own = AgentRestrictions {
            max_iterations: None,
            repeated_calls: None,
            ..rules::restrictions(root)?
        };
        builder = builder.restrict(&root.name, own);
    }
    let file = file_of_root(loaded);
    let others = file.into_iter().flat_map(|file| &file.agents);
    for agent in others.filter(|agent| root(loaded).is_some_and(|root| root.name != agent.name)) {
        builder = builder.restrict(&agent.name, rules::restrictions(agent)?);
    }
    Ok(builder)
}

/// Gives the agent the name of a recipe, and no tools but the recipe's. A recipe allows nothing that the agent has not.
fn with_recipe(builder: AgentBuilder, loaded: &Loaded, recipe: Option<&Recipe>) -> AgentBuilder {
    let Some(recipe) = recipe else {
        return builder;
    };
    let builder = builder.recipe(&recipe.name);
    let Some(mut tools) = recipe.allowed_tools.clone() else {
        return builder;
    };
    if let Some(own) = root(loaded).and_then(|root| rules::tools(root, true)) {
        tools.retain(|tool| own.contains(tool));
    }
    builder.tools(tools)
}

fn build(args: &RunArgs, builder: AgentBuilder) -> Result<Agent, CliError> {
    let agent = builder
        .build()
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

/// Returns the agents that the root agent may give tasks to: those it names, else all others of its file, else a
/// copy of itself.
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

/// Returns an agent like the root agent, for a task of its own.
fn copy_of(root: Option<&AgentDefinition>) -> AgentSpec {
    let taken = root.map_or(Agent::DEFAULT_NAME, |root| &root.name);
    let name = ["helper", "second_helper"]
        .into_iter()
        .find(|name| *name != taken);
    AgentSpec {
        name: name.unwrap_or_default().to_owned(),
        description: "Like you, for a task of its own.".to_owned(),
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
