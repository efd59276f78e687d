//! The two clocks, kept apart by type. There is no arithmetic between them.

use serde::{Deserialize, Serialize};

/// Milliseconds of a monotonic clock that also counts system sleep. Never goes back.
///
/// For timers, backoff, token buckets and redelivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mono(pub u64);

/// Milliseconds since 1970-01-01T00:00:00Z, at most 2^53 − 1. May jump either way.
///
/// For `ts`, `exp`, clock skew and retention.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Wall(pub u64);

impl Mono {
    /// This instant plus `ms`, saturating.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this instant, 0 when it is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Wall {
    /// This instant plus `ms`, saturating.
    #[must_use]
    pub const fn plus(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This instant minus `ms`, saturating at the epoch.
    #[must_use]
    pub const fn minus(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }

    /// The absolute difference in milliseconds.
    #[must_use]
    pub const fn distance(self, other: Self) -> u64 {
        self.0.abs_diff(other.0)
    }

    /// The date in UTC, `YYYY-MM-DD`.
    #[must_use]
    pub fn date(self) -> String {
        let (year, month, day) = self.civil();
        format!("{year:04}-{month:02}-{day:02}")
    }

    /// ISO 8601 in UTC, cut to the second: `2026-11-18T11:08:01Z`.
    #[must_use]
    pub fn iso_seconds(self) -> String {
        format!("{}T{}Z", self.date(), self.of_day())
    }

    /// ISO 8601 in UTC, to the millisecond: `2026-11-18T11:08:01.999Z`.
    #[must_use]
    pub fn iso_millis(self) -> String {
        format!("{}T{}.{:03}Z", self.date(), self.of_day(), self.0 % 1000)
    }

    /// For a person, in UTC, cut to the second: `2026-11-18 11:08:01`.
    #[must_use]
    pub fn moment(self) -> String {
        format!("{} {}", self.date(), self.of_day())
    }

    fn of_day(self) -> String {
        let seconds = self.0 / 1000 % 86_400;
        format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }

    /// Year, month and day in the proleptic Gregorian calendar.
    const fn civil(self) -> (u64, u64, u64) {
        // Days counted from 0000-03-01, in eras of 400 years, so that a leap day is the last of its year.
        let days = self.0 / 86_400_000 + 719_468;
        let era = days / 146_097;
        let of_era = days % 146_097;
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let from_march = (5 * of_year + 2) / 153;
        let day = of_year - (153 * from_march + 2) / 5 + 1;
        let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
        let year = era * 400 + year_of_era + if month <= 2 { 1 } else { 0 };
        (year, month, day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_as_dates() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (86_399_999, "1970-01-01T23:59:59.999Z"),
            (951_782_400_007, "2000-02-29T00:00:00.007Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
            (1_767_225_600_000, "2026-01-01T00:00:00.000Z"),
            (1_795_000_081_999, "2026-11-18T11:08:01.999Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (9_007_199_254_740_991, "287396-10-12T08:59:00.991Z"),
        ] {
            let at = Wall(ms);
            assert_eq!(at.iso_millis(), text);
            assert_eq!(at.iso_seconds(), format!("{}Z", &text[..text.len() - 5]));
            assert_eq!(at.moment(), text[..text.len() - 5].replace('T', " "));
            assert_eq!(at.date(), text.split('T').next().unwrap());
        }
    }

    /// Every day of four centuries follows the one before it.
    #[test]
    fn each_day_is_the_next_of_its_calendar() {
        let leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..146_097 {
            assert_eq!(Wall(days * 86_400_000).civil(), (year, month, day));
            let length = match month {
                2 => 28 + u64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
    }
}
