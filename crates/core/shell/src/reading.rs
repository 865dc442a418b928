//! What a command line runs: every command in it, and the commands that these run.

use std::fmt;

use crate::word::{Word, joined, program_name};

/// Everything that a command line runs, as far as the line shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The commands of the line, and the commands that they run, in the order in which they were found.
    pub commands: Vec<LineCommand>,
    /// The line, and each line that its commands pass to a shell.
    pub lines: Vec<String>,
    /// Whether everything was read. If not, a rule that restricts must assume that the line can run anything.
    pub is_complete: bool,
    /// Programs that a shell finds out only when the line runs, as written: `$x`, `$(…)` or `/bin/su?o`.
    pub hidden: Vec<String>,
    /// The programs of commands that other commands run. One that the line does not show is an empty string.
    pub(crate) launched: Vec<String>,
}

/// A command that a line runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineCommand {
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// The variables that are set for it, as written without quotes.
    pub assignments: Vec<String>,
    /// Its redirections.
    pub redirections: Vec<Redirection>,
    /// What it reads from its standard input.
    pub input: Input,
    /// The pipelines that it is part of, each with its stage: its own pipeline, and the pipelines of the commands around it.
    pub(crate) stages: Vec<Stage>,
    /// The place of the command that runs it in [`Reading::commands`]; `None` if a shell runs it.
    pub run_by: Option<usize>,
    /// Whether it surely runs if the line runs to its end. Otherwise, its words may also be something else.
    pub is_certain: bool,
}

/// A pipeline and a place in it. What is at a lower place feeds what is at a higher place.
pub(crate) type Stage = (u32, u32);

/// A redirection of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    /// The number before the operator, if there is one.
    pub descriptor: Option<String>,
    /// The operator, such as `>>`.
    pub operator: &'static str,
    /// The file, the descriptor or the text of a here-string. For a here-document, its delimiter.
    pub target: Word,
    /// The body of a here-document.
    pub body: Option<Word>,
}

/// What a command reads from its standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// What the shell itself reads.
    Inherited,
    /// Text that the line shows.
    Text(String),
    /// The output of another command, or a file.
    Unknown,
}

/// Why a command line may run programs that cannot be read from it. [`Display`](fmt::Display) writes it for the author
/// of the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadLine<'a> {
    /// Its commands run too many other commands, or are nested too deeply.
    Nested,
    /// A shell finds out the name of this program only when the line runs.
    HiddenProgram(&'a str),
}

impl fmt::Display for UnreadLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nested => f.write_str(
                "the command runs other commands that are too many or too deeply nested to be checked",
            ),
            Self::HiddenProgram(program) => write!(
                f,
                "the program `{program}` is known only when the command runs; write its name instead"
            ),
        }
    }
}

impl Reading {
    /// Returns why the line may run programs that no command names. A rule that restricts must then assume that the
    /// line runs anything.
    pub fn unread(&self) -> Option<UnreadLine<'_>> {
        if !self.is_complete {
            return Some(UnreadLine::Nested);
        }
        let program = self.hidden.first()?;
        Some(UnreadLine::HiddenProgram(program))
    }

    /// Returns the lines and each command as text, for patterns: with and without the variables before it, and with the
    /// name of the program instead of its path.
    pub fn texts(&self) -> Vec<String> {
        let mut texts = self.lines.clone();
        for command in &self.commands {
            let text = joined(&command.words);
            if !command.assignments.is_empty() {
                texts.push(format!("{} {text}", command.assignments.join(" ")));
            }
            let program = command.program();
            if let Some(name) = program.rsplit_once('/').map(|(_, name)| name)
                && let Some(rest) = text.strip_prefix(program)
            {
                texts.push(format!("{name}{rest}"));
            }
            texts.push(text);
        }
        texts.sort_unstable();
        texts.dedup();
        texts
    }

    /// Returns the commands whose output may reach a command: those before it in a pipeline, also in the pipelines of the
    /// commands that run both, and those in `<(…)`.
    pub fn feeding<'a>(
        &'a self,
        command: &'a LineCommand,
    ) -> impl Iterator<Item = &'a LineCommand> {
        let commands = self.commands.iter();
        commands.filter(move |it| it.feeds(command))
    }
}

impl LineCommand {
    /// Returns the program as it is written.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", Word::as_str)
    }

    /// Returns the name of the program without its folder.
    pub fn name(&self) -> &str {
        program_name(self.program())
    }

    /// Returns whether the output of this command may reach another one.
    pub fn feeds(&self, other: &Self) -> bool {
        self.stages.iter().any(|(pipeline, stage)| {
            let mut stages = other.stages.iter();
            stages.any(|(of, later)| of == pipeline && stage < later)
        })
    }

    /// Returns the words after the program.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}
