//! Many matchers tested at once: what a new subject costs does not grow with their number.

use std::collections::HashMap;

use regex::RegexSet;

use super::{Matcher, PATTERN_SIZE_LIMIT, Test};

/// How many expressions are compiled into one automaton. Larger ones are faster to run and slower to make.
const PATTERNS_AT_ONCE: usize = 512;

/// Where the matchers of a text stand.
type Positions = HashMap<Box<str>, Vec<usize>>;

/// Matchers by what they look for, each known by its position.
#[derive(Debug, Default)]
pub(crate) struct MatcherIndex {
    everything: Vec<usize>,
    words: Positions,
    /// By length in bytes.
    prefixes: Vec<(usize, Positions)>,
    patterns: Vec<Patterns>,
}

/// Expressions that are run together.
#[derive(Debug)]
struct Patterns {
    /// `None` where they do not fit into one automaton; then each is run alone.
    set: Option<RegexSet>,
    members: Vec<(usize, Matcher)>,
}

impl MatcherIndex {
    /// Compiles matchers; each is known by its place among them.
    pub(crate) fn new<'a>(matchers: impl IntoIterator<Item = &'a Matcher>) -> Self {
        let mut index = Self::default();
        let mut patterns = Vec::new();
        for (position, matcher) in matchers.into_iter().enumerate() {
            match &matcher.test {
                Test::Everything => index.everything.push(position),
                Test::Words(words) => {
                    for word in words {
                        let positions = index.words.entry(word.clone()).or_default();
                        if positions.last() != Some(&position) {
                            positions.push(position);
                        }
                    }
                }
                Test::Prefix(prefix) => index.add_prefix(prefix, position),
                Test::Pattern(_) => patterns.push((position, matcher.clone())),
            }
        }
        let chunks = patterns.chunks(PATTERNS_AT_ONCE);
        index.patterns = chunks.map(Patterns::new).collect();
        index
    }

    fn add_prefix(&mut self, prefix: &str, position: usize) {
        let place = self
            .prefixes
            .iter()
            .position(|(length, _)| *length == prefix.len());
        let place = place.unwrap_or_else(|| {
            self.prefixes.push((prefix.len(), HashMap::new()));
            self.prefixes.len() - 1
        });
        if let Some((_, positions)) = self.prefixes.get_mut(place) {
            positions.entry(prefix.into()).or_default().push(position);
        }
    }

    /// Returns the positions of the matchers that match, lowest first. An event without a subject has the empty one.
    pub(crate) fn select(&self, subject: Option<&str>) -> Vec<usize> {
        let subject = subject.unwrap_or_default();
        let mut selected = self.everything.clone();
        selected.extend(self.words.get(subject).into_iter().flatten());
        for (length, positions) in &self.prefixes {
            let prefix = subject.get(..*length);
            let found = prefix.and_then(|prefix| positions.get(prefix));
            selected.extend(found.into_iter().flatten());
        }
        for patterns in &self.patterns {
            patterns.select(subject, &mut selected);
        }
        selected.sort_unstable();
        selected
    }
}

impl Patterns {
    fn new(members: &[(usize, Matcher)]) -> Self {
        let texts = members.iter().filter_map(|(_, matcher)| matcher.anchored());
        let limit = PATTERN_SIZE_LIMIT.saturating_mul(members.len());
        let set = regex::RegexSetBuilder::new(texts)
            .dot_matches_new_line(true)
            .size_limit(limit)
            .build();
        Self {
            set: set.ok(),
            members: members.to_vec(),
        }
    }

    fn select(&self, subject: &str, selected: &mut Vec<usize>) {
        if let Some(set) = &self.set {
            // Most subjects match no expression, which is known sooner than which ones match.
            if !set.is_match(subject) {
                return;
            }
            let matched = set.matches(subject).into_iter();
            let found = matched.filter_map(|at| self.members.get(at));
            selected.extend(found.map(|(position, _)| *position));
            return;
        }
        let matched = self.members.iter();
        let matched = matched.filter(|(_, matcher)| matcher.matches(Some(subject)));
        selected.extend(matched.map(|(position, _)| *position));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_index_selects_what_each_matcher_matches(
            matchers in proptest::collection::vec("(\\*|[a-c]{1,3}(\\|[a-c]{1,2}){0,2}|[a-c_]{1,2}\\.\\*|(a|b)[bc]+|[ab]?c)", 0..40),
            subject in "[a-c_é]{0,4}",
        ) {
            let matchers: Vec<Matcher> = matchers.iter().map(|text| Matcher::parse(text).unwrap()).collect();
            let index = MatcherIndex::new(&matchers);
            let expected: Vec<usize> = (0..matchers.len())
                .filter(|at| matchers[*at].matches(Some(&subject)))
                .collect();
            prop_assert_eq!(index.select(Some(&subject)), expected);
        }
    }

    #[test]
    fn expressions_of_more_than_one_automaton_are_all_asked() {
        let matchers: Vec<Matcher> = (0..=PATTERNS_AT_ONCE * 2)
            .map(|number| Matcher::parse(&format!("(x|y){number}")).unwrap())
            .collect();
        let index = MatcherIndex::new(&matchers);
        assert_eq!(index.select(Some("x1024")), [1024]);
        assert_eq!(index.select(Some("y0")), [0]);
        assert!(index.select(Some("z0")).is_empty());
    }
}
