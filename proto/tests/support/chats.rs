//! Chats in memory: what a daemon does with an effect, without a store.

use messaging_proto::address::RoomRef;
use messaging_proto::channel::{Arrival, Channel, ChannelError, Chats, Effect, Line, People, apply};
use messaging_proto::key::MachineId;
use messaging_proto::name::{ChannelName, PersonId};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    pub own: PersonId,
    pub channels: BTreeMap<Ulid, Channel>,
    pub ended: BTreeMap<Ulid, Wall>,
    pub lines: Vec<Line>,
}

impl Memory {
    pub fn new(own: PersonId) -> Self {
        Self { own, channels: BTreeMap::new(), ended: BTreeMap::new(), lines: Vec::new() }
    }

    pub fn try_apply(
        &self,
        people: &impl People,
        now: Wall,
        arrival: &Arrival<'_>,
    ) -> Result<Effect, ChannelError> {
        let Ok(result) = apply(&self.own, self, people, now, arrival);
        result
    }

    pub fn write(&mut self, effect: Effect) {
        match effect {
            Effect::Duplicate | Effect::Unchanged => {}
            Effect::Filed(line) => self.lines.push(line),
            Effect::Applied { channel, notice } => {
                self.channels.insert(channel.id, channel);
                self.lines.push(notice);
            }
            Effect::Ended { channel, at } => {
                let room = RoomRef::Channel(channel.local);
                self.lines.retain(|line| line.room != room);
                self.channels.remove(&channel.id);
                self.ended.insert(channel.id, at);
            }
        }
    }

    pub fn lose(&mut self, lost: &BTreeSet<PersonId>) {
        for channel in self.channels.values_mut() {
            if let Some(changed) = channel.without(|person| lost.contains(person)) {
                *channel = changed;
            }
        }
    }

    pub fn to_json(&self) -> Value {
        let channels: Vec<&Channel> = self.channels.values().collect();
        let ended: Vec<Value> = self.ended.iter().map(|(id, at)| json!({"id": id, "at": at.0})).collect();
        let line = |line: &Line| {
            let mut line = serde_json::to_value(line).unwrap();
            line.as_object_mut().unwrap().remove("device").unwrap();
            line
        };
        json!({"channels": channels, "ended": ended, "lines": self.lines.iter().map(line).collect::<Vec<_>>()})
    }
}

impl Chats for Memory {
    type Down = Infallible;

    fn channel(&self, id: &Ulid) -> Result<Option<Channel>, Infallible> {
        Ok(self.channels.get(id).cloned())
    }

    fn is_taken(&self, local: &ChannelName) -> Result<bool, Infallible> {
        Ok(self.channels.values().any(|channel| channel.local == *local))
    }

    fn held(&self) -> Result<usize, Infallible> {
        Ok(self.channels.len())
    }

    fn ended(&self, id: &Ulid) -> Result<Option<Wall>, Infallible> {
        Ok(self.ended.get(id).copied())
    }

    fn has_line(&self, message: &Ulid) -> Result<bool, Infallible> {
        Ok(self.lines.iter().any(|line| line.id == *message))
    }
}

/// Persons with machines, some of them admins.
#[derive(Clone, Debug, Default)]
pub struct Crowd {
    pub admit: BTreeSet<PersonId>,
    pub admins: BTreeSet<MachineId>,
    pub machines: BTreeMap<PersonId, Vec<MachineId>>,
}

impl People for Crowd {
    fn admits(&self, person: &PersonId) -> bool {
        self.admit.contains(person)
    }

    fn is_admin(&self, device: &MachineId) -> bool {
        self.admins.contains(device)
    }

    fn machines(&self, person: &PersonId) -> Vec<MachineId> {
        self.machines.get(person).cloned().unwrap_or_default()
    }
}
