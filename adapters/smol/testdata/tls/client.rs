//! A TLS client that trusts the test authority beside this file. Two packages' tests include it with `#[path]`.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub(crate) type Stream = StreamOwned<ClientConnection, TcpStream>;

/// A file beside this one.
pub(crate) fn file(name: &str) -> PathBuf {
    // Of this package, or of the one next to it.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["testdata/tls", "../../adapters/smol/testdata/tls"].map(|folder| package.join(folder));
    folders.into_iter().map(|folder| folder.join(name)).find(|path| path.exists()).unwrap()
}

pub(crate) fn certificate(name: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_file(file(name)).unwrap()
}

/// Connects, and comes to the end of the handshake with the server of this name.
pub(crate) fn dial(address: SocketAddr, name: &'static str) -> std::io::Result<Stream> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.crt")).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let session = ClientConnection::new(Arc::new(config), ServerName::try_from(name).unwrap()).unwrap();
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut stream = StreamOwned::new(session, stream);
    while stream.conn.is_handshaking() {
        stream.conn.complete_io(&mut stream.sock)?;
    }
    Ok(stream)
}

/// The certificate that the server showed.
pub(crate) fn shown(stream: &Stream) -> CertificateDer<'static> {
    stream.conn.peer_certificates().unwrap()[0].clone().into_owned()
}
