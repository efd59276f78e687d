//! How texts become rows of a terminal, so that no row of somebody else's text can pass for one of ours.
//!
//! Our rows begin at the left edge or up to [`OWN`] columns in. A text of somebody else begins after a lead that we write,
//! or behind the [`GUTTER`]; every further row of it, whether we broke it or the text did, stands behind the gutter. No row
//! is wider than the terminal, which would break it at the left edge.

use super::output;
use unicode_width::UnicodeWidthChar;

/// What stands before each further row of somebody else's text, and before nothing else.
pub(crate) const GUTTER: &str = "│ ";
/// How wide the gutter is.
const GUTTER_WIDTH: usize = 2;
/// How far in a row of ours that we broke goes on: as far as no row of ours begins.
const OWN: usize = 6;
/// Where somebody else's text goes on when its lead leaves too little room beside it.
const NARROW: usize = 4;
/// The least room for a word that is broken anyway.
const LEAST: usize = 12;

/// Somebody else's text, made inert, after a `lead` of ours: in rows on a terminal of so many columns, else as one row.
/// Behind the gutter from its first row on when the lead says nothing.
pub(crate) fn said(lead: &str, text: &str, columns: Option<usize>) -> String {
    let silent = lead.trim_start().is_empty();
    let lead = if silent { format!("{lead}{GUTTER}") } else { lead.to_owned() };
    let Some(columns) = columns else { return format!("{lead}{}", output::clean(text)) };
    let lead_width = width(&lead);
    let column = if lead_width * 2 > columns { NARROW } else { lead_width.max(GUTTER_WIDTH) };
    let margin = format!("{}{GUTTER}", " ".repeat(column - GUTTER_WIDTH));
    let rest = columns.saturating_sub(column);
    let mut rows = String::new();
    for (at, line) in trimmed(&output::clean_lines(text)).split('\n').enumerate() {
        if at == 0 {
            rows.push_str(&broken(line, columns.saturating_sub(lead_width), rest, &margin));
        } else {
            rows.push_str(&format!("\n{margin}{}", broken(line, rest, rest, &margin)));
        }
    }
    after(&lead, &rows)
}

/// Somebody else's text, made inert, with every line behind the gutter.
pub(crate) fn quoted(text: &str) -> String {
    let text = output::clean_lines(text);
    let lines: Vec<String> = trimmed(&text).split('\n').map(|line| format!("{GUTTER}{line}")).collect();
    lines.join("\n")
}

/// Without the lines and spaces at its end that show nothing.
fn trimmed(text: &str) -> &str {
    text.trim_end_matches(['\n', ' '])
}

/// `text` of ours after `lead`, broken between words, its further rows as far in as its first.
pub(crate) fn hang(lead: &str, text: &str, columns: usize) -> String {
    let lead_width = width(lead);
    // On a narrow terminal too little would be left beside it.
    let indent = if lead_width * 2 > columns { NARROW } else { lead_width };
    let margin = " ".repeat(indent);
    let rows = broken(text, columns.saturating_sub(lead_width), columns.saturating_sub(indent), &margin);
    after(lead, &rows)
}

/// The text with its lines broken where they are wider than `columns`. A broken line goes on further in than any row of
/// ours begins, or behind the gutter when that is where it began. A line of one word stays whole, as does a ticket on a row
/// of its own: they are there to be copied.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    wrapped(text, columns, OWN)
}

/// As [`wrap`] for a text without a word of anybody else, such as help: broken lines go on where they began, those of a
/// verb's usage after their lead.
pub(crate) fn wrap_help(text: &str, columns: usize) -> String {
    let lines = text.split_inclusive('\n').map(|line| match line.strip_prefix(USAGE) {
        Some(usage) if width(line) > columns => {
            format!("{}\n", hang(USAGE, &together(usage.trim_end()), columns).replace(TIED, " "))
        }
        _ => wrapped(line, columns, 0),
    });
    lines.collect()
}

/// How a verb's usage begins.
const USAGE: &str = "Usage: ";
/// A space where a line is not broken. Help has none of its own.
const TIED: &str = "\u{a0}";

/// A usage whose flags are not parted from their values.
fn together(usage: &str) -> String {
    let mut tied = String::with_capacity(usage.len());
    let mut words = usage.split(' ').peekable();
    while let Some(word) = words.next() {
        tied.push_str(word);
        let flag = word.trim_start_matches('[').starts_with("--") && !word.ends_with(']');
        match words.peek() {
            Some(next) if flag && next.starts_with('<') => tied.push_str(TIED),
            Some(_) => tied.push(' '),
            None => {}
        }
    }
    tied
}

fn wrapped(text: &str, columns: usize, least: usize) -> String {
    let mut shown = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let inner = line.trim_start_matches(' ');
        let (indent, inner) = line.split_at(line.len() - inner.len());
        if width(line) <= columns || !inner.trim_end().contains(' ') {
            shown.push_str(line);
        } else if let Some((before, ticket)) = line.rsplit_once(' ').filter(|(_, last)| is_ticket(last)) {
            shown.push_str(&format!("{}\n{ticket}", wrapped(before, columns, least)));
        } else if let Some(inner) = inner.strip_prefix(GUTTER) {
            let margin = format!("{indent}{GUTTER}");
            let room = columns.saturating_sub(width(&margin));
            shown.push_str(&format!("{margin}{}", broken(inner, room, room, &margin)));
        } else {
            let margin = " ".repeat(indent.len().max(least));
            let rest = columns.saturating_sub(margin.len());
            let first = columns.saturating_sub(indent.len());
            shown.push_str(&format!("{indent}{}", broken(inner, first, rest, &margin)));
        }
        shown.push_str(end);
    }
    shown
}

/// Whether it is a ticket or a card: whole, it can be copied, and it holds nothing that a row of ours begins with.
fn is_ticket(word: &str) -> bool {
    let word = anstream::adapter::strip_str(word).to_string();
    word.starts_with("messaging")
        && word.contains('.')
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// One line as rows: the first has `first` columns, the others `rest` behind `margin`. Broken between words, and within
/// one that is wider than a row. Spaces where a row ends are dropped.
fn broken(line: &str, first: usize, rest: usize, margin: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let (mut at, mut gap, mut room) = (0, 0, first);
    for (number, word) in line.split(' ').enumerate() {
        gap += usize::from(number > 0);
        if word.is_empty() {
            continue;
        }
        let wide = width(word);
        if at + gap + wide <= room {
            shown.push_str(&" ".repeat(gap));
            shown.push_str(word);
            at += gap + wide;
            gap = 0;
            continue;
        }
        gap = 0;
        let more_below = room < rest && (wide <= rest || room < LEAST);
        if at > 0 || more_below {
            shown.push('\n');
            shown.push_str(margin);
            (at, room) = (0, rest);
        }
        for (cluster, wide) in clusters(word) {
            if at > 0 && at + wide > room {
                shown.push('\n');
                shown.push_str(margin);
                (at, room) = (0, rest);
            }
            shown.push_str(cluster);
            at += wide;
        }
    }
    shown
}

/// A lead and what was broken to stand after it.
fn after(lead: &str, rows: &str) -> String {
    // Nothing beside the lead: then nothing is beside it.
    let lead = if rows.starts_with('\n') && !lead.ends_with(GUTTER) { lead.trim_end() } else { lead };
    format!("{lead}{rows}")
}

/// How many columns a text takes, styles none. Never fewer than a terminal gives it: emoji that some terminals join into one
/// count each.
pub(crate) fn width(text: &str) -> usize {
    clusters(text).map(|(_, width)| width).sum()
}

/// The coloured form of the character before it, which is wide.
const EMOJI_FORM: char = '\u{FE0F}';

/// The text in pieces that are not broken, each with its width: a character with the marks on it and the styles before it.
fn clusters(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut left = text;
    std::iter::from_fn(move || {
        let mut wide = None;
        let mut style = false;
        let mut end = left.len();
        for (at, character) in left.char_indices() {
            let own = match character {
                '\u{1b}' => {
                    style = true;
                    0
                }
                'm' if style => {
                    style = false;
                    0
                }
                _ if style => 0,
                EMOJI_FORM => {
                    wide = wide.map(|wide: usize| wide.max(2));
                    0
                }
                other => other.width().unwrap_or(0),
            };
            if own > 0 && wide.replace(wide.unwrap_or(own)).is_some() {
                end = at;
                break;
            }
        }
        let (cluster, rest) = left.split_at(end);
        left = rest;
        (!cluster.is_empty()).then_some((cluster, wide.unwrap_or(0)))
    })
}

#[cfg(test)]
mod tests;
