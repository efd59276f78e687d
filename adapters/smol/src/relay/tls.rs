//! Native TLS: a certificate that can be replaced while the relay runs (`--tls-cert`, `--tls-key`, SIGHUP).

use futures_rustls::TlsAcceptor;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// Where the certificate chain and its private key are, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain, the relay's own certificate first.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// Why the files are of no use, in fixed words: a key is not quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TlsError {
    #[error("the certificate chain cannot be read")]
    Chain,
    #[error("the private key cannot be read")]
    Key,
    #[error("the private key is not the certificate's")]
    Mismatch,
    #[error("TLS cannot be set up")]
    Config,
}

/// The relay's side of TLS.
#[derive(Clone)]
pub(super) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    current: Arc<Current>,
    files: TlsFiles,
}

/// The certificate in use.
#[derive(Debug)]
struct Current(RwLock<Arc<CertifiedKey>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl Tls {
    /// Reads the files.
    pub(super) fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        // Passed explicitly: a default that depends on the features of the whole build would panic one day.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let current = Arc::new(Current(RwLock::new(Arc::new(read(files, &provider)?))));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|_| TlsError::Config)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), current, files: files.clone() })
    }

    /// Reads the files again: new connections get what they hold now. On an error the old certificate stays.
    pub(super) fn reload(&self) -> Result<(), TlsError> {
        let fresh = Arc::new(read(&self.files, &rustls::crypto::ring::default_provider())?);
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        Ok(())
    }
}

fn read(files: &TlsFiles, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let chain: Vec<_> = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect)
        .map_err(|_| TlsError::Chain)?;
    if chain.is_empty() {
        return Err(TlsError::Chain);
    }
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|_| TlsError::Key)?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => TlsError::Mismatch,
        _ => TlsError::Key,
    })
}
