//! Tests many matchers at once, so that the cost of a new subject does not grow with their number.

use std::collections::HashMap;
use std::sync::Arc;

use super::pattern::{Pattern, PatternSet};
use super::{Matcher, Test};

/// The number of expressions that are compiled into one automaton. Larger automata run faster and
/// take longer to compile.
const PATTERNS_AT_ONCE: usize = 512;

/// The positions of the matchers that look for the same text.
type Positions = HashMap<Box<str>, Vec<usize>>;

/// Matchers, indexed by what they look for. Each is identified by its position.
#[derive(Debug, Default)]
pub(crate) struct MatcherIndex {
    everything: Vec<usize>,
    words: Positions,
    /// Prefixes, grouped by their length in bytes.
    prefixes: Vec<(usize, Positions)>,
    patterns: Vec<Patterns>,
}

/// Expressions that are run together.
#[derive(Debug)]
struct Patterns {
    /// `None` if the expressions do not fit into one automaton. Then each is run separately.
    set: Option<PatternSet>,
    members: Vec<(usize, Arc<Pattern>)>,
}

impl MatcherIndex {
    /// Compiles matchers. Each is identified by its position in the iterator.
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
                Test::Pattern(pattern) => patterns.push((position, Arc::clone(pattern))),
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

    /// Returns the positions of the matchers that match, in ascending order. An event without a
    /// subject is matched like an empty string.
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
    fn new(members: &[(usize, Arc<Pattern>)]) -> Self {
        Self {
            set: PatternSet::new(members.iter().map(|(_, pattern)| &**pattern)),
            members: members.to_vec(),
        }
    }

    fn select(&self, subject: &str, selected: &mut Vec<usize>) {
        if let Some(set) = &self.set {
            let matched = set.matches(subject);
            let found = matched.filter_map(|at| self.members.get(at));
            selected.extend(found.map(|(position, _)| *position));
            return;
        }
        let matched = self.members.iter();
        let matched = matched.filter(|(_, pattern)| pattern.is_match(subject));
        selected.extend(matched.map(|(position, _)| *position));
    }
}

#[cfg(all(test, feature = "regex"))]
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
