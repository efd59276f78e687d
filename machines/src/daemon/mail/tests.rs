//! Mail between machines: stages, consent, restarts.

use crate::daemon::testing::{World, at, key, text};
use messaging_proto::json::Value;

/// bob's person lets alice's requests in.
fn open(world: &mut World, number: usize, person: &str) {
    let admin = world.connect(number);
    world.ok(number, admin, "grant.set", &format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#));
}

fn send(letter: char, to: &str, words: &str, more: &str) -> String {
    format!(r#"{{"key":"{}","to":"{to}","parts":[{{"text":"{words}"}}]{more}}}"#, key(letter))
}

#[test]
fn mail_goes_through_every_stage() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "hello", ""));
    let id = text(&sent, "results.0.envelopeId").to_owned();
    assert_eq!(text(&sent, "results.0.to"), "bob/agent@laptop");
    assert_eq!(text(&sent, "results.0.stage"), "accepted");
    assert_eq!(text(&sent, "results.0.expect"), "wake");
    world.run();
    assert_eq!(world.stages(0, alice, 'a', &id), ["accepted", "relayed", "delivered"]);

    let items = world.unread(1, bob, 'b');
    assert_eq!(items.len(), 1);
    assert_eq!(text(&items[0], "id"), id);
    assert_eq!(text(&items[0], "from.address"), "alice/lead@desk");
    assert_eq!(text(&items[0], "preview"), "hello");
    assert_eq!(text(&items[0], "consent"), "guarded");
    assert_eq!(at(&items[0], "wake"), &Value::Bool(true));
    let events = world.events(1, "inbox");
    assert_eq!(events.len(), 1);
    assert_eq!(text(&events[0], "item.id"), id);

    let ack = format!(r#"{{"key":"{}","ids":["{id}"],"stage":"handed_to_agent"}}"#, key('b'));
    assert_eq!(at(&world.ok(1, bob, "inbox.ack", &ack), "acked").as_array().unwrap().len(), 1);
    assert_eq!(at(&world.ok(1, bob, "inbox.ack", &ack), "acked").as_array().unwrap().len(), 0);
    let look = format!(r#"{{"key":"{}","id":"{id}","message":true}}"#, key('b'));
    let looked = world.ok(1, bob, "inbox.get", &look);
    assert_eq!(text(&looked, "item.stage"), "handed_to_agent");
    let read = world.ok(1, bob, "item.read", &format!(r#"{{"key":"{}","id":"{id}"}}"#, key('b')));
    assert_eq!(text(&read, "kind"), "received");
    let provenance =
        at(&read, "message").get("metadata").unwrap().get("urn:messaging:ext:provenance:v1").unwrap();
    assert_eq!(text(provenance, "from"), "alice/lead@desk");
    assert_eq!(world.unread(1, bob, 'b').len(), 0);

    // The reply is an answer: it needs no grant of alice's person.
    let reply =
        world.ok(1, bob, "msg.send", &send('b', "alice/lead", "hi", &format!(r#","replyTo":"{id}""#)));
    world.run();
    assert_eq!(text(&reply, "results.0.to"), "alice/lead@desk");
    assert_eq!(
        world.stages(0, alice, 'a', &id),
        ["accepted", "relayed", "delivered", "handed_to_agent", "read", "replied"]
    );
    let heard: Vec<String> =
        world.events(0, "sent").iter().map(|event| text(event, "stage").to_owned()).collect();
    assert_eq!(heard, ["relayed", "delivered", "handed_to_agent", "read", "replied"]);
    let items = world.unread(0, alice, 'a');
    assert_eq!(text(&items[0], "replyTo"), id);
}

#[test]
fn the_first_request_of_a_person_is_held_until_answered() {
    for (answer, stage, items) in
        [("once", "held", 1), ("always", "held", 1), ("decline", "rejected", 0), ("block", "rejected", 0)]
    {
        let mut world = World::new(&["alice/desk", "bob/laptop"]);
        let alice = world.session(0, 'a', "lead", "codex");
        let bob = world.session(1, 'b', "agent", "codex");
        let admin = world.connect(1);
        let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "may I", ""));
        let id = text(&sent, "results.0.envelopeId").to_owned();
        world.run();
        assert_eq!(world.stages(0, alice, 'a', &id), ["accepted", "relayed", "held"]);
        assert_eq!(world.unread(1, bob, 'b').len(), 0);
        assert!(world.events(1, "inbox").is_empty());
        let list = world.ok(1, admin, "request.list", "{}");
        assert_eq!(text(&list, "asks.0.id"), id);
        assert_eq!(text(&list, "asks.0.address"), "alice/lead@desk");
        assert_eq!(text(&list, "asks.0.session"), "agent");
        assert_eq!(text(&list, "asks.0.preview"), "may I");

        let accept = format!(r#"{{"id":"{id}","answer":"accept"}}"#);
        assert_eq!(world.refused(1, admin, "request.answer", &accept), "invalid_request");
        let params = format!(r#"{{"id":"{id}","answer":"{answer}"}}"#);
        world.ok(1, admin, "request.answer.preview", &params);
        let answered = world.ok(1, admin, "request.answer", &params);
        assert_eq!(text(&answered, "answered.0"), id);
        assert_eq!(world.refused(1, admin, "request.answer", &params), "not_found");
        world.run();
        assert_eq!(world.stages(0, alice, 'a', &id).last().unwrap(), stage, "{answer}");
        let held = world.unread(1, bob, 'b');
        assert_eq!(held.len(), items, "{answer}");
        if items == 1 {
            assert_eq!(text(&held[0], "consent"), "guarded");
            let read = format!(r#"{{"key":"{}","id":"{id}"}}"#, key('b'));
            world.ok(1, bob, "item.read", &read);
            world.run();
            assert_eq!(world.stages(0, alice, 'a', &id).last().unwrap(), "read");
        }
        // What comes next says what the answer set.
        let next = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "again", ""));
        world.run();
        let next = text(&next, "results.0.envelopeId").to_owned();
        let last = world.stages(0, alice, 'a', &next).last().unwrap().clone();
        let expected = match answer {
            "always" => "delivered",
            "block" => "rejected",
            _ => "held",
        };
        assert_eq!(last, expected, "{answer}");
    }
}

#[test]
fn the_recipient_may_be_offline_and_everybody_restart() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    world.link(1, false);
    world.link(0, false);
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "later", ""));
    assert_eq!(text(&sent, "results.0.expect"), "offline");
    let id = text(&sent, "results.0.envelopeId").to_owned();
    world.close(1, bob);
    world.start(0);
    world.start(1);
    world.link(0, true);
    let alice = world.session(0, 'a', "lead", "codex");
    assert_eq!(world.stages(0, alice, 'a', &id), ["accepted", "relayed"]);
    world.start(0);
    world.link(1, true);
    world.start(1);
    world.run();
    let alice = world.session(0, 'a', "lead", "codex");
    assert_eq!(world.stages(0, alice, 'a', &id), ["accepted", "relayed", "delivered"]);
    // The session was kept all the while, and its mail with it.
    let bob = world.session(1, 'b', "agent", "codex");
    assert_eq!(world.unread(1, bob, 'b').len(), 1);
    assert_eq!(world.nodes[0].queued() + world.nodes[1].queued(), 0);
}

/// Report 1: mail to nobody is refused before anything is stored.
#[test]
fn report_01_nobody_gets_nothing() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "bob/tower"]);
    let alice = world.session(0, 'a', "lead", "codex");
    world.session(1, 'b', "agent", "codex");
    world.session(1, 'c', "twice", "codex");
    world.session(2, 'd', "twice", "codex");
    let rows = world.nodes[0].base.clone();
    for (to, code) in [
        ("bob/nosuch", "unknown_session"),
        ("bob/agent@wronglabel", "no_recipients"),
        ("carol/agent", "no_recipients"),
        ("bob/twice", "ambiguous_address"),
        ("bob/agent ", "invalid_request"),
        ("bob/*", "invalid_request"),
        ("bob/a/b", "invalid_request"),
    ] {
        assert_eq!(world.refused(0, alice, "msg.send", &send('a', to, "x", "")), code, "{to}");
    }
    assert!(world.nodes[0].base == rows, "a refusal wrote a row");
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/ghost@tower", "x", ""));
    world.run();
    let id = text(&sent, "results.0.envelopeId").to_owned();
    assert_eq!(world.stages(0, alice, 'a', &id), ["accepted", "relayed", "rejected"]);
}

/// Report 11: one call is one envelope, however often it is made; other params under its key are refused.
#[test]
fn report_11_a_repeated_call_sends_once() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let call = send('a', "bob/agent", "once", r#","idempotencyKey":"k""#);
    let first = world.ok(0, alice, "msg.send", &call);
    world.start(0);
    let alice = world.session(0, 'a', "lead", "codex");
    assert_eq!(world.ok(0, alice, "msg.send", &call), first, "the same results after a restart");
    let other = send('a', "bob/agent", "twice", r#","idempotencyKey":"k""#);
    assert_eq!(world.refused(0, alice, "msg.send", &other), "invalid_request");
    // Another session's key is another key.
    let second = world.session(0, 'c', "second", "codex");
    world.ok(0, second, "msg.send", &send('c', "bob/agent", "mine", r#","idempotencyKey":"k""#));
    world.run();
    assert_eq!(world.unread(1, bob, 'b').len(), 2);
    // A credential is refused before the key is looked up, and leaves nothing.
    let rows = world.nodes[0].base.clone();
    let secret =
        send('a', "bob/agent", "ghp_0123456789abcdefABCDEF0123456789abcd", r#","idempotencyKey":"k""#);
    assert_eq!(world.refused(0, alice, "msg.send", &secret), "secret_refused");
    assert!(world.nodes[0].base == rows, "a refusal wrote a row");
    world.link(0, false);
    world.link(1, false);
    world.pass(604_800_000 + 61_000);
    world.ok(0, alice, "msg.send", &other);
}

/// §8.3: over the budget nothing is refused, and all of it arrives, in order, at the budget's pace.
#[test]
fn a_backlog_is_taken_at_the_budgets_pace() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "cli", "cli");
    let bob = world.session(1, 'b', "agent", "codex");
    world.link(1, false);
    let mut ids = Vec::new();
    for number in 0..100 {
        let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", &number.to_string(), ""));
        ids.push(text(&sent, "results.0.envelopeId").to_owned());
        world.run();
    }
    world.link(1, true);
    assert_eq!(world.nodes[1].queued(), 40, "sixty at once, the rest comes again");
    let unread = format!(r#"{{"key":"{}","limit":200}}"#, key('b'));
    assert_eq!(at(&world.ok(1, bob, "inbox.list", &unread), "unread"), &Value::int(60));
    for _ in 0..8 {
        world.pass(10_000);
    }
    assert_eq!(world.nodes[1].queued(), 0);
    let items = world.ok(1, bob, "inbox.list", &unread);
    let previews: Vec<String> = at(&items, "items")
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|item| text(item, "preview").to_owned())
        .collect();
    assert_eq!(previews, (0..100).map(|number| number.to_string()).collect::<Vec<_>>());
    for id in &ids {
        assert_eq!(world.stages(0, alice, 'a', id).last().unwrap(), "delivered");
    }
}

/// Report 37: agents that answer each other are stopped, and each learns why; a terminal is no party to it.
#[test]
fn report_37_a_loop_is_stopped() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    world.session(1, 'b', "agent", "codex");
    let mut last = String::new();
    for number in 0..21 {
        let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", &number.to_string(), ""));
        world.run();
        last = text(&sent, "results.0.envelopeId").to_owned();
    }
    let read = world.ok(0, alice, "item.read", &format!(r#"{{"key":"{}","id":"{last}"}}"#, key('a')));
    assert_eq!(text(&read, "history.2.code"), "loop_guard");
    world.pass(600_000);
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "later", ""));
    world.run();
    let id = text(&sent, "results.0.envelopeId").to_owned();
    assert_eq!(world.stages(0, alice, 'a', &id).last().unwrap(), "delivered");
}

#[test]
fn a_machine_holds_at_most_its_quota() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    world.configure(1, r#"{"inbound":{"quota":{"items":2}},"retention":{"readDays":1}}"#);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "x", ""));
        ids.push(text(&sent, "results.0.envelopeId").to_owned());
        world.run();
    }
    let stages: Vec<String> =
        ids.iter().map(|id| world.stages(0, alice, 'a', id).last().unwrap().clone()).collect();
    assert_eq!(stages, ["delivered", "delivered", "rejected"]);
    // Read mail goes with its retention, and makes room.
    world.ok(1, bob, "item.read", &format!(r#"{{"key":"{}","id":"{}"}}"#, key('b'), ids[0]));
    world.link(0, false);
    world.link(1, false);
    world.pass(86_400_000 + 61_000);
    world.link(0, true);
    world.link(1, true);
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "x", ""));
    world.run();
    let id = text(&sent, "results.0.envelopeId").to_owned();
    assert_eq!(world.stages(0, alice, 'a', &id).last().unwrap(), "delivered");
}

/// Report 17: a machine that dies after any commit loses nothing and keeps nothing twice.
#[test]
fn report_17_a_crash_after_any_commit_is_harmless() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    world.crashing = true;
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    world.close(1, bob);
    let mut ids = Vec::new();
    for number in 0..5 {
        let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", &number.to_string(), ""));
        ids.push(text(&sent, "results.0.envelopeId").to_owned());
    }
    world.run();
    world.start(0);
    world.start(1);
    world.crashing = false;
    world.run();
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let mut previews: Vec<String> =
        world.unread(1, bob, 'b').iter().map(|item| text(item, "preview").to_owned()).collect();
    previews.sort();
    assert_eq!(previews, ["0", "1", "2", "3", "4"]);
    for id in &ids {
        assert_eq!(world.stages(0, alice, 'a', id), ["accepted", "relayed", "delivered"]);
    }
}

/// §11.3: what the relay refuses for now goes again, one recipient's wait holds up no other, and a final refusal
/// is told.
#[test]
fn refusals_of_the_relay_are_retried_or_final() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "carol/tower"]);
    open(&mut world, 1, "alice");
    open(&mut world, 2, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let carol = world.session(2, 'c', "agent", "codex");
    world.nodes[0].refuse.push_back((messaging_proto::Code::RateLimited, Some(5_000)));
    world.ok(0, alice, "msg.send", &send('a', "bob/agent", "waits", ""));
    world.ok(0, alice, "msg.send", &send('a', "bob/agent", "after it", ""));
    world.ok(0, alice, "msg.send", &send('a', "carol/agent", "goes", ""));
    world.run();
    assert_eq!(world.unread(1, bob, 'b').len(), 0);
    assert_eq!(world.unread(2, carol, 'c').len(), 1);
    world.pass(4_999);
    assert_eq!(world.unread(1, bob, 'b').len(), 0);
    world.pass(1);
    let previews: Vec<String> =
        world.unread(1, bob, 'b').iter().map(|item| text(item, "preview").to_owned()).collect();
    assert_eq!(previews, ["after it", "waits"]);
    world.nodes[0].refuse.push_back((messaging_proto::Code::TooLarge, None));
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "refused", ""));
    world.run();
    let id = text(&sent, "results.0.envelopeId").to_owned();
    let read = world.ok(0, alice, "item.read", &format!(r#"{{"key":"{}","id":"{id}"}}"#, key('a')));
    assert_eq!((text(&read, "stage"), text(&read, "history.1.code")), ("rejected", "too_large"));
}

/// Report 3: a busy session's mail is delivered, not handed on, for as long as nobody takes it.
#[test]
fn report_03_a_busy_session_keeps_its_mail() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    world.ok(1, bob, "session.update", &format!(r#"{{"key":"{}","state":"busy"}}"#, key('b')));
    world.pass(2_000);
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "x", ""));
    assert_eq!(text(&sent, "results.0.expect"), "next_turn");
    world.pass(600_000);
    let id = text(&sent, "results.0.envelopeId").to_owned();
    assert_eq!(world.stages(0, alice, 'a', &id).last().unwrap(), "delivered");
    world.close(1, bob);
    let bob = world.session(1, 'b', "agent", "codex");
    assert_eq!(world.unread(1, bob, 'b').len(), 1);
}

/// The refusals of each method, in the order of their checks, and that a refusal leaves nothing.
#[test]
fn refusals_leave_nothing() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    open(&mut world, 1, "alice");
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    let sent = world.ok(0, alice, "msg.send", &send('a', "bob/agent", "x", ""));
    world.run();
    let id = text(&sent, "results.0.envelopeId").to_owned();
    let rows = world.nodes.iter().map(|node| node.base.clone()).collect::<Vec<_>>();
    let secret = "ghp_0123456789abcdefABCDEF0123456789abcd";
    for (params, code) in [
        // Params before the key, the key before the address, the address before the content.
        (send('z', "bob/agent", "x", r#","more":1"#), "invalid_request"),
        (send('z', "no address", secret, ""), "not_found"),
        (send('a', "no address", secret, ""), "invalid_request"),
        (send('a', "bob/ghost", secret, ""), "secret_refused"),
        (send('a', "bob/agent", "x", r#","request":{"contact":"a@b"}"#), "invalid_request"),
        (
            send('a', "bob/agent", "x", r#","kind":"task","taskId":"01ARZ3NDEKTSV4RRFFQ69G5FAV""#),
            "invalid_request",
        ),
        (send('a', "bob/agent", "x", r#","taskId":"01ARZ3NDEKTSV4RRFFQ69G5FAV""#), "not_found"),
        (send('a', "bob/agent", &"x".repeat(263_000), ""), "too_large"),
        (send('a', "bob/agent", "x", r#","wake":"no""#), "invalid_request"),
        (send('a', "bob/agent", "x", r#","onBehalfOf":{"taskId":"x"}"#), "invalid_request"),
        (send('a', "bob/agent", "x", r#","referenceTaskIds":["x"]"#), "invalid_request"),
        (
            send('a', "bob/agent", "x", &format!(r#","metadata":{{"k":"{}"}}"#, "x".repeat(16_384))),
            "invalid_request",
        ),
        (send('a', "bob/agent", "x", "").replace(r#"[{"text":"x"}]"#, "[]"), "invalid_request"),
        (
            send('a', "bob/agent", "x", "").replace(r#"{"text":"x"}"#, r#"{"text":"x","url":"y"}"#),
            "invalid_request",
        ),
    ] {
        assert_eq!(
            world.refused(0, alice, "msg.send", &params),
            code,
            "{}",
            &params[..params.len().min(200)]
        );
    }
    let unknown = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    for (method, params, code) in [
        ("inbox.list", format!(r#"{{"key":"{}","cursor":"x"}}"#, key('b')), "invalid_request"),
        ("inbox.list", format!(r#"{{"key":"{}","limit":201}}"#, key('b')), "invalid_request"),
        ("inbox.get", format!(r#"{{"key":"{}","id":"{unknown}"}}"#, key('b')), "not_found"),
        (
            "inbox.ack",
            format!(r#"{{"key":"{}","ids":["{id}","{unknown}"],"stage":"read"}}"#, key('b')),
            "not_found",
        ),
        (
            "inbox.ack",
            format!(r#"{{"key":"{}","ids":["{id}"],"stage":"delivered"}}"#, key('b')),
            "invalid_request",
        ),
        ("inbox.ack", format!(r#"{{"key":"{}","ids":[],"stage":"read"}}"#, key('b')), "invalid_request"),
        ("item.read", format!(r#"{{"key":"{}","id":"{unknown}"}}"#, key('b')), "not_found"),
        ("events.subscribe", format!(r#"{{"key":"{}"}}"#, key('z')), "not_found"),
        ("session.update", format!(r#"{{"key":"{}","state":"busy"}}"#, key('z')), "not_found"),
        ("session.unregister", format!(r#"{{"key":"{}"}}"#, key('z')), "not_found"),
        ("contacts.list", r#"{"key":"x"}"#.to_owned(), "invalid_request"),
    ] {
        assert_eq!(world.refused(1, bob, method, &params), code, "{method} {params}");
    }
    for (node, rows) in world.nodes.iter().zip(&rows) {
        assert!(node.base == *rows, "a refusal wrote a row");
    }
    // What another session sent or got is not this one's.
    let other = world.session(0, 'c', "other", "codex");
    assert_eq!(
        world.refused(0, other, "item.read", &format!(r#"{{"key":"{}","id":"{id}"}}"#, key('c'))),
        "not_found"
    );
}

/// Report 9: names that begin with each other share nothing.
#[test]
fn report_09_each_session_sees_its_own_mail() {
    let mut world = World::new(&["alice/desk"]);
    let names = [('a', "a"), ('b', "a-b"), ('c', "a.b"), ('d', "ab")];
    let conns = names.map(|(letter, name)| world.session(0, letter, name, "codex"));
    for ((letter, name), conn) in names.iter().zip(conns) {
        world.ok(0, conn, "msg.send", &send(*letter, &format!("alice/{name}"), name, ""));
    }
    for ((letter, name), conn) in names.iter().zip(conns) {
        let items = world.unread(0, conn, *letter);
        assert_eq!(items.len(), 1, "{name}");
        assert_eq!(text(&items[0], "preview"), *name);
        assert_eq!(text(&items[0], "from.agent"), *name);
    }
}
