//! A server for one inspector, for the user who started it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use tenterhook_inspect::Inspector;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::client_places::ClientPlaces;
use super::guarded::checked;
use super::http_error::HttpError;
use super::login::{Logins, NoRandomness};
use super::origin::AllowedOrigins;
use super::state::{Gatekeeper, SharedGatekeeper};
use super::{connections, inspection, session};
use tenterhook_channel::rate::{Lockout, RateLimit};
use tenterhook_channel::store::{Store, StoreError};
use tenterhook_channel::token::{AccessScope, DEFAULT_USER, TokenError, Tokens};

/// How long the link works, as the reference of the command line says. You may open it long after you started the program, and there is no other way in.
const LINK_LIFE: Duration = Duration::from_hours(24);

/// A server for one inspector. Only a browser that opens its link can use it. It keeps nothing on the disk.
#[derive(Debug)]
pub struct InspectorServer {
    listener: TcpListener,
    address: SocketAddr,
    gatekeeper: SharedGatekeeper,
}

impl InspectorServer {
    /// Creates the server of a listener. `link_command` is the command that prints a new link.
    ///
    /// # Errors
    ///
    /// Fails if the system has no address for the listener, no memory or no threads.
    pub async fn new(
        listener: TcpListener,
        link_command: &'static str,
    ) -> Result<Self, InspectorServerError> {
        let address = listener.local_addr()?;
        let tokens = Tokens::open(Store::in_memory()?).await?;
        let gatekeeper = Gatekeeper {
            allowed: AllowedOrigins::new(&[], &[], &[], address.port(), false),
            port: address.port(),
            tokens,
            lockout: Lockout::default(),
            logins: Logins::with_life(LINK_LIFE),
            link_command,
            rate: RateLimit::per_token(),
            clients: ClientPlaces::default(),
        };
        Ok(Self {
            listener,
            address,
            gatekeeper: Arc::new(gatekeeper),
        })
    }

    /// Returns an address that opens the page, once.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random numbers.
    pub fn link(&self) -> Result<String, NoRandomness> {
        let scopes = vec![AccessScope::Inspect];
        let code = self.gatekeeper.logins.code(DEFAULT_USER, scopes)?;
        Ok(format!("http://{}/inspect/#code={code}", self.address))
    }

    /// Serves until `stop` is cancelled.
    pub async fn serve(self, inspector: Arc<Inspector>, stop: CancellationToken) {
        let gatekeeper = &self.gatekeeper;
        let login = post(session::login).with_state(Arc::clone(gatekeeper));
        let routes = Router::new()
            .route("/v1/login", login)
            .merge(inspection::routes(&inspector, gatekeeper, &stop))
            .fallback(async || HttpError::not_found("there is no such address"));
        connections::serve(self.listener, None, checked(routes, gatekeeper), &[], stop).await;
    }
}

/// Why the server of an inspector cannot start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub enum InspectorServerError {
    /// The listener has no address.
    Address(#[from] std::io::Error),
    /// Nothing can be kept in memory.
    Store(#[from] StoreError),
    /// No tokens can be created.
    Tokens(#[from] TokenError),
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_link_works_as_long_as_the_reference_says() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let reference = root.join("docs/reference/command-line.md");
        let reference = std::fs::read_to_string(reference).unwrap();
        let hours = LINK_LIFE.as_secs() / 3600;
        assert!(reference.contains(&format!("the other two for {hours} hours")));
    }
}
