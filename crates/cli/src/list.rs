//! `tenterhook list`: the hooks of each event in the order in which they run.

use serde_json::json;
use tenterhook::{EventName, Phase, RegisteredHook};

use crate::args::ListArgs;
use crate::check::count;
use crate::error::CliError;
use crate::exit::Exit;
use crate::hooks;
use crate::output::{self, style, styled};
use crate::table::{self, Cell, plain};

/// The longest text of a handler that is shown whole.
const HANDLER_WIDTH: usize = 40;

pub(crate) fn list(args: &ListArgs) -> Result<Exit, CliError> {
    let loaded = hooks::load(&args.hooks)?;
    let hooks = hooks::engine(&loaded, args.hooks.strict, None).hooks();
    if args.json {
        output::json(&json!({ "hooks": hooks }));
        return Ok(Exit::Done);
    }
    if hooks.is_empty() {
        output::line("No hooks.");
        output::note(format_args!(
            "{} name a hook file with `--hooks FILE`",
            styled(style::NAME, "hint:")
        ));
        return Ok(Exit::Done);
    }
    let events: Vec<&[RegisteredHook]> = hooks.chunk_by(|a, b| a.event == b.event).collect();
    for hooks in &events {
        show_event(hooks);
    }
    output::line(format_args!(
        "{} for {}.",
        count(hooks.len(), "hook"),
        count(events.len(), "event")
    ));
    Ok(Exit::Done)
}

fn show_event(hooks: &[RegisteredHook]) {
    let name = hooks
        .first()
        .and_then(|hook| hook.event.as_ref())
        .map_or("every event", EventName::as_str);
    output::line(styled(style::STRONG, name));
    let rows: Vec<Vec<Cell>> = hooks
        .iter()
        .enumerate()
        .map(|(index, hook)| row(index + 1, hook))
        .collect();
    for line in table::lines(&rows) {
        output::line(format_args!("  {line}"));
    }
    output::line("");
}

fn row(position: usize, hook: &RegisteredHook) -> Vec<Cell> {
    let problem = hook
        .problem
        .as_ref()
        .map(|problem| format!("broken: {problem}"));
    let policy = format!("on_error: {}", hook.policy.on_error.as_str());
    vec![
        (position.to_string(), style::QUIET),
        (hook.id.to_string(), style::NAME),
        plain(format!("{} {}", hook.kind, shortened(&hook.handler))),
        plain(conditions(hook)),
        plain(policy),
        (format!("({})", hook.policy.because), style::QUIET),
        (format!("{} s", hook.timeout_seconds), style::QUIET),
        (hook.source.to_string(), style::QUIET),
        (problem.unwrap_or_default(), style::BAD),
    ]
}

/// Returns what sets a hook apart from one with the default settings.
fn conditions(hook: &RegisteredHook) -> String {
    let agent = hook.agent.as_ref().map(|agent| format!("agent {agent}"));
    let parts = [
        (hook.matcher != "*").then(|| format!("on {}", hook.matcher)),
        (hook.phase != Phase::Main).then(|| hook.phase.as_str().to_owned()),
        (hook.priority != 0).then(|| format!("priority {}", hook.priority)),
        agent,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the first line of a text, cut where it is long.
pub(crate) fn shortened(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let is_whole = line.len() == text.trim().len() && line.chars().count() <= HANDLER_WIDTH;
    if is_whole {
        return line.to_owned();
    }
    let kept: String = line.chars().take(HANDLER_WIDTH).collect();
    format!("{kept}…")
}
