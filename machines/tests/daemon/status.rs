//! `daemon.*`, `device.status` and stopping.

use crate::common::{World, at, json, text};
use messaging_proto::json::Value;

#[test]
fn a_new_home_says_that_it_is_new() {
    let mut world = World::new(1);
    world.add();
    assert_eq!(
        world.ok(0, "device.status", "{}"),
        json(r#"{"alarm":null,"binding":"none","device":null,"realm":"roster"}"#)
    );
    let status = world.ok(0, "daemon.status", "{}");
    assert_eq!(at(&status, "identity"), &Value::Null);
    assert!(status.get("team").is_none() && status.get("divergence").is_none());
    assert_eq!(at(&status, "relay"), &json(r#"{"state":"offline","url":null}"#));
    let health = world.ok(0, "daemon.health", "{}");
    let expected = r#"{"alarm":null,"busy":false,"directory":"ok","relay":"offline","state":"running",
        "storeSchema":1,"version":"1.0.0"}"#;
    assert_eq!(health, json(expected));
}

#[test]
fn a_member_says_who_it_is() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let status = world.ok(1, "daemon.status", "{}");
    assert_eq!((text(&status, "identity.person"), text(&status, "identity.label")), ("bob", "desk"));
    assert_eq!((text(&status, "team.name"), text(&status, "team.role")), ("team", "member"));
    assert_eq!(at(&status, "team.head"), at(&world.ok(0, "daemon.status", "{}"), "team.head"));
    assert_eq!(text(&status, "relay.state"), "connected");
    assert!(at(&status, "relay").get("since").is_some());
    assert_eq!(at(&status, "outbox"), &json(r#"{"waiting":0}"#));
    assert_eq!(at(&status, "sessions"), &json(r#"{"kept":0,"live":0}"#));
    assert_eq!((at(&status, "pid"), at(&status, "protocol")), (&Value::int(7), &Value::int(1)));
    let device = world.ok(1, "device.status", "{}");
    assert_eq!(at(&device, "device"), at(&status, "identity.device"));
    assert_eq!((text(&device, "binding"), text(&device, "person")), ("bound", "bob"));
}

#[test]
fn attached_changes_nothing_here() {
    let mut world = World::new(1);
    world.add();
    assert_eq!(world.ok(0, "person.attached", r#"{"attached":true}"#), json(r#"{"ok":true}"#));
    assert_eq!(world.refused(0, "person.attached", "{}"), "invalid_request");
    assert_eq!(world.ok(0, "daemon.woke", "{}"), json(r#"{"ok":true}"#));
}

#[test]
fn stopping_answers_says_goodbye_and_ends() {
    let mut world = World::team(1, &["alice/laptop", "bob/desk"]);
    let reply = world.ok(0, "daemon.stop", "{}");
    assert_eq!(reply, json(r#"{"ok":true,"pid":7}"#));
    assert!(world.nodes[0].stopped);
    let hangup = world.log.iter().rposition(|line| line.starts_with(r#"0 {"Hangup""#)).unwrap();
    let stopped = world.log.iter().rposition(|line| line == r#"0 "Stopped""#).unwrap();
    assert!(hangup < stopped, "the link is closed first");
}

#[test]
fn stopping_waits_for_replies_in_work_and_not_for_ever() {
    let mut world = World::team(1, &["alice/laptop"]);
    let admin = world.nodes[0].admin;
    world.relay.mute = true;
    world.ask(0, admin, "team.invite", r#"{"person":"bob"}"#);
    world.ok(0, "daemon.stop", "{}");
    assert!(!world.nodes[0].stopped);
    assert_eq!(text(&world.ok(0, "daemon.health", "{}"), "state"), "stopping");
    world.pass(5_000);
    assert!(world.nodes[0].stopped);
}
