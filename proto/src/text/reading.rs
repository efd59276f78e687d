//! How a text reads to an eye: which letters its points stand for, and which points are not seen.

use super::tables::{CLOSERS, CONFUSABLES, EMOJI, HIDDEN, OPENERS, SLASHES, SPACING};
use unicode_normalization::char::decompose_compatible;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

/// Passes on the letters and digits that a point reads as: none, one or several of `a`–`z` and `0`–`9`.
///
/// Its compatibility decomposition, without marks, with look-alikes replaced by what they look like.
pub(super) fn read(point: u32, mut to: impl FnMut(u8)) {
    let Some(character) = char::from_u32(point) else { return };
    let mut each = |part: char| {
        let letter = match part {
            _ if part.is_ascii() => part as u8,
            _ => match look_alike(u32::from(part)) {
                Some(letter) if !is_mark(u32::from(part)) => letter,
                _ => return,
            },
        };
        if letter.is_ascii_alphanumeric() {
            to(letter.to_ascii_lowercase());
        }
    };
    if character.is_ascii() {
        each(character);
    } else {
        decompose_compatible(character, each);
    }
}

/// Appends what a text reads as.
pub(super) fn read_all(points: &[u32], out: &mut Vec<u8>) {
    points.iter().for_each(|point| read(*point, |letter| out.push(letter)));
}

fn look_alike(point: u32) -> Option<u8> {
    let at = CONFUSABLES.binary_search_by_key(&point, |(other, _)| *other).ok()?;
    CONFUSABLES.get(at).map(|(_, letter)| *letter)
}

/// Whether the point is a combining mark.
pub(super) fn is_mark(point: u32) -> bool {
    point > 0x7F
        && char::from_u32(point).is_some_and(|c| c.general_category_group() == GeneralCategoryGroup::Mark)
}

/// Whether the point is not seen, wherever it stands.
pub(super) fn is_hidden(point: u32) -> bool {
    // The last two points of every plane are no characters.
    within(HIDDEN, point) || point & 0xFFFE == 0xFFFE
}

pub(super) fn is_spacing(point: u32) -> bool {
    within(SPACING, point)
}

pub(super) fn is_emoji(point: u32) -> bool {
    within(EMOJI, point)
}

pub(super) fn is_opener(point: u32) -> bool {
    OPENERS.binary_search(&point).is_ok()
}

pub(super) fn is_closer(point: u32) -> bool {
    CLOSERS.binary_search(&point).is_ok()
}

pub(super) fn is_slash(point: u32) -> bool {
    SLASHES.binary_search(&point).is_ok()
}

/// Whether the point parts the words of a tag's name: `-`, `_` or `:`.
pub(super) const fn is_separator(point: u32) -> bool {
    matches!(point, 0x2D | 0x5F | 0x3A)
}

fn within(ranges: &[(u32, u32)], point: u32) -> bool {
    let at = ranges.partition_point(|(_, last)| *last < point);
    ranges.get(at).is_some_and(|(first, _)| *first <= point)
}
