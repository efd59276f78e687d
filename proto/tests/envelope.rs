//! Envelopes beyond the vectors: every byte changed, later versions, the other kind of realm, what is built.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::envelope::{
    Anchor, Body, Class, End, EnvelopeError, HeaderParts, Inspected, Kind, LooseType, LooseVersion, Sealed,
    TimeFault, To, open_envelope, seal_envelope, seal_presence, stale_seal, verify_envelope,
};
use messaging_proto::hash::Hash;
use messaging_proto::json::{FromValue, Object, Value, canonicalize, parse_wire};
use messaging_proto::key::{EncKey, EncSecret, MachineId, VerifyKey};
use messaging_proto::limits::{CLOCK_SKEW_MS, HEADER_BYTES, PLAINTEXT_BYTES, PRESENCE_BYTES, TTL_MS};
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::payload::Typed;
use messaging_proto::realm::{Head, RealmKind, RealmView};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use support::realm::{TestRealm, secret, signer};

const NOW: Wall = Wall(1_795_000_000_000);

fn json(text: &str) -> Value {
    parse_wire(text.as_bytes(), usize::MAX).unwrap()
}

fn end(seed: u8, person: &str, agent: Option<&str>) -> End {
    End {
        person: PersonId::parse(person).unwrap(),
        device: signer(seed).machine(),
        agent: agent.map(|agent| SessionName::parse(agent).unwrap()),
    }
}

/// From alice's agent on her first machine to bob's on his.
fn parts() -> HeaderParts {
    let realm = TestRealm::small();
    HeaderParts {
        id: Ulid::new(NOW, [9; 10]),
        kind: Kind::Message,
        realm: realm.realm(),
        anchor: realm.anchor(),
        from: end(1, "alice", Some("a")),
        to: To::Device(end(3, "bob", Some("b"))),
        ts: NOW,
        exp: NOW.plus(1000),
        reply_to: None,
    }
}

fn mail() -> Value {
    json(r#"{"kind":"message","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#)
}

fn presence() -> Value {
    json(r#"{"seq":1,"label":"laptop","sessions":[],"features":[]}"#)
}

fn presence_parts() -> HeaderParts {
    HeaderParts { kind: Kind::Presence, from: end(1, "alice", None), to: To::Team, ..parts() }
}

fn seal(parts: &HeaderParts, payload: &Value) -> Result<Sealed, EnvelopeError> {
    seal_envelope(&signer(1), parts, payload, &secret(3).public(), &EncSecret::from_bytes([4; 32]), [5; 12])
}

fn inspect(sealed: &Sealed) -> Inspected {
    Inspected::with_text(sealed.value.clone(), sealed.text.as_str())
}

fn verify(inspected: &Inspected) -> Result<(), EnvelopeError> {
    verify_envelope(inspected, &TestRealm::small(), NOW, Some(&signer(3).machine())).map(|_| ())
}

#[test]
fn what_is_built_reads_back() {
    let parts = HeaderParts { reply_to: Some(Ulid::new(NOW, [1; 10])), ..parts() };
    let inspected = inspect(&seal(&parts, &mail()).unwrap());
    let envelope = inspected.envelope().unwrap();
    let header = &envelope.header;
    assert_eq!(header.id, parts.id);
    assert_eq!((header.kind, header.realm, header.anchor), (parts.kind, parts.realm, parts.anchor));
    assert_eq!((&header.from, &header.to), (&parts.from, &parts.to));
    assert_eq!((header.ts, header.exp, header.reply_to), (parts.ts, parts.exp, parts.reply_to));
    assert_eq!(header.class, Some(Class::Contact));
    assert_eq!(header.seal.unwrap().nonce, [5; 12]);
    assert_eq!(verify(&inspected), Ok(()));
    let opened = open_envelope(&inspected, &[&secret(3)]).unwrap();
    assert_eq!(canonicalize(opened.raw()), canonicalize(&mail()));
    assert!(matches!(opened.typed(), Typed::Message(_)));
    assert_eq!(inspected.clone().into_raw(), *inspected.raw());
}

/// Flips bits of each byte in turn. What a member can be refused for follows from where it is checked.
#[test]
fn every_changed_byte_is_refused_with_its_code() {
    let made =
        [seal(&parts(), &mail()).unwrap(), seal_presence(&signer(1), &presence_parts(), presence()).unwrap()];
    let known = [1, 2].map(|number| VerifyKey::new(&signer(number).machine()).unwrap());
    let mut refused = 0;
    for sealed in made {
        for key in &known {
            let whole = Inspected::knowing(sealed.value.clone(), Some(&sealed.text), Some(key));
            assert!(whole.signature_ok() && whole == inspect(&sealed));
        }
        for at in 0..sealed.text.len() {
            for flip in [1, 2, 0x10, 0x20] {
                let mut bytes = sealed.text.clone().into_bytes();
                bytes[at] ^= flip;
                let Ok(value) = parse_wire(&bytes, usize::MAX) else { continue };
                let changed = changed_member(&json(&sealed.text), &value);
                let inspected = Inspected::new(value.clone());
                // Whose key is at hand changes nothing.
                for key in &known {
                    assert_eq!(Inspected::knowing(value.clone(), None, Some(key)), inspected);
                }
                let code = verify(&inspected).unwrap_err().code();
                let more: &[Code] = match changed.as_str() {
                    "realm" => &[Code::NotMember],
                    "from" => &[Code::NotMember, Code::BadSignature],
                    "ts" | "exp" => &[Code::Expired, Code::BadSignature],
                    _ => &[Code::BadSignature],
                };
                assert!(code == Code::InvalidRequest || more.contains(&code), "{changed}: {code}");
                if inspected.envelope().is_ok() {
                    assert!(more.contains(&code), "{changed}: {code}");
                    opens_as_expected(&inspected, &changed);
                }
                refused += 1;
            }
        }
    }
    assert!(refused > 2000, "{refused}");
}

/// The seal covers the header and the body, and not the signature.
fn opens_as_expected(inspected: &Inspected, changed: &str) {
    let opened = open_envelope(inspected, &[&secret(3)]);
    match (inspected.envelope().unwrap().header.kind, changed) {
        (Kind::Presence, _) => {}
        (_, "sig") => assert!(opened.is_ok()),
        _ => assert_eq!(opened, Err(EnvelopeError::Seal), "{changed}"),
    }
}

/// The name of the one member that is not as it was.
fn changed_member(before: &Value, after: &Value) -> String {
    let (before, after) = (before.as_object().unwrap(), after.as_object().unwrap());
    let mut changed = before.iter().filter(|(name, value)| after.get(name) != Some(*value));
    let (name, _) = changed.next().unwrap();
    assert!(changed.next().is_none());
    name.to_owned()
}

#[test]
fn the_other_kind_of_realm_has_its_own_code() {
    let anchor = Anchor::Epoch { size: 3, root: Hash([6; 32]) };
    let mut realm = TestRealm::small();
    let sealed = seal(&HeaderParts { anchor, ..parts() }, &mail()).unwrap();
    let inspected = inspect(&sealed);
    assert_eq!(inspected.envelope().unwrap().header.anchor, anchor);
    assert_eq!(anchor.head(), None);
    assert_eq!(verify(&inspected), Err(EnvelopeError::AnchorKind));
    realm.kind = RealmKind::Epoch;
    let me = signer(3).machine();
    assert!(verify_envelope(&inspected, &realm, NOW, Some(&me)).is_ok());
    realm.members.remove(&signer(1).machine());
    let error = verify_envelope(&inspected, &realm, NOW, Some(&me)).unwrap_err();
    assert_eq!((error.clone(), error.code()), (EnvelopeError::UnknownDevice, Code::UnknownDevice));
}

#[test]
fn times_are_judged_to_the_millisecond() {
    let at = |ts: u64, exp: u64, now: u64| {
        let parts = HeaderParts { ts: Wall(ts), exp: Wall(exp), ..parts() };
        let inspected = inspect(&seal(&parts, &mail()).unwrap());
        let me = signer(3).machine();
        verify_envelope(&inspected, &TestRealm::small(), Wall(now), Some(&me)).map(|_| ())
    };
    let fault = |fault| Err(EnvelopeError::Time(fault));
    assert_eq!(at(10, 20, 19), Ok(()));
    assert_eq!(at(10, 20, 20), fault(TimeFault::Over));
    assert_eq!(at(CLOCK_SKEW_MS + 10, CLOCK_SKEW_MS + 10, 10), Ok(()));
    assert_eq!(at(CLOCK_SKEW_MS + 11, CLOCK_SKEW_MS + 12, 10), fault(TimeFault::Future));
    assert_eq!(at(5, TTL_MS + 5, 5), Ok(()));
    let parts = HeaderParts { ts: Wall(5), exp: Wall(TTL_MS + 6), ..parts() };
    assert_eq!(seal(&parts, &mail()), Err(EnvelopeError::Lifetime));
    let parts = HeaderParts { ts: Wall(5), exp: Wall(4), ..parts };
    assert_eq!(seal(&parts, &mail()), Err(EnvelopeError::Lifetime));
}

#[test]
fn class_follows_from_the_ends_and_the_payload() {
    let class = |parts: &HeaderParts, payload: &str| {
        let sealed = seal_envelope(
            &signer(1),
            parts,
            &json(payload),
            &secret(3).public(),
            &EncSecret::from_bytes([4; 32]),
            [5; 12],
        );
        inspect(&sealed.unwrap()).envelope().unwrap().header.class
    };
    let line = |rest: &str| {
        let id = Ulid::new(NOW, [3; 10]);
        format!(r#"{{"kind":"message","message":{{"messageId":"{id}","role":"ROLE_USER",{rest}}}"#)
    };
    let person = HeaderParts { from: end(1, "alice", None), to: To::Device(end(3, "bob", None)), ..parts() };
    let own = HeaderParts { to: To::Device(end(2, "alice", None)), ..person.clone() };
    let text = line(r#""parts":[{"text":"hi"}]}"#);
    assert_eq!(class(&person, &text), Some(Class::Contact));
    assert_eq!(class(&own, &text), Some(Class::Own));
    let request = line(r#""parts":[{"text":"hi"}]},"conv":{"kind":"request"}"#);
    assert_eq!(class(&person, &request), Some(Class::Request));
    for class in [Class::Own, Class::Contact, Class::Request] {
        assert_eq!(Class::from_value(&Value::text(class.as_str())), Ok(class));
        assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
    }
    for kind in Kind::ALL {
        assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
}

#[test]
fn sizes_are_judged_to_the_byte() {
    let padded = |value: &Value, bytes: usize| {
        let mut object = value.as_object().unwrap().clone();
        object.set("pad", Value::text(""));
        let room = bytes - canonicalize(&object.clone().into()).unwrap().len();
        object.set("pad", Value::text("x".repeat(room)));
        Value::from(object)
    };
    let sealed = seal(&parts(), &padded(&mail(), PLAINTEXT_BYTES)).unwrap();
    let inspected = inspect(&sealed);
    assert_eq!(inspected.body_bytes(), PLAINTEXT_BYTES + 16);
    assert!(open_envelope(&inspected, &[&secret(3)]).is_ok());
    assert_eq!(seal(&parts(), &padded(&mail(), PLAINTEXT_BYTES + 1)), Err(EnvelopeError::PlaintextSize));

    let made = |bytes| seal_presence(&signer(1), &presence_parts(), padded(&presence(), bytes));
    let inspected = inspect(&made(PRESENCE_BYTES).unwrap());
    assert_eq!(inspected.body_bytes(), PRESENCE_BYTES);
    assert!(open_envelope(&inspected, &[]).is_ok());
    assert_eq!(made(PRESENCE_BYTES + 1), Err(EnvelopeError::PresenceSize));

    let headed = |extra: usize| {
        let mut header = parts().to_value().as_object().unwrap().clone();
        header.set("pad", Value::text("x".repeat(extra)));
        messaging_proto::envelope::seal_header(
            &signer(1),
            header.into(),
            &mail(),
            &secret(3).public(),
            &EncSecret::from_bytes([4; 32]),
            [5; 12],
        )
    };
    let room = HEADER_BYTES - inspect(&headed(0).unwrap()).header_bytes();
    let full = inspect(&headed(room).unwrap());
    assert_eq!(full.header_bytes(), HEADER_BYTES);
    assert_eq!(verify(&full), Ok(()));
    assert_eq!(headed(room + 1), Err(EnvelopeError::HeaderSize));
}

#[test]
fn sealing_refuses_what_it_cannot_vouch_for() {
    let stranger = HeaderParts { from: end(2, "alice", Some("a")), ..parts() };
    assert_eq!(seal(&stranger, &mail()), Err(EnvelopeError::Signer));
    let nobody = EncKey([0; 32]);
    let made =
        seal_envelope(&signer(1), &parts(), &mail(), &nobody, &EncSecret::from_bytes([4; 32]), [5; 12]);
    assert_eq!(made, Err(EnvelopeError::RecipientKey));
    for parts in [
        HeaderParts { to: To::Team, ..parts() },
        HeaderParts { kind: Kind::Presence, ..parts() },
        HeaderParts { kind: Kind::Receipt, ..parts() },
    ] {
        assert!(matches!(seal(&parts, &mail()), Err(EnvelopeError::Shape(_))));
    }
    assert!(matches!(seal_presence(&signer(1), &parts(), presence()), Err(EnvelopeError::Shape(_))));
    let error = seal(&HeaderParts { from: end(1, "alice", None), ..parts() }, &mail()).unwrap_err();
    assert_eq!(error.to_string(), "body does not match its schema");
    let headless =
        messaging_proto::envelope::sign_presence_header(&signer(1), Value::Null, presence()).unwrap_err();
    assert_eq!(headless.code(), Code::InvalidRequest);
}

#[test]
fn a_later_version_is_read_loosely() {
    let sealed = seal(&parts(), &mail()).unwrap();
    let with = |name: &str, value: Value| {
        let mut object = sealed.value.as_object().unwrap().clone();
        object.set(name, value);
        object.remove("sig");
        let sig =
            signer(1).sign_value(messaging_proto::domain::Domain::Envelope, &object.clone().into()).unwrap();
        object.set("sig", Value::from(&sig));
        Inspected::new(object.into())
    };
    for (changed, v, type_) in [
        (with("type", Value::text("poll")), LooseVersion::Current, LooseType::Unknown),
        (with("v", Value::text("messaging/2")), LooseVersion::Other, LooseType::Known(Kind::Message)),
    ] {
        let loose = changed.loose();
        assert!(loose.is_later());
        assert_eq!((loose.v, loose.type_, loose.id), (v, type_, Some(parts().id)));
        assert_eq!(loose.from_device, Some(signer(1).machine()));
        assert_eq!(loose.from_person, PersonId::parse("alice"));
        assert!(changed.envelope().is_err());
        assert!(changed.signature_ok(), "the signature can be judged");
        assert_eq!((changed.body_bytes(), changed.header_bytes() > 100), (0, true));
        assert!(matches!(open_envelope(&changed, &[&secret(3)]), Err(EnvelopeError::Shape(_))));
        assert!(messaging_proto::envelope::signed_head(&changed, &parts().realm).is_none());
    }
    let nothing = Inspected::new(json(r#"{"v":1,"type":[],"from":{"device":"x","person":3},"id":"x"}"#));
    assert_eq!(nothing.loose(), messaging_proto::envelope::Loose::default());
    assert!(!nothing.loose().is_later());
    assert!(!nothing.signature_ok());
    let number = Inspected::new(Value::Number(f64::INFINITY));
    assert_eq!((number.jcs(), number.header_bytes(), number.body_bytes()), (None, 0, 0));
}

#[test]
fn a_header_that_is_not_canonical_text_is_judged_the_same() {
    let sealed = seal(&parts(), &mail()).unwrap();
    let turned: Object = sealed
        .value
        .as_object()
        .unwrap()
        .iter()
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    let inspected = Inspected::new(turned.into());
    assert_eq!(**inspected.jcs().unwrap(), *sealed.text);
    assert_eq!(verify(&inspected), Ok(()));
    assert!(open_envelope(&inspected, &[&secret(1), &secret(3)]).is_ok());
}

#[test]
fn only_a_seal_can_be_stale() {
    let before = Anchor::Roster(Head { seq: 3, hash: Hash([0; 32]) });
    assert_eq!(stale_seal(EnvelopeError::Seal, &before, Some(4)), EnvelopeError::StaleSeal);
    assert_eq!(EnvelopeError::StaleSeal.code(), Code::RosterConflict);
    assert_eq!(stale_seal(EnvelopeError::Seal, &before, Some(3)), EnvelopeError::Seal);
    assert_eq!(stale_seal(EnvelopeError::Seal, &before, None), EnvelopeError::Seal);
    let epoch = Anchor::Epoch { size: 1, root: Hash([0; 32]) };
    assert_eq!(stale_seal(EnvelopeError::Seal, &epoch, Some(4)), EnvelopeError::Seal);
    assert_eq!(stale_seal(EnvelopeError::Recipient, &before, Some(4)), EnvelopeError::Recipient);
}

#[test]
fn a_verified_envelope_is_the_inspected_one() {
    let inspected = inspect(&seal(&parts(), &mail()).unwrap());
    let realm = TestRealm::small();
    let verified = verify_envelope(&inspected, &realm, NOW, None).unwrap();
    assert!(matches!(verified.body, Body::Sealed(_)));
    assert_eq!(Ok(verified.into_inner()), inspected.envelope());
    let stranger = MachineId([1; 32]);
    let refused = verify_envelope(&inspected, &realm, NOW, Some(&stranger));
    assert_eq!(refused, Err(EnvelopeError::Recipient));
}
