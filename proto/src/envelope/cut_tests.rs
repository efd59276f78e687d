//! Cutting and inserting against removing members and canonicalising again.

use super::{Cuts, insert, without};
use crate::fuzzing::Draw;
use crate::json::{Object, Value, canonicalize};
use proptest::prelude::*;

/// An object of drawn members with some of `body` and `sig` among them.
fn object(bytes: &[u8], body: bool, sig: bool) -> Object {
    let mut draw = Draw::new(bytes);
    let mut members = Object::new();
    for name in ["anchor", "bodies", "bod", "body\\", "s\"", "sig ", "sigh", "\u{1f602}", "", "\n"] {
        if draw.byte() & 1 == 1 {
            members.set(name, draw.value(2));
        }
    }
    if body {
        members.set("body", if draw.byte() & 1 == 1 { Value::text("abc_-") } else { draw.value(4) });
    }
    if sig {
        members.set("sig", draw.value(2));
    }
    members
}

fn slow(members: &Object, gone: &[&str]) -> Option<String> {
    let mut members = members.clone();
    gone.iter().for_each(|name| drop(members.remove(name)));
    canonicalize(&members.into()).ok()
}

proptest! {
    #[test]
    fn cutting_is_removing(bytes: Vec<u8>, body: bool, sig: bool) {
        let members = object(&bytes, body, sig);
        let Some(text) = slow(&members, &[]) else { return Ok(()) };
        let plain = match members.get("body") {
            Some(Value::String(text)) if text == "abc_-" => Some(text.len()),
            _ => None,
        };
        for cuts in [Cuts::find(&text, None), Cuts::find(&text, plain)] {
            prop_assert_eq!(cuts.body.is_some(), body);
            prop_assert_eq!(cuts.sig.is_some(), sig);
            for (name, member) in [("body", &cuts.body), ("sig", &cuts.sig)] {
                let Some(member) = member else { continue };
                prop_assert_eq!(Some(without(&text, &[&member.cut])), slow(&members, &[name]));
                let value = canonicalize(members.get(name).unwrap()).unwrap();
                prop_assert_eq!(&text[member.value.clone()], value.as_str());
            }
        }
    }

    #[test]
    fn inserting_is_setting(bytes: Vec<u8>, body: bool) {
        let members = object(&bytes, body, false);
        let Some(text) = slow(&members, &[]) else { return Ok(()) };
        let mut with = members.clone();
        with.set("sig", Value::text("x"));
        prop_assert_eq!(Some(insert(&text, "sig", "\"x\"")), slow(&with, &[]));
        if !body {
            let mut with = members;
            with.set("body", Value::Bool(true));
            prop_assert_eq!(Some(insert(&text, "body", "true")), slow(&with, &[]));
        }
    }

    #[test]
    fn nothing_panics_on_what_is_no_object(text: String) {
        let cuts = Cuts::find(&text, Some(3));
        let ranges: Vec<_> = [&cuts.body, &cuts.sig].into_iter().flatten().map(|member| &member.cut).collect();
        without(&text, &ranges);
        insert(&text, "sig", "1");
    }
}
