//! `tenterhook run`: the agent on a prompt, or on prompts from stdin.

use std::sync::Arc;

use serde_json::json;
use tenterhook::event::{SessionEndReason, SessionSource};
use tenterhook::{Engine, FileJournal, JournalSink};
use tenterhook_agent::provider::{Endpoint, ModelChoice, OpenError, Provider};
use tenterhook_agent::{
    Agent, AgentSpec, CancellationToken, Limits, Permissions, RunEnd, RunReport,
};
use tenterhook_config::{AgentDefinition, AgentFile, Loaded};

use crate::args::RunArgs;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks;
use crate::journal::{self, Tee};
use crate::output;
use crate::terminal::{Shown, Terminal, read_line};
use crate::timeline::Timeline;

pub(crate) async fn run(args: RunArgs) -> Result<Exit, CliError> {
    let loaded = hooks::load(&args.hooks)?;
    let provider = provider(&args, &loaded)?;
    let file = journal::open(&args.journal)?;
    let shown = if args.json {
        Shown::Nothing
    } else {
        Shown::Everything
    };
    let terminal = Arc::new(Terminal::new(shown));
    let engine = hooks::engine(
        &loaded,
        args.hooks.strict,
        sink(&args, file.as_ref(), &terminal),
    );
    let agent = agent(&args, &loaded, engine, provider, Arc::clone(&terminal))?;
    let result = converse(&args, agent, &terminal).await;
    journal::close(file.as_ref())?;
    result
}

fn sink(
    args: &RunArgs,
    file: Option<&Arc<FileJournal>>,
    terminal: &Arc<Terminal>,
) -> Option<Arc<dyn JournalSink>> {
    let timeline = args
        .timeline
        .then(|| Arc::new(Timeline::new(Arc::clone(terminal))) as Arc<dyn JournalSink>);
    let sinks: Vec<Arc<dyn JournalSink>> = file
        .cloned()
        .map(|file| file as _)
        .into_iter()
        .chain(timeline)
        .collect();
    (!sinks.is_empty()).then(|| Arc::new(Tee { sinks }) as _)
}

fn root(loaded: &Loaded) -> Option<&AgentDefinition> {
    loaded.agent_files.iter().find_map(AgentFile::root)
}

fn provider(args: &RunArgs, loaded: &Loaded) -> Result<Arc<dyn Provider>, CliError> {
    let choice = match (
        &args.model,
        root(loaded).and_then(|agent| agent.model.as_ref()),
    ) {
        (Some(choice), _) => choice.clone(),
        (None, Some(named)) => named.parse().map_err(|error| {
            CliError::of(Exit::Config, &error).hint("choose a model with `--model`")
        })?,
        (None, None) => {
            return Err(CliError::new(Exit::Usage, "no model is chosen").hint(
                "pass `--model scripted:FILE` for a scripted one, or `--model openai:gpt-4o`",
            ));
        }
    };
    let mut endpoint = match &choice {
        ModelChoice::Remote { service, .. } => {
            Endpoint::from_variables(*service, |name| std::env::var(name).ok())
        }
        ModelChoice::Scripted(_) => Endpoint::default(),
    };
    endpoint.base_url = args.base_url.clone().or(endpoint.base_url);
    choice.open(endpoint).map_err(|error| {
        let exit = if matches!(error, OpenError::Script(_)) {
            Exit::Config
        } else {
            Exit::Failed
        };
        CliError::of(exit, &error)
    })
}

fn agent(
    args: &RunArgs,
    loaded: &Loaded,
    engine: Engine,
    provider: Arc<dyn Provider>,
    terminal: Arc<Terminal>,
) -> Result<Agent, CliError> {
    let cwd = std::path::absolute(&args.cwd).map_err(|error| {
        CliError::new(Exit::Failed, "cannot find the working directory").cause(&error)
    })?;
    if !cwd.is_dir() {
        let message = format!("`{}` is no directory", cwd.display());
        return Err(
            CliError::new(Exit::Usage, message).hint("name the folder to work in with `--cwd DIR`")
        );
    }
    let defaults = Limits::default();
    let limits = Limits {
        max_iterations: args.max_iterations.unwrap_or(defaults.max_iterations),
        compact_at: args.compact_at,
        token_budget: args.token_budget,
        ..defaults
    };
    let mut builder = Agent::builder(engine)
        .model(provider)
        .cwd(cwd)
        .permissions(permissions(args))
        .limits(limits)
        .frontend(terminal)
        .agents(subagents(loaded));
    if let Some(root) = root(loaded) {
        builder = builder.name(&root.name);
        if let Some(instruction) = &root.instruction {
            builder = builder.instruction(instruction);
        }
    }
    builder
        .build()
        .map_err(|error| CliError::of(Exit::Config, &error))
}

fn permissions(args: &RunArgs) -> Permissions {
    let permissions = Permissions::new().yes(args.yes);
    let permissions = args
        .allow
        .iter()
        .cloned()
        .fold(permissions, Permissions::allow);
    let permissions = args.ask.iter().cloned().fold(permissions, Permissions::ask);
    args.deny
        .iter()
        .cloned()
        .fold(permissions, Permissions::deny)
}

/// Returns the agents that the root agent may give tasks to: those it names, else all others of its file, else a
/// copy of itself.
fn subagents(loaded: &Loaded) -> Vec<AgentSpec> {
    let file = loaded.agent_files.iter().find(|file| file.root().is_some());
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
    AgentSpec {
        name: "helper".to_owned(),
        description: "Like you, for a task of its own.".to_owned(),
        instruction: root
            .and_then(|root| root.instruction.clone())
            .unwrap_or_default(),
        tools: None,
    }
}

fn subagent(agent: &AgentDefinition) -> AgentSpec {
    AgentSpec {
        name: agent.name.clone(),
        description: agent.description.clone().unwrap_or_default(),
        instruction: agent.instruction.clone().unwrap_or_default(),
        tools: None,
    }
}

/// Leads the conversation and closes the session, however it ends.
async fn converse(args: &RunArgs, mut agent: Agent, terminal: &Terminal) -> Result<Exit, CliError> {
    agent.start_session(SessionSource::Startup).await;
    let mut last = None;
    match &args.prompt {
        Some(prompt) => last = Some(ask(&mut agent, prompt, terminal).await),
        None => {
            while let Some(line) = next_prompt(terminal).await {
                match line.as_str() {
                    "" => {}
                    "/quit" => break,
                    "/compact" => compact(&mut agent).await,
                    prompt => last = Some(ask(&mut agent, prompt, terminal).await),
                }
            }
        }
    }
    let session = agent.session().id().clone();
    agent.end_session(SessionEndReason::Quit).await;
    terminal.settle();
    let Some(report) = last else {
        return Ok(Exit::Done);
    };
    let ending = Ending::of(&report.end);
    if args.json {
        output::json(&json!({
            "session_id": session,
            "end": ending.word,
            "reason": ending.reason,
            "response": report.response,
            "turns": report.turns,
            "usage": report.usage,
        }));
    } else if let Some(reason) = ending.reason {
        output::note(format_args!("The run ended: {reason}"));
    }
    Ok(ending.exit)
}

async fn next_prompt(terminal: &Terminal) -> Option<String> {
    if tenterhook_agent::Frontend::is_interactive(terminal) {
        terminal.settle();
        output::text("> ");
    }
    read_line().await
}

/// Works on a prompt. Ctrl-C cancels it, and everything that it started.
async fn ask(agent: &mut Agent, prompt: &str, terminal: &Terminal) -> RunReport {
    let cancel = CancellationToken::new();
    let on_interrupt = cancel.clone();
    let interrupts = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            on_interrupt.cancel();
        }
    });
    terminal.wait_for("waiting for the model");
    let report = agent.prompt(prompt, &cancel).await;
    interrupts.abort();
    terminal.settle();
    report
}

async fn compact(agent: &mut Agent) {
    let before = agent.context_tokens();
    match agent.compact(None, &CancellationToken::new()).await {
        Ok(_) => output::line(format_args!("Compacted a conversation of {before} tokens.")),
        Err(error) => output::note(format_args!("Not compacted: {error}")),
    }
}

/// What a person, a program and a shell are told of how a run ended.
struct Ending {
    word: &'static str,
    /// Why the run ended before the model was done.
    reason: Option<String>,
    exit: Exit,
}

impl Ending {
    fn of(end: &RunEnd) -> Self {
        let ending = |word, reason, exit| Self { word, reason, exit };
        match end {
            RunEnd::Completed => ending("completed", None, Exit::Done),
            RunEnd::Handled => ending("handled", None, Exit::Done),
            RunEnd::Canceled => ending(
                "canceled",
                Some("it was interrupted".to_owned()),
                Exit::Interrupted,
            ),
            RunEnd::HookBlocked { event, reason } => ending(
                "hook_blocked",
                Some(format!("a {event} hook stopped it: {reason}")),
                Exit::Stopped,
            ),
            RunEnd::LoopDetected { tool } => {
                let reason =
                    format!("the model called `{tool}` with the same arguments again and again");
                ending("loop_detected", Some(reason), Exit::Run)
            }
            RunEnd::MaxIterations { limit } => ending(
                "max_iterations",
                Some(format!("the cap of {limit} model calls was reached")),
                Exit::Run,
            ),
            RunEnd::Error { message } => ending("error", Some(message.clone()), Exit::Run),
            other => ending("unknown", Some(format!("{other:?}")), Exit::Run),
        }
    }
}
