//! The server's side of WebSocket framing (RFC 6455), without I/O.
//!
//! A relay holds thousands of idle connections, and its message limit changes within one. tungstenite, which the
//! daemon's link uses, keeps a read buffer per connection and never gives back what its largest message needed; this
//! keeps nothing between messages and takes the limit with every call. Extensions are never negotiated.

/// The largest payload of a control frame.
const CONTROL_BYTES: usize = 125;
/// The longest header: 2 bytes, 8 of length, 4 of mask.
const HEADER_BYTES: usize = 14;

/// A whole message, or a control frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Got {
    /// A text message, not checked to be UTF-8.
    Text(Vec<u8>),
    /// A binary message; nobody reads it.
    Binary,
    /// A ping and what its pong echoes.
    Ping(Vec<u8>),
    /// A pong nobody asked for.
    Pong,
    /// The peer closes, with its code.
    Close(Option<u16>),
}

/// Why nothing more can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    /// A message over the limit, known from its header before its payload is read.
    TooLarge,
    /// Against the framing rules.
    Protocol,
}

/// Opcodes of RFC 6455 §5.2.
mod op {
    pub(super) const CONTINUATION: u8 = 0;
    pub(super) const TEXT: u8 = 1;
    pub(super) const BINARY: u8 = 2;
    pub(super) const CLOSE: u8 = 8;
    pub(super) const PING: u8 = 9;
    pub(super) const PONG: u8 = 10;
}

/// Reads frames from bytes as they come.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The start of a header that is not whole yet.
    head: [u8; HEADER_BYTES],
    head_len: usize,
    /// The frame whose payload is being read.
    frame: Option<Frame>,
    /// The opcode and the payload so far of a message in fragments.
    message: Option<u8>,
    payload: Vec<u8>,
    control: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    fin: bool,
    opcode: u8,
    /// Bytes of payload still to come.
    left: usize,
    /// Turned so that its first byte is the next one's.
    mask: [u8; 4],
}

impl Reader {
    /// Takes bytes from the front of `input` until a message is whole or none are left. `limit` bounds the payload of
    /// a message, all its fragments together.
    ///
    /// # Errors
    /// [`Bad`]; the reader is of no more use then.
    pub(super) fn take(&mut self, input: &mut &[u8], limit: usize) -> Result<Option<Got>, Bad> {
        loop {
            let mut frame = match self.frame {
                Some(frame) => frame,
                None => match self.header(input, limit)? {
                    Some(frame) => frame,
                    None => return Ok(None),
                },
            };
            let (now, rest) = input.split_at(frame.left.min(input.len()));
            *input = rest;
            let into = if is_control(frame.opcode) { &mut self.control } else { &mut self.payload };
            let start = into.len();
            into.extend_from_slice(now);
            unmask(&mut into[start..], frame.mask);
            frame.mask.rotate_left(now.len() % 4);
            frame.left -= now.len();
            if frame.left > 0 {
                self.frame = Some(frame);
                return Ok(None);
            }
            self.frame = None;
            if let Some(got) = self.finish(frame) {
                return Ok(Some(got));
            }
        }
    }

    /// The next frame's header, once it is whole and allowed.
    fn header(&mut self, input: &mut &[u8], limit: usize) -> Result<Option<Frame>, Bad> {
        loop {
            let wanted = header_len(&self.head[..self.head_len]);
            if self.head_len == wanted {
                break;
            }
            let count = (wanted - self.head_len).min(input.len());
            if count == 0 {
                return Ok(None);
            }
            let (now, rest) = input.split_at(count);
            self.head[self.head_len..self.head_len + count].copy_from_slice(now);
            self.head_len += count;
            *input = rest;
        }
        let head = &self.head[..std::mem::take(&mut self.head_len)];
        let (fin, opcode) = (head[0] & 0x80 != 0, head[0] & 0x0f);
        let reserved = head[0] & 0x70 != 0;
        let masked = head[1] & 0x80 != 0;
        let len = match head[1] & 0x7f {
            126 => u64::from(u16::from_be_bytes([head[2], head[3]])),
            127 => {
                u64::from_be_bytes([head[2], head[3], head[4], head[5], head[6], head[7], head[8], head[9]])
            }
            len => u64::from(len),
        };
        if reserved || !masked {
            return Err(Bad::Protocol);
        }
        match opcode {
            op::CLOSE | op::PING | op::PONG => {
                if !fin || len > CONTROL_BYTES as u64 {
                    return Err(Bad::Protocol);
                }
            }
            op::TEXT | op::BINARY if self.message.is_none() => self.message = Some(opcode),
            op::CONTINUATION if self.message.is_some() => {}
            _ => return Err(Bad::Protocol),
        }
        if !is_control(opcode) && len > (limit.saturating_sub(self.payload.len())) as u64 {
            return Err(Bad::TooLarge);
        }
        let mask = head[head.len() - 4..].try_into().unwrap_or_default();
        let left = usize::try_from(len).map_err(|_| Bad::TooLarge)?;
        Ok(Some(Frame { fin, opcode, left, mask }))
    }

    /// What a whole frame makes whole.
    fn finish(&mut self, frame: Frame) -> Option<Got> {
        match frame.opcode {
            op::PING => Some(Got::Ping(std::mem::take(&mut self.control))),
            op::PONG => {
                self.control = Vec::new();
                Some(Got::Pong)
            }
            op::CLOSE => {
                let reason = std::mem::take(&mut self.control);
                Some(Got::Close(reason.first_chunk().map(|code| u16::from_be_bytes(*code))))
            }
            _ if !frame.fin => None,
            _ => {
                let payload = std::mem::take(&mut self.payload);
                match self.message.take() {
                    Some(op::TEXT) => Some(Got::Text(payload)),
                    _ => Some(Got::Binary),
                }
            }
        }
    }
}

const fn is_control(opcode: u8) -> bool {
    opcode & 8 != 0
}

/// How many bytes a header has, as far as its start tells.
fn header_len(start: &[u8]) -> usize {
    let Some(second) = start.get(1) else { return 2 };
    let length = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    2 + length + if second & 0x80 != 0 { 4 } else { 0 }
}

fn unmask(bytes: &mut [u8], mask: [u8; 4]) {
    let (words, rest) = bytes.as_chunks_mut::<4>();
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ u32::from_ne_bytes(mask)).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

fn write(out: &mut Vec<u8>, opcode: u8, payload: &[u8]) {
    out.reserve(payload.len() + 10);
    out.push(0x80 | opcode);
    match payload.len() {
        len @ 0..126 => out.push(u8::try_from(len).unwrap_or(0)),
        len => match u16::try_from(len) {
            Ok(len) => {
                out.push(126);
                out.extend_from_slice(&len.to_be_bytes());
            }
            Err(_) => {
                out.push(127);
                out.extend_from_slice(&(len as u64).to_be_bytes());
            }
        },
    }
    out.extend_from_slice(payload);
}

/// Appends a text message.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    write(out, op::TEXT, text.as_bytes());
}

/// Appends the answer to a ping.
pub(super) fn pong(out: &mut Vec<u8>, payload: &[u8]) {
    write(out, op::PONG, payload);
}

/// Appends a close.
pub(super) fn close(out: &mut Vec<u8>, code: Option<u16>) {
    match code {
        Some(code) => write(out, op::CLOSE, &code.to_be_bytes()),
        None => write(out, op::CLOSE, &[]),
    }
}

/// The code to answer a peer's close with: its own, unless no peer may send it (RFC 6455 §7.4).
pub(super) const fn answer(code: Option<u16>) -> Option<u16> {
    match code {
        Some(1000..=1003 | 1007..=1014 | 3000..=4999) | None => code,
        Some(_) => Some(1002),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::client::Client;
    use super::*;

    fn read_in(bytes: &[u8], cut: usize, limit: usize) -> Result<Vec<Got>, Bad> {
        let (mut reader, mut all) = (Reader::default(), Vec::new());
        for mut piece in bytes.chunks(cut) {
            while let Some(got) = reader.take(&mut piece, limit)? {
                all.push(got);
            }
            assert!(piece.is_empty());
        }
        Ok(all)
    }

    #[test]
    fn messages_however_they_are_cut() {
        for len in [0, 1, 3, 4, 5, 125, 126, 127, 65_535, 65_536, 70_001] {
            let payload: Vec<u8> = (0..len).map(|n| (n % 251) as u8).collect();
            let mut bytes = Client::frame(1, true, &payload);
            bytes.extend(Client::frame(9, true, b"ping"));
            bytes.extend(Client::frame(1, false, &payload[..len / 3]));
            bytes.extend(Client::frame(10, true, b""));
            bytes.extend(Client::frame(0, true, &payload[len / 3..]));
            bytes.extend(Client::frame(2, true, b"x"));
            bytes.extend(Client::frame(8, true, &[0x03, 0xe9, b'w']));
            let text = || Got::Text(payload.clone());
            let all =
                [text(), Got::Ping(b"ping".to_vec()), Got::Pong, text(), Got::Binary, Got::Close(Some(1001))];
            for cut in [1, 2, 3, 7, 4_096, usize::MAX] {
                if cut > 1 || len < 1_000 {
                    assert_eq!(read_in(&bytes, cut, 70_001).unwrap(), all, "{len} in pieces of {cut}");
                }
            }
        }
    }

    #[test]
    fn the_limit_counts_all_fragments_and_is_told_by_headers() {
        let three = |first: u64, second: u64| {
            let mut bytes = Client::frame(1, false, &vec![b'x'; usize::try_from(first).unwrap()]);
            bytes.extend(Client::header(0, true, second));
            bytes
        };
        assert_eq!(read_in(&three(6, 4), 1, 10), Ok(vec![]));
        assert_eq!(read_in(&three(6, 5), 1, 10), Err(Bad::TooLarge));
        for len in [11, 126, 65_536, 1 << 40, u64::MAX] {
            assert_eq!(read_in(&Client::header(1, true, len), 1, 10), Err(Bad::TooLarge), "{len}");
        }
        assert_eq!(read_in(&Client::frame(1, true, &[b'x'; 10]), 1, 10), Ok(vec![Got::Text(vec![b'x'; 10])]));
    }

    #[test]
    fn what_the_framing_forbids() {
        let cases: [(&str, Vec<u8>); 8] = [
            ("unmasked", vec![0x81, 0x00]),
            ("a reserved bit", Client::frame(1 | 0x40, true, b"")),
            ("a reserved opcode", Client::frame(3, true, b"")),
            ("a reserved control opcode", Client::frame(11, true, b"")),
            ("a fragmented ping", Client::frame(9, false, b"")),
            ("a long ping", Client::frame(9, true, &[0; 126])),
            ("a continuation of nothing", Client::frame(0, true, b"")),
            (
                "a message within a message",
                [Client::frame(1, false, b"a"), Client::frame(1, true, b"b")].concat(),
            ),
        ];
        for (what, bytes) in cases {
            assert_eq!(read_in(&bytes, 1, 1_000), Err(Bad::Protocol), "{what}");
            assert_eq!(read_in(&bytes, usize::MAX, 1_000), Err(Bad::Protocol), "{what}");
        }
    }

    #[test]
    fn nothing_is_kept_between_messages() {
        let mut reader = Reader::default();
        let bytes = Client::frame(1, true, &vec![b'x'; 1 << 20]);
        assert!(reader.take(&mut bytes.as_slice(), 1 << 20).unwrap().is_some());
        assert_eq!((reader.payload.capacity(), reader.control.capacity()), (0, 0));
    }

    #[test]
    fn what_is_written_another_implementation_reads() {
        use async_tungstenite::tungstenite::protocol::{Role, WebSocketContext};
        use async_tungstenite::tungstenite::{Bytes, Message};
        let long = "x".repeat(70_000);
        let mut out = Vec::new();
        text(&mut out, "");
        text(&mut out, &long[..125]);
        text(&mut out, &long[..126]);
        text(&mut out, &long[..65_535]);
        text(&mut out, &long[..65_536]);
        pong(&mut out, b"echo");
        close(&mut out, Some(4002));
        let mut wire = std::io::Cursor::new(out);
        let mut peer = WebSocketContext::new(Role::Client, None);
        for len in [0, 125, 126, 65_535, 65_536] {
            assert_eq!(peer.read(&mut wire).unwrap(), Message::text(&long[..len]));
        }
        assert_eq!(peer.read(&mut wire).unwrap(), Message::Pong(Bytes::from_static(b"echo")));
        match peer.read(&mut wire).unwrap() {
            Message::Close(Some(frame)) => assert_eq!(u16::from(frame.code), 4002),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn no_bytes_make_it_panic_or_read_differently_when_cut() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        };
        for _ in 0..3_000 {
            let len = usize::from(random());
            let mut bytes: Vec<u8> = (0..len).map(|_| random()).collect();
            // Likelier to be a frame.
            if let [first, second, ..] = &mut bytes[..] {
                *first &= 0x8f;
                *second |= 0x80;
                *second &= 0x8f;
            }
            let whole = read_in(&bytes, usize::MAX, 60);
            assert_eq!(read_in(&bytes, 1, 60), whole);
            assert_eq!(read_in(&bytes, 5, 60), whole);
        }
    }
}
