//! Reading a roster: the proof a joiner needs, and pages (`messaging/1 §7`, "Paging", "Pre-auth frames").

use messaging_proto::Code;
use messaging_proto::frame::RelayFrame;
use messaging_proto::key::Sig;
use messaging_proto::limits::{FRAME_BYTES, ROSTER_PAGE_ENTRIES};
use messaging_proto::roster::{InviteState, Roster};
use messaging_proto::ticket::{JoinClaim, verify_join_proof};
use messaging_proto::time::Wall;
use std::sync::Arc;

/// Whether a joiner may read the roster: the team is known, its invite is open and not over, and the proof was
/// made with the invite's seed for this connection. Knowing the invite's id is not enough.
///
/// # Errors
/// [`Code::InviteInvalid`] whatever fails, so that nothing is learnt from a refusal.
pub(in crate::relay) fn check_join<'a>(
    roster: Option<&'a Roster>,
    claim: &JoinClaim<'_>,
    proof: &Sig,
    now: Wall,
) -> Result<&'a Roster, Code> {
    let roster = roster.ok_or(Code::InviteInvalid)?;
    let invite = roster.invite(claim.invite_id).ok_or(Code::InviteInvalid)?;
    let open = invite.state == InviteState::Open && now < invite.expires;
    if open && verify_join_proof(&invite.invite_pub, proof, claim) {
        Ok(roster)
    } else {
        Err(Code::InviteInvalid)
    }
}

/// The entries past `after` that fit one frame, and whether there are more. At least one, when there is any.
pub(in crate::relay) fn page(roster: &Roster, after: i64) -> (Vec<Arc<str>>, bool) {
    let mut left = FRAME_BYTES - RelayFrame::ENTRIES_OVERHEAD;
    let mut rest = roster.entries(after);
    let mut page = Vec::new();
    for entry in rest.by_ref() {
        // An entry and its comma.
        let size = entry.text().len() + 1;
        if page.len() == ROSTER_PAGE_ENTRIES || size > left && !page.is_empty() {
            return (page, true);
        }
        left = left.saturating_sub(size);
        page.push(Arc::clone(entry.text()));
    }
    (page, false)
}
