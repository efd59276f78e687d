//! Who may write what into a roster, and what no roster forgets (`messaging/1 §4`), written down again on purpose: one chain from
//! its genesis; admins add, remove and re-role; an invite admits once, and no admin; a removed machine never comes back; the last
//! admin stays; a person's label names one machine. And the relay takes envelopes of members, to members, alone (`§7`).

use super::{Facts, Invariant, puts, word};
use crate::world::{Commit, Who};
use messaging_machines::relay::schema::{ENVELOPE, EnvelopeRow, ROSTER};
use messaging_proto::hash::{Hash, sha256};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

struct Member {
    person: String,
    label: String,
    admin: bool,
}

struct Invite {
    person: String,
    expires: u64,
}

/// What the relay's entries come to.
#[derive(Default)]
pub(super) struct Authority {
    head: Option<(u64, Hash)>,
    members: BTreeMap<String, Member>,
    gone: BTreeSet<String>,
    open: BTreeMap<String, Invite>,
}

impl Invariant for Authority {
    fn name(&self) -> &'static str {
        "roster-authority"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        if commit.who != Who::Relay {
            return Ok(());
        }
        for (_, row) in puts(commit, ENVELOPE.0) {
            let Some(row) = EnvelopeRow::decode(row) else { continue };
            let envelope: Value = serde_json::from_str(row.text).unwrap_or_default();
            for end in ["from", "to"] {
                let (machine, person) =
                    (word(&envelope, &[end, "device"]), word(&envelope, &[end, "person"]));
                if self.members.get(&machine).is_none_or(|member| member.person != person) {
                    return Err(format!("envelope {}: {end} is no member", word(&envelope, &["id"])));
                }
            }
        }
        for (_, row) in puts(commit, ROSTER.0) {
            let text = row.strip_prefix(&[1]).unwrap_or(row);
            let entry: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
            self.extends(&entry, text).map_err(|what| format!("{what}: {entry}"))?;
        }
        Ok(())
    }
}

fn need(holds: bool, what: &'static str) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(what) }
}

impl Authority {
    fn extends(&mut self, entry: &Value, text: &[u8]) -> Result<(), &'static str> {
        let seq = entry["seq"].as_u64().unwrap_or_default();
        match self.head {
            None => need(seq == 0, "a chain begins with its genesis")?,
            Some((last, hash)) => {
                need(seq == last + 1, "entries follow each other")?;
                need(word(entry, &["prev"]) == hash.to_string(), "an entry names the one before it")?;
            }
        }
        self.changes(entry)?;
        self.head = Some((seq, sha256(text)));
        need(self.members.values().any(|member| member.admin), "a team has an admin")
    }

    fn changes(&mut self, entry: &Value) -> Result<(), &'static str> {
        let (by, machine) = (word(entry, &["by"]), word(entry, &["machine"]));
        let admin = self.members.get(&by).is_some_and(|member| member.admin);
        match word(entry, &["op"]).as_str() {
            "genesis" => {
                need(self.head.is_none(), "a chain has one genesis")?;
                self.admit(&entry["founder"], true)
            }
            "invite.create" => {
                need(admin, "admins invite")?;
                let expires = entry["expires"].as_u64().unwrap_or_default();
                let invite = Invite { person: word(entry, &["person"]), expires };
                self.open.insert(word(entry, &["inviteId"]), invite);
                Ok(())
            }
            "invite.revoke" => {
                need(admin, "admins take invites back")?;
                need(
                    self.open.remove(&word(entry, &["inviteId"])).is_some(),
                    "an invite that is open is revoked",
                )
            }
            "invite.redeem" => {
                let member = &entry["member"];
                let invite = self.open.remove(&word(entry, &["inviteId"])).ok_or("an invite admits once")?;
                need(by == word(member, &["machine"]), "whoever joins signs it")?;
                need(invite.person == word(member, &["person"]), "an invite is for one person")?;
                need(entry["ts"].as_u64().is_some_and(|ts| ts < invite.expires), "an invite expires")?;
                need(word(member, &["role"]) == "member", "an invite admits no admin")?;
                self.admit(member, false)
            }
            "member.add" => {
                need(admin, "admins add")?;
                self.admit(&entry["member"], word(&entry["member"], &["role"]) == "admin")
            }
            "member.remove" => {
                need(admin || by == machine, "admins remove, or a machine itself")?;
                self.gone.insert(machine.clone());
                need(self.members.remove(&machine).is_some(), "a member is removed")
            }
            "member.role" => {
                need(admin, "admins give roles")?;
                let member = self.members.get_mut(&machine).ok_or("a member gets a role")?;
                member.admin = word(entry, &["role"]) == "admin";
                Ok(())
            }
            "member.rekey" => {
                need(admin || by == machine, "a key is replaced by its machine or an admin")?;
                need(self.members.contains_key(&machine), "a member has a key")
            }
            _ => Err("an operation nobody knows"),
        }
    }

    fn admit(&mut self, member: &Value, admin: bool) -> Result<(), &'static str> {
        let machine = word(member, &["machine"]);
        let (person, label) = (word(member, &["person"]), word(member, &["label"]));
        need(!self.gone.contains(&machine), "a removed machine never comes back")?;
        need(!self.members.contains_key(&machine), "a machine is a member once")?;
        let free = self.members.values().all(|other| (&other.person, &other.label) != (&person, &label));
        need(free, "a person's label names one machine")?;
        self.members.insert(machine, Member { person, label, admin });
        Ok(())
    }
}
