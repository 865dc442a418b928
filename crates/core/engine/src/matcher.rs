//! Selects the events that a hook is for.

mod index;
mod pattern;

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

pub(crate) use index::MatcherIndex;
use pattern::Pattern;
pub use pattern::PatternError;

/// A test of an event's whole subject (the tool's name, the source, the reason …), compiled once.
///
/// | written | matches |
/// |---|---|
/// | nothing, an empty string or `*` | everything |
/// | words of letters, digits, `_` and `-`, separated by a vertical bar | exactly these words |
/// | one such word, which may also contain `:`, followed by `.*` | every subject that starts with the word |
/// | anything else | as a regular expression for the whole subject; requires the feature `regex` |
///
/// Matching takes time linear in the length of the subject, because expressions support neither
/// look-around nor back-references.
///
/// ```
/// use tenterhook_engine::Matcher;
///
/// let writes = Matcher::parse("write_file|edit_file")?;
/// assert!(writes.matches(Some("edit_file")));
/// assert!(!writes.matches(Some("edit_file_again")));
///
/// let of_server = Matcher::parse("mcp__git__.*")?;
/// assert!(of_server.matches(Some("mcp__git__log")));
/// # Ok::<(), tenterhook_engine::MatcherError>(())
/// ```
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

impl Matcher {
    /// Returns a matcher that matches everything.
    pub const fn everything() -> Self {
        Self {
            text: String::new(),
            test: Test::Everything,
        }
    }

    /// Compiles a matcher.
    ///
    /// # Errors
    /// Fails if `text` is not a valid regular expression, if it compiles to more than 1 MiB, or if
    /// it is a regular expression and the feature `regex` is disabled.
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
                None => Test::Pattern(Arc::new(Pattern::parse(text).map_err(|source| {
                    MatcherError {
                        matcher: text.to_owned(),
                        source,
                    }
                })?)),
            },
        };
        Ok(Self {
            text: text.to_owned(),
            test: compiled,
        })
    }

    /// Sets the text that people see, for a matcher that its author wrote in another form.
    #[must_use]
    pub fn shown_as(self, text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..self
        }
    }

    /// Returns whether the matcher matches everything.
    pub fn is_everything(&self) -> bool {
        matches!(self.test, Test::Everything)
    }

    /// Returns whether `subject` matches. An event without a subject is matched like an empty
    /// string.
    pub fn matches(&self, subject: Option<&str>) -> bool {
        let subject = subject.unwrap_or_default();
        match &self.test {
            Test::Everything => true,
            Test::Words(words) => words.iter().any(|word| **word == *subject),
            Test::Prefix(prefix) => subject.starts_with(&**prefix),
            Test::Pattern(pattern) => pattern.is_match(subject),
        }
    }

    /// Returns the matcher as it was written, or an empty string if it matches everything.
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

/// The error for text that is not a valid matcher.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid matcher `{matcher}`")]
pub struct MatcherError {
    /// The text that was given.
    pub matcher: String,
    /// What is wrong with it.
    #[source]
    pub source: PatternError,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "regex")]
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
        assert!(Matcher::parse("*").unwrap().matches(None));
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

    #[cfg(not(feature = "regex"))]
    #[test]
    fn without_expressions_names_and_prefixes_match_and_expressions_are_refused() {
        let names = Matcher::parse("shell|edit_file").unwrap();
        assert!(names.matches(Some("shell")) && !names.matches(Some("shell_job")));
        let prefix = Matcher::parse("mcp__git__.*").unwrap();
        assert!(prefix.matches(Some("mcp__git__log")) && !prefix.matches(Some("shell")));
        for expression in ["(read|write)_file", "shell.?", "^shell$"] {
            let error = Matcher::parse(expression).unwrap_err();
            assert_eq!(error.source, PatternError::NotCompiledIn, "{expression}");
            assert!(
                error
                    .source
                    .to_string()
                    .contains("feature `regex` of `tenterhook`")
            );
        }
    }
}
