//! The decisions that a case can expect.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A decision, in the words of test files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedDecision {
    /// The operation may happen.
    Proceed,
    /// A person has to be asked.
    Ask,
    /// The operation does not happen.
    Stop,
}

impl ExpectedDecision {
    /// The words that a test file may use for each decision. Reports use the first one.
    pub(crate) const WORDS: [(&'static str, Self); 6] = [
        ("proceed", Self::Proceed),
        ("ask", Self::Ask),
        ("stop", Self::Stop),
        ("allow", Self::Proceed),
        ("deny", Self::Stop),
        ("block", Self::Stop),
    ];
}

impl fmt::Display for ExpectedDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, decision)| decision == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}
