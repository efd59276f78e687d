//! Reaching a relay: name, TCP, TLS, upgrade. `ws://` to this computer only, `wss://` elsewhere
//! (`messaging/1 §7`, "TLS").

use crate::tls;
use async_io::{Async, Timer};
use async_tungstenite::tungstenite::client::IntoClientRequest;
use async_tungstenite::tungstenite::http::HeaderValue;
use async_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use async_tungstenite::tungstenite::protocol::WebSocketConfig;
use async_tungstenite::tungstenite::{self};
use async_tungstenite::{WebSocketStream, client_async_with_config};
use futures_lite::{AsyncRead, AsyncWrite, future};
use messaging_machines::daemon::io::LinkEnd;
use messaging_proto::frame::PROTO;
use messaging_proto::relay_url::RelayUrl;
use rustls::pki_types::ServerName;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long one address may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the whole of it may take.
const DIAL_TIMEOUT: Duration = Duration::from_secs(20);

/// A byte stream, encrypted or not.
pub(crate) type Wire = Box<dyn Duplex>;

/// Both directions of a stream.
pub(crate) trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// Connects to the relay at `url`.
///
/// The reason of a failure is one of a few fixed words, since it is shown and logged.
pub(super) async fn dial(url: &str, config: WebSocketConfig) -> Result<WebSocketStream<Wire>, LinkEnd> {
    let late = async {
        Timer::after(DIAL_TIMEOUT).await;
        Err("timeout".to_owned())
    };
    future::or(attempt(url, config), late).await.map_err(LinkEnd::Unreachable)
}

async fn attempt(text: &str, config: WebSocketConfig) -> Result<WebSocketStream<Wire>, String> {
    let fixed = |word: &str| word.to_owned();
    let wire = open(text).await?;
    let mut request = text.into_client_request().map_err(|_| fixed("url"))?;
    request.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTO));
    match client_async_with_config(request, wire, Some(config)).await {
        Ok((socket, response)) => {
            let agreed = response.headers().get(SEC_WEBSOCKET_PROTOCOL).is_some_and(|proto| proto == PROTO);
            if agreed { Ok(socket) } else { Err(fixed("subprotocol")) }
        }
        Err(tungstenite::Error::Http(response)) => Err(format!("http {}", response.status().as_u16())),
        Err(_) => Err(fixed("upgrade")),
    }
}

/// A byte stream to the relay at `text`, encrypted when its URL says so. The error is one of a few fixed words.
pub(crate) async fn open(text: &str) -> Result<Wire, String> {
    let fixed = |word: &str| word.to_owned();
    let url = RelayUrl::parse(text).ok_or_else(|| fixed("url"))?;
    let url = url.url();
    let encrypted = url.scheme() == "wss";
    // An IPv6 host has brackets in a URL and none elsewhere.
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = url.port_or_known_default().unwrap_or(443);
    let addresses = async_net::resolve((host.as_str(), port)).await.map_err(|_| fixed("resolve"))?;
    // Whatever `localhost` resolves to: in the clear only to this computer.
    let addresses =
        addresses.into_iter().filter(|address| encrypted || address.ip().to_canonical().is_loopback());
    let stream = connect(addresses).await.ok_or_else(|| fixed("connect"))?;
    let wire: Wire = if encrypted {
        let connector = blocking::unblock(tls::connector).await.map_err(|_| fixed("roots"))?;
        let name = ServerName::try_from(host).map_err(|_| fixed("url"))?;
        Box::new(connector.connect(name, stream).await.map_err(|_| fixed("tls"))?)
    } else {
        Box::new(stream)
    };
    Ok(wire)
}

/// The first address that accepts.
async fn connect(addresses: impl Iterator<Item = SocketAddr>) -> Option<Async<TcpStream>> {
    for address in addresses {
        let late = async {
            Timer::after(CONNECT_TIMEOUT).await;
            None
        };
        let stream = future::or(async { Async::<TcpStream>::connect(address).await.ok() }, late).await;
        if let Some(stream) = stream {
            // Frames are small and each waits for an answer.
            let _ = stream.get_ref().set_nodelay(true);
            return Some(stream);
        }
    }
    None
}
