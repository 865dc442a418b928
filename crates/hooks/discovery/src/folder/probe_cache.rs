//! Stores the events that executables declared, for the next start.
//!
//! An entry is for one path and one version of its file. It is used only if no other file can have
//! determined the output:
//!
//! | file | asked again |
//! |---|---|
//! | contains the name that it declared, outside of comments | when its bytes or its interpreter change |
//! | does not contain it, so another program declares the event for it | at every start |
//!
//! If the file of entries is damaged or missing, the executables are simply asked again.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tenterhook_files::{hex_digest, read_whole, write_private};
use tenterhook_trust::check_owner;

use super::probe_output::ProbeOutput;

/// The version of the file's format.
const VERSION: u32 = 2;
/// The largest number of entries. Entries that this search did not need are dropped first.
const MAX_ENTRIES: usize = 20_000;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Entries {
    version: u32,
    declared: BTreeMap<String, Entry>,
}

/// The output of a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry {
    event: String,
    /// The version of its interpreter, if the file itself determined the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interpreter: Option<String>,
}

#[derive(Debug)]
pub(super) struct ProbeCache {
    path: Option<PathBuf>,
    known: BTreeMap<String, Entry>,
    used: BTreeMap<String, Entry>,
    is_changed: bool,
}

impl ProbeCache {
    pub(super) fn open(data_dir: Option<&Path>) -> Self {
        let path = data_dir.map(|dir| dir.join("probes.json"));
        let entries: Option<Entries> = path
            .as_ref()
            // A file that another user can write is ignored.
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

    /// Returns the key of a file and its content.
    pub(super) fn key(path: &Path, sha256: &str) -> String {
        let mut bytes = path.as_os_str().as_encoded_bytes().to_vec();
        bytes.push(0);
        bytes.extend(sha256.as_bytes());
        hex_digest(&bytes)
    }

    /// Returns the output of a file when it was last asked.
    pub(super) fn recall(&mut self, key: &str) -> Option<ProbeOutput> {
        let entry = self.known.get(key)?.clone();
        let declared = ProbeOutput(entry.event.clone());
        self.used.insert(key.to_owned(), entry);
        Some(declared)
    }

    /// Returns the output that a file would have now, if that is known without asking it.
    pub(super) fn find(&mut self, key: &str, interpreter: &str) -> Option<ProbeOutput> {
        let known = self.known.get(key)?.interpreter.as_deref();
        (known == Some(interpreter))
            .then(|| self.recall(key))
            .flatten()
    }

    /// Stores the output of a file. `bytes` is its content, if it has not changed since the file was asked.
    pub(super) fn remember(
        &mut self,
        key: String,
        declared: &ProbeOutput,
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

    /// Writes new entries. A cache that cannot be written is ignored.
    pub(super) fn write(&mut self) {
        let Some(path) = self.path.as_ref().filter(|_| self.is_changed) else {
            return;
        };
        let mut declared = std::mem::take(&mut self.used);
        for (key, entry) in &self.known {
            if declared.len() >= MAX_ENTRIES {
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

/// Returns whether a program or a script contains a word. Comments of scripts do not count.
fn holds(bytes: &[u8], word: &str) -> bool {
    let is_in = |text: &[u8]| memchr::memmem::find(text, word.as_bytes()).is_some();
    if !bytes.starts_with(b"#!") {
        return is_in(bytes);
    }
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| !line.trim_ascii_start().starts_with(b"#") && is_in(line))
}
