//! Parses the words of a command line: quotes, variables, substitutions and patterns.

use std::iter::Peekable;
use std::str::CharIndices;

use crate::assignment::is_assignment;
use crate::parse::{MAX_NESTING, Parser};
use crate::script::{Operation, OutputKind, Part, RawWord, Variable};

impl Parser<'_> {
    /// Reads a word. It is empty if none starts here.
    pub(super) fn word(&mut self) -> RawWord {
        let mut word = RawWord::default();
        let start = self.at;
        self.word_until(&mut word, None);
        word.range = self.base.map(|base| base + start..base + self.at);
        word
    }

    /// Reads the parts of a word up to its end, or up to a closing brace.
    fn word_until(&mut self, word: &mut RawWord, end: Option<u8>) {
        while let Some(next) = self.peek() {
            if Some(next) == end {
                return;
            }
            match next {
                b' ' | b'\t' if end.is_none() && is_open_index(word, self.rest()) => {
                    self.at += 1;
                    word.push_plain(" ");
                }
                b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b')' if end.is_none() => return,
                b'\r' if end.is_none() && matches!(self.peek_at(1), None | Some(b'\n')) => return,
                b'<' | b'>' if end.is_none() || self.peek_at(1) == Some(b'(') => {
                    let is_start = word.parts.is_empty() || end.is_some();
                    if !is_start || self.peek_at(1) != Some(b'(') {
                        return;
                    }
                    let kind = if next == b'<' {
                        OutputKind::Source
                    } else {
                        OutputKind::Sink
                    };
                    self.at += 2;
                    self.substitution(word, false, kind);
                }
                b'(' if end.is_none() => {
                    if !self.in_word_parenthesis(word) {
                        return;
                    }
                }
                b'\'' => self.single_quoted(word),
                b'"' => {
                    self.at += 1;
                    word.push_quoted("");
                    self.quoted(word, Some(b'"'));
                }
                b'\\' => self.escaped(word),
                b'$' => self.dollar(word, false),
                b'`' => self.backticks(word, false),
                _ => self.plain(word, end),
            }
        }
    }

    /// Reads `'…'`.
    fn single_quoted(&mut self, word: &mut RawWord) {
        self.at += 1;
        let rest = self.rest();
        let length = rest.find('\'').unwrap_or(rest.len());
        word.push_quoted(rest.get(..length).unwrap_or_default());
        self.at = (self.at + length + 1).min(self.text.len());
    }

    /// Reads a backslash and the character after it.
    fn escaped(&mut self, word: &mut RawWord) {
        self.at += 1;
        if let Some(escaped) = self.rest().chars().next() {
            self.at += escaped.len_utf8();
            if escaped != '\n' {
                word.push_quoted(escaped.encode_utf8(&mut [0; 4]));
            }
        }
    }

    /// Reads characters without a meaning of their own.
    fn plain(&mut self, word: &mut RawWord, end: Option<u8>) {
        let rest = self.rest();
        let length = rest
            .bytes()
            .skip(1)
            .position(|byte| is_special(byte) || Some(byte) == end)
            .map_or(rest.len(), |length| length + 1);
        // Bytes that are not ASCII are never special, so this is the end of a character.
        word.push_plain(rest.get(..length).unwrap_or_default());
        self.at += length;
    }

    /// Reads a parenthesis within a word: the values of an array, a pattern or a file. Returns `false` if it ends the word.
    fn in_word_parenthesis(&mut self, word: &mut RawWord) -> bool {
        let Some(text) = word.plain() else {
            return false;
        };
        if text.ends_with('=') && is_assignment(text) {
            if self.depth >= MAX_NESTING {
                self.is_complete = false;
                self.at = self.text.len();
                return true;
            }
            self.depth += 1;
            self.at += 1;
            let mut values = Vec::new();
            loop {
                self.lines();
                let before = self.at;
                let value = self.word();
                if self.at > before {
                    values.push(value);
                } else if self.eat(")") || self.peek().is_none() {
                    break;
                } else {
                    self.at += 1;
                }
            }
            self.depth -= 1;
            word.parts.push(Part::Array(values));
            return true;
        }
        if text == "=" {
            self.at += 1;
            self.substitution(word, false, OutputKind::Source);
            return true;
        }
        // Patterns such as `@(a|b)`, and qualifiers such as `*(.)`.
        if text.ends_with(['?', '*', '+', '@', '!']) {
            let rest = self.rest();
            let near = rest.bytes().take(MAX_PATTERN).position(|byte| byte == b')');
            if let Some(length) = near.filter(|length| {
                let inside = rest.get(..*length).unwrap_or_default();
                !inside.contains(['\n', ';', '&', '$', '`', ' '])
            }) {
                let pattern = rest.get(..=length).unwrap_or_default().to_owned();
                word.parts.push(Part::Unknown(pattern));
                self.at += length + 1;
                return true;
            }
        }
        false
    }

    /// Reads the text in double quotes up to `end`, or the body of a here-document.
    pub(super) fn quoted(&mut self, word: &mut RawWord, end: Option<u8>) {
        while let Some(next) = self.peek() {
            if Some(next) == end {
                self.at += 1;
                return;
            }
            match next {
                b'\\' => {
                    self.at += 1;
                    match self.rest().chars().next() {
                        Some('\n') => self.at += 1,
                        Some(escaped @ ('$' | '`' | '\\')) => {
                            self.at += 1;
                            word.push_quoted(escaped.encode_utf8(&mut [0; 4]));
                        }
                        Some('"') if end.is_some() => {
                            self.at += 1;
                            word.push_quoted("\"");
                        }
                        _ => word.push_quoted("\\"),
                    }
                }
                b'$' => self.dollar(word, true),
                b'`' => self.backticks(word, true),
                _ => {
                    let rest = self.rest();
                    let length = rest
                        .bytes()
                        .position(|byte| matches!(byte, b'\\' | b'$' | b'`') || Some(byte) == end)
                        .unwrap_or(rest.len());
                    word.push_quoted(rest.get(..length).unwrap_or_default());
                    self.at += length;
                }
            }
        }
    }

    /// Reads what starts with a dollar sign.
    fn dollar(&mut self, word: &mut RawWord, is_quoted: bool) {
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'"') if !is_quoted => {}
            Some(b'\'') if !is_quoted => {
                self.at += 1;
                self.ansi_quoted(word);
            }
            Some(b'(') if self.peek_at(1) == Some(b'(') && self.arithmetic(word) => {}
            Some(b'(') => {
                self.at += 1;
                self.substitution(word, is_quoted, OutputKind::Text);
            }
            Some(b'[') => {
                // `$[…]` is an old form of arithmetic.
                self.at += 1;
                let mut inner = RawWord::default();
                if self.depth < MAX_NESTING {
                    self.depth += 1;
                    self.word_until(&mut inner, Some(b']'));
                    self.depth -= 1;
                } else {
                    self.is_complete = false;
                }
                self.eat("]");
                word.parts.push(arithmetic_part(inner));
            }
            Some(b'{') => self.braced_variable(word, is_quoted, start),
            Some(next) if next.is_ascii_alphabetic() || next == b'_' => {
                let rest = self.rest();
                let length = name_length(rest);
                let name = rest.get(..length).unwrap_or_default().to_owned();
                self.at += length;
                self.push_variable(word, name, is_quoted, start);
            }
            Some(next @ (b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'$' | b'!' | b'-')) => {
                self.at += 1;
                self.push_variable(word, char::from(next).to_string(), is_quoted, start);
            }
            _ if is_quoted => word.push_quoted("$"),
            _ => word.push_plain("$"),
        }
    }

    fn push_variable(&mut self, word: &mut RawWord, name: String, is_quoted: bool, start: usize) {
        word.parts.push(Part::Variable(Variable {
            written: self.text.get(start..self.at).unwrap_or_default().to_owned(),
            is_all: name == "@" || name == "*",
            name,
            is_quoted,
            operation: Operation::Value,
        }));
    }

    /// Reads `$'…'`, in which a backslash stands for another character.
    fn ansi_quoted(&mut self, word: &mut RawWord) {
        let mut text = String::new();
        let mut characters = self.rest().char_indices().peekable();
        let mut length = self.rest().len();
        while let Some((at, next)) = characters.next() {
            match next {
                '\'' => {
                    length = at + 1;
                    break;
                }
                '\\' => {
                    let Some((_, escaped)) = characters.next() else {
                        break;
                    };
                    text.extend(ansi_escape(escaped, &mut characters));
                }
                other => text.push(other),
            }
        }
        self.at += length;
        word.push_quoted(&text);
    }

    /// Reads arithmetic after its dollar sign. Returns `false` if it is a substitution that starts with a group.
    fn arithmetic(&mut self, word: &mut RawWord) -> bool {
        let start = self.at;
        // Text that is not arithmetic is read again, so there is a limit to how often that is tried.
        let is_tried = self.no_arithmetic.len() >= MAX_TRIES || self.no_arithmetic.contains(&start);
        let end = self.rest().find("))");
        if is_tried || end.is_none_or(|end| end > MAX_ARITHMETIC) || self.depth >= MAX_NESTING {
            return false;
        }
        let (bodies, pipelines) = (self.bodies.len(), self.pipelines);
        self.depth += 1;
        self.at += 2;
        let mut inner = RawWord::default();
        let is_closed = loop {
            self.word_until(&mut inner, Some(b')'));
            match self.peek() {
                Some(_) if self.peek_at(1) == Some(b')') && is_balanced(&inner) => break true,
                Some(_) => {
                    self.at += 1;
                    inner.push_plain(")");
                }
                None => break false,
            }
            if is_overclosed(&inner) {
                break false;
            }
        };
        self.depth -= 1;
        if !is_closed || self.at.saturating_sub(start) > MAX_ARITHMETIC {
            self.no_arithmetic.push(start);
            self.at = start;
            self.bodies.truncate(bodies);
            self.pipelines = pipelines;
            return false;
        }
        self.at += 2;
        word.parts.push(arithmetic_part(inner));
        true
    }

    /// Reads the commands of a substitution after its parenthesis.
    fn substitution(&mut self, word: &mut RawWord, is_quoted: bool, kind: OutputKind) {
        if self.rest().starts_with("…)") {
            // This is how a substitution is shown. It appears when text with one is read again.
            self.at += "…)".len();
            word.parts.push(Part::Unknown("$(…)".to_owned()));
            return;
        }
        if self.depth >= MAX_NESTING {
            self.is_complete = false;
            word.parts.push(Part::Unknown("$(…)".to_owned()));
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        let pending = std::mem::take(&mut self.pending);
        let script = self.script(true);
        self.eat(")");
        self.pending.splice(0..0, pending);
        self.depth -= 1;
        word.parts.push(Part::Output {
            script,
            is_quoted,
            kind,
        });
    }

    /// Reads a substitution in backticks.
    fn backticks(&mut self, word: &mut RawWord, is_quoted: bool) {
        self.at += 1;
        let start = self.at;
        let mut has_escapes = false;
        let mut text = String::new();
        let mut characters = self.rest().char_indices();
        let mut length = self.rest().len();
        while let Some((at, next)) = characters.next() {
            match next {
                '`' => {
                    length = at + 1;
                    break;
                }
                '\\' => {
                    has_escapes = true;
                    match characters.next() {
                        Some((_, escaped @ ('`' | '\\' | '$'))) => text.push(escaped),
                        Some((_, '"')) if is_quoted => text.push('"'),
                        Some((_, other)) => text.extend(['\\', other]),
                        None => text.push('\\'),
                    }
                }
                other => text.push(other),
            }
        }
        self.at += length;
        if self.depth >= MAX_NESTING {
            self.is_complete = false;
            return;
        }
        let base = self.base.filter(|_| !has_escapes).map(|base| base + start);
        let mut inner = self.inner(&text, base);
        let script = inner.script(false);
        let inner = inner.outcome();
        self.take(inner);
        word.parts.push(Part::Output {
            script,
            is_quoted,
            kind: OutputKind::Text,
        });
    }

    /// Reads `${…}` after its dollar sign.
    fn braced_variable(&mut self, word: &mut RawWord, is_quoted: bool, start: usize) {
        if self.depth >= MAX_NESTING {
            self.is_complete = false;
            self.at = self.text.len();
            return;
        }
        self.depth += 1;
        self.at += 1;
        let is_changed = matches!(self.peek(), Some(b'#' | b'!'))
            && self.peek_at(1).is_some_and(|next| next != b'}');
        self.at += usize::from(is_changed);
        let rest = self.rest();
        let name = rest.get(..parameter_length(rest)).unwrap_or_default();
        let name = name.to_owned();
        self.at += name.len();
        let is_all = self.eat("[@]") || self.eat("[*]") || name == "@" || name == "*";
        let element = self.element();
        let has_index = element.is_none() && self.peek() == Some(b'[');
        let alternative = if is_changed || has_index || element.is_some() {
            None
        } else {
            self.alternative_operator()
        };
        let mut argument = RawWord::default();
        self.word_until(&mut argument, Some(b'}'));
        self.eat("}");
        self.depth -= 1;
        let is_plain = !is_changed && !has_index && argument.parts.is_empty() && !name.is_empty();
        let operation = match (alternative, element) {
            (Some(operator), _) => Operation::Alternative(operator, argument),
            (None, Some(element)) if is_plain => Operation::Element(element),
            (None, None) if is_plain => Operation::Value,
            _ => Operation::Other(argument),
        };
        word.parts.push(Part::Variable(Variable {
            written: self.text.get(start..self.at).unwrap_or_default().to_owned(),
            name,
            is_all,
            is_quoted,
            operation,
        }));
    }

    /// Reads the operator of `${x:-y}` and similar forms.
    fn alternative_operator(&mut self) -> Option<char> {
        let offset = usize::from(self.peek() == Some(b':'));
        let operator = self.peek_at(offset).map(char::from);
        let operator = operator.filter(|operator| ['-', '=', '+'].contains(operator))?;
        self.at += offset + 1;
        Some(operator)
    }

    /// Reads an index that is a number, such as `[0]`.
    fn element(&mut self) -> Option<usize> {
        let (index, _) = self.rest().strip_prefix('[')?.split_once(']')?;
        let number = index.parse().ok()?;
        self.at += index.len() + 2;
        Some(number)
    }
}

/// How long a pattern such as `@(a|b)` may be, in bytes.
const MAX_PATTERN: usize = 256;

/// How often text may turn out not to be arithmetic.
const MAX_TRIES: usize = 8;

/// How long an arithmetic expression may be, in bytes.
const MAX_ARITHMETIC: usize = 4096;

/// Returns the part of a word that arithmetic stands for. Its commands run.
fn arithmetic_part(inner: RawWord) -> Part {
    Part::Variable(Variable {
        written: "$((…))".to_owned(),
        name: String::new(),
        is_all: false,
        is_quoted: true,
        operation: Operation::Other(inner),
    })
}

/// Returns how many more parentheses an expression opens than it closes.
fn open_parentheses(expression: &RawWord) -> isize {
    let plain = expression.parts.iter().map(|part| match part {
        Part::Plain(text) => text.as_str(),
        Part::Quoted(_)
        | Part::Variable(_)
        | Part::Output { .. }
        | Part::Array(_)
        | Part::Unknown(_) => "",
    });
    let characters = plain.flat_map(str::chars);
    characters
        .map(|character| match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        })
        .sum()
}

fn is_balanced(expression: &RawWord) -> bool {
    open_parentheses(expression) == 0
}

fn is_overclosed(expression: &RawWord) -> bool {
    open_parentheses(expression) < 0
}

/// Returns whether white space belongs to an index, as in `a[1 + 0]=x`.
fn is_open_index(word: &RawWord, rest: &str) -> bool {
    let Some((name, index)) = word.plain().and_then(|text| text.split_once('[')) else {
        return false;
    };
    let near = rest.get(..rest.len().min(MAX_PATTERN)).unwrap_or_default();
    let near = near.split(['\n', ';', '|', '&']).next().unwrap_or_default();
    is_assignment(&format!("{name}="))
        && !index.contains(']')
        && (near.contains("]=") || near.contains("]+="))
}

/// Returns whether a byte ends text that stands for itself outside of quotes.
const fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t'
            | b'\n'
            | b'\r'
            | b';'
            | b'|'
            | b'&'
            | b'('
            | b')'
            | b'<'
            | b'>'
            | b'\''
            | b'"'
            | b'\\'
            | b'$'
            | b'`'
    )
}

/// Reads what comes after the backslash and the letter `escaped` in `$'…'`. Returns `None` for a number that is not a
/// character.
fn ansi_escape(escaped: char, characters: &mut Peekable<CharIndices<'_>>) -> Option<char> {
    let mut number = |radix: u32, first: Option<char>, max: usize| {
        let mut digits: String = first.into_iter().collect();
        while digits.len() < max
            && let Some((_, digit)) = characters.next_if(|(_, digit)| digit.is_digit(radix))
        {
            digits.push(digit);
        }
        let value = u32::from_str_radix(&digits, radix).ok();
        value.and_then(char::from_u32)
    };
    match escaped {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        'a' => Some('\u{7}'),
        'b' => Some('\u{8}'),
        'e' | 'E' => Some('\u{1b}'),
        'f' => Some('\u{c}'),
        'v' => Some('\u{b}'),
        'x' => number(16, None, 2),
        'u' => number(16, None, 4),
        'U' => number(16, None, 8),
        digit @ '0'..='7' => number(8, Some(digit), 3),
        'c' => characters
            .next()
            .and_then(|(_, control)| u8::try_from(control).ok())
            .map(|control| char::from(control & 0x1f)),
        other => Some(other),
    }
}

/// Returns the length of the name of a variable or a parameter, such as `1` or `@`, at the start of a text.
fn parameter_length(text: &str) -> usize {
    match name_length(text) {
        0 => {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let is_special = text.starts_with(['@', '*', '?', '$', '-', '#', '!']);
            digits.max(usize::from(is_special))
        }
        length => length,
    }
}

/// Returns the length of the name at the start of a text.
fn name_length(text: &str) -> usize {
    let is_start = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    if is_start {
        text.bytes().take_while(is_part).count()
    } else {
        0
    }
}
