//! Regular expressions in matchers.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::util::syntax;
use regex_syntax::hir::Hir;

use super::error::PatternError;

/// The maximum size of a compiled expression, in bytes of memory.
const PATTERN_SIZE_LIMIT: usize = 1 << 20;

/// A checked expression. It is compiled when it first runs alone, because an engine usually runs
/// many together.
#[derive(Debug)]
pub(in crate::matcher) struct Pattern {
    /// The expression, anchored so that it matches a whole subject.
    anchored: String,
    compiled: OnceLock<Regex>,
}

impl Pattern {
    /// Checks an expression.
    pub(in crate::matcher) fn parse(pattern: &str) -> Result<Self, PatternError> {
        let refused = |error: regex::Error| PatternError::Invalid {
            problem: error.to_string(),
        };
        // The pattern is first checked alone, so that `a)|(b` cannot close the group that anchors
        // it.
        parse(pattern).map_err(refused)?;
        let anchored = format!("^(?:{pattern})$");
        parse(&anchored)
            .and_then(|hir| check_size(&hir))
            .map_err(refused)?;
        Ok(Self {
            anchored,
            compiled: OnceLock::new(),
        })
    }

    pub(in crate::matcher) fn is_match(&self, subject: &str) -> bool {
        if let Some(compiled) = self.compiled.get() {
            return compiled.is_match(subject);
        }
        let compiled = RegexBuilder::new(&self.anchored)
            .dot_matches_new_line(true)
            .size_limit(PATTERN_SIZE_LIMIT * 4)
            .build();
        match compiled {
            Ok(compiled) => self.compiled.get_or_init(|| compiled).is_match(subject),
            // This cannot happen, because the pattern passed the check. If it did, running a guard
            // too often is safer than not running it.
            Err(_) => true,
        }
    }
}

/// Expressions that are run together as one automaton.
#[derive(Debug)]
pub(in crate::matcher) struct PatternSet(RegexSet);

impl PatternSet {
    /// Compiles expressions into one automaton. Returns `None` if they are too large for one.
    pub(in crate::matcher) fn new<'a>(
        patterns: impl ExactSizeIterator<Item = &'a Pattern>,
    ) -> Option<Self> {
        let limit = PATTERN_SIZE_LIMIT.saturating_mul(patterns.len());
        let set = RegexSetBuilder::new(patterns.map(|pattern| &pattern.anchored))
            .dot_matches_new_line(true)
            .size_limit(limit)
            .build();
        set.ok().map(Self)
    }

    /// Returns the positions of the expressions that match.
    pub(in crate::matcher) fn matches(&self, subject: &str) -> impl Iterator<Item = usize> {
        // Most subjects match no expression. This check is faster than finding out which
        // expressions match.
        let is_match = self.0.is_match(subject);
        let matched = is_match.then(|| self.0.matches(subject));
        matched.into_iter().flatten()
    }
}

fn parse(pattern: &str) -> Result<Hir, regex::Error> {
    let syntax = syntax::Config::new().dot_matches_new_line(true);
    syntax::parse_with(pattern, &syntax).map_err(|error| regex::Error::Syntax(error.to_string()))
}

/// Checks the size of an expression without compiling the parts that only make it faster.
fn check_size(hir: &Hir) -> Result<(), regex::Error> {
    let size = thompson::Config::new().nfa_size_limit(Some(PATTERN_SIZE_LIMIT));
    let built = NFA::compiler().configure(size).build_from_hir(hir);
    built.map(drop).map_err(|error| match error.size_limit() {
        Some(limit) => regex::Error::CompiledTooBig(limit),
        None => regex::Error::Syntax(error.to_string()),
    })
}
