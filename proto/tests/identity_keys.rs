//! Rotations, retained keys, and what an identity shows of itself.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use messaging_proto::Code;
use messaging_proto::b64u;
use messaging_proto::identity::{Identity, IdentityError, IdentityFile, RETAIN_MS};
use messaging_proto::json::{Value, parse_wire};
use messaging_proto::key::EncSecret;
use messaging_proto::time::Wall;
use proptest::prelude::*;
use zeroize::Zeroizing;

const NOW: u64 = 1_795_000_000_000;

fn identity() -> Identity {
    Identity::generate([1; 32], [2; 32])
}

fn opens_with(identity: &Identity, now: u64) -> Vec<u8> {
    // Every test key is one repeated byte; the bytes name it.
    identity.open_keys(Wall(now)).iter().map(|key| key.bytes()[0]).collect()
}

fn public(byte: u8) -> messaging_proto::key::EncKey {
    EncSecret::from_bytes([byte; 32]).public()
}

#[test]
fn retention_is_the_specified_window() {
    assert_eq!(RETAIN_MS, 605_400_000);
}

#[test]
fn a_rotation_from_begin_to_erasure() {
    let mut identity = identity();
    assert_eq!(identity.retain(Wall(NOW)), Err(IdentityError::NoRotation));
    assert!(!identity.abandon_rotation());

    assert_eq!(identity.begin_rotation([3; 32], Wall(NOW)), Ok(public(3)));
    assert_eq!(identity.pending(), Some((public(3), Wall(NOW))));
    assert_eq!(identity.enc(), public(2));
    // The relay may have applied it already, so a pending key opens too.
    assert_eq!(opens_with(&identity, NOW), [2, 3]);
    assert_eq!(identity.begin_rotation([4; 32], Wall(NOW)), Err(IdentityError::RotationPending));

    identity.retain(Wall(NOW + 10)).unwrap();
    assert_eq!((identity.enc(), identity.pending()), (public(3), None));
    let until = NOW + 10 + RETAIN_MS;
    assert_eq!(identity.retained().collect::<Vec<_>>(), [(public(2), Wall(until))]);
    assert_eq!(opens_with(&identity, until - 1), [3, 2]);
    assert_eq!(opens_with(&identity, until), [3]);

    // Newest first.
    identity.begin_rotation([5; 32], Wall(NOW + 20)).unwrap();
    identity.retain(Wall(NOW + 30)).unwrap();
    assert_eq!(opens_with(&identity, NOW + 30), [5, 3, 2]);

    // Refused by the relay: as if it never was.
    identity.begin_rotation([6; 32], Wall(NOW + 40)).unwrap();
    assert!(identity.abandon_rotation());
    assert_eq!(opens_with(&identity, NOW + 40), [5, 3, 2]);

    assert!(!identity.expire(Wall(until - 1)));
    assert!(identity.expire(Wall(until)));
    assert_eq!(identity.retained().count(), 1);
    assert!(identity.expire(Wall(until + 20)));
    assert!(!identity.export().text().contains("retained"));
}

#[test]
fn eight_retained_keys_are_the_most() {
    let mut identity = identity();
    for byte in 10..18 {
        identity.begin_rotation([byte; 32], Wall(NOW)).unwrap();
        identity.retain(Wall(NOW)).unwrap();
    }
    assert_eq!(opens_with(&identity, NOW), [17, 16, 15, 14, 13, 12, 11, 10, 2]);
    let error = identity.begin_rotation([18; 32], Wall(NOW)).unwrap_err();
    assert_eq!(error.code(), Code::InvalidState);
    assert_eq!(identity.export().read().unwrap().export(), identity.export());
    // Once they are expired there is room.
    identity.begin_rotation([18; 32], Wall(NOW + RETAIN_MS)).unwrap();
    assert_eq!(opens_with(&identity, NOW + RETAIN_MS), [17, 18]);
}

#[test]
fn a_file_that_is_full_and_rotating_settles_within_the_limit() {
    let file = r#"{"v":"messaging/1","machine":"M","enc":"E","encKey":"K","signingKey":"S","retained":[R],"pending":P}"#;
    let key = |byte: u8| format!(r#""enc":"{}","encKey":"{}""#, public(byte), b64u::encode(&[byte; 32]));
    let retained: Vec<String> =
        (20..28).map(|byte| format!(r#"{{{},"until":{}}}"#, key(byte), NOW + 5)).collect();
    let text = file
        .replace("\"M\"", &format!("\"{}\"", identity().machine()))
        .replace(r#""enc":"E","encKey":"K""#, &key(2))
        .replace("\"S\"", &format!("\"{}\"", b64u::encode(&[1; 32])))
        .replace("[R]", &format!("[{}]", retained.join(",")))
        .replace(":P}", &format!(":{{{},\"ts\":7}}}}", key(30)));
    let mut identity = IdentityFile::new(Zeroizing::new(text)).read().unwrap();
    identity.retain(Wall(NOW)).unwrap();
    assert_eq!(opens_with(&identity, NOW), [30, 2, 20, 21, 22, 23, 24, 25, 26]);
    assert!(identity.export().read().is_ok());
}

#[test]
fn unknown_members_of_the_file_survive() {
    let text =
        identity().export().text().replacen('{', r#"{"zz":{"b":[1,"x\u0001"],"a":null},"store2":1,"#, 1);
    let read = IdentityFile::new(Zeroizing::new(text)).read().unwrap();
    let back = parse_wire(read.export().text().as_bytes(), 70_000).unwrap();
    assert_eq!(back.get("zz").unwrap().get("b").unwrap().as_array().unwrap()[1], Value::text("x\u{1}"));
    assert_eq!(back.get("store2"), Some(&Value::Number(1.0)));
    assert_eq!(read.export().read().unwrap().export(), read.export());
}

#[test]
fn files_that_are_refused() {
    let good = identity().export();
    let refuse = |from: &str, to: &str| {
        let text = good.text().replacen(from, to, 1);
        assert_ne!(text, good.text(), "{from}");
        let error = IdentityFile::new(Zeroizing::new(text)).read().unwrap_err();
        assert_eq!(error.code(), Code::InvalidRequest, "{to}");
        assert!(!format!("{error} {error:?}").contains("MARKER"));
        error
    };
    assert_eq!(refuse("{", r#"{"store":"keychain","#), IdentityError::Keychain);
    for to in [
        r#"{"store":"MARKER","#,
        r#"{"store":null,"#,
        r#"{"pending":null,"#,
        r#"{"pending":{},"#,
        r#"{"pending":{"ts":1},"#,
        r#"{"pending":{"ts":1,"enc":"MARKER"},"#,
        r#"{"retained":{},"#,
        r#"{"retained":null,"#,
        r#"{"retained":["MARKER"],"#,
        r#"{"retained":[{"until":1.5}],"#,
        r#"{"retained":[{"until":1,"enc":"MARKER"}],"#,
        r#"{"zz":1e400,"#,
        r#"{"v":"messaging/1","#,
        "MARKER",
        "",
    ] {
        refuse("{", to);
    }
    let pending = format!(r#"{{"pending":{{"ts":1,"enc":"{}"}},"#, public(9));
    assert_eq!(refuse("{", &pending).to_string(), "identity: pending.encKey does not match its schema");
    let retained = format!(r#"{{"retained":[{{"until":1,"enc":"{}"}}],"#, public(9));
    assert_eq!(refuse("{", &retained).code(), Code::InvalidRequest);
}

#[test]
fn nothing_private_is_printed() {
    let mut identity = identity();
    identity.begin_rotation([3; 32], Wall(NOW)).unwrap();
    identity.retain(Wall(NOW)).unwrap();
    identity.begin_rotation([4; 32], Wall(NOW)).unwrap();
    let file = identity.export();
    let told = format!("{identity:?} {file:?} {:?} {:?}", identity.signing(), identity.open_keys(Wall(NOW)));
    for byte in 1..=4_u8 {
        let secret = b64u::encode(&[byte; 32]);
        assert!(file.text().contains(&secret));
        assert!(!told.contains(&secret), "{told}");
    }
    assert!(told.contains(&identity.machine().to_string()));
    assert!(told.contains("IdentityFile(redacted)"));
}

#[test]
fn a_captured_file_is_the_same_file() {
    let file = identity().export();
    let captured = serde_json::to_string(&file).unwrap();
    assert_eq!(serde_json::from_str::<IdentityFile>(&captured).unwrap(), file);
    assert!(serde_json::from_str::<IdentityFile>("1").is_err());
    assert_ne!(Identity::generate([1; 32], [3; 32]).export(), file);
}

proptest! {
    /// Whatever happens to it, an identity reads back from its file, and an old key lives exactly its window.
    #[test]
    fn any_life_of_an_identity(steps in prop::collection::vec((0..4_u8, 0..200_000_000_u64), 0..40)) {
        let mut identity = identity();
        let mut now = NOW;
        let mut next = 50;
        // (key, until) of every key that was ever replaced.
        let mut replaced: Vec<(u8, u64)> = Vec::new();
        let (mut current, mut pending) = (2, None);
        for (step, wait) in steps {
            now += wait;
            match step {
                0 | 1 => {
                    let unexpired = replaced.iter().filter(|(_, until)| *until > now).count();
                    let begun = identity.begin_rotation([next; 32], Wall(now));
                    prop_assert_eq!(begun.is_ok(), pending.is_none() && unexpired < 8);
                    if begun.is_ok() {
                        pending = Some(next);
                        next += 1;
                    }
                }
                2 => {
                    prop_assert_eq!(identity.retain(Wall(now)).is_ok(), pending.is_some());
                    if let Some(new) = pending.take() {
                        replaced.insert(0, (current, now + RETAIN_MS));
                        current = new;
                    }
                }
                _ => prop_assert_eq!(identity.abandon_rotation(), pending.take().is_some()),
            }
            let expected: Vec<u8> = [current]
                .into_iter()
                .chain(pending)
                .chain(replaced.iter().filter(|(_, until)| *until > now).map(|(key, _)| *key))
                .collect();
            prop_assert_eq!(opens_with(&identity, now), expected);
            let file = identity.export();
            prop_assert_eq!(file.read().unwrap().export(), file);
        }
    }
}
