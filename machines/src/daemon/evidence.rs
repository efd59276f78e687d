//! Signed envelopes kept as proof (`messaging/1 §5`, "Roster head check"): of a head the relay does not
//! provide, or of one that is not on this chain. And signed roster entries that fork it.

use messaging_proto::envelope::{Inspected, signed_head};
use messaging_proto::hash::Hash;
use messaging_proto::json::parse_wire;
use messaging_proto::key::MachineId;
use messaging_proto::limits;
use messaging_proto::name::PersonId;
use messaging_proto::realm::{Head, Relation};
use messaging_proto::roster::{Roster, head_relation};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde::{Deserialize, Serialize};

/// What a kept envelope proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its signer has seen entries this machine has not.
    Ahead,
    /// Its signer was shown another chain.
    Diverged,
}

/// One kept envelope and what it said when it came.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The signer's machine.
    pub device: MachineId,
    /// Its person, as the envelope says and the roster agreed.
    pub person: PersonId,
    /// The position of the committed head.
    pub seq: u64,
    /// The committed hash.
    pub theirs: Hash,
    /// This chain's hash there; nothing while it is ahead.
    pub mine: Option<Hash>,
    /// When it was raised.
    pub at: Wall,
    /// The envelope's id.
    pub envelope_id: Ulid,
    /// The envelope's canonical text.
    pub envelope: String,
}

/// A signed entry that proves a fork: its author signed it for a position where this chain has another one
/// (`messaging/1 §4`, "Sequencing and forks"). The other half of the proof is this chain's entry there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ForkProof {
    /// The position.
    pub seq: u64,
    /// When it came.
    pub at: Wall,
    /// The entry's canonical text.
    pub entry: String,
}

impl Evidence {
    /// Evidence out of an envelope whose signature holds; nothing when it commits to no head of this team, or
    /// its signer is no current member.
    #[must_use]
    pub fn of(inspected: &Inspected, roster: &Roster, now: Wall) -> Option<Self> {
        let head = signed_head(inspected, &roster.team()?)?;
        let header = &inspected.envelope().ok()?.header;
        let member = roster.member(&header.from.device)?;
        (member.person == header.from.person).then(|| Self {
            device: header.from.device,
            person: header.from.person.clone(),
            seq: head.seq,
            theirs: head.hash,
            mine: roster.hash_at(head.seq),
            at: now,
            envelope_id: header.id,
            envelope: inspected.jcs().map_or_else(String::new, |text| text.to_string()),
        })
    }

    /// The same evidence with this chain's hash as it is now.
    #[must_use]
    pub fn against(self, roster: &Roster) -> Self {
        Self { mine: roster.hash_at(self.seq), ..self }
    }

    /// What the kept envelope proves against the roster as it is now; nothing when it proves nothing any more:
    /// the roster reached its head, its signer is no member (while it was only ahead), or it does not verify.
    #[must_use]
    pub fn standing(&self, roster: &Roster) -> Option<Standing> {
        let raw = parse_wire(self.envelope.as_bytes(), limits::FRAME_BYTES).ok()?;
        let inspected = Inspected::new(raw);
        let head = signed_head(&inspected, &roster.team()?)?;
        let signer = inspected.envelope().ok()?.header.from.device;
        if signer != self.device || head != (Head { seq: self.seq, hash: self.theirs }) {
            return None;
        }
        match head_relation(roster, &head) {
            Relation::Ahead if roster.member(&signer).is_some() => Some(Standing::Ahead),
            Relation::Diverged { .. } => Some(Standing::Diverged),
            Relation::Ahead | Relation::Consistent => None,
        }
    }
}
