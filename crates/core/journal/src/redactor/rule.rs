//! The rules: tables that `build.rs` generates from the data files, with expressions that are compiled on first use.

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};

use super::found::Secret;

/// The rule that finds any value after words like `password`.
pub(super) const GENERIC: &str = "generic-api-key";

/// The maximum amount of memory that one compiled rule may use, in bytes.
const SIZE_LIMIT: usize = 32 << 20;

/// The text that the expressions of an allowance are matched against.
#[derive(Debug, Clone, Copy)]
enum Target {
    Secret,
    Match,
    Line,
}

include!(concat!(env!("OUT_DIR"), "/secret_rules.rs"));

/// One kind of secret.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    /// Keywords in lower case. Every text in which the rule finds something contains at least one.
    pub(super) words: &'static [&'static str],
    expression: Expression,
    /// The entropy, in bits per byte, above which a match counts as a secret.
    entropy: f64,
    group: Option<usize>,
    allowances: &'static [Allowance],
}

/// A pattern of strings that look like secrets but are harmless.
#[derive(Debug)]
pub(super) struct Allowance {
    expressions: &'static [Expression],
    target: Target,
    stopwords: &'static [&'static str],
}

/// An expression that is compiled on first use.
#[derive(Debug)]
struct Expression {
    /// The expression as gitleaks writes it, in Go's syntax.
    text: &'static str,
    compiled: OnceLock<Regex>,
}

impl Rule {
    /// Returns the secrets that the rule finds in the text.
    pub(super) fn find(&self, text: &str) -> Vec<Secret> {
        let found = self.expression.get().captures_iter(text.as_bytes());
        found
            .filter_map(|captures| self.secret(text, &captures))
            .collect()
    }

    fn secret(&self, text: &str, captures: &Captures<'_>) -> Option<Secret> {
        let whole = captures.get(0)?;
        let first = || {
            captures
                .iter()
                .skip(1)
                .flatten()
                .find(|group| !group.is_empty())
        };
        let found = match self.group {
            Some(group) => captures.get(group),
            None => first(),
        };
        let found = found.unwrap_or(whole);
        let secret = found.as_bytes();
        let is_plain = entropy(secret) <= self.entropy
            // The generic rule knows no format, and a word without a digit is usually a name or prose.
            || (self.id == GENERIC && !secret.iter().any(u8::is_ascii_digit));
        let line = || line_around(text.as_bytes(), whole.start(), whole.end());
        let is_allowed = self
            .allowances
            .iter()
            .chain([&GENERAL])
            .any(|allowance| allowance.covers(secret, whole.as_bytes(), line()));
        if is_plain || is_allowed {
            return None;
        }
        Some(Secret {
            range: text.floor_char_boundary(found.start())..text.ceil_char_boundary(found.end()),
            rule: self.id,
        })
    }
}

/// Returns the lines that contain a match.
fn line_around(text: &[u8], start: usize, end: usize) -> &[u8] {
    let before = text.get(..start).unwrap_or_default();
    let start = before
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let behind = text.get(end..).unwrap_or_default();
    let end = behind
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |at| end + at);
    text.get(start..end).unwrap_or_default()
}

impl Allowance {
    fn covers(&self, secret: &[u8], whole: &[u8], line: &[u8]) -> bool {
        let looked_at = match self.target {
            Target::Secret => secret,
            Target::Match => whole,
            Target::Line => line,
        };
        let mut expressions = self.expressions.iter().map(Expression::get);
        if expressions.any(|expression| expression.is_match(looked_at)) {
            return true;
        }
        let secret = String::from_utf8_lossy(secret).to_ascii_lowercase();
        self.stopwords.iter().any(|word| secret.contains(word))
    }
}

impl Expression {
    const fn new(text: &'static str) -> Self {
        Self {
            text,
            compiled: OnceLock::new(),
        }
    }

    /// Returns the compiled expression.
    fn get(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            let regex = RegexBuilder::new(&from_go(self.text))
                .unicode(false)
                .size_limit(SIZE_LIMIT)
                .build();
            // Skipping a broken rule would let secrets through silently.
            let Ok(regex) = regex else {
                unreachable!("the rules are part of the program, and a test compiles all of them");
            };
            regex
        })
    }
}

/// Translates an expression from Go's syntax. In Go, a brace that is not a repetition and a bracket within a character
/// class are plain characters.
fn from_go(go: &str) -> String {
    let mut text = String::with_capacity(go.len());
    let mut is_class = false;
    let mut rest = go.chars();
    while let Some(character) = rest.next() {
        match character {
            '\\' => {
                text.push('\\');
                text.extend(rest.next());
                continue;
            }
            '[' if is_class && !rest.as_str().starts_with(':') => text.push('\\'),
            '[' if !is_class => {
                is_class = true;
                text.push('[');
                // A bracket at the very beginning does not end the class.
                for first in ['^', ']'] {
                    if let Some(after) = rest.as_str().strip_prefix(first) {
                        text.extend((first == ']').then_some('\\'));
                        text.push(first);
                        rest = after.chars();
                    }
                }
                continue;
            }
            ']' if is_class => is_class = false,
            '{' if !is_class && !counts(rest.as_str()) => text.push('\\'),
            _ => {}
        }
        text.push(character);
    }
    text
}

/// Reports whether the text after a brace makes it a repetition.
fn counts(behind: &str) -> bool {
    behind.split_once('}').is_some_and(|(count, _)| {
        let (least, most) = count.split_once(',').unwrap_or((count, ""));
        !least.is_empty()
            && [least, most]
                .iter()
                .all(|part| part.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Returns the entropy of a string, in bits per byte.
fn entropy(text: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in text {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let length = f64::from(u32::try_from(text.len()).unwrap_or(u32::MAX));
    let used = counts.iter().filter(|count| **count > 0);
    used.map(|count| {
        let share = f64::from(*count) / length;
        -share * share.log2()
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_expression_of_the_data_file_compiles() {
        assert!(RULES.len() > 200, "{}", RULES.len());
        for rule in &RULES {
            assert!(!rule.words.is_empty(), "{} has no words", rule.id);
            let allowed = rule
                .allowances
                .iter()
                .flat_map(|allowance| allowance.expressions);
            for expression in allowed.chain([&rule.expression]) {
                // `get` panics if an expression does not compile.
                expression.get();
            }
        }
        for expression in GENERAL.expressions {
            expression.get();
        }
    }

    #[test]
    fn expressions_of_go_keep_their_meaning() {
        for (go, here) in [
            (r"a{2,3}", r"a{2,3}"),
            (r"a{2}", r"a{2}"),
            (r"^\${(?:x)}$", r"^\$\{(?:x)}$"),
            (r"{{x", r"\{\{x"),
            (r"[[{]", r"[\[{]"),
            (r"[^]]+", r"[^\]]+"),
            (r"[[:alpha:]]", r"[[:alpha:]]"),
            (r"\[{", r"\[\{"),
        ] {
            assert_eq!(from_go(go), here);
        }
    }

    #[test]
    fn entropy_is_counted_in_bits_a_byte() {
        for (text, bits) in [("", 0.0), ("aaaa", 0.0), ("abab", 1.0), ("abcd", 2.0)] {
            assert!((entropy(text.as_bytes()) - bits).abs() < 1e-9, "{text}");
        }
    }
}
