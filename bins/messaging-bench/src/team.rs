//! A team of synthetic machines and their envelopes, sealed and signed ahead of the clock.

use crate::Fault;
use crate::link::{Link, now};
use messaging_proto::envelope::{Anchor, End, HeaderParts, Kind, To, seal_envelope};
use messaging_proto::hash::RealmId;
use messaging_proto::json::{Value, canonicalize, parse_wire};
use messaging_proto::key::{EncKey, EncSecret, SigningKey};
use messaging_proto::limits::TTL_MS;
use messaging_proto::name::{Label, PersonId, SessionName, TeamName};
use messaging_proto::roster::{ApplyOptions, Author, Member, Role, Roster, genesis};
use messaging_proto::ulid::Ulid;

/// One machine.
pub struct Machine {
    /// Its signing key.
    pub key: SigningKey,
    /// What is sealed for it is sealed to this.
    pub enc: EncKey,
    /// Whose it is.
    pub person: PersonId,
    label: Label,
}

/// A team founded at a relay.
pub struct Team {
    /// Its id.
    pub id: RealmId,
    /// Its machines, the admin first.
    pub machines: Vec<Machine>,
    /// How long its envelopes may wait, in milliseconds.
    pub ttl_ms: u64,
    roster: Roster,
}

/// An envelope as a `send` frame.
pub struct Prepared {
    /// The envelope's id.
    pub id: String,
    /// The frame.
    pub frame: String,
}

fn machine(index: usize) -> Result<Machine, Fault> {
    let mut seed = [7; 32];
    seed[..8].copy_from_slice(&(index as u64 + 1).to_be_bytes());
    Ok(Machine {
        key: SigningKey::from_seed(seed),
        enc: EncSecret::from_bytes(seed).public(),
        person: PersonId::parse(&format!("p{}", index / 50)).ok_or("person")?,
        label: Label::parse(&format!("m{index}")).ok_or("label")?,
    })
}

impl Machine {
    /// How a roster names it.
    #[must_use]
    pub fn member(&self, role: Role) -> Member {
        Member {
            machine: self.key.machine(),
            enc: self.enc,
            person: self.person.clone(),
            role,
            label: self.label.clone(),
        }
    }
}

impl Team {
    /// Founds a team of `size` machines; the first is the admin.
    ///
    /// # Errors
    /// When the relay refuses it.
    pub fn found(port: u16, size: usize) -> Result<Self, Fault> {
        let machines = (0..size).map(machine).collect::<Result<Vec<_>, _>>()?;
        let first = &machines[0];
        let name = TeamName::parse("bench").ok_or("team name")?;
        let entry = genesis(&first.key, now()?, &name, &first.member(Role::Admin))?;
        Link::open(port)?.append(&canonicalize(&entry)?)?;
        let mut roster = Roster::from_entries(&[entry])?;
        let id = roster.team().ok_or("no team")?;
        let mut admin = Link::live(port, &first.key, &id)?;
        for machine in &machines[1..] {
            let pen = Author::new(&first.key, &roster, now()?).ok_or("no head")?;
            let entry = pen.member_add(&machine.member(Role::Member))?;
            admin.append(&canonicalize(&entry)?)?;
            roster.apply(&entry, ApplyOptions::default())?;
        }
        Ok(Self { id, machines, ttl_ms: TTL_MS, roster })
    }

    /// One envelope of its own `index`, with `pad` characters of text.
    ///
    /// # Errors
    /// When it cannot be sealed.
    pub fn one(&self, from: usize, to: usize, index: u64, pad: usize) -> Result<Prepared, Fault> {
        let (id, text) = self.envelope(from, to, index, pad)?;
        Ok(Prepared { id, frame: format!("{{\"env\":{text},\"t\":\"send\"}}") })
    }

    /// `count` envelopes from one machine to the others in turn, each of about `bytes` of canonical text.
    ///
    /// # Errors
    /// When they cannot be sealed.
    pub fn prepare(
        &self,
        from: usize,
        to: &[usize],
        count: usize,
        bytes: usize,
    ) -> Result<Vec<Prepared>, Fault> {
        let mut pad = 0;
        // Sealed text is base64: four characters for three bytes.
        let bare = self.envelope(from, to[0], 0, pad)?.1.len();
        if bytes > bare {
            pad = (bytes - bare) * 3 / 4;
        }
        (0..count).map(|index| self.one(from, to[index % to.len()], index as u64, pad)).collect()
    }

    fn envelope(&self, from: usize, to: usize, index: u64, pad: usize) -> Result<(String, String), Fault> {
        let (sender, recipient) = (&self.machines[from], &self.machines[to]);
        let ts = now()?;
        let mut random = [0; 10];
        random[..8].copy_from_slice(&index.to_be_bytes());
        random[8..].copy_from_slice(&u16::try_from(from)?.to_be_bytes());
        let id = Ulid::new(ts, random);
        let head = self.roster.head().ok_or("no head")?;
        let agent = SessionName::parse("agent");
        let parts = HeaderParts {
            id,
            kind: Kind::Message,
            realm: self.id,
            anchor: Anchor::Roster(head),
            from: End { person: sender.person.clone(), device: sender.key.machine(), agent: agent.clone() },
            to: To::Device(End { person: recipient.person.clone(), device: recipient.key.machine(), agent }),
            ts,
            exp: ts.plus(self.ttl_ms),
            reply_to: None,
        };
        let payload: Value = parse_wire(
            format!(
                "{{\"kind\":\"message\",\"message\":{{\"messageId\":\"{id}\",\"parts\":[{{\"text\":\"{}\"}}],\"role\":\"ROLE_USER\"}}}}",
                "x".repeat(pad.max(1))
            )
            .as_bytes(),
            1 << 20,
        )?;
        let mut secret = [3; 32];
        secret[..8].copy_from_slice(&(index + 1).to_be_bytes());
        secret[8..16].copy_from_slice(&(from as u64).to_be_bytes());
        let ephemeral = EncSecret::from_bytes(secret);
        let sealed = seal_envelope(&sender.key, &parts, &payload, &recipient.enc, &ephemeral, [5; 12])?;
        Ok((id.to_string(), sealed.text))
    }
}
