//! The page of the inspector, on a port of this machine.

use std::net::SocketAddr;
use std::sync::Arc;

use tenterhook_agent::CancellationToken;
use tenterhook_inspect::Inspector;
use tenterhook_setup::error::CliError;
use tenterhook_setup::exit::Exit;
use tenterhook_web::server::InspectorServer;
use tokio::net::TcpListener;

/// A page that is about to be served.
pub(crate) struct InspectorPage(InspectorServer);

impl InspectorPage {
    /// Takes the address. `command` prints a new link.
    pub(crate) async fn bind(address: SocketAddr, command: &'static str) -> Result<Self, CliError> {
        let listener = TcpListener::bind(address).await.map_err(|error| {
            CliError::new(Exit::Failed, format!("cannot listen on {address}"))
                .cause(&error)
                .hint("choose another address with `--listen ADDR`; port 0 is any free port")
        })?;
        let server = InspectorServer::new(listener, command).await;
        server.map(Self).map_err(|error| {
            CliError::new(Exit::Failed, "cannot start the inspector").cause(&error)
        })
    }

    /// Returns a link that opens the page, once.
    pub(crate) fn link(&self) -> Result<String, CliError> {
        let link = self.0.link();
        link.map_err(|error| CliError::of(Exit::Failed, &error))
    }

    /// Serves the page until `stop` is cancelled.
    pub(crate) async fn serve(self, inspector: Arc<Inspector>, stop: CancellationToken) {
        self.0.serve(inspector, stop).await;
    }
}
