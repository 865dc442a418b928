//! The errors of templates, with their positions.

use thiserror::Error;

/// An error in a template, with its position.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message} (line {line}, column {column})")]
pub struct TemplateError {
    /// What was found.
    pub message: String,
    /// What is allowed there.
    pub allowed: Option<String>,
    /// The byte offset in the template.
    pub offset: usize,
    /// The line, starting at 1.
    pub line: usize,
    /// The column in characters, starting at 1.
    pub column: usize,
}

/// An error in a template, before its line and column are computed.
#[derive(Debug)]
pub(super) struct UnlocatedError {
    pub(super) offset: usize,
    pub(super) message: String,
    pub(super) allowed: Option<String>,
}

impl UnlocatedError {
    pub(super) fn new(offset: usize, message: impl Into<String>) -> Self {
        Self {
            offset,
            message: message.into(),
            allowed: None,
        }
    }

    pub(super) fn allowed(self, allowed: impl Into<String>) -> Self {
        Self {
            allowed: Some(allowed.into()),
            ..self
        }
    }

    pub(super) fn placed(self, source: &str) -> TemplateError {
        let offset = source.floor_char_boundary(self.offset.min(source.len()));
        let (line, column) = place(source, offset);
        TemplateError {
            message: self.message,
            allowed: self.allowed,
            offset,
            line,
            column,
        }
    }
}

/// Returns the line and the column of a byte offset, both starting at 1.
pub(super) fn place(source: &str, offset: usize) -> (usize, usize) {
    let before = source.get(..offset).unwrap_or_default();
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before.get(start..).unwrap_or_default().chars().count();
    (before.matches('\n').count() + 1, column + 1)
}
