//! `tenterhook explain`: shows which hooks an event would run, which it would not, and why.

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;

use serde::Serialize;
use tenterhook_discovery::{FoundFile, unknown_tool};
use tenterhook_engine::{EventName, HookSpec, JsonObject, RegisteredHook};
use tenterhook_systems::tools;
use tenterhook_trust::ProjectHook;

use crate::event_name::parse_event_name;
use crate::hook_args::HookArgs;
use clap::Parser;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::approval;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hook_options::HookOptions;
use tenterhook_setup::hooks::{self, Hooks};
use tenterhook_setup::warning::warn;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::table::{self, plain};
use tenterhook_terminal::output::{self, style, styled};

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook explain [OPTIONS] <EVENT>")]
pub(crate) struct ExplainArgs {
    /// The event's name, such as `pre_tool_use`, or `x-<vendor>.<name>` for a user-defined event.
    pub(crate) event: String,

    /// The tool that the event is about. Without it, every matcher for tools counts as a match.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,

    /// The text that matchers of the event match, for an event that is not about a tool.
    #[arg(long, value_name = "TEXT", conflicts_with = "tool")]
    pub(crate) subject: Option<String>,

    /// The agent that the event comes from. Without it, hooks for every agent count.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Explain the hooks of this script or file instead of yours and the project's, as `fire --script` runs them.
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A hook or file, whether it runs, and why.
#[derive(Debug, Serialize)]
struct ExplainedHook {
    hook: String,
    source: String,
    runs: bool,
    why: String,
    /// The tool call as the hook sees it, if its hook system uses other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    sees: Option<SeenCall>,
}

/// A tool call under the names of a hook system. Each value is the name of the canonical argument.
#[derive(Debug, Serialize)]
struct SeenCall {
    system: &'static str,
    tool: String,
    input: JsonObject,
}

impl ExplainedHook {
    fn describe(&self) -> String {
        let Some(SeenCall { tool, input, .. }) = &self.sees else {
            return self.why.clone();
        };
        let input = JsonObject::clone(input);
        format!(
            "{}, sees `{tool} {}`",
            self.why,
            serde_json::Value::Object(input)
        )
    }
}

/// Shows how many hooks are for other events.
fn show_others(hooks: &[RegisteredHook]) {
    if hooks.is_empty() {
        return;
    }
    let events: BTreeSet<&str> = hooks.iter().filter_map(event_of).collect();
    let events: Vec<String> = events.iter().map(|name| format!("`{name}`")).collect();
    output::line(format_args!(
        "{} for other events: {}.",
        count(hooks.len(), "more hook"),
        escape_line(&events.join(", "))
    ));
}

pub(crate) async fn explain(args: ExplainArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let event = parse_event_name(&args.event)?;
    let subject = subject(&args, &event)?;
    if let Some(warning) = subject
        .as_deref()
        .filter(|_| args.tool.is_some())
        .and_then(unknown_tool)
    {
        warn(escape_line(&warning));
    }
    let start = std::env::current_dir().unwrap_or_default();
    let (services, _) = hooks::services(args.hooks.config.config_dir.as_deref())?;
    let options = HookOptions {
        script: args.script.clone(),
        ..args.hooks.options()
    };
    let hooks = hooks::load_and_warn(&options, &start, services, &interrupts.token()).await?;
    let call = ExplainedEvent {
        event: &event,
        subject: subject.as_deref(),
        agent: args.agent.as_deref(),
    };
    let registered = hooks::engine(&hooks.loaded, args.hooks.strict, None).hooks();
    let (of_event, mut of_others): (Vec<_>, Vec<_>) = registered
        .into_iter()
        .partition(|hook| hook.event.as_ref().is_none_or(|of| *of == event));
    // The files of folders have a row of their own.
    of_others.retain(|hook| {
        let path = hook.source.path.as_ref();
        !hooks.found.iter().any(|file| Some(&file.path) == path)
    });
    let rows = rows(&hooks, &of_event, &call);
    let running = rows.iter().filter(|row| row.runs).count();
    if args.json {
        output::json(&serde_json::json!({
            "event": event.as_str(),
            "subject": subject,
            "hooks": rows,
            "hooks_of_other_events": of_others.len(),
            "broken": hooks.broken,
        }));
        return Ok(hooks.exit(args.hooks.lenient));
    }
    show(&rows);
    let of = subject.map(|subject| format!(" of `{}`", escape_line(&subject)));
    output::line(format_args!(
        "{}: {} would run, {} would not.",
        styled(
            style::STRONG,
            format_args!("{event}{}", of.unwrap_or_default())
        ),
        count(running, "hook"),
        rows.len() - running
    ));
    show_others(&of_others);
    hooks.refuse_broken(args.hooks.lenient)?;
    Ok(Exit::Done)
}

fn event_of(hook: &RegisteredHook) -> Option<&str> {
    hook.event.as_ref().map(EventName::as_str)
}

/// The event that is explained.
#[derive(Clone, Copy)]
struct ExplainedEvent<'a> {
    event: &'a EventName,
    /// The text that matchers match. Without it, every matcher counts as a match.
    subject: Option<&'a str>,
    /// The agent. Without it, hooks for every agent count.
    agent: Option<&'a str>,
}

/// Returns the text that matchers of the event match.
fn subject(args: &ExplainArgs, event: &EventName) -> Result<Option<String>, CliError> {
    let field = event.info().subject;
    match (&args.tool, &args.subject, field) {
        (Some(_), _, field) if field != Some("tool_name") => Err(CliError::new(
            Exit::Usage,
            format!("`{event}` is not a tool event"),
        )
        .hint("remove `--tool`")),
        (_, Some(_), None) => Err(CliError::new(
            Exit::Usage,
            format!("`{event}` has no subject for matchers"),
        )
        .hint("remove `--subject`")),
        (Some(tool), _, _) => Ok(Some(tenterhook_cases::named_tool(tool, None).tool)),
        (None, subject, _) => Ok(subject.clone()),
    }
}

/// Returns the row of a file without a hook for the event.
fn row_of_file(file: &FoundFile) -> ExplainedHook {
    let mut why = escape_line(&file.state.describe());
    if !file.state.events().is_empty() {
        why.push_str(", not for this event");
    }
    ExplainedHook {
        hook: escape_line(&file.name),
        source: escape_line(&file.path.display().to_string()),
        runs: false,
        sees: None,
        why,
    }
}

fn rows(
    hooks: &Hooks,
    registered: &[RegisteredHook],
    call: &ExplainedEvent<'_>,
) -> Vec<ExplainedHook> {
    let ExplainedEvent { event, subject, .. } = *call;
    let mut seen = HashMap::new();
    let mut rows: Vec<ExplainedHook> = Vec::new();
    for hook in registered {
        let specs = &hooks.loaded.specs;
        let why = why(hook, specs, call, &mut seen);
        rows.push(ExplainedHook {
            hook: escape_line(hook.id.as_str()),
            source: escape_line(&hook.source.to_string()),
            runs: why.is_none(),
            sees: why.is_none().then(|| sees(hook, specs, subject)).flatten(),
            why: why.unwrap_or_else(|| {
                let state = approval::state_of(hook, &hooks.loaded.diverged);
                let state = state.map(|state| format!(" ({state})"));
                runs_as(hook) + &state.unwrap_or_default()
            }),
        });
    }
    let is_other = |file: &&FoundFile| !file.state.events().contains(&event);
    rows.extend(hooks.found.iter().filter(is_other).map(row_of_file));
    // The rows of files already include executables.
    let of_files = hooks.loaded.project_hooks.iter().filter(|project_hook| {
        project_hook.is_withheld()
            && project_hook.events.contains(event)
            && !is_executable(project_hook, &hooks.found)
    });
    rows.extend(of_files.map(|project_hook| ExplainedHook {
        hook: escape_line(&project_hook.item.name),
        source: project_hook.item.shown_name(),
        runs: false,
        sees: None,
        why: project_hook.state.as_str().to_owned(),
    }));
    rows
}

fn is_executable(project_hook: &ProjectHook, found: &[FoundFile]) -> bool {
    let item = &project_hook.item;
    let path = item.project.join(&item.source).join(&item.name);
    found.iter().any(|file| file.path == path)
}

fn spec_of<'a>(hook: &RegisteredHook, specs: &'a [HookSpec]) -> Option<&'a HookSpec> {
    specs
        .iter()
        .find(|spec| spec.id == hook.id && spec.event == hook.event && spec.source == hook.source)
}

/// Returns whether the matcher of a hook matches a subject. Tools match under the names of the hook's system.
fn matches(spec: &HookSpec, subject: &str) -> bool {
    let is_tool = spec.event.as_ref().is_some_and(is_about_tools);
    if !is_tool {
        return spec.matcher.matches(Some(subject));
    }
    let tools = spec.tools.clone().unwrap_or_else(tools::native);
    let spec = HookSpec {
        tools: Some(tools),
        ..spec.clone()
    };
    let mut names = spec.tool_names(subject).into_iter();
    names.any(|name| spec.matcher.matches(Some(name)))
}

fn is_about_tools(event: &EventName) -> bool {
    event.info().subject == Some("tool_name")
}

/// Returns how a hook would see a call to the tool, if its hook system has other names.
fn sees(hook: &RegisteredHook, specs: &[HookSpec], tool: Option<&str>) -> Option<SeenCall> {
    let spec = spec_of(hook, specs)?;
    // Built-ins see the canonical names, even in the agent files of other systems.
    let tools = spec.tools.as_ref().filter(|_| hook.kind != "builtin")?;
    let known = tools::canonical_tool(tool?)?;
    let required = known.arguments.iter().filter(|name| !name.ends_with('?'));
    let input = required.map(|name| ((*name).to_owned(), format!("<{name}>").into()));
    let seen = tools.view(known.name, &input.collect()).ok()??;
    Some(SeenCall {
        system: tools.system(),
        tool: seen.name,
        input: seen.input,
    })
}

/// Returns why a hook of the event would not run.
fn why(
    hook: &RegisteredHook,
    specs: &[HookSpec],
    call: &ExplainedEvent<'_>,
    seen: &mut HashMap<String, String>,
) -> Option<String> {
    let spec = spec_of(hook, specs)?;
    if let (Some(of), Some(agent)) = (hook.agent.as_deref(), call.agent)
        && !spec.is_for_agent(agent)
    {
        return Some(match of {
            "" => "it is for agents without a name".to_owned(),
            of => format!("it is for the agent `{}`", escape_line(of)),
        });
    }
    if let Some(subject) = call.subject
        && !matches(spec, subject)
    {
        return Some(format!(
            "its matcher `{}` does not match `{}`",
            escape_line(&hook.matcher),
            escape_line(subject)
        ));
    }
    // The same definition with another matcher is another hook.
    let definition = format!("{} {}", spec.matcher, spec.definition.as_ref()?);
    let first = seen.get(&definition).cloned();
    seen.entry(definition)
        .or_insert_with(|| hook.source.to_string());
    first.map(|first| format!("the same as the hook at {}", escape_line(&first)))
}

/// Describes how a hook runs.
fn runs_as(hook: &RegisteredHook) -> String {
    let mut text = format!(
        "runs: {} {}",
        hook.kind,
        escape_line(hook.handler.lines().next().unwrap_or_default())
    );
    match hook.agent.as_deref() {
        Some("") => text = format!("{text}, for agents without a name"),
        Some(agent) => text = format!("{text}, for agent {}", escape_line(agent)),
        None => {}
    }
    if let Some(problem) = &hook.problem {
        text = format!("{text}, and fails: {}", escape_line(problem));
    }
    text
}

fn show(rows: &[ExplainedHook]) {
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            let (sign, look) = if row.runs {
                ("+", style::GOOD)
            } else {
                ("-", style::QUIET)
            };
            vec![
                (sign.to_owned(), look),
                (row.hook.clone(), style::NAME),
                plain(row.describe()),
                // A file that the command line names may have its path as its name.
                if row.source == row.hook {
                    plain("")
                } else {
                    (row.source.clone(), style::QUIET)
                },
            ]
        })
        .collect();
    for line in table::lines(&cells) {
        output::line(line);
    }
}
