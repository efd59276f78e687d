//! Eight bytes at a time over the plain part of a string.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;

/// How many bytes at the start are no quote, no backslash and no control character.
pub(super) fn plain_len(bytes: &[u8]) -> usize {
    let (words, tail) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let found = special(u64::from_le_bytes(*word));
        if found != 0 {
            // The lowest mark is exact; only marks above it can be false.
            return index * 8 + (found.trailing_zeros() / 8) as usize;
        }
    }
    let tail_len = tail.iter().position(|&byte| is_special(byte)).unwrap_or(tail.len());
    words.len() * 8 + tail_len
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, 0..=0x1f | b'"' | b'\\')
}

/// The high bit of each special byte, and perhaps of bytes above the first one.
const fn special(word: u64) -> u64 {
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (control | zero(word ^ (ONES * b'"' as u64)) | zero(word ^ (ONES * b'\\' as u64))) & HIGH
}

const fn zero(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_first_special_byte_wherever_it_stands() {
        for len in 0..40 {
            for at in 0..len {
                for byte in 0..=255_u8 {
                    let mut bytes = vec![b'a'; len];
                    bytes[at] = byte;
                    let expected = if is_special(byte) { at } else { len };
                    assert_eq!(plain_len(&bytes), expected, "len {len} at {at} byte {byte}");
                }
            }
        }
    }

    #[test]
    fn a_mark_above_the_first_does_not_matter() {
        for first in [b'"', b'\\', 0x00, 0x1f] {
            for second in 0..=255_u8 {
                let bytes = [b'x', 0x80, first, second, second, second, second, second];
                assert_eq!(plain_len(&bytes), 2);
                let high = [0xff, 0xc3, 0xa9, second, 0xff, first, 0x20, 0x21];
                let expected = if is_special(second) { 3 } else { 5 };
                assert_eq!(plain_len(&high), expected);
            }
        }
    }
}
