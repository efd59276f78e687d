//! What agents of several machines do with each other.

use crate::clients::{Agent, open};
use crate::common::{World, at, text};

/// Issue 2, the vertical: a team from nothing, a message with every receipt, its reply, a task worked on and done.
#[test]
fn first_light() {
    let mut world = World::team(2, &["alice/laptop", "bob/desk"]);
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    world.pass(3_000);
    // The first request of a person waits for the other person.
    let sent = alice.send(&mut world, "bob/agent", "hello", "");
    assert_eq!((text(&sent, "stage"), text(&sent, "expect")), ("accepted", "wake"));
    let hello = text(&sent, "envelopeId").to_owned();
    world.settle();
    assert_eq!(alice.stages(&mut world, &hello), ["accepted", "relayed", "held"]);
    let held = world.ok(1, "request.list", "{}");
    assert_eq!(text(&held, "asks.0.preview"), "hello");
    world.ok(1, "request.answer", &format!(r#"{{"id":"{hello}","answer":"always"}}"#));
    world.settle();
    bob.ok(&mut world, "inbox.ack", &format!(r#","ids":["{hello}"],"stage":"handed_to_agent""#));
    world.settle();
    bob.ok(&mut world, "item.read", &format!(r#","id":"{hello}""#));
    bob.send(&mut world, "alice/lead", "hi", &format!(r#","replyTo":"{hello}""#));
    world.settle();
    let stages = ["accepted", "relayed", "held", "handed_to_agent", "read", "replied"];
    assert_eq!(alice.stages(&mut world, &hello), stages);
    assert_eq!(alice.inbox(&mut world), ["hi"]);

    let sent = alice.send(&mut world, "bob/agent", "do it", r#","kind":"task""#);
    let task = text(&sent, "taskId").to_owned();
    let request = text(&sent, "envelopeId").to_owned();
    world.settle();
    assert_eq!(alice.stages(&mut world, &request), ["accepted", "relayed", "delivered"]);
    for update in [
        r#","state":"TASK_STATE_WORKING""#,
        r#","state":"TASK_STATE_COMPLETED","artifact":{"parts":[{"text":"done"}]}"#,
    ] {
        bob.ok(&mut world, "task.update", &format!(r#","taskId":"{task}"{update}"#));
        world.settle();
    }
    let record = alice.task(&mut world, &task);
    assert_eq!(text(&record, "state"), "TASK_STATE_COMPLETED");
    assert_eq!(text(&record, "artifacts.0.parts.0.text"), "done");
    let status = world.ok(0, "daemon.health", "{}");
    assert_eq!(at(&status, "busy"), &messaging_proto::json::Value::Bool(true), "the reply was not handed on");
}

#[test]
fn the_recipient_is_away_and_every_process_restarts() {
    let mut world = World::team(3, &["alice/laptop", "bob/desk"]);
    open(&mut world, 1, "alice");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    world.pass(3_000);
    world.reach_from(1, false);
    world.settle();
    let sent = alice.send(&mut world, "bob/agent", "later", "");
    assert_eq!(text(&sent, "expect"), "offline");
    let id = text(&sent, "envelopeId").to_owned();
    world.pass(5_000);
    world.start(0);
    world.restart_relay();
    world.start(1);
    world.pass(120_000);
    assert_eq!(alice.stages(&mut world, &id), ["accepted", "relayed"]);
    world.reach_from(1, true);
    world.pass(120_000);
    assert_eq!(alice.stages(&mut world, &id), ["accepted", "relayed", "delivered"]);
    bob.register(&mut world);
    assert_eq!(bob.inbox(&mut world), ["later"]);
}

#[test]
fn a_message_waits_in_the_outbox_for_a_relay() {
    let mut world = World::team(4, &["alice/laptop", "bob/desk"]);
    open(&mut world, 1, "alice");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    world.pass(3_000);
    world.reach(false);
    let sent = alice.send(&mut world, "bob/agent", "one", "");
    let id = text(&sent, "envelopeId").to_owned();
    world.pass(300_000);
    assert_eq!(alice.stages(&mut world, &id), ["accepted"]);
    world.start(0);
    world.reach(true);
    world.pass(120_000);
    assert_eq!(alice.stages(&mut world, &id), ["accepted", "relayed", "delivered"]);
    assert_eq!(bob.inbox(&mut world), ["one"]);
}

/// §6.7: a task goes on over a third machine with its chain, and its result comes all the way back.
#[test]
fn a_task_is_delegated_over_three_machines() {
    let mut world = World::team(5, &["alice/laptop", "bob/desk", "carol/tower"]);
    open(&mut world, 1, "alice");
    open(&mut world, 2, "bob");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    let mut carol = Agent::new(&mut world, 2, 'c', "worker");
    world.pass(3_000);
    let first = text(&alice.send(&mut world, "bob/agent", "plan", r#","kind":"task""#), "taskId").to_owned();
    world.settle();
    let behalf = format!(r#","kind":"task","onBehalfOf":{{"taskId":"{first}"}}"#);
    let second = text(&bob.send(&mut world, "carol/worker", "part", &behalf), "taskId").to_owned();
    world.settle();
    let record = carol.task(&mut world, &second);
    let chain: Vec<&str> =
        at(&record, "chain.addresses").as_array().unwrap().iter().filter_map(|one| one.as_str()).collect();
    assert_eq!(chain, ["alice/lead@laptop", "bob/agent@desk", "carol/worker@tower"]);
    for (agent, task) in [(&mut carol, &second), (&mut bob, &first)] {
        let update =
            format!(r#","taskId":"{task}","state":"TASK_STATE_COMPLETED","message":[{{"text":"done"}}]"#);
        agent.ok(&mut world, "task.update", &update);
        world.settle();
    }
    assert_eq!(text(&bob.task(&mut world, &second), "state"), "TASK_STATE_COMPLETED");
    assert_eq!(text(&alice.task(&mut world, &first), "state"), "TASK_STATE_COMPLETED");
}

/// §6.9 over the wire: blocked, and let in again.
#[test]
fn a_blocked_person_is_refused_but_what_was_asked_of_it_still_arrives() {
    let mut world = World::team(6, &["alice/laptop", "bob/desk"]);
    open(&mut world, 1, "alice");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    world.pass(3_000);
    let task =
        text(&bob.send(&mut world, "alice/lead", "work", r#","kind":"task""#), "envelopeId").to_owned();
    world.settle();
    // alice's person lets bob's request through once, and bob's person then blocks alice.
    world.ok(0, "request.answer", &format!(r#"{{"id":"{task}","answer":"once"}}"#));
    world.ok(1, "grant.set", r#"{"subject":{"person":"alice"},"chat":"blocked"}"#);
    world.settle();
    let refused = text(&alice.send(&mut world, "bob/agent", "x", ""), "envelopeId").to_owned();
    world.settle();
    assert_eq!(alice.stages(&mut world, &refused).last().unwrap(), "rejected");
    let list = alice.ok(&mut world, "task.list", r#","role":"executor""#);
    let id = text(&list, "tasks.0.taskId").to_owned();
    alice.ok(&mut world, "task.update", &format!(r#","taskId":"{id}","state":"TASK_STATE_COMPLETED""#));
    world.settle();
    assert_eq!(text(&bob.task(&mut world, &id), "state"), "TASK_STATE_COMPLETED");
    let reply = format!(r#","replyTo":"{task}""#);
    alice.send(&mut world, "bob/agent", "and this", &reply);
    world.settle();
    assert_eq!(bob.inbox(&mut world), ["and this"], "an answer passes, whatever the grants");
}

/// §7 "Removal": a removed machine's mail is refused both ways, and what waits for it is gone.
#[test]
fn a_removed_machine_is_out() {
    let mut world = World::team(7, &["alice/laptop", "bob/desk"]);
    open(&mut world, 0, "bob");
    open(&mut world, 1, "alice");
    let mut alice = Agent::new(&mut world, 0, 'a', "lead");
    let mut bob = Agent::new(&mut world, 1, 'b', "agent");
    world.pass(3_000);
    world.reach_from(1, false);
    bob.send(&mut world, "alice/lead", "from the outbox", "");
    let info = world.ok(1, "team.info", "{}");
    let members = at(&info, "members").as_array().unwrap();
    let machine = members.iter().find(|member| text(member, "person") == "bob").unwrap();
    let machine = text(machine, "machine").to_owned();
    world.ok(0, "team.remove", &format!(r#"{{"machine":"{machine}"}}"#));
    let error =
        alice.call(&mut world, "msg.send", r#","to":"bob/agent","parts":[{"text":"x"}]"#).unwrap_err();
    assert_eq!(text(&error, "data.code"), "no_recipients");
    world.reach_from(1, true);
    world.pass(300_000);
    assert!(alice.inbox(&mut world).is_empty());
}

/// Report 37: agents that answer every message in a ring, and two that thank each other, come to rest.
#[test]
fn report_37_a_ring_of_answering_agents_comes_to_rest() {
    let mut world = World::team(8, &["alice/laptop", "bob/desk", "carol/tower"]);
    for (node, person) in [(0, "carol"), (1, "alice"), (2, "bob")] {
        open(&mut world, node, person);
    }
    let mut ring = [
        Agent::new(&mut world, 0, 'a', "lead"),
        Agent::new(&mut world, 1, 'b', "agent"),
        Agent::new(&mut world, 2, 'c', "worker"),
    ];
    let next = ["bob/agent", "carol/worker", "alice/lead"];
    world.pass(3_000);
    ring[0].send(&mut world, next[0], "0", "");
    let (mut sent, mut seen) = (1, [0; 3]);
    loop {
        world.settle();
        let before = sent;
        for (number, agent) in ring.iter_mut().enumerate() {
            let inbox = agent.inbox(&mut world);
            for _ in seen[number]..inbox.len() {
                agent.send(&mut world, next[number], &sent.to_string(), "");
                sent += 1;
            }
            seen[number] = inbox.len();
        }
        if sent == before {
            break;
        }
        assert!(sent < 1_000, "they never stop");
        world.pass(500);
    }
    assert_eq!(sent, 61, "twenty a pair, and the one that was refused");
    let refusals = |world: &World, agent: &Agent| {
        let events = world.nodes[agent.node].events(agent.conn, "sent");
        events
            .iter()
            .filter(|event| event.get("code").is_some_and(|code| code.as_str() == Some("loop_guard")))
            .count()
    };
    assert_eq!(ring.iter().map(|agent| refusals(&world, agent)).sum::<usize>(), 1, "its sender was told");
}
