//! When machines came to persons and went, as the verified roster tells it (`messaging/1 §8.2`, "A person's devices
//! changed", "Device alerts").
//!
//! A rekey and a role are no change of a person's devices. The founder was there from the start: a team's genesis is
//! where its machine came from, and no news to anybody.

use super::mail::peer::set;
use messaging_proto::json::{FromValue, Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::name::{Label, PersonId};
use messaging_proto::roster::{Entry, Member, Op, RawEntry, Roster};
use messaging_proto::time::Wall;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How long a change is news, in milliseconds (`§8.2`: 7 days).
pub(crate) const NEWS_MS: u64 = 7 * 86_400_000;
/// The most changes a client is told of one person.
const SHOWN: usize = 10;

/// Which way a machine went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Went {
    /// It was admitted.
    Added,
    /// It was removed.
    Removed,
}

impl Went {
    /// The word in the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
        }
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    /// The entry's position.
    pub(crate) seq: u64,
    /// When its author wrote it.
    pub(crate) at: Wall,
    /// Which way.
    pub(crate) went: Went,
    /// The machine.
    pub(crate) device: MachineId,
    /// Its label.
    pub(crate) label: Label,
    /// Whose it is.
    pub(crate) person: PersonId,
    /// Who signed the entry: the machine itself when it redeemed an invite.
    pub(crate) by: MachineId,
    /// The signer's label, when it was a member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) approver: Option<Label>,
}

impl Change {
    /// `DeviceChange` (contract ipc §2).
    pub(crate) fn to_object(&self) -> Object {
        let mut view = Object::new();
        view.set("change", Value::text(self.went.as_str()));
        view.set("device", Value::text(self.device.to_string()));
        view.set("label", Value::text(self.label.as_str()));
        set(&mut view, "approver", self.approver.as_ref().map(|label| Value::text(label.as_str())));
        view.set("at", Value::int(self.at.0));
        view
    }
}

/// A machine's time in the team.
#[derive(Clone, Debug)]
pub(crate) struct Stay {
    pub(crate) person: PersonId,
    pub(crate) label: Label,
    pub(crate) since: Wall,
    /// When it was removed, and by whom.
    pub(crate) until: Option<(Wall, MachineId)>,
    /// The entry that admitted it.
    pub(crate) seq: u64,
}

/// Every change there was, oldest first. It is a cache: what it says follows from the roster alone.
#[derive(Debug, Default)]
pub(crate) struct History {
    changes: Vec<Change>,
    stays: BTreeMap<MachineId, Stay>,
    persons: BTreeMap<PersonId, Person>,
}

#[derive(Debug, Default)]
struct Person {
    /// Positions in `changes`, oldest first.
    changes: Vec<usize>,
    devices: Vec<MachineId>,
}

impl History {
    /// The history of a roster.
    pub(crate) fn of(roster: &Roster) -> Self {
        let mut history = Self::default();
        for raw in roster.entries(-1) {
            history.add(raw);
        }
        history
    }

    /// Adds the next entry.
    pub(crate) fn add(&mut self, raw: &RawEntry) {
        // Most entries of a long roster are about something else; the text is canonical, so this finds every one.
        const OPS: [&str; 4] = [
            r#""op":"member.add""#,
            r#""op":"invite.redeem""#,
            r#""op":"member.remove""#,
            r#""op":"genesis""#,
        ];
        if !OPS.iter().any(|op| raw.text().contains(op)) {
            return;
        }
        // It was verified when it came in.
        let Ok(entry) = raw.value().and_then(|value| Entry::from_value(&value)) else { return };
        match &entry.op {
            Op::Genesis { founder, .. } => self.came(&entry, founder),
            Op::InviteRedeem { member, .. } | Op::MemberAdd { member } => {
                self.came(&entry, member);
                self.push(&entry, member.machine, Went::Added);
            }
            Op::MemberRemove { machine } => {
                if let Some(stay) = self.stays.get_mut(machine) {
                    stay.until = Some((entry.ts, entry.by));
                    self.push(&entry, *machine, Went::Removed);
                }
            }
            _ => {}
        }
    }

    fn came(&mut self, entry: &Entry, member: &Member) {
        let stay = Stay {
            person: member.person.clone(),
            label: member.label.clone(),
            since: entry.ts,
            until: None,
            seq: entry.seq,
        };
        self.stays.insert(member.machine, stay);
        self.persons.entry(member.person.clone()).or_default().devices.push(member.machine);
    }

    fn push(&mut self, entry: &Entry, device: MachineId, went: Went) {
        let Some(stay) = self.stays.get(&device) else { return };
        let approver = self.stays.get(&entry.by).map(|stay| stay.label.clone());
        let change = Change {
            seq: entry.seq,
            at: entry.ts,
            went,
            device,
            label: stay.label.clone(),
            person: stay.person.clone(),
            by: entry.by,
            approver: approver.filter(|_| entry.by != device),
        };
        self.persons.entry(stay.person.clone()).or_default().changes.push(self.changes.len());
        self.changes.push(change);
    }

    /// The changes at and after a position.
    pub(crate) fn since(&self, seq: u64) -> &[Change] {
        let from = self.changes.partition_point(|change| change.seq < seq);
        &self.changes[from..]
    }

    /// A machine's time in the team.
    pub(crate) fn stay(&self, device: &MachineId) -> Option<&Stay> {
        self.stays.get(device)
    }

    /// Every machine a person ever had, in the order they came.
    pub(crate) fn devices(&self, person: &PersonId) -> impl Iterator<Item = (&MachineId, &Stay)> {
        let devices = self.persons.get(person).into_iter().flat_map(|person| &person.devices);
        devices.filter_map(|device| Some((device, self.stays.get(device)?)))
    }

    /// A person's changes that are news at `now`, newest first.
    pub(crate) fn news(&self, person: &PersonId, now: Wall) -> impl Iterator<Item = &Change> {
        let changes = self.persons.get(person).into_iter().flat_map(|person| person.changes.iter().rev());
        changes
            .filter_map(|index| self.changes.get(*index))
            .take_while(move |change| now.0.saturating_sub(change.at.0) < NEWS_MS)
            .take(SHOWN)
    }
}
