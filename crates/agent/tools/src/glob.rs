//! The patterns in rules: `*` matches any text, `?` matches one character, and every other
//! character matches itself.

use std::fmt;

/// A pattern that matches a whole string. Nothing can be escaped.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Glob(Vec<char>);

impl Glob {
    pub(crate) fn new(pattern: &str) -> Self {
        Self(pattern.chars().collect())
    }

    /// Returns the whole words before the first wildcard.
    pub(crate) fn literal_words(&self) -> String {
        let is_wildcard = |character: &&char| ['*', '?'].contains(*character);
        let literal: String = self.0.iter().take_while(|c| !is_wildcard(c)).collect();
        if literal.chars().count() == self.0.len() {
            return literal;
        }
        let end = literal.rfind(char::is_whitespace).unwrap_or(0);
        literal.get(..end).unwrap_or_default().to_owned()
    }

    /// Reports whether the pattern matches all of `text`, in time proportional to the length of text times pattern.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut in_pattern) = (0, 0);
        // Where to resume if the text after the last star does not match: one character further.
        let mut retry: Option<(usize, usize)> = None;
        while let Some(&character) = text.get(at) {
            match self.0.get(in_pattern) {
                Some('*') => {
                    retry = Some((in_pattern + 1, at));
                    in_pattern += 1;
                }
                Some(&expected) if expected == '?' || expected == character => {
                    at += 1;
                    in_pattern += 1;
                }
                _ => {
                    let Some((after_star, from)) = retry else {
                        return false;
                    };
                    retry = Some((after_star, from + 1));
                    in_pattern = after_star;
                    at = from + 1;
                }
            }
        }
        self.0.iter().skip(in_pattern).all(|rest| *rest == '*')
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|character| write!(f, "{character}"))
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_and_question_marks_stand_for_text() {
        for (pattern, text, expected) in [
            ("git *", "git status", true),
            ("git *", "git", false),
            ("git *", "legit status", false),
            ("*", "", true),
            ("*.rs", "src/a.rs", true),
            ("*.rs", "src/a.rs.bak", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("?", "é", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b*", "xxbxxaxx", false),
            ("a*", "a\nb", true),
            ("", "", true),
            ("", "a", false),
            ("[a]", "[a]", true),
        ] {
            assert_eq!(
                Glob::new(pattern).matches(text),
                expected,
                "{pattern} on {text}"
            );
        }
    }

    #[test]
    fn many_stars_cost_no_exponential_time() {
        let pattern = "*a".repeat(50);
        assert!(!Glob::new(&format!("{pattern}b")).matches(&"a".repeat(5000)));
    }
}
