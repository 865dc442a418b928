//! Sources of hooks that are in force and cannot be loaded.
//!
//! Every loader reports what it cannot load as a [`BrokenSource`]. A guard that cannot be loaded has failed, so
//! functions that return hooks return an error instead, unless the caller asks for the rest.

use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use tenterhook::Layer;

use crate::load;
use crate::problem::{Problem, Severity};
use crate::source::{Source, Span};

/// A source of hooks that is in force and cannot be loaded: a hook file, a file of a hooks folder, or a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenSource {
    /// The file or folder.
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    /// The layer that its hooks would belong to.
    pub layer: Layer,
    /// The hook system that it is written for: `tenterhook`, `docker-agent`, `kodelet`, `operator`, `morphix` or `pi`.
    pub system: &'static str,
    /// What is wrong with it, in the order of the file. Warnings are among the problems.
    pub problems: Vec<Problem>,
}

impl BrokenSource {
    /// Makes a broken source of one fault.
    pub(crate) fn of(path: &Path, layer: Layer, system: &'static str, fault: Fault) -> Self {
        Self {
            path: path.to_owned(),
            layer,
            system,
            problems: vec![fault.into_problem(path)],
        }
    }

    /// Returns the error that counts most: the first one.
    pub fn first_error(&self) -> Option<&Problem> {
        let mut problems = self.problems.iter();
        problems.find(|problem| problem.severity == Severity::Error)
    }
}

fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

/// What is wrong with a source, and where, before its text is at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) place: FaultPlace,
    pub(crate) allowed: Option<String>,
    pub(crate) suggestion: Option<String>,
    pub(crate) hint: Option<String>,
}

/// Where a fault is in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum FaultPlace {
    /// The file as a whole.
    #[default]
    File,
    /// A line, from 1.
    Line(usize),
    /// The first text that reads so, a quoted one if there is one.
    Quoted(String),
}

impl<T: Into<String>> From<T> for Fault {
    fn from(message: T) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

impl Fault {
    /// Reads what a worker says of a script. It begins with `FILE:LINE: ` where the line is known.
    pub(crate) fn of_script(path: &Path, said: &str) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(rest) = said
            .strip_prefix(&*name)
            .and_then(|it| it.strip_prefix(':'))
        else {
            return said.into();
        };
        let rest = rest.trim_start();
        let (start, message) = rest.split_once(':').unwrap_or(("", rest));
        if let Ok(line) = start.parse() {
            return Self {
                place: FaultPlace::Line(line),
                ..message.trim_start().into()
            };
        }
        // What takes the types out of TypeScript says the line behind the kind of the error.
        let (line, message) = message.trim_start().split_once(": ").unwrap_or_default();
        match line
            .strip_prefix("line ")
            .and_then(|line| line.parse().ok())
        {
            Some(line) => Self {
                place: FaultPlace::Line(line),
                ..format!("{start}: {message}").into()
            },
            None => rest.into(),
        }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self {
            hint: Some(hint.into()),
            ..self
        }
    }

    /// Makes a problem of a file. The file is read again to show the line.
    pub(crate) fn into_problem(self, path: &Path) -> Problem {
        let text = match self.place {
            FaultPlace::File => None,
            FaultPlace::Line(_) | FaultPlace::Quoted(_) => load::read(path).ok(),
        };
        let span = text.as_deref().and_then(|text| self.place.span(text));
        let source = Source::new(path, text.as_deref().unwrap_or_default());
        let mut problem = Problem::new(Severity::Error, &source, span, self.message);
        problem.allowed = self.allowed;
        problem.suggestion = self.suggestion;
        problem.hint = self.hint;
        problem
    }
}

impl FaultPlace {
    fn span(&self, text: &str) -> Option<Span> {
        match self {
            Self::File => None,
            Self::Line(line) => {
                let before: usize = text
                    .split_inclusive('\n')
                    .take(line - 1)
                    .map(str::len)
                    .sum();
                let line = text.get(before..)?.lines().next()?;
                let start = before + (line.len() - line.trim_start().len());
                let end = before + line.trim_end().len();
                Some((start..end.max(start + 1)).into())
            }
            Self::Quoted(word) => {
                let quoted = ["\"", "'", "`"].iter().find_map(|quote| {
                    let at = text.find(&format!("{quote}{word}{quote}"))?;
                    Some(at + 1)
                });
                let at = quoted.or_else(|| text.find(word))?;
                Some((at..at + word.len()).into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_says_is_read_with_its_line() {
        let path = Path::new("/hooks/guard.py");
        for (said, place, message) in [
            (
                "guard.py:3: SyntaxError: no",
                FaultPlace::Line(3),
                "SyntaxError: no",
            ),
            (
                "guard.ts: line 3: no",
                FaultPlace::File,
                "guard.ts: line 3: no",
            ),
            (
                "guard.py: SyntaxError: line 3: no",
                FaultPlace::Line(3),
                "SyntaxError: no",
            ),
            (
                "guard.py: TypeError: a: b",
                FaultPlace::File,
                "TypeError: a: b",
            ),
            (
                "worker `python` ended",
                FaultPlace::File,
                "worker `python` ended",
            ),
        ] {
            let fault = Fault::of_script(path, said);
            assert_eq!(
                (fault.place, fault.message.as_str()),
                (place, message),
                "{said}"
            );
        }
    }

    #[test]
    fn a_place_is_a_line_or_the_first_quoted_word() {
        let text = "a = 1\n  b = 'x'\n";
        assert_eq!(FaultPlace::Line(2).span(text), Some((8..15).into()));
        assert_eq!(FaultPlace::Line(9).span(text), None);
        assert_eq!(
            FaultPlace::Quoted("x".to_owned()).span(text),
            Some((13..14).into())
        );
        assert_eq!(FaultPlace::File.span(text), None);
    }
}
