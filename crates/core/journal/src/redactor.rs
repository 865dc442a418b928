//! Finds secrets in text and replaces them.
//!
//! The rules come from gitleaks (<https://github.com/gitleaks/gitleaks>, MIT licence, Copyright (c) 2019 Zachary
//! Rice), unchanged in `rules/gitleaks.toml`, with a few more in `rules/own.toml`. The matching is this module's own.
//!
//! A secret is found only if it is complete. Code that shortens text therefore cuts it with
//! [`excerpt`](tenterhook_protocol::excerpt), which never leaves a part of a token. The exception is a private key, which spans
//! many lines: its first or last line alone is enough to find it. See `key_block.rs`.

mod found;
mod key_block;
mod rule;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use aho_corasick::AhoCorasick;
use serde_json::Value;
use tenterhook_protocol::JsonObject;

use self::rule::RULES;

pub use self::found::Secret;

/// Finds secrets and replaces each with `[REDACTED:<rule>]`.
///
/// Text is first searched for the keywords of the rules. Only rules whose keywords occur are run, and each is
/// compiled on first use. Text without a keyword costs a single pass.
#[derive(Debug)]
pub struct Redactor {
    words: Vec<RuleWord>,
    index: OnceLock<AhoCorasick>,
    /// How many bytes have been searched so far. It no longer matters once the index is built.
    scanned: AtomicUsize,
}

/// A keyword, and the rules that have it.
#[derive(Debug)]
struct RuleWord {
    word: &'static str,
    rules: Vec<usize>,
}

/// How many bytes are searched keyword by keyword. Building the index costs more than that, so a program that writes
/// only a few journal records never builds it.
const MAX_SCANNED: usize = 8 << 10;

impl Redactor {
    /// Returns the redactor of this process, which is created on first use.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<Redactor> = LazyLock::new(Redactor::new);
        &SHARED
    }

    fn new() -> Self {
        let mut words: Vec<RuleWord> = Vec::new();
        for (at, rule) in RULES.iter().enumerate() {
            for word in rule.words {
                match words.iter_mut().find(|known| known.word == *word) {
                    Some(known) => known.rules.push(at),
                    None => words.push(RuleWord {
                        word,
                        rules: vec![at],
                    }),
                }
            }
        }
        Self {
            words,
            index: OnceLock::new(),
            scanned: AtomicUsize::new(0),
        }
    }

    /// Returns the rules whose keywords occur in the text.
    fn candidates(&self, text: &str) -> BTreeSet<usize> {
        let mut candidates = BTreeSet::new();
        let Some(index) = self.index_for(text) else {
            let text = text.to_ascii_lowercase();
            let found = self.words.iter().filter(|word| text.contains(word.word));
            candidates.extend(found.flat_map(|word| &word.rules));
            return candidates;
        };
        for found in index.find_overlapping_iter(text) {
            let word = self.words.get(found.pattern().as_usize());
            candidates.extend(word.into_iter().flat_map(|word| &word.rules));
            if candidates.len() == RULES.len() {
                break;
            }
        }
        candidates
    }

    /// Returns the automaton of all keywords, once enough text has been searched to justify building it.
    fn index_for(&self, text: &str) -> Option<&AhoCorasick> {
        let scanned = self.scanned.fetch_add(text.len(), Ordering::Relaxed);
        if self.index.get().is_none() && scanned.saturating_add(text.len()) <= MAX_SCANNED {
            return None;
        }
        Some(self.index.get_or_init(|| {
            let words = self.words.iter().map(|word| word.word);
            let index = AhoCorasick::builder()
                .ascii_case_insensitive(true)
                .build(words);
            let Ok(index) = index else {
                unreachable!(
                    "the words are part of the program, and every test of this module builds them"
                );
            };
            index
        }))
    }

    /// Returns whether the text may contain a secret: a keyword of some rule is in it, or the line around a key.
    pub fn has_keyword(&self, text: &str) -> bool {
        key_block::may_be_in(text) || !self.candidates(text).is_empty()
    }

    /// Returns the secrets in the text in order, without overlaps.
    pub fn find(&self, text: &str) -> Vec<Secret> {
        let candidates = self.candidates(text);
        let rules = candidates.iter().filter_map(|at| RULES.get(*at));
        let mut secrets: Vec<Secret> = rules.flat_map(|rule| rule.find(text)).collect();
        secrets.extend(key_block::find_parts(text, &secrets));
        // If two rules find a secret at the same place, the more specific rule comes first.
        secrets.sort_by_key(|secret| (secret.range.start, secret.rule == rule::GENERIC));
        merge(secrets)
    }

    /// Returns the text with every secret replaced. Text without secrets is returned unchanged.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.find(text);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        Cow::Owned(replace(text, &secrets))
    }

    /// Replaces secrets in every text of a value and in its field names, and returns whether there were any. A field's
    /// name counts as the text before its value, so the value of `{"password": …}` is found.
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

    /// Replaces secrets in all field names of a value. Its strings are unchanged.
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

    /// Replaces secrets in field names, and returns whether there were any. No field is lost: if a new name already
    /// exists, it gets a `_` at the end.
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

    /// Replaces secrets in the text, and returns whether there were any.
    pub fn redact_text(&self, text: &mut String) -> bool {
        match self.redact(text) {
            Cow::Borrowed(_) => false,
            Cow::Owned(redacted) => {
                *text = redacted;
                true
            }
        }
    }

    /// Replaces secrets in a field's value, and returns whether there were any. The name helps to find them.
    pub fn redact_field(&self, name: &str, value: &mut Value) -> bool {
        let any = self.redact_value(value);
        let Value::String(text) = value else {
            return any;
        };
        if self.candidates(name).is_empty() {
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

/// Joins secrets that overlap. The joined secret has the most specific rule's name.
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
