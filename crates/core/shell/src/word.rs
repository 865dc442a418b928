//! Words of a command after everything in them that is known was expanded.

use std::ops::Range;

/// What stands for the output of commands in a word.
pub(crate) const OUTPUT: &str = "$(…)";

/// What stands for a file with the output of commands.
pub(crate) const SOURCE: &str = "<(…)";

/// A word of a command, such as its program or an argument.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Word {
    text: String,
    /// The parts of the text that a shell replaces when the line runs.
    unknown: Vec<Range<usize>>,
}

impl Word {
    /// Creates a word without unknown parts.
    pub(crate) fn known(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            unknown: Vec::new(),
        }
    }

    /// Creates a word that is known only when the line runs, from how it is written.
    pub(crate) fn unknown(written: &str) -> Self {
        let mut word = Self::default();
        word.push_unknown(written);
        word
    }

    /// Returns the text. Unknown parts are as written; `$(…)` stands for the output of commands.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the text, like [`as_str`](Self::as_str).
    pub(crate) fn into_string(self) -> String {
        self.text
    }

    /// Returns whether the line shows the whole word.
    pub const fn is_known(&self) -> bool {
        self.unknown.is_empty()
    }

    /// Returns whether a part of it is the output of commands, or a file with their output.
    pub fn has_output(&self) -> bool {
        self.unknown.iter().any(|range| {
            let text = self.text.get(range.clone()).unwrap_or_default();
            text == OUTPUT || text == SOURCE || text.contains("$(") || text.contains('`')
        })
    }

    /// Returns whether the line does not show which program this word names. An unknown folder does not matter. A file of
    /// unknown name in a known folder does not matter either, except in a folder of programs of the system: a script of
    /// the project may run anything anyway.
    pub(crate) fn hides_program(&self) -> bool {
        if self.is_known() || ["$SHELL", "${SHELL}"].contains(&self.as_str()) {
            return false;
        }
        let is_unknown = |at: usize| self.unknown.iter().any(|range| range.contains(&at));
        let mut slashes = self.text.match_indices('/').map(|(at, _)| at);
        let Some(name) = slashes.rfind(|at| !is_unknown(*at)) else {
            return true;
        };
        let folder = self.text.get(..name).unwrap_or_default();
        let folder = folder.rsplit('/').next().unwrap_or_default();
        let is_unknown_folder = self.unknown.iter().any(|range| range.start < name);
        let is_of_system = ["", "bin", "sbin"].contains(&folder) || is_unknown_folder;
        is_of_system && self.unknown.iter().any(|range| range.end > name)
    }

    pub(crate) fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends text that a shell replaces when the line runs.
    pub(crate) fn push_unknown(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.unknown.push(start..self.text.len());
    }

    /// Appends text without quotes. A shell replaces patterns in it with names of files.
    pub(crate) fn push_plain(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        if !text.contains(['*', '?', '[', '{']) {
            return;
        }
        for (at, character) in text.char_indices() {
            let rest = text.get(at..).unwrap_or_default();
            let length = match character {
                '*' | '?' => Some(1),
                '[' => rest.find(']').map(|length| length + 1),
                '{' => rest
                    .find('}')
                    .filter(|end| rest.get(..*end).is_some_and(|inside| inside.contains(".."))),
                _ => None,
            };
            if let Some(length) = length {
                self.unknown.push(start + at..start + at + length);
            }
        }
    }

    pub(crate) fn push_word(&mut self, other: &Self) {
        let start = self.text.len();
        self.text.push_str(&other.text);
        let moved = other.unknown.iter();
        self.unknown
            .extend(moved.map(|range| range.start + start..range.end + start));
    }

    /// Returns the part of the word from a byte on.
    pub(crate) fn from(&self, start: usize) -> Self {
        self.part(start..self.text.len())
    }

    fn part(&self, range: Range<usize>) -> Self {
        // The ranges are in order, so only those inside are looked at.
        let first = self.unknown.partition_point(|it| it.end <= range.start);
        let ranges = self.unknown.iter().skip(first);
        let inside = ranges.take_while(|it| it.start < range.end);
        let moved = inside.map(|it| {
            let (start, end) = (it.start.max(range.start), it.end.min(range.end));
            start - range.start..end - range.start
        });
        let unknown = moved.collect();
        Self {
            text: self.text.get(range).unwrap_or_default().to_owned(),
            unknown,
        }
    }

    /// Splits a value at white space and other separators, as a shell does where a variable is not quoted.
    pub(crate) fn split(&self, separators: &str) -> Pieces {
        let is_unknown = |at: usize| {
            let next = self.unknown.partition_point(|range| range.end <= at);
            let next = self.unknown.get(next);
            next.is_some_and(|range| range.contains(&at))
        };
        let is_separator = |(at, character): &(usize, char)| {
            let separates = character.is_ascii_whitespace() || *character == '\0';
            (separates || separators.contains(*character)) && !is_unknown(*at)
        };
        let mut words = Vec::new();
        let mut start = None;
        for (at, character) in self.text.char_indices() {
            if is_separator(&(at, character)) {
                words.extend(start.take().map(|start| self.part(start..at)));
            } else {
                start.get_or_insert(at);
            }
        }
        let ends_open = start.is_some();
        words.extend(start.map(|start| self.part(start..self.text.len())));
        let mut characters = self.text.char_indices();
        Pieces {
            starts_open: !characters.next().is_some_and(|first| is_separator(&first)),
            ends_open,
            words,
        }
    }
}

/// The words that an unquoted value makes.
pub(crate) struct Pieces {
    pub(crate) words: Vec<Word>,
    /// Whether the first word continues the text before the value.
    pub(crate) starts_open: bool,
    /// Whether text after the value continues the last word.
    pub(crate) ends_open: bool,
}

/// Returns the texts of words, joined with spaces.
pub(crate) fn joined(words: &[Word]) -> String {
    let mut text = String::new();
    for (at, word) in words.iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        text.push_str(&word.text);
    }
    text
}

/// Returns the name of a program without its folder.
pub(crate) fn program_name(program: &str) -> &str {
    program.rsplit_once('/').map_or(program, |(_, name)| name)
}
