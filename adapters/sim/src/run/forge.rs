//! What a member's program that is not ours makes with the member's own keys: signed and sealed as they should be, and
//! about things that are not its own.

use super::Play;
use crate::plan::Forged;
use messaging_proto::domain::Domain;
use messaging_proto::envelope::{End, HeaderParts, Kind, Sealed, To, seal_envelope};
use messaging_proto::hash::{Hash, RealmId, sha256};
use messaging_proto::identity::{Identity, IdentityFile};
use messaging_proto::json::{Value, canonicalize, parse_wire};
use messaging_proto::key::{EncSecret, MachineId};
use messaging_proto::name::SessionName;
use messaging_proto::realm::{Anchor, Head};
use messaging_proto::roster::Roster;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde_json::Value as Json;
use zeroize::Zeroizing;

impl Play {
    /// Forges one envelope, says it to the relay, and looks whether its victim believed it.
    pub(super) fn forge(&mut self, liar: usize, what: Forged, pick: usize) {
        self.world.settle();
        let Some(forger) = Forger::of(self, liar) else { return };
        let Some(lie) = self.lie(liar, what, pick, &forger) else { return };
        let before = lie.about.as_ref().map(|about| self.row(about));
        self.world.say_up(liar, &lie.frame);
        self.world.settle();
        let after = lie.about.as_ref().map(|about| self.row(about));
        if before != after {
            let what = format!("{what:?} of machine {liar} changed {:?}", lie.about);
            self.seen.borrow_mut().break_one("nobody-believes-forgeries", self.world.mono, what);
        }
    }

    fn row(&self, about: &About) -> Option<Vec<u8>> {
        let rows = self.world.nodes[about.victim].base.iter();
        let mut of = rows.filter(|(table, key, _)| table.0 == about.table && *key == about.key);
        of.next().map(|(_, _, row)| row.to_vec())
    }

    fn lie(&mut self, liar: usize, what: Forged, pick: usize, forger: &Forger) -> Option<Lie> {
        let id = Ulid::new(Wall(self.world.wall), forger.bytes(pick));
        let text = |value: &str| parse_wire(value.as_bytes(), 1 << 22).ok();
        match what {
            Forged::Ahead | Forged::Diverged => {
                let head = forger.roster.head()?;
                let hash = Hash(forger.fresh);
                let seq = if what == Forged::Ahead { head.seq + 3 } else { head.seq };
                let to = (0..self.machines.len()).find(|to| *to != liar)?;
                let payload = text(&receipt(id, "read", self.world.wall))?;
                let anchor = Anchor::Roster(Head { seq, hash });
                let envelope = forger.seal(id, Kind::Receipt, anchor, &self.machines[to], None, &payload)?;
                Some(Lie::sent(&envelope, None))
            }
            Forged::Presence => {
                let long = "x".repeat(150);
                let one = |number: usize| {
                    format!(
                        r#"{{"name":"a{number}","client":"codex","state":"idle","tier":"push","since":1,"repo":"{long}","branch":"{long}","doing":"{long}"}}"#
                    )
                };
                let sessions: Vec<String> = (0..199).map(one).collect();
                let body = format!(
                    r#"{{"seq":{},"label":"{}","features":["tasks"],"sessions":[{}]}}"#,
                    self.world.wall + 1,
                    forger.label,
                    sessions.join(",")
                );
                let parts = forger.parts(id, Kind::Presence, forger.anchor()?, To::Team, None);
                let mut env = parts.to_value().as_object()?.clone();
                env.set("v", Value::text("messaging/1"));
                env.set("enc", Value::text("none"));
                env.set("body", text(&body)?);
                let signed = Value::Object(env.clone());
                let sig = forger.identity.signing().sign_value(Domain::Envelope, &signed).ok()?;
                env.set("sig", Value::text(sig.to_string()));
                let env = canonicalize(&Value::Object(env)).ok()?;
                Some(Lie { frame: format!(r#"{{"t":"presence","env":{env}}}"#), about: None })
            }
            Forged::Receipt | Forged::Reply => {
                let foreign = |sent: &&super::Sent| sent.from != liar && sent.to != liar;
                let all: Vec<&super::Sent> = self.sends.iter().filter(foreign).collect();
                let sent = *all.get(pick % all.len().max(1))?;
                let of = Ulid::parse(&sent.id)?;
                let victim = sent.from;
                let about = Some(self.about(victim, "sent", |row, key| {
                    key.starts_with(sent.id.as_bytes()) && row.is_object()
                })?);
                let to = self.machines[victim].clone();
                let envelope = if what == Forged::Receipt {
                    let stages = ["read", "handed_to_agent", "delivered", "held"];
                    let payload = text(&receipt(of, stages[pick % stages.len()], self.world.wall))?;
                    forger.seal(id, Kind::Receipt, forger.anchor()?, &to, None, &payload)?
                } else {
                    let message = format!(
                        r#"{{"kind":"message","message":{{"messageId":"{id}","contextId":"c","role":"ROLE_USER","parts":[{{"text":"yes"}}]}}}}"#
                    );
                    forger.seal(id, Kind::Message, forger.anchor()?, &to, Some(of), &text(&message)?)?
                };
                Some(Lie::sent(&envelope, about))
            }
            Forged::Status | Forged::Cancel => {
                let role = if what == Forged::Status { "requester" } else { "executor" };
                let mine = self.machines[liar].clone();
                let victim = (0..self.machines.len()).filter(|number| *number != liar).find_map(|number| {
                    let about = self.about(number, "task", |row, _| {
                        row["role"] == role && row["peer"]["device"] != mine.as_str()
                    });
                    about.map(|about| (number, about))
                });
                let (number, about) = victim?;
                let row: Json = serde_json::from_slice(self.row(&about)?.get(1..)?).ok()?;
                let (task, context) = (row["id"].as_str()?, row["context"].as_str()?);
                let to = self.machines[number].clone();
                let envelope = if what == Forged::Status {
                    let body = format!(
                        r#"{{"taskId":"{task}","contextId":"{context}","status":{{"state":"TASK_STATE_COMPLETED","timestamp":"2026-12-02T09:03:00Z"}}}}"#
                    );
                    let request = Ulid::parse(row["request"].as_str()?)?;
                    forger.seal(id, Kind::TaskStatus, forger.anchor()?, &to, Some(request), &text(&body)?)?
                } else {
                    let body = format!(r#"{{"taskId":"{task}","reason":"no"}}"#);
                    forger.seal(id, Kind::TaskCancel, forger.anchor()?, &to, None, &text(&body)?)?
                };
                Some(Lie::sent(&envelope, Some(about)))
            }
        }
    }

    /// The first row of a machine's table that fits.
    fn about(
        &self,
        victim: usize,
        table: &'static str,
        fits: impl Fn(&Json, &[u8]) -> bool,
    ) -> Option<About> {
        let rows = self.world.nodes[victim].base.iter().filter(|(of, ..)| of.0 == table);
        let mut found = rows.filter(|(_, key, row)| {
            let row = row.get(1..).and_then(|row| serde_json::from_slice(row).ok());
            row.is_some_and(|row: Json| fits(&row, key))
        });
        found.next().map(|(_, key, _)| About { victim, table, key: key.to_vec() })
    }
}

/// A frame with a forged envelope, and the row that it would change if it were believed.
struct Lie {
    frame: String,
    about: Option<About>,
}

impl Lie {
    fn sent(envelope: &Sealed, about: Option<About>) -> Self {
        Self { frame: format!(r#"{{"t":"send","env":{}}}"#, envelope.text), about }
    }
}

#[derive(Debug)]
struct About {
    victim: usize,
    table: &'static str,
    key: Vec<u8>,
}

fn receipt(of: Ulid, stage: &str, at: u64) -> String {
    format!(r#"{{"ref":"{of}","stage":"{stage}","at":{at}}}"#)
}

/// A member's keys and roster, in the hands of another program.
struct Forger {
    identity: Identity,
    roster: Roster,
    label: String,
    end: End,
    fresh: [u8; 32],
    now: Wall,
}

impl Forger {
    fn of(play: &Play, number: usize) -> Option<Self> {
        let node = &play.world.nodes[number];
        let identity = IdentityFile::new(Zeroizing::new(node.identity.clone()?)).read().ok()?;
        let rows = node.base.iter().filter(|(table, ..)| table.0 == "roster");
        let entries: Option<Vec<Value>> =
            rows.map(|(_, _, row)| parse_wire(row.get(1..)?, 1 << 20).ok()).collect();
        let roster = Roster::from_entries(&entries?).ok()?;
        let member = roster.member(&identity.machine())?;
        let (person, label) = (member.person.clone(), member.label.to_string());
        let end = End { person, device: identity.machine(), agent: SessionName::parse("agent") };
        let fresh = sha256(format!("forged {} {}", number, play.world.effects).as_bytes()).0;
        Some(Self { identity, roster, label, end, fresh, now: Wall(play.world.wall) })
    }

    fn anchor(&self) -> Option<Anchor> {
        self.roster.head().map(Anchor::Roster)
    }

    fn bytes<const N: usize>(&self, salt: usize) -> [u8; N] {
        let mut bytes = [0; N];
        let hash = sha256(&[self.fresh.as_slice(), &salt.to_be_bytes()].concat()).0;
        bytes.copy_from_slice(&hash[..N]);
        bytes
    }

    fn parts(&self, id: Ulid, kind: Kind, anchor: Anchor, to: To, reply_to: Option<Ulid>) -> HeaderParts {
        let mut from = self.end.clone();
        if kind == Kind::Receipt || kind == Kind::Presence {
            from.agent = None;
        }
        let realm: RealmId = self.roster.team().unwrap_or(Hash([0; 32]));
        HeaderParts {
            id,
            kind,
            realm,
            anchor,
            from,
            to,
            ts: self.now,
            exp: self.now.plus(3_600_000),
            reply_to,
        }
    }

    fn seal(
        &self,
        id: Ulid,
        kind: Kind,
        anchor: Anchor,
        to: &str,
        reply_to: Option<Ulid>,
        payload: &Value,
    ) -> Option<Sealed> {
        let member = self.roster.member(&MachineId::parse(to)?)?;
        let agent = SessionName::parse("agent").filter(|_| kind == Kind::Message);
        let end = End { person: member.person.clone(), device: member.machine, agent };
        let parts = self.parts(id, kind, anchor, To::Device(end), reply_to);
        let ephemeral = EncSecret::from_bytes(self.bytes(1));
        seal_envelope(self.identity.signing(), &parts, payload, &member.enc, &ephemeral, self.bytes(2)).ok()
    }
}
