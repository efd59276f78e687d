//! `kill -9` of every process at many points of an exchange: what was acked `relayed` arrives exactly once.

#![allow(clippy::unwrap_used)]

mod world;

use serde_json::json;
use world::{Agent, World, wait};

/// The points of one exchange at which a process dies, in order.
const POINTS: [&str; 8] = [
    "before the send",
    "accepted",
    "relayed",
    "delivered",
    "handed_to_agent",
    "read",
    "the reply",
    "replied",
];
const VICTIMS: [&str; 3] = ["relay", "alice", "bob"];

#[test]
fn nothing_acked_is_lost_or_doubled_by_kill_9_at_24_points() {
    let mut world = World::new();
    world.pair();
    let mut alice = Agent::new(&world, "alice", "planner");
    let mut bob = Agent::new(&world, "bob", "builder");
    bob.inbox();
    alice.inbox();
    let mut sent = Vec::new();
    let mut replies = Vec::new();

    for (round, (point, victim)) in
        POINTS.iter().flat_map(|point| VICTIMS.iter().map(move |victim| (*point, *victim))).enumerate()
    {
        let text = format!("message {round}: {victim} dies at {point}");
        let kill_at = |here: &str, world: &mut World| {
            if here == point {
                kill_and_restart(world, victim);
            }
        };
        kill_at("before the send", &mut world);
        let id = alice.send("bob/builder@desk", &text, &format!("send-{round}"));
        kill_at("accepted", &mut world);
        alice.wait_stage(&id, "relayed");
        kill_at("relayed", &mut world);
        alice.wait_stage(&id, "delivered");
        kill_at("delivered", &mut world);
        bob.call("inbox.ack", json!({"ids": [id], "stage": "handed_to_agent"})).unwrap();
        kill_at("handed_to_agent", &mut world);
        let item = bob.read(&id);
        assert_eq!(item["message"]["parts"][0]["text"], json!(text));
        kill_at("read", &mut world);
        let params = json!({
            "to": "alice/planner@laptop", "parts": [{"text": format!("reply {round}")}],
            "replyTo": id, "idempotencyKey": format!("reply-{round}"),
        });
        let reply = wait("the reply", || bob.call("msg.send", params.clone()).ok());
        kill_at("the reply", &mut world);
        alice.wait_stage(&id, "replied");
        kill_at("replied", &mut world);
        sent.push(id);
        replies.push(reply["results"][0]["envelopeId"].as_str().unwrap().to_owned());
    }

    assert_exactly_once(&mut bob, &sent);
    assert_exactly_once(&mut alice, &replies);
}

/// Every id is in the inbox once, and nothing else is.
fn assert_exactly_once(agent: &mut Agent, ids: &[String]) {
    let mut got: Vec<String> =
        agent.inbox().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect();
    let mut wanted = ids.to_vec();
    got.sort();
    wanted.sort();
    assert_eq!(got, wanted);
}

fn kill_and_restart(world: &mut World, victim: &str) {
    if victim == "relay" {
        world.kill_relay();
        world.start_relay();
    } else {
        world.kill_daemon(victim);
        world.start_daemon(victim);
    }
}
