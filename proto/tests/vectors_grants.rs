//! Every case of `grants.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::card::{sign_contact_card, verify_contact_card};
use messaging_proto::consent::sync::{Holding, Taken, grants_of, take};
use messaging_proto::consent::{
    ConsentGrant, Review, Subject, prefer_grant, resign_grant, sign_consent_grant, verify_consent_grant,
};
use messaging_proto::domain::{Domain, signed_bytes};
use messaging_proto::hash::{Hash, RealmId, hash_value};
use messaging_proto::json::{Value, canonicalize};
use messaging_proto::key::MachineId;
use messaging_proto::name::PersonId;
use messaging_proto::time::Wall;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use support::rules::{key_of, machine, person};
use support::{assert_all_covered, cases, ours, text};

const GRANTS: &str = include_str!("../../vectors/messaging/grants.json");

fn file() -> serde_json::Value {
    let file = serde_json::from_str(GRANTS).unwrap();
    let arrays = ["valid", "invalid", "merges", "resigns", "cards", "badCards", "sync", "syncShapes"];
    assert_all_covered(&file, &arrays);
    file
}

fn realm(case: &serde_json::Value) -> RealmId {
    Hash::parse(text(case, "realm")).unwrap()
}

fn as_json(value: &Value) -> serde_json::Value {
    serde_json::from_str(&canonicalize(value).unwrap()).unwrap()
}

/// The value without its `by` and `sig`, as its signer is handed it.
fn unsigned(value: &serde_json::Value) -> Value {
    let mut value = value.clone();
    value.as_object_mut().unwrap().retain(|name, _| name != "by" && name != "sig");
    ours(&value)
}

/// What the signature covers.
fn signed_text(domain: Domain, raw: &Value) -> String {
    let mut object = raw.as_object().unwrap().clone();
    object.remove("sig");
    String::from_utf8(signed_bytes(domain, &Value::Object(object)).unwrap()).unwrap()
}

fn grant(value: &serde_json::Value) -> ConsentGrant {
    ConsentGrant::from_store(ours(value)).unwrap()
}

#[test]
fn valid_grants() {
    let file = file();
    let (realm, owner) = (realm(&file), person(text(&file, "person")));
    for case in cases(&file, "valid") {
        let name = text(case, "name");
        let signed = sign_consent_grant(&key_of(text(case, "seed")), unsigned(&case["grant"])).unwrap();
        assert_eq!(as_json(signed.raw()), case["grant"], "{name}");
        assert_eq!(signed_text(Domain::Grant, signed.raw()), text(case, "text"), "{name}");
        assert_eq!(canonicalize(signed.raw()).unwrap().len() as u64, case["bytes"], "{name}");
        let verified = verify_consent_grant(&ours(&case["grant"]), &realm, &owner).unwrap();
        assert_eq!(as_json(verified.raw()), case["grant"], "{name}");
        assert_eq!(&*verified, &*signed, "{name}");
    }
}

#[test]
fn invalid_grants() {
    for case in cases(&file(), "invalid") {
        let refused =
            verify_consent_grant(&ours(&case["grant"]), &realm(case), &person(text(case, "person")));
        assert_eq!(refused.unwrap_err().code().as_str(), case["error"], "{}", case["name"]);
    }
}

fn machines(list: &serde_json::Value) -> BTreeSet<MachineId> {
    list.as_array().unwrap().iter().map(|text| machine(text.as_str().unwrap())).collect()
}

#[test]
fn merges() {
    for case in cases(&file(), "merges") {
        let current = machines(&case["current"]);
        let copies = cases(case, "copies").iter().map(grant).collect::<Vec<_>>();
        let wanted = &copies[usize::try_from(case["expect"].as_u64().unwrap()).unwrap()];
        let is_current = |by: &MachineId| current.contains(by);
        let forward = copies.iter().reduce(|a, b| prefer_grant(a, b, is_current)).unwrap();
        let backward = copies.iter().rev().reduce(|a, b| prefer_grant(a, b, is_current)).unwrap();
        assert_eq!(forward.raw(), wanted.raw(), "{}", case["name"]);
        assert_eq!(backward.raw(), wanted.raw(), "{}", case["name"]);
    }
}

#[test]
fn resigns() {
    for case in cases(&file(), "resigns") {
        let name = text(case, "name");
        let old = grant(&case["grant"]);
        let now = Wall(case["now"].as_u64().unwrap());
        let keep_all = case["keepAll"].as_bool().unwrap();
        let resigned = resign_grant(&old, &key_of(text(case, "seed")), now, keep_all).unwrap();
        let raw = resigned.grant.as_ref().map(ConsentGrant::raw);
        assert_eq!(raw.map_or(json!(null), as_json), case["expect"], "{name}");
        assert_eq!(
            raw.map(|raw| signed_text(Domain::Grant, raw)),
            case["text"].as_str().map(str::to_owned),
            "{name}"
        );
        let lapsed = resigned.lapsed.as_ref().map_or(json!({}), |review| json!(review.levels));
        assert_eq!(lapsed, case["lapsed"], "{name}");
        if let Some(review) = resigned.lapsed {
            let told = json!({"by": review.by, "ts": review.ts, "lapsedAt": review.lapsed_at, "subject": review.subject});
            let old = &case["grant"];
            let wanted =
                json!({"by": old["by"], "ts": old["ts"], "lapsedAt": case["now"], "subject": old["subject"]});
            assert_eq!(told, wanted, "{name}");
        }
    }
}

#[test]
fn cards() {
    for case in cases(&file(), "cards") {
        let name = text(case, "name");
        let card = &case["card"];
        let signed = sign_contact_card(&key_of(text(case, "seed")), unsigned(card)).unwrap();
        assert_eq!(as_json(signed.raw()), *card, "{name}");
        assert_eq!(signed_text(Domain::Card, signed.raw()), text(case, "text"), "{name}");
        let (from, to) = (person(text(card, "from")), person(text(card, "to")));
        let verified = verify_contact_card(&ours(card), &realm(card), &from, &to).unwrap();
        assert_eq!(&*verified, &*signed, "{name}");
        let can = json!(verified.can);
        for (member, value) in can.as_object().unwrap() {
            assert_eq!(*value, card["can"][member], "{name}");
            assert_eq!(as_json(&verified.can.to_value()), can, "{name}");
        }
    }
}

#[test]
fn bad_cards() {
    for case in cases(&file(), "badCards") {
        let (from, to) = (person(text(case, "from")), person(text(case, "to")));
        let refused = verify_contact_card(&ours(&case["card"]), &realm(case), &from, &to);
        assert_eq!(refused.unwrap_err().code().as_str(), case["error"], "{}", case["name"]);
    }
}

/// What a device of the person holds.
struct Device {
    realm: RealmId,
    person: PersonId,
    current: BTreeSet<MachineId>,
    held: BTreeMap<Subject, ConsentGrant>,
    cap: usize,
}

impl Holding for Device {
    type Down = Infallible;

    fn realm(&self) -> &RealmId {
        &self.realm
    }

    fn person(&self) -> &PersonId {
        &self.person
    }

    fn is_current(&self, device: &MachineId) -> bool {
        self.current.contains(device)
    }

    fn held(&self, subject: &Subject) -> Result<Option<ConsentGrant>, Infallible> {
        Ok(self.held.get(subject).cloned())
    }

    fn count(&self) -> Result<usize, Infallible> {
        Ok(self.held.len())
    }

    fn cap(&self) -> usize {
        self.cap
    }
}

#[test]
fn sync() {
    for case in cases(&file(), "sync") {
        let name = text(case, "name");
        let mut device = Device {
            realm: realm(case),
            person: person(text(case, "person")),
            current: machines(&case["current"]),
            held: BTreeMap::new(),
            cap: usize::try_from(case["cap"].as_u64().unwrap()).unwrap(),
        };
        for held in case["held"].as_array().unwrap() {
            let held = grant(held);
            device.held.insert(held.subject.clone(), held);
        }
        let mut review: Vec<Review> = serde_json::from_value(case["review"].clone()).unwrap();
        let mut skipped = serde_json::Map::new();
        for (index, raw) in cases(case, "incoming").iter().enumerate() {
            match take(&device, &ours(raw)).unwrap() {
                Taken::Store(grant) => {
                    review.retain(|entry| !entry.is_settled_by(&grant));
                    device.held.insert(grant.subject.clone(), *grant);
                }
                Taken::Keep => {}
                Taken::Skip(code) => {
                    skipped.insert(index.to_string(), json!(code.as_str()));
                }
            }
        }
        let hashes = device.held.values().map(|grant| hash_value(grant.raw()).unwrap().to_string());
        let expect = &case["expect"];
        let wanted = expect["held"].as_array().unwrap().iter().map(|hash| hash.as_str().unwrap().to_owned());
        assert_eq!(hashes.collect::<BTreeSet<_>>(), wanted.collect::<BTreeSet<_>>(), "{name}");
        assert_eq!(json!(review), expect["review"], "{name}");
        assert_eq!(serde_json::Value::Object(skipped), expect["skipped"], "{name}");
    }
}

#[test]
fn sync_shapes() {
    for case in cases(&file(), "syncShapes") {
        let message = ours(&case["message"]);
        match grants_of(&message, case["toAgent"].is_string()) {
            Ok(grants) => assert_eq!(grants.len() as u64, case["expect"], "{}", case["name"]),
            Err(invalid) => assert_eq!(invalid.code().as_str(), case["error"], "{}", case["name"]),
        }
    }
}
