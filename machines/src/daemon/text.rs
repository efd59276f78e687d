//! Values as the store keeps them, and short forms of what people and peers wrote.

use messaging_proto::a2a::Part;
use messaging_proto::json::{FromValue, Value, canonicalize, parse_wire};
use messaging_proto::text::preview;
use messaging_proto::time::Wall;

/// A value's canonical text. What has none (it came neither from the wire nor from us) is `null`.
pub(crate) fn canonical(value: &Value) -> String {
    canonicalize(value).unwrap_or_else(|_| "null".to_owned())
}

/// The value of a text this daemon wrote.
pub(crate) fn parsed(text: &str) -> Value {
    parse_wire(text.as_bytes(), text.len()).unwrap_or(Value::Null)
}

/// `preview` of an array of parts this daemon stored.
pub(crate) fn preview_of(parts: &Value) -> String {
    Vec::<Part>::from_value(parts).map(|parts| preview(&parts)).unwrap_or_default()
}

/// `YYYY-MM-DD` of a time, in UTC.
pub(crate) fn date(at: Wall) -> String {
    // Days counted from 0000-03-01, so that a leap day is the last of its year.
    let days = at.0 / 86_400_000 + 719_468;
    let era = days / 146_097;
    let day_of_era = days % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `YYYY-MM-DD hh:mm:ss` of a time, in UTC.
pub(crate) fn moment(at: Wall) -> String {
    let seconds = at.0 / 1_000 % 86_400;
    format!("{} {:02}:{:02}:{:02}", date(at), seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_civil() {
        for (ms, text) in [
            (0, "1970-01-01"),
            (86_399_999, "1970-01-01"),
            (951_782_400_000, "2000-02-29"),
            (1_709_164_800_000, "2024-02-29"),
            (1_767_225_599_999, "2025-12-31"),
            (1_767_225_600_000, "2026-01-01"),
        ] {
            assert_eq!(date(Wall(ms)), text);
        }
    }
    #[test]
    fn moments_are_of_their_day() {
        assert_eq!(moment(Wall(86_399_999)), "1970-01-01 23:59:59");
        assert_eq!(moment(Wall(1_700_000_000_000)), "2023-11-14 22:13:20");
    }
}
