//! The two clocks. `async_io::Timer` does not count system sleep, so the driver reads these on every wake.

use messaging_proto::time::{Mono, Wall};
use rustix::time::{ClockId, clock_gettime};
use std::time::{SystemTime, UNIX_EPOCH};

/// A monotonic clock that also runs while the system sleeps.
#[cfg(any(target_os = "linux", target_os = "android"))]
const AWAKE_OR_NOT: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const AWAKE_OR_NOT: ClockId = ClockId::Monotonic;

/// Milliseconds of the monotonic clock.
#[must_use]
pub fn mono() -> Mono {
    Mono(mono_micros() / 1_000)
}

/// Microseconds of the monotonic clock: for measurements.
#[must_use]
pub fn mono_micros() -> u64 {
    let now = clock_gettime(AWAKE_OR_NOT);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds.saturating_mul(1_000_000).saturating_add(nanos / 1_000)
}

/// Milliseconds since 1970; 0 for a clock before that.
#[must_use]
pub fn wall() -> Wall {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Wall(u64::try_from(since.as_millis()).unwrap_or(u64::MAX).min((1 << 53) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_run_forward() {
        let (first, start) = (mono_micros(), wall());
        assert!(start.0 > 1_600_000_000_000);
        std::thread::sleep(std::time::Duration::from_millis(5));
        assert!(mono_micros() >= first + 5_000);
        assert!(mono().0 >= first / 1_000 + 5);
    }
}
