//! Saves a session to its file.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::Session;
use crate::sessions::entry::number;
use crate::sessions::entry_kind::MESSAGE;
use crate::sessions::file::{SessionError, SessionFile, write_line};
use crate::sessions::storage::Storage;
use crate::sessions::tail::UnsyncedTail;

impl Session {
    /// Returns whether the session has a file, or will get one.
    pub fn is_stored(&self) -> bool {
        self.storage.file.is_some()
    }

    /// Returns the path of the session's file, if the session is stored. The file may not exist yet.
    pub fn file(&self) -> Option<PathBuf> {
        let file = self.storage.file.as_ref()?;
        Some(file.lock().path().to_owned())
    }

    /// Sets the file of the session. `is_saved` tells whether the file already has all current entries.
    pub(crate) fn store_in(&mut self, file: SessionFile, is_saved: bool) {
        let saved = if is_saved { self.last_number } else { 0 };
        self.storage = Storage {
            file: Some(Arc::new(Mutex::new(file))),
            saved: Arc::new(AtomicU64::new(saved)),
            sent: saved,
            tail: self.storage.tail.take(),
        };
    }

    /// Lets [`save`](Self::save) return before new entries are on the disk. The caller keeps the tail elsewhere before it
    /// relies on them, and calls [`sync`](Self::sync) at the end. A new file is synchronised all the same.
    pub fn defer_sync(&mut self) -> UnsyncedTail {
        self.storage.tail.get_or_insert_default().clone()
    }

    /// Waits until all saved entries are on the disk.
    pub async fn sync(&self) -> Result<(), SessionError> {
        let storage = &self.storage;
        let (Some(file), Some(tail)) = (storage.file.clone(), storage.tail.clone()) else {
            return Ok(());
        };
        let syncing = tokio::task::spawn_blocking(move || file.lock().sync(&tail));
        syncing.await.map_err(SessionError::interrupted)?
    }

    /// Writes new entries to the session's file and waits until they are on the disk, unless that is
    /// [deferred](Self::defer_sync). Returns whether anything was written. A session without messages gets no file.
    pub async fn save(&mut self) -> Result<bool, SessionError> {
        self.add_notes();
        let Some(file) = self.storage.file.clone() else {
            return Ok(false);
        };
        let saved = self.storage.saved();
        if saved == self.last_number || (saved == 0 && !self.has_messages()) {
            return Ok(false);
        }
        let mut lines = Vec::new();
        let mut ends = Vec::new();
        for entry in self.since(saved) {
            write_line(&mut lines, entry);
            ends.extend(number(&entry.id).map(|number| (number, lines.len())));
        }
        let made = self.last_number;
        let counter = Arc::clone(&self.storage.saved);
        let tail = self.storage.tail.clone();
        if lines.is_empty() {
            // All new entries were taken back.
            counter.store(made, Ordering::Release);
            return Ok(false);
        }
        self.storage.sent = made;
        let writing = tokio::task::spawn_blocking(move || {
            let mut file = file.lock();
            // An earlier call whose future was dropped may still have written first.
            let saved = counter.load(Ordering::Acquire);
            let written = ends.iter().rev().find(|(number, _)| *number <= saved);
            let start = written.map_or(0, |(_, end)| *end);
            file.append(lines.get(start..).unwrap_or_default(), tail.as_ref())?;
            counter.store(made.max(saved), Ordering::Release);
            Ok(())
        });
        writing.await.map_err(SessionError::interrupted)??;
        Ok(true)
    }

    /// Returns whether there are messages. Context from hooks alone is not worth storing.
    fn has_messages(&self) -> bool {
        self.tree().iter().any(|entry| entry.kind == MESSAGE)
    }
}
