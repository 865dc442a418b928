//! The position of a secret in text.

use std::ops::Range;

/// A secret in text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Its position in bytes, on character boundaries.
    pub range: Range<usize>,
    /// The rule that found it: `github-pat`, `private-key` …
    pub rule: &'static str,
}
