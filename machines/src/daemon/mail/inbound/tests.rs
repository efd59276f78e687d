//! What hostile and mistaken members get: the specified answer, or nothing.

use crate::daemon::testing::{Forged, World, at, key, text};
use messaging_proto::envelope::Kind;
use messaging_proto::json::Value;

fn world(machines: &[&str]) -> World {
    let mut world = World::new(machines);
    let admin = world.connect(1);
    for person in ["alice", "carol"] {
        let _ = world.call(
            1,
            admin,
            "grant.set",
            &format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#),
        );
    }
    world
}

const MAIL: &str =
    r#"{"kind":"message","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#;

fn mail() -> Forged<'static> {
    Forged::new(Kind::Message, MAIL).between("lead", "agent")
}

/// The codes of the rejected receipts a machine said since the last call, told by who hears them: the relay's queue
/// of the sender is empty, so each was heard and moved nothing but what it names.
fn unread(world: &mut World, letter: char) -> usize {
    let conn = world.session(1, letter, "agent", "codex");
    world.unread(1, conn, letter).len()
}

#[test]
fn a_duplicate_is_acked_and_nothing_else() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    world.session(1, 'b', "agent", "codex");
    let envelope = world.forge(0, 1, &mail());
    assert!(world.deliver(1, envelope.clone()));
    let sends = world.nodes[1].sends;
    assert!(world.deliver(1, envelope));
    assert_eq!(world.nodes[1].sends, sends, "no second receipt");
    assert_eq!(unread(&mut world, 'b'), 1);
}

#[test]
fn the_same_id_of_another_machine_is_another_envelope() {
    let mut world = world(&["alice/desk", "bob/laptop", "carol/tower"]);
    world.session(1, 'b', "agent", "codex");
    world.session(1, 'd', "other", "codex");
    let one = world.forge(0, 1, &mail());
    let id = one.get("id").unwrap().clone();
    let mut same = Forged::new(Kind::Message, MAIL).between("lead", "other");
    same.header.push(("id", id.clone()));
    let other = world.forge(2, 1, &same);
    let mut clash = mail();
    clash.header.push(("id", id));
    let clash = world.forge(2, 1, &clash);
    assert!(world.deliver(1, one));
    assert!(world.deliver(1, other));
    assert_eq!(unread(&mut world, 'b'), 1);
    let conn = world.session(1, 'd', "other", "codex");
    assert_eq!(world.unread(1, conn, 'd').len(), 1);
    // In one mailbox two items of one id could not be told apart.
    assert!(world.deliver(1, clash));
    assert_eq!(unread(&mut world, 'b'), 1);
}

#[test]
fn what_fails_verification_is_acked_and_changes_nothing() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    world.session(1, 'b', "agent", "codex");
    let rows = world.nodes[1].base.clone();
    // A broken signature, and one for another machine under a sure signature: the first is not answered.
    let Value::Object(mut broken) = world.forge(0, 1, &mail()) else { panic!() };
    broken.set("replyTo", Value::text("01ARZ3NDEKTSV4RRFFQ69G5FAV"));
    let sends = world.nodes[1].sends;
    assert!(world.deliver(1, broken.into()));
    assert_eq!(world.nodes[1].sends, sends);
    assert!(world.nodes[1].base == rows, "nothing was written");
    let mut late = mail();
    late.header.push(("ts", Value::int(world.wall - 604_800_000)));
    late.header.push(("exp", Value::int(world.wall - 1)));
    let late = world.forge(0, 1, &late);
    assert!(world.deliver(1, late));
    assert_eq!(world.nodes[1].sends, sends + 1, "expired, said by a member");
    assert_eq!(unread(&mut world, 'b'), 0);
}

#[test]
fn a_newer_type_or_version_is_answered_and_breaks_nothing() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    world.session(1, 'b', "agent", "codex");
    for (member, newer) in [("type", "message.v9"), ("v", "messaging/2")] {
        let Value::Object(mut envelope) = world.forge(0, 1, &mail()) else { panic!() };
        envelope.set(member, Value::text(newer));
        let sends = world.nodes[1].sends;
        assert!(world.deliver(1, envelope.clone().into()), "acked");
        assert_eq!(world.nodes[1].sends, sends, "and not answered to who did not sign it");
        let signed = world.resign(0, envelope.into());
        assert!(world.deliver(1, signed));
        assert_eq!(world.nodes[1].sends, sends + 1, "answered");
    }
    // What cannot even be named is let go.
    assert!(!world.deliver(1, Value::Null));
    world.nodes[1].clear_queue();
    let envelope = world.forge(0, 1, &mail());
    assert!(world.deliver(1, envelope));
    assert_eq!(unread(&mut world, 'b'), 1);
}

/// §5 "Counterpart binding": nobody forges progress of what is not theirs.
#[test]
fn progress_is_only_taken_from_the_counterpart() {
    let mut world = world(&["alice/desk", "bob/laptop", "carol/tower"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let params =
        format!(r#"{{"key":"{}","to":"bob/agent","kind":"task","parts":[{{"text":"x"}}]}}"#, key('a'));
    let sent = world.ok(0, alice, "msg.send", &params);
    world.run();
    let task = text(&sent, "results.0.taskId").to_owned();
    let request = text(&sent, "results.0.envelopeId").to_owned();
    let record = |world: &mut World| {
        let get = format!(r#"{{"key":"{}","taskId":"{task}"}}"#, key('a'));
        text(&world.ok(0, alice, "task.get", &get), "task.state").to_owned()
    };
    let stages = world.stages(0, alice, 'a', &request);

    // carol is no part of it; bob names another request; a cancel comes from nobody who asked.
    let status =
        format!(r#"{{"taskId":"{task}","contextId":"c","status":{{"state":"TASK_STATE_COMPLETED"}}}}"#);
    let receipt = format!(r#"{{"ref":"{request}","stage":"read","at":1}}"#);
    let cancel = format!(r#"{{"taskId":"{task}"}}"#);
    let mut forged = Forged::new(Kind::TaskStatus, &status);
    forged.reply_to = Some(&request);
    let by_carol = world.forge(2, 0, &forged);
    forged.reply_to = Some("01ARZ3NDEKTSV4RRFFQ69G5FAV");
    let other_request = world.forge(1, 0, &forged);
    let receipt = world.forge(2, 0, &Forged::new(Kind::Receipt, &receipt));
    for envelope in [by_carol, other_request, receipt] {
        assert!(world.deliver(0, envelope));
    }
    let by_carol = world.forge(2, 1, &Forged::new(Kind::TaskCancel, &cancel));
    assert!(world.deliver(1, by_carol));
    assert_eq!(record(&mut world), "TASK_STATE_SUBMITTED");
    assert_eq!(world.stages(0, alice, 'a', &request), stages);

    // A second request under the id of a known task, and a follow-up by somebody else.
    let message = |kind: &str, more: &str| {
        format!(
            r#"{{"kind":"{kind}"{more},"message":{{"messageId":"m","contextId":"c","taskId":"{task}","role":"ROLE_USER","parts":[{{"text":"x"}}]}}}}"#
        )
    };
    let follow = message("message", "");
    let follow = world.forge(2, 1, &Forged::new(Kind::Message, &follow).between("worker", "agent"));
    assert!(world.deliver(1, follow));
    assert_eq!(world.unread(1, bob, 'b').len(), 1);
    let honest = format!(r#"{{"key":"{}","taskId":"{task}","state":"TASK_STATE_COMPLETED"}}"#, key('b'));
    world.ok(1, bob, "task.update", &honest);
    world.run();
    assert_eq!(record(&mut world), "TASK_STATE_COMPLETED");
    // After the end nothing of it is applied any more, not even by the executor.
    let status = format!(r#"{{"taskId":"{task}","contextId":"c","status":{{"state":"TASK_STATE_FAILED"}}}}"#);
    let mut late = Forged::new(Kind::TaskStatus, &status);
    late.reply_to = Some(&request);
    let late = world.forge(1, 0, &late);
    assert!(world.deliver(0, late));
    assert_eq!(record(&mut world), "TASK_STATE_COMPLETED");
}

#[test]
fn a_chain_for_another_hop_is_refused() {
    let mut world = world(&["alice/desk", "bob/laptop", "carol/tower"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    world.link(1, false);
    let params =
        format!(r#"{{"key":"{}","to":"bob/agent","kind":"task","parts":[{{"text":"x"}}]}}"#, key('a'));
    world.ok(0, alice, "msg.send", &params);
    world.run();
    // The sealed request carries a chain only for alice's machine: a session of another name cannot use it.
    let grants = {
        let env = world.nodes[1].first_queued();
        world.open(1, &env).get("delegation").unwrap().clone()
    };
    let task = grants.as_array().unwrap()[0].get("task").unwrap().as_str().unwrap().to_owned();
    let text = messaging_proto::json::canonicalize(&grants).unwrap();
    let payload = format!(
        r#"{{"kind":"task","delegation":{text},"message":{{"messageId":"m","contextId":"c","taskId":"{task}","role":"ROLE_USER","parts":[{{"text":"x"}}]}}}}"#
    );
    world.nodes[1].clear_queue();
    world.link(1, true);
    for (from, agent) in [(2, "worker"), (0, "other")] {
        let forged = Forged::new(Kind::Message, &payload).between(agent, "agent");
        let envelope = world.forge(from, 1, &forged);
        assert!(world.deliver(1, envelope));
        assert_eq!(world.unread(1, bob, 'b').len(), 0);
    }
    let envelope = world.forge(0, 1, &Forged::new(Kind::Message, &payload).between("lead", "agent"));
    assert!(world.deliver(1, envelope));
    assert_eq!(world.unread(1, bob, 'b').len(), 1);
}

/// §5 "Roster head check": an anchor past this chain is not decided, one beside it is refused and reported.
#[test]
fn anchors_ahead_wait_and_anchors_beside_are_refused() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    world.session(1, 'b', "agent", "codex");
    let mut ahead = mail();
    let hash = Value::text("A".repeat(43));
    let anchor = |seq: u64| {
        let members = [("kind", Value::text("roster")), ("seq", Value::int(seq)), ("hash", hash.clone())];
        Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    ahead.header.push(("anchor", anchor(99)));
    let ahead = world.forge(0, 1, &ahead);
    let sends = world.nodes[1].sends;
    assert!(!world.deliver(1, ahead), "withheld");
    assert_eq!(world.nodes[1].sends, sends, "and not answered");
    let mut world = self::world(&["alice/desk", "bob/laptop"]);
    world.session(1, 'b', "agent", "codex");
    let sends = world.nodes[1].sends;
    let mut beside = mail();
    beside.header.push(("anchor", anchor(0)));
    let beside = world.forge(0, 1, &beside);
    assert!(world.deliver(1, beside));
    assert_eq!(world.nodes[1].sends, sends + 1, "roster_conflict");
    assert_eq!(unread(&mut world, 'b'), 0);
}

#[test]
fn a_request_over_the_holds_is_refused() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "cli", "cli");
    world.session(1, 'b', "agent", "codex");
    let admin = world.connect(1);
    let mut last = String::new();
    for _ in 0..21 {
        let params = format!(r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"x"}}]}}"#, key('a'));
        let sent = world.ok(0, alice, "msg.send", &params);
        last = text(&sent, "results.0.envelopeId").to_owned();
        world.run();
    }
    assert_eq!(world.stages(0, alice, 'a', &last).last().unwrap(), "rejected");
    let list = world.ok(1, admin, "request.list", "{}");
    assert_eq!(at(&list, "asks").as_array().unwrap().len(), 20);
    let first = text(&list, "asks.0.id").to_owned();
    let preview = world.ok(
        1,
        admin,
        "request.answer.preview",
        &format!(r#"{{"id":"{first}","answer":"always","all":true}}"#),
    );
    assert_eq!(at(&preview, "count"), &Value::int(20));
    assert_eq!(
        text(&preview, "sentence"),
        "Your agent agent gets this request, and later requests from alice arrive without asking you. This answers \
         20 requests."
    );
    let all = format!(r#"{{"id":"{first}","answer":"decline","all":true}}"#);
    let answered = world.ok(1, admin, "request.answer", &all);
    assert_eq!(at(&answered, "answered").as_array().unwrap().len(), 20);
    world.run();
    let params = format!(r#"{{"key":"{}","id":"{first}"}}"#, key('a'));
    assert_eq!(text(&world.ok(0, alice, "item.read", &params), "history.3.code"), "declined");
    // A session that does not exist holds nothing.
    let params = format!(r#"{{"key":"{}","to":"bob/ghost@laptop","parts":[{{"text":"x"}}]}}"#, key('a'));
    let sent = world.ok(0, alice, "msg.send", &params);
    world.run();
    let params = format!(r#"{{"key":"{}","id":"{}"}}"#, key('a'), text(&sent, "results.0.envelopeId"));
    assert_eq!(text(&world.ok(0, alice, "item.read", &params), "history.2.code"), "unknown_session");
}

#[test]
fn held_requests_end_with_their_expiry() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "cli", "cli");
    world.session(1, 'b', "agent", "codex");
    let admin = world.connect(1);
    let params =
        format!(r#"{{"key":"{}","to":"bob/agent","kind":"task","parts":[{{"text":"x"}}]}}"#, key('a'));
    let sent = world.ok(0, alice, "msg.send", &params);
    world.run();
    let id = text(&sent, "results.0.envelopeId").to_owned();
    assert_eq!(world.stages(0, alice, 'a', &id).last().unwrap(), "held");
    world.link(0, false);
    world.link(1, false);
    world.pass(604_800_000 + 300_000 + 61_000);
    assert_eq!(at(&world.ok(1, admin, "request.list", "{}"), "asks").as_array().unwrap().len(), 0);
    let answer = format!(r#"{{"id":"{id}","answer":"once"}}"#);
    assert_eq!(world.refused(1, admin, "request.answer", &answer), "not_found");
    assert_eq!(world.stages(0, alice, 'a', &id).last().unwrap(), "expired");
    let params = format!(r#"{{"key":"{}","taskId":"{}"}}"#, key('a'), text(&sent, "results.0.taskId"));
    assert_eq!(text(&world.ok(0, alice, "task.get", &params), "task.state"), "TASK_STATE_FAILED");
}
