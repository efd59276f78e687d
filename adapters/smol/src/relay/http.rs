//! The plain HTTP side of the relay's port (`messaging/1 §7`, "HTTP"; contract wire-core §7.1, §7.11).

use super::metrics::Refused;
use super::server::Server;
use super::wire::Wire;
use super::{proxy, socket};
use crate::guard::Counted;
use async_io::{Async, Timer};
use async_tungstenite::tungstenite::handshake::derive_accept_key;
use bytes::Bytes;
use futures_lite::{AsyncRead, AsyncWrite, future};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::{Service, service_fn};
use hyper::{Method, Request, Response, StatusCode};
use messaging_proto::frame::PROTO;
use smol_hyper::rt::{FuturesIo, SmolTimer};
use std::convert::Infallible;
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

/// How long a request's head may take: a slow one holds a socket, nothing else.
const HEAD_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// The longest request head.
const HEAD_BYTES: usize = 16 * 1024;

/// Serves one accepted socket: one request, which may become a WebSocket.
pub(super) async fn serve(server: Arc<Server>, stream: Async<TcpStream>, peer: IpAddr, raw: Counted) {
    match server.tls.clone() {
        None => serve_one(server, stream, peer, raw).await,
        Some(tls) => {
            // §7 Limits: a slow handshake holds a raw socket, nothing else.
            let late = async {
                Timer::after(HEAD_TIMEOUT).await;
                None
            };
            let accepted = async { tls.acceptor.accept(stream).await.ok() };
            if let Some(stream) = future::or(accepted, late).await {
                serve_one(server, stream, peer, raw).await;
            }
        }
    }
}

async fn serve_one<S>(server: Arc<Server>, stream: S, peer: IpAddr, raw: Counted)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let raw = Arc::new(raw);
    let service = service_fn(move |request| {
        let response = answer(&server, request, peer, &raw);
        async move { Ok::<_, Infallible>(response) }
    });
    one_request(FuturesIo::new(stream), service).await;
}

/// Serves one request of a socket, with a patience for its head.
pub(super) async fn one_request<I, S>(stream: FuturesIo<I>, service: S)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: Service<Request<Incoming>, Response = Response<Full<Bytes>>, Error = Infallible>,
{
    // Said by each answer but an upgrade: with `keep_alive(false)` hyper adds `close` to an upgrade's `Connection` too,
    // and WebSocket clients (tungstenite among them) take nothing there but `Upgrade`.
    let closing = service_fn(move |request| {
        let answer = service.call(request);
        async move {
            let mut response = answer.await?;
            if response.status() != StatusCode::SWITCHING_PROTOCOLS {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(SmolTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(stream, closing)
        .with_upgrades()
        .await;
    // What a client did to its own connection is no event of ours.
    drop(served);
}

fn answer(
    server: &Arc<Server>,
    request: Request<Incoming>,
    peer: IpAddr,
    raw: &Arc<Counted>,
) -> Response<Full<Bytes>> {
    let get = request.method() == Method::GET;
    match request.uri().path() {
        "/healthz" if get => json(StatusCode::OK, r#"{"ok":true}"#.to_owned()),
        "/readyz" if get => ready(server),
        "/v1/connect" if get => {
            upgrade(server, request, peer, raw).unwrap_or_else(|refusal| refusal.response())
        }
        _ => plain(StatusCode::NOT_FOUND),
    }
}

fn ready(server: &Server) -> Response<Full<Bytes>> {
    let why = server.unready();
    let mut response = if why.is_empty() {
        json(StatusCode::OK, r#"{"ok":true}"#.to_owned())
    } else {
        json(StatusCode::SERVICE_UNAVAILABLE, serde_json::json!({"ok": false, "why": why}).to_string())
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Why an upgrade is none.
enum Refusal {
    /// Not our protocol.
    BadRequest,
    /// No WebSocket handshake.
    UpgradeRequired,
    /// No room, or no store: try again later.
    Busy,
}

impl Refusal {
    fn response(&self) -> Response<Full<Bytes>> {
        let (status, headers): (_, &[(HeaderName, &'static str)]) = match self {
            Self::BadRequest => (StatusCode::BAD_REQUEST, &[]),
            Self::UpgradeRequired => (
                StatusCode::UPGRADE_REQUIRED,
                &[(header::UPGRADE, "websocket"), (header::SEC_WEBSOCKET_VERSION, "13")],
            ),
            Self::Busy => (StatusCode::SERVICE_UNAVAILABLE, &[(header::RETRY_AFTER, "1")]),
        };
        let mut response = plain(status);
        for (name, value) in headers {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Checks an upgrade and starts its connection. The order: is it one, does it speak our sub-protocol, is there room.
fn upgrade(
    server: &Arc<Server>,
    mut request: Request<Incoming>,
    peer: IpAddr,
    raw: &Arc<Counted>,
) -> Result<Response<Full<Bytes>>, Refusal> {
    let headers = request.headers();
    let accept = handshake(headers)?;
    if !offers(headers, &header::SEC_WEBSOCKET_PROTOCOL, |offered| offered == PROTO) {
        return Err(Refusal::BadRequest);
    }
    let forwarded = headers.get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes);
    let forwarded: Vec<&[u8]> = forwarded.collect();
    let address = proxy::client_address(peer, &server.trusted_proxies, forwarded.into_iter()).to_string();
    if !server.accepts() {
        return Err(Refusal::Busy);
    }
    let place = server.places.take(&address).map_err(|scope| {
        server.shared.metrics.refused(Refused::from(scope));
        server.preauth_full(scope);
        Refusal::Busy
    })?;
    let on_upgrade = hyper::upgrade::on(&mut request);
    let (server, raw) = (Arc::clone(server), Arc::clone(raw));
    let executor = Arc::clone(&server.executor);
    executor
        .spawn(async move {
            let _raw = raw;
            let Ok(upgraded) = on_upgrade.await else { return };
            let Some((wire, early)) = Wire::taken(upgraded, &server.pollers) else { return };
            let conn = server.open(place);
            let id = conn.id;
            socket::serve(conn, wire, early, &server.shared.arrivals, server.events.clone()).await;
            server.shared.conns.remove(id);
        })
        .detach();
    let mut response = plain(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTO));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(response)
}

/// The `Sec-WebSocket-Accept` of a WebSocket 13 handshake; 426 for what is none.
fn handshake(headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    let websocket = offers(headers, &header::UPGRADE, |name| name.eq_ignore_ascii_case("websocket"))
        && offers(headers, &header::CONNECTION, |name| name.eq_ignore_ascii_case("upgrade"))
        && headers.get(header::SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    if !websocket {
        return Err(Refusal::UpgradeRequired);
    }
    // 16 bytes in standard base64 (RFC 6455 §4.1).
    let key = headers.get(header::SEC_WEBSOCKET_KEY).filter(|key| key.len() == 24);
    key.and_then(|key| HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok())
        .ok_or(Refusal::BadRequest)
}

/// Whether a comma-separated header has a matching entry.
fn offers(headers: &HeaderMap, name: &HeaderName, wanted: impl Fn(&str) -> bool) -> bool {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|entry| wanted(entry.trim()))
}

pub(super) fn plain(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn json(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
