//! The roster: who is in a team, as a chain of signed entries (`messaging/1 §4`).
//!
//! [`Roster::apply`] is the only way a peer's entry gets in; it checks in the order of `§9` and changes nothing
//! when it fails. What is kept of an entry is its canonical text, which stands for the raw value: whoever
//! signed or hashed the value signed or hashed that text.

mod author;
mod entry;
mod error;
mod replay;
mod state;
mod view;

pub use crate::realm::{Head, Relation, Role};
pub use author::{Author, genesis};
pub use entry::{Entry, Member, Op};
pub use error::{Forbidden, InviteFault, RosterError};
pub use state::{Invite, InviteState};
pub use view::head_relation;

pub(crate) use entry::V;

use crate::domain::Domain;
use crate::hash::{Hash, RealmId, sha256};
use crate::json::{Fields, FromValue, Invalid, Value, canonicalize};
use crate::key::{MachineId, verify_value};
use crate::limits;
use crate::name::{Label, PersonId, TeamName};
use crate::time::Wall;
use crate::ulid::Ulid;
use state::{State, Trust};
use std::fmt;
use std::sync::Arc;

/// A team's chain of entries, and the state it leads to.
#[derive(Clone, Default)]
pub struct Roster {
    team: Option<(RealmId, TeamName)>,
    log: Vec<RawEntry>,
    state: State,
}

/// An accepted entry as it is kept, stored and sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawEntry {
    text: Arc<str>,
    hash: Hash,
    ts: Wall,
}

impl RawEntry {
    /// The canonical JSON of the whole entry, unknown members and signature included.
    #[must_use]
    pub const fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The entry's hash, which is the SHA-256 of its text.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// The entry as a value, parsed anew.
    ///
    /// # Errors
    /// None for an entry out of a roster; the text parsed before.
    pub fn value(&self) -> Result<Value, Invalid> {
        crate::json::parse_wire(self.text.as_bytes(), limits::ROSTER_ENTRY_BYTES)
    }
}

/// How the time of an entry is checked (`messaging/1 §4`, "Live entries").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApplyOptions {
    /// The current time, for an entry that is accepted live; nothing for one that is fetched or stored.
    pub now: Option<Wall>,
    /// How far `ts` may be from `now`, in milliseconds; `clockSkewMs` when absent.
    pub skew_ms: Option<u64>,
}

impl ApplyOptions {
    /// For an entry that was fetched or stored: only the chain bounds its time.
    pub const STORED: Self = Self { now: None, skew_ms: None };

    /// For an append that a relay accepts at `now`.
    #[must_use]
    pub const fn appended(now: Wall) -> Self {
        Self { now: Some(now), skew_ms: None }
    }

    /// For a live broadcast: the relay's clock may be off by the skew, and so may this one.
    #[must_use]
    pub const fn broadcast(now: Wall) -> Self {
        Self { now: Some(now), skew_ms: Some(2 * limits::CLOCK_SKEW_MS) }
    }
}

impl FromValue for ApplyOptions {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        Ok(Self { now: fields.opt("now")?.map(Wall), skew_ms: fields.opt("skewMs")? })
    }
}

/// Whether an entry that passed [`Roster::check_at`] proves a fork: it is valid at its place, and another entry
/// is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fork(pub bool);

/// An entry whose schema, keys and size hold.
struct Measured {
    entry: Entry,
    text: String,
    hash: Hash,
}

impl Measured {
    fn read(raw: &Value) -> Result<Self, RosterError> {
        let entry = Entry::from_value(raw)?;
        if let Some((key, path)) = entry.admitted()
            && !key.is_usable()
        {
            return Err(RosterError::UnusableKey(path));
        }
        let text = canonicalize(raw)?;
        if text.len() > limits::ROSTER_ENTRY_BYTES {
            return Err(RosterError::TooLarge);
        }
        let hash = sha256(text.as_bytes());
        Ok(Self { entry, text, hash })
    }
}

impl Roster {
    /// A roster without entries, which a genesis can be applied to.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Applies each entry in order, without a current time.
    ///
    /// # Errors
    /// [`RosterError::Empty`] for no entries; else what the first refused entry fails with.
    pub fn from_entries(entries: &[Value]) -> Result<Self, RosterError> {
        if entries.is_empty() {
            return Err(RosterError::Empty);
        }
        let mut roster = Self::new();
        for entry in entries {
            roster.apply(entry, ApplyOptions::STORED)?;
        }
        Ok(roster)
    }

    /// Checks an entry against this roster and adds it. First failure wins; a failure changes nothing.
    ///
    /// # Errors
    /// [`RosterError`], in the order of `messaging/1 §9`.
    pub fn apply(&mut self, raw: &Value, options: ApplyOptions) -> Result<Head, RosterError> {
        let measured = Measured::read(raw)?;
        self.follows(&measured.entry, self.log.len())?;
        fresh(measured.entry.ts, options)?;
        signed(&measured.entry, raw)?;
        self.state.check(&measured.entry, raw, Trust::Checked)?;
        Ok(self.add(&measured.entry, measured.text.into(), measured.hash))
    }

    /// Checks an entry against the state just before its own position, and changes nothing.
    ///
    /// # Errors
    /// [`RosterError`]: the entry is junk, or comes from past the next position.
    pub fn check_at(&self, raw: &Value) -> Result<Fork, RosterError> {
        let measured = Measured::read(raw)?;
        let at = usize::try_from(measured.entry.seq).map_err(|_| RosterError::Conflict)?;
        if at > self.log.len() {
            return Err(RosterError::Conflict);
        }
        if at == 0 {
            // Another genesis is another team, not a fork of this one.
            return if self.team() == Some(measured.hash) {
                Ok(Fork(false))
            } else {
                Err(RosterError::AnotherTeam)
            };
        }
        self.follows(&measured.entry, at)?;
        signed(&measured.entry, raw)?;
        if at == self.log.len() {
            self.state.check(&measured.entry, raw, Trust::Checked)?;
        } else {
            // The state is only replayed for an entry that everything cheaper accepts.
            self.state_before(at)?.check(&measured.entry, raw, Trust::Checked)?;
        }
        Ok(Fork(self.log.get(at).is_some_and(|stored| stored.hash != measured.hash)))
    }

    /// Chain, team and order of time for an entry at position `at`, which is at most one past the head.
    fn follows(&self, entry: &Entry, at: usize) -> Result<(), RosterError> {
        // §4 Sequencing.
        let before = at.checked_sub(1).and_then(|index| self.log.get(index));
        if usize::try_from(entry.seq) != Ok(at) || entry.prev != before.map(RawEntry::hash) {
            return Err(RosterError::Conflict);
        }
        let Some(before) = before else { return Ok(()) };
        if entry.team != self.team() {
            return Err(RosterError::AnotherTeam);
        }
        if entry.ts < before.ts.minus(limits::CLOCK_SKEW_MS) {
            return Err(RosterError::Backdated);
        }
        Ok(())
    }

    /// Adds an entry that was checked.
    fn add(&mut self, entry: &Entry, text: Arc<str>, hash: Hash) -> Head {
        if let Op::Genesis { name, .. } = &entry.op {
            self.team = Some((hash, name.clone()));
        }
        self.state.change(entry);
        self.log.push(RawEntry { text, hash, ts: entry.ts });
        Head { seq: entry.seq, hash }
    }

    /// The newest entry; nothing for a roster without entries.
    #[must_use]
    pub fn head(&self) -> Option<Head> {
        let last = self.log.last()?;
        Some(Head { seq: self.log.len() as u64 - 1, hash: last.hash })
    }

    /// The newest entry's `ts`.
    #[must_use]
    pub fn head_ts(&self) -> Option<Wall> {
        self.log.last().map(|last| last.ts)
    }

    /// The team's id, which is the hash of its genesis.
    #[must_use]
    pub fn team(&self) -> Option<RealmId> {
        self.team.as_ref().map(|(id, _)| *id)
    }

    /// The team's name.
    #[must_use]
    pub fn name(&self) -> Option<&TeamName> {
        self.team.as_ref().map(|(_, name)| name)
    }

    /// The current member with this id.
    #[must_use]
    pub fn member(&self, machine: &MachineId) -> Option<&Member> {
        self.state.seats().get(machine).map(|seat| &seat.member)
    }

    /// The current members, by machine id.
    pub fn members(&self) -> impl Iterator<Item = &Member> {
        self.state.seats().values().map(|seat| &seat.member)
    }

    /// The current members of one person, by label.
    pub fn machines_of(&self, person: &PersonId) -> impl Iterator<Item = &Member> {
        self.state
            .labels_of(person)
            .into_iter()
            .flat_map(|labels| labels.values())
            .filter_map(|machine| self.member(machine))
    }

    /// Whether no current machine of `person` has this label.
    #[must_use]
    pub fn label_is_free(&self, person: &PersonId, label: &Label) -> bool {
        self.state.label_is_free(person, label)
    }

    /// Whether the machine was a member and was removed.
    #[must_use]
    pub fn is_removed(&self, machine: &MachineId) -> bool {
        self.state.removed().contains(machine)
    }

    /// Every removed machine, by id.
    pub fn removed(&self) -> impl Iterator<Item = &MachineId> {
        self.state.removed().iter()
    }

    /// Every invite there ever was, by id.
    pub fn invites(&self) -> impl Iterator<Item = (&Ulid, &Invite)> {
        self.state.invites().iter()
    }

    /// The invite with this id.
    #[must_use]
    pub fn invite(&self, id: &Ulid) -> Option<&Invite> {
        self.state.invites().get(id)
    }

    /// The position of the machine's latest `member.rekey`; nothing before one, or for no current member.
    #[must_use]
    pub fn rekey_seq(&self, machine: &MachineId) -> Option<u64> {
        self.state.seats().get(machine)?.rekey.map(|(seq, _)| seq)
    }

    /// Who signed the machine's latest `member.rekey`.
    #[must_use]
    pub fn rekey_by(&self, machine: &MachineId) -> Option<MachineId> {
        self.state.seats().get(machine)?.rekey.map(|(_, by)| by)
    }

    /// The entries past position `after`, in order; −1 for all of them.
    pub fn entries(&self, after: i64) -> impl Iterator<Item = &RawEntry> {
        let from = usize::try_from(after.saturating_add(1)).unwrap_or(0);
        self.log.get(from..).unwrap_or_default().iter()
    }

    /// The entry at a position.
    #[must_use]
    pub fn entry(&self, seq: u64) -> Option<&RawEntry> {
        self.log.get(usize::try_from(seq).ok()?)
    }

    /// The hash of the entry at a position.
    #[must_use]
    pub fn hash_at(&self, seq: u64) -> Option<Hash> {
        self.entry(seq).map(RawEntry::hash)
    }
}

/// §4 Invite expiry, the freshness rule: for an entry that is accepted live.
fn fresh(ts: Wall, options: ApplyOptions) -> Result<(), RosterError> {
    let skew = options.skew_ms.unwrap_or(limits::CLOCK_SKEW_MS);
    match options.now {
        Some(now) if ts.distance(now) > skew => Err(RosterError::Expired),
        _ => Ok(()),
    }
}

/// §4 The signature is over the raw entry without `sig`.
fn signed(entry: &Entry, raw: &Value) -> Result<(), RosterError> {
    let mut object = raw.as_object().cloned().ok_or_else(Invalid::new)?;
    object.remove("sig");
    if verify_value(&entry.by, &entry.sig, Domain::Roster, &object.into()) {
        Ok(())
    } else {
        Err(RosterError::BadSignature)
    }
}

impl fmt::Debug for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Roster")
            .field("team", &self.team())
            .field("head", &self.head())
            .finish_non_exhaustive()
    }
}

impl PartialEq for Roster {
    /// The head's hash covers every entry before it.
    fn eq(&self, other: &Self) -> bool {
        self.head() == other.head()
    }
}

impl Eq for Roster {}
