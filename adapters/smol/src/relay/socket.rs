//! The task of one WebSocket connection: reads messages into events, writes what waits.
//!
//! One task does both, so an idle connection costs one small future and one read buffer. The WebSocket is
//! tungstenite's protocol core over the non-blocking socket itself: nothing of it waits, this loop does.

use super::conn::Conn;
use crate::driver::Events;
use crate::outbox::Item;
use async_io::{Async, Timer};
use async_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig, WebSocketContext};
use async_tungstenite::tungstenite::{self, Message};
use futures_lite::future;
use messaging_machines::relay::io::{Event, Unreadable};
use messaging_proto::frame::Received;
use std::io::{ErrorKind, Read};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Read buffer of one connection: thousands of them are idle.
const READ_BUFFER_BYTES: usize = 4 * 1024;
/// Written at once when this much waits.
const WRITE_BUFFER_BYTES: usize = 16 * 1024;
/// How long a closing connection may take to send what waits.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the peer may take then to answer the close.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 2 });
/// How long unread input of a closed connection is thrown away, so that the peer reads the close before a reset.
const LINGER: Duration = Duration::from_secs(2);
/// Messages of one connection before others get their turn.
const TURN_MESSAGES: usize = 16;

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
    stream: &'a Async<TcpStream>,
    ws: WebSocketContext,
    limit: usize,
    /// Bytes handed to the WebSocket and not yet taken by the kernel.
    in_flight: usize,
    /// A mark waits for the next complete flush.
    marked: bool,
    /// The kernel takes no more for now.
    blocked: bool,
    /// The close is handed over.
    sent_close: bool,
    /// When the peer must have answered it.
    answer_by: Option<Instant>,
    /// When a closing connection is dropped.
    close_by: Option<Instant>,
    /// Whether input is still read as WebSocket messages.
    reading: bool,
}

/// Serves a connection from its upgrade to its end. `early` are bytes that came with the upgrade.
pub(super) async fn serve(conn: Arc<Conn>, stream: Async<TcpStream>, early: Vec<u8>, events: Events<Event>) {
    let opened = Event::Opened { conn: conn.id, address: conn.address.to_string() };
    if !events.send(opened).await {
        return;
    }
    let limit = conn.frame_limit();
    let socket = Socket {
        conn: &conn,
        events: &events,
        stream: &stream,
        ws: WebSocketContext::from_partially_read(early, Role::Server, Some(config(limit))),
        limit,
        in_flight: 0,
        marked: false,
        blocked: false,
        sent_close: false,
        answer_by: None,
        close_by: None,
        reading: true,
    };
    if matches!(socket.run().await, End::Linger) {
        linger(&stream).await;
    }
    conn.outbox.abort();
    events.send(Event::Closed { conn: conn.id }).await;
}

fn config(limit: usize) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(usize::MAX)
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit))
}

impl Socket<'_> {
    async fn run(mut self) -> End {
        loop {
            if let Some(end) = self.write().await {
                return end;
            }
            let wants_read = match self.read().await {
                Ok(wants_read) => wants_read,
                Err(end) => return end,
            };
            if self.close_by.is_none() {
                self.close_by = self.conn.outbox.ending().map(|since| since + CLOSE_TIMEOUT);
            }
            if self.close_by.is_some_and(|by| Instant::now() >= by) {
                return End::Aborted;
            }
            if self.sent_close && !self.blocked {
                if !self.reading {
                    return End::Linger;
                }
                let answer_by = *self.answer_by.get_or_insert_with(|| Instant::now() + ANSWER_TIMEOUT);
                self.close_by = self.close_by.map(|by| by.min(answer_by));
            }
            if !wants_read {
                // More may be there already; others first.
                future::yield_now().await;
                continue;
            }
            self.wait().await;
        }
    }

    /// Hands what waits to the WebSocket, and flushes once, until the kernel takes no more.
    async fn write(&mut self) -> Option<End> {
        self.blocked = false;
        loop {
            let mut last = false;
            let mut flush = true;
            let written = match self.conn.outbox.next() {
                Some(Item::Text(text)) => {
                    self.in_flight += text.len();
                    flush = false;
                    self.ws.write(&mut self.stream.get_ref(), Message::text(text))
                }
                Some(Item::Mark) => {
                    self.marked = true;
                    Ok(())
                }
                Some(Item::Close(code)) => {
                    self.sent_close = true;
                    let frame = CloseFrame { code: code.into(), reason: "".into() };
                    self.ws.close(&mut self.stream.get_ref(), Some(frame))
                }
                Some(Item::Abort) => return Some(End::Aborted),
                None => {
                    last = true;
                    Ok(())
                }
            };
            let flushed = if flush {
                written.and_then(|()| self.ws.flush(&mut self.stream.get_ref()))
            } else {
                written
            };
            match flushed {
                Ok(()) if flush => {
                    self.conn.outbox.flushed(std::mem::take(&mut self.in_flight));
                    if std::mem::take(&mut self.marked)
                        && !self.events.send(Event::Drained { conn: self.conn.id }).await
                    {
                        return Some(End::Stopped);
                    }
                }
                Ok(()) => {}
                Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    self.blocked = true;
                    return None;
                }
                Err(_) => return Some(End::Closed),
            }
            if last {
                return None;
            }
        }
    }

    /// Reads what is there; whether the socket is empty now.
    async fn read(&mut self) -> Result<bool, End> {
        for _ in 0..TURN_MESSAGES {
            if !self.reading {
                return Ok(true);
            }
            // `hello` raises the limit (§7, "Pre-auth frames").
            let limit = self.conn.frame_limit();
            if limit != self.limit {
                self.limit = limit;
                self.ws.set_config(|config| {
                    config.max_message_size = Some(limit);
                    config.max_frame_size = Some(limit);
                });
            }
            let event = match self.ws.read(&mut self.stream.get_ref()) {
                Ok(Message::Text(text)) => self.frame(tungstenite::Bytes::from(text).into()),
                Ok(Message::Binary(_)) => {
                    self.reading = false;
                    Event::Unreadable { conn: self.conn.id, why: Unreadable::Binary }
                }
                Ok(_) => continue,
                Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => {
                    return Ok(true);
                }
                Err(tungstenite::Error::Capacity(_)) => {
                    self.reading = false;
                    Event::Unreadable { conn: self.conn.id, why: Unreadable::TooLarge }
                }
                // A text message that is no UTF-8 is no wire JSON either.
                Err(tungstenite::Error::Utf8(_)) => {
                    self.reading = false;
                    self.frame(vec![0xff])
                }
                Err(tungstenite::Error::Protocol(error)) => {
                    if matches!(error, tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) {
                        return Err(End::Closed);
                    }
                    self.reading = false;
                    self.conn.outbox.close(1002);
                    return Ok(false);
                }
                Err(_) => return Err(End::Closed),
            };
            // Nothing is heard behind a close.
            if self.conn.outbox.ending().is_none() && !self.events.send(event).await {
                return Err(End::Stopped);
            }
        }
        Ok(false)
    }

    /// Parses here, on the executor's threads: the machine gets checked values in this connection's order.
    fn frame(&self, bytes: Vec<u8>) -> Event {
        Event::Frame { conn: self.conn.id, frame: Box::new(Received::parse(bytes, self.limit)) }
    }

    /// Waits for input, for room, for something to send, or for the end of a close.
    async fn wait(&self) {
        let readable = async {
            if self.reading {
                let _ = self.stream.readable().await;
            } else {
                future::pending::<()>().await;
            }
        };
        let writable = async {
            if self.blocked {
                // What is queued waits, but for the order to end.
                let urgent = self.conn.outbox.ended(self.close_by.is_some());
                future::or(async { drop(self.stream.writable().await) }, urgent).await;
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
        future::or(readable, future::or(writable, late)).await;
    }
}

/// Ends our side and throws away what still comes, for a while.
async fn linger(stream: &Async<TcpStream>) {
    let _ = stream.get_ref().shutdown(Shutdown::Write);
    let discard = async {
        let mut scratch = [0; 4096];
        loop {
            match stream.get_ref().read(&mut scratch) {
                Ok(0) => return,
                Ok(_) => future::yield_now().await,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if stream.readable().await.is_err() {
                        return;
                    }
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
