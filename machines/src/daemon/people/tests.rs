//! Persons of a team as their own and as others see them.

use crate::daemon::testing::{World, at, json, text};
use messaging_proto::identity::Identity;
use messaging_proto::json::Value;
use messaging_proto::name::{Label, PersonId};
use messaging_proto::realm::Role;
use messaging_proto::roster::Member;

const DAY: u64 = 86_400_000;

fn get(world: &mut World, number: usize, person: &str) -> Value {
    let admin = world.connect(number);
    world.ok(number, admin, "people.get", &format!(r#"{{"person":"{person}"}}"#))
}

#[test]
fn persons_are_found_by_their_names() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "bobby/nas", "alice/tower"]);
    let admin = world.connect(0);
    let found = world.ok(0, admin, "people.search", r#"{"query":"BOB"}"#);
    assert_eq!(
        found,
        json(
            r#"{"people":[{"name":"bob","org":"team","person":"bob","self":false},
                {"name":"bobby","org":"team","person":"bobby","self":false}]}"#
        )
    );
    let found = world.ok(0, admin, "people.search", r#"{"query":"b","limit":1}"#);
    assert_eq!(at(&found, "people").as_array().unwrap().len(), 1);
    let own = world.ok(0, admin, "people.search", r#"{"query":"alice"}"#);
    assert_eq!(at(&own, "people").as_array().unwrap().len(), 1, "a person is found once");
    assert_eq!(at(&own, "people.0.self"), &Value::Bool(true));
    let none = world.ok(0, admin, "people.search", r#"{"query":"team"}"#);
    assert_eq!(at(&none, "people").as_array().unwrap().len(), 0);
    for params in [r#"{"query":""}"#, r#"{"query":"a","limit":26}"#, "{}", r#"{"query":"a","more":1}"#] {
        assert_eq!(world.refused(0, admin, "people.search", params), "invalid_request", "{params}");
    }
}

#[test]
fn a_person_with_machines_and_sessions() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "bob/tower"]);
    world.session(1, 'b', "agent", "codex");
    let bob = get(&mut world, 0, "bob");
    assert_eq!((text(&bob, "relation"), text(&bob, "org")), ("org", "team"));
    assert_eq!(at(&bob, "devices").as_array().unwrap().len(), 2);
    assert_eq!(text(&bob, "devices.0.label"), "laptop");
    assert_eq!(at(&bob, "devices.0.current"), &Value::Bool(true));
    assert_eq!(at(&bob, "devices.0.online"), &Value::Bool(true));
    assert_eq!(at(&bob, "devices.0.self"), &Value::Bool(false));
    assert_eq!(text(&bob, "entries.0.address"), "bob/agent@laptop");
    assert_eq!(at(&bob, "entries").as_array().unwrap().len(), 1);
    assert_eq!(text(&bob, "reach.source"), "default");
    assert_eq!(text(&bob, "reach.can.ask"), "request");
    world.link(2, false);
    let bob = get(&mut world, 0, "bob");
    assert_eq!(at(&bob, "devices.1.online"), &Value::Bool(false));
    // Oneself: nothing to be told about reach or changes.
    let own = get(&mut world, 1, "bob");
    assert_eq!(text(&own, "relation"), "self");
    assert_eq!(at(&own, "devices.0.self"), &Value::Bool(true));
    assert!(own.get("reach").is_none() && own.get("deviceChanges").is_none());
    let admin = world.connect(0);
    assert_eq!(world.refused(0, admin, "people.get", r#"{"person":"nobody"}"#), "not_found");
    assert_eq!(world.refused(0, admin, "people.get", "{}"), "invalid_request");
    let agent = world.agent(0);
    for method in ["people.get", "people.search"] {
        assert_eq!(world.refused(0, agent, method, "{}"), "forbidden", "{method}");
    }
}

/// §8.2 "A person's devices changed": news for seven days, the newest first, at most ten.
#[test]
fn changes_of_a_persons_machines_are_news_for_a_week() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(0);
    let reach = |world: &mut World| at(&world.ok(0, admin, "contacts.list", "{}"), "reach.0").clone();
    world.wall += 8 * DAY;
    assert!(reach(&mut world).get("devicesChangedAt").is_none(), "what was long ago is no news");
    assert_eq!(at(&get(&mut world, 0, "bob"), "deviceChanges").as_array().unwrap().len(), 0);
    let mut last = None;
    for number in 0..6 {
        let identity = Identity::generate([number + 50; 32], [number + 50; 32]);
        let member = Member {
            machine: identity.machine(),
            enc: identity.enc(),
            person: PersonId::parse("bob").unwrap(),
            role: Role::Member,
            label: Label::parse(&format!("m{number}")).unwrap(),
        };
        world.reroster(|author| author.member_add(&member).unwrap());
        if number > 0 {
            world.reroster(|author| author.member_remove(&member.machine).unwrap());
        }
        last = Some(member);
    }
    // The test's roster is dated when the tests start.
    world.wall -= 8 * DAY;
    let bob = get(&mut world, 0, "bob");
    let changes = at(&bob, "deviceChanges").as_array().unwrap();
    assert_eq!(changes.len(), 10);
    assert_eq!((text(&changes[0], "change"), text(&changes[0], "label")), ("removed", "m5"));
    assert_eq!(text(&changes[0], "device"), last.unwrap().machine.to_string());
    assert_eq!((text(&changes[1], "change"), text(&changes[1], "approver")), ("added", "desk"));
    assert_eq!(at(&reach(&mut world), "devicesChangedAt"), at(&changes[0], "at"));
    let devices = at(&bob, "devices").as_array().unwrap();
    assert_eq!(devices.len(), 7);
    let labels: Vec<_> = devices.iter().map(|device| text(device, "label")).collect();
    assert_eq!(labels[..2], ["laptop", "m0"], "those it has come first");
    assert_eq!(at(&devices[2], "current"), &Value::Bool(false));
    assert_eq!(text(&devices[2], "removedBy"), world.machine(0).to_string());
    assert!(devices[2].get("removedAt").is_some() && devices[2].get("online").is_none());
    world.wall += 8 * DAY;
    assert_eq!(at(&get(&mut world, 0, "bob"), "deviceChanges").as_array().unwrap().len(), 0);
}
