//! The inspector of a run: `tenterhook run --inspect`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tenterhook_agent::CancellationToken;
use tenterhook_engine::{Engine, HookObserver, JournalSink};
use tenterhook_inspect::{InspectedSource, ShownSessions};
use tenterhook_journal::FileJournal;
use tenterhook_protocol::escape::escape_line;
use tenterhook_setup::error::CliError;
use tenterhook_setup::hook_list::HookListing;
use tenterhook_setup::live_inspector::LiveInspector;
use tenterhook_terminal::output;
use tokio::task::JoinHandle;

use crate::inspector_page::InspectorPage;

/// The inspector of a run, if one was requested.
pub(super) struct RunInspection(Option<ServedInspection>);

struct ServedInspection {
    collected: LiveInspector,
    /// The file that has the records after the run.
    journal: Option<PathBuf>,
    stop: CancellationToken,
    server: JoinHandle<()>,
}

impl RunInspection {
    /// Serves the page and prints its link on stderr, if the inspector `is_requested`. `journal` is the file that also
    /// gets the records.
    pub(super) async fn start(
        is_requested: bool,
        journal: Option<&Arc<FileJournal>>,
    ) -> Result<Self, CliError> {
        if !is_requested {
            return Ok(Self(None));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let page = InspectorPage::bind(address, "tenterhook run --inspect").await?;
        let collected = LiveInspector::start(true, ShownSessions::default())?;
        let inspector = Arc::new(collected.inspector(InspectedSource::Run));
        output::note(format_args!(
            "Open {} in a browser to inspect this run. The link works once.",
            page.link()?
        ));
        let stop = CancellationToken::new();
        let server = tokio::spawn(page.serve(inspector, stop.clone()));
        Ok(Self(Some(ServedInspection {
            collected,
            journal: journal.map(|journal| journal.path().to_owned()),
            stop,
            server,
        })))
    }

    /// Returns the journal of the engine.
    pub(super) fn journal(&self) -> Option<Arc<dyn JournalSink>> {
        self.0.as_ref().map(|served| served.collected.journal())
    }

    /// Shows the hooks of the engine, also those that `/reload` adds.
    pub(super) fn follow_hooks(&self, listing: HookListing, engine: &Engine) {
        if let Some(served) = &self.0 {
            served.collected.follow_hooks(listing, engine.clone());
        }
    }

    /// Returns the observer of the engine.
    pub(super) fn observer(&self) -> Option<Arc<dyn HookObserver>> {
        self.0.as_ref()?.collected.observer()
    }

    /// Stops the server, and says how to open the page again.
    pub(super) async fn end(self) {
        let Some(served) = self.0 else {
            return;
        };
        served.stop.cancel();
        // A panic of the server has been reported, and the run is over.
        drop(served.server.await);
        if let Some(journal) = served.journal {
            let journal = escape_line(&journal.display().to_string());
            output::note(format_args!(
                "The inspector has ended. To see the records again, run `tenterhook inspect '{journal}'`."
            ));
        }
    }
}
