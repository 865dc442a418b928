//! Problems with a file. People see them with the line they are on, and programs get them as JSON.

mod render;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::source::{Position, SourceText, Span};

/// How serious a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No hook of the file is loaded.
    Error,
    /// The hooks are loaded, but one of them may not do what its author wants.
    Warning,
}

/// One problem with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How serious it is.
    pub severity: Severity,
    /// The path of the file.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Where in the file; `None` if the problem concerns the file as a whole.
    #[serde(flatten)]
    pub position: Option<Position>,
    /// The message: what is wrong.
    pub message: String,
    /// What is allowed instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// What the author may have meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The operating system's error if the file cannot be read. The message contains it too.
    #[serde(skip)]
    pub cause: Option<String>,
    /// The whole text of the file, shared by all of its problems.
    #[serde(skip)]
    text: Arc<str>,
}

impl Problem {
    /// Creates a problem of a file. Without a span, it concerns the file as a whole.
    pub fn new(
        severity: Severity,
        source: &SourceText,
        span: Option<Span>,
        message: String,
    ) -> Self {
        let position = span.map(|span| source.position(span));
        Self {
            severity,
            path: source.path().to_owned(),
            position,
            message,
            allowed: None,
            suggestion: None,
            hint: None,
            cause: None,
            text: source.shared_text(),
        }
    }

    /// Returns the path with control characters escaped, because a file name could contain terminal escapes.
    fn shown_path(&self) -> String {
        let path = self.path.display().to_string();
        if path.chars().any(char::is_control) {
            path.escape_debug().to_string()
        } else {
            path
        }
    }

    /// Adds what is allowed there.
    #[must_use]
    pub fn allowed(self, allowed: impl Into<String>) -> Self {
        Self {
            allowed: Some(allowed.into()),
            ..self
        }
    }

    /// Adds what the author may have meant.
    #[must_use]
    pub fn suggestion(self, suggestion: Option<impl Into<String>>) -> Self {
        Self {
            suggestion: suggestion.map(Into::into),
            ..self
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.shown_path())?;
        if let Some(position) = self.position {
            write!(f, "{}:{}:", position.line, position.column)?;
        }
        write!(f, " {}", self.message)
    }
}

pub(crate) fn lossy<S: Serializer>(
    path: &std::path::Path,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}
