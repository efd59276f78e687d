//! How many teams one address may found (`messaging/1 §7`, "Limits").

use messaging_proto::time::Mono;
use std::collections::BTreeMap;

const HOUR_MS: u64 = 3_600_000;

/// When teams were founded in the last hour, by client address. Bounded by the teams a relay holds.
#[derive(Default)]
pub(in crate::relay) struct Creates(BTreeMap<String, Vec<Mono>>);

impl Creates {
    /// Milliseconds until this address may found one more; 0 when it may now.
    pub(in crate::relay) fn wait_ms(&self, address: &str, now: Mono, per_hour: u64) -> u64 {
        let Some(times) = self.0.get(address) else { return 0 };
        let recent = || times.iter().filter(|at| now.since(**at) < HOUR_MS);
        let count = recent().count() as u64;
        if count < per_hour {
            return 0;
        }
        // The one whose end makes room.
        let nth = usize::try_from(count - per_hour).unwrap_or(usize::MAX);
        recent().nth(nth).map_or(1, |at| at.plus(HOUR_MS).since(now).max(1))
    }

    /// Notes a team founded from this address.
    pub(in crate::relay) fn note(&mut self, address: &str, now: Mono) {
        self.0.retain(|_, times| {
            times.retain(|at| now.since(*at) < HOUR_MS);
            !times.is_empty()
        });
        self.0.entry(address.to_owned()).or_default().push(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_holds_the_limit_per_address() {
        let mut creates = Creates::default();
        creates.note("a", Mono(0));
        creates.note("a", Mono(1_000));
        assert_eq!(creates.wait_ms("a", Mono(1_000), 3), 0);
        assert_eq!(creates.wait_ms("a", Mono(1_000), 2), HOUR_MS - 1_000);
        assert_eq!(creates.wait_ms("b", Mono(1_000), 2), 0);
        assert_eq!(creates.wait_ms("a", Mono(HOUR_MS), 2), 0);
        creates.note("b", Mono(2 * HOUR_MS));
        assert_eq!(creates.0.len(), 1, "old ones are forgotten");
    }
}
