//! What users of other agent mail reported, tried on the pure rules. The numbers are those of the collection;
//! `docs/user-reports.md` says where the others are.
#![allow(missing_docs, clippy::unwrap_used)]

use messaging_proto::a2a::Part;
use messaging_proto::b64u;
use messaging_proto::channel::line_text;
use messaging_proto::domain::Domain;
use messaging_proto::json::{FromValue, Object, Value, parse_wire};
use messaging_proto::key::{EncSecret, MachineId, Sig, SigningKey, VerifyKey, verify, verify_value};
use messaging_proto::limits::CHAT_CHARS;
use messaging_proto::name::{Label, PersonName, TeamName};
use messaging_proto::realm::Role;
use messaging_proto::roster::{ApplyOptions, Author, Member, Roster, genesis};
use messaging_proto::text::preview;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use messaging_proto::units::{cut_utf16, utf16_len};
use messaging_proto::{Code, limits};

/// Texts are counted in UTF-16 units whatever they are made of, and a cut never leaves half a pair.
#[test]
fn report_33_lengths_are_units_and_cuts_are_whole() {
    let family = "👨\u{200d}👩\u{200d}👧\u{200d}👦";
    for (unit, each) in [(family, 11), ("𝔸", 2), ("e\u{301}", 2), ("é", 1), ("a", 1), ("\u{ffff}", 1)] {
        assert_eq!(utf16_len(unit), each, "{unit:?}");
        // Exactly the limit, filled up with single units.
        let mut text = unit.repeat(CHAT_CHARS / each);
        text += &"x".repeat(CHAT_CHARS - utf16_len(&text));
        assert_eq!(utf16_len(&text), CHAT_CHARS);
        assert_eq!(cut_utf16(&text, CHAT_CHARS), text, "the limit itself is not cut");
        // One more at either end: at the front it pushes the last one, perhaps half of a pair, over the edge.
        for long in [format!("{text}x"), format!("x{text}")] {
            let part = Part::from_value(
                &[("text".to_owned(), Value::text(&*long))].into_iter().collect::<Object>().into(),
            );
            let line = line_text(&[part.unwrap()]);
            assert!(long.starts_with(&line));
            assert!([CHAT_CHARS, CHAT_CHARS - 1].contains(&utf16_len(&line)), "{}", utf16_len(&line));
        }
        for max in 0..40 {
            let cut = cut_utf16(&text, max);
            assert!(utf16_len(cut) <= max && max - utf16_len(cut) <= 1, "{max} of {unit:?}");
            assert!(!cut.contains('\u{fffd}'), "half a pair is no character");
        }
    }
    // A preview ends in whole characters too.
    let text = parse_wire(format!("{{\"text\":\"{}\"}}", family.repeat(200)).as_bytes(), 1 << 20).unwrap();
    assert!(!preview(&[Part::from_value(&text).unwrap()]).contains('\u{fffd}'));
}

/// L, the order of the base point, little-endian.
const ORDER: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The same signature with its scalar raised by L: the same point equation, another spelling.
fn plus_order(sig: &Sig) -> Sig {
    let mut bytes = b64u::decode_array::<64>(&sig.to_string()).unwrap();
    let mut carry = 0;
    for (byte, more) in bytes[32..].iter_mut().zip(ORDER) {
        let sum = u16::from(*byte) + u16::from(more) + carry;
        *byte = u8::try_from(sum & 0xff).unwrap();
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    Sig::parse(&b64u::encode(&bytes)).unwrap()
}

fn machine(bytes: [u8; 32]) -> MachineId {
    MachineId::parse(&b64u::encode(&bytes)).unwrap()
}

/// Keys that are no keys are not admitted and verify nothing; a signature has one spelling.
#[test]
fn report_43_weak_keys_and_second_spellings_of_signatures() {
    let p_plus = |add: u8| {
        let mut bytes = [0xff; 32];
        (bytes[0], bytes[31]) = (0xed + add, 0x7f);
        bytes
    };
    let mut identity = [0; 32];
    identity[0] = 1;
    let mut order_8 = b64u::decode_array::<32>("JuiVj8KyJ7BFw_SJ8u-Y8NXfrAXTxjM5sTgCiG1T_AU").unwrap();
    let mut with_sign = |bytes: [u8; 32]| {
        let mut bytes = bytes;
        bytes[31] |= 0x80;
        bytes
    };
    let mut keys = vec![[0; 32], identity, p_plus(0), p_plus(1), p_plus(2), order_8];
    // The sign bit of a point whose x is 0, of zero, and of the rest.
    keys.extend(keys.clone().into_iter().map(&mut with_sign));
    order_8[31] |= 0x80;
    assert!(keys.contains(&order_8));

    let admin = SigningKey::from_seed([1; 32]);
    let member = |machine| Member {
        machine,
        enc: EncSecret::from_bytes([7; 32]).public(),
        person: PersonName::parse("alice").unwrap().into(),
        role: Role::Admin,
        label: Label::parse("desk").unwrap(),
    };
    let (start, name) = (Wall(1_700_000_000_000), TeamName::parse("Blue").unwrap());
    let mut roster = Roster::new();
    let first = genesis(&admin, start, &name, &member(admin.machine())).unwrap();
    roster.apply(&first, ApplyOptions::STORED).unwrap();
    for bytes in keys {
        let bad = machine(bytes);
        assert!(!bad.is_usable() && VerifyKey::new(&bad).is_none(), "{bad}");
        // Under the identity point a signature of zeros verifies for everything, when nobody looks at the key.
        for sig in [[0; 64], {
            let mut sig = [0; 64];
            sig[0] = 1;
            sig
        }] {
            let sig = Sig::parse(&b64u::encode(&sig)).unwrap();
            assert!(!verify(&bad, &sig, b"anything"), "{bad}");
        }
        let author = Author::new(&admin, &roster, start).unwrap();
        let mut added = member(bad);
        added.label = Label::parse("other").unwrap();
        // The author refuses to write it, and nobody takes it from one who does.
        let refused = match author.member_add(&added) {
            Ok(entry) => roster.clone().apply(&entry, ApplyOptions::STORED).unwrap_err().code(),
            Err(_) => Code::InvalidRequest,
        };
        assert_eq!(refused, Code::InvalidRequest, "{bad}");
        let invite = author.invite_create(
            &Ulid::new(start, [3; 10]),
            &bad,
            &PersonName::parse("bob").unwrap(),
            start.plus(1_000),
        );
        let refused = match invite {
            Ok(entry) => roster.clone().apply(&entry, ApplyOptions::STORED).unwrap_err().code(),
            Err(_) => Code::InvalidRequest,
        };
        assert_eq!(refused, Code::InvalidRequest, "{bad}");
    }

    // The honest signature of an entry with S + L.
    let value = Value::text("signed");
    let sig = admin.sign_value(Domain::Envelope, &value).unwrap();
    let other = plus_order(&sig);
    assert_ne!(sig, other);
    assert!(verify_value(&admin.machine(), &sig, Domain::Envelope, &value));
    assert!(!verify_value(&admin.machine(), &other, Domain::Envelope, &value));
    let mut entry = first.as_object().unwrap().clone();
    let honest = Sig::parse(entry.get("sig").unwrap().as_str().unwrap()).unwrap();
    entry.set("sig", Value::text(plus_order(&honest).to_string()));
    let refused = Roster::new().apply(&entry.into(), ApplyOptions::STORED).unwrap_err();
    assert_eq!(refused.code(), Code::BadSignature);
}

/// An id has one spelling: no second text stands for it, so comparing texts is comparing ids.
#[test]
fn report_45_an_id_has_one_spelling() {
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    assert!(Ulid::parse(id).is_some());
    let wide: String = id.chars().map(|letter| if letter == '0' { '\u{ff10}' } else { letter }).collect();
    for other in [
        "81ARZ3NDEKTSV4RRFFQ69G5FAV",
        "ZZZZZZZZZZZZZZZZZZZZZZZZZZ",
        "01arz3ndektsv4rrffq69g5fav",
        "01ARZ3NDEKTSV4RRFFQ69G5FAI",
        "01ARZ3NDEKTSV4RRFFQ69G5FAL",
        "01ARZ3NDEKTSV4RRFFQ69G5FAO",
        "01ARZ3NDEKTSV4RRFFQ69G5FAU",
        "01ARZ3NDEKTSV4RRFFQ69G5FA",
        "01ARZ3NDEKTSV4RRFFQ69G5FAVV",
        " 01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "01ARZ3NDEKTSV4RRFFQ69G5FA\u{0}",
        wide.as_str(),
    ] {
        assert_eq!(Ulid::parse(other), None, "{other}");
        // On the wire that is `invalid_request`: in an ack, and as an envelope's id.
        let ack = parse_wire(format!("[\"{}\"]", other.escape_default()).as_bytes(), limits::FRAME_BYTES);
        if let Ok(Value::Array(ids)) = ack {
            assert!(Vec::<Ulid>::from_value(&Value::Array(ids)).is_err(), "{other}");
        }
    }
    // Every accepted text is its own canonical spelling.
    assert_eq!(Ulid::parse(id).unwrap().to_string(), id);
}
