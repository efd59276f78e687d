//! What the person is told, once each, and what an ack does and does not.

use crate::daemon::ctx::Note;
use crate::daemon::io::IpcId;
use crate::daemon::note::FiledLine;
use crate::daemon::testing::{World, at, key, text};
use messaging_proto::address::RoomRef;
use messaging_proto::identity::Identity;
use messaging_proto::json::Value;
use messaging_proto::name::{Label, PersonId};
use messaging_proto::realm::Role;
use messaging_proto::roster::Member;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use std::sync::Arc;

const DAY: u64 = 86_400_000;

fn list(world: &mut World, number: usize) -> Vec<Value> {
    let admin = world.connect(number);
    let listed = world.ok(number, admin, "notice.list", r#"{"limit":500}"#);
    world.close(number, admin);
    at(&listed, "notices").as_array().unwrap().to_vec()
}

fn ids(notices: &[Value]) -> Vec<&str> {
    notices.iter().map(|notice| text(notice, "id")).collect()
}

fn line(index: u64) -> FiledLine {
    FiledLine {
        id: Ulid::new(Wall(index), [7; 10]),
        seq: index,
        conversation: RoomRef::parse("dm:alice").unwrap(),
        person: PersonId::parse("alice").unwrap(),
        agent: None,
        out: false,
        notice: false,
        silent: false,
        at: Wall(index),
    }
}

fn file(world: &mut World, number: usize, line: FiledLine) {
    world.note(number, Note::LineFiled(Arc::new(line)));
}

/// A machine that can be added to the team.
fn machine(number: u8, person: &str, label: &str) -> Member {
    let identity = Identity::generate([number; 32], [number; 32]);
    Member {
        machine: identity.machine(),
        enc: identity.enc(),
        person: PersonId::parse(person).unwrap(),
        role: Role::Member,
        label: Label::parse(label).unwrap(),
    }
}

/// A request of alice's that bob's machine holds. Its envelope.
fn ask(world: &mut World, letter: char, alice: IpcId) -> String {
    let params = format!(r#"{{"key":"{}","to":"bob/agent","parts":[{{"text":"please"}}]}}"#, key(letter));
    let sent = world.ok(0, alice, "msg.send", &params);
    world.run();
    text(&sent, "results.0.envelopeId").to_owned()
}

#[test]
fn a_held_request_is_told_and_stays_held_when_it_was_seen() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    world.session(1, 'b', "agent", "codex");
    let admin = world.connect(1);
    world.ok(1, admin, "notice.subscribe", "{}");
    let envelope = ask(&mut world, 'a', alice);
    let told = world.events(1, "notice");
    assert_eq!(told.len(), 1);
    assert_eq!(text(&told[0], "notice.id"), format!("r_{envelope}"));
    assert_eq!(text(&told[0], "notice.category"), "request");
    assert_eq!(text(&told[0], "notice.conversation"), "agent:alice/lead");
    assert_eq!((text(&told[0], "notice.from.name"), text(&told[0], "notice.from.org")), ("alice", "team"));
    assert!(at(&told[0], "notice").get("line").is_none(), "a notice copies no text");
    let listed = world.ok(1, admin, "notice.list", "{}");
    assert_eq!(at(&listed, "counts.requests"), &Value::int(1));
    // Seen is not answered.
    let ack = format!(r#"{{"ids":["r_{envelope}","r_nothing"]}}"#);
    world.ok(1, admin, "notice.ack", &ack);
    let listed = world.ok(1, admin, "notice.list", "{}");
    assert_eq!(at(&listed, "notices").as_array().unwrap().len(), 0);
    assert_eq!(at(&listed, "counts.requests"), &Value::int(1));
    assert_eq!(at(&world.ok(1, admin, "request.list", "{}"), "asks").as_array().unwrap().len(), 1);
    // Answered is answered, whatever was seen.
    let second = ask(&mut world, 'a', alice);
    let answer = format!(r#"{{"id":"{second}","answer":"decline","all":true}}"#);
    world.ok(1, admin, "request.answer", &answer);
    let listed = world.ok(1, admin, "notice.list", "{}");
    assert_eq!(at(&listed, "counts.requests"), &Value::int(0));
    assert_eq!(ids(at(&listed, "notices").as_array().unwrap()), [format!("r_{second}")]);
}

#[test]
fn a_held_request_that_ended_is_not_counted() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let alice = world.session(0, 'a', "lead", "codex");
    world.session(1, 'b', "agent", "codex");
    ask(&mut world, 'a', alice);
    let admin = world.connect(1);
    world.wall += 8 * DAY;
    let listed = world.ok(1, admin, "notice.list", "{}");
    assert_eq!(at(&listed, "counts.requests"), &Value::int(0));
}

#[test]
fn lines_are_told_to_whoever_subscribed() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(1);
    let other = world.connect(1);
    file(&mut world, 1, line(1));
    assert!(world.events(1, "notice").is_empty(), "nobody subscribed");
    assert_eq!(
        world.ok(1, admin, "notice.subscribe", "{}"),
        crate::daemon::testing::json(r#"{"replayed":1}"#)
    );
    let replay = world.events(1, "notice");
    assert_eq!(text(&replay[0], "notice.id"), format!("m_{}", line(1).id));
    assert_eq!(text(&replay[0], "notice.category"), "message");
    assert_eq!(text(&replay[0], "notice.conversation"), "dm:alice");
    // A subscription counts as one for the events of everybody.
    file(&mut world, 1, line(2));
    let told = world.nodes[1].lines.iter().filter(|(_, line)| line.get("params").is_some()).count();
    assert!(told >= 1);
    let live = world.events(1, "notice");
    assert_eq!(live.len(), 1, "once, on one connection: {other:?} did not subscribe");
    // What is the person's own, a notice line, or muted makes none.
    file(&mut world, 1, FiledLine { out: true, ..line(3) });
    file(&mut world, 1, FiledLine { notice: true, ..line(4) });
    file(&mut world, 1, FiledLine { silent: true, ..line(5) });
    // The same line twice is told once.
    file(&mut world, 1, line(2));
    assert!(world.events(1, "notice").is_empty());
    // A deleted line takes its notice with it.
    world.note(1, Note::LineGone(line(1).id));
    assert_eq!(ids(&list(&mut world, 1)), [format!("m_{}", line(2).id)]);
    let gone = format!(r#"{{"after":"m_{}"}}"#, line(1).id);
    assert_eq!(world.refused(1, admin, "notice.subscribe", &gone), "not_found");
}

#[test]
fn a_line_is_told_with_its_first_line_when_asked() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let (alice, plain, texts) = (world.connect(0), world.connect(1), world.connect(1));
    world.ok(1, plain, "notice.subscribe", "{}");
    world.ok(1, texts, "notice.subscribe", r#"{"lines":true}"#);
    let line = r#"{"conversation":"dm:bob","text":"\n see\u202e this \n and this"}"#;
    let sent = world.ok(0, alice, "person.send", line);
    world.run();
    let told: Vec<_> = world.nodes[1].lines.iter().filter(|(_, line)| line.get("params").is_some()).collect();
    let on = |conn| {
        let mut mine = told.iter().filter(move |(to, line)| {
            *to == conn && line.get("params").and_then(|event| event.get("notice")).is_some()
        });
        mine.next().map(|(_, line)| at(line, "params.notice").clone()).unwrap()
    };
    assert_eq!(text(&on(plain), "id"), format!("m_{}", text(&sent, "line.id")));
    assert!(on(plain).get("line").is_none());
    assert_eq!(text(&on(texts), "line"), "see[U+202E] this");
    assert_eq!(text(&on(texts), "conversation"), "dm:alice");
    let listed = world.ok(1, texts, "notice.list", r#"{"lines":true}"#);
    assert_eq!(text(&listed, "notices.0.line"), "see[U+202E] this");
    assert_eq!(at(&listed, "counts.unread"), &Value::int(1));
    world.ok(1, texts, "conv.markRead", r#"{"conversation":"dm:alice","upTo":99}"#);
    let listed = world.ok(1, texts, "notice.list", "{}");
    assert_eq!(at(&listed, "counts.unread"), &Value::int(0));
    assert_eq!(at(&listed, "notices").as_array().unwrap().len(), 1, "read is not seen");
    // The sender is told nothing of their own line.
    assert!(list(&mut world, 0).is_empty());
}

#[test]
fn a_subscription_resumes_after_what_was_handled() {
    let mut world = World::new(&["bob/laptop"]);
    for index in 1..=4 {
        file(&mut world, 0, line(index));
    }
    let id = |index| format!("m_{}", line(index).id);
    let admin = world.connect(0);
    world.ok(0, admin, "notice.ack", &format!(r#"{{"ids":["{}","{}"]}}"#, id(1), id(3)));
    let after = |index| format!(r#"{{"after":"{}"}}"#, id(index));
    // Also after one that was acked since; a restart changes no id.
    world.start(0);
    for (from, want) in [(1, vec![id(2), id(4)]), (2, vec![id(4)]), (4, vec![])] {
        let admin = world.connect(0);
        let replied = world.ok(0, admin, "notice.subscribe", &after(from));
        assert_eq!(at(&replied, "replayed"), &Value::int(want.len() as u64));
        let replay = world.events(0, "notice");
        let got: Vec<_> = replay.iter().map(|event| text(event, "notice.id")).collect();
        assert_eq!(got, want);
        world.close(0, admin);
    }
    let newest_first = list(&mut world, 0);
    assert_eq!(ids(&newest_first), [id(4), id(2)]);
}

#[test]
fn a_replay_is_bounded() {
    let mut world = World::new(&["bob/laptop"]);
    for index in 1..=505 {
        file(&mut world, 0, line(index));
    }
    let admin = world.connect(0);
    let replied = world.ok(0, admin, "notice.subscribe", "{}");
    assert_eq!(at(&replied, "replayed"), &Value::int(500));
    let replay = world.events(0, "notice");
    assert_eq!(text(&replay[0], "notice.id"), format!("m_{}", line(6).id));
    assert_eq!(text(&replay[499], "notice.id"), format!("m_{}", line(505).id));
    let listed = world.ok(0, admin, "notice.list", "{}");
    assert_eq!(at(&listed, "notices").as_array().unwrap().len(), 50);
}

/// §8.2 "Device alerts": changes of the person's other machines that this one did not make.
#[test]
fn the_person_is_told_of_their_machines() {
    let mut world = World::new(&["alice/desk", "bob/laptop", "alice/tower"]);
    let (phone, nas) = (machine(50, "bob", "phone"), machine(51, "alice", "nas"));
    world.reroster(|author| author.member_add(&phone).unwrap());
    let told = list(&mut world, 1);
    assert_eq!(ids(&told), ["a_dev3"]);
    assert_eq!(text(&told[0], "category"), "alert");
    assert_eq!(text(&told[0], "line"), "New device on your account: 'phone', admitted by the team's admin.");
    assert_eq!(text(&told[0], "device.change"), "added");
    assert_eq!(text(&told[0], "device.device"), phone.machine.to_string());
    assert_eq!((text(&told[0], "device.label"), text(&told[0], "device.approver")), ("phone", "desk"));
    assert_eq!(at(&told[0], "device.current"), &Value::Bool(true));
    assert!(at(&told[0], "device").get("remove").is_none(), "bob's machine is no admin");
    // Another person's machines are not bob's business, and what alice's machine did is no news to it.
    world.reroster(|author| author.member_add(&nas).unwrap());
    assert_eq!(list(&mut world, 1).len(), 1);
    assert_eq!(list(&mut world, 0).len(), 0);
    let told = list(&mut world, 2);
    assert_eq!(ids(&told), ["a_dev4"]);
    // A role and a rekey are no changes of a person's machines.
    let tower = world.machine(2);
    world.reroster(|author| author.member_role(&tower, Role::Admin).unwrap());
    world.reroster(|author| author.member_rekey(&phone.machine, &machine(60, "x", "y").enc).unwrap());
    assert_eq!((list(&mut world, 1).len(), list(&mut world, 2).len()), (1, 1));
    // Now that machine is an admin, so it can undo what it was told of.
    assert_eq!(text(&list(&mut world, 2)[0], "device.remove"), "team");
    world.reroster(|author| author.member_remove(&phone.machine).unwrap());
    let told = list(&mut world, 1);
    assert_eq!(ids(&told), ["a_dev7", "a_dev3"]);
    assert_eq!(text(&told[0], "line"), "'phone' was removed from your account.");
    assert_eq!(at(&told[1], "device.current"), &Value::Bool(false), "as it is now");
    // Its own removal a machine is not told of.
    let laptop = world.machine(1);
    world.reroster(|author| author.member_remove(&laptop).unwrap());
    assert_eq!(list(&mut world, 1).len(), 2);
    // Nothing is told twice after a restart.
    world.start(2);
    assert_eq!(list(&mut world, 2).len(), 1);
}

#[test]
fn trust_that_ends_is_told_once_a_grant() {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(1);
    // The tests start on 2023-11-14, late in the evening.
    let until = world.wall + 8 * DAY;
    let set = format!(r#"{{"subject":{{"person":"alice"}},"ask":"open","trustedUntil":{until}}}"#);
    let grant = world.ok(1, admin, "grant.set", &set);
    world.pass(DAY - 120_000);
    assert!(list(&mut world, 1).is_empty());
    world.pass(240_000);
    let told = list(&mut world, 1);
    assert_eq!(ids(&told), [format!("a_trust{}", text(&grant, "grant.id"))]);
    assert_eq!(
        text(&told[0], "line"),
        "Trust you gave this person ends on 2023-11-22; renew it or let it lapse."
    );
    assert_eq!(text(&told[0], "from.name"), "alice");
    world.start(1);
    world.pass(120_000);
    assert_eq!(list(&mut world, 1).len(), 1);
    // Renewed for a few days: another grant, told again at the next sweep.
    let admin = world.connect(1);
    let until = world.wall + 2 * DAY;
    let set = format!(r#"{{"subject":{{"person":"alice"}},"ask":"open","trustedUntil":{until}}}"#);
    world.ok(1, admin, "grant.set", &set);
    world.pass(61_000);
    assert_eq!(list(&mut world, 1).len(), 2);
    // Taken back before its time: nothing is told.
    let until = world.wall + 9 * DAY;
    let set = format!(r#"{{"subject":{{"person":"alice"}},"ask":"open","trustedUntil":{until}}}"#);
    world.ok(1, admin, "grant.set", &set);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    world.wall += 3 * DAY;
    world.pass(61_000);
    assert_eq!(list(&mut world, 1).len(), 2);
}

#[test]
fn an_alarm_is_told_when_it_is_raised() {
    let mut world = World::new(&["alice/desk"]);
    let (own, other) = (world.machine(0), machine(60, "x", "y").enc);
    // This machine published a key, and holds it no more.
    world.reroster(|author| author.member_rekey(&own, &other).unwrap());
    let told = list(&mut world, 0);
    assert_eq!(told.len(), 1);
    assert!(text(&told[0], "id").starts_with("a_restored_"));
    assert_eq!(text(&told[0], "category"), "alert");
    assert!(text(&told[0], "line").len() <= 120);
    world.start(0);
    assert_eq!(list(&mut world, 0), told, "as long as it stands it is not told again");
}

/// §8.2: with the transcript's retention, and acked ones with the read mail's.
#[test]
fn notices_go_by_retention() {
    let mut world = World::new(&["bob/laptop"]);
    world.configure(0, r#"{"retention":{"readDays":2,"transcriptDays":5}}"#);
    for index in 1..=2 {
        file(&mut world, 0, line(index));
    }
    let admin = world.connect(0);
    let first = format!("m_{}", line(1).id);
    world.ok(0, admin, "notice.ack", &format!(r#"{{"ids":["{first}"]}}"#));
    let after = format!(r#"{{"after":"{first}"}}"#);
    world.wall += 2 * DAY - 1;
    world.pass(61_000);
    let admin = world.connect(0);
    assert_eq!(world.refused(0, admin, "notice.subscribe", &after), "not_found", "the acked one is gone");
    assert_eq!(list(&mut world, 0).len(), 1);
    world.wall += 3 * DAY;
    world.pass(61_000);
    assert_eq!(list(&mut world, 0).len(), 0);
    let left = world.nodes[0].base.iter().filter(|(table, ..)| table.0.starts_with("notice")).count();
    assert_eq!(left, 0, "no row is left");
}

#[test]
fn notices_are_the_persons() {
    let mut world = World::new(&["alice/desk"]);
    let conn = world.agent(0);
    for method in ["notice.subscribe", "notice.list", "notice.ack"] {
        assert_eq!(world.refused(0, conn, method, "{}"), "forbidden", "{method}");
    }
    let admin = world.connect(0);
    for (method, params) in [
        ("notice.subscribe", r#"{"after":""}"#),
        ("notice.subscribe", r#"{"since":1}"#),
        ("notice.list", r#"{"limit":0}"#),
        ("notice.list", r#"{"limit":501}"#),
        ("notice.ack", r#"{"ids":[]}"#),
        ("notice.ack", r#"{"ids":[1]}"#),
        ("notice.ack", "{}"),
    ] {
        assert_eq!(world.refused(0, admin, method, params), "invalid_request", "{method} {params}");
    }
}
