//! Plans: they read back, the ones in the tree play clean, runs of one seed are one, and every check can fail.
#![allow(clippy::unwrap_used)]

use messaging_machines::store::{MemoryBase, Table, Txn, Writes};
use messaging_sim::chaos::Dice;
use messaging_sim::invariants::{Invariants, Watcher};
use messaging_sim::plan::{Act, generate};
use messaging_sim::run::{SECRET, explained, play, play_twice};
use messaging_sim::source::{Bytes, Source};
use messaging_sim::{Commit, Plan, Profile, Watch, Who};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

#[test]
fn every_drawn_plan_reads_back() {
    let mut acts = std::collections::BTreeSet::new();
    for seed in 0..300 {
        let profile = Profile::ALL[usize::try_from(seed % 3).unwrap()];
        let plan = generate(&mut Dice::new(seed, 0), seed, profile, 40, 60_000);
        assert_eq!(Plan::parse(&plan.to_text()), Ok(plan.clone()));
        assert!(plan.items.windows(2).all(|two| two[0].at <= two[1].at), "in order of time");
        acts.extend(plan.items.iter().map(|item| item.act.name()));
    }
    assert_eq!(acts.len(), 45, "every act is drawn: {acts:?}");
}

#[test]
fn a_text_that_is_no_plan_is_named_by_its_line() {
    for (text, line) in [
        ("", 1),
        ("{}", 1),
        ("{\"seed\":1,\"machines\":[]}", 1),
        ("{\"seed\":1,\"machines\":[\"a/b\"]}\n\n# words\n{\"at\":1,\"dance\":{}}", 4),
        ("{\"seed\":1,\"machines\":[\"a/b\"]}\n{\"at\":1,\"woke\":{\"node\":0,\"more\":1}}", 2),
    ] {
        assert_eq!(Plan::parse(text).unwrap_err().line, line, "{text}");
    }
}

#[test]
fn bytes_are_choices_until_they_end() {
    let mut bytes = Bytes::new(&[1, 2, 3]);
    assert_eq!((bytes.below(1_000), bytes.below(1_000), bytes.below(1_000)), (258, 3, 0));
    assert!(bytes.is_empty());
}

/// Every bug that a plan found keeps its shrunk plan here; and each of the others holds one story.
#[test]
fn the_plans_of_the_tree_play_clean_and_twice_the_same() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("plans");
    let mut played = 0;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for path in files {
        let plan = Plan::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let outcome = play_twice(&plan).unwrap_or_else(|failure| panic!("{}: {failure}", path.display()));
        assert!(outcome.relayed > 0, "{}: nothing happened", path.display());
        played += 1;
    }
    assert!(played > 0);
}

#[test]
fn a_seed_of_each_profile_plays_twice_the_same() {
    for profile in Profile::ALL {
        let plan = generate(&mut Dice::new(3, 0), 3, profile, 25, 600_000);
        play_twice(&plan).unwrap_or_else(|failure| panic!("{profile:?}: {failure}"));
    }
}

#[test]
fn a_timeline_shows_a_message_and_its_stages() {
    let text = "{\"seed\":5,\"machines\":[\"alice/laptop\",\"bob/desk\"]}\n\
        {\"at\":0,\"ack\":{\"node\":1}}\n{\"at\":1000,\"send\":{\"from\":0,\"to\":1,\"task\":false}}\n{\"at\":2000,\"ack\":{\"node\":1}}\n";
    let (lines, ran) =
        explained(&Plan::parse(text).unwrap(), &["plain-text-1".to_owned(), "stage".to_owned()]);
    let outcome = ran.unwrap();
    assert_eq!(outcome.sends, 1);
    assert!(lines.iter().any(|line| line.contains("inbox") && line.contains("plain-text-1")), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.contains("accepted > relayed > delivered > handed_to_agent")),
        "{lines:#?}"
    );
}

/// A step of a machine made by hand.
fn step(
    seen: &Rc<RefCell<Invariants>>,
    who: Who,
    rows: &[(&'static str, &[u8], Option<&str>)],
    effects: &[&str],
) {
    let (base, mut writes) = (MemoryBase::default(), Writes::new());
    let mut txn = Txn::new(&base, None, &mut writes);
    for (table, key, value) in rows {
        match value {
            Some(value) => txn.put(Table(table), key, format!("\u{1}{value}").as_bytes()),
            None => txn.delete(Table(table), key),
        }
    }
    let effects: Vec<String> = effects.iter().map(|effect| (*effect).to_owned()).collect();
    let commit = Commit { who, mono: 1, wall: 2, writes: &writes, effects: &effects };
    Watcher(Rc::clone(seen)).commit(&commit);
}

/// A check that cannot fail checks nothing.
#[test]
fn every_check_can_fail() {
    let machine = Who::Daemon(0);
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let item = |stage: &str| format!(r#"{{"id":"{id}","stage":"{stage}","from":{{"device":"evil"}}}}"#);
    let history = |stages: &[&str]| {
        let all: Vec<String> = stages.iter().map(|stage| format!(r#"{{"stage":"{stage}"}}"#)).collect();
        format!(r#"{{"history":[{}]}}"#, all.join(","))
    };
    let task = |state: &str| format!(r#"{{"id":"{id}","status":{{"state":"TASK_STATE_{state}"}}}}"#);
    let fails = |name: &str, run: &dyn Fn(&Rc<RefCell<Invariants>>)| {
        let seen = Rc::new(RefCell::new(Invariants::new(SECRET)));
        run(&seen);
        let broken: Vec<&str> = seen.borrow().broken.iter().map(|broken| broken.invariant).collect();
        // A step made by hand breaks other promises too, such as that its machines are members.
        assert!(broken.contains(&name), "{name}: {broken:?}");
    };
    let mut names = Vec::new();
    let mut check = |name: &'static str, run: &dyn Fn(&Rc<RefCell<Invariants>>)| {
        fails(name, run);
        names.push(name);
    };
    check("inbox-once", &|seen| {
        step(seen, machine, &[("inbox", b"mailbox-1", Some(&item("delivered")))], &[]);
        step(seen, machine, &[("inbox", b"mailbox-1", Some(&item("read")))], &[]);
        step(seen, machine, &[("inbox", b"mailbox-2", Some(&item("delivered")))], &[]);
    });
    check("stages-forward", &|seen| {
        step(seen, machine, &[("sent", b"one", Some(&history(&["accepted", "relayed", "read"])))], &[]);
        step(
            seen,
            machine,
            &[("sent", b"one", Some(&history(&["accepted", "relayed", "read", "delivered"])))],
            &[],
        );
    });
    check("tasks-terminal", &|seen| {
        step(seen, machine, &[("task", b"one", Some(&task("WORKING")))], &[]);
        step(seen, machine, &[("task", b"one", Some(&task("COMPLETED")))], &[]);
        step(seen, machine, &[("task", b"one", Some(&task("FAILED")))], &[]);
    });
    check("one-chain", &|seen| step(seen, machine, &[("roster", b"12345678", Some("{}"))], &[]));
    check("removed-is-out", &|seen| {
        let entry = r#"{"op":"member.remove","machine":"evil"}"#;
        step(seen, Who::Relay, &[("relay.roster", b"teamseq-", Some(entry))], &[]);
        // The relay's rows have no version byte; what is compared here is only that there is a removal.
        let seen_before = seen.borrow().broken.len();
        step(seen, machine, &[("roster", b"teamseq-", Some(entry))], &[]);
        seen.borrow_mut().broken.truncate(seen_before);
        step(
            seen,
            machine,
            &[("inbox", b"mailbox-1", Some(&item("delivered"))), ("inbox_id", b"x", Some("1"))],
            &[],
        );
    });
    check("relay-sees-no-plaintext", &|seen| {
        step(seen, Who::Relay, &[("relay.presence", b"k", Some("it says plain-text-7 here"))], &[]);
    });
    check("no-error-log", &|seen| {
        step(seen, machine, &[], &[r#"{"Log":{"level":"Error","event":"roster.broken","fields":[]}}"#]);
    });
    check("queue-caps", &|seen| {
        for number in 0..=12_u64 {
            let key = [[7; 16].as_slice(), &number.to_be_bytes()].concat();
            step(seen, Who::Relay, &[("relay.order", &key, Some("x"))], &[]);
        }
    });
    check("acked-is-durable", &|seen| {
        step(
            seen,
            Who::Relay,
            &[],
            &[&format!(r#"{{"Send":{{"conn":1,"frame":{{"Ack":{{"id":"{id}"}}}}}}}}"#)],
        );
    });
    let stored = |id: &str| {
        format!(
            "\0\0\0\0\0\0\0\0{{\"id\":\"{id}\",\"from\":{{\"device\":\"a\"}},\"to\":{{\"device\":\"b\"}}}}"
        )
    };
    check("stored-once", &|seen| {
        step(seen, Who::Relay, &[("relay.envelope", b"00000001", Some(&stored(id)))], &[]);
        step(seen, Who::Relay, &[("relay.envelope", b"00000002", Some(&stored(id)))], &[]);
    });
    check("delivery-window", &|seen| {
        for number in 0..4 {
            let key = format!("0000000{number}");
            let id = number.to_string();
            step(seen, Who::Relay, &[("relay.envelope", key.as_bytes(), Some(&stored(&id)))], &[]);
            let env = format!(r#"{{\"id\":\"{id}\",\"from\":{{\"device\":\"a\"}}}}"#);
            let send = format!(r#"{{"Send":{{"conn":1,"frame":{{"Deliver":{{"env":"{env}"}}}}}}}}"#);
            step(seen, Who::Relay, &[], &[&send]);
        }
    });
    check("one-fate", &|seen| {
        let refused = r#"{"history":[{"stage":"delivered"},{"stage":"rejected","code":"invalid_request"}]}"#;
        step(seen, machine, &[("inbox", b"mailbox-1", Some(&item("delivered")))], &[]);
        step(seen, Who::Daemon(1), &[("sent", id.as_bytes(), Some(refused))], &[]);
    });
    check("said-is-durable", &|seen| {
        step(
            seen,
            machine,
            &[],
            &[r#"{"LinkSend":{"link":1,"text":"{\"env\":{\"id\":\"one\"},\"t\":\"send\"}"}}"#],
        );
    });
    check("stage-is-proved", &|seen| {
        step(seen, machine, &[("sent", id.as_bytes(), Some(&history(&["accepted", "read"])))], &[]);
    });
    check("tasks-by-table", &|seen| {
        step(seen, machine, &[("task", b"one", Some(&task("WORKING")))], &[]);
        step(seen, machine, &[("task", b"one", Some(&task("REJECTED")))], &[]);
    });
    check("old-keys-open", &|seen| {
        let refused = r#"{"history":[{"stage":"rejected","code":"roster_conflict"}]}"#;
        step(seen, machine, &[("sent", id.as_bytes(), Some(refused))], &[]);
    });
    check("evidence-is-kept", &|seen| {
        step(seen, machine, &[], &[r#"{"Log":{"level":"Error","event":"roster.divergence","fields":[]}}"#]);
    });
    check("roster-authority", &|seen| {
        let entry = r#"{"op":"member.remove","machine":"one","by":"two","seq":0}"#;
        step(seen, Who::Relay, &[("relay.roster", b"teamseq-", Some(entry))], &[]);
    });
    check("numbers-rise", &|seen| {
        step(seen, machine, &[("chat_room", b"one", Some(r#"{"readUpTo":5}"#))], &[]);
        step(seen, machine, &[("chat_room", b"one", Some(r#"{"readUpTo":4}"#))], &[]);
    });
    check("let-in-by-the-person", &|seen| {
        let item =
            format!(r#"{{"id":"{id}","stage":"delivered","from":{{"device":"d","person":"mallory"}}}}"#);
        step(seen, machine, &[("inbox", b"mailbox-1", Some(&item))], &[]);
    });
    check("taken-in-turn", &|seen| {
        for (position, id) in [(b"00000001", id), (b"00000002", "01ARZ3NDEKTSV4RRFFQ69G5FAX")] {
            step(seen, Who::Relay, &[("relay.envelope", position, Some(&stored(id)))], &[]);
        }
        step(seen, machine, &[("seen", b"01ARZ3NDEKTSV4RRFFQ69G5FAX\0", Some("1"))], &[]);
        step(seen, machine, &[("seen", b"01ARZ3NDEKTSV4RRFFQ69G5FAV\0", Some("1"))], &[]);
    });
    let all = Invariants::new(SECRET).names();
    let left: Vec<&&str> = all.iter().filter(|name| !names.contains(name)).collect();
    assert_eq!(left, [&"order-per-sender"], "needs whole envelopes: its own test");
}

#[test]
fn a_late_message_breaks_the_order() {
    let seen = Rc::new(RefCell::new(Invariants::new(SECRET)));
    let envelope = |id: &str| {
        format!(
            "\0\0\0\0\0\0\0\0{{\"id\":\"{id}\",\"from\":{{\"device\":\"a\"}},\"to\":{{\"device\":\"b\"}}}}"
        )
    };
    let item = |id: &str| format!(r#"{{"id":"{id}","stage":"delivered","from":{{"device":"a"}}}}"#);
    for (position, id) in [(b"00000001", "first"), (b"00000002", "second")] {
        step(&seen, Who::Relay, &[("relay.envelope", position, Some(&envelope(id)))], &[]);
    }
    step(&seen, Who::Daemon(1), &[("inbox", b"mailbox1a", Some(&item("second")))], &[]);
    step(&seen, Who::Daemon(1), &[("inbox", b"mailbox1b", Some(&item("first")))], &[]);
    assert!(seen.borrow().broken.iter().any(|broken| broken.invariant == "order-per-sender"));
}

#[test]
fn a_fault_that_a_plan_leaves_on_ends_with_it() {
    let mut plan = generate(&mut Dice::new(8, 0), 8, Profile::Calm, 3, 1_000);
    plan.items.push(messaging_sim::plan::Item { at: 2_000, act: Act::Silent { node: 1, on: true } });
    play(&plan, false).unwrap();
}
