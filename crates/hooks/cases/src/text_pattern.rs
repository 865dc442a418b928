//! Text that a string must contain, or a regular expression that it must match.

use std::fmt;

use regex::Regex;

/// Text that a string must contain, or a regular expression between slashes, `/…/`, that it must match.
#[derive(Debug, Clone)]
pub enum TextPattern {
    /// The text must contain this one.
    Contains(String),
    /// The text must match this regular expression.
    Matches(Regex),
}

impl TextPattern {
    /// Reads a pattern in the form that test files use.
    ///
    /// # Errors
    /// Fails if the regular expression is invalid.
    pub fn parse(text: &str) -> Result<Self, regex::Error> {
        let expression = text
            .strip_prefix('/')
            .and_then(|text| text.strip_suffix('/'))
            .filter(|text| !text.is_empty());
        match expression {
            Some(expression) => Regex::new(expression).map(Self::Matches),
            None => Ok(Self::Contains(text.to_owned())),
        }
    }

    /// Returns whether a string matches.
    pub fn fits(&self, text: &str) -> bool {
        match self {
            Self::Contains(part) => text.contains(part),
            Self::Matches(expression) => expression.is_match(text),
        }
    }
}

impl fmt::Display for TextPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Contains(part) => write!(f, "text that contains {part:?}"),
            Self::Matches(expression) => write!(f, "text that matches /{expression}/"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_a_part_or_a_regular_expression() {
        for (pattern, text, fits) in [
            ("sudo", "no sudo here", true),
            ("sudo", "no root here", false),
            ("/^no (sudo|root)/", "no root here", true),
            ("/^sudo$/", "no sudo", false),
            ("/", "a/b", true),
            ("//", "a//b", true),
        ] {
            assert_eq!(
                TextPattern::parse(pattern).unwrap().fits(text),
                fits,
                "{pattern} {text}"
            );
        }
        assert!(TextPattern::parse("/(/").is_err());
    }
}
