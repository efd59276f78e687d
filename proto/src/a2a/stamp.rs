//! RFC 3339 date-times, checked and not converted: a status keeps the text it came with.

/// Whether `text` is an RFC 3339 date-time: a date that exists, a time, and `Z` or an offset.
///
/// A leap second is a time; letters may be of either case, as the grammar has it.
#[must_use]
pub fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let Some((date, time)) = bytes.split_at_checked(11) else { return false };
    let Some((time, rest)) = time.split_at_checked(8) else { return false };
    is_date(date) && is_time(time, b"23:59:60") && is_zone(after_fraction(rest))
}

/// `YYYY-MM-DDT`.
fn is_date(date: &[u8]) -> bool {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2, b'T' | b't'] = date else { return false };
    let year = number(&[y1, y2, y3, y4]);
    match (year, number(&[m1, m2]), number(&[d1, d2])) {
        (Some(year), Some(month), Some(day)) => (1..=days(year, month)).contains(&day),
        _ => false,
    }
}

/// Digits and colons in the places of `most`, and no part above its.
fn is_time(time: &[u8], most: &[u8]) -> bool {
    let mut parts = time.split(|byte| *byte == b':');
    let mut mosts = most.split(|byte| *byte == b':');
    loop {
        match (parts.next(), mosts.next()) {
            (None, None) => return true,
            (Some(part), Some(most)) if part.len() == 2 && number(part).is_some() && part <= most => {}
            _ => return false,
        }
    }
}

/// What follows an optional fraction; nothing valid when the fraction has no digits.
fn after_fraction(rest: &[u8]) -> &[u8] {
    let Some(digits) = rest.strip_prefix(b".") else { return rest };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if count == 0 { &[] } else { digits.get(count..).unwrap_or_default() }
}

fn is_zone(zone: &[u8]) -> bool {
    match zone {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', offset @ ..] => is_time(offset, b"23:59"),
        _ => false,
    }
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u32::from(byte - b'0')))
}

/// Days of a month, 0 for a month that does not exist.
const fn days(year: u32, month: u32) -> u32 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => 29,
        2 => 28,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::is_timestamp;

    #[test]
    fn accepts_what_the_grammar_has() {
        for text in [
            "2026-12-02T09:03:00Z",
            "2026-12-02t09:03:00z",
            "2024-02-29T23:59:60.123456789+23:59",
            "2000-02-29T00:00:00-00:00",
            "0000-01-01T00:00:00.0Z",
        ] {
            assert!(is_timestamp(text), "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            "2026-12-02",
            "2026-12-02T09:03:00",
            "2026-12-02 09:03:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "2026-04-31T00:00:00Z",
            "2026-04-00T00:00:00Z",
            "2026-12-02T24:00:00Z",
            "2026-12-02T23:60:00Z",
            "2026-12-02T23:59:61Z",
            "2026-12-02T09:03Z",
            "2026-12-02T09:03:00.Z",
            "2026-12-02T09:03:00.",
            "2026-12-02T09:03:00+0100",
            "2026-12-02T09:03:00+1:00",
            "2026-12-02T09:03:00+24:00",
            "2026-12-02T09:03:00+01:60",
            "2026-12-02T09:03:00+01:00:00",
            "2026-12-02T09:03:00ZZ",
            "2026-1a-02T09:03:00Z",
            "2026-12-02T0a:03:00Z",
            "2026-12-0é09:03:00Z",
        ] {
            assert!(!is_timestamp(text), "{text}");
        }
    }
}
