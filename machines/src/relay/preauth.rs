//! What a connection may ask before `hello` (contract wire-core §7.3, §7.4).

use super::connection::{Awaiting, Live};
use super::io::{ConnId, Count, Effect, Log};
use super::schema::Seat;
use super::teams::Asker;
use super::{Relay, Turn, close, held, hello, teams};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::frame::{ClientFrame, Hello, Parsed, Received, RelayFrame, Req};
use messaging_proto::hash::RealmId;
use messaging_proto::json::Value;
use messaging_proto::key::Sig;
use messaging_proto::roster::Op;
use messaging_proto::ticket::JoinClaim;
use messaging_proto::ulid::Ulid;
use std::collections::VecDeque;

impl Relay {
    /// Routes a frame of a connection that is awaiting its `hello`. `awaiting` counts this frame already.
    pub(super) fn before_hello(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        awaiting: &Awaiting,
        frame: &Received<ClientFrame>,
    ) -> Result<(), StoreDown> {
        // §7 Limits: `preAuthFrames`, the `hello` included.
        if awaiting.frames > self.config.limits.pre_auth_frames {
            return self.refuse_connection(turn, conn, Code::RateLimited, close::PROTOCOL);
        }
        match &frame.parsed {
            Parsed::Frame(ClientFrame::Hello(hello)) => self.hello(turn, conn, awaiting, hello),
            Parsed::BadShape { t: "hello", .. } => self.refuse_hello(turn, conn, Code::InvalidRequest),
            Parsed::Frame(ClientFrame::Join { req, team, invite_id, proof, after }) => {
                let join = Join { req, team, invite_id, proof, after: *after };
                self.join(turn, conn, awaiting, &join)
            }
            Parsed::Frame(ClientFrame::RosterAppend { req, entry }) => {
                self.append_before_hello(turn, conn, awaiting, req, entry)
            }
            Parsed::BadShape { t: "join" | "roster.append", id } => {
                turn.refuse(conn, id.as_deref(), Code::InvalidRequest);
                Ok(())
            }
            Parsed::Unknown => Ok(()),
            // §7 Pre-auth frames: nothing else is served.
            Parsed::Frame(_) | Parsed::BadShape { .. } | Parsed::Malformed => {
                self.refuse_connection(turn, conn, Code::Forbidden, close::PROTOCOL)
            }
        }
    }

    fn refuse_hello(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId, code: Code) -> Result<(), StoreDown> {
        turn.out.push(Effect::Count(Count::AuthFailure(code)));
        self.refuse_connection(turn, conn, code, close::AUTH)
    }

    fn hello(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        awaiting: &Awaiting,
        said: &Hello,
    ) -> Result<(), StoreDown> {
        let relay_id = &self.config.relay_id;
        if let Err(code) = hello::check_claim(said, relay_id, &awaiting.nonce, turn.step.wall) {
            return self.refuse_hello(turn, conn, code);
        }
        let parts = held(&mut self.parts)?;
        // The same for a team the relay does not have: an outsider does not learn which teams exist. Told by one
        // row, so a stranger's `hello` makes the relay replay no roster.
        if !parts.teams.has_seat(turn.txn, &said.team, &said.machine)? {
            return self.refuse_hello(turn, conn, Code::NotMember);
        }
        if parts.teams.wait_ms(turn.txn, &said.team, Asker::Member, turn.step.mono)? > 0 {
            return self.refuse_connection(turn, conn, Code::RateLimited, close::FULL);
        }
        let team = parts.teams.get(turn.txn, &said.team)?;
        let Some((team, seat)) = team.and_then(|team| Some((team, team.seat(&said.machine)?))) else {
            // Its rows do not read: nobody else's `hello` is refused for it.
            return self.refuse_connection(turn, conn, Code::Internal, close::FULL);
        };
        let head = team.head()?;
        // §7.3: in order of machine id.
        let snapshot: VecDeque<Seat> = team.seats.values().copied().collect();
        let backlog = parts.queue.backlog(turn.txn, seat)?;
        // §7 Limits: a machine that replaces its own connection adds none.
        let replaces = self.connections.of(&said.team, &said.machine).is_some();
        if !replaces && self.connections.authenticated() >= self.config.limits.connections {
            turn.out.push(Effect::Count(Count::RefusedFull));
            return self.refuse_connection(turn, conn, Code::RateLimited, close::FULL);
        }
        let live = Live { team: said.team, machine: said.machine, seat };
        match self.connections.authenticate(conn, turn.step.mono, live) {
            Some(older) => turn.close(older, close::REPLACED),
            None => parts.teams.link(&live.team),
        }
        turn.out.push(Effect::Authenticated { conn, team: live.team, machine: live.machine });
        let others = self.connections.online(&live.team).map(|(machine, _)| machine);
        let online = others.filter(|machine| *machine != live.machine).collect();
        turn.say(conn, RelayFrame::Welcome { head, online });
        self.deliveries.open(seat, conn, snapshot, backlog);
        self.deliveries.pump(turn.step, turn.txn, seat, turn.out)?;
        if !replaces {
            self.tell_peers(turn, &live, true);
        }
        Ok(())
    }

    fn join(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        awaiting: &Awaiting,
        join: &Join<'_>,
    ) -> Result<(), StoreDown> {
        if self.has_to_wait(turn, conn, join.req, join.team)? {
            return Ok(());
        }
        let relay = &*self.config.relay_id;
        let claim = JoinClaim { relay, team: join.team, invite_id: join.invite_id, nonce: &awaiting.nonce };
        let teams = &mut held(&mut self.parts)?.teams;
        if teams.get(turn.txn, join.team)?.is_none() && teams.is_broken(join.team) {
            turn.refuse(conn, Some(join.req.as_str()), Code::Internal);
            return Ok(());
        }
        let team = teams.get(turn.txn, join.team)?;
        match teams::check_join(team.map(|team| &team.roster), &claim, join.proof, turn.step.wall) {
            Ok(roster) => {
                let (entries, more) = teams::page(roster, join.after);
                turn.say(conn, RelayFrame::RosterEntries { req: join.req.clone(), entries, more });
            }
            Err(code) => turn.refuse(conn, Some(join.req.as_str()), code),
        }
        Ok(())
    }

    /// Whether a stranger asked for a roster whose replay is not paid for now. It is told how long to wait.
    fn has_to_wait(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        req: &Req,
        team: &RealmId,
    ) -> Result<bool, StoreDown> {
        let teams = &mut held(&mut self.parts)?.teams;
        let wait = teams.wait_ms(turn.txn, team, Asker::Stranger, turn.step.mono)?;
        if wait > 0 {
            turn.refuse_for(conn, Some(req.as_str()), Code::RateLimited, Some(wait));
        }
        Ok(wait > 0)
    }

    fn append_before_hello(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        awaiting: &Awaiting,
        req: &Req,
        raw: &Value,
    ) -> Result<(), StoreDown> {
        let shaped = match teams::shape(raw) {
            Ok(shaped) => shaped,
            Err(code) => {
                turn.refuse(conn, Some(req.as_str()), code);
                return Ok(());
            }
        };
        match (&shaped.entry.op, &shaped.entry.team) {
            (Op::Genesis { .. }, _) => self.found(turn, conn, &awaiting.address, req, raw, &shaped),
            (Op::InviteRedeem { .. }, Some(team)) if self.failing => {
                let known = held(&mut self.parts)?.teams.knows(turn.txn, team)?;
                turn.refuse(
                    conn,
                    Some(req.as_str()),
                    if known { Code::Internal } else { Code::InviteInvalid },
                );
                Ok(())
            }
            (op @ Op::InviteRedeem { .. }, Some(team)) => {
                if self.has_to_wait(turn, conn, req, team)? {
                    return Ok(());
                }
                let parts = held(&mut self.parts)?;
                match parts.teams.append(turn.txn, turn.step.wall, team, raw, op)? {
                    Some(Ok(appended)) => self.appended(turn, conn, req, team, &shaped.entry.by, &appended),
                    Some(Err(code)) => {
                        turn.refuse(conn, Some(req.as_str()), code);
                        Ok(())
                    }
                    None => {
                        let broken = parts.teams.is_broken(team);
                        let code = if broken { Code::Internal } else { Code::InviteInvalid };
                        turn.refuse(conn, Some(req.as_str()), code);
                        Ok(())
                    }
                }
            }
            _ => {
                turn.refuse(conn, Some(req.as_str()), Code::Forbidden);
                Ok(())
            }
        }
    }

    /// Founds a team, if the relay lets this one in.
    fn found(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        address: &str,
        req: &Req,
        raw: &Value,
        shaped: &teams::Shaped,
    ) -> Result<(), StoreDown> {
        let (limits, now) = (&self.config.limits, turn.step.mono);
        let teams = &mut held(&mut self.parts)?.teams;
        let wait = self.creates.wait_ms(address, now, limits.team_creates_per_hour);
        let judged = if !self.config.may_found(&shaped.entry.by) {
            Err(Code::Forbidden)
        } else if teams.knows(turn.txn, &shaped.hash())? {
            Err(Code::RosterConflict)
        } else if wait > 0 {
            turn.refuse_for(conn, Some(req.as_str()), Code::RateLimited, Some(wait));
            return Ok(());
        } else if teams.count() >= limits.max_teams {
            Err(Code::Forbidden)
        } else if self.failing {
            // §7 Store failures.
            Err(Code::Internal)
        } else {
            teams.found(turn.txn, turn.step.wall, raw)?
        };
        match judged {
            Ok(head) => {
                self.creates.note(address, now);
                turn.out.push(Effect::Log(Log::TeamCreated));
                turn.say(conn, RelayFrame::RosterOk { req: req.clone(), head });
            }
            Err(code) => turn.refuse(conn, Some(req.as_str()), code),
        }
        Ok(())
    }
}

struct Join<'a> {
    req: &'a Req,
    team: &'a RealmId,
    invite_id: &'a Ulid,
    proof: &'a Sig,
    after: i64,
}
