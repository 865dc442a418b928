//! A problem with a source of hooks, found by code that does not have the text of the file.

use std::path::Path;

use crate::file_text;
use crate::problem::{Problem, Severity};
use crate::source::{SourceText, Span};

/// A problem with a source of hooks, found by code that does not have the text of the file.
///
/// [`SourceProblem::into_problem`] turns it into a [`Problem`] that shows the line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceProblem {
    /// The message: what is wrong.
    pub message: String,
    /// Where it is in the file.
    pub position: ProblemPosition,
    /// What is allowed instead.
    pub allowed: Option<String>,
    /// What the author may have meant.
    pub suggestion: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// Where a problem is in its file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ProblemPosition {
    /// The file as a whole.
    #[default]
    File,
    /// A line, from 1.
    Line(usize),
    /// The first occurrence of this text in quotes, or else its first occurrence.
    Quoted(String),
}

impl<T: Into<String>> From<T> for SourceProblem {
    fn from(message: T) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

impl SourceProblem {
    /// Parses the error that a worker reports for a script. It starts with `FILE:LINE: ` if the line is known.
    pub fn of_script(path: &Path, error: &str) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(rest) = error
            .strip_prefix(&*name)
            .and_then(|it| it.strip_prefix(':'))
        else {
            return error.into();
        };
        let rest = rest.trim_start();
        let (start, message) = rest.split_once(':').unwrap_or(("", rest));
        if let Ok(line) = start.parse() {
            return Self {
                position: ProblemPosition::Line(line),
                ..message.trim_start().into()
            };
        }
        // The TypeScript type stripper puts the line after the kind of the error: `SyntaxError: line 3: …`.
        let (line, message) = message.trim_start().split_once(": ").unwrap_or_default();
        match line
            .strip_prefix("line ")
            .and_then(|line| line.parse().ok())
        {
            Some(line) => Self {
                position: ProblemPosition::Line(line),
                ..format!("{start}: {message}").into()
            },
            None => rest.into(),
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

    /// Returns the problem as one of the file at `path`. Reads the file again to show the line.
    pub fn into_problem(self, path: &Path) -> Problem {
        self.into_problem_of_copy(path, path)
    }

    /// Returns the problem of a copy of the file at `path`. Shows the line of the copy, because the
    /// file may have other lines by now.
    pub fn into_problem_of_copy(self, path: &Path, copy: &Path) -> Problem {
        let text = match self.position {
            ProblemPosition::File => None,
            ProblemPosition::Line(_) | ProblemPosition::Quoted(_) => file_text::read(copy),
        };
        let span = text.as_deref().and_then(|text| self.position.span(text));
        let source = SourceText::new(path, text.as_deref().unwrap_or_default());
        let mut problem = Problem::new(Severity::Error, &source, span, self.message);
        problem.allowed = self.allowed;
        problem.suggestion = self.suggestion;
        problem.hint = self.hint;
        problem
    }
}

impl ProblemPosition {
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
                ProblemPosition::Line(3),
                "SyntaxError: no",
            ),
            (
                "guard.ts: line 3: no",
                ProblemPosition::File,
                "guard.ts: line 3: no",
            ),
            (
                "guard.py: SyntaxError: line 3: no",
                ProblemPosition::Line(3),
                "SyntaxError: no",
            ),
            (
                "guard.py: TypeError: a: b",
                ProblemPosition::File,
                "TypeError: a: b",
            ),
            (
                "worker `python` ended",
                ProblemPosition::File,
                "worker `python` ended",
            ),
        ] {
            let problem = SourceProblem::of_script(path, said);
            assert_eq!(
                (problem.position, problem.message.as_str()),
                (place, message),
                "{said}"
            );
        }
    }

    #[test]
    fn a_place_is_a_line_or_the_first_quoted_word() {
        let text = "a = 1\n  b = 'x'\n";
        assert_eq!(ProblemPosition::Line(2).span(text), Some((8..15).into()));
        assert_eq!(ProblemPosition::Line(9).span(text), None);
        assert_eq!(
            ProblemPosition::Quoted("x".to_owned()).span(text),
            Some((13..14).into())
        );
        assert_eq!(ProblemPosition::File.span(text), None);
    }
}
