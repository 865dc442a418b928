//! Hooks that are given as shell lines in command line options, such as `--hook-stop LINE`.

use std::path::Path;

use tenterhook_engine::{EventKind, EventName};

use crate::agent_file::documented_shell;
use crate::declaration::{DeclaredEvent, HookAction, HookDeclaration};
use crate::definition::Definition;
use crate::hook_names::HookNames;
use crate::source::{SourceText, Span};

/// A hook that is given as a shell line in a command line option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookLine {
    /// The option, for example `--hook-stop`.
    pub option: &'static str,
    /// The event. On a tool event, the hook runs for every tool.
    pub event: EventKind,
    /// The shell line. An empty line declares no hook.
    pub line: String,
}

/// Declares the hooks of shell lines. Each is equivalent to `{type: command, command: LINE}` in an agent file.
///
/// Returns each declaration with its source text, which has the option instead of a path. Lines that are
/// empty or contain only spaces are left out.
pub fn declare_lines(
    lines: impl IntoIterator<Item = HookLine>,
) -> Vec<(SourceText, HookDeclaration)> {
    let mut names = HookNames::default();
    lines
        .into_iter()
        .filter(|hook| !hook.line.trim().is_empty())
        .map(|hook| {
            let source = SourceText::new(Path::new(hook.option), &hook.line);
            (source, declare(&hook, names.numbered(hook.option)))
        })
        .collect()
}

fn declare(hook: &HookLine, id: String) -> HookDeclaration {
    let event = DeclaredEvent {
        name: EventName::Known(hook.event),
        span: Span::from(0..hook.line.len()),
        id,
        on_error: None,
    };
    let action = HookAction::Line {
        shell: documented_shell(),
        line: hook.line.clone(),
    };
    let definition = Definition::of("docker-agent")
        .field("type", Some("command"))
        .field("command", Some(hook.line.as_str()));
    HookDeclaration::of_agent_file(event, action, definition)
}
