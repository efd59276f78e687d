//! Laws of encodings, ids, keys and names: one spelling each, and nothing that a single bit can turn.
#![allow(missing_docs, clippy::unwrap_used)]

use messaging_proto::domain::Domain;
use messaging_proto::hash::{Hash, sha256, sha256_of};
use messaging_proto::json::Value;
use messaging_proto::key::{
    ByText, EncKey, EncSecret, MachineId, Sig, SigningKey, VerifyKey, verify, verify_value,
};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use messaging_proto::units::{cut_utf16, utf16_len};
use messaging_proto::{b64, b64u};
use proptest::collection::vec;
use proptest::prelude::*;

const URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

proptest! {
    #[test]
    fn base64url_has_one_spelling(bytes in vec(any::<u8>(), 0..80), text in "[A-Za-z0-9_+/= -]{0,12}") {
        let encoded = b64u::encode(&bytes);
        prop_assert_eq!(encoded.len(), b64u::encoded_len(bytes.len()));
        prop_assert_eq!(b64u::decode(&encoded), Some(bytes.clone()));
        prop_assert!(b64u::decode(&text).is_none_or(|bytes| b64u::encode(&bytes) == text));
        // No other last character stands for the same bytes.
        if let Some((_, start)) = encoded.as_bytes().split_last() {
            let others = URL.iter().filter(|letter| {
                let text = [start, &[**letter]].concat();
                b64u::decode(std::str::from_utf8(&text).unwrap()) == Some(bytes.clone())
            });
            prop_assert_eq!(others.count(), 1);
        }
    }

    #[test]
    fn base64_has_one_spelling(bytes in vec(any::<u8>(), 0..80), text in "[A-Za-z0-9_+/= -]{0,12}") {
        prop_assert_eq!(b64::decode(&b64::encode(&bytes)), Some(bytes));
        prop_assert!(b64::decode(&text).is_none_or(|bytes| b64::encode(&bytes) == text));
    }

    #[test]
    fn fixed_lengths_are_exact(bytes in vec(any::<u8>(), 0..70)) {
        let text = b64u::encode(&bytes);
        prop_assert_eq!(Hash::parse(&text).is_some(), bytes.len() == 32);
        prop_assert_eq!(Sig::parse(&text).is_some(), bytes.len() == 64);
    }

    #[test]
    fn ids_by_text_are_ordered_as_their_texts(one: [u8; 32], other: [u8; 32], alike in 0_usize..=32) {
        // Also of those that begin alike.
        let mut near = one;
        near[alike..].copy_from_slice(&other[alike..]);
        for other in [other, near] {
            let (one, other) = (MachineId(one), MachineId(other));
            prop_assert_eq!(ByText(one).cmp(&ByText(other)), one.to_string().cmp(&other.to_string()));
        }
    }

    #[test]
    fn ulids_have_one_spelling(millis in 0_u64..1 << 48, random: [u8; 10], text in "[0-9A-Za-z]{26}") {
        let id = Ulid::new(Wall(millis), random);
        prop_assert_eq!(id.millis(), millis);
        prop_assert_eq!(Ulid::parse(id.as_str()), Some(id));
        prop_assert_eq!(id.to_string().len(), 26);
        prop_assert_eq!(Ulid::parse(&id.as_str().to_lowercase()), None);
        let letters_ok = text.bytes().all(|byte| b"0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains(&byte));
        prop_assert_eq!(Ulid::parse(&text).is_some(), letters_ok && text.as_bytes()[0] <= b'7');
    }

    #[test]
    fn ulids_order_by_time_and_then_by_their_random_bits(
        one in (0_u64..1 << 48, any::<[u8; 10]>()),
        two in (0_u64..1 << 48, any::<[u8; 10]>()),
    ) {
        let ids = [one, two].map(|(millis, random)| Ulid::new(Wall(millis), random));
        prop_assert_eq!(ids[0].cmp(&ids[1]), one.cmp(&two));
        prop_assert_eq!(ids[0].as_str().cmp(ids[1].as_str()), one.cmp(&two));
    }

    #[test]
    fn units_are_those_of_utf16(text in any::<String>(), max in 0_usize..40) {
        let units: Vec<u16> = text.encode_utf16().collect();
        prop_assert_eq!(utf16_len(&text), units.len());
        let cut = cut_utf16(&text, max);
        prop_assert!(text.starts_with(cut) && utf16_len(cut) <= max);
        // It is the longest such start.
        if let Some(next) = text[cut.len()..].chars().next() {
            prop_assert!(utf16_len(cut) + next.len_utf16() > max);
        }
    }

    #[test]
    fn a_signature_holds_for_its_message_and_key_only(seed: [u8; 32], other: [u8; 32], message in vec(any::<u8>(), 0..60)) {
        let key = SigningKey::from_seed(seed);
        let sig = key.sign(&message);
        prop_assert_eq!(&sig, &key.clone().sign(&message));
        prop_assert!(verify(&key.machine(), &sig, &message));
        prop_assert_eq!(VerifyKey::new(&key.machine()).unwrap().machine(), key.machine());
        prop_assert_eq!(SigningKey::from_seed(other) == key, seed == other);
        prop_assert_eq!(verify(&SigningKey::from_seed(other).machine(), &sig, &message), seed == other);
        prop_assert!(!verify(&key.machine(), &sig, &[&message[..], b"x"].concat()));
    }

    #[test]
    fn both_sides_agree(one: [u8; 32], two: [u8; 32]) {
        let (one, two) = (EncSecret::from_bytes(one), EncSecret::from_bytes(two));
        let shared = one.agree(&two.public()).unwrap();
        prop_assert_eq!(&*shared, &*two.agree(&one.public()).unwrap());
        prop_assert_eq!(one == two, one.public() == two.public());
    }
}

#[test]
fn no_single_bit_of_a_signature_a_message_or_a_key_may_change() {
    let key = SigningKey::from_seed([1; 32]);
    let message = b"the exact bytes that were signed";
    let sig = key.sign(message);
    for bit in 0..512 {
        let mut bytes = sig.0;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&key.machine(), &Sig(bytes), message), "signature bit {bit}");
    }
    for bit in 0..message.len() * 8 {
        let mut bytes = *message;
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&key.machine(), &sig, &bytes), "message bit {bit}");
    }
    for bit in 0..256 {
        let mut id = key.machine();
        id.0[bit / 8] ^= 1 << (bit % 8);
        assert!(!verify(&id, &sig, message), "key bit {bit}");
    }
}

#[test]
fn a_signature_for_one_purpose_holds_for_no_other() {
    let key = SigningKey::from_seed([2; 32]);
    let value = Value::from([("n", Value::int(1))]);
    for one in Domain::ALL {
        let sig = key.sign_value(*one, &value).unwrap();
        for two in Domain::ALL {
            assert_eq!(verify_value(&key.machine(), &sig, *two, &value), one == two);
            assert_eq!(one.prefix().starts_with(two.prefix()), one == two, "one prefix starts another");
        }
        assert!(one.prefix().starts_with("messaging/1/") && one.prefix().ends_with('\n'));
    }
}

#[test]
fn no_secret_is_shared_with_a_key_of_small_order() {
    let mut zero_points = vec![[0; 32], [0; 32]];
    zero_points[1][0] = 1;
    for first in [0xec, 0xed, 0xee] {
        let mut point = [0xff; 32];
        (point[0], point[31]) = (first, 0x7f);
        zero_points.push(point);
    }
    let order_8 =
        ["4Ot6fDtBuK4WVuP68Z_EatoJjeucMrH9hmIFFl9JuAA", "X5yVvKNQjCSx0LFVnIPvWwREXMRYHI6G2CJO3dCfEVc"];
    zero_points.extend(order_8.map(|text| EncKey::parse(text).unwrap().0));
    let secret = EncSecret::from_bytes([9; 32]);
    for point in zero_points {
        assert!(secret.agree(&EncKey(point)).is_none(), "{}", EncKey(point));
        // The top bit does not count in X25519.
        let mut high = point;
        high[31] |= 0x80;
        assert!(secret.agree(&EncKey(high)).is_none());
    }
}

#[test]
fn private_keys_print_their_public_half() {
    let key = SigningKey::from_seed([3; 32]);
    assert_eq!(format!("{key:?}"), format!("SigningKey({})", key.machine()));
    assert!(!format!("{key:?}").contains(&b64u::encode(&[3; 32])));
    let secret = EncSecret::from_bytes([4; 32]);
    assert_eq!(format!("{secret:?}"), format!("EncSecret({})", secret.public()));
    assert_eq!(format!("{:?}", key.machine()), format!("MachineId({})", key.machine()));
    assert_eq!(MachineId::parse(&key.machine().to_string()).unwrap().as_bytes(), &key.machine().0);
}

#[test]
fn every_character_of_a_ulid_has_its_alphabet() {
    for at in 0..26 {
        for byte in 0..0x80_u8 {
            let mut text = *b"01M7Q5CQG0B6CF8BHJAKRXAX3R";
            text[at] = byte;
            let alphabet: &[u8] = if at == 0 { b"01234567" } else { b"0123456789ABCDEFGHJKMNPQRSTVWXYZ" };
            let parsed = Ulid::parse(std::str::from_utf8(&text).unwrap());
            assert_eq!(parsed.is_some(), alphabet.contains(&byte), "{byte} at {at}");
        }
    }
}

#[test]
fn a_time_past_48_bits_is_cut() {
    let id = Ulid::new(Wall((1 << 53) - 1), [0xff; 10]);
    assert_eq!(id.as_str(), "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    assert_eq!(format!("{id:?}"), "Ulid(7ZZZZZZZZZZZZZZZZZZZZZZZZZ)");
}

#[test]
fn pieces_hash_as_their_whole() {
    assert_eq!(sha256_of([b"ab".as_slice(), b"", b"c"]), sha256(b"abc"));
    assert_eq!(sha256(b"").to_string(), "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU");
}
