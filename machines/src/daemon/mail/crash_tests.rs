//! Every step of an exchange fails once, before its commit or after it: the end is the same as undisturbed.
//!
//! What a client must do about a failure is what a client can do: connect again, register its key again, and
//! repeat the call with the same idempotency key.

use crate::daemon::io::IpcId;
use crate::daemon::testing::{Fault, World, at, key, text};
use messaging_proto::json::Value;

/// A session's client that survives its daemon.
struct Client {
    number: usize,
    letter: char,
    name: &'static str,
    conn: IpcId,
}

impl Client {
    fn new(world: &mut World, number: usize, letter: char, name: &'static str) -> Self {
        let mut client = Self { number, letter, name, conn: IpcId(0) };
        client.register(world);
        client
    }

    fn register(&mut self, world: &mut World) {
        loop {
            self.conn = world.connect(self.number);
            let params = format!(
                r#"{{"key":"{}","name":"{}","agent":"codex","tier":"push"}}"#,
                key(self.letter),
                self.name
            );
            match world.call(self.number, self.conn, "session.register", &params) {
                Ok(_) => return,
                Err(Value::Null) => {}
                // The machine failed between the connection and the call.
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    /// Calls until there is an answer; `done` says which refusals a repeat may meet.
    fn call(&mut self, world: &mut World, method: &str, more: &str, done: &[&str]) -> Option<Value> {
        for _ in 0..5 {
            let params = format!(r#"{{"key":"{}"{more}}}"#, key(self.letter));
            match world.call(self.number, self.conn, method, &params) {
                Ok(result) => return Some(result),
                Err(Value::Null) => self.register(world),
                Err(error) if text(&error, "data.code") == "not_found" => self.register(world),
                Err(error) if done.contains(&text(&error, "data.code")) => return None,
                Err(error) => panic!("{method}: {error:?}"),
            }
        }
        panic!("{method} never succeeds");
    }
}

/// The end of an exchange, as both sides see it.
#[derive(Debug, PartialEq)]
struct End {
    stages: Vec<String>,
    tasks: Vec<String>,
    inboxes: Vec<Vec<String>>,
    queued: usize,
}

fn exchange(fault: Option<(u64, Fault)>) -> (End, u64) {
    let mut world = World::new(&["alice/desk", "bob/laptop"]);
    let admin = world.connect(1);
    world.ok(1, admin, "grant.set", r#"{"subject":{"person":"alice"},"ask":"open"}"#);
    let mut alice = Client::new(&mut world, 0, 'a', "lead");
    let mut bob = Client::new(&mut world, 1, 'b', "agent");
    world.pass(2_000);
    world.fault = fault;

    let mail = r#","to":"bob/agent","parts":[{"text":"mail"}],"idempotencyKey":"one""#;
    let sent = alice.call(&mut world, "msg.send", mail, &[]).unwrap();
    let mail = text(&sent, "results.0.envelopeId").to_owned();
    world.pass(100);
    let read = format!(r#","id":"{mail}""#);
    bob.call(&mut world, "item.read", &read, &[]);
    let reply = format!(
        r#","to":"alice/lead","parts":[{{"text":"reply"}}],"replyTo":"{mail}","idempotencyKey":"two""#
    );
    bob.call(&mut world, "msg.send", &reply, &[]);
    let task = r#","to":"bob/agent","kind":"task","parts":[{"text":"task"}],"idempotencyKey":"three""#;
    let sent = alice.call(&mut world, "msg.send", task, &[]).unwrap();
    let task = text(&sent, "results.0.taskId").to_owned();
    world.pass(100);
    let done = format!(
        r#","taskId":"{task}","state":"TASK_STATE_COMPLETED","artifact":{{"artifactId":"x","parts":[{{"text":"out"}}]}}"#
    );
    bob.call(&mut world, "task.update", &done, &["invalid_state"]);
    // Whatever was cut off comes again once the link is made again.
    world.pass(5_000);
    for number in [0, 1] {
        world.link(number, false);
        world.link(number, true);
    }
    world.pass(5_000);

    let steps = world.steps();
    world.fault = None;
    alice.register(&mut world);
    bob.register(&mut world);
    let stages = world.stages(0, alice.conn, 'a', &mail);
    let tasks = [(0, alice.conn, 'a'), (1, bob.conn, 'b')].map(|(number, conn, letter)| {
        let params = format!(r#"{{"key":"{}","taskId":"{task}"}}"#, key(letter));
        let record = world.ok(number, conn, "task.get", &params);
        let artifacts = at(&record, "task.artifacts").as_array().unwrap().len();
        format!("{} {artifacts}", text(&record, "task.state"))
    });
    let inboxes = [(0, alice.conn, 'a'), (1, bob.conn, 'b')].map(|(number, conn, letter)| {
        let list = world.ok(number, conn, "inbox.list", &format!(r#"{{"key":"{}"}}"#, key(letter)));
        let items = at(&list, "items").as_array().unwrap().iter();
        items.map(|item| text(item, "preview").to_owned()).collect()
    });
    let queued = world.nodes.iter().map(|node| node.queued()).sum();
    (End { stages, tasks: tasks.to_vec(), inboxes: inboxes.to_vec(), queued }, steps)
}

#[test]
fn any_step_may_fail_before_or_after_its_commit() {
    let (undisturbed, steps) = exchange(None);
    assert_eq!(undisturbed.stages, ["accepted", "relayed", "delivered", "read", "replied"]);
    assert_eq!(undisturbed.tasks, ["TASK_STATE_COMPLETED 1", "TASK_STATE_COMPLETED 1"]);
    assert_eq!(undisturbed.inboxes, [vec!["reply"], vec!["task", "mail"]]);
    assert_eq!(undisturbed.queued, 0);
    assert!(steps > 40);
    for step in 10..steps {
        for fault in [Fault::Lost, Fault::Phantom] {
            let (end, _) = exchange(Some((step, fault)));
            assert_eq!(end, undisturbed, "{fault:?} at {step}");
        }
    }
}
