//! The HTTP client for calls to a model service. It connects to no other server.

use std::time::Duration;

use reqwest::Url;
use reqwest::redirect::Policy;
use tenterhook_runners::http::tls_config;

use crate::service::ConnectError;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The maximum number of redirects within a service that one request follows.
const MAX_REDIRECTS: usize = 5;

/// Creates the HTTP client. A service on this machine is never reached through a proxy.
pub(crate) fn http_client(url: &Url) -> Result<reqwest::Client, ConnectError> {
    let tls = tls_config(&["h2", "http/1.1"]).map_err(ConnectError::Tls)?;
    let builder = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(within_the_service())
        .tcp_nodelay(true);
    let is_local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    let builder = if is_local {
        builder.no_proxy()
    } else {
        builder
    };
    builder.build().map_err(ConnectError::Client)
}

/// Allows redirects only within the service. The HTTP client would otherwise send the service's own key headers to any
/// address.
fn within_the_service() -> Policy {
    Policy::custom(|attempt| {
        let from = attempt.previous().last().map(Url::origin);
        let is_own = from == Some(attempt.url().origin());
        if is_own && attempt.previous().len() <= MAX_REDIRECTS {
            attempt.follow()
        } else {
            attempt.stop()
        }
    })
}
