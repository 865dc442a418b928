//! Parses the words of a command line: quotes, variables, substitutions and patterns.

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
                b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b')' if end.is_none() => return,
                b'\r' if end.is_none() && matches!(self.peek_at(1), None | Some(b'\n')) => return,
                b'<' | b'>' if end.is_none() => {
                    if !word.parts.is_empty() || self.peek_at(1) != Some(b'(') {
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
                b'\'' => {
                    self.at += 1;
                    let rest = self.rest();
                    let length = rest.find('\'').unwrap_or(rest.len());
                    word.push_quoted(rest.get(..length).unwrap_or_default());
                    self.at = (self.at + length + 1).min(self.text.len());
                }
                b'"' => {
                    self.at += 1;
                    word.push_quoted("");
                    self.quoted(word, Some(b'"'));
                }
                b'\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.rest().chars().next() {
                        self.at += escaped.len_utf8();
                        if escaped != '\n' {
                            word.push_quoted(escaped.encode_utf8(&mut [0; 4]));
                        }
                    }
                }
                b'$' => self.dollar(word, false),
                b'`' => self.backticks(word, false),
                _ => {
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
            }
        }
    }

    /// Reads a parenthesis within a word: the values of an array, a pattern or a file. Returns `false` if it ends the word.
    fn in_word_parenthesis(&mut self, word: &mut RawWord) -> bool {
        let Some(text) = word.plain() else {
            return false;
        };
        if text.ends_with('=') && is_assignment(text) {
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
            if let Some(length) = rest.find(')').filter(|length| {
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
                let rest = self.rest();
                let length = rest.find(']').map_or(rest.len(), |length| length + 1);
                word.parts.push(Part::Unknown("$[…]".to_owned()));
                self.at += length;
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
                    let mut number = |radix: u32, first: Option<char>, max: usize| {
                        let mut digits: String = first.into_iter().collect();
                        while digits.len() < max
                            && let Some((_, digit)) =
                                characters.next_if(|(_, digit)| digit.is_digit(radix))
                        {
                            digits.push(digit);
                        }
                        u32::from_str_radix(&digits, radix)
                            .ok()
                            .and_then(char::from_u32)
                    };
                    let value = match escaped {
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
                    };
                    text.extend(value);
                }
                other => text.push(other),
            }
        }
        self.at += length;
        word.push_quoted(&text);
    }

    /// Reads arithmetic after its dollar sign. Returns `false` if it is a substitution that starts with a group.
    fn arithmetic(&mut self, word: &mut RawWord) -> bool {
        let mut depth = 0_usize;
        let mut before = b' ';
        let mut has_command = false;
        let bytes = self.rest().as_bytes();
        let mut length = None;
        for (at, byte) in bytes.iter().copied().enumerate() {
            match byte {
                b'(' => {
                    has_command |= before == b'$';
                    depth += 1;
                }
                b'`' => has_command = true,
                b'\'' | b'"' | b'\n' | b';' => return false,
                b')' if depth == 1 => {
                    length = (before == b')').then_some(at + 1);
                    break;
                }
                b')' => depth -= 1,
                _ => {}
            }
            before = byte;
        }
        let Some(length) = length else { return false };
        if has_command {
            return false;
        }
        word.parts.push(Part::Unknown("$(…)".to_owned()));
        self.at += length;
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
        let mut inner = Parser {
            text: &text,
            at: 0,
            base: self.base.filter(|_| !has_escapes).map(|base| base + start),
            depth: self.depth + 1,
            pipelines: self.pipelines,
            bodies: std::mem::take(&mut self.bodies),
            pending: Vec::new(),
            is_complete: self.is_complete,
        };
        let script = inner.script(false);
        self.is_complete = inner.is_complete;
        self.pipelines = inner.pipelines;
        self.bodies = inner.bodies;
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
        let length = match name_length(rest) {
            0 => rest
                .bytes()
                .take_while(u8::is_ascii_digit)
                .count()
                .max(usize::from(
                    rest.starts_with(['@', '*', '?', '$', '-', '#', '!']),
                )),
            length => length,
        };
        let name = rest.get(..length).unwrap_or_default().to_owned();
        self.at += length;
        let is_all = self.eat("[@]") || self.eat("[*]") || name == "@" || name == "*";
        let has_index = self.peek() == Some(b'[');
        let is_alternative = !is_changed && !has_index && self.alternative_operator();
        let mut argument = RawWord::default();
        self.word_until(&mut argument, Some(b'}'));
        self.eat("}");
        self.depth -= 1;
        let operation = if is_alternative {
            Operation::Alternative(argument)
        } else if is_changed || has_index || !argument.parts.is_empty() || name.is_empty() {
            Operation::Other(argument)
        } else {
            Operation::Value
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
    fn alternative_operator(&mut self) -> bool {
        let offset = usize::from(self.peek() == Some(b':'));
        let found = matches!(self.peek_at(offset), Some(b'-' | b'=' | b'+'));
        if found {
            self.at += offset + 1;
        }
        found
    }
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
