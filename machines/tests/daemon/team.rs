//! `team.*`: every method, its result and each of its errors.

use crate::common::{URL, World, at, json, text};
use messaging_machines::daemon::io::Tier;
use messaging_proto::json::Value;
use messaging_proto::limits;

pub(crate) fn create(person: &str, label: &str) -> String {
    format!(r#"{{"relay":"{URL}","name":"team","person":"{person}","label":"{label}"}}"#)
}

pub(crate) fn join(ticket: &str, label: &str) -> String {
    format!(r#"{{"ticket":"{ticket}","label":"{label}"}}"#)
}

fn machine(world: &mut World, number: usize) -> String {
    text(&world.ok(number, "device.status", "{}"), "device").to_owned()
}

pub(crate) fn members(world: &mut World, number: usize) -> Vec<(String, String, String)> {
    let info = world.ok(number, "team.info", "{}");
    let members = at(&info, "members").as_array().unwrap();
    let member = |member: &Value| {
        let field = |name: &str| text(member, name).to_owned();
        (field("person"), field("label"), field("role"))
    };
    members.iter().map(member).collect()
}

/// A key pair of a machine that is nobody here.
fn stranger() -> (String, String) {
    let identity = messaging_proto::identity::Identity::generate([77; 32], [78; 32]);
    (identity.machine().to_string(), identity.enc().to_string())
}

#[test]
fn a_team_is_created_and_survives_a_restart() {
    let mut world = World::new(1);
    world.add();
    let made = world.ok(0, "team.create", &create("alice", "laptop"));
    assert_eq!((text(&made, "person"), text(&made, "label")), ("alice", "laptop"));
    assert!(world.nodes[0].identity.is_some(), "identity.json is written");
    assert!(world.nodes[0].pairing.is_none(), "pairing.json is gone");
    let config = json(&world.nodes[0].config);
    assert_eq!((text(&config, "relay"), text(&config, "person")), (URL, "alice"));
    world.settle();
    assert_eq!(text(&world.ok(0, "daemon.health", "{}"), "relay"), "connected");
    world.start(0);
    world.settle();
    let info = world.ok(0, "team.info", "{}");
    assert_eq!((text(&info, "team"), text(&info, "role")), (text(&made, "team"), "admin"));
    assert_eq!(text(&world.ok(0, "daemon.health", "{}"), "relay"), "connected");
}

#[test]
fn the_path_of_a_bare_relay_is_the_connect_path_and_unknown_config_stays() {
    let mut world = World::new(1);
    world.add();
    world.nodes[0].config = r#"{"note":"mine","retention":{"readDays":3}}"#.to_owned();
    world.start(0);
    let params = r#"{"relay":"ws://127.0.0.1:8787/","name":"t","person":"alice","label":"l"}"#;
    world.ok(0, "team.create", params);
    let config = json(&world.nodes[0].config);
    assert_eq!((text(&config, "relay"), text(&config, "note")), (URL, "mine"));
    assert!(config.get("retention").is_some());
}

#[test]
fn creating_is_refused() {
    let mut world = World::new(1);
    world.add();
    for bad in [
        r#"{"relay":"ws://relay.example/v1/connect","name":"t","person":"alice","label":"l"}"#,
        r#"{"relay":"wss://u:p@relay.example/","name":"t","person":"alice","label":"l"}"#,
        r#"{"relay":"wss://relay.example/","name":"","person":"alice","label":"l"}"#,
        r#"{"relay":"wss://relay.example/","name":"t","person":"Alice","label":"l"}"#,
        r#"{"relay":"wss://relay.example/","name":"t","person":"p_aaaaaaaaaaaaaaaaaaaaaaaaaa","label":"l"}"#,
        r#"{"relay":"wss://relay.example/","name":"t","person":"alice","label":"-"}"#,
        r#"{"relay":"wss://relay.example/","name":"t","person":"alice"}"#,
        r#"{"relay":"wss://relay.example/","name":"t","person":"alice","label":"l","x":1}"#,
    ] {
        let error = world.call(0, "team.create", bad).unwrap_err();
        assert_eq!(text(&error, "data.code"), "invalid_request", "{bad}");
        assert_eq!(at(&error, "code"), &Value::Number(-32602.0), "{bad}");
    }
    world.reach(false);
    assert_eq!(world.refused(0, "team.create", &create("alice", "l")), "relay_unavailable");
    world.settle();
    assert!(world.nodes[0].pairing.is_none(), "nothing was sent: the keys are gone");
}

#[test]
fn a_refused_creation_leaves_nothing() {
    let mut world = World::new(1);
    world.add();
    world.relay.config.team_creation = false;
    world.restart_relay();
    assert_eq!(world.refused(0, "team.create", &create("alice", "l")), "forbidden");
    assert!(world.nodes[0].pairing.is_none() && world.nodes[0].identity.is_none());
    world.relay.config.team_creation = true;
    world.restart_relay();
    world.ok(0, "team.create", &create("alice", "l"));
    assert_eq!(world.refused(0, "team.create", &create("alice", "l")), "invalid_state");
    assert_eq!(world.refused(0, "team.prepare", "{}"), "invalid_state");
    assert_eq!(world.refused(0, "team.claim", "{}"), "invalid_state");
}

#[test]
fn a_relay_limits_how_many_teams_are_founded() {
    let mut world = World::new(1);
    world.relay.config.limits.max_teams = 1;
    world.restart_relay();
    world.add();
    world.add();
    world.ok(0, "team.create", &create("alice", "l"));
    assert_eq!(world.refused(1, "team.create", &create("bob", "l")), "forbidden");
    world.relay.config.limits.max_teams = 10;
    world.relay.config.limits.team_creates_per_hour = 1;
    world.restart_relay();
    world.ok(1, "team.create", &create("bob", "l"));
}

#[test]
fn founding_keys_are_the_ones_that_found() {
    let mut world = World::new(1);
    world.add();
    let keys = world.ok(0, "team.prepare", "{}");
    assert_eq!(world.ok(0, "team.prepare", "{}"), keys, "the same while they are pending");
    world.start(0);
    assert_eq!(world.ok(0, "team.prepare", "{}"), keys, "across a restart");
    // A relay that lists another machine refuses, and the keys stay.
    let (other, _) = stranger();
    world.relay.config.genesis = vec![messaging_proto::key::MachineId::parse(&other).unwrap()];
    world.restart_relay();
    assert_eq!(world.refused(0, "team.create", &create("alice", "l")), "forbidden");
    assert_eq!(world.ok(0, "team.prepare", "{}"), keys);
    let pair = format!(r#"{{"relay":"{URL}","team":"{}","person":"bob","label":"l"}}"#, "A".repeat(43));
    assert_eq!(world.refused(0, "team.pair", &pair), "invalid_state");
    assert_eq!(world.refused(0, "team.claim", "{}"), "invalid_state");
    let listed = messaging_proto::key::MachineId::parse(text(&keys, "machine")).unwrap();
    world.relay.config.genesis = vec![listed];
    world.restart_relay();
    let made = world.ok(0, "team.create", &create("alice", "l"));
    assert_eq!(text(&made, "machine"), text(&keys, "machine"));
}

#[test]
fn files_that_cannot_be_written() {
    let mut world = World::new(1);
    world.add();
    world.nodes[0].fail_saves.push_back(true);
    assert_eq!(world.refused(0, "team.prepare", "{}"), "internal");
    world.nodes[0].fail_saves.push_back(true);
    assert_eq!(world.refused(0, "team.create", &create("alice", "l")), "internal");
    // The genesis is accepted, then identity.json fails twice and config.json once: they are tried again.
    world.nodes[0].fail_saves.extend([false, true, true, false, true]);
    world.ok(0, "team.create", &create("alice", "l"));
    assert!(world.nodes[0].fail_saves.is_empty());
    world.start(0);
    world.pass(5_000);
    assert_eq!(text(&world.ok(0, "daemon.health", "{}"), "relay"), "connected");
}

#[test]
fn only_an_admin_changes_the_team() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let (machine_, enc) = stranger();
    let alice = machine(&mut world, 0);
    for (method, params) in [
        ("team.invite", r#"{"person":"carol"}"#.to_owned()),
        ("team.revoke", r#"{"inviteId":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}"#.to_owned()),
        ("team.add", format!(r#"{{"machine":"{machine_}","enc":"{enc}","person":"carol","label":"l"}}"#)),
        ("team.remove", format!(r#"{{"machine":"{alice}"}}"#)),
        ("team.role", format!(r#"{{"machine":"{alice}","role":"member"}}"#)),
        ("team.rekey", format!(r#"{{"machine":"{alice}","enc":"{enc}"}}"#)),
    ] {
        assert_eq!(world.refused(1, method, &params), "forbidden", "{method}");
    }
}

#[test]
fn admin_methods_and_their_errors() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let (unknown, enc) = stranger();
    let (alice, bob) = (machine(&mut world, 0), machine(&mut world, 1));
    for (method, params, code) in [
        ("team.invite", r#"{"person":"carol","ttlMs":59999}"#.to_owned(), "invalid_request"),
        ("team.invite", r#"{"person":"carol","ttlMs":604800001}"#.to_owned(), "invalid_request"),
        ("team.revoke", r#"{"inviteId":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}"#.to_owned(), "invite_invalid"),
        ("team.remove", format!(r#"{{"machine":"{unknown}"}}"#), "not_found"),
        ("team.role", format!(r#"{{"machine":"{unknown}","role":"admin"}}"#), "not_found"),
        ("team.rekey", format!(r#"{{"machine":"{unknown}","enc":"{enc}"}}"#), "not_found"),
        ("team.remove", format!(r#"{{"machine":"{alice}"}}"#), "forbidden"),
        ("team.role", format!(r#"{{"machine":"{alice}","role":"member"}}"#), "forbidden"),
        ("team.rekey", format!(r#"{{"machine":"{alice}","enc":"{enc}"}}"#), "forbidden"),
        (
            "team.add",
            format!(r#"{{"machine":"{}","enc":"{enc}","person":"carol","label":"l"}}"#, "A".repeat(43)),
            "invalid_request",
        ),
        (
            "team.add",
            format!(r#"{{"machine":"{unknown}","enc":"{enc}","person":"bob","label":"desk"}}"#),
            "forbidden",
        ),
        ("team.role", format!(r#"{{"machine":"{bob}","role":"owner"}}"#), "invalid_request"),
    ] {
        assert_eq!(world.refused(0, method, &params), code, "{method} {params}");
    }
    let seq = |value: &Value| at(value, "seq").clone();
    world.ok(0, "team.role", &format!(r#"{{"machine":"{bob}","role":"admin"}}"#));
    world.settle();
    assert!(members(&mut world, 1).contains(&("bob".to_owned(), "desk".to_owned(), "admin".to_owned())));
    let rekey = world.ok(1, "team.rekey", &format!(r#"{{"machine":"{alice}","enc":"{enc}"}}"#));
    assert_eq!(seq(&rekey), Value::int(4), "genesis, invite, redeem, role, rekey");
    world.reach(false);
    for (method, params) in [
        ("team.invite", r#"{"person":"carol"}"#.to_owned()),
        ("team.remove", format!(r#"{{"machine":"{bob}"}}"#)),
    ] {
        assert_eq!(world.refused(0, method, &params), "relay_unavailable", "{method}");
    }
    world.reach(true);
    world.until("connected", 120_000, |world| {
        text(&world.ok(0, "daemon.health", "{}"), "relay") == "connected"
    });
    world.ok(0, "team.remove", &format!(r#"{{"machine":"{bob}"}}"#));
    world.settle();
    assert_eq!(members(&mut world, 0).len(), 1);
}

#[test]
fn without_a_team_there_is_nothing_to_change() {
    let mut world = World::new(1);
    world.add();
    let (machine, enc) = stranger();
    for (method, params) in [
        ("team.info", "{}".to_owned()),
        ("team.invite", r#"{"person":"carol"}"#.to_owned()),
        ("team.revoke", r#"{"inviteId":"01ARZ3NDEKTSV4RRFFQ69G5FAV"}"#.to_owned()),
        ("team.add", format!(r#"{{"machine":"{machine}","enc":"{enc}","person":"c","label":"l"}}"#)),
        ("team.remove", format!(r#"{{"machine":"{machine}"}}"#)),
        ("team.role", format!(r#"{{"machine":"{machine}","role":"admin"}}"#)),
        ("team.rekey", format!(r#"{{"machine":"{machine}","enc":"{enc}"}}"#)),
        ("identity.rotateEnc", "{}".to_owned()),
    ] {
        assert_eq!(world.refused(0, method, &params), "no_identity", "{method}");
    }
}

#[test]
fn info_lists_invites_by_their_state() {
    let mut world = World::team(1, &["alice/laptop"]);
    world.ticket(0, "open");
    let revoked = world.ok(0, "team.invite", r#"{"person":"revoked"}"#);
    world.ok(0, "team.revoke", &format!(r#"{{"inviteId":"{}"}}"#, text(&revoked, "inviteId")));
    world.ok(0, "team.invite", r#"{"person":"expired","ttlMs":60000}"#);
    world.join_next("used/desk");
    world.pass(61_000);
    let info = world.ok(0, "team.info", "{}");
    for invite in at(&info, "invites").as_array().unwrap() {
        assert_eq!(text(invite, "person"), text(invite, "state"));
    }
    let invite = world.ok(0, "team.invite", r#"{"person":"late"}"#);
    assert_eq!(at(&invite, "expires"), &Value::int(world.wall + limits::TTL_MS));
    let card = text(&info, "card");
    assert!(messaging_proto::ticket::TeamCard::decode(card).is_ok());
    assert!(messaging_proto::ticket::InviteTicket::decode(card).is_err());
}

#[test]
fn two_admins_race_and_both_entries_get_in() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let bob = machine(&mut world, 1);
    world.ok(0, "team.role", &format!(r#"{{"machine":"{bob}","role":"admin"}}"#));
    world.settle();
    let conns = [world.nodes[0].admin, world.nodes[1].admin];
    let asked: Vec<(usize, u64)> = (0..8)
        .map(|turn| {
            let params = format!(r#"{{"person":"p{turn}"}}"#);
            (turn % 2, world.ask(turn % 2, conns[turn % 2], "team.invite", &params))
        })
        .collect();
    world.settle();
    for (number, id) in asked {
        world.answer(number, conns[number], id).expect("answered").expect("written");
    }
    let info = world.ok(0, "team.info", "{}");
    assert_eq!(at(&info, "invites").as_array().unwrap().len(), 9);
}

#[test]
fn an_answer_lost_with_its_connection_is_settled() {
    for cuts in 1..3 {
        let mut world = World::new(cuts);
        world.add();
        world.relay.cut_after_append = usize::try_from(cuts).unwrap();
        world.ok(0, "team.create", &create("alice", "laptop"));
        world.settle();
        let ticket = world.ticket(0, "bob");
        let bob = world.add();
        world.relay.cut_after_append = usize::try_from(cuts).unwrap();
        world.ok(bob, "team.join", &join(&ticket, "desk"));
        world.until("connected", 120_000, |world| {
            text(&world.ok(0, "daemon.health", "{}"), "relay") == "connected"
        });
        world.relay.cut_after_append = usize::try_from(cuts).unwrap();
        world.ticket(0, "carol");
        let info = world.ok(0, "team.info", "{}");
        assert_eq!(at(&info, "members").as_array().unwrap().len(), 2);
        assert_eq!(at(&info, "invites").as_array().unwrap().len(), 2, "each was written once");
    }
}

#[test]
fn a_member_leaves() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let bob = machine(&mut world, 1);
    world.ok(1, "team.remove", &format!(r#"{{"machine":"{bob}"}}"#));
    world.settle();
    let status = world.ok(1, "device.status", "{}");
    assert_eq!((text(&status, "binding"), text(&status, "device")), ("removed", bob.as_str()));
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "offline");
    world.start(1);
    world.pass(120_000);
    assert_eq!(text(&world.ok(1, "daemon.health", "{}"), "relay"), "offline", "it stays away");
    assert!(world.ok(1, "team.info", "{}").get("role").is_none());
    assert_eq!(world.refused(1, "team.invite", r#"{"person":"x"}"#), "forbidden");
    assert_eq!(world.refused(1, "identity.rotateEnc", "{}"), "invalid_state");
}

#[test]
fn team_methods_are_not_for_agents() {
    let mut world = World::team(1, &["alice/laptop"]);
    let agent = world.connect(0, Tier::Agent);
    for method in ["team.info", "team.invite", "daemon.stop", "identity.rotateEnc", "no.such"] {
        let error = world.call_on(0, agent, method, r#"{"x":1}"#).unwrap_err();
        assert_eq!(text(&error, "data.code"), "forbidden", "{method}: before its params are read");
    }
}

#[test]
fn a_busy_relay_is_asked_again_and_then_given_up() {
    let mut world = World::team(1, &["alice/laptop"]);
    let admin = world.nodes[0].admin;
    world.relay.mute = true;
    let id = world.ask(0, admin, "team.invite", r#"{"person":"bob"}"#);
    world.settle();
    world.say_to(0, r#"{"t":"nack","id":"write:1","code":"rate_limited","retryAfterMs":2000}"#);
    assert!(world.answer(0, admin, id).is_none(), "it waits");
    world.relay.mute = false;
    world.pass(3_000);
    // The relay holds the first one, whatever it said: the invite is not made twice.
    let answer = world.answer(0, admin, id).expect("answered");
    let info = world.ok(0, "team.info", "{}");
    assert_eq!(at(&info, "invites").as_array().unwrap().len(), 1, "{answer:?}");
    let id = world.ask(0, admin, "team.invite", r#"{"person":"bob"}"#);
    world.relay.mute = true;
    world.settle();
    for write in 2..60 {
        world.say_to(0, &format!(r#"{{"t":"nack","id":"write:{write}","code":"rate_limited"}}"#));
        world.pass(1_100);
    }
    world.relay.mute = false;
    world.pass(10_000);
    assert!(world.answer(0, admin, id).is_some(), "in the end it is answered");
}
