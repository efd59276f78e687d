//! Every case of `envelope.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::a2a::TaskState;
use messaging_proto::domain::Domain;
use messaging_proto::envelope::{
    Body, End, EnvelopeError, Inspected, Kind, open_envelope, seal_header, sign_presence_header, signed_head,
    stale_seal, verify_envelope,
};
use messaging_proto::hash::RealmId;
use messaging_proto::json::{FromValue, Value, canonicalize};
use messaging_proto::key::{EncKey, EncSecret, MachineId, SigningKey};
use messaging_proto::payload::presence::trim;
use messaging_proto::provenance;
use messaging_proto::realm::Head;
use messaging_proto::roster::Roster;
use messaging_proto::task::can_transition;
use messaging_proto::time::Wall;
use messaging_proto::{b64u, limits};
use serde_json::{Value as Json, json};
use support::realm::member;
use support::{assert_all_covered, cases, ours, text};

const FILE: &str = include_str!("../../vectors/messaging/envelope.json");

fn file() -> Json {
    serde_json::from_str(FILE).unwrap()
}

fn realm(file: &Json) -> Roster {
    let entries: Vec<_> = cases(file, "entries").iter().map(ours).collect();
    Roster::from_entries(&entries).unwrap()
}

fn bytes<const N: usize>(value: &Json) -> [u8; N] {
    b64u::decode_array(value.as_str().unwrap()).unwrap()
}

fn secrets(keys: &Json) -> Vec<EncSecret> {
    keys.as_array().unwrap().iter().map(|key| EncSecret::from_bytes(bytes(key))).collect()
}

fn signer(file: &Json, name: &str) -> SigningKey {
    SigningKey::from_seed(bytes(&file["machines"][name]["seed"]))
}

fn machine(file: &Json, name: &str) -> MachineId {
    MachineId::parse(text(&file["machines"][name], "machine")).unwrap()
}

fn wall(value: &Json) -> Wall {
    Wall(u64::from_value(&ours(value)).unwrap())
}

fn inspect(case: &Json) -> Inspected {
    Inspected::new(ours(&case["envelope"]))
}

#[test]
fn the_file_is_covered() {
    let file = file();
    let mut all = file.clone();
    all.as_object_mut().unwrap().remove("now");
    assert_all_covered(
        &all,
        &[
            "entries",
            "machines",
            "sealed",
            "presence",
            "trim",
            "verify",
            "open",
            "stale",
            "signedHead",
            "provenance",
            "transitions",
        ],
    );
    for (name, keys) in file["machines"].as_object().unwrap() {
        assert_eq!(signer(&file, name).machine(), machine(&file, name));
        assert!(!secrets(&keys["keys"]).is_empty());
    }
}

#[test]
fn sealed() {
    let file = file();
    let realm = realm(&file);
    let now = wall(&file["now"]);
    for case in cases(&file, "sealed") {
        let name = text(case, "name");
        let expected = ours(&case["envelope"]);
        let payload = ours(&case["payload"]);
        let sealed = seal_header(
            &signer(&file, text(case, "signer")),
            ours(&case["header"]),
            &payload,
            &EncKey::parse(text(case, "recipientEnc")).unwrap(),
            &EncSecret::from_bytes(bytes(&case["ephemeral"])),
            bytes(&case["nonce"]),
        )
        .unwrap();
        let canonical = canonicalize(&expected).unwrap();
        assert_eq!(sealed.text, canonical, "{name}");
        assert_eq!(canonicalize(&sealed.value).unwrap(), canonical, "{name}");
        assert_eq!(canonicalize(&payload).unwrap(), text(case, "plaintext"), "{name}");
        let signed = format!("{}{}", Domain::Envelope.prefix(), without(&expected, &["sig"]));
        assert_eq!(signed, text(case, "signed"), "{name}");
        assert_eq!(without(&expected, &["body", "sig"]), text(case, "aad"), "{name}");

        for inspected in
            [Inspected::new(expected.clone()), Inspected::with_text(expected.clone(), canonical.clone())]
        {
            assert_eq!(**inspected.jcs().unwrap(), *canonical);
            assert_eq!(inspected.header_bytes(), without(&expected, &["body"]).len());
            assert_eq!(inspected.body_bytes(), text(case, "plaintext").len() + 16);
            let recipient = text(case, "recipient");
            let me = machine(&file, recipient);
            let envelope = verify_envelope(&inspected, &realm, now, Some(&me)).unwrap();
            assert!(matches!(envelope.body, Body::Sealed(_)), "{name}");
            let keys = secrets(&file["machines"][recipient]["keys"]);
            let opened = open_envelope(&inspected, &keys.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(canonicalize(opened.raw()).unwrap(), text(case, "plaintext"), "{name}");
        }
    }
}

/// The canonical text of `value` without these members, the slow way.
fn without(value: &Value, names: &[&str]) -> String {
    let mut object = value.as_object().unwrap().clone();
    names.iter().for_each(|name| drop(object.remove(name)));
    canonicalize(&object.into()).unwrap()
}

#[test]
fn presence() {
    let file = file();
    let realm = realm(&file);
    for case in cases(&file, "presence") {
        let raw = ours(&case["envelope"]);
        let signed = format!("{}{}", Domain::Envelope.prefix(), without(&raw, &["sig"]));
        assert_eq!(signed, text(case, "signed"));
        let inspected = Inspected::new(raw.clone());
        assert_eq!(inspected.body_bytes(), canonicalize(raw.get("body").unwrap()).unwrap().len());
        assert_eq!(inspected.header_bytes(), without(&raw, &["body"]).len());
        let envelope = verify_envelope(&inspected, &realm, wall(&file["now"]), None).unwrap();
        assert_eq!(envelope.header.kind, Kind::Presence);
        let opened = open_envelope(&inspected, &[]).unwrap();
        assert_eq!(Some(opened.raw()), raw.get("body"));

        let mut header = raw.as_object().unwrap().clone();
        let body = header.remove("body").unwrap();
        let made = sign_presence_header(&signer(&file, text(case, "signer")), header.into(), body).unwrap();
        assert_eq!(made.text, canonicalize(&raw).unwrap());
        assert_eq!(canonicalize(&made.value).unwrap(), made.text);
    }
}

#[test]
fn presence_is_trimmed() {
    let file = file();
    for case in cases(&file, "trim") {
        let trimmed = trim(ours(&case["payload"])).unwrap();
        let trimmed = canonicalize(&trimmed).unwrap();
        assert_eq!(trimmed, canonicalize(&ours(&case["trimmed"])).unwrap(), "{}", text(case, "name"));
        assert!(trimmed.len() <= limits::PRESENCE_BYTES);
    }
}

#[test]
fn verify() {
    let file = file();
    let realm = realm(&file);
    for case in cases(&file, "verify") {
        let me = case.get("self").and_then(Json::as_str).map(|me| MachineId::parse(me).unwrap());
        let inspected = inspect(case);
        let verified = verify_envelope(&inspected, &realm, wall(&case["now"]), me.as_ref());
        assert!(verified.is_ok(), "{}: {verified:?}", text(case, "name"));
    }
}

#[test]
fn open() {
    let file = file();
    for case in cases(&file, "open") {
        let keys = secrets(&case["keys"]);
        let opened = open_envelope(&inspect(case), &keys.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(canonicalize(opened.raw()), canonicalize(&ours(&case["payload"])), "{case}");
    }
}

#[test]
fn stale() {
    let file = file();
    for case in cases(&file, "stale") {
        let inspected = inspect(case);
        let keys = secrets(&case["keys"]);
        let error = open_envelope(&inspected, &keys.iter().collect::<Vec<_>>()).unwrap_err();
        let anchor = inspected.envelope().unwrap().header.anchor;
        let rekeyed = case.get("rekeySeq").and_then(Json::as_u64);
        assert_eq!(stale_seal(error, &anchor, rekeyed).code().as_str(), case["error"], "{case}");
        assert_eq!(stale_seal(EnvelopeError::Realm, &anchor, rekeyed), EnvelopeError::Realm);
    }
}

#[test]
fn signed_heads() {
    let file = file();
    for case in cases(&file, "signedHead") {
        let realm = RealmId::parse(text(case, "realm")).unwrap();
        let head = signed_head(&inspect(case), &realm);
        let expected = case.get("head").filter(|head| head.is_object());
        assert_eq!(head, expected.map(|head| Head::from_value(&ours(head)).unwrap()), "{case}");
    }
}

#[test]
fn transitions() {
    let file = file();
    for case in cases(&file, "transitions") {
        let state = |member| TaskState::parse(text(case, member)).unwrap();
        assert_eq!(can_transition(state("from"), state("to")), case["allowed"].as_bool().unwrap(), "{case}");
    }
}

#[test]
fn provenances() {
    let file = file();
    for case in cases(&file, "provenance") {
        let sender = member(&ours(&case["sender"]));
        let from = End::from_value(&ours(&case["from"])).unwrap();
        let expected = canonicalize(&ours(&case["provenance"]));
        assert_eq!(canonicalize(&provenance::provenance(&sender.device(), &from)), expected, "{case}");
        for metadata in
            [json!({}), json!({"metadata": {"a": 1, "urn:messaging:ext:provenance:v1": "forged"}})]
        {
            let mut message = ours(&metadata);
            provenance::write(&mut message, &sender.device(), &from);
            let written = message.get("metadata").unwrap();
            assert_eq!(canonicalize(written.get(provenance::URI).unwrap()), expected);
            assert_eq!(written.get("a").is_some(), metadata.get("metadata").is_some());
        }
    }
}
