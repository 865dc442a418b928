//! The end of a session's file that is written, but that may not be on the disk yet.
//!
//! A program that waits for the disk anyway can keep this end together with what it stores, instead of waiting for each
//! session's file. If the computer loses its power, the program puts the end back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The maximum size of a tail in bytes. The file of a larger one is synchronised, so what is kept elsewhere stays small.
const MAX_TAIL: usize = 4 * 1024;

/// The last lines of a session's file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionTail {
    pub(crate) file: PathBuf,
    /// Where the lines begin in the file.
    pub(crate) offset: u64,
    pub(crate) lines: String,
}

impl SessionTail {
    fn end(&self) -> u64 {
        let len = u64::try_from(self.lines.len()).unwrap_or_default();
        self.offset.saturating_add(len)
    }
}

/// The tail of one session. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct UnsyncedTail(Arc<Mutex<TailState>>);

#[derive(Debug, Default)]
struct TailState {
    tail: Option<SessionTail>,
    /// The end of what was kept elsewhere.
    kept: u64,
}

impl UnsyncedTail {
    /// Returns the tail, if not all of it is kept elsewhere.
    pub fn unkept(&self) -> Option<SessionTail> {
        let state = self.0.lock();
        let tail = state.tail.as_ref();
        tail.filter(|tail| tail.end() > state.kept).cloned()
    }

    /// Notes that a tail is kept elsewhere.
    pub fn note_kept(&self, tail: &SessionTail) {
        let mut state = self.0.lock();
        state.kept = state.kept.max(tail.end());
    }

    /// Adds lines that were written at `offset`. Returns `false` if they are too large or cannot be kept as text, so that
    /// the file must be synchronised.
    pub(crate) fn push(&self, file: &Path, offset: u64, lines: &[u8]) -> bool {
        let mut state = self.0.lock();
        let len = state.tail.as_ref().map_or(0, |tail| tail.lines.len());
        let Ok(text) = std::str::from_utf8(lines) else {
            return false;
        };
        if len + text.len() > MAX_TAIL || file.to_str().is_none() {
            return false;
        }
        let tail = state.tail.get_or_insert_with(|| SessionTail {
            file: file.to_owned(),
            offset,
            lines: String::new(),
        });
        tail.lines.push_str(text);
        true
    }

    /// Returns whether nothing waits for the disk.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().tail.is_none()
    }

    /// Forgets the tail, because the file was synchronised.
    pub(crate) fn clear(&self) {
        self.0.lock().tail = None;
    }
}
