//! What a hostile member or client could make this machine hold, or never show again: each has its bound.

use super::outbox::{self, Queued};
use super::thread::{self, Kind as Entry, Place, With};
use crate::daemon::io::IpcId;
use crate::daemon::sessions::SESSIONS_MOST;
use crate::daemon::testing::{Forged, World, at, key, text};
use messaging_proto::envelope::Kind;
use messaging_proto::json::{Value, canonicalize};
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

fn world(machines: &[&str]) -> World {
    let mut world = World::new(machines);
    for number in 0..machines.len() {
        let admin = world.connect(number);
        for person in ["alice", "bob", "carol"] {
            let grant = format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#);
            let _ = world.call(number, admin, "grant.set", &grant);
        }
    }
    world
}

/// A part that nests `depth` arrays.
fn deep(depth: usize) -> String {
    format!(r#"{{"data":{}{}}}"#, "[".repeat(depth), "]".repeat(depth))
}

fn mail(depth: usize, more: &str) -> String {
    format!(
        r#"{{"kind":"message","message":{{"messageId":"m","role":"ROLE_USER","parts":[{}]{more}}}}}"#,
        deep(depth)
    )
}

fn deliver(world: &mut World, from: usize, to: usize, payload: &str) {
    let (author, session) = if to == 1 { ("lead", "agent") } else { ("agent", "lead") };
    let envelope = world.forge(from, to, &Forged::new(Kind::Message, payload).between(author, session));
    assert!(world.deliver(to, envelope), "what is refused is acked");
}

/// Reads every unread item of a session. How many there were.
fn read_all(world: &mut World, number: usize, conn: IpcId, letter: char) -> usize {
    let items = world.unread(number, conn, letter);
    for item in &items {
        let read = format!(r#"{{"key":"{}","id":"{}"}}"#, key(letter), text(item, "id"));
        let read = world.ok(number, conn, "item.read", &read);
        assert!(!at(&read, "message.parts").as_array().unwrap().is_empty());
    }
    items.len()
}

/// A line of the local API nests no deeper than an envelope's body may, so what is as deep as a body allows fits in
/// no line: it was delivered, `item.read` and `task.get` answered `too_large` ever after, and its events were lost.
#[test]
fn what_is_taken_can_be_shown() {
    let mut world = world(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    let bob = world.session(1, 'b', "agent", "codex");
    // 28 is as deep as a body allows.
    for (depth, taken) in [(26, 1), (27, 1), (28, 0)] {
        deliver(&mut world, 0, 1, &mail(depth, ""));
        assert_eq!(read_all(&mut world, 1, bob, 'b'), taken, "mail {depth} deep");
    }
    let send = |depth: usize, more: &str| {
        format!(r#"{{"key":"{}","to":"bob/agent","parts":[{}]{more}}}"#, key('a'), deep(depth))
    };
    world.ok(0, alice, "msg.send", &send(27, ""));
    assert_eq!(world.refused(0, alice, "msg.send", &send(28, "")), "too_large");
    world.run();
    assert_eq!(read_all(&mut world, 1, bob, 'b'), 1);

    // A task is shown with its history.
    assert_eq!(world.refused(0, alice, "msg.send", &send(25, r#","kind":"task""#)), "too_large");
    let sent = world.ok(0, alice, "msg.send", &send(24, r#","kind":"task""#));
    let (task, request) =
        (text(&sent, "results.0.taskId").to_owned(), text(&sent, "results.0.envelopeId").to_owned());
    world.run();
    let get = |letter: char| format!(r#"{{"key":"{}","taskId":"{task}"}}"#, key(letter));
    let more = format!(r#","taskId":"{task}","contextId":"c""#);
    for (depth, taken) in [(24, 1), (25, 0), (28, 0)] {
        let before = read_all(&mut world, 1, bob, 'b');
        assert!(before <= 1);
        deliver(&mut world, 0, 1, &mail(depth, &more));
        assert_eq!(read_all(&mut world, 1, bob, 'b'), taken, "a follow-up {depth} deep");
    }
    assert_eq!(at(&world.ok(1, bob, "task.get", &get('b')), "task.history").as_array().unwrap().len(), 2);
    world.events(0, "task");
    let update = |depth: usize, artifact: bool| {
        if artifact {
            let artifact = format!(r#"{{"artifactId":"a{depth}","parts":[{}]}}"#, deep(depth));
            (
                Kind::TaskArtifact,
                format!(r#"{{"taskId":"{task}","contextId":"c","artifact":{artifact}}}"#),
                format!(r#"{{"key":"{}","taskId":"{task}","artifact":{artifact}}}"#, key('b')),
            )
        } else {
            let message = format!(r#"{{"messageId":"m","role":"ROLE_AGENT","parts":[{}]}}"#, deep(depth));
            let status = format!(r#"{{"state":"TASK_STATE_WORKING","message":{message}}}"#);
            (
                Kind::TaskStatus,
                format!(r#"{{"taskId":"{task}","contextId":"c","status":{status}}}"#),
                format!(
                    r#"{{"key":"{}","taskId":"{task}","state":"TASK_STATE_WORKING","message":[{}]}}"#,
                    key('b'),
                    deep(depth)
                ),
            )
        }
    };
    for (depth, artifact, taken) in
        [(25, true, 1), (26, true, 0), (28, true, 0), (26, false, 1), (27, false, 0)]
    {
        let (kind, payload, params) = update(depth, artifact);
        let mut forged = Forged::new(kind, &payload);
        forged.reply_to = Some(&request);
        let forged = world.forge(1, 0, &forged);
        assert!(world.deliver(0, forged));
        assert_eq!(world.events(0, "task").len(), taken, "{kind:?} {depth} deep is heard of");
        world.ok(0, alice, "task.get", &get('a'));
        // As deep as a request's line allows; the executor's own daemon says what the other's would.
        if depth < 28 {
            let said = world.call(1, bob, "task.update", &params);
            assert_eq!(said.is_ok(), taken == 1, "{kind:?} {depth} deep: {said:?}");
        }
        world.nodes[0].clear_queue();
    }
}

/// The same where it would wait for its person first.
#[test]
fn what_is_held_can_be_shown() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let bob = world.session(1, 'b', "agent", "codex");
    let admin = world.connect(1);
    for (depth, count) in [(27, 1), (28, 1)] {
        deliver(&mut world, 0, 1, &mail(depth, ""));
        let asks = world.ok(1, admin, "request.list", "{}");
        assert_eq!(at(&asks, "asks").as_array().unwrap().len(), count, "{depth}");
    }
    let asks = world.ok(1, admin, "request.list", "{}");
    let answer = format!(r#"{{"id":"{}","answer":"once"}}"#, text(&asks, "asks.0.id"));
    world.ok(1, admin, "request.answer", &answer);
    assert_eq!(read_all(&mut world, 1, bob, 'b'), 1);
}

/// A member that sends and takes nothing back: the answers that wait for it are bounded, and nobody else's are.
#[test]
fn answers_nobody_takes_are_bounded() {
    let mut world = world(&["alice/desk", "bob/laptop", "carol/tower"]);
    let bob = world.session(1, 'b', "agent", "codex");
    let admin = world.connect(1);
    world.link(1, false);
    let (alice, exp) = (world.machine(0), Wall(world.wall + 600_000));
    let waiting =
        |world: &mut World| at(&world.ok(1, admin, "daemon.status", "{}"), "outbox.waiting").clone();
    // The link is down, so that the answers stay.
    let hear = |world: &mut World, from: usize| {
        let payload = mail(1, "");
        let envelope = world.forge(from, 1, &Forged::new(Kind::Message, &payload).between("lead", "agent"));
        world.hear(1, envelope);
    };
    let id = |number: u16| {
        let mut random = [0; 10];
        random[..2].copy_from_slice(&number.to_be_bytes());
        Ulid::new(Wall(1), random)
    };
    world.within(1, |cx| {
        for number in 0..9_999 {
            let row = Queued { id: id(number), exp, at: cx.now(), ordered: false, env: "{}".to_owned() };
            outbox::add(cx.txn, &alice, &row, false).unwrap();
        }
    });
    for count in [10_000, 10_000] {
        hear(&mut world, 0);
        assert_eq!(waiting(&mut world), Value::int(count));
    }
    assert_eq!(read_all(&mut world, 1, bob, 'b'), 2, "what it sent is there all the same");
    hear(&mut world, 2);
    assert_eq!(waiting(&mut world), Value::int(10_001));
    world.within(1, |cx| outbox::drop_envelope(cx.txn, &id(7)).unwrap().unwrap());
    hear(&mut world, 0);
    assert_eq!(waiting(&mut world), Value::int(10_001), "with room there are answers again");
}

/// A member that writes under a name of its own each time hides no conversation with others.
#[test]
fn many_names_of_one_member_leave_the_others_conversations() {
    let mut world = world(&["alice/desk", "bob/laptop", "carol/tower"]);
    let bob = world.session(1, 'b', "agent", "codex");
    deliver(&mut world, 2, 1, &mail(1, ""));
    assert_eq!(read_all(&mut world, 1, bob, 'b'), 1);
    world.within(1, |cx| {
        for number in 0..6_000_u64 {
            let person = PersonId::parse("alice").unwrap();
            let agent = SessionName::parse(&format!("a{number}")).unwrap();
            let place = Place { at: cx.now(), id: Ulid::new(cx.now(), [1; 10]) };
            thread::add(cx.txn, 1, &With { person, agent }, &place, Entry::Out);
        }
    });
    let admin = world.connect(1);
    let read = world.ok(1, admin, "agents.read", r#"{"agent":"agent"}"#);
    let shown: Vec<&str> = at(&read, "conversations")
        .as_array()
        .unwrap()
        .iter()
        .map(|conversation| text(conversation, "conversation"))
        .collect();
    assert!(shown.contains(&"agent:carol/lead"), "{} are shown", shown.len());
    assert!(shown.len() < 1_000);
}

/// One client that registers without end: the others' sessions, and what shows them all, stay.
#[test]
fn sessions_without_end_are_refused() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let honest = world.session(0, 'h', "honest", "codex");
    let hostile = world.agent(0);
    let register = |number: usize, agent: &str| {
        format!(
            r#"{{"key":"hostile-key-{number:012}","name":"n{number}","agent":"{agent}","tier":"pull","repo":"{}"}}"#,
            "\\u0001".repeat(200)
        )
    };
    for number in 1..SESSIONS_MOST {
        world.ok(0, hostile, "session.register", &register(number, "codex"));
    }
    assert_eq!(world.refused(0, hostile, "session.register", &register(0, "codex")), "rate_limited");
    // One it has is taken up again, and renamed; another is taken over.
    world.ok(0, hostile, "session.register", &register(5, "codex").replace("n5", "other"));
    let key = key('h');
    let again = format!(r#"{{"key":"{key}","name":"honest","agent":"codex","tier":"push"}}"#);
    world.ok(0, honest, "session.register", &again);
    let shown = world.ok(0, honest, "contacts.list", "{}");
    assert_eq!(at(&shown, "entries").as_array().unwrap().len(), SESSIONS_MOST);
    assert!(canonicalize(&shown).unwrap().len() < 8_000_000);
    // The person's own terminal still gets in.
    let admin = world.connect(0);
    world.ok(0, admin, "session.register", &register(0, "cli"));
    let forget = format!(r#"{{"key":"hostile-key-{:012}","keep":false}}"#, 5);
    world.ok(0, hostile, "session.unregister", &forget);
    let forget = format!(r#"{{"key":"hostile-key-{:012}","keep":false}}"#, 6);
    world.ok(0, hostile, "session.unregister", &forget);
    world.ok(0, hostile, "session.register", &register(5_000, "codex"));
}
