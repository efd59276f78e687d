//! Does what the relay machine says, and answers for it while there is none.

use super::conn::Conn;
use super::metrics::Slow;
use super::server::Shared;
use crate::clock;
use crate::driver::{Flow, Perform};
use messaging_machines::Machine;
use messaging_machines::relay::budget::furthest_behind;
use messaging_machines::relay::io::{ConnId, Count, Effect, Event, Log, Unreadable};
use messaging_proto::Code;
use messaging_proto::frame::{ClientFrame, Parsed, Received, RelayFrame};
use messaging_proto::time::Mono;
use std::sync::Arc;

/// Close code: the relay cannot serve this now; the client comes back with its backoff.
const TRY_AGAIN: u16 = 1013;
/// A damaged page is logged at most this often.
const DAMAGE_LOG_MS: u64 = 60_000;

/// The relay's side of its driver.
pub(super) struct Performer {
    shared: Arc<Shared>,
    /// Connections that got something since the last flush.
    dirty: Vec<Arc<Conn>>,
    /// When a damaged page was last logged.
    damage_logged: Option<Mono>,
}

/// What an event is answered with when no machine can (`§7`, "Store failures").
pub(super) struct Receipt {
    conn: ConnId,
    answer: Answer,
}

enum Answer {
    Frame(RelayFrame),
    Close(u16),
    /// Says why, and closes.
    Refuse(Code, u16),
}

impl Performer {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared, dirty: Vec::new(), damage_logged: None }
    }

    /// Logs a failure that nobody expects, in fixed words.
    fn log_internal(&self, place: &'static str, error: &'static str) {
        self.shared.log.error("relay.internal", &[("where", place.into()), ("error", error.into())]);
    }

    fn send(&mut self, id: ConnId, frame: &RelayFrame) {
        let Some(conn) = self.shared.conns.get(id) else { return };
        self.shared.metrics.frame_out(frame.t());
        match frame {
            RelayFrame::Nack { code: Code::RateLimited, retry_after_ms: Some(wait_ms), .. } => {
                conn.hold_back(*wait_ms);
            }
            RelayFrame::Error { code: Code::RateLimited, .. } => conn.hold_back(u64::MAX),
            _ => {}
        }
        let waiting = conn.outbox.push(frame.to_text()) as u64;
        if waiting > self.shared.limits.socket_bytes {
            self.drop_slow(&conn, Slow::Socket);
        }
        self.touch(conn);
        if self.shared.conns.buffered() as u64 > self.shared.limits.buffered_bytes {
            let each = self.shared.conns.buffered_each();
            for id in furthest_behind(&each, self.shared.limits.buffered_bytes) {
                if let Some(conn) = self.shared.conns.get(id) {
                    self.drop_slow(&conn, Slow::Budget);
                    self.touch(conn);
                }
            }
        }
    }

    /// Drops a socket that fell behind (`§7`, "Limits").
    fn drop_slow(&self, conn: &Conn, reason: Slow) {
        self.shared.metrics.slow(reason);
        self.shared.log.warn("conn.slow", &[("reason", reason.as_str().into())]);
        conn.outbox.abort();
    }

    fn close(&mut self, id: ConnId, code: u16) {
        if let Some(conn) = self.shared.conns.get(id) {
            conn.outbox.close(code);
            self.touch(conn);
        }
    }

    /// What was taken or said by a machine that is gone, and no store knows of.
    fn unanswered(&mut self, lost: Vec<Receipt>, unsaid: Vec<Effect>) {
        for receipt in lost {
            self.answer(receipt);
        }
        for effect in unsaid {
            match effect {
                Effect::Close { conn, .. } => self.close(conn, TRY_AGAIN),
                // It came, whatever became of it.
                Effect::Count(count @ Count::FrameIn(_)) => self.shared.metrics.count(count),
                _ => {}
            }
        }
    }

    /// Remembers to wake the connection's task, once for a run of effects.
    fn touch(&mut self, conn: Arc<Conn>) {
        if self.dirty.last().is_none_or(|last| last.id != conn.id) {
            self.dirty.push(conn);
        }
    }

    fn answer(&mut self, receipt: Receipt) {
        match receipt.answer {
            Answer::Frame(frame) => {
                if let RelayFrame::Nack { code, .. } = &frame {
                    self.shared.metrics.nack(*code);
                }
                self.send(receipt.conn, &frame);
            }
            Answer::Close(code) => self.close(receipt.conn, code),
            Answer::Refuse(why, code) => {
                self.send(receipt.conn, &RelayFrame::error(why));
                self.close(receipt.conn, code);
            }
        }
    }
}

fn receipt(event: &Event) -> Option<Receipt> {
    let (conn, answer) = match event {
        Event::Frame { conn, frame } => (*conn, frame_answer(frame)?),
        Event::Unreadable { conn, why: Unreadable::TooLarge } => (*conn, Answer::Close(1009)),
        Event::Unreadable { conn, why: Unreadable::Binary } => (*conn, Answer::Close(4002)),
        Event::Opened { conn, .. } => (*conn, Answer::Close(TRY_AGAIN)),
        _ => return None,
    };
    Some(Receipt { conn, answer })
}

/// A frame without a machine: a sign of life is given, everything that could be asked for is `internal`, and what
/// needs no answer gets none (an acknowledgement that is lost brings the envelope again).
fn frame_answer(frame: &Received<ClientFrame>) -> Option<Answer> {
    Some(match &frame.parsed {
        Parsed::Frame(ClientFrame::Ping { n }) => Answer::Frame(RelayFrame::Pong { n: *n }),
        Parsed::Frame(ClientFrame::Pong { .. } | ClientFrame::RecvAck { .. }) | Parsed::Unknown => {
            return None;
        }
        Parsed::Malformed => Answer::Refuse(Code::InvalidRequest, 4002),
        Parsed::Frame(_) | Parsed::BadShape { .. } => Answer::Frame(match frame.id() {
            Some(id) => RelayFrame::nack(id, Code::Internal),
            None => RelayFrame::error(Code::Internal),
        }),
    })
}

impl<M: Machine<Event = Event, Effect = Effect>> Perform<M> for Performer {
    type Receipt = Receipt;

    fn receipt(&mut self, event: &Event) -> Option<Receipt> {
        receipt(event)
    }

    fn perform(&mut self, effect: Effect) -> Flow {
        match effect {
            Effect::Send { conn, frame } => self.send(conn, &frame),
            Effect::Authenticated { conn, team, machine } => {
                self.shared.arrivals.took(team, machine, clock::mono());
                if let Some(conn) = self.shared.conns.get(conn) {
                    conn.authenticate(team, machine);
                }
            }
            Effect::Mark { conn } => {
                if let Some(conn) = self.shared.conns.get(conn) {
                    conn.outbox.mark();
                    self.touch(conn);
                }
            }
            Effect::Close { conn, code } => self.close(conn, code),
            Effect::Count(count) => self.shared.metrics.count(count),
            Effect::Log(log) => match log {
                Log::QueueFull => self.shared.log.warn("queue.full", &[]),
                Log::TeamCreated => self.shared.log.info("team.created", &[]),
                Log::Damaged { table, rows, lost } => {
                    self.shared.metrics.internal("row");
                    let fields = [("table", table.into()), ("rows", rows.into()), ("lost", lost.into())];
                    self.shared.log.error("store.damaged", &fields);
                }
            },
            Effect::Stopped => return Flow::Stop,
        }
        Flow::Continue
    }

    fn flush(&mut self) {
        for conn in self.dirty.drain(..) {
            conn.outbox.wake();
        }
    }

    /// No socket is dropped for a failing store (`§7`, "Store failures"), but those that the lost machine was about
    /// to close, and those that have not said `hello`: what they were told is in no store.
    fn reset(&mut self, lost: Vec<Receipt>, unsaid: Vec<Effect>) {
        // One event a failure, whatever was in its batch: frames, and timers that write.
        self.shared.metrics.internal("commit");
        self.log_internal("commit", "store");
        self.unanswered(lost, unsaid);
        Perform::<M>::renew(self);
    }

    fn passes_over_damage(&self) -> bool {
        true
    }

    fn damaged(&mut self, lost: Vec<Receipt>, unsaid: Vec<Effect>) {
        self.shared.metrics.internal("read");
        let now = clock::mono();
        // Whoever asks for what is out of reach asks again and again.
        if self.damage_logged.is_none_or(|at| now.since(at) >= DAMAGE_LOG_MS) {
            self.damage_logged = Some(now);
            self.log_internal("read", "corrupted");
        }
        self.unanswered(lost, unsaid);
        Perform::<M>::renew(self);
    }

    fn blame(&self, event: &Event) -> Option<Receipt> {
        match event {
            Event::Resumed { conn, .. } => Some(Receipt { conn: *conn, answer: Answer::Close(TRY_AGAIN) }),
            _ => None,
        }
    }

    fn renew(&mut self) {
        for conn in self.shared.conns.all() {
            if conn.authenticated().is_none() {
                conn.outbox.close(TRY_AGAIN);
                self.touch(conn);
            }
        }
    }

    fn refuse(&mut self, event: Event) {
        if let Event::Frame { frame, .. } = &event {
            self.shared.metrics.count(Count::FrameIn(frame.t()));
        }
        if let Some(receipt) = receipt(&event) {
            self.answer(receipt);
        }
    }

    fn failing(&mut self, failing: bool) -> Option<Event> {
        Some(Event::Store { failing })
    }

    fn resume(&mut self) -> Vec<Event> {
        let mut events = vec![Event::Start];
        for conn in self.shared.conns.all() {
            if let Some((team, machine)) = conn.authenticated() {
                events.push(Event::Resumed { conn: conn.id, address: conn.address.clone(), team, machine });
            }
        }
        events
    }
}
