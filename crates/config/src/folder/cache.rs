//! What executables declared, kept from one start to the next.
//!
//! An entry is for one path and the bytes of one version of its file. A damaged or missing file of entries costs the
//! questions that it would have saved, and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::probe::Declared;
use crate::trust::{check_owner, hex_digest, read_whole, write_private};

/// The version of the file.
const VERSION: u32 = 1;
/// How many entries are kept. What was not needed this time goes first.
const MOST: usize = 20_000;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Entries {
    version: u32,
    declared: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct Cache {
    path: Option<PathBuf>,
    known: BTreeMap<String, String>,
    used: BTreeMap<String, String>,
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

    pub(super) fn find(&mut self, key: &str) -> Option<Declared> {
        let declared = self.known.get(key)?.clone();
        self.used.insert(key.to_owned(), declared.clone());
        Some(Declared(declared))
    }

    pub(super) fn remember(&mut self, key: String, declared: &Declared) {
        self.is_changed = true;
        self.used.insert(key, declared.0.clone());
    }

    /// Writes what is new. A cache that cannot be written is none.
    pub(super) fn write(&mut self) {
        let Some(path) = self.path.as_ref().filter(|_| self.is_changed) else {
            return;
        };
        let mut declared = std::mem::take(&mut self.used);
        for (key, name) in &self.known {
            if declared.len() >= MOST {
                break;
            }
            declared.entry(key.clone()).or_insert_with(|| name.clone());
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
