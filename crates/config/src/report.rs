//! The problems of one file, collected while it is read.

use crate::problem::{Problem, Severity};
use crate::source::{Source, Span};
use crate::suggest::nearest;

/// How many errors of a file are kept, and how many warnings: a file that is wrong on every line says so once.
const LIMIT: usize = 200;

#[derive(Debug)]
pub(crate) struct Report {
    source: Source,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Report {
    pub(crate) fn new(source: Source) -> Self {
        Self {
            source,
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Makes an error, for [`Report::add`].
    pub(crate) fn problem(&self, span: Span, message: impl Into<String>) -> Problem {
        self.make(Severity::Error, span, message.into())
    }

    /// Makes a warning, for [`Report::add`].
    pub(crate) fn warning(&self, span: Span, message: impl Into<String>) -> Problem {
        self.make(Severity::Warning, span, message.into())
    }

    fn make(&self, severity: Severity, span: Span, message: String) -> Problem {
        // Finding a place takes time, and one that is not kept needs none.
        let is_kept = self.problems(severity).len() < LIMIT;
        Problem::new(severity, &self.source, is_kept.then_some(span), message)
    }

    fn problems(&self, severity: Severity) -> &Vec<Problem> {
        match severity {
            Severity::Error => &self.errors,
            Severity::Warning => &self.warnings,
        }
    }

    /// Says whether a further error would not be kept.
    pub(crate) fn is_full(&self) -> bool {
        self.errors.len() > LIMIT
    }

    /// Returns the candidate that is most like `found`. Nothing is searched for a report that is full.
    pub(crate) fn nearest<'a>(
        &self,
        found: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if self.is_full() {
            return None;
        }
        nearest(found, candidates)
    }

    pub(crate) fn add(&mut self, problem: Problem) {
        let severity = problem.severity;
        let problems = match severity {
            Severity::Error => &mut self.errors,
            Severity::Warning => &mut self.warnings,
        };
        if problems.len() < LIMIT {
            problems.push(problem);
        } else if problems.len() == LIMIT {
            let message = format!("more than {LIMIT} problems; the others are not shown");
            problems.push(Problem::new(severity, &self.source, None, message));
        }
    }

    pub(crate) fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns the problems in the order of the file.
    pub(crate) fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.errors;
        problems.extend(self.warnings);
        problems.sort_by_key(|problem| {
            let place = problem.place.map(|place| place.span.start);
            place.unwrap_or(usize::MAX)
        });
        problems
    }
}
