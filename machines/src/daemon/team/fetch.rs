//! Reading a team's roster before it is this machine's: every entry from the genesis on is verified, and the
//! team is pinned (`messaging/1 §4`, "Sequencing and forks").

use crate::daemon::ipc::RpcError;
use messaging_proto::Code;
use messaging_proto::hash::RealmId;
use messaging_proto::json::Value;
use messaging_proto::name::Label;
use messaging_proto::roster::{ApplyOptions, InviteState, Roster};
use messaging_proto::ticket::InviteTicket;
use messaging_proto::time::Wall;

/// A roster as far as it is read. Kept in memory: a crash begins anew.
#[derive(Debug, Default)]
pub(super) struct Fetch {
    roster: Roster,
}

/// The relay serves another team's roster, or one that does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong;

impl Fetch {
    /// The roster read so far.
    pub(super) const fn roster(&self) -> &Roster {
        &self.roster
    }

    /// Takes the roster.
    pub(super) fn take_roster(&mut self) -> Roster {
        std::mem::take(&mut self.roster)
    }

    /// The last position held, −1 for none.
    pub(super) fn after(&self) -> i64 {
        self.roster.head().and_then(|head| i64::try_from(head.seq).ok()).unwrap_or(-1)
    }

    /// Verifies a page and adds it.
    pub(super) fn take(&mut self, entries: &[Value], team: &RealmId) -> Result<(), Wrong> {
        for entry in entries {
            self.roster.apply(entry, ApplyOptions::STORED).map_err(|_| Wrong)?;
            if self.roster.team() != Some(*team) {
                return Err(Wrong);
            }
        }
        Ok(())
    }

    /// The joiner's checks (`§4`, "Invites", step 5), before keys are made for it.
    pub(super) fn may_redeem(&self, ticket: &InviteTicket, label: &Label, now: Wall) -> Result<(), RpcError> {
        let refuse = |text| Err(RpcError::new(Code::InviteInvalid, text));
        let Some(invite) = self.roster.invite(&ticket.invite_id) else {
            return refuse("the roster does not hold the invite");
        };
        if invite.state != InviteState::Open {
            return refuse("the invite was used or revoked");
        }
        if invite.expires <= now {
            return refuse("the invite is expired");
        }
        let person = &invite.person;
        if invite.invite_pub != ticket.secret.machine() || person.as_str() != ticket.person.as_str() {
            return refuse("the ticket is not of the roster's invite");
        }
        if !self.roster.label_is_free(person, label) {
            let error = RpcError::new(Code::Forbidden, "another machine of the person has this label");
            return Err(error.at("label"));
        }
        Ok(())
    }
}
