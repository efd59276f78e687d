//! How much one machine may make this one do (`messaging/1 §8.3`, rate limit). Volatile: a restart starts full.

use messaging_proto::envelope::{Envelope, Kind};
use messaging_proto::key::MachineId;
use messaging_proto::limits::INBOUND_PER_MACHINE_PER_MINUTE;
use messaging_proto::time::Mono;
use std::collections::BTreeMap;

const MINUTE_MS: u64 = 60_000;

/// The spare time a deferred envelope needs before it ends, in milliseconds.
pub(crate) const SPARE_MS: u64 = 60_000;

/// What an envelope counts as. Each class has its own bucket per sending machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// Mail and tasks to an agent, cancels, sync between own devices, unknown types.
    Message,
    /// A chat line or a channel change.
    Chat,
    /// What answers this machine's own traffic.
    Answer,
    /// Presence.
    Presence,
    /// Not an envelope: the `rate_limited` answers to agent mail.
    MessageAnswer,
    /// Not an envelope: the `rate_limited` answers to chat.
    ChatAnswer,
}

impl Class {
    /// The class of an envelope by its header. A sync between own devices looks like a chat line until it is
    /// opened.
    pub(crate) fn of(envelope: &Envelope) -> Self {
        match envelope.header.kind {
            Kind::Receipt | Kind::TaskStatus | Kind::TaskArtifact => Self::Answer,
            Kind::Presence => Self::Presence,
            Kind::Message if envelope.header.to.end().is_some_and(|end| end.agent.is_none()) => Self::Chat,
            Kind::Message | Kind::TaskCancel => Self::Message,
        }
    }

    const fn per_minute(self) -> u64 {
        let base = INBOUND_PER_MACHINE_PER_MINUTE as u64;
        match self {
            Self::Message | Self::Chat => base,
            Self::Answer | Self::Presence | Self::ChatAnswer => 4 * base,
            Self::MessageAnswer => 1,
        }
    }
}

/// A token bucket that starts full. Its level is in tokens × 60,000, so that refilling is a whole number a
/// millisecond.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    level: u64,
    at: Mono,
}

/// The buckets of every sending machine.
#[derive(Debug, Default)]
pub(crate) struct Budgets(BTreeMap<(MachineId, Class), Bucket>);

impl Budgets {
    /// Takes one token.
    ///
    /// # Errors
    /// How many milliseconds until there is one.
    pub(crate) fn take(&mut self, from: MachineId, class: Class, now: Mono) -> Result<(), u64> {
        let rate = class.per_minute();
        let full = rate * MINUTE_MS;
        let bucket = self.0.entry((from, class)).or_insert(Bucket { level: full, at: now });
        bucket.level = bucket.level.saturating_add(now.since(bucket.at).saturating_mul(rate)).min(full);
        bucket.at = now;
        if bucket.level >= MINUTE_MS {
            bucket.level -= MINUTE_MS;
            Ok(())
        } else {
            Err((MINUTE_MS - bucket.level).div_ceil(rate))
        }
    }

    /// Forgets machines that are no longer members.
    pub(crate) fn retain(&mut self, member: impl Fn(&MachineId) -> bool) {
        self.0.retain(|(machine, _), _| member(machine));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_refills_exactly() {
        let machine = MachineId::parse("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let mut budgets = Budgets::default();
        for _ in 0..60 {
            assert_eq!(budgets.take(machine, Class::Message, Mono(5)), Ok(()));
        }
        assert_eq!(budgets.take(machine, Class::Message, Mono(5)), Err(1_000));
        assert_eq!(budgets.take(machine, Class::Message, Mono(1_004)), Err(1));
        assert_eq!(budgets.take(machine, Class::Message, Mono(1_005)), Ok(()));
        assert_eq!(budgets.take(machine, Class::Message, Mono(1_005)), Err(1_000));
        // Another class, and time that stands still, change nothing.
        assert_eq!(budgets.take(machine, Class::Answer, Mono(1_005)), Ok(()));
        // A long pause fills it to the brim, not over.
        for _ in 0..60 {
            assert_eq!(budgets.take(machine, Class::Message, Mono(9_000_000)), Ok(()));
        }
        assert!(budgets.take(machine, Class::Message, Mono(9_000_000)).is_err());
    }

    #[test]
    fn one_answer_a_minute() {
        let machine = MachineId::parse("11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").unwrap();
        let mut budgets = Budgets::default();
        assert_eq!(budgets.take(machine, Class::MessageAnswer, Mono(0)), Ok(()));
        assert_eq!(budgets.take(machine, Class::MessageAnswer, Mono(59_999)), Err(1));
        assert_eq!(budgets.take(machine, Class::MessageAnswer, Mono(60_000)), Ok(()));
    }
}
