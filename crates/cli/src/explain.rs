//! `tenterhook explain`: which hooks an event would run, which not, and why.

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use tenterhook::{EventName, HookSpec, JsonObject, RegisteredHook};
use tenterhook_config::{Brought, FoundFile};
use tenterhook_dialects::tools;

use crate::approval::{self, name_of};
use crate::args::{ExplainArgs, LineArgs};
use crate::check::count;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks::{self, Hooks};
use crate::input;
use crate::interrupt::Interrupts;
use crate::output::{self, style, styled};
use crate::safe::safe_line as safe;
use crate::table::{self, plain};

/// One hook or file, and what becomes of it.
#[derive(Debug, Serialize)]
struct Row {
    hook: String,
    source: String,
    runs: bool,
    why: String,
    /// The tool call as the hook sees it, where its hook system has other names.
    #[serde(skip_serializing_if = "Option::is_none")]
    sees: Option<SeenCall>,
}

/// A tool call under the names of a hook system. Each value names the canonical argument that it is.
#[derive(Debug, Serialize)]
struct SeenCall {
    system: &'static str,
    tool: String,
    input: JsonObject,
}

impl Row {
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

pub(crate) async fn explain(args: ExplainArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let event = input::event_name(&args.event)?;
    let subject = subject(&args, &event)?;
    let start = std::env::current_dir().unwrap_or_default();
    let (services, _) = hooks::services(&args.hooks.config)?;
    let lines = LineArgs::default();
    let hooks = hooks::load_and_warn(&args.hooks, &lines, &start, services, interrupts).await?;
    let rows = rows(&hooks, &event, subject.as_deref(), args.hooks.strict);
    let running = rows.iter().filter(|row| row.runs).count();
    if args.json {
        output::json(&serde_json::json!({
            "event": event.as_str(),
            "subject": subject,
            "hooks": rows,
            "broken": hooks.broken,
        }));
        return Ok(hooks.exit(args.hooks.lenient));
    }
    show(&rows);
    let of = subject.map(|subject| format!(" of `{}`", safe(&subject)));
    output::line(format_args!(
        "{}: {} would run, {} would not.",
        styled(
            style::STRONG,
            format_args!("{event}{}", of.unwrap_or_default())
        ),
        count(running, "hook"),
        rows.len() - running
    ));
    hooks.refuse_broken(args.hooks.lenient)?;
    Ok(Exit::Done)
}

/// Returns what matchers of the event look at.
fn subject(args: &ExplainArgs, event: &EventName) -> Result<Option<String>, CliError> {
    let field = event.info().subject;
    match (&args.tool, &args.subject, field) {
        (Some(_), _, field) if field != Some("tool_name") => Err(CliError::new(
            Exit::Usage,
            format!("`{event}` is no event of a tool"),
        )
        .hint("leave `--tool` out")),
        (_, Some(_), None) => Err(CliError::new(
            Exit::Usage,
            format!("matchers of `{event}` have nothing to look at"),
        )
        .hint("leave `--subject` out")),
        (Some(tool), _, _) => Ok(Some(canonical(tool).to_owned())),
        (None, subject, _) => Ok(subject.clone()),
    }
}

/// Returns the canonical name of a tool that is given by the name of any hook system. A name that stands for different
/// tools stays as it is.
fn canonical(name: &str) -> &str {
    if tools::canonical_tool(name).is_some() {
        return name;
    }
    let names = tools::systems().map(|system| tools::canonical_name(system, name));
    let others: BTreeSet<&str> = names.filter(|canonical| *canonical != name).collect();
    match (others.first(), others.len()) {
        (Some(canonical), 1) => canonical,
        _ => name,
    }
}

fn rows(hooks: &Hooks, event: &EventName, subject: Option<&str>, strict: bool) -> Vec<Row> {
    let registered = hooks::engine(&hooks.loaded, strict, None).hooks();
    let mut seen = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    for hook in registered
        .iter()
        .filter(|hook| hook.event.as_ref().is_none_or(|of| of == event))
    {
        let specs = &hooks.loaded.specs;
        let why = why(hook, specs, subject, &mut seen);
        rows.push(Row {
            hook: safe(hook.id.as_str()),
            source: safe(&hook.source.to_string()),
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
    rows.extend(hooks.found.iter().filter(is_other).map(|file| Row {
        hook: safe(&file.name),
        source: safe(&file.path.display().to_string()),
        runs: false,
        sees: None,
        why: if file.state.events().is_empty() {
            safe(&file.state.describe())
        } else {
            format!("{}, not for this event", safe(&file.state.describe()))
        },
    }));
    // Executables are among the files already.
    let of_files = hooks.loaded.brought.iter().filter(|brought| {
        brought.is_withheld()
            && brought.events.contains(event)
            && !is_executable(brought, &hooks.found)
    });
    rows.extend(of_files.map(|brought| Row {
        hook: safe(&brought.item.name),
        source: name_of(&brought.item),
        runs: false,
        sees: None,
        why: brought.state.as_str().to_owned(),
    }));
    rows
}

fn is_executable(brought: &Brought, found: &[FoundFile]) -> bool {
    let item = &brought.item;
    let path = item.project.join(&item.source).join(&item.name);
    found.iter().any(|file| file.path == path)
}

fn spec_of<'a>(hook: &RegisteredHook, specs: &'a [HookSpec]) -> Option<&'a HookSpec> {
    specs
        .iter()
        .find(|spec| spec.id == hook.id && spec.event == hook.event && spec.source == hook.source)
}

/// Returns whether the matcher of a hook matches a subject. Tools are found by the names of the hook's system.
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

/// Returns how a hook would see a call of the tool.
fn sees(hook: &RegisteredHook, specs: &[HookSpec], tool: Option<&str>) -> Option<SeenCall> {
    let spec = spec_of(hook, specs)?;
    // Built-ins know the canonical tools, also those of agent files.
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
    subject: Option<&str>,
    seen: &mut HashMap<String, String>,
) -> Option<String> {
    let spec = spec_of(hook, specs)?;
    if let Some(subject) = subject
        && !matches(spec, subject)
    {
        return Some(format!(
            "its matcher `{}` does not match `{}`",
            safe(&hook.matcher),
            safe(subject)
        ));
    }
    // Below another matcher it is another hook.
    let definition = format!("{} {}", spec.matcher, spec.definition.as_ref()?);
    let first = seen.get(&definition).cloned();
    seen.entry(definition)
        .or_insert_with(|| hook.source.to_string());
    first.map(|first| format!("the same as the hook at {}", safe(&first)))
}

/// Says how a hook runs.
fn runs_as(hook: &RegisteredHook) -> String {
    let mut text = format!(
        "runs: {} {}",
        hook.kind,
        safe(hook.handler.lines().next().unwrap_or_default())
    );
    match hook.agent.as_deref() {
        Some("") => text = format!("{text}, for agents without a name"),
        Some(agent) => text = format!("{text}, for agent {}", safe(agent)),
        None => {}
    }
    if let Some(problem) = &hook.problem {
        text = format!("{text}, and fails: {}", safe(problem));
    }
    text
}

fn show(rows: &[Row]) {
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
                (row.source.clone(), style::QUIET),
            ]
        })
        .collect();
    for line in table::lines(&cells) {
        output::line(line);
    }
}
