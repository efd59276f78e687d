//! The relay machine in a plain blocking loop of the standard library: no executor, no redb, no WebSocket.
//!
//! A frame is a line of text here, and the store is in memory. What is left is all that a driver owes a machine: one event
//! at a time with a clock that never goes back and fresh entropy, a commit after every step, and effects only after it.
//!
//! ```text
//! cargo run -p messaging-sim --example blocking_relay -- 127.0.0.1:8787
//! ```

use messaging_machines::relay::io::{ConnId, Effect, Event};
use messaging_machines::relay::{Config, Relay};
use messaging_machines::store::{MemoryBase, Txn, Writes};
use messaging_machines::{Machine, Out, Step};
use messaging_proto::frame::Received;
use messaging_proto::limits::FRAME_BYTES;
use messaging_proto::time::{Mono, Wall};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What a socket's thread tells the machine's.
pub enum News {
    /// A client connected.
    Socket(ConnId, String, TcpStream),
    /// Something happened on its connection.
    Event(Event),
}

/// 32 fresh bytes of the operating system.
fn entropy() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Serves until the machine stopped.
///
/// # Errors
/// When the operating system gives no entropy.
pub fn serve(config: Config, news: &Receiver<News>) -> std::io::Result<()> {
    let start = Instant::now();
    let (mut relay, mut base, mut sockets) = (Relay::new(config), MemoryBase::default(), BTreeMap::new());
    let mut next = Some(Event::Start);
    loop {
        let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let event = match next.take() {
            Some(event) => event,
            None => {
                let wait = relay.deadline().map_or(60_000, |(at, _)| at.0.saturating_sub(now));
                match news.recv_timeout(Duration::from_millis(wait)) {
                    Ok(News::Socket(conn, address, socket)) => {
                        sockets.insert(conn, socket);
                        Event::Opened { conn, address }
                    }
                    Ok(News::Event(event)) => event,
                    Err(RecvTimeoutError::Timeout) => Event::Timer,
                    Err(RecvTimeoutError::Disconnected) => Event::Stop,
                }
            }
        };
        if let Event::Closed { conn } = &event {
            sockets.remove(conn);
        }
        let mono = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
        let step = Step::new(Mono(mono), Wall(u64::try_from(wall).unwrap_or(u64::MAX)), entropy()?);
        let (mut writes, mut out) = (Writes::new(), Out::new());
        if relay.handle(&step, event, &mut Txn::new(&base, None, &mut writes), &mut out).is_err() {
            return Err(std::io::Error::other("the store did not answer"));
        }
        base.apply(&writes);
        for effect in out.take() {
            match effect {
                // A socket that takes nothing more is found by its reader.
                Effect::Send { conn, frame } => {
                    if let Some(mut socket) = sockets.get(&conn) {
                        let _ = socket.write_all((frame.to_text() + "\n").as_bytes());
                    }
                }
                Effect::Close { conn, .. } => {
                    if let Some(socket) = sockets.get(&conn) {
                        let _ = socket.shutdown(Shutdown::Both);
                    }
                }
                // Everything was written before: at once.
                Effect::Mark { conn } => next = Some(Event::Drained { conn }),
                Effect::Stopped => return Ok(()),
                Effect::Authenticated { .. } | Effect::Count(_) | Effect::Log(_) => {}
            }
        }
    }
}

/// Takes connections, each with a thread that reads its lines.
pub fn accept(listener: &TcpListener, news: &Sender<News>) {
    for (number, socket) in listener.incoming().enumerate() {
        let Ok(socket) = socket else { continue };
        let (conn, news) = (ConnId(number as u64 + 1), news.clone());
        let address =
            socket.peer_addr().map_or_else(|_| "unknown".to_owned(), |address| address.ip().to_string());
        let Ok(reader) = socket.try_clone() else { continue };
        if news.send(News::Socket(conn, address, socket)).is_err() {
            return;
        }
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                let frame = Box::new(Received::parse(line.into_bytes(), FRAME_BYTES));
                if news.send(News::Event(Event::Frame { conn, frame })).is_err() {
                    return;
                }
            }
            let _ = news.send(News::Event(Event::Closed { conn }));
        });
    }
}

#[allow(dead_code, reason = "the test that includes this file drives the two functions itself")]
fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8787".to_owned());
    let listener = TcpListener::bind(&address)?;
    let (sender, news) = channel();
    std::thread::spawn(move || accept(&listener, &sender));
    serve(Config::new(format!("ws://{address}")), &news)
}
