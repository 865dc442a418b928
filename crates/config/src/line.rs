//! Shell lines of a command line that are hooks.

use std::path::Path;

use tenterhook::{EventKind, EventName, Layer};

use crate::agent_file::documented_shell;
use crate::broken::BrokenSource;
use crate::draft::{Action, Context, Definition, Draft, DraftEvent, Ids};
use crate::load::{LoadOptions, Loaded};
use crate::problem::LoadError;
use crate::report::Report;
use crate::source::{Source, Span};

/// A shell line that is a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookLine<'a> {
    /// The option that it was given with, as people know it: `--hook-stop`.
    pub option: &'a str,
    /// The event; a tool event is hooked for every tool.
    pub event: EventKind,
    /// The line. A blank one is no hook.
    pub line: &'a str,
}

/// Makes the hooks of shell lines. Each is what `{type: command, command: LINE}` is in an agent file.
///
/// # Errors
/// With every problem of every line, unless [`LoadOptions::lenient`] is set.
pub fn load_lines<'a>(
    lines: impl IntoIterator<Item = HookLine<'a>>,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let mut ids = Ids::default();
    let mut loaded = Loaded::default();
    let lines = lines
        .into_iter()
        .filter(|hook| !hook.line.trim().is_empty());
    for hook in lines {
        let mut report = Report::new(Source::new(Path::new(hook.option), hook.line));
        let context = Context {
            layer: Layer::Explicit,
            options,
        };
        let draft = draft(&hook, ids.numbered(hook.option));
        let mut specs = draft.build(&mut report, &context);
        for spec in &mut specs {
            // A line of a command line stands on no line.
            spec.source.line = None;
        }
        loaded.specs.extend(specs);
        let has_failed = report.has_errors();
        let problems = report.into_problems();
        if has_failed {
            loaded.broken.push(BrokenSource {
                path: hook.option.into(),
                layer: Layer::Explicit,
                system: "docker-agent",
                problems,
            });
        } else {
            loaded.warnings.extend(problems);
        }
    }
    if !loaded.broken.is_empty() && !options.lenient {
        return Err(LoadError::from(loaded.broken));
    }
    Ok(loaded)
}

fn draft(hook: &HookLine<'_>, id: String) -> Draft {
    let event = DraftEvent {
        name: EventName::Known(hook.event),
        span: Span::from(0..hook.line.len()),
        id,
        on_error: None,
    };
    let action = Action::Line {
        shell: documented_shell(),
        line: hook.line.to_owned(),
    };
    let definition = Definition::of("docker-agent")
        .field("type", Some("command"))
        .field("command", Some(hook.line));
    Draft::of_agent_file(event, action, definition.into_text())
}
