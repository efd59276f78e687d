//! Every case of `fence.json` and `clean_text.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::text::{HOST_TAGS, clean_peer_text, create_fence, terminal_safe};
use serde_json::Value;
use support::rules::with_lone_surrogates;
use support::{assert_all_covered, cases, text};

const FENCE: &str = include_str!("../../vectors/messaging/fence.json");
const CLEAN: &str = include_str!("../../vectors/messaging/clean_text.json");

/// A text of a vector file as UTF-16, its lone surrogates included.
fn units(case: &Value, member: &str) -> Vec<u16> {
    let escaped = text(case, member).encode_utf16().collect::<Vec<_>>();
    let mut units = Vec::new();
    let mut rest = escaped.as_slice();
    while let [first, others @ ..] = rest {
        let mut forms = ["\\ud800", "\\udc00"].iter().zip([0xD800, 0xDC00]);
        let lone = forms.find(|(form, _)| rest.starts_with(&form.encode_utf16().collect::<Vec<_>>()));
        match lone {
            Some((form, unit)) => {
                units.push(unit);
                rest = &rest[form.len()..];
            }
            None => {
                units.push(*first);
                rest = others;
            }
        }
    }
    units
}

fn draws(case: &Value) -> Vec<[u8; 10]> {
    let hex = |text: &str| {
        (0..20).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
    };
    let draws = cases(case, "draws").iter().map(|draw| -> Vec<u8> { hex(draw.as_str().unwrap()) });
    draws.map(|draw| draw.try_into().unwrap()).collect()
}

#[test]
fn fences() {
    let file = with_lone_surrogates(FENCE);
    assert_all_covered(&file, &["hostTags", "cases"]);
    assert_eq!(serde_json::to_value(HOST_TAGS).unwrap(), file["hostTags"]);
    for case in cases(&file, "cases") {
        let attrs = case["attrs"].as_array().unwrap();
        let attrs = attrs.iter().map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap()));
        let mut draws = draws(case).into_iter();
        let mut used = 0;
        let fence = create_fence(&attrs.collect::<Vec<_>>(), units(case, "text").as_slice(), || {
            used += 1;
            draws.next().unwrap()
        });
        assert_eq!(fence, case["expect"], "{}", case["name"]);
        assert_eq!(used, case["used"].as_u64().unwrap(), "{}", case["name"]);
    }
}

#[test]
fn cleaned() {
    let file = with_lone_surrogates(CLEAN);
    assert_all_covered(&file, &["clean", "terminal"]);
    for case in cases(&file, "clean") {
        let max = case["max"].as_u64().map(|max| usize::try_from(max).unwrap());
        let line = clean_peer_text(units(case, "text").as_slice(), max);
        assert_eq!(line, case["expect"], "{}", case["name"]);
    }
    for case in cases(&file, "terminal") {
        assert_eq!(terminal_safe(units(case, "text").as_slice()), case["expect"], "{}", case["name"]);
    }
}
