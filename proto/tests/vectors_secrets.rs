//! Every case of `secrets.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::b64;
use messaging_proto::secret::{find, kind_of};
use serde_json::{Value, json};
use support::{assert_all_covered, cases, ours, text};

const SECRETS: &str = include_str!("../../vectors/messaging/secrets.json");

fn file() -> Value {
    let file = serde_json::from_str(SECRETS).unwrap();
    assert_all_covered(&file, &["texts", "params"]);
    file
}

fn joined(parts: &Value) -> String {
    parts.as_array().unwrap().iter().map(|part| part.as_str().unwrap()).collect()
}

#[test]
fn texts() {
    for case in cases(&file(), "texts") {
        assert_eq!(json!(kind_of(&joined(&case["parts"]))), case["kind"], "{}", case["name"]);
    }
}

/// The params with their stand-ins for credentials replaced, in the order they are written.
fn restored(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(restored).collect(),
        Value::Object(object) => match object.iter().next() {
            Some((name, parts)) if name == "$join" => joined(parts).into(),
            Some((name, parts)) if name == "$b64" => b64::encode(joined(parts).as_bytes()).into(),
            Some((name, parts)) if name == "$member" => json!({joined(parts): "x"}),
            _ => Value::Object(object.iter().map(|(name, value)| (name.clone(), restored(value))).collect()),
        },
        other => other.clone(),
    }
}

#[test]
fn params() {
    for case in cases(&file(), "params") {
        let finding = find(text(case, "method"), &ours(&restored(&case["params"])));
        let told = finding.map(|found| json!({"field": found.field.to_string(), "kind": found.kind}));
        assert_eq!(json!(told), case["expect"], "{}", case["name"]);
        if let Some(found) = finding {
            let message = format!("{} holds a credential ({}); nothing was sent", found.field, found.kind);
            assert_eq!(found.to_string(), message);
        }
    }
}
