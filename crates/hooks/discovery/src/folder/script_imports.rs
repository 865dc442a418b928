//! Finds the modules that a JavaScript or TypeScript file imports.

use std::collections::BTreeSet;

/// Words after which a slash begins a regular expression, not a division.
const BEFORE_PATTERN: [&str; 9] = [
    "return", "typeof", "case", "in", "of", "do", "else", "void", "await",
];

/// How often per line a slash that may begin a regular expression is searched for its end without success. After
/// that, slashes are divisions.
const MAX_OPEN_PATTERNS: u8 = 16;

/// Returns the modules that a file imports, as it names them: in `import`, `export … from`, `import()`,
/// `require()` and `require.resolve()`. Statements with `import type` or `export type` do not count.
///
/// The text may be of an attacker, so it is only split into tokens, in time proportional to its length.
pub(super) fn find_imports(text: &str) -> Vec<String> {
    let mut imports = BTreeSet::new();
    let mut lexer = Lexer::new(text);
    while let Some(token) = lexer.next_token() {
        if let Token::Text(name) = token
            && lexer.is_after_import()
        {
            imports.insert(name.to_owned());
        }
        lexer.push(token);
    }
    imports.into_iter().collect()
}

/// A part of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// The text between quotes.
    Text(&'a str),
    /// A part of a template with substitutions, or a regular expression.
    Other,
    Sign(u8),
}

/// Splits a source into tokens, as far as imports need it.
struct Lexer<'a> {
    rest: &'a str,
    /// The token before the last one, and the last one.
    before: [Option<Token<'a>>; 2],
    /// The number of open braces in each substitution of a template.
    substitutions: Vec<u32>,
    statement: Statement,
    /// For both kinds of quotes: the length of the rest of the source after the last line on which a text had no end.
    /// No later quote of the same kind on that line has an end either.
    unclosed: [usize; 2],
    /// The length of the rest of the source after a line, and how many regular expressions on it had no end.
    open_patterns: (usize, u8),
}

/// How far a statement is known to import or export types only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Statement {
    /// It may import values.
    Value,
    /// The last token was `import` or `export`.
    Began,
    /// The last tokens were `import type`.
    Type,
    /// The last tokens were `import type from`: `type` or `from` may be the name of a value.
    TypeFrom,
    /// It imports types only.
    TypesOnly,
}

impl Statement {
    fn after(self, token: Token<'_>) -> Self {
        let is_end = matches!(token, Token::Text(_) | Token::Sign(b';'));
        match (self, token) {
            (_, Token::Word("import" | "export")) => Self::Began,
            (Self::Began, Token::Word("type")) => Self::Type,
            (Self::Type, Token::Word("from")) => Self::TypeFrom,
            (Self::Type, Token::Word(_) | Token::Sign(b'{' | b'*'))
            | (Self::TypeFrom, Token::Word("from")) => Self::TypesOnly,
            (Self::TypesOnly, _) if !is_end => Self::TypesOnly,
            _ => Self::Value,
        }
    }
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            rest: text,
            before: [None, None],
            substitutions: Vec::new(),
            statement: Statement::Value,
            unclosed: [usize::MAX; 2],
            open_patterns: (usize::MAX, 0),
        }
    }

    fn push(&mut self, token: Token<'a>) {
        let [_, last] = self.before;
        self.before = [last, Some(token)];
        self.statement = self.statement.after(token);
    }

    /// Returns whether a text at this position names a module.
    fn is_after_import(&self) -> bool {
        match self.before {
            [_, Some(Token::Word("from"))] => self.statement != Statement::TypesOnly,
            [_, Some(Token::Word("import"))]
            | [
                Some(Token::Word("import" | "require" | "resolve")),
                Some(Token::Sign(b'(')),
            ] => true,
            _ => false,
        }
    }

    fn next_token(&mut self) -> Option<Token<'a>> {
        self.skip_spaces_and_comments();
        let first = *self.rest.as_bytes().first()?;
        Some(match first {
            b'"' | b'\'' => self.quoted(first),
            b'`' => {
                self.take(1);
                self.template()
            }
            b'/' if self.begins_pattern() => self.pattern(),
            b'{' => {
                if let Some(open) = self.substitutions.last_mut() {
                    *open += 1;
                }
                self.sign()
            }
            b'}' if self.substitutions.last() == Some(&0) => {
                self.substitutions.pop();
                self.take(1);
                self.template();
                Token::Other
            }
            b'}' => {
                if let Some(open) = self.substitutions.last_mut() {
                    *open -= 1;
                }
                self.sign()
            }
            first if is_of_word(first) => {
                let end = self.rest.bytes().position(|byte| !is_of_word(byte));
                Token::Word(self.take(end.unwrap_or(self.rest.len())))
            }
            _ => self.sign(),
        })
    }

    /// Removes the first `length` bytes and returns them.
    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .unwrap_or((self.rest, ""));
        self.rest = rest;
        taken
    }

    fn sign(&mut self) -> Token<'a> {
        // Bytes that are not ASCII are parts of words, so this is one whole character.
        Token::Sign(self.take(1).bytes().next().unwrap_or_default())
    }

    fn skip_spaces_and_comments(&mut self) {
        loop {
            self.rest = self.rest.trim_start();
            let end = if self.rest.starts_with("//") {
                self.rest.find('\n')
            } else if self.rest.starts_with("/*") {
                self.rest.find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.take(end.unwrap_or(self.rest.len()));
        }
    }

    /// Takes a text in quotes. A quote that is not closed on the same line does not begin a text.
    fn quoted(&mut self, quote: u8) -> Token<'a> {
        let unclosed = self.unclosed.get_mut(usize::from(quote == b'"'));
        // A quote inside of a text without an end is escaped, so the search from it would take the same path.
        if unclosed
            .as_ref()
            .is_some_and(|after| self.rest.len() > **after)
        {
            return self.sign();
        }
        match end_of(self.rest, |byte| byte == quote) {
            Ok(end) => {
                let text = self.take(end + 1);
                Token::Text(text.get(1..end).unwrap_or_default())
            }
            Err(line) => {
                if let Some(after) = unclosed {
                    *after = self.rest.len() - line;
                }
                self.sign()
            }
        }
    }

    /// Takes a template up to its end or to its next substitution.
    fn template(&mut self) -> Token<'a> {
        let bytes = self.rest.as_bytes();
        let mut place = 0;
        while let Some(byte) = bytes.get(place) {
            match byte {
                b'\\' => place += 2,
                b'`' => {
                    let text = self.take(place);
                    self.take(1);
                    return Token::Text(text);
                }
                b'$' if bytes.get(place + 1) == Some(&b'{') => {
                    self.take(place + 2);
                    self.substitutions.push(0);
                    return Token::Other;
                }
                _ => place += 1,
            }
        }
        self.rest = "";
        Token::Other
    }

    fn begins_pattern(&self) -> bool {
        match self.before[1] {
            Some(Token::Word(word)) => BEFORE_PATTERN.contains(&word),
            Some(Token::Sign(sign)) => !b")]}".contains(&sign),
            Some(Token::Text(_) | Token::Other) => false,
            None => true,
        }
    }

    /// Takes a regular expression.
    fn pattern(&mut self) -> Token<'a> {
        let (after, failures) = self.open_patterns;
        let is_same_line = self.rest.len() > after;
        if is_same_line && failures == MAX_OPEN_PATTERNS {
            return self.sign();
        }
        let mut is_class = false;
        let end = end_of(self.rest, |byte| {
            match byte {
                b'[' => is_class = true,
                b']' => is_class = false,
                _ => {}
            }
            byte == b'/' && !is_class
        });
        match end {
            Ok(end) => {
                self.take(end + 1);
                Token::Other
            }
            Err(line) => {
                let failures = if is_same_line { failures + 1 } else { 1 };
                self.open_patterns = (self.rest.len() - line, failures);
                self.sign()
            }
        }
    }
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || !byte.is_ascii()
}

/// Returns the position of the end of a literal that begins `text`, if it is on the same line. Otherwise, the error
/// is the length of the line.
fn end_of(text: &str, mut is_end: impl FnMut(u8) -> bool) -> Result<usize, usize> {
    let mut bytes = text.bytes().enumerate().skip(1);
    while let Some((place, byte)) = bytes.next() {
        match byte {
            b'\\' => {
                bytes.next();
            }
            b'\n' => return Err(place),
            _ if is_end(byte) => return Ok(place),
            _ => {}
        }
    }
    Err(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_import_is_found_and_no_other_text() {
        const CASES: &[(&str, &[&str])] = &[
            (
                "import a from 'a'; import { b as c } from \"@s/b\"",
                &["@s/b", "a"],
            ),
            ("import 'side-effect'", &["side-effect"]),
            (
                "export * from './x.js'; export { y } from '../y'",
                &["../y", "./x.js"],
            ),
            (
                "const x = await import('x'), y = require( `y` )",
                &["x", "y"],
            ),
            ("require.resolve('z/package.json')", &["z/package.json"]),
            ("// import 'no'\n/* from 'no' */ import 'yes'", &["yes"]),
            ("const s = \"import 'no'\"; import 'yes'", &["yes"]),
            (
                "const t = `import 'no' ${f(`from 'no' ${1}`, {})} from 'no'`; import 'yes'",
                &["yes"],
            ),
            (
                "const r = /['\"`/*]/.test(x) && a / b; import('yes')",
                &["yes"],
            ),
            (
                "const r = x.replace(/\\/\\*'/g, ''); import('yes')",
                &["yes"],
            ),
            ("Array.from('no'); log('no'); f(`no`)", &[]),
            ("const open = 'no\nimport 'yes'", &["yes"]),
            ("import é from 'é'", &["é"]),
            ("", &[]),
        ];
        for (text, expected) in CASES {
            assert_eq!(find_imports(text), *expected, "{text}");
        }
    }

    #[test]
    fn a_statement_that_imports_types_only_does_not_count() {
        const CASES: &[(&str, &[&str])] = &[
            ("import type { A } from 'no'; import { b } from 'b'", &["b"]),
            ("import type A from 'no'\nimport 'b'", &["b"]),
            (
                "import type * as A from 'no'; export type { C } from 'no'; export type * from 'no'",
                &[],
            ),
            ("import type from from 'no'", &[]),
            ("import type from 'a'", &["a"]),
            ("import type, { b } from 'a'", &["a"]),
            ("import { type A } from 'a'", &["a"]),
            ("export type A = { b: string }\nexport * from 'a'", &["a"]),
            ("export type A = typeof import('a')", &["a"]),
            (
                "export type A = 'x' | 'y'; const from = 1; import a from 'a'",
                &["a"],
            ),
        ];
        for (text, expected) in CASES {
            assert_eq!(find_imports(text), *expected, "{text}");
        }
    }

    /// Quotes and slashes without an end made the search look at the rest of a line for each of them. 4 MiB of them
    /// would take hours.
    #[test]
    fn a_file_without_ends_of_literals_is_searched_in_one_pass() {
        const LENGTH: usize = 1 << 18;
        for part in ["/[", "\\'", "\\\"", "'\\'", "`${", "/*", "{", "/[/x/\\"] {
            let text = format!("x = {}\nimport 'yes'", part.repeat(LENGTH));
            let found = find_imports(&text);
            let is_open = ["`${", "/*"].contains(&part);
            assert!(is_open || found == ["yes"], "{part}: {found:?}");
        }
        // Brackets that would overflow the stack of a parser.
        let nested = format!("x = {}1;\nimport 'yes'", "(".repeat(LENGTH));
        assert_eq!(find_imports(&nested), ["yes"]);
    }

    #[test]
    fn a_literal_without_an_end_hides_no_import_on_its_line() {
        for text in [
            "a++ / 2; import('yes')",
            "a++ / [2]; b++ / 3; import('yes'); 'open",
            "\"open import('yes')",
        ] {
            assert_eq!(find_imports(text), ["yes"], "{text}");
        }
    }
}
