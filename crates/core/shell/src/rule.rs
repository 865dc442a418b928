//! A rule that names commands to restrict, such as `rm -rf` or `curl | sh`.
//!
//! A rule judges one command at a time, or the commands of one pipeline. It means what a person means who writes it: an
//! option is found in each of its spellings, in groups of letters, and in any order.

use std::fmt;

use crate::arguments::{Arguments, FoundOption, OptionName, Spellings, arguments};
use crate::assignment::is_assignment;
use crate::launch::runs_others;
use crate::options::program as program_of;
use crate::parse::parse;
use crate::reading::{LineCommand, Reading, UnreadLine};
use crate::script::{Part, RawWord, Role};
use crate::word::{Word, program_name};

/// A rule that names a command, or a pipeline of commands.
///
/// # Examples
/// ```
/// use tenterhook_shell::{CommandRule, read};
///
/// let rule = CommandRule::parse("git push --force").unwrap();
/// assert!(rule.matches(&read("cd x && git -C y push origin main -f")));
/// assert!(!rule.matches(&read("git push && tail -f log")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRule {
    text: String,
    /// One for each command of a pipeline.
    stages: Vec<Pattern>,
}

/// Why a text is not a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    problem: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for RuleError {}

/// How many characters of a program's name tell it apart from others.
const MIN_START: usize = 3;

/// One command of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    /// The program as written.
    program: String,
    subcommand: Option<String>,
    words: Vec<Wanted>,
}

/// A word that must be among the arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// An option as written, with the value that it must have.
    Option {
        written: String,
        value: Option<String>,
    },
    /// A word that is not an option.
    Operand(String),
    /// The beginning of any word.
    Beginning(String),
    /// `--`.
    Separator,
}

impl CommandRule {
    /// Reads a rule: a program, and optionally words that must all be among its arguments. Commands of a pipeline are
    /// separated by `|`.
    ///
    /// # Errors
    /// Fails if the text is not a single command or pipeline, or has variables, redirections or substitutions.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let error = |problem: String| RuleError { problem };
        if text.is_empty() {
            return Err(error(
                "a rule is empty; expected a program, such as `sudo`".to_owned(),
            ));
        }
        let parsed = parse(text);
        let commands = &parsed.script.commands;
        let first = commands.first().map(|command| command.pipeline);
        let mut stages = Vec::new();
        for (at, command) in commands.iter().enumerate() {
            let is_plain = |word: &RawWord| {
                let is_text = |part: &Part| {
                    matches!(part, Part::Plain(_) | Part::Quoted(_) | Part::Variable(_))
                };
                word.parts.iter().all(is_text)
            };
            let is_one = Some(command.pipeline) == first
                && usize::try_from(command.stage) == Ok(at)
                && command.role == Role::Command
                && command.is_certain
                && command.redirections.is_empty()
                && !is_assignment(command.words.first().map_or("", RawWord::plain_start))
                && command.words.iter().all(is_plain);
            let words: Vec<String> = command.words.iter().map(written).collect();
            let Some((program, rest)) = words.split_first().filter(|_| is_one) else {
                return Err(error(format!(
                    "the rule `{text}` is not one command; expected a program and its arguments, such as \
                     `git push --force`, or a pipeline such as `curl | sh`; write one rule for each command"
                )));
            };
            stages.push(Pattern::new(program, rest));
        }
        if stages.is_empty() {
            return Err(error(format!("the rule `{text}` names no program")));
        }
        Ok(Self {
            text: text.to_owned(),
            stages,
        })
    }

    /// Returns the rule as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether a line runs what the rule names.
    pub fn matches(&self, reading: &Reading) -> bool {
        self.find(reading).is_some()
    }

    /// Returns the first command of a line that the rule names. Of a pipeline, it is the last command.
    pub fn find<'a>(&self, reading: &'a Reading) -> Option<&'a LineCommand> {
        let (last, before) = self.stages.split_last()?;
        let mut commands = reading.commands.iter();
        commands.find(|command| {
            let mut current = *command;
            last.matches(command)
                && before.iter().rev().all(|pattern| {
                    let found = reading.feeding(current).find(|it| pattern.matches(it));
                    current = found.unwrap_or(current);
                    found.is_some()
                })
        })
    }

    /// Returns whether the rule names a command. A rule for a pipeline names none of its commands alone.
    pub fn matches_command(&self, command: &LineCommand) -> bool {
        match self.stages.as_slice() {
            [pattern] => pattern.matches(command),
            _ => false,
        }
    }

    /// Returns whether a program that a line does not show completely may be one that the rule names, or a program that
    /// runs others. `written` is how the line names it.
    pub fn may_name(&self, written: &str) -> bool {
        let start = written
            .split(['$', '*', '?', '[', '{', '`'])
            .next()
            .unwrap_or_default();
        let start = program_name(start);
        start.len() < MIN_START
            || runs_others(start)
            || self
                .stages
                .iter()
                .any(|pattern| pattern.may_start_with(start))
    }

    /// Describes the spellings that the rule covers, for example "`rm` with `-r` (also `--recursive`, `-R`)".
    pub fn coverage(&self) -> String {
        let stages: Vec<String> = self.stages.iter().map(Pattern::coverage).collect();
        stages.join(", whose output goes to ")
    }
}

/// Returns a word of a rule without its quotes.
fn written(word: &RawWord) -> String {
    let parts = word.parts.iter().map(|part| match part {
        Part::Plain(text) | Part::Quoted(text) | Part::Unknown(text) => text.as_str(),
        Part::Variable(variable) => variable.written.as_str(),
        Part::Output { .. } | Part::Array(_) => "",
    });
    parts.collect()
}

impl Pattern {
    fn new(program: &str, words: &[String]) -> Self {
        let name = program_of(program_name(program));
        let is_option = |word: &str| word.starts_with('-') && word.len() > 1;
        let is_plain = |word: &&str| !word.ends_with('*') && !word.starts_with('+');
        // In a rule for a program with subcommands, the first word that is not an option is one.
        let texts: Vec<&str> = words.iter().map(String::as_str).collect();
        let (read, spellings) = first_reading(name, &texts);
        let subcommand = read.subcommand.filter(is_plain).map(str::to_owned);
        let mut wanted = Vec::new();
        let mut rest = texts.into_iter().peekable();
        let mut has_subcommand = subcommand.is_none();
        let mut is_ended = false;
        while let Some(word) = rest.next() {
            if word == "--" && !is_ended {
                is_ended = true;
                wanted.push(Wanted::Separator);
            } else if let Some(beginning) = word.strip_suffix('*') {
                wanted.push(Wanted::Beginning(beginning.to_owned()));
            } else if is_option(word) && !is_ended {
                let next = rest.peek().copied().filter(|next| !is_option(next));
                let (option, takes_next) = wanted_option(word, next, &spellings);
                if takes_next {
                    rest.next();
                }
                wanted.push(option);
            } else if !has_subcommand && spellings_subcommand(name, word, subcommand.as_deref()) {
                has_subcommand = true;
            } else if has_subcommand || !is_skipped(name, word) {
                wanted.push(Wanted::Operand(word.to_owned()));
            }
        }
        Self {
            program: program.to_owned(),
            subcommand,
            words: wanted,
        }
    }

    fn names(&self, command: &LineCommand) -> bool {
        let (found, name) = (command.program(), command.name());
        if self.program.contains('/') {
            return self.program == found;
        }
        let name = name.strip_suffix(".exe").unwrap_or(name);
        if let Some(beginning) = self.program.strip_suffix('*') {
            return name
                .get(..beginning.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(beginning));
        }
        // Some file systems ignore case.
        program_of(name).eq_ignore_ascii_case(program_of(&self.program))
    }

    fn matches(&self, command: &LineCommand) -> bool {
        if !self.names(command) {
            return false;
        }
        if self.words.is_empty() && self.subcommand.is_none() {
            return true;
        }
        let name = program_of(program_name(&self.program));
        let words: Vec<&str> = command.arguments().iter().map(Word::as_str).collect();
        arguments(name, &words).iter().any(|(found, spellings)| {
            let is_wanted = |wanted: &Wanted| wanted.is_in(found, &words, *spellings);
            (self.subcommand.is_none() || self.subcommand.as_deref() == found.subcommand)
                && self.words.iter().all(is_wanted)
        })
    }

    /// Returns whether a program whose name starts in this way may be the program of the rule.
    fn may_start_with(&self, start: &str) -> bool {
        let name = program_name(&self.program).trim_end_matches('*');
        name.starts_with(start) || self.program.ends_with('*') && start.starts_with(name)
    }

    fn coverage(&self) -> String {
        let name = program_of(program_name(&self.program));
        let spellings = Spellings::new(name, self.subcommand.as_deref());
        let mut text = format!("`{}", self.program);
        if let Some(subcommand) = &self.subcommand {
            text.push(' ');
            text.push_str(subcommand);
        }
        text.push('`');
        for (at, wanted) in self.words.iter().enumerate() {
            text.push_str(if at == 0 { " with " } else { " and " });
            text.push_str(&wanted.coverage(spellings));
        }
        if self.words.len() > 1 {
            text.push_str(", in any order");
        }
        text
    }
}

/// Returns what an option of a rule wants, and whether the next word is its value.
fn wanted_option(word: &str, next: Option<&str>, spellings: &Spellings) -> (Wanted, bool) {
    let (name, value) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (word, None),
    };
    let takes_next =
        value.is_none() && spellings.read_options(word, next, &mut Vec::new()) && next.is_some();
    let value = value.or(next.filter(|_| takes_next));
    let option = Wanted::Option {
        written: name.to_owned(),
        value: value.map(str::to_owned),
    };
    (option, takes_next)
}

/// Returns the most likely reading of the words after a program.
fn first_reading<'a>(program: &str, words: &[&'a str]) -> (Arguments<'a>, Spellings) {
    let mut readings = arguments(program, words);
    if readings.is_empty() {
        return (Arguments::default(), Spellings::new(program, None));
    }
    readings.swap_remove(0)
}

/// Returns whether a word of a rule is its subcommand, maybe under another name.
fn spellings_subcommand(program: &str, word: &str, subcommand: Option<&str>) -> bool {
    let (read, _) = first_reading(program, &[word]);
    Some(word) == subcommand || read.subcommand.is_some() && read.subcommand == subcommand
}

/// Returns whether a word before the subcommand means nothing, as in `docker container rm`.
fn is_skipped(program: &str, word: &str) -> bool {
    let (read, _) = first_reading(program, &[word]);
    read.subcommand.is_none() && read.operands.is_empty()
}

impl Wanted {
    fn is_in(&self, found: &Arguments<'_>, words: &[&str], spellings: Spellings) -> bool {
        match self {
            Self::Separator => found.has_separator,
            Self::Beginning(beginning) => words.iter().any(|word| word.starts_with(beginning)),
            Self::Operand(operand) => found.operands.contains(&operand.as_str()),
            Self::Option { written, value } => {
                let is_value = |option: &FoundOption<'_>| match value {
                    None => true,
                    Some(wanted) => [option.value, option.next].into_iter().flatten().any(|it| {
                        let rest = it.strip_prefix(wanted.as_str());
                        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
                    }),
                };
                let mut names = Vec::new();
                spellings.read_options(written, None, &mut names);
                let is_found = |wanted: &FoundOption<'_>| {
                    let mut options = found.options.iter();
                    options.any(|option| {
                        is_name(wanted.name, option.name, spellings) && is_value(option)
                    })
                };
                // The program may have options with one dash and a long name.
                let is_word = !spellings.is_known()
                    && words.iter().any(|word| {
                        let name = word.split_once('=').map_or(*word, |(name, _)| name);
                        name == written
                    });
                is_word && value.is_none() || names.iter().all(is_found)
            }
        }
    }

    fn coverage(&self, spellings: Spellings) -> String {
        match self {
            Self::Separator => "`--`".to_owned(),
            Self::Operand(operand) => format!("`{operand}`"),
            Self::Beginning(beginning) => format!("a word that begins with `{beginning}`"),
            Self::Option { written, value } => {
                let value = value.as_deref();
                let mut names = Vec::new();
                spellings.read_options(written, None, &mut names);
                let names = names.iter().map(|option| {
                    let letter;
                    let name = match option.name {
                        OptionName::Letter(it) => {
                            letter = format!("-{it}");
                            letter.as_str()
                        }
                        OptionName::Word(name) => name,
                    };
                    let mut text = format!("`{name}`");
                    if let Some(value) = value {
                        text = format!("`{name} {value}`");
                    }
                    let same = spellings.same(name).unwrap_or_default().iter();
                    let others: Vec<String> = same
                        .filter(|other| **other != name)
                        .map(|other| format!("`{other}`"))
                        .collect();
                    if others.is_empty() {
                        text
                    } else {
                        format!("{text} (also {})", others.join(", "))
                    }
                });
                names.collect::<Vec<_>>().join(" and ")
            }
        }
    }
}

/// Returns whether an option of a command is the option of a rule. Many programs accept the beginning of a long option.
fn is_name(wanted: OptionName<'_>, found: OptionName<'_>, spellings: Spellings) -> bool {
    match (wanted, found) {
        (OptionName::Word(wanted), OptionName::Word(found)) => {
            let is_beginning = found.len() > "--".len()
                && found.starts_with("--")
                && wanted.starts_with(found)
                && spellings.same(found).is_none();
            wanted == found || is_beginning
        }
        _ => wanted == found,
    }
}

impl Reading {
    /// Like [`unread`](Self::unread), for these rules. A hidden program does not matter if the beginning of its name shows
    /// that no rule is about it, as in `clang-$VERSION`.
    pub fn unread_for(&self, rules: &[CommandRule]) -> Option<UnreadLine<'_>> {
        if !self.is_complete {
            return Some(UnreadLine::Nested);
        }
        let may_matter = |program: &&String| rules.iter().any(|rule| rule.may_name(program));
        let program = self.hidden.iter().find(may_matter)?;
        Some(UnreadLine::HiddenProgram(program))
    }
}
