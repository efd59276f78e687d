//! Every array of `roster.json` but its cards (`vectors_ticket.rs`), and the `roster` of `negative.json`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod files;

use files::{arrays_are, cases, load, read, text};
use messaging_proto::domain::{Domain, signed_bytes};
use messaging_proto::hash::{Hash, hash_value};
use messaging_proto::json::{FromValue, Invalid, Object, Value, canonicalize};
use messaging_proto::key::{MachineId, Sig, SigningKey};
use messaging_proto::nonce::Nonce;
use messaging_proto::roster::{
    ApplyOptions, Author, Entry, Head, Op, Relation, Roster, RosterError, genesis, head_relation,
};
use messaging_proto::ticket::{JoinClaim, join_proof, redeem_proof, verify_join_proof, verify_redeem_proof};
use messaging_proto::ulid::Ulid;
use messaging_proto::{Code, b64u};

const ROSTER: &str = include_str!("../../vectors/messaging/roster.json");
const NEGATIVE: &str = include_str!("../../vectors/messaging/negative.json");

fn chain(file: &Value) -> Vec<Value> {
    cases(file, "chain").iter().map(|case| case.get("entry").unwrap().clone()).collect()
}

fn key(file: &Value, machine: &MachineId) -> SigningKey {
    let machines = file.get("machines").unwrap().as_object().unwrap();
    let (_, found) = machines
        .iter()
        .find(|(_, one)| text(one, "machine") == machine.to_string())
        .expect("a known machine");
    let key = SigningKey::from_seed(b64u::decode_array(text(found, "seed")).unwrap());
    assert_eq!(key.machine(), *machine);
    key
}

#[test]
fn every_array_is_covered() {
    let covered = ["machines", "chain", "proofs", "accepted", "checkAt", "relations", "cards"];
    arrays_are(&load(ROSTER), &covered);
    // The others of this file are the envelope's.
    arrays_are(&load(NEGATIVE), &["entries", "roster", "envelopes", "open", "seal"]);
}

#[test]
fn chain_texts_hashes_and_states() {
    let file = load(ROSTER);
    let mut roster = Roster::new();
    for (seq, case) in cases(&file, "chain").iter().enumerate() {
        let name = text(case, "name");
        let entry = case.get("entry").unwrap();
        let mut unsigned = entry.as_object().unwrap().clone();
        unsigned.remove("sig");
        let signed = signed_bytes(Domain::Roster, &unsigned.into()).unwrap();
        assert_eq!(String::from_utf8(signed).unwrap(), text(case, "signed"), "{name}");
        let head = roster.apply(entry, ApplyOptions::STORED).unwrap();
        assert_eq!(head.seq, seq as u64);
        assert_eq!(head.hash.to_string(), text(case, "hash"), "{name}");
        assert_eq!(head.hash, hash_value(entry).unwrap());
        assert_eq!(roster.hash_at(head.seq), Some(head.hash));
        assert_eq!(&state(&roster), case.get("state").unwrap(), "{name}");
        let stored = roster.entry(head.seq).unwrap();
        assert_eq!(stored.text().as_ref(), canonicalize(entry).unwrap());
        assert_eq!(stored.value().unwrap().get("sig"), entry.get("sig"));
    }
}

/// The state as the vectors write it.
fn state(roster: &Roster) -> Value {
    let object = |members: Vec<(String, Value)>| Value::from(members.into_iter().collect::<Object>());
    let mut members: Vec<_> = roster.members().collect();
    members.sort_by_key(|member| member.machine.to_string());
    let mut removed: Vec<_> = roster.removed().map(ToString::to_string).collect();
    removed.sort();
    let mut rekeyed: Vec<_> = members
        .iter()
        .filter_map(|member| {
            Some((member.machine.to_string(), Value::int(roster.rekey_seq(&member.machine)?)))
        })
        .collect();
    rekeyed.sort_by(|left, right| left.0.cmp(&right.0));
    let invites = roster.invites().map(|(id, invite)| {
        let members = vec![
            ("invitePub".to_owned(), Value::text(invite.invite_pub.to_string())),
            ("person".to_owned(), Value::text(invite.person.as_str())),
            ("expires".to_owned(), Value::int(invite.expires.0)),
            ("state".to_owned(), Value::text(invite.state.as_str())),
        ];
        (id.to_string(), object(members))
    });
    let state = object(vec![
        ("team".to_owned(), Value::text(roster.team().unwrap().to_string())),
        ("head".to_owned(), roster.head().unwrap().to_value()),
        ("members".to_owned(), Value::Array(members.iter().map(|member| member.to_value()).collect())),
        ("removed".to_owned(), Value::Array(removed.into_iter().map(Value::String).collect())),
        ("invites".to_owned(), object(invites.collect())),
        ("rekeySeq".to_owned(), object(rekeyed)),
    ]);
    // Both sides in one order of members.
    sorted(&state)
}

fn sorted(value: &Value) -> Value {
    let text = canonicalize(value).unwrap();
    files::convert(&serde_json::from_str(&text).unwrap())
}

/// The author side builds the chain of the file again, signatures included.
#[test]
fn an_author_writes_the_same_chain() {
    let file = load(ROSTER);
    let mut roster = Roster::new();
    let mut same = 0;
    for raw in &chain(&file) {
        let entry = Entry::from_value(raw).unwrap();
        let key = key(&file, &entry.by);
        let author = Author::new(&key, &roster, entry.ts);
        let author = || author.unwrap();
        let person = || read(raw, "person");
        let written = match &entry.op {
            Op::Genesis { name, founder } => genesis(&key, entry.ts, name, founder),
            Op::InviteCreate { invite_id, invite_pub, expires, .. } => {
                author().invite_create(invite_id, invite_pub, &person(), *expires)
            }
            Op::InviteRevoke { invite_id } => author().invite_revoke(invite_id),
            Op::InviteRedeem { invite_id, proof, member } => {
                author().redeem(invite_id, proof, member.to_value())
            }
            Op::MemberAdd { member } => author().member_add(member),
            Op::MemberRemove { machine } => author().member_remove(machine),
            Op::MemberRole { machine, role } => author().member_role(machine, *role),
            Op::MemberRekey { machine, enc } => author().member_rekey(machine, enc),
        };
        let written = written.unwrap();
        // Some entries have members that only a newer author writes.
        if Entry::from_value(&written).unwrap().sig == entry.sig {
            assert_eq!(canonicalize(&written).unwrap(), canonicalize(raw).unwrap(), "{}", entry.op.name());
            same += 1;
        } else {
            assert_ne!(names(&written), names(raw), "{}", entry.op.name());
        }
        roster.clone().apply(&written, ApplyOptions::STORED).unwrap();
        roster.apply(raw, ApplyOptions::STORED).unwrap();
    }
    assert!(same >= 12, "{same}");
}

/// Every member name, at any depth.
fn names(value: &Value) -> Vec<String> {
    let mut names: Vec<String> = value.as_object().into_iter().flat_map(|object| object.iter()).fold(
        Vec::new(),
        |mut names, (name, value)| {
            names.push(name.to_owned());
            names.extend(self::names(value));
            names
        },
    );
    names.sort();
    names
}

#[test]
fn proofs() {
    let file = load(ROSTER);
    for case in cases(&file, "proofs") {
        let name = text(case, "name");
        let seed = SigningKey::from_seed(b64u::decode_array(text(case, "seed")).unwrap());
        let invite_pub: MachineId = read(case, "invitePub");
        assert_eq!(seed.machine(), invite_pub, "{name}");
        let value = case.get("value").unwrap();
        let proof: Sig = read(case, "proof");
        let team: Hash = read(value, "team");
        let invite_id: Ulid = read(value, "inviteId");
        let domain = match text(case, "domain") {
            "invite" => {
                let member = value.get("member").unwrap();
                assert_eq!(redeem_proof(&seed, &team, &invite_id, member).unwrap(), proof, "{name}");
                assert!(verify_redeem_proof(&invite_pub, &proof, &team, &invite_id, member), "{name}");
                let mut other = member.as_object().unwrap().clone();
                other.set("zz", Value::Null);
                assert!(
                    !verify_redeem_proof(&invite_pub, &proof, &team, &invite_id, &other.into()),
                    "{name}"
                );
                Domain::Invite
            }
            "inviteJoin" => {
                let nonce: Nonce = read(value, "nonce");
                let relay = text(value, "relay");
                let claim = JoinClaim { relay, team: &team, invite_id: &invite_id, nonce: &nonce };
                assert_eq!(join_proof(&seed, &claim).unwrap(), proof, "{name}");
                assert!(verify_join_proof(&invite_pub, &proof, &claim), "{name}");
                let other = JoinClaim { relay: "wss://other.example", ..claim };
                assert!(!verify_join_proof(&invite_pub, &proof, &other), "{name}");
                Domain::InviteJoin
            }
            other => panic!("{other}"),
        };
        let signed = String::from_utf8(signed_bytes(domain, value).unwrap()).unwrap();
        assert_eq!(signed, text(case, "signed"), "{name}");
    }
}

#[test]
fn accepted_on_top() {
    let file = load(ROSTER);
    let base = Roster::from_entries(&chain(&file)).unwrap();
    for case in cases(&file, "accepted") {
        let name = text(case, "name");
        let entry = case.get("entry").unwrap();
        let options = options(case).unwrap();
        let mut roster = base.clone();
        let head = roster.apply(entry, options).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(head.seq, base.head().unwrap().seq + 1, "{name}");
        assert_eq!(head.hash, hash_value(entry).unwrap(), "{name}");
    }
}

fn options(case: &Value) -> Result<ApplyOptions, Invalid> {
    case.get("options").map_or(Ok(ApplyOptions::STORED), ApplyOptions::from_value)
}

#[test]
fn check_at() {
    let file = load(ROSTER);
    let roster = Roster::from_entries(&chain(&file)).unwrap();
    let before = format!("{:?}", state(&roster));
    for case in cases(&file, "checkAt") {
        let name = text(case, "name");
        let outcome = roster.check_at(case.get("entry").unwrap());
        match case.get("fork") {
            Some(fork) => assert_eq!(Value::Bool(outcome.unwrap().0), *fork, "{name}"),
            None => assert_eq!(outcome.unwrap_err().code().as_str(), text(case, "error"), "{name}"),
        }
    }
    assert_eq!(format!("{:?}", state(&roster)), before);
    let first = &chain(&file)[0];
    assert_eq!(Roster::new().check_at(first), Err(RosterError::AnotherTeam));
}

#[test]
fn relations() {
    let file = load(ROSTER);
    let roster = Roster::from_entries(&chain(&file)).unwrap();
    for case in cases(&file, "relations") {
        let head: Head = read(case, "head");
        let relation = head_relation(&roster, &head);
        let expected = match relation {
            Relation::Ahead => "ahead",
            Relation::Consistent => "consistent",
            Relation::Diverged { mine } => {
                assert_eq!(roster.hash_at(head.seq), Some(mine));
                "diverged"
            }
        };
        assert_eq!(expected, text(case, "relation"), "{}", text(case, "name"));
        assert_eq!(head_relation(&Roster::new(), &head), Relation::Ahead);
    }
}

#[test]
fn refused() {
    let file = load(NEGATIVE);
    let entries = cases(&file, "entries");
    for case in cases(&file, "roster") {
        let name = text(case, "name");
        let base = if case.get("empty").is_some() {
            Roster::new()
        } else {
            let up_to = case.get("upTo").map_or(entries.len(), |_| read::<u64>(case, "upTo") as usize);
            Roster::from_entries(&entries[..up_to]).unwrap()
        };
        let mut roster = base.clone();
        // Options come first: they are read before the entry is looked at.
        let code = match options(case) {
            Err(invalid) => invalid.code(),
            Ok(options) => roster.apply(case.get("entry").unwrap(), options).unwrap_err().code(),
        };
        assert_eq!(code.as_str(), text(case, "error"), "{name}");
        assert_eq!(format!("{:?}", whole(&roster)), format!("{:?}", whole(&base)), "{name}");
    }
}

fn whole(roster: &Roster) -> (Option<Value>, Vec<String>) {
    let state = roster.head().map(|_| state(roster));
    (state, roster.entries(-1).map(|entry| entry.text().to_string()).collect())
}

#[test]
fn from_entries_and_replays() {
    let file = load(ROSTER);
    let entries = chain(&file);
    let full = Roster::from_entries(&entries).unwrap();
    let replayed = Roster::replay_trusted(&entries).unwrap();
    let texts: Vec<_> = full.entries(-1).map(|entry| entry.text().clone()).collect();
    let from_texts = Roster::replay_texts(&texts).unwrap();
    for roster in [&replayed, &from_texts] {
        assert_eq!(*roster, full);
        assert_eq!(whole(roster), whole(&full));
        assert_eq!(roster.name(), full.name());
    }
    assert_eq!(Roster::from_entries(&[]).unwrap_err().code(), Code::InvalidRequest);
    assert_eq!(Roster::replay_trusted(&[]).unwrap_err(), RosterError::Empty);
    assert_eq!(Roster::replay_texts::<&str>([]).unwrap_err(), RosterError::Empty);
    assert_eq!(Roster::from_entries(&entries[1..]).unwrap_err(), RosterError::Conflict);

    // A changed text breaks the chain at the next entry; at the end, the head tells.
    let mut changed: Vec<String> = texts.iter().map(ToString::to_string).collect();
    changed[3] = changed[3].replace("\"phone\"", "\"phony\"");
    assert_eq!(Roster::replay_texts(&changed).unwrap_err(), RosterError::Conflict);
    assert_ne!(
        Roster::replay_texts(&changed[..4]).unwrap().head(),
        Roster::replay_texts(&texts[..4]).unwrap().head()
    );
    assert_eq!(Roster::replay_texts(["{"]).unwrap_err().code(), Code::InvalidRequest);
}
