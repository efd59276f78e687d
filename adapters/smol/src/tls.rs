//! The client side of TLS: rustls with ring, and the roots of the operating system.

use futures_rustls::TlsConnector;
use rustls::{ClientConfig, RootCertStore};
use std::sync::{Arc, OnceLock};

/// A connector that trusts what the operating system trusts (`SSL_CERT_FILE` included). Reads the roots the first
/// time, which may take a while: call it where blocking is fine.
///
/// # Errors
/// When there is no root at all, or rustls refuses its own defaults.
pub(crate) fn connector() -> Result<TlsConnector, NoTls> {
    static CONNECTOR: OnceLock<Option<TlsConnector>> = OnceLock::new();
    CONNECTOR.get_or_init(build).clone().ok_or(NoTls)
}

/// TLS cannot be spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no usable certificate roots")]
pub(crate) struct NoTls;

fn build() -> Option<TlsConnector> {
    let mut roots = RootCertStore::empty();
    // Roots that do not parse are skipped; the others still count.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return None;
    }
    // Passed explicitly: a default that depends on the features of the whole build would panic one day.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Some(TlsConnector::from(Arc::new(config)))
}
