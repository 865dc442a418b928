//! `tenterhook list`: shows the hooks of each event in the order in which they run.

use tenterhook_discovery::Additions;
use tenterhook_engine::{EventName, Layer, Phase, RegisteredHook, native_policy};
use tenterhook_trust::{DivergedHook, ProjectHook};

use crate::command::host_args::warn_of_switched_off;
use crate::hook_args::HookArgs;
use clap::Parser;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_setup::hook_list::{self, trust};
use tenterhook_setup::hooks::{self, Hooks};
use tenterhook_setup::warning::hint;
use tenterhook_terminal::interrupt::Interrupts;
use tenterhook_terminal::output::plural::count;
use tenterhook_terminal::output::table::{self, Cell, plain};
use tenterhook_terminal::output::{self, style, styled};

#[derive(Debug, Parser)]
#[command(override_usage = "tenterhook list [OPTIONS]")]
pub(crate) struct ListArgs {
    #[command(flatten)]
    pub(crate) hooks: HookArgs,

    /// Print a single JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The widths to which a handler's text is cut, in characters. The first width at which the lines are short enough is
/// used.
const HANDLER_WIDTHS: [usize; 4] = [40, 32, 24, 16];

/// The desired length of a line, in characters. Lines are longer if even the smallest handler width does not suffice.
const LINE_WIDTH: usize = 100;

pub(crate) async fn list(args: ListArgs, interrupts: &Interrupts) -> Result<Exit, CliError> {
    let start = std::env::current_dir().unwrap_or_default();
    let (options, token) = (args.hooks.options(), interrupts.token());
    let services = hooks::services(options.config_dir.as_deref())?.0;
    let loaded = hooks::load_and_warn(&options, &start, services, &token).await?;
    warn_of_switched_off(interrupts).await?;
    let hooks = hooks::engine(&loaded.loaded, args.hooks.strict, None).hooks();
    let additions = loaded.extras.additions();
    if args.json {
        output::json(&hook_list::listed(&loaded, args.hooks.strict));
        return Ok(loaded.exit(args.hooks.lenient));
    }
    if hooks.is_empty() {
        // A source that cannot be loaded may have hooks.
        if loaded.broken.is_empty() {
            output::line("No hooks.");
        }
        if !additions.is_empty() {
            output::line("");
            show_additions(&additions);
        } else if loaded.broken.is_empty() && !has_withheld(&loaded) {
            // Other hints say what to do about hooks that exist but do not run.
            hint(
                "write a first guard with `tenterhook init`, or name a hook file with `--hooks FILE`",
            );
        }
        loaded.refuse_broken(args.hooks.lenient)?;
        return Ok(Exit::Done);
    }
    let events: Vec<&[RegisteredHook]> = hooks.chunk_by(|a, b| a.event == b.event).collect();
    for hooks in &events {
        show_event(hooks, &loaded.loaded.diverged);
    }
    if !additions.is_empty() {
        show_additions(&additions);
        output::line("");
    }
    output::line(format_args!(
        "{} for {}.",
        count(hooks.len(), "hook"),
        count(events.len(), "event")
    ));
    loaded.refuse_broken(args.hooks.lenient)?;
    Ok(Exit::Done)
}

/// Returns whether the project has hooks that are not in force.
fn has_withheld(loaded: &Hooks) -> bool {
    let mut project_hooks = loaded.loaded.project_hooks.iter();
    project_hooks.any(ProjectHook::is_withheld) || !loaded.untrusted.is_empty()
}

/// Shows the tools, commands and flags of scripts and extensions.
fn show_additions(additions: &[Additions]) {
    output::line(styled(style::STRONG, "extensions"));
    let rows = additions.iter().map(|additions| {
        let name = escape_line(&additions.name);
        vec![
            (name, style::NAME),
            plain(escape_line(&additions.to_string())),
        ]
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    for line in table::lines(&rows) {
        output::line(format_args!("  {line}"));
    }
}

/// Returns the text of the trust column. It is empty for a hook that the command line names.
fn shown_trust(hook: &RegisteredHook, diverged: &[DivergedHook]) -> &'static str {
    match hook.source.layer {
        Layer::Explicit | Layer::Code => "",
        Layer::System | Layer::User | Layer::Project => trust(hook, diverged),
    }
}

fn show_event(hooks: &[RegisteredHook], diverged: &[DivergedHook]) {
    let name = hooks
        .first()
        .and_then(|hook| hook.event.as_ref())
        .map_or("every event", EventName::as_str);
    output::line(styled(style::STRONG, name));
    let rows = |handler_width: usize| -> Vec<Vec<Cell>> {
        let numbered = hooks.iter().enumerate();
        numbered
            .map(|(index, hook)| row((index + 1, hook), handler_width, diverged))
            .collect()
    };
    let [widest, narrower @ ..] = HANDLER_WIDTHS;
    let mut table = rows(widest);
    for width in narrower {
        if table::width(&table) + 2 <= LINE_WIDTH {
            break;
        }
        table = rows(width);
    }
    for line in table::lines(&table) {
        output::line(format_args!("  {line}"));
    }
    output::line("");
}

fn row(
    (position, hook): (usize, &RegisteredHook),
    handler_width: usize,
    diverged: &[DivergedHook],
) -> Vec<Cell> {
    let problem = hook
        .problem
        .as_ref()
        .map(|problem| format!("broken: {problem}"));
    let policy = format!("on_error: {}", hook.policy.on_error.as_str());
    let event = hook.event.as_ref().map(EventName::info);
    let is_default = event.is_some_and(|info| hook.policy == native_policy(info, None));
    let because = if is_default {
        String::new()
    } else {
        format!("({})", hook.policy.because)
    };
    vec![
        (position.to_string(), style::QUIET),
        (hook.id.to_string(), style::NAME),
        plain(format!(
            "{} {}",
            hook.kind,
            shortened(&hook.handler, handler_width)
        )),
        plain(conditions(hook)),
        plain(policy),
        (because, style::QUIET),
        (timeout(hook.timeout_seconds), style::QUIET),
        (shown_trust(hook, diverged).to_owned(), style::QUIET),
        (hook.source.to_string(), style::QUIET),
        (problem.unwrap_or_default(), style::BAD),
    ]
}

/// Returns the time limit of one run as text.
fn timeout(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "no timeout".to_owned(), |seconds| format!("{seconds} s"))
}

/// Returns the settings of a hook that differ from the defaults.
fn conditions(hook: &RegisteredHook) -> String {
    let agent = hook.agent.as_ref().map(|agent| match agent.as_str() {
        "" => "agents without a name".to_owned(),
        name => format!("agent {name}"),
    });
    let parts = [
        (hook.matcher != "*").then(|| format!("on {}", hook.matcher)),
        (hook.phase != Phase::Main).then(|| hook.phase.as_str().to_owned()),
        (hook.priority != 0).then(|| format!("priority {}", hook.priority)),
        agent,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the first line of a string, cut to `width` characters.
fn shortened(text: &str, width: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let is_whole = line.len() == text.trim().len() && line.chars().count() <= width;
    if is_whole {
        return line.to_owned();
    }
    let kept: String = line.chars().take(width).collect();
    format!("{kept}…")
}
