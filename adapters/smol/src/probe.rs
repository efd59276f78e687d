//! Asking a relay whether it is there, and what time it has: for `messaging doctor`. Nothing is authenticated and nothing
//! of the team is said.

use crate::daemon::dial;
use async_io::Timer;
use futures_lite::{AsyncReadExt, AsyncWriteExt, future};
use messaging_proto::relay_url::RelayUrl;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the whole of it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const MOST: u64 = 8192;

/// What a relay answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status of its health page.
    pub status: u16,
    /// Its clock, in milliseconds since 1970, to the second.
    pub date: Option<u64>,
    /// How long the answer took.
    pub took: Duration,
}

/// Asks the relay at `url` for its health page.
///
/// # Errors
/// What went wrong as one of a few fixed words: `url`, `resolve`, `connect`, `roots`, `tls`, `timeout`, `http`.
pub fn probe(url: &str) -> Result<Answer, String> {
    let late = async {
        Timer::after(PATIENCE).await;
        Err("timeout".to_owned())
    };
    async_io::block_on(future::or(ask(url), late))
}

async fn ask(text: &str) -> Result<Answer, String> {
    let url = RelayUrl::parse(text).ok_or("url")?;
    let host = url.url().host_str().unwrap_or_default().to_owned();
    let host = url.url().port().map_or(host.clone(), |port| format!("{host}:{port}"));
    let mut wire = dial::open(text).await?;
    let start = std::time::Instant::now();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    wire.write_all(request.as_bytes()).await.map_err(|_| "http")?;
    let mut bytes = Vec::new();
    // An end without a TLS goodbye is an end.
    let _ = wire.take(MOST).read_to_end(&mut bytes).await;
    let (status, date) = read(&bytes).ok_or("http")?;
    Ok(Answer { status, date, took: start.elapsed() })
}

/// The status and the date of an HTTP answer.
fn read(bytes: &[u8]) -> Option<(u16, Option<u64>)> {
    let text = String::from_utf8_lossy(bytes);
    let (head, _) = text.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.strip_prefix("HTTP/1.")?.get(2..5)?.parse().ok()?;
    let date = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("date").then(|| httpdate::parse_http_date(value.trim()).ok())?
    });
    Some((status, date.and_then(millis)))
}

fn millis(time: SystemTime) -> Option<u64> {
    u64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn the_status_and_the_date_are_read() {
        let text = b"HTTP/1.1 200 OK\r\ncontent-type: x\r\ndate: Wed, 02 Dec 2026 14:51:02 GMT\r\n\r\n{}";
        assert_eq!(read(text), Some((200, Some(1_796_223_062_000))));
        assert_eq!(read(b"HTTP/1.1 503 No\r\n\r\n"), Some((503, None)));
        for bad in ["", "SSH-2.0\r\n\r\n", "HTTP/1.1 x\r\n\r\n", "HTTP/1.1 200 OK"] {
            assert_eq!(read(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_listener_is_asked_and_nobody_is_named() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut bytes = [0; 1024];
            let count = stream.read(&mut bytes).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
            String::from_utf8(bytes[..count].to_vec()).unwrap()
        });
        let answer = probe(&format!("ws://127.0.0.1:{port}/v1/connect")).unwrap();
        assert_eq!((answer.status, answer.date), (200, None));
        let request = server.join().unwrap();
        assert_eq!(
            request,
            format!("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")
        );
        assert_eq!(
            probe(&format!("ws://127.0.0.1:{port}/v1/connect")),
            Err("connect".to_owned()),
            "it is gone"
        );
        assert_eq!(probe("ws://relay.example/"), Err("url".to_owned()), "in the clear only to this computer");
    }
}
