//! Asking an OpenCode service to load a location's client (`messaging/1 §8.6`): its registration file, and one call.

use crate::files;
use async_io::{Async, Timer};
use futures_lite::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, future, io::BufReader};
use messaging_machines::daemon::io::{HostCall, WakeEnd};
use messaging_proto::b64;
use messaging_proto::json::{Fields, parse_wire};
use messaging_proto::ulid::Ulid;
use rustix::process::{Pid, test_kill_process};
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// The longest registration file, in bytes.
const REGISTRATION_BYTES: usize = 4_096;
/// How long one call may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most bytes of an answer that are looked at for its status.
const HEAD_BYTES: u64 = 16_384;

/// Where OpenCode says it serves.
struct Registration {
    pid: u64,
    url: String,
    password: Option<Zeroizing<String>>,
}

/// Where the registration file is: under `$XDG_STATE_HOME`, else `~/.local/state`.
pub(super) fn registration_file() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = set("XDG_STATE_HOME").or_else(|| Some(set("HOME")?.join(".local/state")))?;
    Some(state.join("opencode/service.json"))
}

/// Makes one call, with the registration as it is now.
pub(super) async fn call(file: Option<PathBuf>, host: &HostCall, ids: &[Ulid]) -> WakeEnd {
    call_within(file, host, ids, TIMEOUT).await
}

async fn call_within(file: Option<PathBuf>, host: &HostCall, ids: &[Ulid], timeout: Duration) -> WakeEnd {
    let Some(file) = file else { return WakeEnd::Refused };
    let Some(found) = blocking::unblock(move || read(&file)).await else { return WakeEnd::Refused };
    // §8.6: the very process the session was registered under, and it lives.
    if found.pid != host.pid || !is_alive(found.pid) {
        return WakeEnd::Refused;
    }
    let Some(addresses) = loopback(&found.url) else { return WakeEnd::Refused };
    let late = async {
        Timer::after(timeout).await;
        None
    };
    match future::or(ask(&found, &addresses, host, ids), late).await {
        // Redirects are not followed: they are an answer like any other.
        Some(status) if status < 500 => WakeEnd::Answered,
        Some(_) | None => WakeEnd::Again,
    }
}

/// The registration; nothing when the file is not a private one of this user, or does not say what it must.
fn read(path: &Path) -> Option<Registration> {
    let text = files::read_trusted(path, REGISTRATION_BYTES).ok()??;
    let value = parse_wire(&text, REGISTRATION_BYTES).ok()?;
    let fields = Fields::of(&value).ok()?;
    Some(Registration {
        pid: fields.req("pid").ok()?,
        url: fields.req("url").ok()?,
        password: fields.opt::<String>("password").ok()?.map(Zeroizing::new),
    })
}

fn is_alive(pid: u64) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

/// The addresses of a bare `http://` origin on this computer; nothing for any other URL.
fn loopback(url: &str) -> Option<Vec<SocketAddr>> {
    let authority = url.strip_prefix("http://")?;
    let authority = authority.strip_suffix('/').unwrap_or(authority);
    let (host, port) = match authority.strip_prefix("[::1]") {
        Some(rest) => ("[::1]", rest),
        None => {
            let at = authority.find(':').unwrap_or(authority.len());
            authority.split_at(at)
        }
    };
    let port: u16 = match port.strip_prefix(':') {
        None if port.is_empty() => 80,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    let (four, six) = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST));
    let hosts = match host {
        "127.0.0.1" => vec![four],
        "[::1]" => vec![six],
        "localhost" => vec![four, six],
        _ => return None,
    };
    (port != 0).then(|| hosts.into_iter().map(|host| SocketAddr::new(host, port)).collect())
}

/// Asks, and returns the status of the answer; nothing when there was none.
async fn ask(found: &Registration, addresses: &[SocketAddr], host: &HostCall, ids: &[Ulid]) -> Option<u16> {
    let mut stream = connect(addresses).await?;
    let ids: Vec<&str> = ids.iter().map(Ulid::as_str).collect();
    let body = json!({"input": {"sessionID": host.session_id, "envelopeIds": ids}}).to_string();
    let authority = found.url.trim_start_matches("http://").trim_end_matches('/');
    let authorization = found.password.as_ref().map_or_else(Zeroizing::default, |password| {
        let pair = Zeroizing::new(format!("opencode:{}", password.as_str()));
        Zeroizing::new(format!("authorization: Basic {}\r\n", b64::encode(pair.as_bytes())))
    });
    let request = Zeroizing::new(format!(
        "POST /api/rpc/messaging.opencode/wake?location[directory]={} HTTP/1.1\r\nhost: {authority}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n{}connection: close\r\n\r\n{body}",
        percent_encoded(&host.location),
        body.len(),
        authorization.as_str(),
    ));
    stream.write_all(request.as_bytes()).await.ok()?;
    stream.flush().await.ok()?;
    let mut lines = BufReader::new(stream.take(HEAD_BYTES));
    loop {
        let mut line = Vec::new();
        lines.read_until(b'\n', &mut line).await.ok()?;
        let status = status_of(&line)?;
        if !(100..200).contains(&status) {
            return Some(status);
        }
        // An interim answer: the one that counts follows its headers.
        loop {
            line.clear();
            lines.read_until(b'\n', &mut line).await.ok()?;
            if line.is_empty() {
                return None;
            }
            if line == b"\r\n" || line == b"\n" {
                break;
            }
        }
    }
}

async fn connect(addresses: &[SocketAddr]) -> Option<Async<TcpStream>> {
    for address in addresses {
        if let Ok(stream) = Async::<TcpStream>::connect(*address).await {
            return Some(stream);
        }
    }
    None
}

/// The status in `HTTP/1.1 200 OK`.
fn status_of(line: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(line).ok()?;
    let rest = line.strip_prefix("HTTP/1.")?.get(1..)?.strip_prefix(' ')?;
    let digits = rest.get(..3).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
    digits.parse().ok()
}

/// Everything but unreserved characters as `%XX`.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests;
