//! What the text rules rest on, for every code point there is.

use super::reading::{
    is_closer, is_emoji, is_hidden, is_mark, is_opener, is_separator, is_slash, is_spacing, read_all,
};
use super::tables::{CLOSERS, CONFUSABLES, EMOJI, HIDDEN, OPENERS, SLASHES, SPACING};
use super::{Points, clean_peer_text, create_fence, letters, preview, terminal_safe};
use crate::a2a::Part;
use crate::json::{FromValue, parse_wire};
use std::collections::BTreeMap;
use unicode_normalization::UnicodeNormalization;

const ALL: std::ops::RangeInclusive<u32> = 0..=0x0010_FFFF;

fn reading(point: u32) -> String {
    let mut letters = Vec::new();
    read_all(&[point], &mut letters);
    String::from_utf8(letters).unwrap()
}

#[test]
fn lists_are_sorted_and_ranges_apart() {
    assert!(CONFUSABLES.is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(CONFUSABLES.len(), 251);
    for list in [OPENERS, CLOSERS, SLASHES] {
        assert!(list.is_sorted_by(|a, b| a < b));
    }
    assert_eq!((OPENERS.len(), CLOSERS.len(), SLASHES.len()), (16, 14, 5));
    for ranges in [SPACING, HIDDEN, EMOJI] {
        assert!(ranges.iter().all(|(first, last)| first <= last));
        assert!(ranges.is_sorted_by(|a, b| a.1 < b.0));
    }
}

#[test]
fn every_look_alike_reads_as_its_letter() {
    for (point, letter) in CONFUSABLES {
        assert_eq!(reading(*point), char::from(*letter).to_string(), "U+{point:04X}");
    }
}

#[test]
fn what_shapes_a_tag_reads_as_nothing() {
    // So an opener ends the look at the tag before it, and the look at all tags together is one walk.
    for point in ALL {
        if is_opener(point) || is_closer(point) || is_slash(point) || is_spacing(point) || is_separator(point)
        {
            assert_eq!(reading(point), "", "U+{point:04X}");
        }
        if is_opener(point) {
            let other = is_closer(point) || is_slash(point) || is_spacing(point) || is_separator(point);
            assert!(!other && !is_hidden(point) && !is_mark(point), "U+{point:04X}");
        }
    }
}

#[test]
fn a_point_reads_as_the_contract_words_it() {
    let looks_like = CONFUSABLES.iter().copied().collect::<BTreeMap<_, _>>();
    for point in ALL {
        let whole = char::from_u32(point).into_iter().nfkd().filter(|part| !is_mark(u32::from(*part)));
        let replaced = whole.map(|part| looks_like.get(&u32::from(part)).map_or(part, |l| char::from(*l)));
        let lower = replaced.map(|part| part.to_ascii_lowercase());
        let kept = lower.filter(|part| part.is_ascii_lowercase() || part.is_ascii_digit());
        assert_eq!(reading(point), kept.collect::<String>(), "U+{point:04X}");
    }
}

#[test]
fn what_is_not_seen_is_hidden() {
    for point in ALL {
        let surrogate = char::from_u32(point).is_none();
        let control = char::from_u32(point).is_some_and(char::is_control) && !matches!(point, 0x09 | 0x0A);
        let no_character = matches!(point & 0xFFFF, 0xFFFE | 0xFFFF | 0xFDD0..=0xFDEF)
            && point & 0xFFFF >= 0xFFFE
            || (0xFDD0..=0xFDEF).contains(&point);
        if surrogate || control || no_character {
            assert!(is_hidden(point), "U+{point:04X}");
        }
        assert!(!(is_hidden(point) && is_emoji(point)), "U+{point:04X}");
        if (0x20..0x7F).contains(&point) {
            assert!(!is_hidden(point));
        }
    }
}

#[test]
fn a_lone_surrogate_is_one_point_and_is_labelled() {
    let units = [0x61, 0xDC00, 0xD83D, 0xDE00, 0xD800];
    assert_eq!(units.as_slice().points(), [0x61, 0xDC00, 0x1F600, 0xD800]);
    assert_eq!(terminal_safe(units.as_slice()), "a[U+DC00]😀[U+D800]");
    assert_eq!(letters(units.as_slice()), "a");
    assert_eq!("a😀".to_owned().points(), "a😀".points());
}

#[test]
fn a_tab_in_a_value_is_a_space_and_crlf_shows_its_first_half() {
    let fence = create_fence(&[("doing", "a\tb\r\nc")], "", || [0; 10]);
    assert_eq!(
        fence,
        "<messaging-peer-aaaaaaaaaaaaaaaa doing=\"a b[U+000D] c\">\n\n</messaging-peer-aaaaaaaaaaaaaaaa>"
    );
}

#[test]
fn a_line_of_no_length_is_empty() {
    assert_eq!(clean_peer_text("ab", Some(0)), "");
    assert_eq!(clean_peer_text("", Some(0)), "");
}

#[test]
fn a_preview_is_one_line_of_all_parts() {
    let text = |json: &str| {
        let parts = parse_wire(json.as_bytes(), usize::MAX).unwrap();
        preview(&Vec::<Part>::from_value(&parts).unwrap())
    };
    let all = r#"[{"text":" a\n\tb "},{"raw":"","filename":"x.txt","mediaType":"text/plain"},
        {"raw":"","mediaType":"image/png"},{"raw":""},{"data":{"a":1}},{"url":"https://x.example/"},{"text":"c"}]"#;
    assert_eq!(text(all), "a b [file x.txt] [file image/png] [file] [data] [link] c");
    // Not labelled: that is for who shows it.
    assert_eq!(text(r#"[{"text":"a\u202eb"}]"#), "a\u{202e}b");
    let long = format!(r#"[{{"text":"{}"}}]"#, "😀".repeat(150));
    assert_eq!(text(&long), format!("{}…", "😀".repeat(99)));
    let fits = format!(r#"[{{"text":"{}"}}]"#, "x".repeat(200));
    assert_eq!(text(&fits), "x".repeat(200));
    assert_eq!(preview(&[]), "");
}
