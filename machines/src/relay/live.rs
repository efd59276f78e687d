//! What an authenticated connection asks (contract wire-core §7.4 to §7.9).

use super::connection::Live;
use super::delivery::Offer;
use super::io::{ConnId, Count, Effect, Log};
use super::limits::{Charge, FREE_ACK_BYTES};
use super::queue::{Full, Item, Lookup};
use super::schema::{IdKey, PresenceRow, Print, Seat};
use super::{Relay, Turn, close, held, presence, send, teams};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::envelope::Inspected;
use messaging_proto::frame::{ClientFrame, Parsed, Received, RelayFrame, Req};
use messaging_proto::json::Value;
use messaging_proto::key::MachineId;
use messaging_proto::roster::Op;
use messaging_proto::ulid::Ulid;
use std::sync::Arc;

/// `queue.full` is logged at most this often.
const FULL_LOG_MS: u64 = 60_000;

impl Relay {
    /// Charges a frame of an authenticated connection, and routes it.
    pub(super) fn after_hello(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        live: Live,
        frame: &Received<ClientFrame>,
    ) -> Result<(), StoreDown> {
        let id = frame.id();
        if let Err(wait) = self.charge(turn, &live, frame) {
            turn.out.push(Effect::Count(Count::RateLimited));
            turn.refuse_for(conn, id, Code::RateLimited, Some(wait));
            return Ok(());
        }
        match &frame.parsed {
            Parsed::Frame(ClientFrame::Send(env)) => self.send(turn, conn, &live, id, env),
            Parsed::Frame(ClientFrame::RecvAck { from, id }) => self.recv_ack(turn, &live, from, id),
            Parsed::Frame(ClientFrame::Presence(env)) => self.presence(turn, conn, &live, id, env),
            Parsed::Frame(ClientFrame::RosterSync { req, after }) => {
                self.roster_sync(turn, conn, &live, req, *after)
            }
            Parsed::Frame(ClientFrame::RosterAppend { req, entry }) => {
                self.append_after_hello(turn, conn, &live, req, entry)
            }
            Parsed::Frame(ClientFrame::Ping { n }) => {
                turn.say(conn, RelayFrame::Pong { n: *n });
                Ok(())
            }
            Parsed::Frame(ClientFrame::Pong { .. }) | Parsed::Unknown => Ok(()),
            Parsed::Frame(ClientFrame::Join { req, .. }) => {
                turn.refuse(conn, Some(req.as_str()), Code::Forbidden);
                Ok(())
            }
            // A second `hello`, whatever its shape.
            Parsed::Frame(ClientFrame::Hello(_))
            | Parsed::BadShape { t: "hello", .. }
            | Parsed::Malformed => self.refuse_connection(turn, conn, Code::InvalidRequest, close::PROTOCOL),
            Parsed::BadShape { id, .. } => {
                turn.refuse(conn, id.as_deref(), Code::InvalidRequest);
                Ok(())
            }
        }
    }

    /// §7 Rate limits.
    fn charge(&mut self, turn: &Turn<'_, '_>, live: &Live, frame: &Received<ClientFrame>) -> Result<(), u64> {
        let ack = matches!(frame.parsed, Parsed::Frame(ClientFrame::RecvAck { .. }));
        if ack && frame.bytes <= FREE_ACK_BYTES && self.deliveries.spend_credit(live.seat) {
            return Ok(());
        }
        let charge = Charge { bytes: frame.bytes, presence: frame.t() == "presence" };
        self.budgets.charge(&live.machine, turn.step.mono, charge)
    }

    fn send(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        live: &Live,
        id: Option<&str>,
        inspected: &Inspected,
    ) -> Result<(), StoreDown> {
        let now = turn.step.wall;
        let parts = held(&mut self.parts)?;
        let team = parts.teams.get(turn.txn, &live.team)?.ok_or(StoreDown)?;
        let envelope = match send::check_send(live, &team.roster, now, inspected) {
            Ok(envelope) => envelope,
            Err(code) => {
                turn.refuse(conn, id, code);
                return Ok(());
            }
        };
        let header = &envelope.header;
        let Some(to) = header.to.end().and_then(|to| team.seat(&to.device)) else {
            // A member whose row does not read.
            turn.refuse(conn, id, Code::Internal);
            return Ok(());
        };
        let text = inspected.jcs().ok_or(StoreDown)?;
        let (from, key, print) = (live.seat, IdKey::from(&header.id), Print::of(&envelope.sig));
        // §7.6 step 10.
        match parts.queue.lookup(turn.txn, now, from, key)? {
            Lookup::Fresh => {}
            Lookup::Taken(seen) if seen.print == print => {
                turn.say(conn, RelayFrame::Ack { id: header.id });
                return Ok(());
            }
            Lookup::Taken(_) => {
                turn.refuse(conn, id, Code::InvalidRequest);
                return Ok(());
            }
            Lookup::Stale(_) if self.failing => {}
            Lookup::Stale(seen) => {
                if let Some(gone) = parts.queue.forget(turn.txn, from, key, &seen)? {
                    self.deliveries.release(gone.to, gone.from, gone.id);
                    self.deliveries.pump(turn.step, turn.txn, gone.to, turn.out)?;
                }
            }
        }
        // §7.6 step 11.
        let size = text.len() as u64;
        if let Some(full) = self.full(turn, to, from, size)? {
            turn.out.push(Effect::Count(Count::QueueFull));
            self.log_full(turn, full);
            turn.refuse(conn, id, Code::RateLimited);
            return Ok(());
        }
        if self.failing {
            // §7 Store failures: it cannot be stored; the sender keeps it.
            turn.refuse(conn, id, Code::Internal);
            return Ok(());
        }
        let item = Item { to, from, id: key, exp: header.exp, print, text };
        let position = held(&mut self.parts)?.queue.put(turn.step, turn.txn, &item);
        let offer = Offer { to, from, id: key, position, exp: header.exp, text };
        self.deliveries.offer(turn.step, &offer, turn.out);
        turn.say(conn, RelayFrame::Ack { id: header.id });
        Ok(())
    }

    /// The cap that one more envelope would pass. What has ended counts for none (contract wire-core §7.9), so a queue that is
    /// full of it is purged at once.
    fn full(
        &mut self,
        turn: &mut Turn<'_, '_>,
        to: Seat,
        from: Seat,
        size: u64,
    ) -> Result<Option<Full>, StoreDown> {
        let (step, limits) = (turn.step, &self.config.limits);
        let queue = &mut held(&mut self.parts)?.queue;
        let full = queue.full(step, turn.txn, limits, to, from, size)?;
        if full != Some(Full::Whole) || self.failing || !queue.behind(turn.txn, step.wall)? {
            return Ok(full);
        }
        queue.purge_now(step);
        self.purge(turn)?;
        let (queue, limits) = (&mut held(&mut self.parts)?.queue, &self.config.limits);
        queue.full(step, turn.txn, limits, to, from, size)
    }

    fn log_full(&mut self, turn: &mut Turn<'_, '_>, full: Full) {
        let recently = self.full_logged.is_some_and(|at| turn.step.mono.since(at) < FULL_LOG_MS);
        if full == Full::Whole && !recently {
            self.full_logged = Some(turn.step.mono);
            turn.out.push(Effect::Log(Log::QueueFull));
        }
    }

    /// §7 "recv.ack": the envelope leaves the queue, and its sender's window has room. One that names nothing is
    /// ignored.
    fn recv_ack(
        &mut self,
        turn: &mut Turn<'_, '_>,
        live: &Live,
        from: &MachineId,
        id: &Ulid,
    ) -> Result<(), StoreDown> {
        let parts = held(&mut self.parts)?;
        let team = parts.teams.get(turn.txn, &live.team)?.ok_or(StoreDown)?;
        let Some(from) = team.seat(from) else { return Ok(()) };
        let (to, key) = (live.seat, IdKey::from(id));
        if self.failing {
            self.deliveries.hold_ack(to, from, key);
            return Ok(());
        }
        if let Some(flight) = self.deliveries.acked(to, from, key) {
            parts.queue.delete(turn.txn, to, from, flight.position, flight.size);
            return self.deliveries.pump(turn.step, turn.txn, to, turn.out);
        }
        // Delivered on an earlier link, perhaps.
        let seen = match parts.queue.lookup(turn.txn, turn.step.wall, from, key)? {
            Lookup::Taken(seen) | Lookup::Stale(seen) if seen.to == to => seen,
            _ => return Ok(()),
        };
        if let Some(order) = parts.queue.waiting(turn.txn, to, from, seen.position)? {
            parts.queue.delete(turn.txn, to, from, seen.position, order.size);
        }
        Ok(())
    }

    fn presence(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        live: &Live,
        id: Option<&str>,
        inspected: &Inspected,
    ) -> Result<(), StoreDown> {
        let parts = held(&mut self.parts)?;
        let team = parts.teams.get(turn.txn, &live.team)?.ok_or(StoreDown)?;
        let exp = match send::check_presence(live, &team.roster, turn.step.wall, inspected) {
            Ok(envelope) => envelope.header.exp,
            Err(code) => {
                turn.refuse(conn, id, code);
                return Ok(());
            }
        };
        let text: &Arc<str> = inspected.jcs().ok_or(StoreDown)?;
        let row = PresenceRow { seq: send::presence_seq(inspected), exp, text };
        // §7 "presence": an older one is dropped without a nack.
        if !presence::is_newer(turn.txn, live.seat, row.seq)? {
            return Ok(());
        }
        if self.failing {
            turn.refuse(conn, id, Code::Internal);
            return Ok(());
        }
        presence::keep(turn.txn, live.seat, &row);
        for (machine, _) in self.connections.online(&live.team) {
            if machine != live.machine
                && let Some(seat) = team.seat(&machine)
            {
                self.deliveries.present(seat, text, turn.out);
            }
        }
        Ok(())
    }

    fn roster_sync(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        live: &Live,
        req: &Req,
        after: i64,
    ) -> Result<(), StoreDown> {
        let team = held(&mut self.parts)?.teams.get(turn.txn, &live.team)?.ok_or(StoreDown)?;
        let (entries, more) = teams::page(&team.roster, after);
        turn.say(conn, RelayFrame::RosterEntries { req: req.clone(), entries, more });
        Ok(())
    }

    fn append_after_hello(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        live: &Live,
        req: &Req,
        raw: &Value,
    ) -> Result<(), StoreDown> {
        let checked = teams::shape(raw).and_then(|shaped| {
            if matches!(shaped.entry.op, Op::Genesis { .. }) {
                Err(Code::Forbidden)
            } else if shaped.entry.team != Some(live.team) {
                Err(Code::InvalidRequest)
            } else if shaped.entry.by != live.machine {
                Err(Code::Forbidden)
            } else {
                Ok(shaped)
            }
        });
        let parts = held(&mut self.parts)?;
        let judged = match checked {
            Ok(_) if self.failing => Err(Code::Internal),
            Ok(shaped) => parts
                .teams
                .append(turn.txn, turn.step.wall, &live.team, raw, &shaped.entry.op)?
                .ok_or(StoreDown)?,
            Err(code) => Err(code),
        };
        match judged {
            Ok(appended) => self.appended(turn, conn, req, &live.team, &live.machine, &appended),
            Err(code) => {
                turn.refuse(conn, Some(req.as_str()), code);
                Ok(())
            }
        }
    }
}
