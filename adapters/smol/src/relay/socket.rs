//! The task of one WebSocket connection: reads messages into events, writes what waits.
//!
//! One task does both, so an idle connection costs one small future and no buffer: bytes are read into a buffer of
//! the thread, and what is being written is freed when the kernel took it.

use super::arrivals::Arrivals;
use super::conn::Conn;
use super::wire::Wire;
use super::ws::{self, Bad, Got};
use crate::clock;
use crate::driver::Events;
use crate::outbox::Item;
use async_io::Timer;
use futures_lite::future;
use messaging_machines::relay::io::{Event, Unreadable};
use messaging_proto::frame::{ClientFrame, Parsed, Received};
use messaging_proto::key::VerifyKey;
use messaging_proto::time::Mono;
use std::cell::RefCell;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Read at once by a connection; others get their turn after that.
const CHUNK_BYTES: usize = 16 * 1024;
/// Gathered from the outbox before it is written.
const WRITE_BYTES: usize = 32 * 1024;
/// Bytes of messages of one connection before others get their turn: what they cost goes by bytes.
const TURN_BYTES: usize = 64 * 1024;
/// A message counts as this many at least.
const MESSAGE_BYTES: usize = TURN_BYTES / 16;
/// A sign of life that is no message is passed on no more often than this, in milliseconds.
const ALIVE_MS: u64 = 1_000;
/// How long a closing connection may take to send what waits.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the peer may take then to answer the close.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 2 });
/// How long unread input of a closed connection is thrown away, so that the peer reads the close before a reset.
const LINGER: Duration = Duration::from_secs(2);

thread_local! {
    static CHUNK: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK_BYTES].into());
}

/// How a connection ended.
enum End {
    /// The closing handshake is done, or the peer is gone.
    Closed,
    /// We closed and do not read what still comes.
    Linger,
    /// It was dropped.
    Aborted,
    /// The driver is gone.
    Stopped,
}

struct Socket<'a> {
    conn: &'a Conn,
    events: &'a Events<Event>,
    arrivals: &'a Arrivals,
    wire: &'a mut Wire,
    reader: ws::Reader,
    /// What was read and is not cut yet.
    rest: Vec<u8>,
    /// The key of the machine, once it said `hello` and something after it: nearly all that it signs comes this way.
    sender: Option<Box<VerifyKey>>,
    /// Whole frames, of which the kernel has taken `sent` bytes.
    out: Vec<u8>,
    sent: usize,
    /// Bytes of the outbox in `out`.
    in_flight: usize,
    /// A mark waits for `out` to be taken.
    marked: bool,
    /// The answer to the latest ping.
    pong: Option<Vec<u8>>,
    /// The peer closed: with what to answer.
    peer_closed: Option<Option<u16>>,
    /// Our close is in `out`, or gone.
    closed: bool,
    /// When the peer must have answered it.
    answer_by: Option<Instant>,
    /// When a closing connection is dropped.
    close_by: Option<Instant>,
    /// Whether input is still read as WebSocket messages.
    reading: bool,
    /// The latest message was a `hello`.
    greeted: bool,
    /// The kernel had no more than the last chunk.
    drained: bool,
    /// Bytes of messages since the others had their turn.
    turn: usize,
    /// When the machine last heard of a sign of life that is no message.
    alive: Option<Mono>,
}

/// Serves a connection from its upgrade to its end. `early` are bytes that came with the upgrade.
pub(super) async fn serve(
    conn: Arc<Conn>,
    mut wire: Wire,
    early: Vec<u8>,
    arrivals: &Arrivals,
    events: Events<Event>,
) {
    let opened = Event::Opened { conn: conn.id, address: conn.address.clone() };
    if !events.send(opened).await {
        return;
    }
    let socket = Socket {
        conn: &conn,
        events: &events,
        arrivals,
        wire: &mut wire,
        reader: ws::Reader::default(),
        rest: Vec::new(),
        sender: None,
        out: Vec::new(),
        sent: 0,
        in_flight: 0,
        marked: false,
        pong: None,
        peer_closed: None,
        closed: false,
        answer_by: None,
        close_by: None,
        reading: true,
        greeted: false,
        drained: false,
        turn: 0,
        alive: None,
    };
    match socket.run(early).await {
        End::Linger => linger(&mut wire).await,
        End::Closed => wire.farewell(),
        End::Aborted | End::Stopped => {}
    }
    conn.outbox.abort();
    events.send(Event::Closed { conn: conn.id }).await;
}

impl Socket<'_> {
    async fn run(mut self, early: Vec<u8>) -> End {
        let mut heard = self.cut(&early);
        drop(early);
        loop {
            if let Err(end) = self.report(heard).await {
                return end;
            }
            if self.turn >= TURN_BYTES {
                self.turn = 0;
                self.wire.others().await;
            }
            if let Some(end) = self.write().await {
                return end;
            }
            if self.close_by.is_none() {
                self.close_by = self.conn.outbox.ending().map(|since| since + CLOSE_TIMEOUT);
            }
            if self.close_by.is_some_and(|by| Instant::now() >= by) {
                return End::Aborted;
            }
            if self.closed && self.out.is_empty() {
                if self.peer_closed.is_some() {
                    return End::Closed;
                }
                if !self.reading {
                    return End::Linger;
                }
                let answer_by = *self.answer_by.get_or_insert_with(|| Instant::now() + ANSWER_TIMEOUT);
                self.close_by = self.close_by.map(|by| by.min(answer_by));
            }
            heard = match self.read() {
                Ok(Some(heard)) => heard,
                Ok(None) => {
                    self.turn = 0;
                    // Without a word of new input, there is none.
                    self.drained &= !self.wait().await;
                    Vec::new()
                }
                Err(end) => return end,
            };
        }
    }

    /// Reads a chunk and cuts it into messages; nothing when none is there.
    fn read(&mut self) -> Result<Option<Vec<Event>>, End> {
        // A chunk that was not full emptied the socket: waiting tells when there is more, a read would not.
        if !self.reading || self.conn.held_back().is_some() || self.awaits_welcome() {
            return Ok(None);
        }
        self.greeted = false;
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Ok(Some(self.cut(&rest)));
        }
        if self.drained {
            return Ok(None);
        }
        CHUNK.with_borrow_mut(|chunk| match self.wire.read(chunk) {
            Ok(0) => Err(End::Closed),
            Ok(count) => {
                self.drained = count < CHUNK_BYTES && self.wire.short_is_all();
                Ok(Some(self.cut(&chunk[..count])))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.drained = true;
                Ok(None)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Some(Vec::new())),
            Err(_) => Err(End::Closed),
        })
    }

    /// The events in a chunk. Frames are parsed here, on the executor's threads: the machine gets checked values, in
    /// this connection's order.
    fn cut(&mut self, mut chunk: &[u8]) -> Vec<Event> {
        let conn = self.conn.id;
        let mut heard = Vec::new();
        while self.reading && !chunk.is_empty() {
            // `hello` raises the limit (§7, "Pre-auth frames").
            let limit = self.conn.frame_limit();
            match self.reader.take(&mut chunk, limit) {
                Ok(None) => {}
                Ok(Some(Got::Text(text))) => {
                    self.turn += text.len().max(MESSAGE_BYTES);
                    self.conn.heard(text.len());
                    // Nothing is heard behind a close.
                    if self.conn.outbox.ending().is_none() {
                        let paced = self.conn.paced(text.len());
                        let frame = Box::new(Received::parse_from(text, limit, self.sender()));
                        self.greeted = matches!(frame.parsed, Parsed::Frame(ClientFrame::Hello(_)));
                        heard.push(Event::Frame { conn, frame });
                        if paced || self.greeted {
                            // §7 Rate limits: judging costs more than a refusal; what follows waits unread. So does what
                            // follows a `hello`, whose answer tells the limit that it is read under.
                            self.rest = chunk.to_vec();
                            break;
                        }
                    }
                }
                Ok(Some(Got::Binary)) => {
                    self.reading = false;
                    heard.push(Event::Unreadable { conn, why: Unreadable::Binary });
                }
                Ok(Some(Got::Ping(payload))) => {
                    self.pong = Some(payload);
                    heard.extend(self.alive());
                }
                Ok(Some(Got::Pong)) => heard.extend(self.alive()),
                Ok(Some(Got::Close(code))) => {
                    self.reading = false;
                    self.peer_closed = Some(ws::answer(code));
                    self.close_by.get_or_insert_with(|| Instant::now() + CLOSE_TIMEOUT);
                }
                Err(Bad::TooLarge) => {
                    self.reading = false;
                    heard.push(Event::Unreadable { conn, why: Unreadable::TooLarge });
                }
                Err(Bad::Protocol) => {
                    self.reading = false;
                    self.conn.outbox.close(1002);
                }
            }
        }
        heard
    }

    /// Whether a `hello` is with the machine. What it says to it wakes this task.
    fn awaits_welcome(&self) -> bool {
        self.greeted && self.conn.authenticated().is_none() && self.conn.outbox.ending().is_none()
    }

    /// What the machine hears of a WebSocket ping or pong, now and then: its client is there.
    fn alive(&mut self) -> Option<Event> {
        let now = clock::mono();
        let recently = self.alive.is_some_and(|at| now.since(at) < ALIVE_MS);
        (!recently).then(|| {
            self.alive = Some(now);
            Event::Alive { conn: self.conn.id }
        })
    }

    fn sender(&mut self) -> Option<&VerifyKey> {
        if self.sender.is_none() {
            let machine = self.conn.authenticated().map(|(_, machine)| machine);
            self.sender = machine.and_then(|machine| VerifyKey::new(&machine)).map(Box::new);
        }
        self.sender.as_deref()
    }

    async fn report(&self, heard: Vec<Event>) -> Result<(), End> {
        for event in heard {
            self.pace(&event).await;
            if self.conn.outbox.ending().is_none() && !self.events.send(event).await {
                return Err(End::Stopped);
            }
        }
        Ok(())
    }

    /// Lets a `hello` wait whose machine comes back too often.
    async fn pace(&self, event: &Event) {
        let Event::Frame { frame, .. } = event else { return };
        let Parsed::Frame(ClientFrame::Hello(hello)) = &frame.parsed else { return };
        let wait_ms = self.arrivals.wait_ms(hello.team, hello.machine, clock::mono());
        if wait_ms > 0 {
            let over = async {
                Timer::after(Duration::from_millis(wait_ms)).await;
            };
            future::or(over, self.conn.outbox.ended(false)).await;
        }
    }

    /// Writes what waits until there is nothing, or the kernel takes no more.
    async fn write(&mut self) -> Option<End> {
        loop {
            if self.out.is_empty()
                && let Some(end) = self.gather()
            {
                return Some(end);
            }
            if let Err(error) = self.wire.send(&self.out, &mut self.sent) {
                return (error.kind() != ErrorKind::WouldBlock).then_some(End::Closed);
            }
            if self.out.is_empty() && !self.marked {
                return None;
            }
            self.sent = 0;
            self.out = Vec::new();
            self.conn.outbox.flushed(std::mem::take(&mut self.in_flight));
            if std::mem::take(&mut self.marked)
                && !self.events.send(Event::Drained { conn: self.conn.id }).await
            {
                return Some(End::Stopped);
            }
        }
    }

    /// Fills `out` with the next frames.
    fn gather(&mut self) -> Option<End> {
        if self.closed {
            return None;
        }
        if let Some(payload) = self.pong.take() {
            ws::pong(&mut self.out, &payload);
        }
        while self.out.len() < WRITE_BYTES && !self.marked {
            match self.conn.outbox.next() {
                Some(Item::Text(text)) => {
                    self.in_flight += text.len();
                    ws::text(&mut self.out, &text);
                }
                Some(Item::Mark) => self.marked = true,
                Some(Item::Close(code)) => {
                    self.closed = true;
                    ws::close(&mut self.out, Some(code));
                    return None;
                }
                Some(Item::Abort) => return Some(End::Aborted),
                None => break,
            }
        }
        if let Some(code) = self.peer_closed
            && self.out.len() < WRITE_BYTES
            && !self.marked
        {
            self.closed = true;
            ws::close(&mut self.out, code);
        }
        None
    }

    /// Waits for input, for room, for something to send, or for the end of a close; whether there is input.
    async fn wait(&self) -> bool {
        let readable = async {
            if self.reading && !self.awaits_welcome() {
                // What a flood says waits in its socket.
                match self.conn.held_back() {
                    Some(wait) => drop(Timer::after(wait).await),
                    // It may have been over a moment ago.
                    None if !self.rest.is_empty() => {}
                    None => self.wire.readable().await,
                }
                true
            } else {
                future::pending().await
            }
        };
        let blocked = !self.out.is_empty() || self.wire.wants_write();
        let writable = async {
            if blocked {
                // What is queued waits, but for the order to end.
                let urgent = self.conn.outbox.ended(self.close_by.is_some());
                future::or(self.wire.writable(), urgent).await;
            } else {
                self.conn.outbox.ready().await;
            }
        };
        let late = async {
            match self.close_by {
                Some(by) => drop(Timer::at(by).await),
                None => future::pending().await,
            }
        };
        let other = async {
            future::or(writable, late).await;
            false
        };
        future::or(readable, other).await
    }
}

/// Ends our side and throws away what still comes, for a while.
async fn linger(wire: &mut Wire) {
    wire.end();
    let discard = async {
        loop {
            match CHUNK.with_borrow_mut(|chunk| wire.read(chunk)) {
                Ok(0) => return,
                Ok(_) => future::yield_now().await,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    wire.readable().await;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    };
    future::or(discard, async {
        Timer::after(LINGER).await;
    })
    .await;
}
