//! Which events of a name a hook wants.

mod index;

use std::fmt;
use std::sync::{Arc, OnceLock};

use regex::{Regex, RegexBuilder};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::syntax;
use regex_syntax::hir::Hir;
use thiserror::Error;

pub(crate) use index::MatcherIndex;

/// A whole-string test of an event's subject (the tool's name, the source, the reason …), compiled once.
///
/// | written | matches |
/// |---|---|
/// | nothing, an empty text or `*` | everything |
/// | words of letters, digits, `_`, `-` joined by the bar | exactly these words |
/// | one such word, or more with `:` in them, and `.*` behind it | everything that begins so |
/// | anything else | as a regular expression, from the first character to the last |
///
/// Matching takes time linear in the subject's length: expressions have no look-around and no back-references.
#[derive(Debug, Clone)]
pub struct Matcher {
    text: String,
    test: Test,
}

#[derive(Debug, Clone)]
enum Test {
    Everything,
    Words(Box<[Box<str>]>),
    Prefix(Box<str>),
    Pattern(Arc<Pattern>),
}

/// An expression that was checked, and is compiled when it is first run alone: an engine runs many together.
#[derive(Debug)]
struct Pattern {
    /// The expression for a whole subject.
    anchored: String,
    compiled: OnceLock<Regex>,
}

/// The most memory that one compiled expression may take.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;

impl Matcher {
    /// A matcher of everything.
    pub const fn everything() -> Self {
        Self {
            text: String::new(),
            test: Test::Everything,
        }
    }

    /// Compiles a matcher.
    ///
    /// # Errors
    /// When `text` is no regular expression, or compiles to more than a mebibyte.
    pub fn parse(text: &str) -> Result<Self, MatcherError> {
        let is_word = |word: &str| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        };
        let is_prefix = |text: &str| {
            !text.is_empty() && text.split(':').all(|part| part.is_empty() || is_word(part))
        };
        let compiled = match text {
            "" | "*" => Test::Everything,
            words if words.split('|').all(is_word) => {
                Test::Words(words.split('|').map(Box::from).collect())
            }
            text => match text.strip_suffix(".*").filter(|prefix| is_prefix(prefix)) {
                Some(prefix) => Test::Prefix(prefix.into()),
                None => Test::Pattern(Arc::new(Pattern::parse(text)?)),
            },
        };
        Ok(Self {
            text: text.to_owned(),
            test: compiled,
        })
    }

    /// Says whether the matcher matches everything.
    pub fn is_everything(&self) -> bool {
        matches!(self.test, Test::Everything)
    }

    /// Says whether `subject` matches. An event without a subject matches as the empty text.
    pub fn matches(&self, subject: Option<&str>) -> bool {
        let subject = subject.unwrap_or_default();
        match &self.test {
            Test::Everything => true,
            Test::Words(words) => words.iter().any(|word| **word == *subject),
            Test::Prefix(prefix) => subject.starts_with(&**prefix),
            Test::Pattern(pattern) => pattern.is_match(subject),
        }
    }

    /// Returns the expression for a whole subject, if the matcher is one.
    fn anchored(&self) -> Option<&str> {
        match &self.test {
            Test::Pattern(pattern) => Some(&pattern.anchored),
            Test::Everything | Test::Words(_) | Test::Prefix(_) => None,
        }
    }

    /// Returns the matcher as it was written; empty where it matches everything.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Default for Matcher {
    fn default() -> Self {
        Self::everything()
    }
}

impl fmt::Display for Matcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_everything() {
            "*"
        } else {
            &self.text
        })
    }
}

impl Pattern {
    fn parse(pattern: &str) -> Result<Self, MatcherError> {
        let refused = |source| MatcherError {
            matcher: pattern.to_owned(),
            source: Box::new(source),
        };
        // The pattern is checked alone first, so that `a)|(b` cannot close the group that anchors it.
        parse(pattern).map_err(refused)?;
        let anchored = format!("^(?:{pattern})$");
        parse(&anchored)
            .and_then(|hir| check_size(&hir))
            .map_err(refused)?;
        Ok(Self {
            anchored,
            compiled: OnceLock::new(),
        })
    }

    fn is_match(&self, subject: &str) -> bool {
        if let Some(compiled) = self.compiled.get() {
            return compiled.is_match(subject);
        }
        let compiled = RegexBuilder::new(&self.anchored)
            .dot_matches_new_line(true)
            .size_limit(PATTERN_SIZE_LIMIT * 4)
            .build();
        match compiled {
            Ok(compiled) => self.compiled.get_or_init(|| compiled).is_match(subject),
            // It passed the check, so this does not happen; if it did, a guard that runs too often is the safe side.
            Err(_) => true,
        }
    }
}

fn parse(pattern: &str) -> Result<Hir, regex::Error> {
    let syntax = syntax::Config::new().dot_matches_new_line(true);
    syntax::parse_with(pattern, &syntax).map_err(|error| regex::Error::Syntax(error.to_string()))
}

/// Checks that an expression is not too large, without making the parts that only make it fast.
fn check_size(hir: &Hir) -> Result<(), regex::Error> {
    let size = thompson::Config::new().nfa_size_limit(Some(PATTERN_SIZE_LIMIT));
    let built = NFA::compiler().configure(size).build_from_hir(hir);
    built.map(drop).map_err(|error| match error.size_limit() {
        Some(limit) => regex::Error::CompiledTooBig(limit),
        None => regex::Error::Syntax(error.to_string()),
    })
}

/// The text is no matcher.
#[derive(Debug, Error)]
#[error("invalid matcher `{matcher}`")]
pub struct MatcherError {
    /// What was given.
    pub matcher: String,
    /// What is wrong with it.
    #[source]
    pub source: Box<regex::Error>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_test_the_whole_subject() {
        for (matcher, subject, expected) in [
            // D-2, D-3
            ("", "shell", true),
            ("*", "shell", true),
            ("shell", "shell", true),
            ("shell", "shell_job", false),
            ("shell", "Shell", false),
            ("shell|edit_file", "edit_file", true),
            ("shell|edit_file", "edit_file2", false),
            ("mcp__.*", "mcp__git__log", true),
            ("mcp__.*", "a_mcp__git", false),
            ("mcp:.*", "mcp:x", true),
            ("(read|write)_file", "write_file", true),
            ("read|write.*", "write_file", true),
            ("read|write.*", "xread", false),
            ("^shell$", "shell", true),
            ("s.*l", "shell\\n", false),
            (".*", "a\\nb", true),
        ] {
            let compiled = Matcher::parse(matcher).expect(matcher);
            assert_eq!(
                compiled.matches(Some(subject)),
                expected,
                "`{matcher}` on `{subject}`"
            );
        }
    }

    #[test]
    fn an_event_without_a_subject_matches_as_the_empty_text() {
        assert!(Matcher::everything().matches(None));
        assert!(Matcher::parse(".*").unwrap().matches(None));
        assert!(!Matcher::parse("shell").unwrap().matches(None));
    }

    #[test]
    fn texts_that_are_no_expressions_are_refused() {
        for matcher in [
            "[",
            "*foo",
            "a)|(b",
            "(?=x)",
            "(a)\\1",
            "a{1000}{1000}{1000}",
        ] {
            assert!(Matcher::parse(matcher).is_err(), "{matcher}");
        }
    }
}
