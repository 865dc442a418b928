//! The history of lines, in a file that only the user can read. A line that seems to contain a secret is not kept.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use reedline::{
    FileBackedHistory, HistoryItem, HistoryItemId, HistorySessionId, Result, SearchQuery,
};
use tenterhook_files::{make_private, private_options};
use tenterhook_journal::Redactor;

/// The maximum number of lines that are kept.
const MAX: usize = 1000;

/// The longest line that is kept, in bytes.
const MAX_LINE: usize = 4096;

/// The history of lines. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct History {
    lines: Arc<Mutex<FileBackedHistory>>,
}

impl History {
    /// Opens the history file. Without a usable file, lines are kept until the program ends.
    pub(super) fn open(file: Option<PathBuf>) -> Self {
        let file = file.filter(|file| create_private(file).is_ok());
        let stored = file.and_then(|file| FileBackedHistory::with_file(MAX, file).ok());
        Self {
            lines: Arc::new(Mutex::new(stored.unwrap_or_default())),
        }
    }

    fn lines(&self) -> MutexGuard<'_, FileBackedHistory> {
        self.lines.lock()
    }
}

/// Creates the file, readable and writable only by its owner.
fn create_private(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        make_private(folder)?;
    }
    let opened = private_options().create(true).append(true).open(file)?;
    // A file that already existed may have another mode.
    #[cfg(unix)]
    opened.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(opened);
    Ok(())
}

/// Returns whether a line may be kept.
fn is_kept(line: &str) -> bool {
    line.len() <= MAX_LINE && Redactor::shared().redact(line) == line
}

impl reedline::History for History {
    fn save(&mut self, item: HistoryItem) -> Result<HistoryItem> {
        let line = item.command_line.trim().to_owned();
        let item = HistoryItem {
            command_line: line,
            ..item
        };
        if !is_kept(&item.command_line) {
            return Ok(HistoryItem { id: None, ..item });
        }
        let mut lines = self.lines();
        let saved = lines.save(item)?;
        // Write the line to the disk at once. If that fails, it is kept until the program ends.
        lines.sync().ok();
        Ok(saved)
    }

    fn load(&self, id: HistoryItemId) -> Result<HistoryItem> {
        self.lines().load(id)
    }

    fn count(&self, query: SearchQuery) -> Result<i64> {
        self.lines().count(query)
    }

    fn search(&self, query: SearchQuery) -> Result<Vec<HistoryItem>> {
        self.lines().search(query)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> Result<()> {
        self.lines().update(id, updater)
    }

    fn clear(&mut self) -> Result<()> {
        self.lines().clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> Result<()> {
        self.lines().delete(id)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.lines().sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.lines().session()
    }
}

#[cfg(test)]
mod tests {
    use reedline::{History as _, SearchDirection};

    use super::*;

    #[test]
    fn lines_outlive_the_program_but_secrets_and_long_ones_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data/history");
        let mut history = History::open(Some(file.clone()));
        let long = "x".repeat(MAX_LINE + 1);
        // Assembled here, so that scanners do not report a secret in this file.
        let secret = format!("use ghp{}", "_wJ3kQ9xTz7LmVb2YcRf8Nd5HsGp1Ua6Ee4o0");
        for line in ["one", &secret, &long, "two\nlines"] {
            history.save(HistoryItem::from_command_line(line)).unwrap();
        }
        drop(history);
        #[cfg(unix)]
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .unwrap();
        let everything = SearchQuery::everything(SearchDirection::Forward, None);
        let kept = History::open(Some(file.clone()))
            .search(everything)
            .unwrap();
        let kept: Vec<String> = kept.into_iter().map(|item| item.command_line).collect();
        assert_eq!(kept, ["one", "two\nlines"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = std::fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
