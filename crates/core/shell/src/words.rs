//! The words of a command line with their positions.
//!
//! The `trust` crate uses them to replace a word that names a file with the path of its approved copy.

use std::ops::Range;
use std::path::Path;

use crate::assignment::is_assignment;
use crate::parse::parse;
use crate::script::{Operation, Part, RawWord, Script, SimpleCommand};

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineWord {
    /// The byte range of the word in the line. For an assignment, this is the range of its value.
    pub range: Range<usize>,
    /// The word as it is written. For an assignment, this is the whole word.
    pub raw: String,
    /// The text that the word stands for. `None` if it is not known before the line runs.
    pub text: Option<String>,
    /// The number of the command that the word belongs to, starting at 0.
    pub command: usize,
    /// The role of the word in the line.
    pub kind: LineWordKind,
}

/// The role of a word in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineWordKind {
    /// The program or an argument.
    Plain,
    /// The value of a variable that is set before a command.
    Assignment,
    /// The file that `<` or `<>` reads.
    Input,
    /// The target of `>`.
    Output,
}

/// Returns the words of a line, those in substitutions too, but not the text of here-documents. `$PWD` stands for
/// `dir`. All other variables are unknown. A word in text that is read after escapes in it were replaced is left out.
/// If the line cannot be read to its end, the last word has all of it, and no text.
pub fn words(line: &str, dir: &Path) -> Vec<LineWord> {
    let mut reader = WordReader {
        line,
        dir,
        words: Vec::new(),
        command: 0,
    };
    let parsed = parse(line);
    reader.script(&parsed.script);
    for body in &parsed.bodies {
        reader.nested(body);
    }
    if !parsed.is_complete {
        reader.words.push(LineWord {
            range: 0..line.len(),
            raw: line.to_owned(),
            text: None,
            command: reader.command,
            kind: LineWordKind::Plain,
        });
    }
    reader.words
}

struct WordReader<'a> {
    line: &'a str,
    dir: &'a Path,
    words: Vec<LineWord>,
    command: usize,
}

impl WordReader<'_> {
    fn script(&mut self, script: &Script) {
        for command in &script.commands {
            self.simple_command(command);
            self.command += 1;
            let targets = command.redirections.iter().map(|it| &it.target);
            for word in command.words.iter().chain(targets) {
                self.nested(word);
            }
        }
    }

    fn simple_command(&mut self, command: &SimpleCommand) {
        let is_set = |word: &&RawWord| is_assignment(word.plain_start());
        let set = command.words.iter().take_while(is_set).count();
        let mut found = Vec::new();
        for (at, word) in command.words.iter().enumerate() {
            let kind = if at < set {
                LineWordKind::Assignment
            } else {
                LineWordKind::Plain
            };
            found.extend(self.word(word, kind));
        }
        for redirection in &command.redirections {
            let kind = match redirection.operator {
                "<" | "<>" => LineWordKind::Input,
                // A text, a delimiter, or a descriptor.
                operator if operator.starts_with('<') => continue,
                _ => LineWordKind::Output,
            };
            found.extend(self.word(&redirection.target, kind));
        }
        found.sort_by_key(|word| word.range.start);
        self.words.extend(found);
    }

    fn word(&self, word: &RawWord, kind: LineWordKind) -> Option<LineWord> {
        let mut range = word.range.clone()?;
        let raw = self.line.get(range.clone())?.to_owned();
        let mut text = self.text(word);
        if kind == LineWordKind::Assignment {
            // What commands print is a text. The commands themselves are listed on their own.
            let is_output = |part: &Part| matches!(part, Part::Output { .. });
            if word.parts.len() > 1 && word.parts.iter().skip(1).all(is_output) {
                return None;
            }
            let (name, value) = raw.split_once('=')?;
            if value.is_empty() {
                return None;
            }
            range.start += name.len() + 1;
            text = text.and_then(|text| Some(text.split_once('=')?.1.to_owned()));
        }
        Some(LineWord {
            range,
            raw,
            text,
            command: self.command,
            kind,
        })
    }

    /// Returns the text that a word stands for, if it is known.
    fn text(&self, word: &RawWord) -> Option<String> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                Part::Plain(plain) => {
                    let is_home = text.is_empty() && plain.starts_with('~');
                    if is_home || plain.contains(['*', '?', '[', '{', '}']) {
                        return None;
                    }
                    text.push_str(plain);
                }
                Part::Quoted(quoted) => text.push_str(quoted),
                Part::Variable(variable)
                    if variable.name == "PWD" && variable.operation == Operation::Value =>
                {
                    text.push_str(&self.dir.to_string_lossy());
                }
                Part::Variable(_) | Part::Output { .. } | Part::Array(_) | Part::Unknown(_) => {
                    return None;
                }
            }
        }
        Some(text)
    }

    /// Reads the words in the substitutions of a word.
    fn nested(&mut self, word: &RawWord) {
        for part in &word.parts {
            match part {
                Part::Output { script, .. } => self.script(script),
                Part::Array(values) => {
                    for value in values {
                        self.words.extend(self.word(value, LineWordKind::Plain));
                    }
                    self.command += 1;
                    for value in values {
                        self.nested(value);
                    }
                }
                Part::Variable(variable) => match &variable.operation {
                    Operation::Alternative(_, word) | Operation::Other(word) => {
                        self.nested(word);
                    }
                    Operation::Value | Operation::Element(_) => {}
                },
                Part::Plain(_) | Part::Quoted(_) | Part::Unknown(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_line_is_read_to_its_end() {
        for line in [
            "'",
            "\"",
            "\"$",
            "a\\",
            "$",
            "${",
            ">",
            "2>",
            "`",
            "((",
            "=",
            "a=",
            "ü'é",
            "echo\u{a0}x",
            "\u{c}",
            "\u{2028}",
        ] {
            let found = words(line, Path::new("/p"));
            assert!(
                found.iter().all(|word| word.range.end <= line.len()),
                "{line}"
            );
        }
    }

    #[test]
    fn words_have_their_kind_and_their_command() {
        let line = "A=1 run 'a b' >log 2>&1; B=$X next \"$PWD\"/x # no\nlast";
        let found = words(line, Path::new("/p"));
        let found: Vec<_> = found
            .iter()
            .map(|word| (word.command, word.kind, word.text.as_deref()))
            .collect();
        assert_eq!(
            found,
            [
                (0, LineWordKind::Assignment, Some("1")),
                (0, LineWordKind::Plain, Some("run")),
                (0, LineWordKind::Plain, Some("a b")),
                (0, LineWordKind::Output, Some("log")),
                (0, LineWordKind::Output, Some("1")),
                (1, LineWordKind::Assignment, None),
                (1, LineWordKind::Plain, Some("next")),
                (1, LineWordKind::Plain, Some("/p/x")),
                (2, LineWordKind::Plain, Some("last")),
            ]
        );
    }
}
