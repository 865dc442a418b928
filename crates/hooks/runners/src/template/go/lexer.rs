//! Splits a template into literal text and actions, and actions into tokens.

use std::fmt;

use crate::template::error::UnlocatedError;

/// A part of a template.
#[derive(Debug)]
pub(super) enum Piece<'a> {
    Text { text: &'a str, at: usize },
    Action { lexemes: Vec<Lexeme<'a>>, at: usize },
}

impl Piece<'_> {
    /// Returns the word that an action begins with.
    pub(super) fn word(&self) -> Option<&str> {
        let Self::Action { lexemes, .. } = self else {
            return None;
        };
        if let Token::Word(word) = lexemes.first()?.token {
            return Some(word);
        }
        None
    }
}

impl Lexeme<'_> {
    /// Returns the content of a string.
    pub(super) fn text(&self) -> Option<&str> {
        if let Token::Text(text) = &self.token {
            return Some(text);
        }
        None
    }
}

/// A token of an action, with its position.
#[derive(Debug, Clone)]
pub(super) struct Lexeme<'a> {
    pub(super) token: Token<'a>,
    /// The byte offset in the template.
    pub(super) at: usize,
    /// Whether white space precedes the token.
    pub(super) is_spaced: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'a> {
    Dot,
    /// `.Name`
    Field(&'a str),
    /// `$name`; `$` alone has no name.
    Variable(&'a str),
    Word(&'a str),
    Text(String),
    Number(&'a str),
    Pipe,
    Open,
    Close,
    Declare,
    Comma,
}

impl fmt::Display for Token<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dot => f.write_str("`.`"),
            Self::Field(name) => write!(f, "`.{name}`"),
            Self::Variable(name) => write!(f, "`${name}`"),
            Self::Word(word) => write!(f, "`{word}`"),
            Self::Text(_) => f.write_str("a string"),
            Self::Number(number) => write!(f, "`{number}`"),
            Self::Pipe => f.write_str("`|`"),
            Self::Open => f.write_str("`(`"),
            Self::Close => f.write_str("`)`"),
            Self::Declare => f.write_str("`:=`"),
            Self::Comma => f.write_str("`,`"),
        }
    }
}

/// Splits a template. Removes comments, and white space at trim markers.
pub(super) fn pieces(source: &str) -> Result<Vec<Piece<'_>>, UnlocatedError> {
    let mut pieces = Vec::new();
    let mut at = 0;
    let mut trims_start = false;
    loop {
        let rest = source.get(at..).unwrap_or_default();
        let open = rest.find("{{");
        let mut text = rest.get(..open.unwrap_or(rest.len())).unwrap_or_default();
        let start = open.map(|open| at + open);
        let trims_end = start.is_some_and(|start| {
            let inner = source.get(start + 2..).unwrap_or_default();
            inner.starts_with('-') && inner.get(1..).is_some_and(|c| c.starts_with(is_space))
        });
        if trims_start {
            text = text.trim_start_matches(is_space);
        }
        if trims_end {
            text = text.trim_end_matches(is_space);
        }
        if !text.is_empty() {
            pieces.push(Piece::Text { text, at });
        }
        let Some(start) = start else {
            return Ok(pieces);
        };
        let mut lexer = Lexer {
            source,
            start,
            at: start + if trims_end { 3 } else { 2 },
        };
        if let Some(end) = lexer.comment()? {
            (at, trims_start) = end;
            continue;
        }
        let (lexemes, end) = lexer.action()?;
        pieces.push(Piece::Action { lexemes, at: start });
        (at, trims_start) = end;
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r' | '\n')
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The byte offset after an action, and whether white space after it is trimmed.
type End = (usize, bool);

struct Lexer<'a> {
    source: &'a str,
    /// Where the action begins.
    start: usize,
    at: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn skip_space(&mut self) -> bool {
        let rest = self.rest();
        let skipped = rest.len() - rest.trim_start_matches(is_space).len();
        self.at += skipped;
        skipped > 0
    }

    /// Returns the end of the action, if the closing braces are next.
    fn close(&self, is_spaced: bool) -> Option<End> {
        let rest = self.rest();
        if rest.starts_with("}}") {
            return Some((self.at + 2, false));
        }
        (is_spaced && rest.starts_with("-}}")).then_some((self.at + 3, true))
    }

    /// Skips the action if it is a comment.
    fn comment(&mut self) -> Result<Option<End>, UnlocatedError> {
        let before = self.at;
        self.skip_space();
        if !self.rest().starts_with("/*") {
            self.at = before;
            return Ok(None);
        }
        let Some(length) = self.rest().find("*/") else {
            return Err(UnlocatedError::new(self.start, "the comment is not closed"));
        };
        self.at += length + 2;
        let is_spaced = self.skip_space();
        match self.close(is_spaced) {
            Some(end) => Ok(Some(end)),
            None => Err(
                UnlocatedError::new(self.at, "unexpected text after a comment")
                    .allowed("`{{/* … */}}`, and nothing else in the action"),
            ),
        }
    }

    fn action(&mut self) -> Result<(Vec<Lexeme<'a>>, End), UnlocatedError> {
        let mut lexemes = Vec::new();
        loop {
            let is_spaced = self.skip_space();
            if let Some(end) = self.close(is_spaced) {
                return Ok((lexemes, end));
            }
            let at = self.at;
            let token = self.token()?;
            lexemes.push(Lexeme {
                token,
                at,
                is_spaced,
            });
        }
    }

    fn token(&mut self) -> Result<Token<'a>, UnlocatedError> {
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else {
            return Err(UnlocatedError::new(self.start, "the action is not closed").allowed("`}}`"));
        };
        for (sign, token) in [
            (":=", Token::Declare),
            ("|", Token::Pipe),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
        ] {
            if rest.starts_with(sign) {
                self.at += sign.len();
                return Ok(token);
            }
        }
        let second = rest.chars().nth(1).unwrap_or_default();
        match first {
            '"' => self.quoted(),
            '`' => self.raw(),
            '.' if is_letter(second) && !second.is_ascii_digit() => {
                self.at += 1;
                Ok(Token::Field(self.word()))
            }
            '.' if !second.is_ascii_digit() => {
                self.at += 1;
                Ok(Token::Dot)
            }
            '$' => {
                self.at += 1;
                Ok(Token::Variable(self.word()))
            }
            '0'..='9' | '.' | '-' | '+' => self.number(),
            c if is_letter(c) => Ok(Token::Word(self.word())),
            '\'' => Err(
                UnlocatedError::new(at, "a character in `'` is not supported")
                    .allowed("a string in `\"` or in backticks"),
            ),
            '=' => Err(
                UnlocatedError::new(at, "an assignment with `=` is not supported").allowed("`:=`"),
            ),
            c => Err(UnlocatedError::new(
                at,
                format!("`{c}` is not expected here"),
            )),
        }
    }

    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !is_letter(c)).unwrap_or(rest.len());
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }

    fn number(&mut self) -> Result<Token<'a>, UnlocatedError> {
        let (at, rest) = (self.at, self.rest());
        let is_part = |c: char| is_letter(c) || matches!(c, '.' | '-' | '+');
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let text = rest.get(..length).unwrap_or_default();
        self.at += length;
        let digits = text.strip_prefix('-').unwrap_or(text);
        // In Go, a number with a leading zero is octal.
        let is_octal = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0.");
        let is_plain = !is_octal
            && digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.ends_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
            && text.parse::<f64>().is_ok()
            && (digits.contains('.') || text.parse::<i64>().is_ok());
        if is_plain {
            return Ok(Token::Number(text));
        }
        Err(
            UnlocatedError::new(at, format!("the number `{text}` is not supported"))
                .allowed("decimal digits, optionally with a leading `-` and one `.`"),
        )
    }

    fn raw(&mut self) -> Result<Token<'a>, UnlocatedError> {
        let inner = self.rest().get(1..).unwrap_or_default();
        let Some(length) = inner.find('`') else {
            return Err(
                UnlocatedError::new(self.at, "the string is not closed").allowed("a backtick")
            );
        };
        self.at += length + 2;
        let text = inner.get(..length).unwrap_or_default();
        Ok(Token::Text(text.replace('\r', "")))
    }

    fn quoted(&mut self) -> Result<Token<'a>, UnlocatedError> {
        let start = self.at;
        let mut text = String::new();
        let mut letters = self.rest().char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.at = start + at + 1;
                    return Ok(Token::Text(text));
                }
                '\n' => break,
                '\\' => {
                    let escaped = letters.next().map(|(_, letter)| letter);
                    text.push(match escaped {
                        Some('n') => '\n',
                        Some('t') => '\t',
                        Some('r') => '\r',
                        Some(plain @ ('"' | '\\')) => plain,
                        _ => {
                            return Err(UnlocatedError::new(
                                start + at,
                                "the escape is not supported",
                            )
                            .allowed(r#"`\n`, `\t`, `\r`, `\"` and `\\`"#));
                        }
                    });
                }
                letter => text.push(letter),
            }
        }
        Err(UnlocatedError::new(start, "the string is not closed").allowed("`\"` on the same line"))
    }
}
