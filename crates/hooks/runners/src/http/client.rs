//! One POST request: how the connection is made, where it leads, and its limits.
//!
//! | what | rule |
//! |---|---|
//! | deadline | set by the caller; dropping the future closes the connection |
//! | connecting | at most [`CONNECT_TIMEOUT`] |
//! | concurrency | at most [`SLOTS`] requests of this process; the wait counts against the deadline |
//! | redirects, proxies, retries | none |
//! | TLS | always verified with the platform's root certificates |
//! | protocol | HTTP/1.1, no compression: the same in every build |
//! | idle connections | at most [`KEPT`] per host, each for at most [`KEPT_FOR`] |

use std::error::Error as _;
use std::io;
use std::net::SocketAddr;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use reqwest::{redirect, retry};
use thiserror::Error;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::address::not_public;
use super::target::{Headers, Target};
use super::tls::{ClientTlsError, tls_config, tls_config_without_roots};

/// How long it may take to connect, including TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many requests run at once.
const SLOTS: usize = 64;
/// How many idle connections are kept per host.
const KEPT: usize = 8;
/// How long an idle connection is kept. Many servers close idle connections after five seconds. A
/// request that is sent at that moment would be lost, and requests are never repeated, so
/// connections must be closed earlier.
const KEPT_FOR: Duration = Duration::from_secs(3);

static SLOTS_LEFT: Semaphore = Semaphore::const_new(SLOTS);

/// The HTTP clients of this process, which keep idle connections: with and without TLS, and for
/// public hosts only or for all hosts.
static CLIENTS: [OnceLock<reqwest::Client>; 4] = [const { OnceLock::new() }; 4];

/// Why a request got no answer.
#[derive(Debug, Error)]
pub enum SendError {
    /// The client cannot be made, for example because this machine has no root certificates.
    #[error("cannot make the HTTP client: {problem}")]
    Client { problem: String },
    /// The host did not answer.
    #[error("no answer from `{host}`: {problem}")]
    NoAnswer { host: String, problem: String },
}

/// The start of an answer, whose body has not been read yet.
#[derive(Debug)]
pub struct Posted {
    pub(super) response: reqwest::Response,
    _slot: Option<SemaphorePermit<'static>>,
}

/// Makes the client for a target. The first call reads the platform's root certificates from the
/// disk. Later calls are cheap.
pub fn prepare(target: &Target) -> Result<(), SendError> {
    made(target).map(drop)
}

/// Posts JSON. A failed request is not repeated.
pub async fn post(
    target: &Target,
    headers: &Headers,
    body: impl Into<reqwest::Body>,
) -> Result<Posted, SendError> {
    let client = client(target).await?;
    // The semaphore is never closed, so this always gets a permit eventually.
    let slot = SLOTS_LEFT.acquire().await.ok();
    let response = send(client, target, headers, body.into()).await?;
    Ok(Posted {
        response,
        _slot: slot,
    })
}

async fn send(
    client: &reqwest::Client,
    target: &Target,
    headers: &Headers,
    body: reqwest::Body,
) -> Result<reqwest::Response, SendError> {
    let request = client
        .post(target.url().clone())
        .header(ACCEPT, "application/json, text/plain;q=0.5")
        .headers(headers.map().clone())
        .header(CONTENT_TYPE, "application/json")
        .header(
            USER_AGENT,
            concat!("tenterhook/", env!("CARGO_PKG_VERSION")),
        )
        .body(body);
    request.send().await.map_err(|error| SendError::NoAnswer {
        host: target.host().to_owned(),
        problem: cause(&error),
    })
}

/// Returns the root cause of an error of the client. The errors above it repeat the URL, which may
/// contain a key.
pub(super) fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() && error.is_connect() {
        return format!("no connection within {}s", CONNECT_TIMEOUT.as_secs());
    }
    let mut source = error.source();
    let mut text = None;
    while let Some(error) = source {
        text = Some(error.to_string());
        source = error.source();
    }
    text.unwrap_or_else(|| "the request failed".to_owned())
}

/// Returns where the client for a target is stored.
fn slot(target: &Target) -> &'static OnceLock<reqwest::Client> {
    let [open, open_private, tls, tls_private] = &CLIENTS;
    match (is_secure(target), target.allows_private()) {
        (false, false) => open,
        (false, true) => open_private,
        (true, false) => tls,
        (true, true) => tls_private,
    }
}

fn is_secure(target: &Target) -> bool {
    target.url().scheme() == "https"
}

fn made(target: &Target) -> Result<&'static reqwest::Client, SendError> {
    let slot = slot(target);
    if let Some(client) = slot.get() {
        return Ok(client);
    }
    let resolver = (!target.allows_private()).then(PublicOnly::of_system);
    let client = build(is_secure(target), resolver)?;
    Ok(slot.get_or_init(|| client))
}

/// Returns the client for a target. If [`prepare`] was not called, the client is made on a thread
/// that may block.
async fn client(target: &Target) -> Result<&'static reqwest::Client, SendError> {
    if let Some(client) = slot(target).get() {
        return Ok(client);
    }
    let target = target.clone();
    let making = tokio::task::spawn_blocking(move || made(&target));
    making.await.unwrap_or_else(|error| {
        Err(SendError::Client {
            problem: error.to_string(),
        })
    })
}

fn build(is_secure: bool, resolver: Option<PublicOnly>) -> Result<reqwest::Client, SendError> {
    let builder = direct_client(is_secure).map_err(|error| SendError::Client {
        problem: error.to_string(),
    })?;
    let builder = builder
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(KEPT)
        .pool_idle_timeout(KEPT_FOR)
        .tcp_nodelay(true);
    let builder = match resolver {
        Some(resolver) => builder.dns_resolver(resolver),
        None => builder,
    };
    builder.build().map_err(|error| SendError::Client {
        problem: cause(&error),
    })
}

/// Returns the builder of a client that connects directly to the given server: with HTTP/1.1, and without
/// redirects, proxies, repeated requests and compression. `is_secure` allows `https` only.
///
/// # Errors
/// Fails if `is_secure` and this machine has no root certificates, or the program has no TLS provider.
pub fn direct_client(is_secure: bool) -> Result<reqwest::ClientBuilder, ClientTlsError> {
    let tls = if is_secure {
        tls_config(&["http/1.1"])
    } else {
        tls_config_without_roots()
    }?;
    Ok(reqwest::Client::builder()
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        // With a proxy, an address check would see the proxy's address instead of the target's.
        .no_proxy()
        .referer(false)
        .http1_only()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .https_only(is_secure)
        .tls_backend_preconfigured(tls))
}

/// A function that looks up the addresses of a host name.
type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Looks up names and gives the client only their public addresses. The client connects to exactly
/// these addresses and does not look up the name again. So a name cannot change its address between
/// the check and the connection.
#[derive(Debug)]
struct PublicOnly {
    lookup: Lookup,
}

impl PublicOnly {
    fn of_system() -> Self {
        Self {
            lookup: |name| {
                Box::pin(
                    async move { Ok(tokio::net::lookup_host((name.as_str(), 0)).await?.collect()) },
                )
            },
        }
    }
}

/// The error for a name that has only private addresses.
#[derive(Debug, Error)]
#[error("its address {address} is {what}, and private addresses are not allowed")]
struct Refused {
    address: std::net::IpAddr,
    what: &'static str,
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let mut refused = None;
            let mut public = Vec::new();
            for address in lookup.await? {
                match not_public(address.ip()) {
                    Some(what) => {
                        refused.get_or_insert(Refused {
                            address: address.ip(),
                            what,
                        });
                    }
                    None => public.push(address),
                }
            }
            match refused {
                Some(refused) if public.is_empty() => Err(refused.into()),
                _ => Ok(Box::new(public.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn lookup(
        addresses: &'static [&'static str],
    ) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        let parsed = addresses
            .iter()
            .map(|text| SocketAddr::new(text.parse().unwrap(), 0));
        Box::pin(std::future::ready(Ok(parsed.collect())))
    }

    #[tokio::test]
    async fn the_names_of_the_system_are_filtered_too() {
        let resolving = PublicOnly::of_system().resolve("localhost".parse().unwrap());
        let error = resolving.await.err().unwrap().to_string();
        assert!(error.contains("a loopback address"), "{error}");
    }

    async fn resolved(lookup: Lookup) -> Result<Vec<String>, String> {
        let resolver = PublicOnly { lookup };
        match resolver.resolve("host.test".parse().unwrap()).await {
            Ok(addresses) => Ok(addresses.map(|address| address.ip().to_string()).collect()),
            Err(error) => Err(error.to_string()),
        }
    }

    #[tokio::test]
    async fn a_name_leads_to_its_public_addresses_only() {
        let both = resolved(|_| lookup(&["127.0.0.1", "1.1.1.1", "fd00::1", "2606:4700::1"])).await;
        assert_eq!(both.unwrap(), ["1.1.1.1", "2606:4700::1"]);
        let error = resolved(|_| lookup(&["169.254.169.254", "::1"]))
            .await
            .unwrap_err();
        assert_eq!(
            error,
            "its address 169.254.169.254 is a link-local address, and private addresses are not allowed"
        );
        let mapped = resolved(|_| lookup(&["::ffff:10.0.0.1"]))
            .await
            .unwrap_err();
        assert!(mapped.contains("a private address"), "{mapped}");
        let error = resolved(|_| Box::pin(async { Err(io::Error::other("no such host")) })).await;
        assert_eq!(error.unwrap_err(), "no such host");
    }

    #[tokio::test]
    async fn a_name_that_passes_for_public_never_reaches_this_machine() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Target::parse(&format!("http://public.test:{port}/"), false).unwrap();
        let resolver = PublicOnly {
            lookup: |_| lookup(&["127.0.0.1"]),
        };
        let client = build(false, Some(resolver)).unwrap();
        let error = send(&client, &target, &Headers::default(), Vec::new().into())
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "no answer from `public.test`: its address 127.0.0.1 is a loopback address, and private addresses are not allowed"
        );
        let connection = futures_util::poll!(std::pin::pin!(listener.accept()));
        assert!(connection.is_pending(), "a client connected");
    }
}
