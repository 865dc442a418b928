//! Splits a command line into quoted text, syntax and plain characters.
//!
//! Both ways of reading a line use these pieces: the commands in it (`lib.rs`), and its words with
//! their positions (`words.rs`). So quotes and escapes have the same meaning in both.

/// A piece of a command line outside of double quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// White space within a line.
    Space(char),
    /// A character between commands: `;`, `&`, `|`, a parenthesis, a backtick or the end of a line.
    Syntax(char),
    /// `<` or `>`.
    Redirection(char),
    /// The text in single quotes.
    SingleQuoted(&'a str),
    /// The start of double quotes, whose pieces are read by [`Lexer::next_quoted`].
    DoubleQuote,
    /// The character after a backslash. `None` is a line continuation, or a backslash at the end of
    /// the text.
    Escaped(Option<char>),
    /// A dollar sign.
    Dollar,
    /// Any other character.
    Char(char),
}

/// A piece of a command line inside double quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuotedPiece {
    /// The end of the quotes.
    End,
    /// A character that a backslash escapes. `None` is a line continuation, or a backslash at the
    /// end of the text.
    Escaped(Option<char>),
    /// A backslash that is kept, with the character after it.
    Backslash(char),
    /// A dollar sign.
    Dollar,
    /// A backtick.
    Backtick,
    /// Any other character.
    Char(char),
}

/// Reads a command line once from left to right.
#[derive(Debug, Clone)]
pub(crate) struct Lexer<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(crate) const fn new(line: &'a str) -> Self {
        Self { line, at: 0 }
    }

    /// Returns how many bytes have been read.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Returns the text that has not been read yet.
    pub(crate) fn rest(&self) -> &'a str {
        self.line.get(self.at..).unwrap_or_default()
    }

    /// Returns the text from the byte `start` to the current position.
    pub(crate) fn since(&self, start: usize) -> &'a str {
        self.line.get(start..self.at).unwrap_or_default()
    }

    pub(crate) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Skips a number of bytes.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.line.len());
    }

    /// Skips all of these characters that come next.
    pub(crate) fn skip_all(&mut self, characters: &[char]) {
        let rest = self.rest();
        self.skip(rest.len() - rest.trim_start_matches(characters).len());
    }

    fn next_char(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.skip(next.len_utf8());
        Some(next)
    }

    /// Reads the next piece outside of double quotes.
    pub(crate) fn next(&mut self) -> Option<Piece<'a>> {
        Some(match self.next_char()? {
            syntax @ (';' | '&' | '|' | '(' | ')' | '`' | '\n' | '\r') => Piece::Syntax(syntax),
            redirection @ ('<' | '>') => Piece::Redirection(redirection),
            '\'' => {
                let rest = self.rest();
                let end = rest.find('\'').unwrap_or(rest.len());
                self.skip(end + 1);
                Piece::SingleQuoted(rest.get(..end).unwrap_or_default())
            }
            '"' => Piece::DoubleQuote,
            '\\' => Piece::Escaped(self.next_char().filter(|escaped| *escaped != '\n')),
            '$' => Piece::Dollar,
            space if space.is_whitespace() => Piece::Space(space),
            other => Piece::Char(other),
        })
    }

    /// Reads the next piece inside double quotes.
    pub(crate) fn next_quoted(&mut self) -> Option<QuotedPiece> {
        Some(match self.next_char()? {
            '"' => QuotedPiece::End,
            '\\' => match self.next_char() {
                None | Some('\n') => QuotedPiece::Escaped(None),
                Some(escaped @ ('"' | '\\' | '$' | '`')) => QuotedPiece::Escaped(Some(escaped)),
                Some(other) => QuotedPiece::Backslash(other),
            },
            '$' => QuotedPiece::Dollar,
            '`' => QuotedPiece::Backtick,
            other => QuotedPiece::Char(other),
        })
    }
}
