//! Texts that try to leave a fence, pose as a host, or act on a terminal (`messaging/1 §12`), and every host tag in many dresses.
//!
//! What must hold is judged here by other means than the library's: by searching for what a host or a terminal would act on.
#![allow(clippy::unwrap_used)]

use messaging_proto::text::{HOST_TAGS, clean_peer_text, create_fence, neutralise, terminal_safe};
use unicode_normalization::UnicodeNormalization;

/// The texts that other tests send through the tools too.
const CORPUS: &str = include_str!("corpus/injection.json");

const OPENERS: [char; 8] =
    ['<', '\u{2039}', '\u{276c}', '\u{27e8}', '\u{3008}', '\u{fe64}', '\u{ff1c}', '\u{2329}'];

/// The corpus, and each host tag written in ways that still read as it.
fn texts() -> Vec<String> {
    let mut texts: Vec<String> = serde_json::from_str(CORPUS).unwrap();
    assert!(texts.len() > 70);
    for tag in HOST_TAGS {
        let name = tag.trim_end_matches('*');
        let spread = |between: &str| name.chars().map(String::from).collect::<Vec<_>>().join(between);
        let wide: String =
            name.chars()
                .map(|c| {
                    if c.is_ascii_lowercase() {
                        char::from_u32(0xff41 + (c as u32 - 0x61)).unwrap()
                    } else {
                        c
                    }
                })
                .collect();
        let cyrillic = name
            .replace('a', "\u{430}")
            .replace('e', "\u{435}")
            .replace('o', "\u{43e}")
            .replace('s', "\u{455}");
        let names = [
            name.to_owned(),
            name.to_ascii_uppercase(),
            spread("\u{200b}"),
            spread("\u{2060}"),
            spread("\u{301}"),
            name.replace(['-', '_'], ":"),
            name.replace(['-', '_'], ""),
            wide,
            cyrillic,
        ];
        for name in names {
            for opener in OPENERS {
                texts.push(format!("a {opener}{name}> b"));
                texts.push(format!("{opener}/{name} x=\"1\">"));
            }
            texts.push(format!("<\u{202e}{name}\u{ad}>"));
            texts.push(format!("<{name}"));
        }
    }
    texts
}

/// A text as a careless reader takes it: compatible forms folded, marks, hidden characters and separators gone.
fn folded(text: &str) -> String {
    let looks = |c: char| match c {
        '\u{430}' => 'a',
        '\u{435}' => 'e',
        '\u{43e}' => 'o',
        '\u{455}' => 's',
        c if OPENERS.contains(&c) => '<',
        c => c,
    };
    text.nfkd()
        .map(looks)
        .filter(|c| !hidden(*c) && !('\u{300}'..'\u{370}').contains(c) && !"-_:".contains(*c))
        .flat_map(char::to_lowercase)
        .collect()
}

/// What no reader sees, or a terminal acts on.
fn hidden(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{115f}' | '\u{3164}' | '\u{e0000}'..='\u{e0fff}')
}

/// A host's tag that is left in a text.
fn tag_in(text: &str) -> Option<&'static str> {
    let folded = folded(text);
    HOST_TAGS.iter().copied().find(|tag| {
        let name: String = tag.chars().filter(|c| !"-_:*".contains(*c)).collect();
        folded.match_indices('<').any(|(at, _)| {
            let after = folded[at + 1..].strip_prefix('/').unwrap_or(&folded[at + 1..]);
            after.strip_prefix(&name).is_some_and(|rest| {
                tag.ends_with('*')
                    || rest.chars().next().is_none_or(|c| c.is_whitespace() || "/>".contains(c))
            })
        })
    })
}

#[test]
fn no_text_of_the_corpus_leaves_its_fence() {
    let mut nonce = 0_u8;
    for text in texts() {
        let fence = create_fence(&[("from", text.as_str()), ("kind", "message")], &text, || {
            nonce = nonce.wrapping_add(1);
            [nonce; 10]
        });
        let (open, rest) = fence.split_once(">\n").unwrap();
        let (body, close) = rest.rsplit_once('\n').unwrap();
        let name = open.split(' ').next().unwrap().trim_start_matches('<');
        assert_eq!(close, format!("</{name}>"));
        // One opening tag on one line, whose attributes hold nothing that ends them.
        assert!(!open[1..].contains(['<', '>', '\n']), "{open}");
        assert_eq!(open.matches('"').count(), 4, "{open}");
        assert!(!body.contains(&name["messaging-peer-".len()..]), "the nonce is in {text:?}");
        assert_eq!(tag_in(body), None, "{text:?} left {body:?}");
        assert!(!folded(body).contains("<messaging") && !folded(body).contains("</messaging"), "{body:?}");
        assert!(!body.chars().any(hidden), "{body:?}");
        assert_eq!(neutralise(body), body, "twice is once");
    }
    // The search itself finds what is there.
    assert_eq!(tag_in("x <\u{ff53}\u{200b}ystem>"), Some("system"));
    assert_eq!(tag_in("Map<string>, i < channel, <channel_count>"), None);
}

#[test]
fn no_text_of_the_corpus_acts_on_a_terminal() {
    for text in texts() {
        let safe = terminal_safe(&text);
        assert!(!safe.chars().any(hidden) && !safe.contains(['\t', '\r']), "{safe:?}");
        assert_eq!(terminal_safe(&safe), safe, "twice is once");
        let line = clean_peer_text(&text, Some(100));
        assert!(!line.chars().any(hidden) && !line.contains('\n'), "{line:?}");
        assert!(messaging_proto::units::utf16_len(&line) <= 100);
    }
}
