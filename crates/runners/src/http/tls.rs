//! TLS for the HTTP clients of this process.
//!
//! Each client gets its own configuration. This module neither reads nor sets the process-wide
//! provider of `rustls`, because it belongs to the host.

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier};
use rustls_platform_verifier::Verifier;

/// Returns the configuration of a client that verifies servers with the platform's root
/// certificates, which are read from the disk. `protocols`, such as `h2` and `http/1.1`, are
/// offered to the server in the given order.
///
/// # Errors
/// Fails if this machine has no root certificates.
pub fn tls_config(protocols: &[&str]) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
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
/// Fails if the provider supports none of the protocol versions.
pub fn tls_config_without_roots() -> Result<ClientConfig, rustls::Error> {
    let config = builder(Arc::new(ring::default_provider()))?;
    Ok(config
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth())
}

fn builder(
    provider: Arc<CryptoProvider>,
) -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()
}
