//! The errors of regular expressions in matchers.

use thiserror::Error;

/// Why text that is neither a list of names nor a prefix is not a valid matcher.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PatternError {
    /// The regular expression is invalid or too large.
    #[error("{problem}")]
    Invalid {
        /// What is wrong with it.
        problem: String,
    },
    /// The feature `regex` is disabled.
    #[error(
        "it is a regular expression, but this program was built without the feature `regex` of `tenterhook`; use names such as `a|b` or a prefix such as `mcp__.*`"
    )]
    NotCompiledIn,
}
