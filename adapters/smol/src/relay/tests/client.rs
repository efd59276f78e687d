//! A client of bare bytes: it can say what no WebSocket library would.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// One message or the end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Got {
    Text(String),
    Close(u16),
    Other(u8),
    /// The connection ended without a close.
    End,
}

pub(in crate::relay) struct Client(pub(super) TcpStream);

pub(super) const UPGRADE: &str = "GET /v1/connect HTTP/1.1\r\nHost: relay\r\nConnection: keep-alive, Upgrade\r\n\
    Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: other, messaging.relay.v1\r\n";

/// Sends a request head and reads the head of the answer, and what came behind it.
pub(super) fn request(address: SocketAddr, head: &str) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"\r\n").unwrap();
    let answer = read_head(&mut stream);
    (stream, answer)
}

fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte).unwrap_or(0) == 0 {
            break;
        }
        head.push(byte[0]);
    }
    String::from_utf8(head).unwrap()
}

/// A plain request: status and everything that was answered.
pub(super) fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let (mut stream, head) = request(address, &format!("GET {path} HTTP/1.1\r\nHost: relay\r\n"));
    let mut body = String::new();
    stream.read_to_string(&mut body).unwrap();
    (status(&head), head + &body)
}

pub(super) fn status(head: &str) -> u16 {
    head.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0)
}

impl Client {
    pub(super) fn connect(address: SocketAddr) -> Result<Self, u16> {
        Self::connect_with(address, "")
    }

    pub(super) fn connect_with(address: SocketAddr, headers: &str) -> Result<Self, u16> {
        let (stream, head) = request(address, &format!("{UPGRADE}{headers}"));
        match status(&head) {
            101 => {
                assert!(head.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{head}");
                assert!(head.to_lowercase().contains("sec-websocket-protocol: messaging.relay.v1"), "{head}");
                assert!(head.to_lowercase().contains("connection: upgrade\r\n"), "{head}");
                assert!(!head.to_lowercase().contains("extensions"), "{head}");
                Ok(Self(stream))
            }
            status => Err(status),
        }
    }

    /// The bytes of a masked frame.
    pub(in crate::relay) fn frame(opcode: u8, fin: bool, payload: &[u8]) -> Vec<u8> {
        let mut frame = Self::header(opcode, fin, payload.len() as u64);
        frame.extend(payload.iter().zip([1, 2, 3, 4].into_iter().cycle()).map(|(byte, mask)| byte ^ mask));
        frame
    }

    /// The header of a masked frame.
    pub(in crate::relay) fn header(opcode: u8, fin: bool, len: u64) -> Vec<u8> {
        let mut header = vec![opcode | if fin { 0x80 } else { 0 }];
        match len {
            0..126 => header.push(0x80 | len as u8),
            126..65_536 => {
                header.push(0x80 | 126);
                header.extend((len as u16).to_be_bytes());
            }
            _ => {
                header.push(0x80 | 127);
                header.extend(len.to_be_bytes());
            }
        }
        header.extend([1, 2, 3, 4]);
        header
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        // The relay may have closed already: what it said is read next.
        let _ = self.0.write_all(bytes);
    }

    pub(super) fn say(&mut self, text: &str) {
        self.send(&Self::frame(1, true, text.as_bytes()));
    }

    /// Sends a ping frame and takes its pong.
    pub(super) fn ping(&mut self, n: u64) {
        self.say(&format!(r#"{{"t":"ping","n":{n}}}"#));
        assert_eq!(self.got(), Got::Text(format!(r#"{{"n":{n},"t":"pong"}}"#)));
    }

    /// A ping frame of exactly `bytes`.
    pub(super) fn padded_ping(bytes: usize) -> String {
        let frame = r#"{"t":"ping","n":5,"pad":""}"#;
        frame.replace(r#""""#, &format!("\"{}\"", "x".repeat(bytes - frame.len())))
    }

    pub(super) fn text(&mut self) -> String {
        match self.got() {
            Got::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn got(&mut self) -> Got {
        self.try_got().unwrap_or(Got::End)
    }

    fn try_got(&mut self) -> std::io::Result<Got> {
        let mut head = [0; 2];
        self.0.read_exact(&mut head)?;
        assert_eq!(head[1] & 0x80, 0, "a server does not mask");
        let len = match head[1] & 0x7f {
            126 => {
                let mut len = [0; 2];
                self.0.read_exact(&mut len)?;
                usize::from(u16::from_be_bytes(len))
            }
            127 => {
                let mut len = [0; 8];
                self.0.read_exact(&mut len)?;
                usize::try_from(u64::from_be_bytes(len)).unwrap()
            }
            len => usize::from(len),
        };
        let mut payload = vec![0; len];
        self.0.read_exact(&mut payload)?;
        Ok(match head[0] & 0x0f {
            1 => Got::Text(String::from_utf8(payload).unwrap()),
            8 => Got::Close(payload.get(..2).map_or(1005, |code| u16::from_be_bytes([code[0], code[1]]))),
            opcode => Got::Other(opcode),
        })
    }

    /// Reads to the close.
    pub(super) fn close(&mut self) -> Got {
        loop {
            match self.got() {
                Got::Text(_) | Got::Other(_) => {}
                end => return end,
            }
        }
    }
}
