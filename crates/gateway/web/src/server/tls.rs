//! The certificate of the server, and connections with TLS.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerConfig;
use tenterhook_channel::channel_secrets::check_private;
use tenterhook_channel::settings::TlsFiles;
use thiserror::Error;
use tokio_rustls::TlsAcceptor;

/// The maximum size of the file with the certificates, and of the one with the key, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// A certificate with its private key.
#[derive(Clone, Debug)]
pub struct TlsIdentity(Arc<ServerConfig>);

/// Why a certificate cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read the file `{}` of `tls`: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file with the certificates has none.
    #[error("`{}` has no certificate; expected PEM with `BEGIN CERTIFICATE`", _0.display())]
    NoCertificate(PathBuf),
    /// The file with the key has none.
    #[error("`{}` has no private key; expected PEM with `BEGIN PRIVATE KEY`", _0.display())]
    NoKey(PathBuf),
    /// The certificate and the key cannot be used together.
    #[error("the certificate `{}` cannot be used with the key `{}`: {source}", files.cert.display(), files.key.display())]
    Unusable {
        /// The files.
        files: TlsFiles,
        /// The cause.
        source: rustls::Error,
    },
}

impl TlsIdentity {
    /// Reads a certificate and its key. Blocks while it reads the files.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read, if others can read the key, and if the two do not belong together.
    pub fn read(files: &TlsFiles) -> Result<Self, TlsError> {
        let cert = read_file(&files.cert, false)?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&cert).collect();
        let certificates = certificates.ok().filter(|found| !found.is_empty());
        let certificates =
            certificates.ok_or_else(|| TlsError::NoCertificate(files.cert.clone()))?;
        let key = PrivateKeyDer::from_pem_slice(&read_file(&files.key, true)?)
            .map_err(|_| TlsError::NoKey(files.key.clone()))?;
        // A library must not choose the provider of the process.
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions();
        let config = builder.and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(certificates, key)
        });
        let mut config = config.map_err(|source| TlsError::Unusable {
            files: files.clone(),
            source,
        })?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.0))
    }
}

/// Reads a small regular file. A private one must not be readable by others.
fn read_file(path: &Path, is_private: bool) -> Result<Vec<u8>, TlsError> {
    read_regular(path, is_private).map_err(|source| TlsError::Unreadable {
        path: path.to_owned(),
        source,
    })
}

fn read_regular(path: &Path, is_private: bool) -> io::Result<Vec<u8>> {
    // Opening a pipe would block, so look first. What was opened is checked again.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if metadata.len() > MAX_FILE {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    if is_private {
        check_private(&metadata)?;
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(bytes)
}
