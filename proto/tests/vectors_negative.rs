//! Every case of `negative.json` about envelopes. Its `roster` array is the roster's.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::b64u;
use messaging_proto::envelope::{EnvelopeError, Inspected, open_envelope, seal_header, verify_envelope};
use messaging_proto::json::{FromValue, Invalid};
use messaging_proto::key::{EncKey, EncSecret, MachineId, SigningKey};
use messaging_proto::realm::RealmView;
use messaging_proto::roster::Roster;
use messaging_proto::time::Wall;
use serde_json::Value as Json;
use support::realm::TestRealm;
use support::{assert_all_covered, built, cases, ours, text};

const FILE: &str = include_str!("../../vectors/messaging/negative.json");

fn file() -> Json {
    serde_json::from_str(FILE).unwrap()
}

fn bytes<const N: usize>(value: &Json) -> [u8; N] {
    b64u::decode_array(value.as_str().unwrap()).unwrap()
}

#[test]
fn the_file_is_covered() {
    assert_all_covered(&file(), &["entries", "envelopes", "open", "seal", "roster"]);
}

#[test]
fn envelopes() {
    let file = file();
    let entries: Vec<_> = cases(&file, "entries").iter().map(ours).collect();
    // The roster itself, and a replay of its entries that shares nothing with it.
    let views: [&dyn RealmView; 2] = [&Roster::from_entries(&entries).unwrap(), &TestRealm::replay(&entries)];
    for case in cases(&file, "envelopes") {
        let me = case.get("self").and_then(Json::as_str).map(|me| MachineId::parse(me).unwrap());
        let inspected = Inspected::new(built(&case["envelope"]));
        for view in views {
            let outcome =
                now(case).and_then(|now| verify_envelope(&inspected, view, now, me.as_ref()).map(|_| ()));
            assert_refused(case, outcome);
        }
    }
}

/// `verifyEnvelope` step 1, which the type of `now` does for us.
fn now(case: &Json) -> Result<Wall, EnvelopeError> {
    Ok(Wall(u64::from_value(&built(&case["now"]))?))
}

fn assert_refused(case: &Json, outcome: Result<(), EnvelopeError>) {
    let name = text(case, "name");
    match outcome {
        Ok(()) => panic!("{name} was accepted"),
        Err(error) => assert_eq!(error.code().as_str(), case["error"], "{name}: {error}"),
    }
}

#[test]
fn open() {
    for case in cases(&file(), "open") {
        let keys: Vec<_> =
            case["keys"].as_array().unwrap().iter().map(|key| EncSecret::from_bytes(bytes(key))).collect();
        let inspected = Inspected::new(built(&case["envelope"]));
        let opened = open_envelope(&inspected, &keys.iter().collect::<Vec<_>>());
        assert_refused(case, opened.map(drop));
    }
}

#[test]
fn seal() {
    for case in cases(&file(), "seal") {
        let recipient = EncKey::from_value(&built(&case["recipientEnc"]));
        let outcome = recipient.map_err(|_: Invalid| EnvelopeError::RecipientKey).and_then(|recipient| {
            seal_header(
                &SigningKey::from_seed(bytes(&case["seed"])),
                built(&case["header"]),
                &built(&case["payload"]),
                &recipient,
                &EncSecret::from_bytes(bytes(&case["ephemeral"])),
                bytes(&case["nonce"]),
            )
        });
        assert_refused(case, outcome.map(drop));
    }
}
