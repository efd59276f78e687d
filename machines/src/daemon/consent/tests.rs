//! Grants: what they change, how they travel between a person's devices, and what is left when a signer goes.

use crate::daemon::testing::{World, at, key, text};
use messaging_proto::json::Value;

fn set(world: &mut World, number: usize, params: &str) -> Value {
    let admin = world.connect(number);
    let result = world.ok(number, admin, "grant.set", params);
    world.run();
    result
}

fn grants(world: &mut World, number: usize) -> Value {
    let admin = world.connect(number);
    world.ok(number, admin, "grant.list", "{}")
}

#[test]
fn grants_reach_every_device_of_the_person() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "bob/tower"]);
    set(&mut world, 1, r#"{"subject":{"person":"alice"},"ask":"open","trust":true}"#);
    let held = grants(&mut world, 2);
    assert_eq!(text(&held, "grants.0.ask"), "open");
    assert_eq!(at(&held, "grants.0.trustedUntil"), at(&grants(&mut world, 1), "grants.0.trustedUntil"));
    // Both devices enforce it, and the class follows.
    let alice = world.session(0, 'a', "lead", "codex");
    let tower = world.session(2, 't', "agent", "codex");
    let params = format!(r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"x"}}]}}"#, key('a'));
    world.ok(0, alice, "msg.send", &params);
    world.run();
    assert_eq!(text(&world.unread(2, tower, 't')[0], "consent"), "trusted");
    // Another person learns nothing of it.
    assert_eq!(at(&grants(&mut world, 0), "grants").as_array().unwrap().len(), 0);
    // A newer grant replaces it everywhere; a clear is the default again.
    world.pass(1_000);
    set(&mut world, 2, r#"{"subject":{"person":"alice"}}"#);
    for number in [1, 2] {
        let held = grants(&mut world, number);
        assert_eq!(at(&held, "grants").as_array().unwrap().len(), 1);
        assert!(at(&held, "grants.0").get("ask").is_none());
    }
}

#[test]
fn a_device_that_was_away_catches_up() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "bob/tower"]);
    world.link(2, false);
    set(&mut world, 1, r#"{"subject":{"person":"alice"},"chat":"muted"}"#);
    assert_eq!(at(&grants(&mut world, 2), "grants").as_array().unwrap().len(), 0);
    world.link(2, true);
    assert_eq!(text(&grants(&mut world, 2), "grants.0.chat"), "muted");
}

/// §6.9 "Signers": blocks never lapse, widening waits for the person.
#[test]
fn a_removed_signer_leaves_its_blocks() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "bob/tower", "carol/nas"]);
    set(&mut world, 2, r#"{"subject":{"person":"alice"},"ask":"open","agentMail":"blocked"}"#);
    set(&mut world, 2, r#"{"subject":{"person":"carol"},"ask":"open"}"#);
    let before = grants(&mut world, 1);
    assert_eq!(at(&before, "grants").as_array().unwrap().len(), 2);
    let tower = world.machine(2);
    world.pass(5_000);
    world.reroster(|author| author.member_remove(&tower).unwrap());
    let after = grants(&mut world, 1);
    assert_eq!(at(&after, "grants").as_array().unwrap().len(), 1);
    assert_eq!(text(&after, "grants.0.agentMail"), "blocked");
    assert!(at(&after, "grants.0").get("ask").is_none());
    assert_eq!(text(&after, "grants.0.by"), world.machine(1).to_string());
    assert!(at(&after, "grants.0").get("resignedAt").is_some());
    let review = at(&after, "review").as_array().unwrap();
    assert_eq!(review.len(), 2);
    assert!(review.iter().all(|entry| text(entry, "levels.ask") == "open"));
    // Confirming one takes it off the list.
    set(&mut world, 1, r#"{"subject":{"person":"carol"},"ask":"open"}"#);
    assert_eq!(at(&grants(&mut world, 1), "review").as_array().unwrap().len(), 1);
}

#[test]
fn refusals_of_a_grant() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(0);
    for (params, code) in [
        (r#"{"subject":{"person":"nobody"},"ask":"open"}"#, "not_found"),
        (r#"{"subject":{"channel":"eng"},"ask":"open"}"#, "not_found"),
        (r#"{"subject":{"person":"bob"},"ask":"open","trust":true,"trustedUntil":1}"#, "invalid_request"),
        (r#"{"subject":{"person":"bob"},"ask":"request","trust":true}"#, "invalid_request"),
        (r#"{"subject":{"person":"bob"},"discoverable":true}"#, "invalid_request"),
        (r#"{"subject":{"person":"bob"},"ask":"maybe"}"#, "invalid_request"),
        (r#"{"subject":{"person":"bob"},"trust":false}"#, "invalid_request"),
        (r#"{"subject":{"person":"bob","channel":"eng"}}"#, "invalid_request"),
        (r#"{"subject":{"person":"bob"},"more":1}"#, "invalid_request"),
    ] {
        assert_eq!(world.refused(0, admin, "grant.set", params), code, "{params}");
        assert_eq!(world.refused(0, admin, "grant.set.preview", params), code, "{params}");
    }
    let rows = world.nodes[0].base.clone();
    let preview = world.ok(0, admin, "grant.set.preview", r#"{"subject":{"person":"bob"},"chat":"blocked"}"#);
    assert_eq!(text(&preview, "sentence"), "bob may not reach you at all.");
    assert!(world.nodes[0].base == rows, "a preview changes nothing");
    let unknown = r#"{"id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","answer":"once"}"#;
    assert_eq!(world.refused(0, admin, "request.answer", unknown), "not_found");
    assert_eq!(world.refused(0, admin, "request.answer.preview", unknown), "not_found");
    assert_eq!(world.refused(0, admin, "request.answer", r#"{"id":"x","answer":"once"}"#), "invalid_request");
}

#[test]
fn agents_have_no_say_in_consent() {
    let mut world = World::new(&["alice/desk"]);
    let conn = world.agent(0);
    for method in ["grant.set", "grant.list", "request.list", "request.answer", "request.answer.preview"] {
        assert_eq!(world.refused(0, conn, method, "{}"), "forbidden", "{method}");
    }
}

/// A team is one org: nobody in it needs a card or a message request.
#[test]
fn a_roster_realm_has_no_cards_and_no_message_requests() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(0);
    let card = world.ok(0, admin, "card.get", r#"{"person":"bob"}"#);
    assert_eq!(at(&card, "sent"), &Value::Bool(false));
    assert_eq!(world.refused(0, admin, "card.get", r#"{"person":"nobody"}"#), "not_found");
    let request = r#"{"email":"bob@example.org","text":"hello"}"#;
    assert_eq!(world.refused(0, admin, "contact.request", request), "invalid_request");
    assert_eq!(world.refused(0, admin, "contact.request.preview", r#"{"email":"b@c"}"#), "invalid_request");
}
