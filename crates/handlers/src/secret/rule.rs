//! The rules: read from the data file, their expressions compiled when they are first run.

use std::sync::OnceLock;

use regex::bytes::{Captures, Regex, RegexBuilder};
use serde::Deserialize;

use super::Secret;

/// The rule that finds what stands behind words like `password`, whatever it looks like.
pub(super) const GENERIC: &str = "generic-api-key";

/// The rules of gitleaks, unchanged.
const DATA: &str = include_str!("gitleaks.toml");

/// Rules for secrets that those of gitleaks do not find.
const OWN_DATA: &str = include_str!("own.toml");

/// The most memory that one compiled rule may take, in bytes.
const SIZE_LIMIT: usize = 32 << 20;

#[derive(Deserialize)]
struct File {
    allowlist: AllowanceData,
    rules: Vec<RuleData>,
}

#[derive(Deserialize)]
struct OwnFile {
    rules: Vec<RuleData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuleData {
    id: String,
    #[serde(default)]
    regex: String,
    path: Option<String>,
    entropy: Option<f64>,
    secret_group: Option<usize>,
    #[serde(default)]
    keywords: Vec<String>,
    #[serde(default)]
    allowlists: Vec<AllowanceData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AllowanceData {
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    regexes: Vec<String>,
    #[serde(default)]
    regex_target: Target,
    #[serde(default)]
    stopwords: Vec<String>,
}

/// What the expressions of an allowance look at.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Target {
    #[default]
    Secret,
    Match,
    Line,
}

/// One kind of secret.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) id: &'static str,
    /// One of these is in every text that the rule finds something in, in small letters.
    pub(super) words: Vec<&'static str>,
    expression: Expression,
    /// What is as regular as that or more is no secret, in bits a byte.
    entropy: f64,
    group: Option<usize>,
    allowances: Vec<Allowance>,
}

/// What looks like a secret and is none.
#[derive(Debug)]
pub(super) struct Allowance {
    expressions: Vec<Expression>,
    target: Target,
    stopwords: Vec<&'static str>,
}

/// An expression that is compiled when it is first run.
#[derive(Debug)]
struct Expression {
    text: String,
    compiled: OnceLock<Regex>,
}

/// Reads the data files: the rules, and what is allowed for all of them.
pub(super) fn rules() -> (Vec<Rule>, Allowance) {
    let (Ok(file), Ok(own)) = (
        toml::from_str::<File>(DATA),
        toml::from_str::<OwnFile>(OWN_DATA),
    ) else {
        unreachable!("the data files are part of the program, and a test reads them");
    };
    let rules = file.rules.into_iter().chain(own.rules);
    // Rules for files of a certain name say nothing of text that has none.
    let rules = rules.filter(|rule| rule.path.is_none());
    (
        rules.map(Rule::new).collect(),
        Allowance::new(file.allowlist),
    )
}

/// Keeps a text of the data file, which is read once, for as long as the process lives.
fn keep(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl Rule {
    fn new(data: RuleData) -> Self {
        // An allowance that is for files of a certain name too says nothing of text that has none.
        let allowances = data
            .allowlists
            .into_iter()
            .filter(|data| data.paths.is_empty());
        Self {
            id: keep(data.id),
            words: data.keywords.into_iter().map(keep).collect(),
            expression: Expression::new(&data.regex),
            entropy: data.entropy.unwrap_or_default(),
            group: data.secret_group,
            allowances: allowances.map(Allowance::new).collect(),
        }
    }

    /// Returns what the rule finds in a text.
    pub(super) fn find(&self, text: &str, general: &Allowance) -> Vec<Secret> {
        let found = self.expression.get().captures_iter(text.as_bytes());
        found
            .filter_map(|captures| self.secret(text, &captures, general))
            .collect()
    }

    fn secret(&self, text: &str, captures: &Captures<'_>, general: &Allowance) -> Option<Secret> {
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
            // A word without a digit is a name or prose where no form of it is known.
            || (self.id == GENERIC && !secret.iter().any(u8::is_ascii_digit));
        let line = || line_around(text.as_bytes(), whole.start(), whole.end());
        let is_allowed = self
            .allowances
            .iter()
            .chain([general])
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

/// Returns the lines that a match stands on.
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
    fn new(data: AllowanceData) -> Self {
        Self {
            expressions: data
                .regexes
                .iter()
                .map(|text| Expression::new(text))
                .collect(),
            target: data.regex_target,
            stopwords: data.stopwords.into_iter().map(keep).collect(),
        }
    }

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
    fn new(text: &str) -> Self {
        Self {
            text: from_go(text),
            compiled: OnceLock::new(),
        }
    }

    /// Returns the compiled expression.
    fn get(&self) -> &Regex {
        self.compiled.get_or_init(|| {
            let regex = RegexBuilder::new(&self.text)
                .unicode(false)
                .size_limit(SIZE_LIMIT)
                .build();
            // A rule that silently finds nothing would let secrets through.
            let Ok(regex) = regex else {
                unreachable!("the rules are part of the program, and a test compiles all of them");
            };
            regex
        })
    }
}

/// Writes an expression of Go so that it means the same here: a brace that counts nothing and a bracket within
/// brackets are characters there.
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
                // A bracket right at the beginning does not end the class.
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

/// Says whether what stands behind a brace makes it a repetition.
fn counts(behind: &str) -> bool {
    behind.split_once('}').is_some_and(|(count, _)| {
        let (least, most) = count.split_once(',').unwrap_or((count, ""));
        !least.is_empty()
            && [least, most]
                .iter()
                .all(|part| part.bytes().all(|b| b.is_ascii_digit()))
    })
}

/// Returns the entropy of a text, in bits a byte.
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
        let (rules, general) = rules();
        assert!(rules.len() > 200, "{}", rules.len());
        for rule in &rules {
            assert!(!rule.words.is_empty(), "{} has no words", rule.id);
            let allowed = rule
                .allowances
                .iter()
                .flat_map(|allowance| &allowance.expressions);
            for expression in allowed.chain([&rule.expression]) {
                // It panics on one that does not compile.
                expression.get();
            }
        }
        for expression in &general.expressions {
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
