//! Text lengths in UTF-16 code units, the specification's unit.

/// The length of `text` in units.
#[must_use]
pub fn utf16_len(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().map(char::len_utf16).sum() }
}

/// The longest start of `text` that is at most `max` units long. Never splits a surrogate pair.
#[must_use]
pub fn cut_utf16(text: &str, max: usize) -> &str {
    // A character is at least one byte and at most as many units as bytes.
    if text.len() <= max {
        return text;
    }
    let mut units = 0;
    for (at, letter) in text.char_indices() {
        units += letter.len_utf16();
        if units > max {
            return text.get(..at).unwrap_or(text);
        }
    }
    text
}
