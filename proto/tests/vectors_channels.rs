//! Every case of `channels.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::a2a::Part;
use messaging_proto::channel::{
    Arrival, Channel, CopyResult, Effect, fan_out, fan_out_direct, line_state, line_text,
};
use messaging_proto::envelope::{Class, End, Header, Kind, To};
use messaging_proto::hash::sha256;
use messaging_proto::json::FromValue;
use messaging_proto::meaning::{self, Meaning};
use messaging_proto::name::PersonId;
use messaging_proto::payload::{ChannelOp, CodeText, Conv, MessagePayload, Typed};
use messaging_proto::realm::RealmView;
use messaging_proto::time::Wall;
use messaging_proto::units::utf16_len;
use serde_json::{Value, json};
use support::chats::{Crowd, Memory};
use support::realm::TestRealm;
use support::rules::{key, machine, person, ulid};
use support::{assert_all_covered, cases, ours, text};

const CHANNELS: &str = include_str!("../../vectors/messaging/channels.json");

fn file() -> Value {
    serde_json::from_str(CHANNELS).unwrap()
}

fn persons(list: &Value) -> Vec<PersonId> {
    list.as_array().unwrap().iter().map(|one| person(one.as_str().unwrap())).collect()
}

fn wall(case: &Value, member: &str) -> Wall {
    Wall(case[member].as_u64().unwrap())
}

/// The payload that says what an op of the file says, and its sender.
fn payload(op: &Value) -> (End, Value) {
    let from = End::from_value(&ours(&op["from"])).unwrap();
    let texts = op["texts"].as_array().cloned().unwrap_or_else(|| vec![json!("a change")]);
    let parts: Vec<Value> = texts.into_iter().map(|text| json!({"text": text})).collect();
    let mut payload = json!({
        "kind": "message",
        "message": {"messageId": op["messageId"], "role": "ROLE_USER", "parts": parts},
    });
    for (object, member) in [("message", "contextId"), ("", "conv")] {
        if let Some(value) = op.get(member) {
            let object = if object.is_empty() { &mut payload } else { &mut payload[object] };
            object[member] = value.clone();
        }
    }
    (from, payload)
}

/// The schema of the payload, and its meaning.
fn read(op: &Value) -> Result<(End, MessagePayload, Meaning), Code> {
    let (from, raw) = payload(op);
    let realm = TestRealm::small();
    let to = End { person: person("alice"), device: key(9).machine(), agent: None };
    let header = Header {
        id: ulid("01M3250V00AAAAAAAAAAAAAAAA"),
        kind: Kind::Message,
        realm: realm.realm(),
        anchor: realm.anchor(),
        from,
        to: To::Device(to),
        ts: Wall(1),
        exp: Wall(2),
        class: Some(Class::Contact),
        reply_to: None,
        seal: None,
    };
    let raw = ours(&raw);
    let typed = Typed::read(Kind::Message, &raw).map_err(|_| Code::InvalidRequest)?;
    let meaning = meaning::check(&header, &raw, &typed).map_err(|_| Code::InvalidRequest)?;
    let Typed::Message(payload) = typed else { panic!("a message") };
    Ok((header.from, *payload, meaning))
}

fn run(memory: &mut Memory, people: &Crowd, now: Wall, op: &Value) -> Result<&'static str, Code> {
    let (from, payload, meaning) = read(op)?;
    assert_eq!(meaning, if op.get("conv").is_some() { Meaning::Channel } else { Meaning::Line });
    let arrival = Arrival::of(&from, &payload).unwrap();
    let effect = memory.try_apply(people, now, &arrival).map_err(|error| error.code())?;
    let name = match &effect {
        Effect::Duplicate => "duplicate",
        Effect::Unchanged => "unchanged",
        Effect::Filed(_) => "filed",
        Effect::Applied { .. } => "applied",
        Effect::Ended { .. } => "ended",
    };
    memory.write(effect);
    Ok(name)
}

fn assert_outcome(case: &Value, name: &str, outcome: Result<&'static str, Code>) {
    match outcome {
        Ok(done) => assert_eq!(case["expect"], *done, "{name}"),
        Err(code) => assert_eq!(case["error"], *code.as_str(), "{name}"),
    }
}

#[test]
fn covered() {
    assert_all_covered(&file(), &["sequences", "shapes", "caps", "fanOut", "lineStates", "texts"]);
}

#[test]
fn sequences() {
    for case in cases(&file(), "sequences") {
        let (name, start) = (text(case, "name"), &case["start"]);
        let mut memory = Memory::new(person(text(&start["self"], "person")));
        let mut people = Crowd { admit: persons(&start["admit"]).into_iter().collect(), ..Crowd::default() };
        let admins = start["admins"].as_array().unwrap().iter();
        people.admins = admins.map(|one| machine(one.as_str().unwrap())).collect();
        for channel in start["channels"].as_array().unwrap() {
            let channel: Channel = serde_json::from_value(channel.clone()).unwrap();
            memory.channels.insert(channel.id, channel);
        }
        for ended in start["ended"].as_array().unwrap() {
            memory.ended.insert(ulid(text(ended, "id")), wall(ended, "at"));
        }
        assert_eq!(start["lines"], json!([]), "{name}");
        assert!(!case["steps"].as_array().unwrap().is_empty(), "{name}");
        for step in case["steps"].as_array().unwrap() {
            if let Some(lost) = step.get("lose") {
                let lost = persons(lost).into_iter().collect();
                memory.lose(&lost);
                people.admit.retain(|person| !lost.contains(person));
                assert_eq!(step["expect"], "applied", "{name}");
            } else {
                let outcome = run(&mut memory, &people, wall(step, "now"), &step["op"]);
                assert_outcome(step, name, outcome);
            }
            assert_eq!(memory.to_json(), step["state"], "{name}");
        }
    }
}

#[test]
fn shapes() {
    for case in cases(&file(), "shapes") {
        let outcome = read(&case["op"]).map(|(.., meaning)| {
            assert_eq!(meaning, Meaning::Channel);
            "ok"
        });
        assert_outcome(case, text(case, "name"), outcome);
    }
}

#[test]
fn caps() {
    for case in cases(&file(), "caps") {
        let name = text(case, "name");
        let mut memory = Memory::new(person("alice"));
        for held in case["channels"].as_array().unwrap() {
            let channel = json!({
                "id": held["id"], "name": held["name"], "local": held["name"],
                "creator": case["creator"], "persons": case["persons"],
            });
            let channel: Channel = serde_json::from_value(channel).unwrap();
            memory.channels.insert(channel.id, channel);
        }
        let people = Crowd { admit: persons(&case["persons"]).into_iter().collect(), ..Crowd::default() };
        let before = memory.clone();
        let outcome = run(&mut memory, &people, wall(case, "now"), &case["op"]);
        assert_outcome(case, name, outcome);
        if outcome.is_ok() {
            let created = &memory.channels[&ulid(text(&case["op"]["conv"], "id"))];
            assert_eq!(created.local.as_str(), text(case, "local"), "{name}");
        } else {
            assert_eq!(memory, before, "{name}");
        }
    }
}

#[test]
fn copies() {
    for case in cases(&file(), "fanOut") {
        let channel: Channel = serde_json::from_value(case["channel"].clone()).unwrap();
        let mut people = Crowd::default();
        for (name, machines) in case["machines"].as_object().unwrap() {
            let machines = machines.as_array().unwrap().iter();
            let machines = machines.map(|one| machine(one.as_str().unwrap())).collect();
            people.machines.insert(person(name), machines);
        }
        let me = machine(text(&case["me"], "machine"));
        let asked = &case["op"];
        let asked_persons = || persons(&asked["persons"]);
        let op = match text(asked, "op") {
            "create" => {
                Some(ChannelOp::Create { persons: channel.persons.clone(), creator: channel.creator.clone() })
            }
            "invite" => Some(ChannelOp::Invite { persons: asked_persons() }),
            "leave" => Some(ChannelOp::Leave),
            "remove" => Some(ChannelOp::Remove { persons: asked_persons() }),
            "post" => Some(ChannelOp::Post),
            other => {
                assert_eq!(other, "dm");
                None
            }
        };
        let copies: Vec<Value> = match op {
            Some(op) => fan_out(&people, &me, &channel, &op)
                .into_iter()
                .map(|copy| {
                    assert!(people.machines[&copy.person].contains(&copy.machine));
                    let conv = Conv::Channel(copy.conv).to_value();
                    let conv: Value =
                        serde_json::from_str(&messaging_proto::json::canonicalize(&conv).unwrap()).unwrap();
                    json!({"machine": copy.machine, "conv": conv})
                })
                .collect(),
            None => fan_out_direct(&people, &me, &person(text(asked, "to")))
                .into_iter()
                .map(|machine| json!({"machine": machine, "conv": null}))
                .collect(),
        };
        assert_eq!(json!(copies), case["expect"], "{}", case["name"]);
    }
}

#[test]
fn line_states() {
    for case in cases(&file(), "lineStates") {
        let copies: Vec<(PersonId, CopyResult)> = case["copies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|copy| {
                let code = copy["code"].as_str().unwrap_or("refused");
                let result = match text(copy, "result") {
                    "pending" => CopyResult::Pending,
                    "delivered" => CopyResult::Delivered,
                    "held" => CopyResult::Held,
                    "rejected" => CopyResult::Rejected(CodeText::parse(code).unwrap()),
                    other => {
                        assert_eq!(other, "expired");
                        CopyResult::Expired
                    }
                };
                (person(text(copy, "person")), result)
            })
            .collect();
        let state =
            line_state(case["request"].as_bool().unwrap(), copies.iter().map(|(who, result)| (who, result)));
        let mut found = json!({});
        if let Some(state) = state {
            found["state"] = json!(state.as_str());
            if let messaging_proto::channel::LineState::Refused(refused) = state {
                found["refused"] = json!(refused);
            }
        }
        assert_eq!(found, case["expect"], "{}", case["name"]);
    }
}

#[test]
fn texts() {
    for case in cases(&file(), "texts") {
        let part = |part: &Value| {
            let repeat = usize::try_from(part["repeat"].as_u64().unwrap()).unwrap();
            let whole = format!("{}{}{}", text(part, "head"), "x".repeat(repeat), text(part, "tail"));
            Part::from_value(&ours(&json!({"text": whole}))).unwrap()
        };
        let filed = line_text(&case["parts"].as_array().unwrap().iter().map(part).collect::<Vec<_>>());
        assert_eq!(sha256(filed.as_bytes()).to_string(), text(case, "sha256"), "{}", case["name"]);
        assert_eq!(json!(utf16_len(&filed)), case["units"], "{}", case["name"]);
    }
}
