//! The words of a command line with their positions.
//!
//! The `trust` crate uses them to replace a word that names a file with the path of its approved copy.

use std::ops::Range;
use std::path::Path;

use crate::lexer::{Lexer, Piece, QuotedPiece};

/// Characters that end a word.
const ENDS_WORD: &str = " \t\r\n;|&()<>`";

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
    /// The target of `>`.
    Output,
}

/// Returns the words of a line. `$PWD` stands for `dir`. All other variables are unknown.
pub fn words(line: &str, dir: &Path) -> Vec<LineWord> {
    let mut reader = WordReader {
        lexer: Lexer::new(line),
        dir,
        words: Vec::new(),
        command: 0,
        has_program: false,
        is_output: false,
    };
    while let Some(next) = reader.lexer.peek() {
        reader.step(next);
    }
    reader.words
}

/// Returns the length of the value after `NAME=`, in bytes, or `None` if the word is not an assignment.
fn value_length(word: &str) -> Option<usize> {
    let (name, value) = word.split_once('=')?;
    let mut letters = name.chars();
    let first = letters.next()?;
    let is_name = (first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    is_name.then_some(value.len())
}

struct WordReader<'a> {
    lexer: Lexer<'a>,
    dir: &'a Path,
    words: Vec<LineWord>,
    command: usize,
    /// Whether the command already has a word that is not an assignment.
    has_program: bool,
    /// Whether the next word is the target of `>`.
    is_output: bool,
}

impl WordReader<'_> {
    /// Reads the next space, operator, comment or word.
    fn step(&mut self, next: char) {
        match next {
            ' ' | '\t' | '\r' | '<' => self.lexer.skip(1),
            '&' if self.lexer.rest().starts_with("&>") => self.lexer.skip(1),
            '\n' | ';' | '|' | '&' | '(' | ')' | '`' => {
                self.lexer.skip(1);
                self.command += 1;
                self.has_program = false;
                self.is_output = false;
            }
            '>' => {
                self.lexer.skip_all(&['>', '|', '&']);
                self.is_output = true;
            }
            '#' => {
                let rest = self.lexer.rest();
                self.lexer.skip(rest.find('\n').unwrap_or(rest.len()));
            }
            _ => self.word(),
        }
    }

    fn word(&mut self) {
        let start = self.lexer.at();
        let mut text = Some(String::new());
        while let Some(next) = self.lexer.peek() {
            if ENDS_WORD.contains(next) {
                break;
            }
            self.piece(&mut text);
        }
        let raw = self.lexer.since(start).to_owned();
        let is_number = !raw.is_empty() && raw.chars().all(|digit| digit.is_ascii_digit());
        if is_number && self.lexer.rest().starts_with(['<', '>']) {
            return;
        }
        let mut range = start..self.lexer.at();
        let kind = if std::mem::take(&mut self.is_output) {
            LineWordKind::Output
        } else if ["{", "}", "!", "\\\n"].contains(&raw.as_str()) {
            return;
        } else if let Some(length) = value_length(&raw).filter(|_| !self.has_program) {
            text = text.and_then(|text| Some(text.split_once('=')?.1.to_owned()));
            range.start += raw.len() - length;
            if text.as_deref() == Some("") {
                return;
            }
            LineWordKind::Assignment
        } else {
            self.has_program = true;
            LineWordKind::Plain
        };
        self.words.push(LineWord {
            range,
            raw,
            text,
            command: self.command,
            kind,
        });
    }

    /// Reads one piece of a word.
    fn piece(&mut self, text: &mut Option<String>) {
        match self.lexer.next() {
            Some(Piece::SingleQuoted(quoted)) => push_str(text, quoted),
            Some(Piece::DoubleQuote) => self.quoted(text),
            Some(Piece::Escaped(Some(escaped))) => push(text, escaped),
            Some(Piece::Dollar) => self.variable(text),
            Some(Piece::Char('*' | '?' | '[' | '{' | '}')) => *text = None,
            Some(Piece::Char('~')) if text.as_deref() == Some("") => *text = None,
            Some(
                Piece::Char(other)
                | Piece::Space(other)
                | Piece::Syntax(other)
                | Piece::Redirection(other),
            ) => push(text, other),
            Some(Piece::Escaped(None)) | None => {}
        }
    }

    fn quoted(&mut self, text: &mut Option<String>) {
        while let Some(piece) = self.lexer.next_quoted() {
            match piece {
                QuotedPiece::End => return,
                QuotedPiece::Escaped(Some(escaped)) => push(text, escaped),
                QuotedPiece::Escaped(None) => {}
                QuotedPiece::Backslash(other) => {
                    push(text, '\\');
                    push(text, other);
                }
                QuotedPiece::Dollar => self.variable(text),
                QuotedPiece::Backtick => *text = None,
                QuotedPiece::Char(other) => push(text, other),
            }
        }
    }

    /// Reads a variable after its `$`. Only the working directory is known.
    fn variable(&mut self, text: &mut Option<String>) {
        for name in ["{PWD}", "PWD"] {
            let Some(rest) = self.lexer.rest().strip_prefix(name) else {
                continue;
            };
            let is_longer = rest.starts_with(|next: char| next.is_alphanumeric() || next == '_');
            if name == "PWD" && is_longer {
                continue;
            }
            self.lexer.skip(name.len());
            push_str(text, &self.dir.to_string_lossy());
            return;
        }
        *text = None;
    }
}

fn push(text: &mut Option<String>, character: char) {
    if let Some(text) = text {
        text.push(character);
    }
}

fn push_str(text: &mut Option<String>, more: &str) {
    if let Some(text) = text {
        text.push_str(more);
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
