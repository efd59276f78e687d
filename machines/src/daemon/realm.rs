//! The verified roster this machine holds, and the evidence against it.
//!
//! The roster in memory is a cache of the entries in the store, checked against the stored head when it is
//! loaded. Every change goes through here and is written in the same step.

use super::devices::History;
use super::evidence::{Evidence, ForkProof, Standing};
use super::schema::{self, EVIDENCE, META, META_HEAD, ROSTER};
use crate::store::{StoreDown, Txn};
use messaging_proto::json::Value;
use messaging_proto::key::MachineId;
use messaging_proto::roster::{ApplyOptions, Head, Roster, RosterError};
use std::collections::BTreeMap;

/// The verified roster and what stands against it. Only this module changes it.
#[derive(Debug, Default)]
pub struct Realm {
    roster: Roster,
    history: History,
    /// Heads that members signed and the relay has not provided, by signer: sends wait.
    ahead: BTreeMap<MachineId, Evidence>,
    /// Heads off this chain, by signer: the alarm.
    diverged: BTreeMap<MachineId, Evidence>,
    /// The first entry that forks this chain at each position.
    forks: BTreeMap<u64, ForkProof>,
}

/// How many positions' forks are kept: one is proof enough, and an admin's key could sign any number.
const FORKS: usize = 16;

/// What a stored roster turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loaded {
    /// There is none.
    None,
    /// It is loaded.
    Ready,
    /// It does not lead to the stored head.
    Broken,
}

impl Realm {
    /// The roster; nothing before there is a team.
    #[must_use]
    pub fn roster(&self) -> Option<&Roster> {
        self.roster.head().map(|_| &self.roster)
    }

    /// When machines came and went.
    #[must_use]
    pub(in crate::daemon) const fn history(&self) -> &History {
        &self.history
    }

    /// Whether sends wait: a current member has signed a head this roster has not reached
    /// (`§5`, "Roster head check").
    #[must_use]
    pub fn paused(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The divergence alarm: the first that was raised.
    #[must_use]
    pub fn divergence(&self) -> Option<&Evidence> {
        self.diverged.values().min_by_key(|evidence| (evidence.at, evidence.device))
    }

    /// The evidence of a head of this signer that the relay has not provided.
    #[must_use]
    pub fn shortfall_of(&self, signer: &MachineId) -> Option<&Evidence> {
        self.ahead.get(signer)
    }

    /// The first position at which this chain is known to fork.
    #[must_use]
    pub fn fork(&self) -> Option<u64> {
        self.forks.keys().next().copied()
    }

    /// Loads the stored roster and evidence. The signatures were checked when the entries came in.
    pub(in crate::daemon) fn load(&mut self, txn: &Txn<'_>) -> Result<Loaded, StoreDown> {
        let mut texts = Vec::new();
        schema::for_each(txn, ROSTER, |_, value| {
            texts.push(
                value.get(1..).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or("").to_owned(),
            );
        })?;
        let head: Option<Head> = schema::get(txn, META, META_HEAD)?;
        let Some(head) = head.filter(|_| !texts.is_empty()) else { return Ok(Loaded::None) };
        match Roster::replay_texts(&texts) {
            Ok(roster) if roster.head() == Some(head) => {
                self.history = History::of(&roster);
                self.roster = roster;
            }
            _ => return Ok(Loaded::Broken),
        }
        let (ahead, diverged, forks) = (&mut self.ahead, &mut self.diverged, &mut self.forks);
        schema::for_each(txn, EVIDENCE, |key, value| {
            if key.first() == Some(&FORKED) {
                forks.extend(schema::decode::<ForkProof>(value).map(|proof| (proof.seq, proof)));
            } else if let Some(evidence) = schema::decode::<Evidence>(value) {
                let kind = if key.first() == Some(&AHEAD) { &mut *ahead } else { &mut *diverged };
                kind.insert(evidence.device, evidence);
            }
        })?;
        Ok(Loaded::Ready)
    }

    /// Applies an entry and stores it.
    ///
    /// # Errors
    /// What the roster refuses it for; nothing has changed then.
    pub(in crate::daemon) fn append(
        &mut self,
        txn: &mut Txn<'_>,
        raw: &Value,
        options: ApplyOptions,
    ) -> Result<Head, RosterError> {
        let head = self.roster.apply(raw, options)?;
        if let Some(entry) = self.roster.entry(head.seq) {
            self.history.add(entry);
        }
        self.store(txn, head.seq);
        Ok(head)
    }

    /// Takes a roster that was verified elsewhere (a joiner's, a founder's), and stores it instead of this one.
    pub(in crate::daemon) fn adopt(&mut self, txn: &mut Txn<'_>, roster: Roster) {
        self.forget(txn);
        self.history = History::of(&roster);
        self.roster = roster;
        self.store(txn, 0);
    }

    /// Drops the roster and the evidence, here and in the store.
    pub(in crate::daemon) fn forget(&mut self, txn: &mut Txn<'_>) {
        for seq in 0..self.roster.head().map_or(0, |head| head.seq + 1) {
            txn.delete(ROSTER, &seq.to_be_bytes());
        }
        txn.delete(META, META_HEAD);
        for (kind, device) in self.evidence_keys() {
            txn.delete(EVIDENCE, &key(kind, &device));
        }
        for seq in self.forks.keys() {
            txn.delete(EVIDENCE, &fork_key(*seq));
        }
        *self = Self::default();
    }

    fn store(&self, txn: &mut Txn<'_>, from: u64) {
        for (seq, entry) in (from..).zip(self.roster.entries(i64::try_from(from).unwrap_or(i64::MAX) - 1)) {
            let mut value = vec![schema::ROW];
            value.extend_from_slice(entry.text().as_bytes());
            txn.put(ROSTER, &seq.to_be_bytes(), &value);
        }
        if let Some(head) = self.roster.head() {
            schema::put(txn, META, META_HEAD, &head);
        }
    }

    /// Keeps evidence; the newest head of a signer counts while it is ahead, the first one off the chain. Returns whether it
    /// is news.
    pub(in crate::daemon) fn keep(
        &mut self,
        txn: &mut Txn<'_>,
        standing: Standing,
        evidence: Evidence,
    ) -> bool {
        let (kind, kept) = match standing {
            Standing::Ahead => (AHEAD, &mut self.ahead),
            Standing::Diverged => (DIVERGED, &mut self.diverged),
        };
        let stale = match kept.get(&evidence.device) {
            None => true,
            Some(old) => standing == Standing::Ahead && old.seq < evidence.seq,
        };
        if stale {
            schema::put(txn, EVIDENCE, &key(kind, &evidence.device), &evidence);
            kept.insert(evidence.device, evidence);
        }
        stale
    }

    /// Keeps an entry that [`Roster::check_at`] proved to fork this chain.
    pub(in crate::daemon) fn keep_fork(&mut self, txn: &mut Txn<'_>, proof: ForkProof) {
        if self.forks.len() < FORKS && !self.forks.contains_key(&proof.seq) {
            schema::put(txn, EVIDENCE, &fork_key(proof.seq), &proof);
            self.forks.insert(proof.seq, proof);
        }
    }

    /// Judges all evidence against the roster as it is now: what it no longer proves is dropped, and a head
    /// that was ahead and turned out off the chain becomes a divergence. Returns whether anything changed.
    pub(in crate::daemon) fn review(&mut self, txn: &mut Txn<'_>) -> bool {
        let mut changed = false;
        let mut raised = Vec::new();
        for (kind, device) in self.evidence_keys() {
            let kept = if kind == AHEAD { &mut self.ahead } else { &mut self.diverged };
            let Some(evidence) = kept.get(&device) else { continue };
            let standing = evidence.standing(&self.roster);
            let same = matches!(
                (kind, standing),
                (AHEAD, Some(Standing::Ahead)) | (DIVERGED, Some(Standing::Diverged))
            );
            if same {
                continue;
            }
            txn.delete(EVIDENCE, &key(kind, &device));
            changed = true;
            if let Some(evidence) = kept.remove(&device)
                && let Some(standing) = standing
            {
                raised.push((standing, evidence));
            }
        }
        for (standing, evidence) in raised {
            let evidence = evidence.against(&self.roster);
            self.keep(txn, standing, evidence);
        }
        changed
    }

    fn evidence_keys(&self) -> Vec<(u8, MachineId)> {
        let ahead = self.ahead.keys().map(|device| (AHEAD, *device));
        ahead.chain(self.diverged.keys().map(|device| (DIVERGED, *device))).collect()
    }
}

const AHEAD: u8 = b'a';
const DIVERGED: u8 = b'd';
const FORKED: u8 = b'f';

fn fork_key(seq: u64) -> Vec<u8> {
    let mut key = vec![FORKED];
    key.extend_from_slice(&seq.to_be_bytes());
    key
}

fn key(kind: u8, device: &MachineId) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(device.to_string().as_bytes());
    key
}
