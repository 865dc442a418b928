//! What the inspector of a program that runs hooks collects.

use std::sync::Arc;

use serde_json::Value;
use tenterhook_engine::{HookObserver, JournalSink};
use tenterhook_inspect::{HookDetails, InspectedSource, Inspector, LiveJournal};

use crate::error::CliError;
use crate::exit::Exit;

/// The records and payloads that an engine gives to its inspector.
#[derive(Debug)]
pub struct LiveInspector {
    journal: Arc<LiveJournal>,
    details: Option<Arc<HookDetails>>,
}

impl LiveInspector {
    /// Begins to collect records, and payloads if `has_payloads` says so.
    ///
    /// # Errors
    ///
    /// Fails if the system starts no more threads.
    pub fn start(has_payloads: bool) -> Result<Self, CliError> {
        let details = has_payloads.then(HookDetails::start).transpose();
        let details = details.map_err(|error| {
            CliError::new(Exit::Failed, "cannot start the inspector").cause(&error)
        })?;
        Ok(Self {
            journal: Arc::default(),
            details: details.map(Arc::new),
        })
    }

    /// Returns the journal of the engine.
    pub fn journal(&self) -> Arc<dyn JournalSink> {
        Arc::clone(&self.journal) as _
    }

    /// Returns the observer of the engine, if payloads are collected.
    pub fn observer(&self) -> Option<Arc<dyn HookObserver>> {
        self.details.clone().map(|details| details as _)
    }

    /// Returns what the page shows. `hooks` is the list of the hooks in force.
    pub fn inspector(&self, source: InspectedSource, hooks: Value) -> Inspector {
        let inspector = Inspector::new(source, Arc::clone(self.journal.log())).with_hooks(hooks);
        match &self.details {
            Some(details) => inspector.with_details(Arc::clone(details)),
            None => inspector,
        }
    }
}
