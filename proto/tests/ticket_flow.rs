//! Inviting and joining, and the text forms, beyond the vectors.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic)]

use messaging_proto::Code;
use messaging_proto::b64u;
use messaging_proto::hash::Hash;
use messaging_proto::json::{Value, canonicalize};
use messaging_proto::key::{EncKey, MachineId, SigningKey};
use messaging_proto::name::{Label, PersonName, TeamName};
use messaging_proto::relay_url::RelayUrl;
use messaging_proto::roster::{
    ApplyOptions, Author, InviteFault, Member, Role, Roster, RosterError, genesis,
};
use messaging_proto::ticket::{AdmitCard, InviteTicket, TeamCard, TicketError, create_invite, create_redeem};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use proptest::prelude::*;

const START: u64 = 1_795_000_000_000;
const MARKER: &str = "Tr0ub4dor&3";

fn key(number: u8) -> SigningKey {
    SigningKey::from_seed([number; 32])
}

fn relay() -> RelayUrl {
    RelayUrl::parse("wss://relay.example/v1/connect").unwrap()
}

fn team(name: &str) -> Roster {
    let mut roster = Roster::new();
    let founder = Member {
        machine: key(1).machine(),
        enc: EncKey([1; 32]),
        person: PersonName::parse("alice").unwrap().into(),
        role: Role::Admin,
        label: Label::parse("desk").unwrap(),
    };
    let first = genesis(&key(1), Wall(START), &TeamName::parse(name).unwrap(), &founder).unwrap();
    roster.apply(&first, ApplyOptions::STORED).unwrap();
    roster
}

fn invite(roster: &mut Roster, ttl_ms: u64) -> Result<InviteTicket, TicketError> {
    let admin = key(1);
    let author = Author::new(&admin, roster, Wall(START)).unwrap();
    let person = PersonName::parse("bob").unwrap();
    let id = Ulid::new(Wall(START), [3; 10]);
    let (entry, ticket) = create_invite(&author, &relay(), id, key(99), &person, ttl_ms)?;
    // The seed is in the ticket only.
    assert!(!canonicalize(&entry).unwrap().contains(&b64u::encode(&[99; 32])));
    roster.apply(&entry, ApplyOptions::STORED).unwrap();
    Ok(ticket)
}

#[test]
fn invite_and_join() {
    let mut roster = team("Blue");
    let ticket = invite(&mut roster, 60_000).unwrap();
    assert_eq!(ticket.expires, Wall(START + 60_000));
    let ticket = InviteTicket::decode(&ticket.encode().unwrap()).unwrap();
    let label = Label::parse("laptop").unwrap();
    let join = |ts| create_redeem(&ticket, &roster, &key(2), &EncKey([2; 32]), &label, Wall(ts)).unwrap();
    let mut joined = roster.clone();
    joined.apply(&join(START + 59_999), ApplyOptions::STORED).unwrap();
    let bob = joined.member(&key(2).machine()).unwrap();
    assert_eq!((bob.person.as_str(), bob.role, bob.label.as_str()), ("bob", Role::Member, "laptop"));
    let late = roster.clone().apply(&join(START + 60_000), ApplyOptions::STORED);
    assert_eq!(late, Err(RosterError::Invite(InviteFault::Expired)));
    // It is used up.
    let again =
        create_redeem(&ticket, &joined, &key(4), &EncKey([4; 32]), &Label::parse("x").unwrap(), Wall(START));
    let again = joined.apply(&again.unwrap(), ApplyOptions::STORED);
    assert_eq!(again, Err(RosterError::Invite(InviteFault::NotOpen)));

    let elsewhere = create_redeem(&ticket, &team("Red"), &key(2), &EncKey([2; 32]), &label, Wall(START));
    assert_eq!(elsewhere.clone().unwrap_err().code(), Code::InviteInvalid);
    assert_eq!(elsewhere.unwrap_err(), TicketError::AnotherTeam);
    let nowhere = create_redeem(&ticket, &Roster::new(), &key(2), &EncKey([2; 32]), &label, Wall(START));
    assert_eq!(nowhere.unwrap_err(), TicketError::AnotherTeam);
}

#[test]
fn lifetimes() {
    for (ttl_ms, ok) in [(0, false), (1, true), (604_800_000, true), (604_800_001, false), (u64::MAX, false)]
    {
        let invited = invite(&mut team("Blue"), ttl_ms);
        assert_eq!(invited.is_ok(), ok, "{ttl_ms}");
        if let Err(error) = invited {
            assert_eq!((error.code(), &error), (Code::InvalidRequest, &TicketError::Lifetime));
        }
    }
}

#[test]
fn what_cannot_be_read_back_is_not_written() {
    let mut ticket = invite(&mut team("Blue"), 1).unwrap();
    ticket.expires = Wall(1 << 53);
    assert_eq!(ticket.encode().unwrap_err().code(), Code::InvalidRequest);
    ticket.expires = Wall(1);
    // A URL of 2048 characters outside ASCII is allowed, and takes three bytes each.
    ticket.relay = RelayUrl::parse(&format!("wss://relay.example/{}", "€".repeat(2000))).unwrap();
    assert_eq!(ticket.encode().unwrap_err(), TicketError::TooLarge);
    let card = AdmitCard {
        machine: MachineId([0; 32]),
        enc: EncKey([0; 32]),
        person: PersonName::parse("bob").unwrap(),
        label: Label::parse("x").unwrap(),
    };
    assert_eq!(card.encode().unwrap_err(), TicketError::UnusableKey);
    let enc = &card.enc;
    let object =
        format!(r#"{{"v":"messaging/1","machine":"{enc}","enc":"{enc}","person":"bob","label":"x"}}"#);
    let text = format!("messaging-admit.{}", b64u::encode(object.as_bytes()));
    assert_eq!(AdmitCard::decode(&text).unwrap_err(), TicketError::UnusableKey);
    assert_eq!(TicketError::UnusableKey.code(), Code::InvalidRequest);
}

#[test]
fn a_ticket_hides_its_seed_and_errors_hide_their_input() {
    let ticket = invite(&mut team("Blue"), 1).unwrap();
    assert!(!format!("{ticket:?}").contains(&b64u::encode(&[99; 32])));
    let object = |text: &str| format!("messaging1.{}", b64u::encode(text.as_bytes()));
    for text in [
        MARKER.to_owned(),
        format!("messaging1.{MARKER}"),
        object(MARKER),
        object(&format!(r#"{{"v":"{MARKER}"}}"#)),
        object(&format!(r#"{{"v":"messaging/1","relay":"{MARKER}"}}"#)),
        object(&format!(r#"{{"v":"messaging/1","{MARKER}":1e999}}"#)),
        object(&format!(r#""{}""#, MARKER.repeat(1_000))),
        format!("messaging1.{}", "A".repeat(10_000)),
    ] {
        let error = InviteTicket::decode(&text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidRequest);
        assert!(!format!("{error} {error:?}").contains(MARKER));
    }
}

fn person() -> impl Strategy<Value = PersonName> {
    "[a-z][a-z0-9-]{0,31}".prop_map(|text| PersonName::parse(&text).unwrap())
}

fn label() -> impl Strategy<Value = Label> {
    "[a-z0-9][a-z0-9-]{0,31}".prop_map(|text| Label::parse(&text).unwrap())
}

fn url() -> impl Strategy<Value = RelayUrl> {
    prop_oneof![
        "wss://[a-z]{1,20}\\.example(:[1-9][0-9]{0,3})?/[a-z/]{0,30}",
        "ws://127\\.0\\.0\\.[1-9]:[1-9][0-9]{0,3}/v1/connect",
        Just("ws://localhost/".to_owned()),
    ]
    .prop_map(|text| RelayUrl::parse(&text).unwrap())
}

proptest! {
    #[test]
    fn a_ticket_comes_back(
        relay in url(), team: [u8; 32], random: [u8; 10], person in person(),
        expires in 0..(1_u64 << 53), seed: [u8; 32],
    ) {
        let invite_id = Ulid::new(Wall(expires), random);
        let secret = SigningKey::from_seed(seed);
        let ticket =
            InviteTicket { relay, team: Hash(team), invite_id, person, expires: Wall(expires), secret };
        let text = ticket.encode().unwrap();
        let back = InviteTicket::decode(&text).unwrap();
        prop_assert_eq!(back.encode().unwrap(), text);
        prop_assert_eq!(back.secret.seed(), ticket.secret.seed());
        prop_assert_eq!(
            (back.relay, back.team, back.invite_id, back.person, back.expires),
            (ticket.relay, ticket.team, ticket.invite_id, ticket.person, ticket.expires)
        );
    }

    #[test]
    fn cards_come_back(
        relay in url(), team: [u8; 32], name in "\\PC{1,32}", seed: [u8; 32], enc: [u8; 32],
        person in person(), label in label(),
    ) {
        let name = TeamName::parse(&name.chars().take(32).collect::<String>()).unwrap();
        let card = TeamCard { relay, team: Hash(team), name };
        prop_assert_eq!(TeamCard::decode(&card.encode().unwrap()).unwrap(), card);
        let machine = SigningKey::from_seed(seed).machine();
        let card = AdmitCard { machine, enc: EncKey(enc), person, label };
        prop_assert_eq!(AdmitCard::decode(&card.encode().unwrap()).unwrap(), card);
    }

    #[test]
    fn a_changed_proof_never_redeems(at in 0..500_usize, bit in 0..8_u8) {
        let mut roster = team("Blue");
        let ticket = invite(&mut roster, 60_000).unwrap();
        let label = Label::parse("laptop").unwrap();
        let entry = create_redeem(&ticket, &roster, &key(2), &EncKey([2; 32]), &label, Wall(START)).unwrap();
        let proof = entry.get("proof").unwrap().as_str().unwrap();
        let mut bytes = b64u::decode(proof).unwrap();
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        let signer = key(2);
        let author = Author::new(&signer, &roster, Wall(START)).unwrap();
        let sig = messaging_proto::key::Sig(bytes.try_into().unwrap());
        let member: Value = entry.get("member").unwrap().clone();
        let forged = author.redeem(&ticket.invite_id, &sig, member).unwrap();
        let refused = roster.apply(&forged, ApplyOptions::STORED);
        prop_assert_eq!(refused, Err(RosterError::Invite(InviteFault::Proof)));
    }
}
