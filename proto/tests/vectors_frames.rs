//! The `frames` of `wire.json` (its `cases` are `vectors_json.rs`'s).
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

mod files;

use files::{cases, load, text};
use messaging_proto::frame::{ClientFrame, Frame, Parsed, Received, RelayInbound};
use messaging_proto::json::Value;

const WIRE: &str = include_str!("../../vectors/messaging/wire.json");

/// Whether a side accepts the message; nothing when the type is not one it serves.
fn accepts<F: Frame>(text: &str, max: usize) -> Option<bool> {
    let received = Received::<F>::parse(text.as_bytes().to_vec(), max);
    assert_eq!(received.bytes, text.len());
    match &received.parsed {
        Parsed::Frame(frame) => {
            assert_eq!(frame.t(), received.t());
            Some(true)
        }
        Parsed::BadShape { t, id } => {
            assert!(F::TYPES.contains(t));
            assert_eq!(id.as_deref(), received.id());
            Some(false)
        }
        Parsed::Unknown => None,
        Parsed::Malformed => Some(false),
    }
}

#[test]
fn frames() {
    let file = load(WIRE);
    let mut accepted = 0;
    for case in cases(&file, "frames") {
        let name = text(case, "name");
        let Some(Value::Number(max)) = case.get("maxBytes") else { panic!("{name}") };
        let max = *max as usize;
        let sides = [
            accepts::<ClientFrame>(text(case, "text"), max),
            accepts::<RelayInbound>(text(case, "text"), max),
        ];
        if case.get("error").is_some() {
            assert_eq!(text(case, "error"), "invalid_request", "{name}");
            assert!(sides.contains(&Some(false)) && !sides.contains(&Some(true)), "{name}: {sides:?}");
        } else if name.starts_with("unknown type") {
            assert_eq!(sides, [None, None], "{name}");
        } else {
            assert!(sides.contains(&Some(true)) && !sides.contains(&Some(false)), "{name}: {sides:?}");
            accepted += 1;
        }
    }
    assert!(accepted > 0);
}
