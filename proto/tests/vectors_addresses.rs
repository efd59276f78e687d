//! Every case of `addresses.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::address::{Address, Candidate, ConvRef, RoomRef, SessionAddress, ToolAddress, resolve};
use messaging_proto::key::MachineId;
use messaging_proto::name::{ChannelName, HostedId, Label, PersonId, PersonName, SessionName};
use messaging_proto::relay_url::{RelayUrl, is_allowed_relay_url, relay_origin};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use support::{assert_all_covered, cases, text};

const FILE: &str = include_str!("../../vectors/messaging/addresses.json");

fn file() -> Value {
    serde_json::from_str(FILE).unwrap()
}

/// Asserts the outcome of one case, which has either `member` or an error.
fn assert_case(case: &Value, member: &str, got: Option<Value>) {
    assert_eq!(case.get("error").is_some(), got.is_none(), "{case}");
    if let Some(got) = got {
        assert_eq!(got, case[member], "{case}");
    } else {
        assert_eq!(case["error"], "invalid_request");
    }
}

fn with_label(mut object: Value, label: Option<&Label>) -> Value {
    if let Some(label) = label {
        object["label"] = json!(label);
    }
    object
}

#[test]
fn addresses() {
    let file = file();
    assert_all_covered(&file, &["addresses", "toolAddresses", "convRefs", "names", "relayUrls", "resolve"]);
    for case in cases(&file, "addresses") {
        let source = text(case, "text");
        let address = Address::parse(source);
        if let Some(address) = &address {
            assert_eq!(address.to_string(), source);
        }
        let full = SessionAddress::parse(source);
        assert_eq!(full.is_some(), address.as_ref().is_some_and(|address| address.label.is_some()), "{case}");
        if let Some(full) = full {
            assert_eq!(full.to_string(), source);
            assert_eq!(Some(Address::from(full)), address);
        }
        let got = address.map(|Address { person, session, label }| {
            with_label(json!({"person": person, "session": session}), label.as_ref())
        });
        assert_case(case, "address", got);
    }
}

#[test]
fn tool_addresses() {
    let me = PersonId::parse("me").unwrap();
    for case in cases(&file(), "toolAddresses") {
        let source = text(case, "text");
        let address = ToolAddress::parse(source);
        if let Some(address) = &address {
            assert_eq!(address.to_string(), source);
        }
        // The file's own person is called `me`, and it marks what was written with `me`.
        let own = matches!(address, Some(ToolAddress::OwnAgent { .. }));
        let got = address.map(|address| match address.seen_by(&me) {
            ToolAddress::Own => json!({"kind": "self"}),
            ToolAddress::Channel(name) => json!({"kind": "channel", "name": name}),
            ToolAddress::Person(person) => json!({"kind": "person", "person": person}),
            ToolAddress::Agent { person, agent, label } => {
                let mut object = json!({"kind": "agent", "person": person, "agent": agent});
                if own {
                    object["own"] = json!(true);
                }
                with_label(object, label.as_ref())
            }
            ToolAddress::OwnAgent { .. } => panic!("the own person has a name"),
        });
        assert_case(case, "address", got);
    }
}

#[test]
fn conversation_references() {
    for case in cases(&file(), "convRefs") {
        let source = text(case, "text");
        let reference = ConvRef::parse(source);
        if let Some(reference) = &reference {
            assert_eq!(reference.to_string(), source);
        }
        let room = RoomRef::parse(source);
        let got = reference.map(|reference| match reference {
            ConvRef::Room(room_too) => {
                assert_eq!(room.as_ref(), Some(&room_too));
                match room_too {
                    RoomRef::Dm(person) => json!({"kind": "dm", "person": person}),
                    RoomRef::Channel(name) => json!({"kind": "channel", "name": name}),
                }
            }
            ConvRef::Agent { person, agent } => {
                assert_eq!(room, None);
                json!({"kind": "agent", "person": person, "agent": agent})
            }
        });
        assert_case(case, "ref", got);
    }
}

#[test]
fn names() {
    for case in cases(&file(), "names") {
        let source = text(case, "text");
        let valid = match text(case, "type") {
            "person" => PersonName::parse(source).is_some(),
            "label" => Label::parse(source).is_some(),
            "session" => SessionName::parse(source).is_some(),
            "channel" => ChannelName::parse(source).is_some(),
            "personId" => {
                let id = PersonId::parse(source);
                let either = PersonName::parse(source).map(PersonId::from);
                assert_eq!(id, either.or(HostedId::parse(source).map(PersonId::from)));
                assert!(id.as_ref().is_none_or(|id| id.is_hosted() == source.contains('_')));
                id.is_some()
            }
            other => panic!("{other} has no check here"),
        };
        assert_eq!(valid, case["valid"].as_bool().unwrap(), "{case}");
    }
}

#[test]
fn relay_urls() {
    for case in cases(&file(), "relayUrls") {
        let url = text(case, "url");
        let allowed = case["allowed"].as_bool().unwrap();
        assert_eq!(is_allowed_relay_url(url), allowed, "{case}");
        assert_eq!(relay_origin(url).as_deref(), case["origin"].as_str(), "{case}");
        let typed = RelayUrl::parse(url);
        assert_eq!(typed.as_ref().map(RelayUrl::origin).as_deref(), case["origin"].as_str(), "{case}");
        assert_eq!(typed.is_some(), allowed, "{case}");
        assert!(typed.is_none_or(|typed| typed.as_str() == url), "{case}");
    }
}

#[test]
fn resolution() {
    let file = file();
    let world = &file["resolve"];
    let own = MachineId::parse(text(world, "own")).unwrap();
    let members: Vec<(MachineId, PersonId, Label)> = cases(world, "members")
        .iter()
        .map(|member| {
            let machine = MachineId::parse(text(member, "machine")).unwrap();
            let label = Label::parse(text(member, "label")).unwrap();
            (machine, PersonId::parse(text(member, "person")).unwrap(), label)
        })
        .collect();
    let presences: BTreeMap<MachineId, (&str, Vec<&str>)> = world["presences"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(machine, presence)| {
            let sessions = presence["sessions"].as_array().unwrap().iter();
            let names = sessions.map(|session| text(session, "name")).collect();
            (MachineId::parse(machine).unwrap(), (text(presence, "label"), names))
        })
        .collect();
    let own_sessions: Vec<&str> =
        world["ownSessions"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for case in cases(world, "cases") {
        let address = Address::parse(text(case, "address")).unwrap();
        let candidates =
            members.iter().filter(|(_, person, _)| *person == address.person).map(|(machine, _, label)| {
                let lists = if *machine == own {
                    own_sessions.contains(&address.session.as_str())
                } else {
                    presences.get(machine).is_some_and(|(claimed, sessions)| {
                        *claimed == label.as_str() && sessions.contains(&address.session.as_str())
                    })
                };
                Candidate { machine: *machine, label, lists }
            });
        match resolve(address.label.as_ref(), candidates) {
            Ok(machine) => assert_eq!(machine.to_string(), case["machine"], "{case}"),
            Err(error) => assert_eq!(error.code().as_str(), case["error"], "{case}"),
        }
    }
}
