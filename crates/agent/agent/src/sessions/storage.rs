//! The file of a session, and how much of the session it contains.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::sessions::file::SessionFile;
use crate::sessions::tail::UnsyncedTail;

/// The file of a session. A cloned session has no file, because two writers would damage it.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    pub(crate) file: Option<Arc<Mutex<SessionFile>>>,
    /// The number of the newest entry in the file. The writing task sets it, so that it is correct even if the future
    /// that started the task was dropped.
    pub(crate) saved: Arc<AtomicU64>,
    /// The number of the newest entry that may be in the file.
    pub(crate) sent: u64,
    /// What was written and not synchronised. `None` if each write waits for the disk.
    pub(crate) tail: Option<UnsyncedTail>,
}

impl Storage {
    pub(crate) fn saved(&self) -> u64 {
        self.saved.load(Ordering::Acquire)
    }
}

impl Clone for Storage {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// Comparing sessions ignores where they are stored.
impl PartialEq for Storage {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}
