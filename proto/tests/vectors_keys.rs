//! Every case of `signature.json`, and of `keys.json` but its `identities`, which have their own test.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::b64u;
use messaging_proto::domain::{Domain, signed_bytes};
use messaging_proto::hash::{hash_value, hash_with, sha256};
use messaging_proto::json::{Value, canonicalize};
use messaging_proto::key::{EncSecret, MachineId, Sig, SigningKey, VerifyKey, verify, verify_value};
use messaging_proto::ulid::Ulid;
use support::{assert_all_covered, cases, ours, text};

const SIGNATURE: &str = include_str!("../../vectors/messaging/signature.json");
const KEYS: &str = include_str!("../../vectors/messaging/keys.json");

fn domain(name: &str) -> Domain {
    *Domain::ALL.iter().find(|domain| domain.name() == name).unwrap()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn signatures_are_reproduced() {
    let file: serde_json::Value = serde_json::from_str(SIGNATURE).unwrap();
    assert_all_covered(&file, &["cases", "verify", "hashes", "base64url", "ulids"]);
    for case in cases(&file, "cases") {
        let name = text(case, "name");
        let key = SigningKey::from_seed(b64u::decode_array(text(case, "seed")).unwrap());
        let domain = domain(text(case, "domain"));
        let value = ours(&case["value"]);
        assert_eq!(key.machine().to_string(), case["machine"], "{name}");
        assert_eq!(domain.prefix(), case["prefix"], "{name}");
        assert_eq!(signed_bytes(domain, &value).unwrap(), text(case, "signed").as_bytes(), "{name}");
        let sig = key.sign_value(domain, &value).unwrap();
        assert_eq!(sig.to_string(), case["sig"], "{name}");
        assert!(verify_value(&key.machine(), &sig, domain, &value), "{name}");
    }
}

/// The rule for any text in the place of a key or a signature.
fn verify_texts(key: &str, sig: &str, message: &[u8]) -> bool {
    match (MachineId::parse(key), Sig::parse(sig)) {
        (Some(key), Some(sig)) => verify(&key, &sig, message),
        _ => false,
    }
}

#[test]
fn verify_cases() {
    let file: serde_json::Value = serde_json::from_str(SIGNATURE).unwrap();
    let mut valid = 0;
    for case in cases(&file, "verify") {
        let message = format!("{}{}", text(case, "prefix"), canonicalize(&ours(&case["value"])).unwrap());
        let verified = verify_texts(text(case, "key"), text(case, "sig"), message.as_bytes());
        assert_eq!(verified, case["valid"].as_bool().unwrap(), "{}", case["name"]);
        valid += usize::from(verified);
    }
    assert!(valid > 0);
}

#[test]
fn hash_cases() {
    let file: serde_json::Value = serde_json::from_str(SIGNATURE).unwrap();
    for case in cases(&file, "hashes") {
        let value = ours(&case["value"]);
        let hash = match case["domain"].as_str() {
            Some(name) => {
                assert_eq!(domain(name).prefix(), case["prefix"]);
                hash_with(domain(name), &value)
            }
            None => hash_value(&value),
        };
        let hash = hash.unwrap();
        assert_eq!(hash.to_string(), case["hash"], "{}", case["name"]);
        assert_eq!(sha256(text(case, "hashed").as_bytes()), hash, "{}", case["name"]);
    }
}

#[test]
fn base64url_cases() {
    let file: serde_json::Value = serde_json::from_str(SIGNATURE).unwrap();
    for case in cases(&file, "base64url") {
        let decoded = b64u::decode(text(case, "text"));
        assert_eq!(decoded.as_deref().map(hex).as_deref(), case["hex"].as_str(), "{}", case["name"]);
        assert_eq!(decoded.is_none(), case.get("error").is_some(), "{}", case["name"]);
    }
}

#[test]
fn ulid_cases() {
    let file: serde_json::Value = serde_json::from_str(SIGNATURE).unwrap();
    for case in cases(&file, "ulids") {
        let parsed = Ulid::parse(text(case, "text"));
        assert_eq!(parsed.is_some(), case["valid"].as_bool().unwrap(), "{case}");
        assert!(parsed.is_none_or(|id| id.as_str() == text(case, "text")), "{case}");
    }
}

#[test]
fn usable_keys() {
    let file: serde_json::Value = serde_json::from_str(KEYS).unwrap();
    assert_all_covered(&file, &["cases", "ed25519", "x25519", "identities"]);
    for case in cases(&file, "cases") {
        let id = MachineId::parse(text(case, "key"));
        let usable = case["usable"].as_bool().unwrap();
        assert_eq!(id.is_some_and(|id| id.is_usable()), usable, "{}", case["name"]);
        assert_eq!(id.and_then(|id| VerifyKey::new(&id)).is_some(), usable, "{}", case["name"]);
    }
}

#[test]
fn key_pairs() {
    let file: serde_json::Value = serde_json::from_str(KEYS).unwrap();
    for case in cases(&file, "ed25519") {
        let seed = b64u::decode_array(text(case, "seed")).unwrap();
        let key = SigningKey::from_seed(seed);
        assert_eq!(key.machine().to_string(), case["machine"]);
        assert_eq!(**key.seed(), seed);
    }
    for case in cases(&file, "x25519") {
        let private = b64u::decode_array(text(case, "private")).unwrap();
        let secret = EncSecret::from_bytes(private);
        assert_eq!(secret.public().to_string(), case["enc"]);
        assert_eq!(*secret.bytes(), private);
    }
}

#[test]
fn a_value_that_is_not_i_json_has_no_signature() {
    let key = SigningKey::from_seed([7; 32]);
    let value = Value::Number(1e300);
    assert!(key.sign_value(Domain::Envelope, &value).is_err());
    assert!(hash_value(&value).is_err());
    assert!(hash_with(Domain::Dm, &value).is_err());
    assert!(!verify_value(&key.machine(), &Sig([0; 64]), Domain::Envelope, &value));
}
