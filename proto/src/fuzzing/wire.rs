//! Target `wire`: any bytes as wire JSON.

use crate::json::{Value, canonicalize, is_ijson, parse_wire, parse_wire_noting};

/// What is parsed canonicalizes to a fixed point, the note on canonical text is exact, and limits hold.
pub fn wire(data: &[u8]) {
    let parsed = parse_wire_noting(data, data.len());
    assert_eq!(parsed.clone().map(|(value, _)| value), parse_wire(data, usize::MAX));
    if !data.is_empty() {
        assert!(parse_wire(data, data.len() - 1).is_err(), "W1");
    }
    let Ok((value, noted)) = parsed else {
        return;
    };
    assert!(depth(&value) <= 32, "W10");
    let canonical = canonicalize(&value);
    assert_eq!(canonical.is_ok(), is_ijson(&value));
    assert_eq!(noted, canonical.as_ref().is_ok_and(|text| text.as_bytes() == data), "the note");
    if let Ok(text) = canonical {
        let again = parse_wire_noting(text.as_bytes(), text.len());
        assert!(again.as_ref().is_ok_and(|(_, noted)| *noted), "canonical text is noted");
        assert_eq!(again.and_then(|(value, _)| canonicalize(&value)), Ok(text), "a fixed point");
    }
}

/// How deep containers nest; 0 for a scalar.
pub(super) fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(object) => 1 + object.iter().map(|(_, value)| depth(value)).max().unwrap_or(0),
        _ => 0,
    }
}
