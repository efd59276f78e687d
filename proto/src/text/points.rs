//! Texts as sequences of code points, and the label of one that is not seen.

use super::reading::{is_emoji, is_hidden};
use std::fmt::Write as _;

/// The point that asks for an emoji's coloured form.
const EMOJI_FORM: u32 = 0xFE0F;
/// The point that joins emoji into one.
const JOINER: u32 = 0x200D;
pub(super) const LF: u32 = 0x0A;
pub(super) const CR: u32 = 0x0D;
pub(super) const TAB: u32 = 0x09;

/// A text as code points. A lone surrogate is one point.
pub trait Points {
    /// The points in order.
    fn points(&self) -> Vec<u32>;
}

impl Points for str {
    fn points(&self) -> Vec<u32> {
        self.chars().map(u32::from).collect()
    }
}

impl Points for String {
    fn points(&self) -> Vec<u32> {
        self.as_str().points()
    }
}

/// UTF-16 units, which may hold lone surrogates.
impl Points for [u16] {
    fn points(&self) -> Vec<u32> {
        char::decode_utf16(self.iter().copied())
            .map(|unit| unit.map_or_else(|lone| u32::from(lone.unpaired_surrogate()), u32::from))
            .collect()
    }
}

/// The points with every CR LF as LF.
pub(super) fn with_plain_breaks(points: Vec<u32>) -> Vec<u32> {
    if !points.contains(&CR) {
        return points;
    }
    let next = points.iter().skip(1).copied().map(Some).chain([None]);
    points.iter().copied().zip(next).filter(|pair| *pair != (CR, Some(LF))).map(|(point, _)| point).collect()
}

/// Whether the point at `at` is hidden where it stands: not so where it only shapes an emoji.
pub(super) fn is_hidden_at(points: &[u32], at: usize) -> bool {
    let back = |steps: usize| at.checked_sub(steps).and_then(|at| points.get(at)).copied();
    let emoji = |point: Option<u32>| point.is_some_and(is_emoji);
    match points.get(at).copied() {
        Some(EMOJI_FORM) => !emoji(back(1)),
        Some(JOINER) => {
            let before = if back(1) == Some(EMOJI_FORM) { back(2) } else { back(1) };
            !(emoji(before) && emoji(points.get(at + 1).copied()))
        }
        Some(point) => is_hidden(point),
        None => false,
    }
}

/// Appends a point as it is. Only a surrogate is no character, and those are hidden, so they never get here.
pub(super) fn push(out: &mut String, point: u32) {
    out.push(char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER));
}

/// Appends the label that stands for a hidden point.
pub(super) fn push_label(out: &mut String, point: u32) {
    // Writing to a string does not fail.
    let _ = write!(out, "[U+{point:04X}]");
}
