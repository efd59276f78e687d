//! Keys and values of the relay's tables.

use super::opening::{Opening, Refused, decide};
use super::*;
use messaging_proto::hash::Hash;
use messaging_proto::realm::Head;
use proptest::prelude::*;

fn id(bits: u128) -> Ulid {
    let millis = (bits >> 80) as u64;
    let random: [u8; 10] = bits.to_be_bytes()[6..].try_into().unwrap();
    Ulid::new(Wall(millis), random)
}

proptest! {
    #[test]
    fn ids_keep_their_bits_and_their_order(a: u128, b: u128) {
        prop_assert_eq!(IdKey::from(&id(a)).0, a.to_be_bytes());
        prop_assert_eq!(IdKey::from(&id(a)).cmp(&IdKey::from(&id(b))), id(a).as_str().cmp(id(b).as_str()));
    }

    #[test]
    fn keys_sort_as_their_parts_and_read_back(
        a: (u64, u64, u64), b: (u64, u64, u64), ids: ([u8; 16], [u8; 16]),
    ) {
        let order = |p: (u64, u64, u64)| order_key(Seat(p.0), Seat(p.1), Position(p.2));
        prop_assert_eq!(order(a).cmp(&order(b)), a.cmp(&b));
        prop_assert_eq!(order_of(&order(a)), Some((Seat(a.0), Seat(a.1), Position(a.2))));
        prop_assert!(order(a).starts_with(&pair_prefix(Seat(a.0), Seat(a.1))));
        prop_assert!(order(a).starts_with(&seat_prefix(Seat(a.0))));
        let expiry = |p: (u64, u64, u64), id| expiry_key(Wall(p.0), Seat(p.1), IdKey(id));
        prop_assert_eq!(expiry(a, ids.0).cmp(&expiry(b, ids.1)), (a.0, a.1, ids.0).cmp(&(b.0, b.1, ids.1)));
        prop_assert_eq!(expiry_of(&expiry(a, ids.0)), Some((Wall(a.0), Seat(a.1), IdKey(ids.0))));
        prop_assert!(expiry_start(Wall(a.0)) <= expiry(a, ids.0));
    }

    #[test]
    fn rows_read_back_and_cut_rows_do_not(
        n: (u64, u64, u64, u64), size: u32, half: [u8; 16], whole: [u8; 32], text: String, cut: usize, at: usize,
    ) {
        let text = format!("{{{text}}}");
        macro_rules! holds {
            ($type:ident, $row:expr, $fixed:literal) => {
                let row = $row;
                let bytes = row.encode();
                prop_assert_eq!($type::decode(&bytes), Some(row));
                let cut = cut % bytes.len();
                prop_assert_eq!($type::decode(&bytes[..cut]), None);
                let mut other = bytes.to_vec();
                other[0] = 3;
                prop_assert_eq!($type::decode(&other), None, "another version");
                other[0] = 2;
                other[at % bytes.len()] ^= 1 << (at % 7);
                prop_assert_eq!($type::decode(&other), None, "a flipped bit");
                if $fixed {
                    // The first form has no sum.
                    let mut first = bytes[..bytes.len() - 4].to_vec();
                    first[0] = 1;
                    prop_assert_eq!($type::decode(&first), Some(row));
                    first.push(0);
                    prop_assert_eq!($type::decode(&first), None, "something after it");
                }
            };
        }
        holds!(TeamCounts, TeamCounts { teams: n.0, next_seat: n.1 }, true);
        holds!(QueueCounts, QueueCounts { rows: n.0, bytes: n.1, next: n.2, purged: Wall(n.3) }, true);
        holds!(TeamRow, TeamRow { head: Head { seq: n.0, hash: Hash(whole) } }, true);
        holds!(EnvelopeRow, EnvelopeRow { at: Wall(n.0), text: &text }, false);
        holds!(OrderRow, OrderRow { exp: Wall(n.0), id: IdKey(half), size }, true);
        let (to, position) = (Seat(n.1), Position(n.2));
        holds!(SeenRow, SeenRow { exp: Wall(n.0), to, position, print: Print(half) }, true);
        holds!(PlaceRow, PlaceRow { to, position }, true);
        holds!(PresenceRow, PresenceRow { seq: n.0, exp: Wall(n.1), text: &text }, false);
        holds!(SweepRow, SweepRow { team: Hash(whole), done: MachineId(whole) }, true);
    }
}

/// User report 9 for stores: names that are prefixes of each other meet no other's rows.
#[test]
fn keys_of_one_table_have_one_length() {
    let key = seat_key(&Hash([1; 32]), &MachineId([2; 32]));
    assert_eq!(key.len(), 64);
    assert!(key.starts_with(&[1; 32]));
    assert_eq!(roster_key(&Hash([1; 32]), 7)[32..], 7_u64.to_be_bytes());
    assert_eq!(seen_key(Seat(1), IdKey([3; 16])).len(), 24);
    assert_eq!(envelope_key(Position(5)), 5_u64.to_be_bytes());
}

#[test]
fn a_store_is_opened_by_its_records() {
    let number = |n: u64| n.to_be_bytes();
    let cases = [
        (false, None, None, Ok(Opening::New)),
        (true, None, None, Err(Refused::PreReset)),
        (true, Some(1), Some(1), Err(Refused::PreReset)),
        (true, Some(3), Some(9), Err(Refused::PreReset)),
        (true, Some(2), Some(1), Ok(Opening::Known)),
        (true, Some(2), Some(2), Err(Refused::Newer)),
        (true, Some(2), None, Err(Refused::Newer)),
    ];
    for (has_tables, generation, min_reader, expected) in cases {
        let (generation, min_reader) = (generation.map(number), min_reader.map(number));
        let row = |value: &Option<[u8; 8]>| value.map(Vec::from);
        let (generation, min_reader) = (row(&generation), row(&min_reader));
        assert_eq!(decide(has_tables, generation.as_deref(), min_reader.as_deref()), expected);
    }
    assert_eq!(decide(true, Some(b"2"), Some(&number(1))), Err(Refused::PreReset));
    assert_eq!((Refused::PreReset.reason(), Refused::Newer.reason()), ("pre-reset", "newer"));
}
