//! Why a text of settings cannot be changed.

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
        line: usize,
        keys: &[&str],
        found: &'static str,
        expected: &'static str,
    ) -> Self {
        let key = match keys {
            [] => "the file".to_owned(),
            keys => format!("`{}`", keys.join(".")),
        };
        Self::Shape {
            line,
            key,
            found,
            expected,
        }
    }
}

/// Returns the line and the column of a position, both from 1. Columns count characters.
pub(crate) fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (line, column)
}
