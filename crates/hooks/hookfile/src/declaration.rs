//! What a hook file declares about one hook: plain data with positions in the file.
//!
//! Reading a declaration runs nothing and looks nothing up. The code that builds the hook later checks
//! whether its program exists, its built-in is known and its URL is allowed.

use std::sync::Arc;
use std::time::Duration;

use tenterhook_engine::{Dialect, EventName, Matcher, OnError, Phase};
use tenterhook_process::{Program, Shell};
use tenterhook_systems::docker_agent::DockerAgent;

use crate::definition::Definition;
use crate::http::HttpDeclaration;
use crate::model::ModelDeclaration;
use crate::source::Span;

/// One entry of a hook file.
#[derive(Debug, Clone)]
pub struct HookDeclaration {
    /// Where the entry is in the file.
    pub span: Span,
    /// The events that the hook runs on.
    pub events: Vec<DeclaredEvent>,
    /// The matcher, which selects among these events.
    pub matcher: Matcher,
    /// The agent whose events the hook runs on; `None` is every agent.
    pub agent: Option<String>,
    /// Whether a hook for one agent also runs for agents without a name.
    pub includes_unnamed: bool,
    /// What the hook runs.
    pub action: HookAction,
    /// Where the action is in the file.
    pub action_span: Span,
    /// How long the hook may run; `None` is the default.
    pub timeout: Option<Duration>,
    /// The working directory as written, and where it is in the file.
    pub working_dir: Option<(String, Span)>,
    /// The environment variables of the hook, as written.
    pub env: Vec<(String, String)>,
    /// Whether any answer other than the dialect's JSON is a failure.
    pub strict_output: bool,
    /// Whether Tenterhook starts the next instance ahead of time.
    pub prewarm: bool,
    /// The phase in which the hook runs.
    pub phase: Phase,
    /// The order within the phase: hooks with a higher priority run first.
    pub priority: i32,
    /// Everything that distinguishes this hook from other hooks of the same event.
    pub definition: Definition,
    /// The wire format that the hook expects.
    pub dialect: Arc<dyn Dialect>,
}

/// An event of a declaration.
#[derive(Debug, Clone)]
pub struct DeclaredEvent {
    /// The event.
    pub name: EventName,
    /// Where the name is in the file.
    pub span: Span,
    /// The name of the hook on this event.
    pub id: String,
    /// What a failure does; `None` if the file does not say.
    pub on_error: Option<OnError>,
}

/// What a hook runs.
#[derive(Debug, Clone)]
pub enum HookAction {
    /// A command line that a shell runs.
    Line {
        /// The shell.
        shell: Shell,
        /// The line as written.
        line: String,
    },
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A built-in handler.
    Builtin {
        /// Its name.
        name: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// A question to a model.
    Model(ModelDeclaration),
    /// A request to a URL.
    Http(HttpDeclaration),
}

impl HookAction {
    /// Returns whether the action is a built-in that turns speech into text or back. It runs before other hooks, and its
    /// arguments name programs that it starts and files that these programs read.
    pub fn is_speech(&self) -> bool {
        matches!(self, Self::Builtin { name, .. } if matches!(name.as_str(), "stt" | "tts"))
    }

    /// Returns the command as a person would write it, or `None` if the action is not a command.
    pub fn text(&self) -> Option<String> {
        match self {
            Self::Line { line, .. } => Some(line.trim().to_owned()),
            Self::Argv(argv) => Some(quoted_for_shell(argv)),
            Self::Builtin { .. } | Self::Model(_) | Self::Http(_) => None,
        }
    }

    /// Returns the program of a command, or `None` if the action is not a command.
    pub fn program(&self) -> Option<Program> {
        match self {
            Self::Line { shell, line } => Some(Program::Shell {
                shell: *shell,
                line: line.clone(),
            }),
            Self::Argv(argv) => Some(Program::exec(argv)),
            Self::Builtin { .. } | Self::Model(_) | Self::Http(_) => None,
        }
    }

    /// Returns the value of `command` in an agent file, or `None` if an agent file has no such key for
    /// this action.
    pub fn agent_file_command(&self) -> Option<&str> {
        match self {
            Self::Line { line, .. } => Some(line),
            Self::Builtin { name, .. } => Some(name),
            Self::Argv(_) | Self::Model(_) | Self::Http(_) => None,
        }
    }
}

impl HookDeclaration {
    /// Creates the declaration of a docker-agent hook on one event. All other settings have their defaults.
    pub fn of_agent_file(event: DeclaredEvent, action: HookAction, definition: Definition) -> Self {
        Self {
            span: event.span,
            action_span: event.span,
            events: vec![event],
            matcher: Matcher::everything(),
            agent: None,
            includes_unnamed: false,
            action,
            timeout: None,
            working_dir: None,
            env: Vec::new(),
            prewarm: false,
            strict_output: false,
            phase: Phase::Main,
            priority: 0,
            definition,
            dialect: DockerAgent::agent_file(),
        }
    }

    /// Returns the name of the hook, which is its name on its first event.
    pub fn name(&self) -> Option<&str> {
        self.events.first().map(|event| event.id.as_str())
    }

    /// Returns the names of the hook's events.
    pub fn event_names(&self) -> Vec<EventName> {
        self.events.iter().map(|event| event.name.clone()).collect()
    }

    /// Returns whether the hook runs a command.
    pub fn is_command(&self) -> bool {
        matches!(self.action, HookAction::Line { .. } | HookAction::Argv(_))
    }
}

/// Returns the words as a person would write them in a shell, with quotes only where they are needed.
pub fn quoted_for_shell(words: &[impl AsRef<str>]) -> String {
    let words = words.iter().map(|word| {
        let word = word.as_ref();
        let is_plain = |c: char| c.is_alphanumeric() || "_./:=@%+,-".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word.to_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_as_a_person_would_write_them() {
        let argv = ["python3", "a b.py", "it's", "", "--x=1"].map(str::to_owned);
        assert_eq!(
            quoted_for_shell(&argv),
            r"python3 'a b.py' 'it'\''s' '' --x=1"
        );
    }
}
