//! TLS for the HTTP clients of this process.
//!
//! Each client gets its own configuration. This module never sets the process-wide provider of
//! `rustls`, because it belongs to the host. With the feature `ring`, it does not read it either.

use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::Verifier;
use thiserror::Error;

/// The error of an HTTP client that cannot be created.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ClientTlsError {
    /// The program has no TLS provider.
    #[error(
        "this program has no TLS provider for HTTP hooks; install one at its start with \
         `rustls::crypto::CryptoProvider::install_default`, or enable the feature `ring` of `tenterhook`"
    )]
    NoProvider,
    /// The provider or the root certificates of this machine cannot be used.
    #[error(transparent)]
    Rustls(#[from] rustls::Error),
}

/// Returns the configuration of a client that verifies servers with the platform's root
/// certificates, which are read from the disk. `protocols`, such as `h2` and `http/1.1`, are
/// offered to the server in the given order.
///
/// # Errors
/// Fails if this machine has no root certificates, or the program no TLS provider.
pub fn tls_config(protocols: &[&str]) -> Result<ClientConfig, ClientTlsError> {
    let provider = provider()?;
    let verifier = Verifier::new(Arc::clone(&provider))?;
    let mut config = builder(provider)?
        // `dangerous` is the API for custom verifiers. This one is the platform's, so servers are verified.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Ok(config)
}

/// Returns the configuration of a client that makes no TLS connections. It trusts no certificate
/// and does not read the root certificates, because a small container may not have any.
///
/// # Errors
/// Fails if the program has no TLS provider, or the provider supports none of the protocol versions.
pub fn tls_config_without_roots() -> Result<ClientConfig, ClientTlsError> {
    let config = builder(provider()?)?;
    Ok(config
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

#[cfg(feature = "ring")]
#[expect(
    clippy::unnecessary_wraps,
    reason = "without the feature, there may be no provider"
)]
fn provider() -> Result<Arc<CryptoProvider>, ClientTlsError> {
    Ok(Arc::new(rustls::crypto::ring::default_provider()))
}

// `rustls` could also choose by the features of the program, but it would install that choice for the whole process.
#[cfg(not(feature = "ring"))]
fn provider() -> Result<Arc<CryptoProvider>, ClientTlsError> {
    CryptoProvider::get_default()
        .cloned()
        .ok_or(ClientTlsError::NoProvider)
}

fn builder(
    provider: Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}
