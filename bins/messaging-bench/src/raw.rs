//! Many connections on one thread, with as little work of our own as can be: the load shares the cores with the relay.
//!
//! Frames are WebSocket frames before the clock starts, masked with zeros. What comes is cut into messages and searched,
//! not parsed.

use messaging_bench::Fault;
use messaging_bench::link::Link;
use messaging_proto::hash::RealmId;
use messaging_proto::key::SigningKey;
use rustix::event::epoll::{self, EventData, EventFlags};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;

/// A client's frame of this text.
pub(crate) fn frame(text: &str) -> Vec<u8> {
    let mut bytes = vec![0x81];
    match u16::try_from(text.len()) {
        Ok(len @ 0..126) => bytes.push(0x80 | len.to_le_bytes()[0]),
        Ok(len) => {
            bytes.push(0x80 | 126);
            bytes.extend_from_slice(&len.to_be_bytes());
        }
        Err(_) => {
            bytes.push(0x80 | 127);
            bytes.extend_from_slice(&(text.len() as u64).to_be_bytes());
        }
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(text.as_bytes());
    bytes
}

/// Connections that are told apart by their index.
pub(crate) struct Raws {
    epoll: OwnedFd,
    conns: Vec<(TcpStream, Vec<u8>)>,
    chunk: Vec<u8>,
}

/// Whether a message has this in it.
pub(crate) fn has(message: &[u8], what: &[u8]) -> bool {
    message.windows(what.len()).any(|window| window == what)
}

/// The envelope's or the frame's id.
pub(crate) fn id(message: &[u8]) -> Option<&[u8]> {
    let key = br#""id":""#;
    let at = message.windows(key.len()).position(|window| window == key)? + key.len();
    message.get(at..at + 26)
}

impl Raws {
    /// Connects and authenticates them all, and takes what they are told of each other.
    pub(crate) fn connect(port: u16, team: &RealmId, keys: &[&SigningKey]) -> Result<Self, Fault> {
        let mut links = Vec::new();
        for key in keys {
            links.push(Link::live(port, key, team)?);
        }
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let mut conns = Vec::new();
        for (index, mut link) in links.into_iter().enumerate() {
            // Nothing comes behind the pong: everybody is here.
            link.say(r#"{"t":"ping","n":1}"#.to_owned())?;
            while link.value()?["t"] != "pong" {}
            let stream = link.into_stream()?;
            stream.set_nonblocking(true)?;
            epoll::add(&epoll, &stream, EventData::new_u64(index as u64), EventFlags::IN)?;
            conns.push((stream, Vec::new()));
        }
        Ok(Self { epoll, conns, chunk: vec![0; 64 << 10] })
    }

    /// Sends a frame. It fits into the socket's buffer: few are under way.
    pub(crate) fn send(&mut self, index: usize, frame: &[u8]) -> Result<(), Fault> {
        Ok(self.conns[index].0.write_all(frame)?)
    }

    /// Waits for messages; gives each with its connection's index. An error when none comes for half a minute.
    pub(crate) fn wait(&mut self, messages: &mut Vec<(usize, Vec<u8>)>) -> Result<(), Fault> {
        let mut events = Vec::with_capacity(256);
        let patience = rustix::event::Timespec { tv_sec: 30, tv_nsec: 0 };
        epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&patience))?;
        if events.is_empty() {
            return Err("the relay said nothing for half a minute".into());
        }
        for event in &events {
            let index = usize::try_from(event.data.u64())?;
            let (stream, rest) = &mut self.conns[index];
            match stream.read(&mut self.chunk) {
                Ok(0) => return Err("the relay closed the connection".into()),
                Ok(count) => rest.extend_from_slice(&self.chunk[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                Err(error) => return Err(error.into()),
            }
            let mut at = 0;
            while let Some((start, end)) = next(&rest[at..]) {
                messages.push((index, rest[at + start..at + end].to_vec()));
                at += end;
            }
            rest.drain(..at);
        }
        Ok(())
    }
}

/// Where the first message's payload is, when it is whole.
fn next(bytes: &[u8]) -> Option<(usize, usize)> {
    let (start, len) = match *bytes.get(1)? {
        126 => (4, usize::from(u16::from_be_bytes(*bytes.get(2..)?.first_chunk()?))),
        127 => (10, usize::try_from(u64::from_be_bytes(*bytes.get(2..)?.first_chunk()?)).ok()?),
        len => (2, usize::from(len)),
    };
    (bytes.len() >= start + len).then_some((start, start + len))
}
