//! Becoming a member: by an invite, and by pairing.

use crate::common::{URL, World, at, json, text};
use crate::team::{create, join, members};
use messaging_proto::json::Value;

#[test]
fn pairing_is_cancelled() {
    let mut world = World::new(1);
    world.add();
    let none = r#"{"cancelled":false}"#;
    assert_eq!(world.ok(0, "team.pairCancel", "{}"), json(none));
    let first = world.ok(0, "team.prepare", "{}");
    assert_eq!(world.ok(0, "team.pairCancel", "{}"), json(r#"{"cancelled":true}"#));
    world.settle();
    assert!(world.nodes[0].pairing.is_none(), "the keys are deleted");
    assert_ne!(world.ok(0, "team.prepare", "{}"), first);
}

#[test]
fn joining_is_refused() {
    let mut world = World::team(1, &["alice/laptop"]);
    let bob = world.add();
    assert_eq!(world.refused(bob, "team.join", &join("messaging1.x", "desk")), "invalid_request");
    let card = text(&world.ok(0, "team.info", "{}"), "card").to_owned();
    assert_eq!(world.refused(bob, "team.join", &join(&card, "desk")), "invalid_request");
    // The label of another machine of the person.
    let ticket = world.ticket(0, "alice");
    assert_eq!(world.refused(bob, "team.join", &join(&ticket, "laptop")), "forbidden");
    assert!(world.nodes[bob].pairing.is_none(), "no keys were made for it");
    // Revoked.
    let ticket = world.ticket(0, "bob");
    let invites = world.ok(0, "team.info", "{}");
    let open = |invite: &&Value| text(invite, "person") == "bob";
    let id = text(at(&invites, "invites").as_array().unwrap().iter().find(open).unwrap(), "inviteId");
    world.ok(0, "team.revoke", &format!(r#"{{"inviteId":"{id}"}}"#));
    assert_eq!(world.refused(bob, "team.join", &join(&ticket, "desk")), "invite_invalid");
    // Expired, by this clock and by the relay's.
    let ticket = world.ok(0, "team.invite", r#"{"person":"bob","ttlMs":60000}"#);
    let ticket = text(&ticket, "ticket").to_owned();
    world.pass(61_000);
    assert_eq!(world.refused(bob, "team.join", &join(&ticket, "desk")), "invite_invalid");
    world.nodes[bob].skew = -120_000;
    assert_eq!(world.refused(bob, "team.join", &join(&ticket, "desk")), "invite_invalid");
    world.nodes[bob].skew = 0;
    // Unreachable.
    let ticket = world.ticket(0, "bob");
    world.reach_from(bob, false);
    assert_eq!(world.refused(bob, "team.join", &join(&ticket, "desk")), "relay_unavailable");
    world.reach_from(bob, true);
    world.ok(bob, "team.join", &join(&ticket, "desk"));
    assert_eq!(world.refused(bob, "team.join", &join(&ticket, "desk")), "invalid_state");
    // Used.
    let carol = world.add();
    assert_eq!(world.refused(carol, "team.join", &join(&ticket, "desk")), "invite_invalid");
}

#[test]
fn two_joiners_race_and_both_get_in() {
    let mut world = World::team(1, &["alice/laptop"]);
    let tickets: Vec<String> = ["bob", "carol", "dave"].iter().map(|who| world.ticket(0, who)).collect();
    let asked: Vec<_> = tickets
        .iter()
        .map(|ticket| {
            let number = world.add();
            let admin = world.nodes[number].admin;
            (number, admin, world.ask(number, admin, "team.join", &join(ticket, "desk")))
        })
        .collect();
    world.until("everybody is in", 60_000, |world| {
        asked.iter().all(|(number, conn, id)| world.answer(*number, *conn, *id).is_some())
    });
    for (number, conn, id) in asked {
        world.answer(number, conn, id).unwrap().unwrap();
    }
    world.settle();
    assert_eq!(members(&mut world, 0).len(), 4);
}

#[test]
fn a_long_roster_is_read_over_several_connections() {
    let mut world = World::new(1);
    world.relay.config.limits.frames_per_minute = 1_000_000;
    world.relay.config.limits.pre_auth_frames = 3;
    world.restart_relay();
    world.join_next("alice/laptop");
    for _ in 0..700 {
        world.ticket(0, "somebody");
    }
    let ticket = world.ticket(0, "bob");
    let bob = world.add();
    world.ok(bob, "team.join", &join(&ticket, "desk"));
    world.settle();
    let (mine, theirs) = (world.ok(bob, "team.info", "{}"), world.ok(0, "team.info", "{}"));
    assert_eq!(at(&mine, "head"), at(&theirs, "head"));
}

#[test]
fn a_machine_is_paired_added_and_claimed() {
    let mut world = World::team(1, &["alice/laptop"]);
    let info = world.ok(0, "team.info", "{}");
    let team = text(&info, "team").to_owned();
    let bob = world.add();
    assert_eq!(world.refused(bob, "team.claim", "{}"), "invalid_state");
    let pair = format!(r#"{{"relay":"{URL}","team":"{team}","name":"team","person":"bob","label":"desk"}}"#);
    let card = world.ok(bob, "team.pair", &pair);
    assert_eq!(world.ok(bob, "team.pair", &pair), card, "the same while it waits");
    let other = pair.replace("desk", "other");
    assert_eq!(world.refused(bob, "team.pair", &other), "invalid_state");
    assert_eq!(world.refused(bob, "team.prepare", "{}"), "invalid_state");
    assert_eq!(world.refused(bob, "team.create", &create("bob", "desk")), "invalid_state");
    assert!(text(&card, "card").starts_with("messaging-admit."));
    assert!(world.nodes[bob].identity.is_none(), "the keys are in pairing.json alone");
    assert_eq!(text(&world.ok(bob, "team.claim", "{}"), "state"), "waiting");
    world.start(bob);
    world.reach_from(bob, false);
    assert_eq!(world.refused(bob, "team.claim", "{}"), "relay_unavailable");
    world.reach_from(bob, true);
    let (machine, enc) = (text(&card, "machine"), text(&card, "enc"));
    // Under another label it is not what was asked for.
    let add = |label: &str, enc: &str| {
        format!(r#"{{"machine":"{machine}","enc":"{enc}","person":"bob","label":"{label}"}}"#)
    };
    world.ok(0, "team.add", &add("desk", enc));
    assert_eq!(world.refused(0, "team.add", &add("other", enc)), "forbidden");
    let done = world.ok(bob, "team.claim", "{}");
    assert_eq!((text(&done, "state"), text(&done, "team")), ("done", team.as_str()));
    world.settle();
    assert_eq!(text(&world.ok(bob, "daemon.health", "{}"), "relay"), "connected");
    assert_eq!(world.refused(bob, "team.claim", "{}"), "invalid_state");
}

#[test]
fn a_claim_waits_for_its_own_label() {
    let mut world = World::team(1, &["alice/laptop"]);
    let team = text(&world.ok(0, "team.info", "{}"), "team").to_owned();
    let bob = world.add();
    let pair = format!(r#"{{"relay":"{URL}","team":"{team}","person":"bob","label":"desk"}}"#);
    let card = world.ok(bob, "team.pair", &pair);
    let (machine, enc) = (text(&card, "machine"), text(&card, "enc"));
    let add = format!(r#"{{"machine":"{machine}","enc":"{enc}","person":"bob","label":"other"}}"#);
    world.ok(0, "team.add", &add);
    assert_eq!(text(&world.ok(bob, "team.claim", "{}"), "state"), "waiting");
}
