//! What a command line says, before anything in it is expanded: its commands, their words and redirections.

use std::ops::Range;

use crate::assignment::is_assignment;

/// The commands of a line or of a substitution, in the order in which they appear.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) commands: Vec<SimpleCommand>,
}

/// A command with its words and redirections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SimpleCommand {
    pub(crate) role: Role,
    pub(crate) words: Vec<RawWord>,
    pub(crate) redirections: Vec<RawRedirection>,
    /// The number of the pipeline, and the position in it. Commands of a group that is piped share both.
    pub(crate) pipeline: u32,
    pub(crate) stage: u32,
    /// Whether a shell surely runs it. Some shells run the text in `[[ ]]` and `(( ))` as commands.
    pub(crate) is_certain: bool,
}

impl SimpleCommand {
    /// Returns its words, and what its redirections name and contain.
    pub(crate) fn all_words<'a>(
        &'a self,
        bodies: &'a [RawWord],
    ) -> impl Iterator<Item = &'a RawWord> {
        let targets = self.redirections.iter().map(|it| &it.target);
        let contents = self.redirections.iter().filter_map(|it| it.body);
        let contents = contents.filter_map(|at| bodies.get(at));
        self.words.iter().chain(targets).chain(contents)
    }
}

/// What the words of a command are for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// A program with its arguments, or only assignments.
    Command,
    /// The values of the variable of a loop.
    Loop(String),
    /// Words that no program gets, such as the subject of `case`.
    Words,
}

/// A word as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RawWord {
    pub(crate) parts: Vec<Part>,
    /// Where it is in the line, in bytes. `None` if it is in text that is read after escapes in it were replaced.
    pub(crate) range: Option<Range<usize>>,
}

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text without quotes, in which a shell expands braces and patterns.
    Plain(String),
    /// Text that stands for itself.
    Quoted(String),
    /// A variable.
    Variable(Variable),
    /// The output of commands.
    Output {
        script: Script,
        is_quoted: bool,
        kind: OutputKind,
    },
    /// The values of an array, after its name and `=`.
    Array(Vec<RawWord>),
    /// Text that a shell replaces with something that is not known, such as the result of arithmetic.
    Unknown(String),
}

/// What commands in a word are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    /// `$(…)`: what they print is a part of the word.
    Text,
    /// `<(…)`: what they print is in a file, whose name is the word.
    Source,
    /// `>(…)`: they read what is written to a file, whose name is the word.
    Sink,
}

/// A variable in a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable {
    /// How it is written, such as `${x:-y}`.
    pub(crate) written: String,
    pub(crate) name: String,
    /// Whether it stands for all values, as `$@` and `${x[@]}` do.
    pub(crate) is_all: bool,
    pub(crate) is_quoted: bool,
    pub(crate) operation: Operation,
}

/// What is done with the value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// It is used as it is.
    Value,
    /// Another word replaces it, or may replace it, as in `${x:-y}`. The character is `-`, `=` or `+`.
    Alternative(char, RawWord),
    /// One value of an array.
    Element(usize),
    /// It is changed. The words may contain commands.
    Other(RawWord),
}

/// A redirection as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawRedirection {
    /// The number before it. Without one, it is the descriptor that the operator uses.
    pub(crate) descriptor: Option<String>,
    pub(crate) operator: &'static str,
    pub(crate) target: RawWord,
    /// The number of the here-document's body.
    pub(crate) body: Option<usize>,
}

/// A parsed line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ParsedLine {
    pub(crate) script: Script,
    /// The bodies of here-documents. Their ranges are the ranges of their texts.
    pub(crate) bodies: Vec<RawWord>,
    /// The largest number of a pipeline.
    pub(crate) pipelines: u32,
    /// The functions that the line defines.
    pub(crate) functions: Vec<String>,
    /// Whether commands may run in another order than they are written, or more than once.
    pub(crate) repeats: bool,
    /// Whether all of the line was read.
    pub(crate) is_complete: bool,
}

impl RawWord {
    /// Appends text without quotes.
    pub(crate) fn push_plain(&mut self, text: &str) {
        if let Some(Part::Plain(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else {
            self.parts.push(Part::Plain(text.to_owned()));
        }
    }

    /// Appends text that stands for itself. Empty text counts, because `''` is a word.
    pub(crate) fn push_quoted(&mut self, text: &str) {
        if let Some(Part::Quoted(last)) = self.parts.last_mut() {
            last.push_str(text);
        } else {
            self.parts.push(Part::Quoted(text.to_owned()));
        }
    }

    /// Returns the word if it is written without quotes and expansions.
    pub(crate) fn plain(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [Part::Plain(text)] => Some(text),
            _ => None,
        }
    }

    /// Returns the name of the variable that the word sets, and the parts of its value.
    pub(crate) fn assignment(&self) -> Option<(&str, RawWord)> {
        let start = self.plain_start();
        if is_assignment(start) {
            let (name, value) = start.split_once('=')?;
            return Some((name, self.value_from(0, value)));
        }
        // The index of an element may be quoted or contain a variable: `a["$i"]=x`.
        let (name, _) = start.split_once('[')?;
        if !is_assignment(&format!("{name}=")) {
            return None;
        }
        let parts = self.parts.iter().enumerate().skip(1);
        let mut plain = parts.filter_map(|(at, part)| {
            let Part::Plain(text) = part else {
                return None;
            };
            Some((at, text))
        });
        plain.find_map(|(at, text)| {
            let after = text
                .strip_prefix(']')
                .or_else(|| text.split_once(']').map(|it| it.1))?;
            let value = after.strip_prefix('+').unwrap_or(after).strip_prefix('=')?;
            Some((start, self.value_from(at, value)))
        })
    }

    fn value_from(&self, at: usize, start: &str) -> RawWord {
        let mut value = RawWord::default();
        if !start.is_empty() {
            value.push_plain(start);
        }
        value.parts.extend(self.parts.iter().skip(at + 1).cloned());
        value
    }

    /// Returns the beginning that is written without quotes and expansions.
    pub(crate) fn plain_start(&self) -> &str {
        match self.parts.first() {
            Some(Part::Plain(text)) => text,
            _ => "",
        }
    }
}
