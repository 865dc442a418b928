//! Finds the commands in a line, each as its words.
//!
//! Text that a shell does not run as a command may look like one: the lines of a here document, the
//! values of an array, a label of `case` or the end of a test in `[[ ]]`. It is read, too, but as
//! uncertain.

use crate::assignment::is_assignment;
use crate::braces::{BracedWord, Expansion};
use crate::launch;
use crate::lexer::{Lexer, Piece, QuotedPiece};

/// How many nested substitutions are followed. Commands in deeper ones are still found by splitting
/// the line at all syntax characters.
const MAX_SUBSTITUTIONS: u32 = 16;

/// How far the end of an arithmetic expression is searched, in bytes.
const MAX_ARITHMETIC: usize = 1024;

/// What stands for the output of a command in a word.
const SUBSTITUTION: &str = "$(…)";

/// A command that was found in a line.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) words: Vec<String>,
    /// Whether a shell runs these words as a command.
    pub(crate) is_certain: bool,
    /// Whether its braces make too many words to be read.
    pub(crate) has_unread_braces: bool,
}

/// Returns the commands of a line, each as its words. Commands in substitutions are included. A command
/// with braces appears as written, and with the words that the braces make.
pub fn commands(line: &str) -> Vec<Vec<String>> {
    let found = found_commands(line).into_iter();
    found.map(|command| command.words).collect()
}

pub(crate) fn found_commands(line: &str) -> Vec<Command> {
    let mut found = Vec::new();
    read(&mut Lexer::new(line), None, 0, &mut found);
    found
}

/// A command that is being read.
#[derive(Default)]
struct CommandInProgress {
    words: Vec<String>,
    /// The words with their braces expanded, if there are any.
    expanded: Option<Vec<String>>,
    has_unread_braces: bool,
    word: BracedWord,
    /// Whether a word has started. It may be empty, as in `''`.
    is_word: bool,
    /// Whether the current word is the target of a redirection, which is not part of the command.
    is_target: bool,
    /// How many braces of variables, such as `${x}`, are open.
    open_variables: usize,
}

impl CommandInProgress {
    fn push(&mut self, character: char) {
        self.word.text.push(character);
        self.is_word = true;
    }

    fn push_str(&mut self, text: &str) {
        self.word.text.push_str(text);
        self.is_word = true;
    }

    /// Appends a character without quotes.
    fn push_plain(&mut self, character: char) {
        match character {
            '{' if self.open_variables > 0 => self.open_variables += 1,
            '}' if self.open_variables > 0 => self.open_variables -= 1,
            '{' | '}' | ',' if self.open_variables == 0 => {
                self.word.push_mark(character);
                self.is_word = true;
                return;
            }
            _ => {}
        }
        self.push(character);
    }

    fn end_word(&mut self) {
        self.open_variables = 0;
        let word = std::mem::take(&mut self.word);
        if !std::mem::take(&mut self.is_word) || std::mem::take(&mut self.is_target) {
            return;
        }
        match word.expanded() {
            Expansion::Words(words) => {
                let expanded = self.expanded.get_or_insert_with(|| self.words.clone());
                expanded.extend(words.into_iter().filter(|word| !word.is_empty()));
            }
            Expansion::TooMany => self.has_unread_braces = true,
            Expansion::Unchanged => {
                if let Some(expanded) = &mut self.expanded {
                    expanded.push(word.text.clone());
                }
            }
        }
        self.words.push(word.text);
    }

    /// Starts a redirection. The number or `{variable}` before it is not a word of the command.
    fn redirect(&mut self) {
        let word = &self.word.text;
        let is_number = word.chars().all(|c| c.is_ascii_digit());
        if is_number || (word.starts_with('{') && word.ends_with('}')) {
            self.word.clear();
            self.is_word = false;
        }
        self.end_word();
        self.is_target = true;
    }

    fn end(&mut self, is_certain: bool, found: &mut Vec<Command>) {
        self.end_word();
        let command = std::mem::take(self);
        // A brace as written is not a program: the expanded command is.
        let is_expanded = command.expanded.is_some();
        let written = (Some(command.words), is_certain && !is_expanded);
        for (words, is_certain) in [written, (command.expanded, is_certain)] {
            if let Some(words) = words.filter(|words| !words.is_empty()) {
                found.push(Command {
                    words,
                    is_certain,
                    has_unread_braces: command.has_unread_braces,
                });
            }
        }
    }
}

/// Where a reader is in a line, as far as it decides whether words are a command.
#[derive(Default)]
struct Context {
    /// How many parentheses are open.
    open: u32,
    /// The number of open parentheses before the values of an array.
    array: Option<u32>,
    /// Whether a test in `[[ ]]` is open.
    is_test: bool,
    /// How many commands were found before the current line, and before the current pipeline.
    line_start: usize,
    pipeline_start: usize,
    /// The lines that end the here documents that start with the next line.
    delimiters: Vec<String>,
}

impl Context {
    fn new(found: usize) -> Self {
        Self {
            line_start: found,
            pipeline_start: found,
            ..Self::default()
        }
    }

    /// Ends a command at a character between commands.
    fn end(&mut self, syntax: char, command: &mut CommandInProgress, found: &mut Vec<Command>) {
        let has = |mark: &str| command.words.iter().any(|word| word == mark);
        let (opens_test, ends_test) = (has("[["), has("]]") || command.word.text == "]]");
        let is_array = syntax == '(' && command.is_word && is_array(&command.word.text);
        command.end(self.array.is_none() && !self.is_test, found);
        self.is_test = !ends_test && !matches!(syntax, ';' | '\n') && (self.is_test || opens_test);
        if is_array && self.array.is_none() {
            self.array = Some(self.open);
        }
        match syntax {
            '(' => self.open = self.open.saturating_add(1),
            ')' if self.open == 0 => {
                // Only a label of `case` has a closing parenthesis alone.
                for label in found.get_mut(self.pipeline_start..).unwrap_or_default() {
                    label.is_certain = false;
                }
            }
            ')' => self.open -= 1,
            _ => {}
        }
        if self.array == Some(self.open) && syntax == ')' {
            self.array = None;
        }
        if syntax != '|' {
            self.pipeline_start = found.len();
        }
    }

    /// Reads the here documents of the line that just ended. Their lines are commands only for a shell.
    fn here_documents(&mut self, lexer: &mut Lexer<'_>, depth: u32, found: &mut Vec<Command>) {
        let line = found.get(self.line_start..).unwrap_or_default();
        let is_fed = line.iter().any(|command| launch::is_fed(&command.words));
        for delimiter in std::mem::take(&mut self.delimiters) {
            if is_fed || depth >= MAX_SUBSTITUTIONS {
                break;
            }
            let rest = lexer.rest();
            let mut end = 0;
            let mut length = rest.len();
            for line in rest.split_inclusive('\n') {
                if line.trim() == delimiter {
                    length = end + line.len();
                    break;
                }
                end += line.len();
            }
            let start = found.len();
            let body = rest.get(..end).unwrap_or_default();
            read(&mut Lexer::new(body), None, depth + 1, found);
            for line in found.get_mut(start..).unwrap_or_default() {
                line.is_certain = false;
            }
            lexer.skip(length);
        }
        self.line_start = found.len();
        self.pipeline_start = found.len();
    }
}

/// Reads commands until `end` or the end of the text.
fn read(lexer: &mut Lexer<'_>, end: Option<char>, depth: u32, found: &mut Vec<Command>) {
    let mut command = CommandInProgress::default();
    let mut context = Context::new(found.len());
    while let Some(piece) = lexer.next() {
        match piece {
            Piece::Syntax(')') if end == Some(')') && context.open == 0 => break,
            Piece::Syntax('`') if end == Some('`') => break,
            Piece::Syntax('`') if depth < MAX_SUBSTITUTIONS => {
                command.push_str(SUBSTITUTION);
                read(lexer, Some('`'), depth + 1, found);
            }
            Piece::Syntax(syntax) => {
                context.end(syntax, &mut command, found);
                if syntax == '\n' {
                    context.here_documents(lexer, depth, found);
                }
            }
            Piece::Redirection(kind) => {
                let delimiter = (kind == '<').then(|| here_delimiter(lexer.rest()));
                context.delimiters.extend(delimiter.flatten());
                command.redirect();
                // In `2>&1` and `>|`, these characters belong to the redirection and do not start a
                // command.
                lexer.skip_all(&['&', '|', '>']);
            }
            Piece::Escaped(Some(escaped)) => command.push(escaped),
            Piece::Escaped(None) => {}
            Piece::SingleQuoted(quoted) => command.push_str(quoted),
            Piece::DoubleQuote => read_quoted(lexer, depth, &mut command, found),
            Piece::Dollar => read_dollar(lexer, depth, &mut command, found),
            Piece::Space(_) => command.end_word(),
            Piece::Char(other) => command.push_plain(other),
        }
    }
    command.end(context.array.is_none() && !context.is_test, found);
}

/// Reads what follows a dollar sign outside of double quotes.
fn read_dollar(
    lexer: &mut Lexer<'_>,
    depth: u32,
    command: &mut CommandInProgress,
    found: &mut Vec<Command>,
) {
    match lexer.peek() {
        // A dollar sign before a quote only changes how the quoted text is read: a backslash may stand
        // for another character.
        Some('"') => {}
        Some('\'') => {
            let quoted = lexer.rest().get(1..).unwrap_or_default();
            let text = quoted.split('\'').next().unwrap_or_default();
            if text.contains('\\') {
                command.push('$');
            }
        }
        Some('(') => read_substitution(lexer, depth, command, found),
        Some('{') => {
            command.push('$');
            command.open_variables += 1;
            command.push('{');
            lexer.skip(1);
        }
        _ => command.push('$'),
    }
}

/// Reads a substitution after its dollar sign.
fn read_substitution(
    lexer: &mut Lexer<'_>,
    depth: u32,
    command: &mut CommandInProgress,
    found: &mut Vec<Command>,
) {
    if let Some(length) = arithmetic_length(lexer.rest()) {
        lexer.skip(length);
        command.push_str(SUBSTITUTION);
    } else if depth < MAX_SUBSTITUTIONS {
        lexer.skip(1);
        command.push_str(SUBSTITUTION);
        read(lexer, Some(')'), depth + 1, found);
    } else {
        command.push('$');
    }
}

/// Reads up to the closing double quote. Substitutions in the text are added as separate commands.
fn read_quoted(
    lexer: &mut Lexer<'_>,
    depth: u32,
    command: &mut CommandInProgress,
    found: &mut Vec<Command>,
) {
    command.is_word = true;
    while let Some(piece) = lexer.next_quoted() {
        match piece {
            QuotedPiece::End => return,
            QuotedPiece::Escaped(escaped) => command.word.text.extend(escaped),
            QuotedPiece::Backslash(other) => command.word.text.extend(['\\', other]),
            QuotedPiece::Backtick if depth < MAX_SUBSTITUTIONS => {
                command.push_str(SUBSTITUTION);
                read(lexer, Some('`'), depth + 1, found);
            }
            QuotedPiece::Dollar if lexer.peek() == Some('(') => {
                read_substitution(lexer, depth, command, found);
            }
            QuotedPiece::Backtick => command.push('`'),
            QuotedPiece::Dollar => command.push('$'),
            QuotedPiece::Char(other) => command.push(other),
        }
    }
}

/// Returns whether a parenthesis after this word starts the values of an array.
fn is_array(word: &str) -> bool {
    word.ends_with('=') && is_assignment(word)
}

/// Returns the length of an arithmetic expression that starts with `((`. One that contains a substitution
/// is read like a substitution.
fn arithmetic_length(text: &str) -> Option<usize> {
    text.strip_prefix("((")?;
    let mut depth = 0_usize;
    let mut before = None;
    for (at, character) in text
        .char_indices()
        .take_while(|(at, _)| *at < MAX_ARITHMETIC)
    {
        match character {
            '(' if before == Some('$') => return None,
            '`' | '\'' | '"' | '\\' | ';' | '\n' => return None,
            '(' => depth += 1,
            // The inner one of the two last parentheses must be directly before the last one.
            ')' if depth == 1 => return (before == Some(')')).then_some(at + 1),
            ')' => depth -= 1,
            _ => {}
        }
        before = Some(character);
    }
    None
}

/// Returns the line that ends a here document. `text` comes after the first `<`.
fn here_delimiter(text: &str) -> Option<String> {
    let text = text.strip_prefix('<')?;
    if text.starts_with('<') {
        return None;
    }
    let text = text
        .strip_prefix('-')
        .unwrap_or(text)
        .trim_start_matches([' ', '\t']);
    let is_end =
        |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')');
    let word = text.split(is_end).next().unwrap_or_default();
    let delimiter = word.replace(['\'', '"', '\\'], "");
    (!delimiter.is_empty()).then_some(delimiter)
}
