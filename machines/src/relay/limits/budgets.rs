//! What each machine may send after `hello` (`messaging/1 §7`, "Rate limits").

use super::{Bucket, Limits, Rate};
use messaging_proto::key::MachineId;
use messaging_proto::time::Mono;
use std::collections::BTreeMap;

/// Budgets kept before full ones are forgotten.
const KEPT: usize = 1_024;

/// What a frame costs.
#[derive(Clone, Copy, Debug)]
pub(in crate::relay) struct Charge {
    /// Its size.
    pub(in crate::relay) bytes: usize,
    /// Whether it is a presence, which has a bucket of its own besides.
    pub(in crate::relay) presence: bool,
}

/// The buckets of each machine. They outlive its connections, so reconnecting buys nothing.
pub(in crate::relay) struct Budgets {
    frames: Rate,
    bytes: Rate,
    presence: Rate,
    machines: BTreeMap<MachineId, Buckets>,
    tidy_at: usize,
}

struct Buckets {
    frames: Bucket,
    bytes: Bucket,
    presence: Bucket,
}

impl Budgets {
    pub(in crate::relay) fn new(limits: &Limits) -> Self {
        Self {
            frames: Rate::per_minute(limits.frames_per_minute),
            bytes: Rate::per_minute(limits.bytes_per_minute),
            presence: Rate {
                tokens: 1,
                period_ms: limits.presence_interval_ms,
                burst: limits.presence_burst,
            },
            machines: BTreeMap::new(),
            tidy_at: KEPT,
        }
    }

    /// Charges a frame of `machine`; one that does not fit takes nothing.
    ///
    /// # Errors
    /// After how many milliseconds it would fit.
    pub(in crate::relay) fn charge(
        &mut self,
        machine: &MachineId,
        now: Mono,
        charge: Charge,
    ) -> Result<(), u64> {
        if self.machines.len() >= self.tidy_at && !self.machines.contains_key(machine) {
            self.tidy(now);
        }
        let Self { frames, bytes, presence, machines, .. } = self;
        let buckets = machines.entry(*machine).or_insert_with(|| Buckets {
            frames: Bucket::new(frames, now),
            bytes: Bucket::new(bytes, now),
            presence: Bucket::new(presence, now),
        });
        let size = charge.bytes as u64;
        let wait = [
            buckets.frames.wait_ms(frames, now, 1),
            buckets.bytes.wait_ms(bytes, now, size),
            if charge.presence { buckets.presence.wait_ms(presence, now, 1) } else { 0 },
        ];
        match wait.into_iter().max() {
            None | Some(0) => {}
            Some(wait) => return Err(wait),
        }
        buckets.frames.take(frames, now, 1);
        buckets.bytes.take(bytes, now, size);
        if charge.presence {
            buckets.presence.take(presence, now, 1);
        }
        Ok(())
    }

    /// Forgets full budgets: a new one is the same.
    fn tidy(&mut self, now: Mono) {
        let Self { frames, bytes, presence, machines, .. } = self;
        machines.retain(|_, buckets| {
            !(buckets.frames.is_full(frames, now)
                && buckets.bytes.is_full(bytes, now)
                && buckets.presence.is_full(presence, now))
        });
        self.tidy_at = (self.machines.len() * 2).max(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(number: u16) -> MachineId {
        let mut id = [0; 32];
        id[..2].copy_from_slice(&number.to_be_bytes());
        MachineId(id)
    }

    fn limits() -> Limits {
        Limits { frames_per_minute: 2, bytes_per_minute: 100, ..Limits::default() }
    }

    const FRAME: Charge = Charge { bytes: 10, presence: false };

    #[test]
    fn a_frame_that_does_not_fit_takes_nothing() {
        let mut budgets = Budgets::new(&limits());
        let big = Charge { bytes: 95, presence: false };
        assert_eq!(budgets.charge(&machine(1), Mono(0), FRAME), Ok(()));
        assert_eq!(budgets.charge(&machine(1), Mono(0), big), Err(3_000), "5 bytes at 100 a minute");
        assert_eq!(budgets.charge(&machine(1), Mono(0), FRAME), Ok(()), "the frame bucket was left alone");
        assert_eq!(budgets.charge(&machine(1), Mono(0), FRAME), Err(30_000));
        assert_eq!(budgets.charge(&machine(2), Mono(0), FRAME), Ok(()), "each machine for itself");
    }

    #[test]
    fn presence_has_its_own_bucket_besides() {
        let mut budgets = Budgets::new(&Limits::default());
        let presence = Charge { bytes: 10, presence: true };
        for _ in 0..5 {
            assert_eq!(budgets.charge(&machine(1), Mono(0), presence), Ok(()));
        }
        assert_eq!(budgets.charge(&machine(1), Mono(0), presence), Err(2_000));
        assert_eq!(budgets.charge(&machine(1), Mono(0), FRAME), Ok(()));
    }

    #[test]
    fn full_budgets_are_forgotten() {
        let mut budgets = Budgets::new(&limits());
        for number in 0..3_000 {
            assert_eq!(budgets.charge(&machine(number), Mono(u64::from(number) * 60_000), FRAME), Ok(()));
        }
        assert!(budgets.machines.len() <= KEPT);
    }
}
