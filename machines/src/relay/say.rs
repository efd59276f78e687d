//! Answers, in one form each.

use super::io::{ConnId, Count, Effect};
use super::{Relay, Turn, close};
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::frame::RelayFrame;

impl Turn<'_, '_> {
    pub(super) fn say(&mut self, conn: ConnId, frame: RelayFrame) {
        self.out.push(Effect::Send { conn, frame });
    }

    pub(super) fn close(&mut self, conn: ConnId, code: u16) {
        self.out.push(Effect::Close { conn, code });
    }

    /// Refuses a frame: with its id when it has a readable one, else as an `error` (contract wire-core §7.1).
    pub(super) fn refuse(&mut self, conn: ConnId, id: Option<&str>, code: Code) {
        self.refuse_for(conn, id, code, None);
    }

    /// As [`Self::refuse`], with when to ask again.
    pub(super) fn refuse_for(
        &mut self,
        conn: ConnId,
        id: Option<&str>,
        code: Code,
        retry_after_ms: Option<u64>,
    ) {
        match id {
            Some(id) => {
                self.out.push(Effect::Count(Count::Nack(code)));
                self.say(conn, RelayFrame::Nack { id: id.to_owned(), code, message: None, retry_after_ms });
            }
            None => self.say(conn, RelayFrame::error(code)),
        }
    }
}

impl Relay {
    /// Says why, and closes.
    pub(super) fn refuse_connection(
        &mut self,
        turn: &mut Turn<'_, '_>,
        conn: ConnId,
        code: Code,
        close_code: u16,
    ) -> Result<(), StoreDown> {
        // A clock that is off is the one refusal a person can mend without knowing the protocol.
        let clock = close_code == close::AUTH && code == Code::Expired;
        let message = clock.then_some("too late, or the clocks of machine and relay differ");
        turn.say(conn, RelayFrame::Error { code, message });
        self.drop_connection(turn, conn, close_code);
        Ok(())
    }

    /// Closes a connection, which is gone for everybody else from now on.
    pub(super) fn drop_connection(&mut self, turn: &mut Turn<'_, '_>, conn: ConnId, close_code: u16) {
        let gone = self.connections.close(conn);
        turn.close(conn, close_code);
        self.left(turn, gone);
    }
}
