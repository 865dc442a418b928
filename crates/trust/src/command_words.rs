//! Determines the role of each word of a command: program, script of an interpreter, argument, or a
//! file that is written.

use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

use tenterhook_shell::{LineWord, LineWordKind, words};

/// Programs whose first argument is a file that they run.
const INTERPRETERS: [&str; 18] = [
    "sh", "bash", "dash", "zsh", "ksh", "python", "python3", "node", "deno", "bun", "ruby", "perl",
    "lua", "php", "pwsh", "source", ".", "tsx",
];
/// Programs whose arguments are files that they write.
const WRITERS: [&str; 6] = ["tee", "touch", "rm", "mkdir", "rmdir", "truncate"];
/// Options that make interpreters run something other than a named file.
const CODE: [&str; 8] = [
    "-c",
    "-m",
    "-e",
    "-p",
    "-r",
    "--eval",
    "--print",
    "--require",
];
fn is_shell(name: &str) -> bool {
    name.ends_with("sh") && name != "pwsh"
}

/// The role of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The program.
    Command,
    /// The script that the interpreter before it runs.
    Script,
    /// An option that makes the interpreter run something else.
    Code,
    Argument,
    /// A file that is written.
    Written,
}

/// A word of a command, or the part of it that may be a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandWord {
    pub(crate) range: Range<usize>,
    raw: String,
    /// Its value, if that is known without running the shell.
    pub(crate) text: Option<String>,
    pub(crate) role: Role,
}

/// Assigns roles to the words of a command, one after the other.
#[derive(Debug, Default)]
struct Roles {
    command: Option<String>,
    has_script: bool,
}

impl Roles {
    fn next(&mut self, text: Option<&str>) -> Role {
        let Some(command) = &self.command else {
            self.command = Some(text.unwrap_or_default().to_owned());
            return Role::Command;
        };
        let name = Path::new(command).file_name().and_then(OsStr::to_str);
        let name = name.unwrap_or(command);
        if WRITERS.contains(&name) {
            return Role::Written;
        }
        if !INTERPRETERS.contains(&name) || self.has_script {
            return Role::Argument;
        }
        let is_code = |text: &str| CODE.contains(&text) && (text == "-c" || !is_shell(name));
        if text.is_some_and(is_code) {
            self.has_script = true;
            return Role::Code;
        }
        if text.is_some_and(|text| text.starts_with('-')) {
            return Role::Argument;
        }
        self.has_script = true;
        Role::Script
    }
}

/// Returns the words of a list of arguments.
pub(crate) fn argument_words(argv: &[String]) -> Vec<CommandWord> {
    let mut roles = Roles::default();
    let words = argv.iter().map(|argument| {
        let word = CommandWord {
            range: 0..argument.len(),
            raw: argument.clone(),
            text: Some(argument.clone()),
            role: roles.next(Some(argument)),
        };
        value_of(word)
    });
    words.collect()
}

/// Reduces `--option=value` to the value.
fn value_of(word: CommandWord) -> CommandWord {
    let Some(text) = word.text.as_deref() else {
        return word;
    };
    match text.split_once('=') {
        Some((option, value)) if option.starts_with('-') && word.role != Role::Command => {
            CommandWord {
                range: word.range.start + option.len() + 1..word.range.end,
                // With quotes or escapes in the raw word, the position of the value is not known.
                text: (word.raw == text).then(|| value.to_owned()),
                ..word
            }
        }
        _ => word,
    }
}

/// Returns the words of a shell command line. `dir` is the folder where it runs.
pub(crate) fn line_words(line: &str, dir: &Path) -> Vec<CommandWord> {
    let (mut roles, mut command) = (Roles::default(), 0);
    let words = words(line, dir).into_iter().map(|word| {
        if word.command != command {
            command = word.command;
            roles = Roles::default();
        }
        let role = match word.kind {
            LineWordKind::Output => Role::Written,
            // The value of a variable may be a path.
            LineWordKind::Assignment => Role::Argument,
            LineWordKind::Plain => roles.next(word.text.as_deref()),
        };
        let LineWord {
            range, raw, text, ..
        } = word;
        let found = CommandWord {
            range,
            raw,
            text,
            role,
        };
        match word.kind {
            LineWordKind::Plain => value_of(found),
            LineWordKind::Assignment | LineWordKind::Output => found,
        }
    });
    words.collect()
}
