//! Holds and their ends, trust along a chain, and what a device takes of the grants it is sent (`messaging/1 §6.9`).

use super::rows;
use crate::daemon::testing::{Forged, START, World, at, key, text};
use messaging_proto::consent::ConsentGrant;
use messaging_proto::envelope::Kind;
use messaging_proto::json::{Value, canonicalize, parse_wire};
use messaging_proto::limits::{GRANTS_PER_PERSON, HELD_PER_SENDER, HELD_TOTAL};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

const MAIL: &str =
    r#"{"kind":"message","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]}}"#;

fn send(letter: char, to: &str, more: &str) -> String {
    format!(r#"{{"key":"{}","to":"{to}","parts":[{{"text":"x"}}]{more}}}"#, key(letter))
}

/// Sends and lets everything arrive. The envelope's last stage and code.
fn sent(world: &mut World, number: usize, letter: char, params: &str) -> (String, String) {
    let conn = world.session(number, letter, "lead", "codex");
    let sent = world.ok(number, conn, "msg.send", params);
    world.run();
    let id = text(&sent, "results.0.envelopeId");
    let look = format!(r#"{{"key":"{}","id":"{id}"}}"#, key(letter));
    let read = world.ok(number, conn, "item.read", &look);
    let last = at(&read, "history").as_array().unwrap().last().unwrap().clone();
    let code = last.get("code").map_or_else(String::new, |code| code.as_str().unwrap().to_owned());
    (text(&last, "stage").to_owned(), code)
}

fn held(world: &mut World, number: usize) -> Vec<String> {
    let admin = world.connect(number);
    let listed = world.ok(number, admin, "request.list", "{}");
    at(&listed, "asks").as_array().unwrap().iter().map(|ask| text(ask, "id").to_owned()).collect()
}

#[test]
fn a_request_is_held_only_for_a_session_that_is_there() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let rejected = |code: &str| ("rejected".to_owned(), code.to_owned());
    assert_eq!(sent(&mut world, 0, 'a', &send('a', "bob/agent@laptop", "")), rejected("unknown_session"));
    assert!(held(&mut world, 1).is_empty());
    // A kept session is there.
    let bob = world.session(1, 'b', "agent", "codex");
    world.close(1, bob);
    assert_eq!(sent(&mut world, 0, 'a', &send('a', "bob/agent@laptop", "")).0, "held");
    assert_eq!(held(&mut world, 1).len(), 1);
    // A task whose chain does not hold is refused with the chain's code, and not held.
    world.link(1, false);
    let alice = world.session(0, 'a', "lead", "codex");
    world.ok(0, alice, "msg.send", &send('a', "bob/agent@laptop", r#","kind":"task""#));
    world.run();
    let env = world.nodes[1].first_queued();
    let task = canonicalize(&world.open(1, &env)).unwrap();
    world.nodes[1].clear_queue();
    world.link(1, true);
    for (agent, count) in [("other", 1), ("lead", 2)] {
        let forged = world.forge(0, 1, &Forged::new(Kind::Message, &task).between(agent, "agent"));
        assert!(world.deliver(1, forged));
        assert_eq!(held(&mut world, 1).len(), count, "{agent}");
    }
}

#[test]
fn a_person_is_held_twenty_times_and_all_persons_two_hundred() {
    let persons: Vec<String> = (0..11).map(|n| format!("p{n}/desk")).collect();
    let mut machines = vec!["bob/laptop"];
    machines.extend(persons.iter().map(String::as_str));
    let mut world = World::new(&machines);
    world.session(0, 'b', "agent", "codex");
    for number in 1..=10 {
        for _ in 0..HELD_PER_SENDER {
            let forged = world.forge(number, 0, &Forged::new(Kind::Message, MAIL).between("lead", "agent"));
            assert!(world.deliver(0, forged));
        }
        assert_eq!(held(&mut world, 0).len(), number * HELD_PER_SENDER);
        if number == 1 {
            let more = sent(&mut world, 1, 'a', &send('a', "bob/agent", ""));
            assert_eq!(more, ("rejected".to_owned(), "rate_limited".to_owned()), "the twenty-first");
        }
    }
    assert_eq!(held(&mut world, 0).len(), HELD_TOTAL);
    let more = sent(&mut world, 11, 'z', &send('z', "bob/agent", ""));
    assert_eq!(more, ("rejected".to_owned(), "rate_limited".to_owned()), "the two hundred and first");
    // Answering makes room.
    let admin = world.connect(0);
    let first = held(&mut world, 0).remove(0);
    let all = format!(r#"{{"id":"{first}","answer":"decline","all":true}}"#);
    let preview = world.ok(0, admin, "request.answer.preview", &all);
    assert_eq!(at(&preview, "count"), &Value::int(20));
    let answered = world.ok(0, admin, "request.answer", &all);
    assert_eq!(
        at(&answered, "answered").as_array().unwrap().len(),
        HELD_PER_SENDER,
        "every one of that person"
    );
    assert_eq!(held(&mut world, 0).len(), HELD_TOTAL - HELD_PER_SENDER);
    assert_eq!(sent(&mut world, 11, 'z', &send('z', "bob/agent", "")).0, "held");
}

#[test]
fn a_held_request_ends_with_its_time_or_its_sender() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "carol/tower"]);
    let bob = world.session(1, 'b', "agent", "codex");
    let mut short = Forged::new(Kind::Message, MAIL).between("lead", "agent");
    short.header.push(("exp", Value::int(world.wall + 100_000)));
    let short = world.forge(0, 1, &short);
    assert!(world.deliver(1, short));
    let id = held(&mut world, 1).remove(0);
    world.run();
    let sends = world.nodes[1].sends;
    world.link(1, false);
    world.pass(100_000);
    world.link(1, true);
    assert!(held(&mut world, 1).is_empty());
    let admin = world.connect(1);
    let once = |id: &str| format!(r#"{{"id":"{id}","answer":"once"}}"#);
    assert_eq!(world.refused(1, admin, "request.answer", &once(&id)), "not_found");
    assert!(world.nodes[1].sends >= sends);
    assert!(world.unread(1, bob, 'b').is_empty());

    let other = world.forge(2, 1, &Forged::new(Kind::Message, MAIL).between("lead", "agent"));
    assert!(world.deliver(1, other));
    let id = held(&mut world, 1).remove(0);
    let carol = world.machine(2);
    world.reroster(|author| author.member_remove(&carol).unwrap());
    world.run();
    world.nodes[2].clear_queue();
    let answered = world.ok(1, admin, "request.answer", &once(&id));
    assert_eq!(text(&answered, "answered.0"), id);
    world.run();
    assert!(world.unread(1, bob, 'b').is_empty(), "who left asks nothing");
    assert_eq!(world.nodes[2].queued(), 0, "and hears nothing");
}

/// A stranger to the trust does not get it through somebody who has it.
#[test]
fn trust_holds_for_chains_of_trusted_persons_alone_and_for_its_time() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "carol/tower"]);
    for (number, person) in [(1, "carol"), (0, "bob")] {
        let admin = world.connect(number);
        world.ok(
            number,
            admin,
            "grant.set",
            &format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#),
        );
    }
    let until = world.wall + 3_600_000;
    let admin = world.connect(0);
    let grant = format!(r#"{{"subject":{{"person":"bob"}},"ask":"open","trustedUntil":{until}}}"#);
    world.ok(0, admin, "grant.set", &grant);
    let alice = world.session(0, 'a', "agent", "codex");
    let bob = world.session(1, 'b', "lead", "codex");
    let carol = world.session(2, 'c', "boss", "codex");
    world.ok(1, bob, "msg.send", &send('b', "alice/agent", r#","kind":"task""#));
    world.run();
    assert_eq!(text(&world.unread(0, alice, 'a')[0], "consent"), "trusted", "bob's own");
    let asked = world.ok(2, carol, "msg.send", &send('c', "bob/lead", r#","kind":"task""#));
    world.run();
    let task = text(&asked, "results.0.taskId");
    let behalf = format!(r#","kind":"task","onBehalfOf":{{"taskId":"{task}"}}"#);
    world.ok(1, bob, "msg.send", &send('b', "alice/agent", &behalf));
    world.run();
    let items = world.unread(0, alice, 'a');
    assert_eq!((items.len(), text(&items[0], "consent")), (2, "guarded"), "carol's, through bob");
    world.pass(3_600_000);
    world.ok(1, bob, "msg.send", &send('b', "alice/agent", ""));
    world.run();
    assert_eq!(text(&world.unread(0, alice, 'a')[0], "consent"), "guarded", "after its time");
}

/// §6.9 "Sync": from the own person's devices alone, and each grant on its own merits.
#[test]
fn a_device_takes_of_what_it_is_sent_only_what_is_sound() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "bob/tower"]);
    world.link(1, false);
    let admin = world.connect(2);
    world.ok(2, admin, "grant.set", r#"{"subject":{"person":"alice"},"chat":"muted"}"#);
    let good = world.within(2, |cx| rows::all(cx.txn).unwrap().remove(0));
    world.run();
    world.nodes[1].clear_queue();
    world.link(1, true);
    world.nodes[1].clear_queue();
    let grants = |world: &mut World| world.within(1, |cx| rows::all(cx.txn).unwrap().len());
    // What was queued may have come with the link: begin with nothing.
    world.within(1, |cx| rows::remove(cx.txn, &good.subject).unwrap());
    let mut changed = good.raw().as_object().unwrap().clone();
    changed.set("chat", Value::text("open"));
    let changed = Value::from(changed);
    let payload = |grants: &[&Value]| {
        let grants: Vec<String> = grants.iter().map(|grant| canonicalize(grant).unwrap()).collect();
        format!(
            r#"{{"kind":"message","conv":{{"kind":"self","what":"grant"}},"message":{{"messageId":"01ARZ3NDEKTSV4RRFFQ69G5FAV","role":"ROLE_USER","parts":[{{"data":{{"grants":[{}]}}}}]}}}}"#,
            grants.join(",")
        )
    };
    // Another person's device cannot even say it: proto refuses its payload (`sync_shapes`).
    let sound = payload(&[good.raw()]);
    // One that was changed is skipped, the one beside it taken.
    let changed = payload(&[&changed]);
    let forged = world.forge(2, 1, &Forged::new(Kind::Message, &changed));
    assert!(world.deliver(1, forged));
    assert_eq!(grants(&mut world), 0);
    let forged = world.forge(2, 1, &Forged::new(Kind::Message, &sound));
    assert!(world.deliver(1, forged));
    assert_eq!(grants(&mut world), 1);
    assert_eq!(world.within(1, |cx| rows::get(cx.txn, &good.subject).unwrap()).unwrap().raw(), good.raw());
}

#[test]
fn a_person_holds_two_thousand_grants() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(0);
    let set = r#"{"subject":{"person":"bob"},"ask":"open"}"#;
    world.ok(0, admin, "grant.set", set);
    world.within(0, |cx| {
        let mut raw = rows::all(cx.txn).unwrap()[0].raw().as_object().unwrap().clone();
        for number in 1..GRANTS_PER_PERSON {
            let mut bytes = [0; 10];
            bytes[..8].copy_from_slice(&(number as u64).to_be_bytes());
            let id = Ulid::new(Wall(START), bytes);
            let subject = format!(r#"{{"channel":"{id}"}}"#);
            raw.set("subject", parse_wire(subject.as_bytes(), 1_000).unwrap());
            rows::put(cx.txn, &ConsentGrant::from_store(raw.clone().into()).unwrap()).unwrap();
        }
    });
    let other = r#"{"subject":{"person":"alice"},"ask":"open"}"#;
    for method in ["grant.set", "grant.set.preview"] {
        assert_eq!(world.refused(0, admin, method, other), "rate_limited");
    }
    // One that replaces another is no more.
    world.ok(0, admin, "grant.set", set);
    let listed = world.ok(0, admin, "grant.list", "{}");
    assert_eq!(at(&listed, "grants").as_array().unwrap().len(), GRANTS_PER_PERSON);
}
