//! The options that choose the journal of a command.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Parser;
use tenterhook_engine::JournalSink as _;
use tenterhook_engine::journal::JournalRecord;
use tenterhook_journal::FileJournal;
use tenterhook_setup::error::CliError;
use tenterhook_setup::journal;

/// Where the journal is written.
#[derive(Debug, Clone, Parser)]
pub(crate) struct JournalArgs {
    /// Append the journal to FILE instead of the day's file in the user's state folder.
    #[arg(long, value_name = "FILE", conflicts_with = "no_journal")]
    pub(crate) journal: Option<PathBuf>,

    /// Write no journal.
    #[arg(long)]
    pub(crate) no_journal: bool,
}

impl JournalArgs {
    /// Opens the journal, unless the user wants none.
    pub(crate) fn open(&self) -> Result<Option<Arc<FileJournal>>, CliError> {
        if self.no_journal {
            return Ok(None);
        }
        journal::open(self.journal.clone()).map(Some)
    }

    /// Writes one record about what the user did, unless the user wants no journal.
    pub(crate) async fn record(&self, record: JournalRecord) -> Result<(), CliError> {
        let file = self.open()?;
        if let Some(file) = &file {
            file.record(vec![record]).await;
        }
        journal::close(file.as_ref())
    }
}
