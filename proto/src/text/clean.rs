//! Peer text for a person: a terminal, a permission prompt, a notification (contract ipc §9.4).

use super::points::{LF, Points, TAB, is_hidden_at, push, push_label, with_plain_breaks};
use super::reading::is_spacing;
use crate::units::{cut_utf16, utf16_len};

/// What a cut text ends with.
const ELLIPSIS: char = '…';

/// The text for a terminal (`terminalSafe`): lines kept, every other hidden point as a label.
///
/// Applying it twice changes nothing more.
pub fn terminal_safe<T: Points + ?Sized>(text: &T) -> String {
    let points = with_plain_breaks(text.points());
    let mut out = String::with_capacity(points.len());
    for (at, point) in points.iter().copied().enumerate() {
        match point {
            TAB => out.push(' '),
            LF => out.push('\n'),
            _ if is_hidden_at(&points, at) => push_label(&mut out, point),
            _ => push(&mut out, point),
        }
    }
    out
}

/// The text as one line (`cleanPeerText`): spacing as single spaces, trimmed, hidden points as labels, and cut to
/// `max` UTF-16 units with a last `…` when it is longer.
pub fn clean_peer_text<T: Points + ?Sized>(text: &T, max: Option<usize>) -> String {
    let line = one_line(&text.points(), push_label);
    match max {
        Some(max) => cut(line, max),
        None => line,
    }
}

/// One trimmed line with single spaces. `hidden` writes the points that are not seen.
pub(super) fn one_line(points: &[u32], hidden: impl Fn(&mut String, u32)) -> String {
    let mut out = String::with_capacity(points.len());
    let mut gap = false;
    for (at, point) in points.iter().copied().enumerate() {
        if is_spacing(point) {
            gap = !out.is_empty();
            continue;
        }
        if std::mem::take(&mut gap) {
            out.push(' ');
        }
        if is_hidden_at(points, at) { hidden(&mut out, point) } else { push(&mut out, point) }
    }
    out
}

/// The text within `max` units: itself, or its start and `…`.
pub(super) fn cut(text: String, max: usize) -> String {
    if utf16_len(&text) <= max {
        return text;
    }
    let mut start = cut_utf16(&text, max.saturating_sub(1)).to_owned();
    if max > 0 {
        start.push(ELLIPSIS);
    }
    start
}
