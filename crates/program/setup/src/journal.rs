//! Opens and closes the journal of a call, and finds its default folder.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use tenterhook_engine::JournalSink;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_journal::FileJournal;

use crate::error::CliError;
use crate::exit::Exit;
use crate::local_time;

/// Opens a journal: the file that is named, else the day's file in the user's state folder.
pub fn open(file: Option<PathBuf>) -> Result<Arc<FileJournal>, CliError> {
    let path = file.map_or_else(default_path, Ok)?;
    let journal = FileJournal::open(path).map_err(|error| {
        CliError::of(Exit::Failed, &error)
            .hint("name another file with `--journal FILE`, or pass `--no-journal`")
    })?;
    Ok(Arc::new(journal))
}

fn default_path() -> Result<PathBuf, CliError> {
    path_of_today().ok_or_else(|| {
        CliError::new(Exit::Failed, "cannot find a home folder for the journal")
            .hint("name a file with `--journal FILE`, or pass `--no-journal`")
    })
}

/// Returns the default file of today's journal.
pub fn path_of_today() -> Option<PathBuf> {
    let day = local_time::today().strftime("%Y-%m-%d");
    Some(folder()?.join(format!("{day}.jsonl")))
}

/// Returns the default folder of journals.
pub fn folder() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state =
        variable("XDG_STATE_HOME").or_else(|| Some(std::env::home_dir()?.join(".local/state")));
    Some(state?.join("tenterhook/journal"))
}

/// Closes the journal. Returns an error if not all of it was written.
pub fn close(journal: Option<&Arc<FileJournal>>) -> Result<(), CliError> {
    journal
        .map_or(Ok(()), |journal| journal.close())
        .map_err(|error| CliError::of(Exit::Failed, &error))
}

/// A sink that gives each record to several sinks.
#[derive(Debug)]
pub struct FanOutSink {
    /// The sinks.
    pub sinks: Vec<Arc<dyn JournalSink>>,
}

impl JournalSink for FanOutSink {
    fn record(&self, records: Vec<JournalRecord>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            join_all(self.sinks.iter().map(|sink| sink.record(records.clone()))).await;
        })
    }

    fn record_dropped(&self, record: JournalRecord) {
        for sink in &self.sinks {
            sink.record_dropped(record.clone());
        }
    }

    fn record_at_once(&self, record: JournalRecord) {
        for sink in &self.sinks {
            sink.record_at_once(record.clone());
        }
    }

    fn take_problem(&self) -> Option<String> {
        self.sinks.iter().find_map(|sink| sink.take_problem())
    }
}
