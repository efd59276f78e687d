//! What the members of a team are told of each other (`messaging/1 §7`, "Other frames").

use super::connection::Live;
use super::io::ConnId;
use super::schema::Seat;
use super::teams::{Appended, Team};
use super::{Relay, Turn, close, held, presence};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::frame::{Nonce, RelayFrame, Req};
use messaging_proto::hash::RealmId;
use messaging_proto::key::MachineId;
use std::collections::VecDeque;
use std::sync::Arc;

impl Relay {
    /// Tells the other online members that a machine came or went.
    pub(super) fn tell_peers(&self, turn: &mut Turn<'_, '_>, live: &Live, online: bool) {
        for (machine, conn) in self.connections.online(&live.team) {
            if machine != live.machine {
                turn.say(conn, RelayFrame::Peer { machine: live.machine, online });
            }
        }
    }

    /// An authenticated connection is gone, and no other took its place.
    pub(super) fn left(&mut self, turn: &mut Turn<'_, '_>, gone: Option<Live>) {
        let Some(live) = gone else { return };
        self.deliveries.close(live.seat);
        if let Some(parts) = &mut self.parts {
            parts.teams.unlink(&live.team);
        }
        if !self.stopping {
            self.tell_peers(turn, &live, false);
        }
    }

    /// An entry was stored: its author is answered, the others are told, and a removed machine goes.
    pub(super) fn appended(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        req: &Req,
        team: &RealmId,
        author: &MachineId,
        appended: &Appended,
    ) -> Result<(), StoreDown> {
        turn.say(conn, RelayFrame::RosterOk { req: req.clone(), head: appended.head });
        let removed = appended.removed;
        for (machine, conn) in self.connections.online(team) {
            // §7 Removal: the removed machine gets its own entry too, even as its author.
            if machine != *author || removed.is_some_and(|(gone, _)| gone == machine) {
                turn.say(conn, RelayFrame::Roster { entry: Arc::clone(&appended.text) });
            }
        }
        match removed {
            Some((machine, seat)) => self.remove(turn, team, &machine, seat),
            None => Ok(()),
        }
    }

    /// §7 Removal: the machine's connection, queue, queued envelopes and presence go.
    fn remove(
        &mut self,
        turn: &mut Turn<'_, '_>,
        team: &RealmId,
        machine: &MachineId,
        seat: Seat,
    ) -> Result<(), StoreDown> {
        self.deliveries.forget_sender(seat);
        if let Some(conn) = self.connections.of(team, machine) {
            self.drop_connection(turn, conn, close::REMOVED);
        }
        presence::forget(turn.txn, seat);
        held(&mut self.parts)?.queue.remove(turn.step, turn.txn, team, seat)
    }

    /// Takes over a connection that outlived the machine before this one.
    pub(super) fn resumed(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        team: RealmId,
        machine: MachineId,
    ) -> Result<(), StoreDown> {
        let parts = held(&mut self.parts)?;
        let newest = |team: &Team| {
            let head = team.roster.head()?;
            team.roster.entry(head.seq).map(|entry| Arc::clone(entry.text()))
        };
        let found = parts.teams.get(turn.txn, &team)?.map(|team| (team.seat(&machine), newest(team)));
        let Some((Some(seat), newest)) = found else {
            if parts.teams.has_seat(turn.txn, &team, &machine)? {
                // Its rows do not read.
                self.connections.open(conn, turn.step.mono, String::new(), Nonce([0; 32]));
                return self.refuse_connection(turn, conn, Code::Internal, close::FULL);
            }
            self.connections.open(conn, turn.step.mono, String::new(), Nonce([0; 32]));
            return self.refuse_connection(turn, conn, Code::NotMember, close::AUTH);
        };
        let backlog = parts.queue.backlog(turn.txn, seat)?;
        if self.connections.authenticate(conn, turn.step.mono, Live { team, machine, seat }).is_none() {
            parts.teams.link(&team);
        }
        // §7 "roster.append": what is stored is told. The machine before this one may have died between the two, and whoever holds
        // the entry ignores it.
        if let Some(entry) = newest {
            turn.say(conn, RelayFrame::Roster { entry });
        }
        // The presences were sent on this connection already.
        self.deliveries.open(seat, conn, VecDeque::new(), backlog);
        self.deliveries.pump(turn.step, turn.txn, seat, turn.out)
    }

    /// A socket has taken what was sent: the link goes on.
    pub(super) fn drained(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId) -> Result<(), StoreDown> {
        let Some(live) = self.connections.live(conn) else { return Ok(()) };
        self.deliveries.drained(live.seat, turn.out);
        self.deliveries.pump(turn.step, turn.txn, live.seat, turn.out)
    }
}
