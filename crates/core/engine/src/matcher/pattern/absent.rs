//! The replacement for regular expressions if the feature `regex` is disabled. Every text that
//! would be a regular expression is rejected.

use std::iter;

use super::error::PatternError;

/// An expression. It cannot be created.
#[derive(Debug)]
pub(in crate::matcher) enum Pattern {}

impl Pattern {
    pub(in crate::matcher) fn parse(_pattern: &str) -> Result<Self, PatternError> {
        Err(PatternError::NotCompiledIn)
    }

    pub(in crate::matcher) fn is_match(&self, _subject: &str) -> bool {
        match *self {}
    }
}

/// A set of expressions. It cannot be created.
#[derive(Debug)]
pub(in crate::matcher) enum PatternSet {}

impl PatternSet {
    pub(in crate::matcher) fn new<'a>(
        _patterns: impl ExactSizeIterator<Item = &'a Pattern>,
    ) -> Option<Self> {
        None
    }

    pub(in crate::matcher) fn matches(&self, _subject: &str) -> iter::Empty<usize> {
        match *self {}
    }
}
