//! The laws of chats over drawn sequences of operations, and what the vectors leave out.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::a2a::Part;
use messaging_proto::channel::{
    Arrival, Channel, CopyResult, Effect, Line, People, fan_out, is_kept, mark_read, refused_change,
};
use messaging_proto::envelope::End;
use messaging_proto::json::FromValue;
use messaging_proto::key::EncKey;
use messaging_proto::limits::{CHANNEL_PERSONS, CLOCK_SKEW_MS, TTL_MS};
use messaging_proto::name::{ChannelName, Label, PersonId, SessionName, TeamName};
use messaging_proto::payload::{ChannelConv, ChannelOp, CodeText};
use messaging_proto::roster::{ApplyOptions, Author, Member, Role, Roster, genesis};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use proptest::prelude::*;
use std::collections::BTreeSet;
use support::chats::{Crowd, Memory};
use support::rules::{key, machine, person};

/// In every name a peer gives, and in no error.
const MARKER: &str = "zq";
const KEPT: u64 = TTL_MS + CLOCK_SKEW_MS;

fn who(number: u8) -> PersonId {
    person(&format!("{MARKER}{number}"))
}

fn id(number: u8) -> Ulid {
    Ulid::new(Wall(1), [number; 10])
}

fn part(text: &str) -> Part {
    Part::from_value(&support::ours(&serde_json::json!({"text": text}))).unwrap()
}

#[derive(Clone, Debug)]
struct Step {
    from: End,
    message: Ulid,
    conv: Option<ChannelConv>,
    later: u64,
    lost: BTreeSet<PersonId>,
}

/// Mostly few persons, so that they meet; sometimes enough to fill a channel.
fn some() -> impl Strategy<Value = Vec<PersonId>> {
    let few = prop::collection::btree_set(0..4_u8, 1..=4);
    let many = prop::collection::btree_set(0..40_u8, 1..=CHANNEL_PERSONS);
    prop_oneof![6 => few, 1 => many].prop_map(|set| set.into_iter().map(who).collect())
}

fn op() -> impl Strategy<Value = ChannelOp> {
    // The receiver, 0, is in most of what it gets.
    let listed = (some(), prop::bool::weighted(0.9)).prop_map(|(mut persons, with)| {
        if with && !persons.contains(&who(0)) && persons.len() < CHANNEL_PERSONS {
            persons.push(who(0));
        }
        persons
    });
    prop_oneof![
        4 => (listed, 0..4_u8).prop_map(|(persons, by)| ChannelOp::Create { persons, creator: who(by) }),
        2 => some().prop_map(|persons| ChannelOp::Invite { persons }),
        2 => Just(ChannelOp::Leave),
        2 => some().prop_map(|persons| ChannelOp::Remove { persons }),
        2 => Just(ChannelOp::Post),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let conv = (0..3_u8, 0..8_u8, op()).prop_map(|(channel, name, op)| {
        // Mostly the channel's own name: two channels share theirs.
        let name = if name == 0 { "zq-other" } else { "zq-eng" };
        ChannelConv { id: id(channel), name: ChannelName::parse(name).unwrap(), op }
    });
    let later = prop_oneof![8 => 0..1000_u64, 1 => Just(KEPT), 1 => Just(KEPT + 1)];
    let lost = prop_oneof![20 => Just(BTreeSet::new()), 1 => (1..4_u8).prop_map(|one| [who(one)].into())];
    (0..4_u8, prop::bool::weighted(0.1), 100..250_u8, prop::option::weighted(0.9, conv), later, lost)
        .prop_map(|(from, agent, message, conv, later, lost)| {
            let post = conv.as_ref().is_none_or(|conv| conv.op == ChannelOp::Post);
            let agent = (agent && post).then(|| SessionName::parse("zq").unwrap());
            let from = End { person: who(from), device: key(from).machine(), agent };
            Step { from, message: id(message), conv, later, lost }
        })
}

fn assert_invariants(memory: &Memory) {
    let locals: BTreeSet<&ChannelName> = memory.channels.values().map(|channel| &channel.local).collect();
    assert_eq!(locals.len(), memory.channels.len());
    for channel in memory.channels.values() {
        let members: BTreeSet<&PersonId> = channel.persons.iter().collect();
        assert_eq!(members.len(), channel.persons.len());
        assert!(members.len() <= CHANNEL_PERSONS);
        assert!(channel.has(&memory.own));
    }
    let lines: BTreeSet<Ulid> = memory.lines.iter().map(|line| line.id).collect();
    assert_eq!(lines.len(), memory.lines.len());
    for line in &memory.lines {
        // Contract §3.4, "Unread", in its own words.
        let own_agent = line.agent.is_some() && line.room.to_string() == format!("dm:{}", memory.own);
        let to_read = line.person != memory.own || own_agent;
        assert_eq!((line.is_unread(5, 4), line.is_unread(5, 5)), (to_read, false));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_sequence_keeps_the_laws(steps in prop::collection::vec(step(), 1..60)) {
        let mut memory = Memory::new(who(0));
        let mut people = Crowd { admit: (0..38).map(who).collect(), ..Crowd::default() };
        people.admins = [key(2).machine()].into();
        let parts = [part("hello")];
        let mut now = Wall(1_000);
        for step in &steps {
            now = now.plus(step.later);
            let before = memory.clone();
            let arrival = Arrival {
                from: &step.from, message: step.message, context: None, conv: step.conv.as_ref(), parts: &parts,
            };
            let result = memory.try_apply(&people, now, &arrival);
            prop_assert_eq!(&result, &memory.try_apply(&people, now, &arrival));
            match result {
                Ok(effect) => {
                    let same = matches!(effect, Effect::Duplicate | Effect::Unchanged);
                    memory.write(effect.clone());
                    prop_assert_eq!(memory == before, same);
                    // What was done is not done again, unless its notice went with its channel.
                    if !matches!(effect, Effect::Ended { .. } | Effect::Unchanged) {
                        prop_assert_eq!(memory.try_apply(&people, now, &arrival), Ok(Effect::Duplicate));
                    }
                }
                Err(error) => {
                    let told = format!("{error} {error:?}");
                    prop_assert!(!told.contains(MARKER), "{}", told);
                    prop_assert_eq!(&memory, &before);
                }
            }
            for created in memory.channels.keys().filter(|id| !before.channels.contains_key(id)) {
                let kept = before.ended.get(created).is_some_and(|at| now.0 - at.0 <= KEPT);
                prop_assert!(!kept, "an ended channel came back");
            }
            memory.lose(&step.lost);
            assert_invariants(&memory);
        }
    }

    #[test]
    fn copies_go_to_every_member_once_and_never_back(op in op(), members in some(), gone in 0..5_u8) {
        let machines = |number: u8| vec![key(number).machine(), key(number + 100).machine()];
        let mut people = Crowd::default();
        people.machines.extend((0..40_u8).filter(|one| *one != gone).map(|one| (who(one), machines(one))));
        let me = key(0).machine();
        let channel = Channel {
            id: id(1),
            name: ChannelName::parse("own").unwrap(),
            local: ChannelName::parse("local").unwrap(),
            creator: who(0),
            persons: members.clone(),
        };
        let copies = fan_out(&people, &me, &channel, &op);
        let reached: BTreeSet<_> = copies.iter().map(|copy| copy.machine).collect();
        prop_assert_eq!(reached.len(), copies.len());
        let mut persons: BTreeSet<PersonId> = members.iter().cloned().collect();
        match &op {
            ChannelOp::Create { persons: listed, .. } => persons = listed.iter().cloned().collect(),
            // Nobody new: nothing is said.
            ChannelOp::Invite { persons: added } if added.iter().all(|one| persons.contains(one)) => persons.clear(),
            ChannelOp::Invite { persons: added } => persons.extend(added.iter().cloned()),
            _ => {}
        }
        let mut expected: BTreeSet<_> =
            persons.iter().flat_map(|one| people.machines.get(one).into_iter().flatten().copied()).collect();
        expected.remove(&me);
        prop_assert_eq!(reached, expected);
        prop_assert!(copies.iter().all(|copy| copy.conv.name == channel.name && copy.conv.id == channel.id));
    }
}

#[test]
fn a_cursor_only_rises_and_not_past_the_newest() {
    for (old, up_to, newest, expected) in
        [(0, 5, 9, 5), (5, 3, 9, 5), (5, 12, 9, 9), (9, 3, 4, 9), (0, 0, 0, 0)]
    {
        assert_eq!(mark_read(old, up_to, newest), expected);
    }
}

#[test]
fn an_end_is_kept_to_its_last_millisecond_and_when_the_clock_goes_back() {
    let at = Wall(1_000_000);
    assert!(is_kept(at, Wall(0)) && is_kept(at, at) && is_kept(at, at.plus(KEPT)));
    assert!(!is_kept(at, at.plus(KEPT + 1)));
}

#[test]
fn a_change_is_refused_once_every_copy_is() {
    let rejected = |code: Code| CopyResult::Rejected(code.into());
    let cases = [
        (vec![rejected(Code::Forbidden), CopyResult::Expired], Some("forbidden")),
        (vec![CopyResult::Expired, rejected(Code::Forbidden)], Some("expired")),
        (vec![rejected(Code::Forbidden), CopyResult::Pending], None),
        (vec![rejected(Code::Forbidden), CopyResult::Delivered], None),
        (vec![], None),
    ];
    for (copies, expected) in cases {
        assert_eq!(refused_change(&copies).as_ref().map(CodeText::as_str), expected);
    }
    let channel = Channel {
        id: id(1),
        name: ChannelName::parse("eng").unwrap(),
        local: ChannelName::parse("eng-2").unwrap(),
        creator: who(0),
        persons: vec![who(0), who(1)],
    };
    let from = End { person: who(0), device: key(0).machine(), agent: None };
    let line = Line::refused(id(9), &from, &channel, &who(1), &Code::Forbidden.into());
    assert_eq!(line.text, "zq1 did not get a change of #eng-2: forbidden");
    assert_eq!(line.room.to_string(), "channel:eng-2");
    assert!(line.notice && line.out && !line.is_unread(1, 0));
    let row = serde_json::to_string(&line).unwrap();
    assert_eq!(serde_json::from_str::<Line>(&row).unwrap(), line);
}

#[test]
fn a_written_line_is_filed_with_its_addressee() {
    let parts = [part("hello")];
    let file = |agent: Option<&str>, with: u8| {
        let agent = agent.map(|agent| SessionName::parse(agent).unwrap());
        let from = End { person: who(0), device: key(0).machine(), agent };
        let line = Arrival { from: &from, message: id(9), context: Some(id(8)), conv: None, parts: &parts };
        Line::direct(&who(0), &who(with), &line)
    };
    for (agent, with, out) in [(None, 1, true), (Some("a"), 1, true), (None, 0, true), (Some("a"), 0, false)]
    {
        let line = file(agent, with);
        assert_eq!((line.room.to_string(), line.out), (format!("dm:zq{with}"), out));
        assert_eq!((line.thread, line.notice, line.text.as_str()), (Some(id(8)), false, "hello"));
    }
}

#[test]
fn machines_order_as_their_texts() {
    // `3` is before `b` as text, and after it as bytes.
    let texts =
        ["3b3mGA75ZnS4wvSa5H8rmlHUbkx5M1ZOuddeJVLMzPg", "bZptT-Ss7dgY9Lm2m-dKWCoQGyqZdS1VV3C6Usz5ABA"];
    let mut people = Crowd::default();
    people.machines.insert(who(1), texts.iter().rev().map(|text| machine(text)).collect());
    let sorted = messaging_proto::channel::fan_out_direct(&people, &key(0).machine(), &who(1));
    assert_eq!(sorted, texts.map(machine));
}

#[test]
fn a_roster_admits_who_has_a_machine() {
    let member = |number: u8, role| Member {
        machine: key(number).machine(),
        enc: EncKey([number; 32]),
        person: who(number),
        role,
        label: Label::parse("desk").unwrap(),
    };
    let mut roster = Roster::new();
    let name = TeamName::parse("Blue").unwrap();
    let start = Wall(1_795_000_000_000);
    let first = genesis(&key(1), start, &name, &member(1, Role::Admin)).unwrap();
    roster.apply(&first, ApplyOptions::STORED).unwrap();
    let founder = key(1);
    let add = Author::new(&founder, &roster, start).unwrap().member_add(&member(2, Role::Member)).unwrap();
    roster.apply(&add, ApplyOptions::STORED).unwrap();
    let seen = |number: u8| {
        let machine = key(number).machine();
        (roster.admits(&who(number)), roster.is_admin(&machine), roster.machines(&who(number)))
    };
    assert_eq!(seen(1), (true, true, vec![key(1).machine()]));
    assert_eq!(seen(2), (true, false, vec![key(2).machine()]));
    assert_eq!(seen(3), (false, false, vec![]));
}
