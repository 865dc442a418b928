//! Collects the problems of one file while it is read.

use crate::problem::{Problem, Severity};
use crate::source::{SourceText, Span};
use crate::suggest::nearest;

/// How many errors are kept per file, and how many warnings. A file with an error on every line would
/// flood the output.
const LIMIT: usize = 200;

/// The problems of one file.
#[derive(Debug)]
pub struct Report {
    source: SourceText,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl Report {
    /// Creates an empty report for a file.
    pub fn new(source: SourceText) -> Self {
        Self {
            source,
            errors: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Returns the path and the text of the file.
    pub fn source(&self) -> &SourceText {
        &self.source
    }

    /// Creates an error. Use [`Report::add`] to add it to the report.
    pub fn problem(&self, span: Span, message: impl Into<String>) -> Problem {
        self.make(Severity::Error, span, message.into())
    }

    /// Creates a warning. Use [`Report::add`] to add it to the report.
    pub fn warning(&self, span: Span, message: impl Into<String>) -> Problem {
        self.make(Severity::Warning, span, message.into())
    }

    fn make(&self, severity: Severity, span: Span, message: String) -> Problem {
        // Computing a position takes time, so skip it for a problem that will not be kept.
        let is_kept = self.problems(severity).len() < LIMIT;
        Problem::new(severity, &self.source, is_kept.then_some(span), message)
    }

    fn problems(&self, severity: Severity) -> &Vec<Problem> {
        match severity {
            Severity::Error => &self.errors,
            Severity::Warning => &self.warnings,
        }
    }

    /// Returns whether the report has reached its limit of errors, so that it ignores further errors.
    pub fn is_full(&self) -> bool {
        self.errors.len() > LIMIT
    }

    /// Returns the candidate that is most similar to `found`, or `None` if the report is full.
    pub fn nearest<'a>(
        &self,
        found: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if self.is_full() {
            return None;
        }
        nearest(found, candidates)
    }

    /// Adds a problem. The first problem beyond the limit is replaced with a note that there are
    /// more.
    pub fn add(&mut self, problem: Problem) {
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

    /// Returns whether the file has errors. If so, none of its hooks can be used.
    pub fn has_errors(&self) -> bool {
        !self.errors.is_empty()
    }

    /// Returns the problems in the order of the file.
    pub fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.errors;
        problems.extend(self.warnings);
        problems.sort_by_key(|problem| {
            let start = problem.position.map(|position| position.span.start);
            start.unwrap_or(usize::MAX)
        });
        problems
    }
}
