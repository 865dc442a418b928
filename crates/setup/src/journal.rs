//! Opens and closes the journal of a call, and finds its default folder.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use tenterhook_engine::JournalSink;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_journal::FileJournal;

use crate::error::CliError;
use crate::exit::Exit;
use clap::Parser;
use tenterhook_terminal::local_time;

/// Where the journal is written.
#[derive(Debug, Clone, Parser)]
pub struct JournalArgs {
    /// Append the journal to FILE instead of the day's file in the user's state folder.
    #[arg(long, value_name = "FILE", conflicts_with = "no_journal")]
    pub journal: Option<PathBuf>,

    /// Write no journal.
    #[arg(long)]
    pub no_journal: bool,
}

/// Opens the journal of a call: the file of `--journal`, else the day's file in the user's state folder.
pub fn open(args: &JournalArgs) -> Result<Option<Arc<FileJournal>>, CliError> {
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

/// Records in the journal what the user does to the hooks.
pub async fn record_action(args: &JournalArgs, record: JournalRecord) -> Result<(), CliError> {
    let file = open(args)?;
    if let Some(file) = &file {
        file.record(vec![record]).await;
    }
    close(file.as_ref())
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
