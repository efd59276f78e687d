//! Wire texts for properties: good ones in every spelling, damaged ones, and soup.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One character of a string, in one of its spellings.
fn letter() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[ -!#-\\[\\]-~]",
        2 => any::<char>().prop_map(escape_if_needed),
        1 => select(vec!['\u{7f}', '\u{80}', '\u{2028}', '\u{e000}', '\u{fb33}', '\u{ffff}', '\u{1f602}'])
            .prop_map(String::from),
        1 => select(vec!["\\\"", "\\\\", "\\/", "\\b", "\\f", "\\n", "\\r", "\\t"]).prop_map(String::from),
        1 => (any::<char>(), any::<bool>()).prop_map(|(letter, upper)| unicode_escape(letter, upper)),
        1 => (0_u32..0x20, any::<bool>()).prop_map(|(code, upper)| {
            unicode_escape(char::from_u32(code).unwrap(), upper)
        }),
    ]
}

fn escape_if_needed(letter: char) -> String {
    match letter {
        '"' | '\\' | '\0'..='\u{1f}' => unicode_escape(letter, false),
        _ => letter.to_string(),
    }
}

fn unicode_escape(letter: char, upper: bool) -> String {
    let mut units = [0; 2];
    let escape = |unit: &u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
    letter.encode_utf16(&mut units).iter().map(escape).collect()
}

pub fn string() -> impl Strategy<Value = String> {
    vec(letter(), 0..12).prop_map(|letters| format!("\"{}\"", letters.concat()))
}

/// Names from a small set, so that some repeat, in different spellings.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => string(),
        3 => select(vec!["\"a\"", "\"\\u0061\"", "\"b\"", "\"c\"", "\"\"", "\"/\"", "\"\\/\"", "\"__proto__\""])
            .prop_map(String::from),
        1 => "\"[a-z]{1,2}\"",
    ]
}

pub fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i16>().prop_map(|number| number.to_string()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f64>()
            .prop_filter("a number", |number| number.is_finite())
            .prop_map(|number| format!("{number:e}")),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?",
        (-10_i64..10).prop_map(|off| (9_007_199_254_740_992_i64 + off).to_string()),
        "-?(0|[1-9][0-9]{14,17})",
    ]
}

fn space() -> impl Strategy<Value = String> {
    prop_oneof![8 => Just(String::new()), 1 => "[ \t\n\r]{1,3}"]
}

/// A text that follows the grammar, but for names that may repeat and containers that may be too deep.
pub fn text() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        select(vec!["null", "true", "false", "0", "-0", "1e400", "[]", "{}"]).prop_map(String::from),
        number(),
        string(),
    ];
    let nested = leaf.prop_recursive(5, 60, 8, |inner| {
        let item = (space(), inner.clone(), space()).prop_map(|(a, item, b)| format!("{a}{item}{b}")).boxed();
        let member = (space(), name(), space(), item.clone())
            .prop_map(|(a, name, b, item)| format!("{a}{name}{b}:{item}"));
        prop_oneof![
            vec(item, 0..8).prop_map(|items| format!("[{}]", items.join(","))),
            vec(member, 0..12).prop_map(|members| format!("{{{}}}", members.join(","))),
            (0_usize..36, inner)
                .prop_map(|(depth, inner)| { format!("{}{inner}{}", "[".repeat(depth), "]".repeat(depth)) }),
        ]
    });
    (space(), nested, space()).prop_map(|(a, text, b)| format!("{a}{text}{b}"))
}

/// A text with a few bytes changed, removed or doubled.
pub fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let edit = (
        any::<Index>(),
        0_u8..4,
        prop_oneof![any::<u8>(), select(b"\"\\{}[]:,-+.eE01u \x00\x1f\x7f\xc3\xed\xf4".to_vec())],
    );
    (text(), vec(edit, 1..4)).prop_map(|(text, edits)| {
        let mut bytes = text.into_bytes();
        for (at, kind, byte) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}

/// Pieces of JSON in any order.
pub fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\":", "\\", "\\u", "d83d", "\\ude02", "\\ud83d",
        "0", "1", "-", "+", ".", "e", "E5", "true", "false", "null", "nul", " ", "\n", "\t", "\u{b}",
        "\u{feff}", "/", "é",
    ]);
    vec(piece, 0..14).prop_map(|pieces| pieces.concat().into_bytes())
}
