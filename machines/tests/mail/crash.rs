//! Issue 2, "kill -9": a daemon dies at any event of an exchange, before its commit, after it, or after some of
//! what it said left. The end is the undisturbed one.

use crate::clients::{Agent, open};
use crate::common::{Crash, World, at, text};

/// What both sides hold in the end.
#[derive(Debug, PartialEq)]
struct End {
    stages: Vec<String>,
    tasks: [String; 2],
    inboxes: [Vec<String>; 2],
}

/// Runs the exchange with a crash. Whether it happened.
fn exchange(crash: Option<(usize, Crash)>) -> (End, bool) {
    let mut world = World::team(21, &["alice/laptop", "bob/desk"]);
    open(&mut world, 1, "alice");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    world.pass(3_000);
    if let Some((node, crash)) = crash {
        world.crash(node, crash);
    }
    let sent = alice.send(&mut world, "bob/agent", "mail", r#","idempotencyKey":"one""#);
    let mail = text(&sent, "envelopeId").to_owned();
    world.pass(90_000);
    bob.ok(&mut world, "item.read", &format!(r#","id":"{mail}""#));
    bob.send(&mut world, "alice/lead", "reply", &format!(r#","replyTo":"{mail}","idempotencyKey":"two""#));
    let sent = alice.send(&mut world, "bob/agent", "task", r#","kind":"task","idempotencyKey":"three""#);
    let task = text(&sent, "taskId").to_owned();
    world.pass(90_000);
    let update = format!(
        r#","taskId":"{task}","state":"TASK_STATE_COMPLETED","artifact":{{"parts":[{{"text":"x"}}]}}"#
    );
    // A repeat of an update that was durable meets the end of the task.
    if let Err(error) = bob.call(&mut world, "task.update", &update) {
        assert_eq!(text(&error, "data.code"), "invalid_state");
    }
    world.pass(120_000);
    let happened = crash.is_some_and(|(node, _)| world.nodes[node].crash.is_none());
    let end = End {
        // The relay's answer may be lost with the machine, and the recipient's receipt be there first.
        stages: alice.stages(&mut world, &mail).into_iter().filter(|stage| stage != "relayed").collect(),
        tasks: [&mut alice, &mut bob].map(|agent| {
            let record = agent.task(&mut world, &task);
            format!(
                "{} {}",
                text(&record, "state"),
                at(&record, "artifacts").as_array().expect("an array").len()
            )
        }),
        inboxes: [&mut alice, &mut bob].map(|agent| agent.inbox(&mut world)),
    };
    (end, happened)
}

#[test]
fn an_exchange_survives_a_crash_at_any_event() {
    let (undisturbed, _) = exchange(None);
    assert_eq!(undisturbed.stages, ["accepted", "delivered", "read", "replied"]);
    assert_eq!(undisturbed.tasks, ["TASK_STATE_COMPLETED 1", "TASK_STATE_COMPLETED 1"]);
    assert_eq!(undisturbed.inboxes, [vec!["reply".to_owned()], vec!["mail".to_owned(), "task".to_owned()]]);
    for node in [0, 1] {
        let mut step = 1;
        loop {
            let mut happened = false;
            for (committed, effects) in [(false, 0), (true, 0), (true, 1)] {
                let crash = Crash { at: step, committed, effects };
                let (end, crashed) = exchange(Some((node, crash)));
                happened |= crashed;
                assert_eq!(end, undisturbed, "machine {node}, {crash:?}");
            }
            if !happened {
                break;
            }
            step += 1;
        }
        assert!(step > 15, "only {step} events");
    }
}
