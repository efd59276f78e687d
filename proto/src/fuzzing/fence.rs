//! Target `fence`: peer text that wants out of its fence.

use super::Draw;
use crate::text::{HOST_TAGS, clean_peer_text, create_fence, letters, neutralise, terminal_safe};
use crate::units::utf16_len;

/// What opens, closes, parts, hides and joins, in and out of the tables.
const PIECES: &[&str] = &[
    "<",
    ">",
    "/",
    "-",
    "_",
    ":",
    " ",
    "\n",
    "\t",
    "\r",
    "\r\n",
    "\u{2039}",
    "\u{ff1c}",
    "\u{1d236}",
    "\u{ff1e}",
    "\u{2044}",
    "\u{200b}",
    "\u{200d}",
    "\u{fe0f}",
    "\u{feff}",
    "\u{202e}",
    "\u{2028}",
    "\u{a0}",
    "\u{301}",
    "\u{2764}",
    "\u{1f525}",
    "\u{1f468}",
    "\u{1f142}",
    "\u{2122}",
    "\u{2139}",
    "&lt;",
    "\"",
    "messaging",
    "mess",
    "aging",
    "-peer-",
    "aaaaaaaaaaaaaaaa",
    "m",
    "\u{43c}",
    "\u{ff4d}",
    "e\u{300}",
    "\u{455}",
    "s",
    "a",
    "g",
    "i",
    "n",
    "\u{fb01}",
    "1",
    "[U+200B]",
    "\u{0}",
    "\u{1b}[2J",
    "\u{e0041}",
    "\u{10ffff}",
];

/// Nothing in a fence closes it or opens a tag of the fence or of a host, cleaning twice is cleaning once, and what
/// is cleaned is visible.
pub fn fence(data: &[u8]) {
    let mut draw = Draw::new(data);
    let value = text(&mut draw);
    let max = draw.below(40);
    let body = text(&mut draw);
    assert_laws(&value, &body, max);
    // The bytes themselves, which seeds and dictionaries are made for.
    assert_laws("", &String::from_utf8_lossy(data), max);
}

fn assert_laws(value: &str, body: &str, max: usize) {
    assert_neutral(&neutralise(body));
    assert_eq!(neutralise(body), slowly(body), "as the contract words it");
    assert_eq!(neutralise(&neutralise(body)), neutralise(body));

    let mut count = 0_u64;
    let fence = create_fence(&[("from", value)], body, || {
        count += 1;
        let mut bytes = [0; 10];
        bytes.iter_mut().zip((count - 1).to_le_bytes()).for_each(|(to, byte)| *to = byte);
        bytes
    });
    assert_fenced(&fence, body);

    let safe = terminal_safe(body);
    assert_eq!(terminal_safe(&safe), safe);
    assert!(!safe.chars().any(|c| c.is_control() && c != '\n'));
    let line = clean_peer_text(body, None);
    assert_eq!(clean_peer_text(&line, None), line);
    assert!(!line.chars().any(char::is_control) && line.trim() == line && !line.contains("  "));
    let cut = clean_peer_text(body, Some(max));
    assert!(utf16_len(&cut) <= max);
    assert!(cut == line || line.starts_with(cut.trim_end_matches('…')) && (cut.ends_with('…') || max == 0));
}

fn text(draw: &mut Draw<'_>) -> String {
    let mut text = String::new();
    for _ in 0..draw.below(48) {
        match draw.byte() {
            0..=191 => text.push_str(draw.one_of(PIECES).copied().unwrap_or_default()),
            192..=223 => text.push_str(draw.one_of(HOST_TAGS).copied().unwrap_or_default()),
            _ => text.push_str(&draw.text()),
        }
    }
    text
}

/// The fence is one element: its tag, whose values cannot end it, the body, and the only closing tag.
fn assert_fenced(fence: &str, body: &str) {
    let (head, rest) = fence.split_once('\n').unwrap_or_default();
    let nonce = head.strip_prefix("<messaging-peer-").and_then(|rest| rest.get(..16)).unwrap_or_default();
    assert_eq!(nonce.len(), 16);
    assert!(!letters(body).contains(nonce));
    assert!(head.ends_with("\">") && head.matches('"').count() == 2 && head.matches(['<', '>']).count() == 2);
    let closing = format!("\n</messaging-peer-{nonce}>");
    let inside = rest.strip_suffix(&closing);
    assert_eq!(inside, Some(neutralise(body).as_str()));
    assert_eq!(fence.matches(&format!("messaging-peer-{nonce}")).count(), 2);
}

const OPENERS: &str = "<\u{2c2}\u{1438}\u{16b2}\u{2039}\u{226e}\u{2329}\u{276c}\u{276e}\u{2770}\u{27e8}\u{29fc}\u{3008}\u{fe64}\u{ff1c}\u{1d236}";
const CLOSERS: &str = ">\u{2c3}\u{1433}\u{203a}\u{226f}\u{232a}\u{276d}\u{276f}\u{2771}\u{27e9}\u{29fd}\u{3009}\u{fe65}\u{ff1e}";
const SLASHES: &str = "/\u{2044}\u{2215}\u{29f8}\u{ff0f}";

/// No opener left in the text reads as the start of a tag it must not open.
fn assert_neutral(text: &str) {
    for (at, opener) in text.char_indices().filter(|(_, c)| OPENERS.contains(*c)) {
        let after = text.get(at + opener.len_utf8()..).unwrap_or_default();
        assert!(!is_flagged(after), "an opener that was left");
        assert!(!after.starts_with("/messaging"));
    }
}

/// The contract's two rules, for one opener, as they are worded: slow, and with none of the crate's tables but the
/// reading of one point.
fn is_flagged(after: &str) -> bool {
    let word = letters(after).chars().filter(char::is_ascii_lowercase).take(9).collect::<String>();
    word == "messaging" || is_host_tag(after)
}

fn is_host_tag(after: &str) -> bool {
    let unseen = |c: char| shown(c) != c.to_string() || is_mark(c);
    let after = after.trim_start_matches(unseen);
    let after = after.strip_prefix(|c| SLASHES.contains(c)).unwrap_or(after).trim_start_matches(unseen);
    let reads = |c: char| !letters(&c.to_string()).is_empty();
    if !after.starts_with(reads) {
        return false;
    }
    let skipped = |c: char| matches!(c, '-' | '_' | ':') || unseen(c);
    let end = after.find(|c| is_spacing(c) || !reads(c) && !skipped(c)).unwrap_or(after.len());
    let (name, behind) = after.split_at(end);
    let ends =
        behind.chars().next().is_none_or(|c| is_spacing(c) || SLASHES.contains(c) || CLOSERS.contains(c));
    let name = letters(&name.chars().filter(|c| reads(*c)).collect::<String>());
    ends && HOST_TAGS.iter().any(|tag| match tag.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => tag.replace(['-', '_', ':'], "") == name,
    })
}

/// A point by itself, as a person would see it: LF and TAB as they are, another hidden one as its label.
fn shown(c: char) -> String {
    match c {
        '\n' | '\t' => c.to_string(),
        _ => terminal_safe(&c.to_string()),
    }
}

fn is_spacing(c: char) -> bool {
    clean_peer_text(&format!("x{c}x"), None) == "x x"
}

fn is_mark(c: char) -> bool {
    use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};
    c.general_category_group() == GeneralCategoryGroup::Mark
}

/// The neutralised text, made point by point from the whole input.
fn slowly(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    // Labels and emoji as a terminal shows them; a tab is no label, so it is put aside.
    let mut out = String::new();
    for (at, c) in text.char_indices() {
        let after = text.get(at + c.len_utf8()..).unwrap_or_default();
        if OPENERS.contains(c) && is_flagged(after) {
            out.push_str("&lt;");
        } else {
            out.push_str(&shown_in_place(&text, at, c));
        }
    }
    out
}

/// What a point looks like between its neighbours: only a joiner and a variation selector depend on them.
fn shown_in_place(text: &str, at: usize, c: char) -> String {
    let (before, after) = text.split_at(at);
    let last = before.chars().next_back();
    let next = after.chars().nth(1);
    let around = match c {
        '\u{fe0f}' => last.into_iter().chain([c]).collect::<String>(),
        '\u{200d}' => {
            let skipped = before.strip_suffix('\u{fe0f}').unwrap_or(before);
            skipped.chars().next_back().into_iter().chain([c]).chain(next).collect()
        }
        _ => return shown(c),
    };
    if terminal_safe(&around).contains(c) { c.to_string() } else { shown(c) }
}
