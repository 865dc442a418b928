//! What the inspector of a program that runs hooks collects.

use std::sync::Arc;

use tenterhook_engine::{Engine, HookObserver, JournalSink};
use tenterhook_inspect::{
    HookDetails, HookList, InspectedSource, Inspector, LiveJournal, ShownSessions,
};

use crate::error::CliError;
use crate::exit::Exit;
use crate::hook_list::HookListing;

/// The records and payloads that an engine gives to its inspector.
#[derive(Debug, Clone)]
pub struct LiveInspector {
    journal: Arc<LiveJournal>,
    details: Option<Arc<HookDetails>>,
    hooks: Arc<HookList>,
    sessions: ShownSessions,
}

impl LiveInspector {
    /// Begins to collect records of these sessions, and payloads if `has_payloads` says so.
    ///
    /// # Errors
    ///
    /// Fails if the system starts no more threads.
    pub fn start(has_payloads: bool, sessions: ShownSessions) -> Result<Self, CliError> {
        let details = has_payloads.then(HookDetails::start).transpose();
        let details = details.map_err(|error| {
            CliError::new(Exit::Failed, "cannot start the inspector").cause(&error)
        })?;
        Ok(Self {
            journal: Arc::new(LiveJournal::new().showing(sessions.clone())),
            details: details.map(|details| Arc::new(details.showing(sessions.clone()))),
            hooks: Arc::default(),
            sessions,
        })
    }

    /// Returns the sessions whose contents are shown.
    pub fn sessions(&self) -> &ShownSessions {
        &self.sessions
    }

    /// Returns the journal of the engine.
    pub fn journal(&self) -> Arc<dyn JournalSink> {
        Arc::clone(&self.journal) as _
    }

    /// Returns the observer of the engine, if payloads are collected.
    pub fn observer(&self) -> Option<Arc<dyn HookObserver>> {
        self.details.clone().map(|details| details as _)
    }

    /// Shows the hooks of `engine` from now on, also those that a reload adds.
    pub fn follow_hooks(&self, listing: HookListing, engine: Engine) {
        self.hooks.follow(move || listing.of(&engine));
    }

    /// Returns what the page shows.
    pub fn inspector(&self, source: InspectedSource) -> Inspector {
        let hooks = Arc::clone(&self.hooks);
        let inspector = Inspector::new(source, Arc::clone(self.journal.log())).with_hooks(hooks);
        match &self.details {
            Some(details) => inspector.with_details(Arc::clone(details)),
            None => inspector,
        }
    }
}
