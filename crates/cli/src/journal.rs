//! Where the command line keeps its journal.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use tenterhook::journal::JournalRecord;
use tenterhook::{FileJournal, JournalSink};
use tenterhook_handlers::secret::RedactingJournal;

use crate::args::JournalArgs;
use crate::error::CliError;
use crate::exit::Exit;

/// Opens the journal of a call: the file that was named, else the day's file in the user's state folder.
pub(crate) fn open(args: &JournalArgs) -> Result<Option<Arc<FileJournal>>, CliError> {
    if args.no_journal {
        return Ok(None);
    }
    let path = args.journal.clone().map_or_else(default_path, Ok)?;
    let journal = FileJournal::open(path).map_err(|error| {
        CliError::of(Exit::Failed, &error)
            .hint("name another file with `--journal FILE`, or pass `--no-journal`")
    })?;
    Ok(Some(Arc::new(journal)))
}

/// Returns a sink that passes records on without their secrets.
pub(crate) fn without_secrets(sink: Arc<dyn JournalSink>) -> Arc<dyn JournalSink> {
    Arc::new(RedactingJournal::new(sink))
}

fn default_path() -> Result<PathBuf, CliError> {
    let folder = folder().ok_or_else(|| {
        CliError::new(
            Exit::Failed,
            "there is no home folder to keep the journal in",
        )
        .hint("name a file with `--journal FILE`, or pass `--no-journal`")
    })?;
    let day = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
    Ok(folder.join(format!("{day}.jsonl")))
}

/// Returns the folder of the journals that no call named.
pub(crate) fn folder() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let state =
        variable("XDG_STATE_HOME").or_else(|| Some(std::env::home_dir()?.join(".local/state")));
    Some(state?.join("tenterhook/journal"))
}

/// Ends the journal and says whether all of it was written.
pub(crate) fn close(journal: Option<&Arc<FileJournal>>) -> Result<(), CliError> {
    journal
        .map_or(Ok(()), |journal| journal.close())
        .map_err(|error| CliError::of(Exit::Failed, &error))
}

/// Gives records to several sinks.
#[derive(Debug)]
pub(crate) struct Tee {
    pub(crate) sinks: Vec<Arc<dyn JournalSink>>,
}

impl JournalSink for Tee {
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

    fn take_problem(&self) -> Option<String> {
        self.sinks.iter().find_map(|sink| sink.take_problem())
    }
}
