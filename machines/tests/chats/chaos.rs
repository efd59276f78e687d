//! Random chats under random faults, then peace: every line is where it belongs, once, and every count is what counting
//! gives. A failure names its seed.

use crate::common::{Crash, World, at, text};
use crate::person::{call, number, ok};
use messaging_machines::store::MemoryBase;
use messaging_proto::json::Value;
use messaging_sim::chaos::Dice;
use std::collections::{BTreeMap, BTreeSet};

const MACHINES: [(&str, &str); 5] =
    [("alice", "laptop"), ("alice", "phone"), ("bob", "desk"), ("carol", "tower"), ("carol", "phone")];
const PERSONS: [&str; 3] = ["alice", "bob", "carol"];

/// One of these.
fn one<T: Copy>(dice: &mut Dice, of: &[T]) -> T {
    of[dice.roll(of.len())]
}

/// A direct line that was accepted: who said it to whom, on which machine, and its id.
struct Said {
    from: usize,
    to: &'static str,
    id: String,
}

/// Something a person does, or something that goes wrong.
fn act(world: &mut World, dice: &mut Dice, turn: usize, said: &mut Vec<Said>) {
    let node = dice.roll(MACHINES.len());
    let channel = one(dice, &["eng", "ops", "eng-2"]);
    let person = one(dice, &PERSONS);
    match dice.roll(16) {
        0..=4 => {
            let params = format!(
                r#"{{"conversation":"dm:{person}","text":"{turn} to {person}","clientId":"{turn}"}}"#
            );
            if let Ok(line) = call(world, node, "person.send", &params) {
                said.push(Said { from: node, to: person, id: text(&line, "line.id").to_owned() });
            }
        }
        5..=8 => {
            let params = format!(
                r#"{{"conversation":"channel:{channel}","text":"{turn} in it","clientId":"{turn}"}}"#
            );
            let _ = call(world, node, "person.send", &params);
        }
        9 => {
            let others: Vec<String> = PERSONS
                .iter()
                .filter(|other| **other != MACHINES[node].0 && dice.roll(3) > 0)
                .map(|other| format!(r#""{other}""#))
                .collect();
            let params =
                format!(r#"{{"name":"{}","persons":[{}]}}"#, one(dice, &["eng", "ops"]), others.join(","));
            let _ = call(world, node, "channel.create", &params);
        }
        10 => {
            let method = one(dice, &["channel.invite", "channel.remove"]);
            let _ = call(world, node, method, &format!(r#"{{"name":"{channel}","persons":["{person}"]}}"#));
        }
        11 => {
            let _ = call(world, node, "channel.leave", &format!(r#"{{"name":"{channel}"}}"#));
        }
        12 => {
            let up_to = dice.roll(60);
            let params = format!(r#"{{"conversation":"dm:{person}","upTo":{up_to}}}"#);
            let _ = call(world, node, "conv.markRead", &params);
        }
        13 => world.reach_from(node, dice.roll(2) == 0),
        14 => {
            let crash = Crash { at: 1 + dice.roll(6), committed: dice.roll(2) == 0, effects: dice.roll(3) };
            world.crash(node, crash);
        }
        _ => world.restart_relay(),
    }
    world.pass(one(dice, &[0, 20, 500, 3_000]));
}

/// Every line of a machine, by its id.
fn lines_of(world: &mut World, node: usize) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    let list = ok(world, node, "conv.list", r#"{"limit":200}"#);
    for chat in at(&list, "conversations").as_array().expect("an array") {
        let (room, mut unread, mut after, mut last) = (text(chat, "conversation"), 0, 0, 0);
        loop {
            let params = format!(r#"{{"conversation":"{room}","after":{after},"limit":100}}"#);
            let page = ok(world, node, "conv.read", &params);
            for line in at(&page, "lines").as_array().expect("an array") {
                after = number(line, "seq");
                assert!(after > last, "{room}: in order");
                last = after;
                let counts = line.get("out") == Some(&Value::Bool(false)) && after > number(chat, "readUpTo");
                unread += u64::from(counts);
                assert!(found.insert(text(line, "id").to_owned(), line.clone()).is_none(), "{room}: twice");
            }
            if at(&page, "more") == &Value::Bool(false) {
                break;
            }
        }
        assert_eq!(number(chat, "unread"), unread, "machine {node}, {room}: unread");
        assert_eq!(
            chat.get("lastSeq").map(|_| number(chat, "lastSeq")),
            (last > 0).then_some(last),
            "{room}"
        );
    }
    found
}

/// What the rows of one machine must agree on.
fn check_rows(base: &MemoryBase, lines: usize) {
    let rows = |name: &str| base.iter().filter(|(table, ..)| table.0 == name).count();
    for table in ["chat_line", "chat_line_id", "chat_order", "chat_thread", "chat_person", "chat_change"] {
        assert_eq!(rows(table), lines, "{table}");
    }
    for table in ["chat_copy", "chat_open", "chat_gone"] {
        assert_eq!(rows(table), 0, "{table}: everything was settled");
    }
}

fn run(seed: u64) -> Vec<String> {
    let names: Vec<String> = MACHINES.iter().map(|(person, label)| format!("{person}/{label}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::team(1_000 + seed, &names);
    let mut dice = Dice::new(seed, 0);
    let mut said = Vec::new();
    for turn in 0..120 {
        act(&mut world, &mut dice, turn, &mut said);
    }
    // Peace.
    for node in &mut world.nodes {
        node.crash = None;
    }
    for node in 0..MACHINES.len() {
        world.reach_from(node, true);
    }
    world.pass(900_000);
    let all: Vec<_> = (0..MACHINES.len()).map(|node| lines_of(&mut world, node)).collect();
    for (node, lines) in all.iter().enumerate() {
        check_rows(&world.nodes[node].base, lines.len());
        for (id, line) in lines {
            assert_ne!(line.get("state").and_then(Value::as_str), Some("sent"), "{id} is settled");
            for other in all.iter().filter_map(|other| other.get(id)) {
                assert_eq!(text(other, "person"), text(line, "person"));
                // A notice is each machine's own, with its own name for the channel.
                assert!(line.get("notice").is_some() || text(other, "text") == text(line, "text"));
            }
        }
    }
    for Said { from, to, id } in &said {
        let line = all[*from].get(id).unwrap_or_else(|| panic!("{id} is not with its sender"));
        let own = MACHINES[*from].0 == *to;
        assert_eq!(line.get("state").and_then(Value::as_str), (!own).then_some("delivered"), "{id}");
        for (node, (person, _)) in MACHINES.iter().enumerate() {
            let belongs = node == *from || person == to;
            assert_eq!(all[node].contains_key(id), belongs, "{id} on machine {node}");
        }
    }
    let distinct: BTreeSet<_> = all.iter().flat_map(BTreeMap::keys).collect();
    assert!(distinct.len() > 20, "something was said");
    world.log
}

#[test]
fn random_chats_under_random_faults_come_to_the_same_end() {
    for seed in 0..12 {
        let outcome = std::panic::catch_unwind(|| run(seed));
        assert!(outcome.is_ok(), "seed {seed}");
    }
}

#[test]
fn a_seed_is_a_run() {
    assert!(run(77) == run(77), "two runs of one seed differ");
}
