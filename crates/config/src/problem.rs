//! What is wrong with a file: for people with the line it stands on, for programs as JSON.

mod render;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::broken::BrokenSource;
use crate::source::{Place, Source, Span};

/// How much a problem matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// No hook of the file is loaded.
    Error,
    /// The hooks are loaded; one of them may not do what its author wants.
    Warning,
}

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// How much it matters.
    pub severity: Severity,
    /// The file.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// Where in the file; `None` is the file as a whole.
    #[serde(flatten)]
    pub place: Option<Place>,
    /// What was found.
    pub message: String,
    /// What is allowed there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<String>,
    /// What the author may have meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// What the system says where the file cannot be read at all. The message has it too.
    #[serde(skip)]
    pub cause: Option<String>,
    /// The whole text, which the problems of a file share.
    #[serde(skip)]
    text: Arc<str>,
}

impl Problem {
    pub(crate) fn new(
        severity: Severity,
        source: &Source,
        span: Option<Span>,
        message: String,
    ) -> Self {
        let place = span.map(|span| source.place(span));
        Self {
            severity,
            path: source.path().to_owned(),
            place,
            message,
            allowed: None,
            suggestion: None,
            hint: None,
            cause: None,
            text: source.shared_text(),
        }
    }

    /// Returns the path as a terminal can show it: a name may hold anything.
    fn shown_path(&self) -> String {
        let path = self.path.display().to_string();
        if path.chars().any(char::is_control) {
            path.escape_debug().to_string()
        } else {
            path
        }
    }

    #[must_use]
    pub(crate) fn allowed(self, allowed: impl Into<String>) -> Self {
        Self {
            allowed: Some(allowed.into()),
            ..self
        }
    }

    #[must_use]
    pub(crate) fn suggestion(self, suggestion: Option<impl Into<String>>) -> Self {
        Self {
            suggestion: suggestion.map(Into::into),
            ..self
        }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.shown_path())?;
        if let Some(place) = self.place {
            write!(f, "{}:{}:", place.line, place.column)?;
        }
        write!(f, " {}", self.message)
    }
}

fn lossy<S: Serializer>(path: &std::path::Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// Sources of hooks that are in force and cannot be loaded, with everything that is wrong with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}", self.summary())]
pub struct LoadError {
    /// The problems, file by file and in the order of each file. Warnings are among them, also those of other files.
    pub problems: Vec<Problem>,
    /// The sources that cannot be loaded, each with its own problems.
    pub broken: Vec<BrokenSource>,
}

impl From<Vec<BrokenSource>> for LoadError {
    fn from(broken: Vec<BrokenSource>) -> Self {
        let problems = broken.iter().flat_map(|source| source.problems.clone());
        Self {
            problems: problems.collect(),
            broken,
        }
    }
}

impl LoadError {
    /// Renders every problem with the line it stands on.
    pub fn render(&self, coloured: bool) -> String {
        let problems = self.problems.iter().map(|problem| problem.render(coloured));
        problems.collect::<Vec<_>>().join("\n\n")
    }

    fn summary(&self) -> String {
        let errors = self
            .problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error);
        let mut paths: Vec<_> = errors.clone().map(|problem| &problem.path).collect();
        paths.dedup();
        let count = match errors.count() {
            1 => "1 problem".to_owned(),
            count => format!("{count} problems"),
        };
        match paths.as_slice() {
            [path] => format!("{count} in `{}`", path.display()),
            paths => format!("{count} in {} files", paths.len()),
        }
    }
}
