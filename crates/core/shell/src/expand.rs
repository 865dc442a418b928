//! Expands the words of a command as far as the line shows their values.

use std::borrow::Cow;
use std::cell::Cell;

use crate::braces::{BracedWord, Expansion};
use crate::printed::{printed, prints_settings};
use crate::script::{Operation, OutputKind, Part, RawWord, Role, Script, Variable};
use crate::variables::{Choice, Variables};
use crate::word::{OUTPUT, SOURCE, Word};

/// Returns what stands for commands in a word.
const fn shown(kind: OutputKind) -> &'static str {
    match kind {
        OutputKind::Text => OUTPUT,
        OutputKind::Source => SOURCE,
        OutputKind::Sink => ">(…)",
    }
}

/// Expands words in one reading of a command.
pub(crate) struct Expander<'a> {
    pub(crate) variables: &'a Variables,
    pub(crate) choice: &'a Choice,
    /// Whether braces make words. Some shells do not expand them.
    pub(crate) expands_braces: bool,
    /// Whether everything was expanded. Too many braces and too long words are not.
    pub(crate) is_complete: Cell<bool>,
    /// How many substitutions are around the words.
    pub(crate) depth: u32,
}

/// How long a word may become, in bytes.
const MAX_WORD: usize = 1 << 16;

/// How deep substitutions are followed for what they print.
const MAX_OUTPUTS: u32 = 4;

/// Returns whether a variable with these values is empty.
fn is_blank(values: &[Word]) -> bool {
    values.iter().all(|value| value.as_str().is_empty())
}

impl Expander<'_> {
    /// Returns the words that written words make.
    pub(crate) fn words(&self, raw: &[RawWord]) -> Vec<Word> {
        let mut words = Vec::with_capacity(raw.len());
        for word in raw {
            self.fields(word, &mut words);
        }
        words
    }

    /// Returns the value of a word where a shell does not split it, such as a value of a variable.
    pub(crate) fn value(&self, parts: &[Part]) -> Word {
        let mut word = Word::default();
        for part in parts {
            if word.as_str().len() > MAX_WORD {
                self.is_complete.set(false);
                break;
            }
            match part {
                Part::Plain(text) | Part::Quoted(text) => word.push_str(text),
                Part::Unknown(text) => word.push_unknown(text),
                Part::Variable(variable) => {
                    for (at, value) in self.variable(variable).iter().enumerate() {
                        if at > 0 {
                            word.push_str(" ");
                        }
                        word.push_word(value);
                    }
                }
                Part::Output { script, kind, .. } => match self.output(script, *kind) {
                    Some(text) => word.push_str(&text),
                    None => word.push_unknown(shown(*kind)),
                },
                Part::Array(_) => word.push_unknown("(…)"),
            }
        }
        word
    }

    fn fields(&self, raw: &RawWord, words: &mut Vec<Word>) {
        if self.expands_braces && has_braces(raw) {
            match expand_braces(raw) {
                Some(expanded) => {
                    for raw in expanded {
                        self.split_fields(&raw, words);
                    }
                    return;
                }
                None => self.is_complete.set(false),
            }
        }
        self.split_fields(raw, words);
    }

    fn split_fields(&self, raw: &RawWord, words: &mut Vec<Word>) {
        // `None` before the first part, and after a separator at the end of a value.
        let mut current: Option<Word> = None;
        for part in &raw.parts {
            if current
                .as_ref()
                .is_some_and(|word| word.as_str().len() > MAX_WORD)
            {
                self.is_complete.set(false);
                break;
            }
            match part {
                Part::Plain(text) => current.get_or_insert_default().push_plain(text),
                Part::Quoted(text) => current.get_or_insert_default().push_str(text),
                Part::Unknown(text) => current.get_or_insert_default().push_unknown(text),
                Part::Array(_) => current.get_or_insert_default().push_unknown("(…)"),
                Part::Variable(variable) => {
                    let values = self.variable(variable);
                    let is_joined = variable.is_quoted && variable.written.contains('*');
                    if is_joined {
                        self.push_joined(&values, current.get_or_insert_default());
                        continue;
                    }
                    for (at, value) in values.iter().enumerate() {
                        if at > 0 {
                            words.extend(current.take());
                        }
                        self.push_value(value, variable.is_quoted, &mut current, words);
                    }
                }
                Part::Output {
                    script,
                    is_quoted,
                    kind,
                } => match self.output(script, *kind) {
                    Some(text) => {
                        self.push_value(&Word::known(text), *is_quoted, &mut current, words);
                    }
                    None => current.get_or_insert_default().push_unknown(shown(*kind)),
                },
            }
        }
        words.extend(current);
    }

    /// Appends all values of an array as one word, as `"$*"` does.
    fn push_joined(&self, values: &[Word], word: &mut Word) {
        for (at, value) in values.iter().enumerate() {
            if at > 0 && self.choice.separators.is_empty() {
                word.push_str(" ");
            }
            word.push_word(value);
        }
    }

    /// Appends a value to the current word. Without quotes, it may make several words.
    fn push_value(
        &self,
        value: &Word,
        is_quoted: bool,
        current: &mut Option<Word>,
        words: &mut Vec<Word>,
    ) {
        if is_quoted {
            current.get_or_insert_default().push_word(value);
            return;
        }
        let pieces = value.split(&self.choice.separators);
        let count = pieces.words.len();
        if !pieces.starts_open {
            words.extend(current.take());
        }
        for (at, piece) in pieces.words.into_iter().enumerate() {
            current.get_or_insert_default().push_word(&piece);
            if at + 1 < count || !pieces.ends_open {
                words.extend(current.take());
            }
        }
    }

    /// Returns the values that stand for a variable: one, or all of an array.
    fn variable<'b>(&'b self, variable: &'b Variable) -> Cow<'b, [Word]> {
        let known = |is_all| self.variables.value(&variable.name, is_all, self.choice);
        let unknown = || Cow::Owned(vec![Word::unknown(&variable.written)]);
        match &variable.operation {
            Operation::Value => match known(variable.is_all) {
                Some(values) => Cow::Borrowed(values),
                // Words end at the separators that a shell starts with.
                None if variable.name == "IFS" => Cow::Owned(vec![Word::known(" ")]),
                None => unknown(),
            },
            Operation::Element(at) => {
                let values = known(true);
                values.map_or_else(unknown, |values| {
                    Cow::Borrowed(values.get(*at..=*at).unwrap_or_default())
                })
            }
            // The value of a variable that the line does not set is not known, so its alternative counts.
            Operation::Alternative(operator, word) => match known(variable.is_all) {
                Some(values) if *operator != '+' && !is_blank(values) => Cow::Borrowed(values),
                _ => Cow::Owned(vec![self.value(&word.parts)]),
            },
            Operation::Other(_) => unknown(),
        }
    }

    /// Returns what commands print, if the line shows it.
    fn output(&self, script: &Script, kind: OutputKind) -> Option<String> {
        if kind == OutputKind::Text {
            self.printed(script)
        } else {
            None
        }
    }

    /// Returns what a command prints, if it is alone and the line shows that.
    pub(crate) fn printed(&self, script: &Script) -> Option<String> {
        let [command] = script.commands.as_slice() else {
            return None;
        };
        let is_plain = command.role == Role::Command && command.redirections.is_empty();
        if !is_plain || self.depth >= MAX_OUTPUTS {
            return None;
        }
        let inner = Expander {
            variables: self.variables,
            choice: self.choice,
            expands_braces: self.expands_braces,
            is_complete: Cell::new(true),
            depth: self.depth + 1,
        };
        let words = inner.words(&command.words);
        if prints_settings(&words) {
            return Some(String::new());
        }
        if !words.iter().all(Word::is_known) {
            return None;
        }
        let text = printed(&words)?;
        Some(text.trim_end_matches('\n').to_owned())
    }
}

/// Returns whether a word may have braces to expand.
pub(crate) fn has_braces(raw: &RawWord) -> bool {
    let is_open = |part: &Part| matches!(part, Part::Plain(text) if text.contains('{'));
    raw.parts.iter().any(is_open)
}

/// The first of the characters that stand for parts of a word while its braces are expanded.
const FIRST_PART: u32 = 0xF_0000;

/// Returns the words that the braces of a word make. `None` means that there are too many.
fn expand_braces(raw: &RawWord) -> Option<Vec<RawWord>> {
    let mut braced = BracedWord::default();
    for (at, part) in raw.parts.iter().enumerate() {
        if let Part::Plain(text) = part {
            for character in text.chars() {
                match character {
                    '{' | '}' | ',' => braced.push_mark(character),
                    other => braced.text.push(other),
                }
            }
        } else {
            let at = u32::try_from(at).ok()?;
            braced.text.push(char::from_u32(FIRST_PART + at)?);
        }
    }
    let words = match braced.expanded() {
        Expansion::Unchanged => return Some(vec![raw.clone()]),
        Expansion::TooMany => return None,
        Expansion::Words(words) => words,
    };
    let words = words.into_iter().filter(|word| !word.is_empty());
    Some(words.map(|word| with_parts(&word, &raw.parts)).collect())
}

/// Puts the parts of a word back to the characters that stand for them.
fn with_parts(text: &str, parts: &[Part]) -> RawWord {
    let mut word = RawWord::default();
    for character in text.chars() {
        let at = u32::from(character).checked_sub(FIRST_PART);
        let part = at
            .and_then(|at| usize::try_from(at).ok())
            .and_then(|at| parts.get(at));
        match part {
            Some(part) => word.parts.push(part.clone()),
            None => word.push_plain(character.encode_utf8(&mut [0; 4])),
        }
    }
    word
}
