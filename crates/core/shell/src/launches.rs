//! The commands that a command runs, within a limit on their size.

use crate::assignment::is_assignment;
use crate::word::{Word, joined};

/// A command that another command runs.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Launch {
    /// A command, as its words.
    Words { words: Vec<Word>, is_certain: bool },
    /// A line for a shell.
    Line {
        line: String,
        is_certain: bool,
        /// The values of `$0`, `$1` and so on.
        parameters: Vec<Word>,
    },
    /// Something that the command line does not show.
    Unseen,
}

/// The commands that one command runs, with a limit on their total size. The rest of the words may be
/// a command at each of many words, so without a limit, the size would be quadratic.
#[derive(Debug)]
pub(crate) struct Launches {
    pub(crate) found: Vec<Launch>,
    /// Whether all commands are in `found`.
    pub(crate) is_complete: bool,
    /// The remaining bytes of the limit.
    pub(crate) room: usize,
}

impl Launches {
    pub(crate) const fn new(room: usize) -> Self {
        Self {
            found: Vec::new(),
            is_complete: true,
            room,
        }
    }

    /// Adds a command. `is_certain` is whether these words surely run.
    pub(crate) fn words(&mut self, words: &[Word], is_certain: bool) {
        // Some programs set variables before the command that they run.
        let is_set = |word: &&Word| is_assignment(word.as_str());
        let set = words.iter().take_while(is_set).count();
        let words = words.get(set..).unwrap_or_default();
        if self.is_complete && !words.is_empty() && self.has_room(size(words)) {
            let words = words.to_vec();
            self.found.push(Launch::Words { words, is_certain });
        }
    }

    /// Adds a line for a shell. `is_certain` is whether it surely runs.
    pub(crate) fn line(&mut self, line: &str, is_certain: bool) {
        self.line_with(line, is_certain, &[]);
    }

    pub(crate) fn line_with(&mut self, line: &str, is_certain: bool, parameters: &[Word]) {
        if self.has_room(line.len() + size(parameters)) {
            self.found.push(Launch::Line {
                line: line.to_owned(),
                is_certain,
                parameters: parameters.to_vec(),
            });
        }
    }

    /// Adds words as one line.
    pub(crate) fn joined(&mut self, words: &[Word], is_certain: bool) {
        if self.is_complete && !words.is_empty() && self.has_room(size(words)) {
            self.found.push(Launch::Line {
                line: joined(words),
                is_certain,
                parameters: Vec::new(),
            });
        }
    }

    pub(crate) fn unseen(&mut self) {
        self.found.push(Launch::Unseen);
    }

    fn has_room(&mut self, bytes: usize) -> bool {
        // After the first command that is too large, nothing is measured any more: that alone would take
        // quadratic time.
        let has_room = self.is_complete && bytes <= self.room;
        if has_room {
            self.room -= bytes;
        }
        self.is_complete = has_room;
        has_room
    }
}

/// Returns the size of words in a line, in bytes. Empty words count, too.
pub(crate) fn size(words: &[Word]) -> usize {
    words.iter().map(|word| word.as_str().len() + 1).sum()
}

/// Returns whether a word is a long option or an abbreviation of it, which many programs accept.
pub(crate) fn is_abbreviated(option: &str, word: &str) -> bool {
    word.len() > "--x".len() && word.starts_with("--") && option.starts_with(word)
}

/// Returns a setting of git without the mark of a line for a shell.
pub(crate) fn without_mark(line: &str) -> &str {
    line.strip_prefix('!').unwrap_or(line)
}
