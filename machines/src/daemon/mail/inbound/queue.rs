//! The order of what was deferred. Volatile: the relay sends it again.
//!
//! A sender's envelopes of one class are taken in the order they first came, also when the budget ran out in the
//! middle: a task's artifact before the status that ends it.

use crate::daemon::mail::budget::Class;
use messaging_proto::key::MachineId;
use messaging_proto::time::Mono;
use messaging_proto::ulid::Ulid;
use std::collections::{BTreeMap, VecDeque};

/// How long an envelope that does not come again keeps the others waiting, in milliseconds: three times the
/// relay's longest redelivery delay.
const PATIENCE_MS: u64 = 180_000;
/// More than a relay has in flight from one sender.
const MOST: usize = 256;

/// The deferred envelopes of every sender, oldest first, with when each last came.
#[derive(Debug, Default)]
pub(crate) struct Deferred(BTreeMap<(MachineId, Class), VecDeque<(Ulid, Mono)>>);

impl Deferred {
    /// Whether nothing that came before this envelope still waits.
    pub(crate) fn is_turn(&mut self, from: MachineId, class: Class, id: Ulid, now: Mono) -> bool {
        let Some(waiting) = self.0.get_mut(&(from, class)) else { return true };
        while waiting.front().is_some_and(|(first, at)| *first != id && now.since(*at) >= PATIENCE_MS) {
            waiting.pop_front();
        }
        waiting.front().is_none_or(|(first, _)| *first == id)
    }

    /// It came and was deferred.
    pub(crate) fn add(&mut self, from: MachineId, class: Class, id: Ulid, now: Mono) {
        let waiting = self.0.entry((from, class)).or_default();
        match waiting.iter_mut().find(|(other, _)| *other == id) {
            Some((_, at)) => *at = now,
            None => {
                if waiting.len() < MOST {
                    waiting.push_back((id, now));
                }
            }
        }
    }

    /// It was taken, or dropped for good.
    pub(crate) fn taken(&mut self, from: MachineId, class: Class, id: Ulid) {
        if let Some(waiting) = self.0.get_mut(&(from, class)) {
            waiting.retain(|(other, _)| *other != id);
            if waiting.is_empty() {
                self.0.remove(&(from, class));
            }
        }
    }

    /// The link is gone: the relay starts from its queue.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_deferred_goes_first() {
        let from = MachineId::parse("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let id = |letter: char| Ulid::parse(&format!("01ARZ3NDEKTSV4RRFFQ69G5FA{letter}")).unwrap();
        let mut deferred = Deferred::default();
        assert!(deferred.is_turn(from, Class::Answer, id('A'), Mono(0)));
        deferred.add(from, Class::Answer, id('A'), Mono(0));
        assert!(!deferred.is_turn(from, Class::Answer, id('B'), Mono(1)));
        deferred.add(from, Class::Answer, id('B'), Mono(1));
        assert!(
            deferred.is_turn(from, Class::Message, id('B'), Mono(1)),
            "classes do not wait for each other"
        );
        assert!(deferred.is_turn(from, Class::Answer, id('A'), Mono(2)));
        deferred.taken(from, Class::Answer, id('A'));
        assert!(deferred.is_turn(from, Class::Answer, id('B'), Mono(3)));
        // One that never comes again is not waited for.
        assert!(deferred.is_turn(from, Class::Answer, id('C'), Mono(PATIENCE_MS + 1)));
    }
}
