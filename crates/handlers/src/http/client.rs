//! One POST: how the connection is made, to whom, and what bounds it.
//!
//! | what | rule |
//! |---|---|
//! | deadline | the caller's; dropping the future closes the connection |
//! | connecting | at most [`CONNECT_TIMEOUT`] |
//! | at once | at most [`SLOTS`] requests of this process; the wait counts against the deadline |
//! | redirects, proxies, repeats | none |
//! | TLS | always verified, against the platform's roots |
//! | protocol | HTTP/1.1, no compression: the same in every build |
//! | kept connections | [`KEPT`] a host, each at most [`KEPT_FOR`] |

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

/// How long a connection may take to stand, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How many requests run at once.
const SLOTS: usize = 64;
/// How many idle connections to a host are kept.
const KEPT: usize = 8;
/// How long an idle connection is kept. Many servers close theirs after five seconds, and a request that meets
/// the close is lost; it must not be repeated, so it must not happen.
const KEPT_FOR: Duration = Duration::from_secs(3);

static SLOTS_LEFT: Semaphore = Semaphore::const_new(SLOTS);

/// The clients of this process, which keep the connections: with and without TLS, to public hosts and to all.
static CLIENTS: [OnceLock<reqwest::Client>; 4] = [const { OnceLock::new() }; 4];

/// A request that got no answer.
#[derive(Debug, Error)]
pub(crate) enum SendError {
    /// The client cannot be made: this machine has no roots of trust.
    #[error("cannot make the HTTP client: {problem}")]
    Client { problem: String },
    /// There was no answer.
    #[error("no answer from `{host}`: {problem}")]
    NoAnswer { host: String, problem: String },
}

/// The beginning of an answer. Its body is still on its way.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(super) response: reqwest::Response,
    _slot: Option<SemaphorePermit<'static>>,
}

/// Makes the client for a target, which reads the platform's roots from the disk. Later calls are free.
pub(crate) fn prepare(target: &Target) -> Result<(), SendError> {
    made(target).map(drop)
}

/// Posts JSON. Nothing is sent twice.
pub(crate) async fn post(
    target: &Target,
    headers: &Headers,
    body: impl Into<reqwest::Body>,
) -> Result<Posted, SendError> {
    let client = client(target).await?;
    // The semaphore is never closed, so there is always a permit in the end.
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

/// Returns what is at the bottom of an error of the client. The layers above it repeat the URL, which may hold a key.
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

/// Returns the place of the client for a target.
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
    let client = build(is_secure(target), resolver).map_err(|error| SendError::Client {
        problem: cause(&error),
    })?;
    Ok(slot.get_or_init(|| client))
}

/// Returns the client for a target, which is made where waiting is allowed if nobody has prepared it.
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

fn build(is_secure: bool, resolver: Option<PublicOnly>) -> reqwest::Result<reqwest::Client> {
    // The client asks the process for its TLS provider; one that the host chose stays.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        drop(rustls::crypto::ring::default_provider().install_default());
    }
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_max_idle_per_host(KEPT)
        .pool_idle_timeout(KEPT_FOR)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        // Through a proxy, the address that is connected to would be the proxy's.
        .no_proxy()
        .referer(false)
        .http1_only()
        .no_gzip()
        .no_brotli()
        .no_zstd()
        .no_deflate()
        .tcp_nodelay(true);
    let builder = match resolver {
        Some(resolver) => builder.dns_resolver(resolver),
        None => builder,
    };
    if is_secure {
        builder.https_only(true).build()
    } else {
        // Without TLS there is no need for roots, which a small container may not have.
        builder.tls_certs_only([]).build()
    }
}

/// Looks a name up.
type Lookup = fn(String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>>;

/// Looks names up and gives the client public addresses only. The client connects to what it is given and looks
/// nothing up again, so a name whose address changes between a check and its use gains nothing.
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

/// A name all of whose addresses are private.
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
        assert!(connection.is_pending(), "somebody connected");
    }
}
