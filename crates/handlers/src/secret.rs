//! Finding secrets in text, and taking them out.
//!
//! The rules are those of gitleaks (<https://github.com/gitleaks/gitleaks>, MIT licence, Copyright (c) 2019 Zachary
//! Rice), unchanged in `secret/gitleaks.toml`, and a few more in `secret/own.toml`. What is done with them is ours.
//!
//! A secret is found if it is whole. Code that shortens a text therefore cuts it with
//! [`cut`](tenterhook_process::cut), which never leaves a part of a token. The one secret that is longer than any line,
//! a private key, is also found by its first or its last line alone: see `secret/key_block.rs`.

mod journal;
mod key_block;
mod rule;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use serde_json::Value;
use tenterhook_protocol::JsonObject;

use self::rule::{Allowance, Rule, rules};

pub use self::journal::RedactingJournal;

/// Finds secrets and puts `[REDACTED:<rule>]` in their place.
///
/// A text is first searched for the words that rules name; only the rules whose words are there are run, each compiled
/// the first time that it is. A text without such a word costs one pass over it.
#[derive(Debug)]
pub struct Redactor {
    rules: Vec<Rule>,
    allowance: Allowance,
    words: AhoCorasick,
    /// The rules of each word.
    owners: Vec<Vec<usize>>,
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// Where it stands, in bytes, on boundaries of characters.
    pub range: Range<usize>,
    /// The rule that found it: `github-pat`, `private-key` …
    pub rule: &'static str,
}

impl Redactor {
    /// Returns the redactor of this process. It is made when it is first used.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Redactor> = LazyLock::new(Redactor::new);
        &SHARED
    }

    fn new() -> Self {
        let (rules, allowance) = rules();
        let mut words: Vec<&str> = Vec::new();
        let mut owners: Vec<Vec<usize>> = Vec::new();
        for (at, rule) in rules.iter().enumerate() {
            for word in &rule.words {
                let place = words.iter().position(|known| known == word);
                if let Some(rules) = place.and_then(|place| owners.get_mut(place)) {
                    rules.push(at);
                } else {
                    words.push(word);
                    owners.push(vec![at]);
                }
            }
        }
        let words = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(words);
        let Ok(words) = words else {
            unreachable!(
                "the words are part of the program, and every test of this module builds them"
            );
        };
        Self {
            rules,
            allowance,
            words,
            owners,
        }
    }

    /// Returns the secrets of a text in order; none overlaps another.
    pub fn find(&self, text: &str) -> Vec<Secret> {
        let mut candidates = BTreeSet::new();
        for found in self.words.find_overlapping_iter(text) {
            let owners = self.owners.get(found.pattern().as_usize());
            candidates.extend(owners.into_iter().flatten().copied());
            if candidates.len() == self.rules.len() {
                break;
            }
        }
        let rules = candidates.iter().filter_map(|at| self.rules.get(*at));
        let mut secrets: Vec<Secret> = rules
            .flat_map(|rule| rule.find(text, &self.allowance))
            .collect();
        secrets.extend(key_block::find_parts(text, &secrets));
        // Of two rules that find the same, the one that says more of it comes first.
        secrets.sort_by_key(|secret| (secret.range.start, secret.rule == rule::GENERIC));
        merge(secrets)
    }

    /// Returns the text with every secret replaced. A text without one is returned as it is.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.find(text);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(replace(text, &secrets))
    }

    /// Replaces secrets in every text of a value and in the names of its fields, and says whether there were any. The
    /// name of a field counts as what stands before its text, so that `{"password": …}` is seen.
    pub fn redact_value(&self, value: &mut Value) -> bool {
        match value {
            Value::String(text) => self.redact_text(text),
            Value::Array(items) => items
                .iter_mut()
                .fold(false, |any, item| self.redact_value(item) | any),
            Value::Object(fields) => {
                let any = fields.iter_mut().fold(false, |any, (name, value)| {
                    self.redact_field(name, value) | any
                });
                self.redact_own_names(fields) | any
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }

    /// Replaces secrets in the names of all fields of a value. Its texts stay as they are.
    pub fn redact_names(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_names(item)),
            Value::Object(fields) => {
                fields
                    .values_mut()
                    .for_each(|value| self.redact_names(value));
                self.redact_own_names(fields);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Replaces secrets in the names of fields, and says whether there were any. No field is lost: a name that is there
    /// already gets a `_` behind it.
    fn redact_own_names(&self, fields: &mut JsonObject) -> bool {
        if fields.keys().all(|name| self.find(name).is_empty()) {
            return false;
        }
        for (name, value) in std::mem::take(fields) {
            let mut name = self.redact(&name).into_owned();
            while fields.contains_key(&name) {
                name.push('_');
            }
            fields.insert(name, value);
        }
        true
    }

    /// Replaces secrets in a text, and says whether there were any.
    pub fn redact_text(&self, text: &mut String) -> bool {
        match self.redact(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(redacted) => {
                *text = redacted;
                true
            }
        }
    }

    /// Replaces secrets in a field.
    pub fn redact_field(&self, name: &str, value: &mut Value) -> bool {
        let any = self.redact_value(value);
        let Value::String(text) = value else {
            return any;
        };
        if !self.words.is_match(name) {
            return any;
        }
        let before = format!("{name}=\"");
        let secrets = self.find(&format!("{before}{text}\""));
        let within = |secret: &Secret| {
            let start = secret.range.start.checked_sub(before.len())?;
            let end = secret.range.end.checked_sub(before.len())?.min(text.len());
            (start < end).then_some(Secret {
                range: start..end,
                rule: secret.rule,
            })
        };
        let secrets: Vec<Secret> = secrets.iter().filter_map(within).collect();
        if secrets.is_empty() {
            return any;
        }
        *text = replace(text, &secrets);
        true
    }
}

/// Joins secrets that overlap; the first one names what is joined.
fn merge(secrets: Vec<Secret>) -> Vec<Secret> {
    let mut merged: Vec<Secret> = Vec::new();
    for secret in secrets {
        match merged.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
                if last.rule == rule::GENERIC {
                    last.rule = secret.rule;
                }
            }
            _ => merged.push(secret),
        }
    }
    merged
}

fn replace(text: &str, secrets: &[Secret]) -> String {
    let mut redacted = String::with_capacity(text.len());
    let mut end = 0;
    for Secret { range, rule } in secrets {
        redacted.push_str(text.get(end..range.start).unwrap_or_default());
        redacted.push_str("[REDACTED:");
        redacted.push_str(rule);
        redacted.push(']');
        end = range.end;
    }
    redacted.push_str(text.get(end..).unwrap_or_default());
    redacted
}

#[cfg(test)]
mod tests;
