//! What executables declared, kept from one start to the next.
//!
//! An entry is for one path and the bytes of one version of its file. It answers for the file only if the answer cannot
//! have come from elsewhere:
//!
//! | file | asked again |
//! |---|---|
//! | holds the name that it declared, outside of comments | when its bytes or its interpreter change |
//! | does not hold it: another program declares the event for it | at every start |
//!
//! A damaged or missing file of entries costs the questions that it would have saved, and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::probe::Declared;
use crate::trust::{check_owner, hex_digest, read_whole, write_private};

/// The version of the file.
const VERSION: u32 = 2;
/// How many entries are kept. What was not needed this time goes first.
const MOST: usize = 20_000;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Entries {
    version: u32,
    declared: BTreeMap<String, Entry>,
}

/// What a file declared.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    event: String,
    /// The interpreter that it had, if the file is known to have answered by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
}

#[derive(Debug)]
pub(super) struct Cache {
    path: Option<PathBuf>,
    known: BTreeMap<String, Entry>,
    used: BTreeMap<String, Entry>,
    is_changed: bool,
}

impl Cache {
    pub(super) fn open(data_dir: Option<&Path>) -> Self {
        let path = data_dir.map(|dir| dir.join("probes.json"));
        let entries: Option<Entries> = path
            .as_ref()
            // What others could have written says nothing.
            .filter(|path| check_owner(path).is_ok())
            .and_then(|path| read_whole(path).ok())
            .and_then(|(bytes, _)| serde_json::from_slice(&bytes).ok())
            .filter(|entries: &Entries| entries.version == VERSION);
        Self {
            path,
            known: entries.unwrap_or_default().declared,
            used: BTreeMap::new(),
            is_changed: false,
        }
    }

    /// Returns what stands for a file and its content.
    pub(super) fn key(path: &Path, sha256: &str) -> String {
        let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
        bytes.push(0);
        bytes.extend(sha256.as_bytes());
        hex_digest(&bytes)
    }

    /// Returns what a file declared when it was asked last.
    pub(super) fn recall(&mut self, key: &str) -> Option<Declared> {
        let entry = self.known.get(key)?.clone();
        let declared = Declared(entry.event.clone());
        self.used.insert(key.to_owned(), entry);
        Some(declared)
    }

    /// Returns what a file would declare now, if that is known without asking it.
    pub(super) fn find(&mut self, key: &str, interpreter: &str) -> Option<Declared> {
        let known = self.known.get(key)?.interpreter.as_deref();
        (known == Some(interpreter))
            .then(|| self.recall(key))
            .flatten()
    }

    /// Remembers what a file declared. `bytes` are those of the file, if they are still what was asked.
    pub(super) fn remember(
        &mut self,
        key: String,
        declared: &Declared,
        (bytes, interpreter): (Option<&[u8]>, &str),
    ) {
        self.is_changed = true;
        let is_own = bytes.is_some_and(|bytes| holds(bytes, &declared.0));
        let entry = Entry {
            event: declared.0.clone(),
            interpreter: is_own.then(|| interpreter.to_owned()),
        };
        self.used.insert(key, entry);
    }

    /// Writes what is new. A cache that cannot be written is none.
    pub(super) fn write(&mut self) {
        let Some(path) = self.path.as_ref().filter(|_| self.is_changed) else {
            return;
        };
        let mut declared = std::mem::take(&mut self.used);
        for (key, entry) in &self.known {
            if declared.len() >= MOST {
                break;
            }
            declared.entry(key.clone()).or_insert_with(|| entry.clone());
        }
        let entries = Entries {
            version: VERSION,
            declared,
        };
        if let Ok(bytes) = serde_json::to_vec(&entries) {
            let _kept = write_private(path, &bytes, 0o600);
        }
    }
}

/// Returns whether a program or a script holds a word. Comments of scripts do not count.
fn holds(bytes: &[u8], word: &str) -> bool {
    let is_in = |text: &[u8]| memchr::memmem::find(text, word.as_bytes()).is_some();
    if !bytes.starts_with(b"#!") {
        return is_in(bytes);
    }
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| !line.trim_ascii_start().starts_with(b"#") && is_in(line))
}
