//! Why a text of settings cannot be changed.

use crate::splice::position;

/// Why settings cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// The text does not parse.
    #[error("line {line}, column {column}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong.
        problem: String,
    },
    /// A key has a value of another type than the agent expects.
    #[error("line {line}: {key} is {found}, expected {expected}")]
    Shape {
        /// The line, from 1.
        line: usize,
        /// The key, in backquotes, or `the file`.
        key: String,
        /// What was found.
        found: &'static str,
        /// What was expected.
        expected: &'static str,
    },
    /// A key occurs twice, so it is unclear which of them the agent reads.
    #[error("line {line}: key `{key}` occurs twice")]
    Twice {
        /// The line of the second occurrence, from 1.
        line: usize,
        /// The key.
        key: String,
    },
    /// The changed text would not mean what it should.
    #[error("an unusual notation in this file keeps {what}")]
    Unsafe {
        /// What could not be done: `the entries from being added`.
        what: &'static str,
    },
}

impl EditError {
    /// Creates the error of a text that does not parse, with the position of an offset.
    pub(crate) fn syntax(text: &str, offset: usize, problem: impl Into<String>) -> Self {
        let (line, column) = position(text, offset);
        Self::Syntax {
            line,
            column,
            problem: problem.into(),
        }
    }

    /// Creates the error of a value with the wrong type.
    pub(crate) fn shape(
        text: &str,
        offset: usize,
        keys: &[&str],
        found: &'static str,
        expected: &'static str,
    ) -> Self {
        let key = match keys {
            [] => "the file".to_owned(),
            keys => format!("`{}`", keys.join(".")),
        };
        Self::Shape {
            line: position(text, offset).0,
            key,
            found,
            expected,
        }
    }
}
