//! A hostile client on the agent socket: half lines, deep lines, questions whose answers it never reads, sessions and
//! connections without end. Another agent and the person are served as before.

use crate::world::{Agent, World, wait};
use messaging_smol::client::{Client, Options};
use serde_json::json;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

struct Raw(BufReader<UnixStream>);

impl Raw {
    fn open(world: &World) -> Self {
        let stream = UnixStream::connect(world.home("alice").agent_socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, bytes: &[u8]) {
        // One that was closed meanwhile is found out by reading.
        let _ = self.0.get_mut().write_all(bytes);
    }

    fn next(&mut self) -> serde_json::Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

#[test]
fn a_hostile_local_client_takes_nothing_from_others() {
    let mut world = World::new();
    world.pair();
    let mut planner = Agent::new(&world, "alice", "planner");
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.inbox();
    let mut served = |world: &World, round: &str| {
        let id = planner.send("bob/builder@desk", round, round);
        planner.wait_stage(&id, "delivered");
        world.admin("alice").call("daemon.health", json!({})).unwrap();
    };
    served(&world, "before");

    // Lines that are nothing, as deep and as wide as a line may be: each is answered, and the connection goes on.
    let mut raw = Raw::open(&world);
    raw.next();
    let wide: Vec<String> = (0..70_000).map(|number| format!("\"{number}\":0")).collect();
    for line in [
        "[".repeat(1_000_000),
        "{\"a\":".repeat(150_000),
        format!("{{{}}}", wide.join(",")),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"daemon.health","params":{{{}}}}}"#, wide.join(",")),
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"daemon.health","params":{}1{}}}"#,
            "[".repeat(40),
            "]".repeat(40)
        ),
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "m".repeat(900_000)),
        "\u{0}\u{1}".to_owned(),
    ] {
        raw.say(line.as_bytes());
        raw.say(b"\n");
        // A line without an id is not answered.
        if !line.starts_with("{\"0\"") {
            assert!(raw.next()["error"].is_object(), "{}", &line[..20]);
        }
    }
    served(&world, "deep");

    // Another session's key is no use to a connection that did not register it, and no method of the person is served.
    let stolen = json!({"key": "planner-0123456789abcdefghijklmnop"});
    let client = Client::connect(&Options::agent(world.home("alice"))).unwrap();
    for method in ["inbox.list", "events.subscribe", "session.unregister", "task.list"] {
        assert_eq!(client.call(method, stolen.clone()).unwrap_err().code.as_str(), "not_found", "{method}");
    }
    for method in [
        "person.send",
        "team.invite",
        "daemon.stop",
        "request.answer",
        "grant.set",
        "daemon.snapshot",
        "none",
    ] {
        assert_eq!(client.call(method, json!({})).unwrap_err().code.as_str(), "forbidden", "{method}");
    }

    // Sessions without end.
    let mut refused = 0;
    for number in 0..1_050 {
        let key = format!("hostile-key-{number:012}");
        let register = json!({"key": key, "name": format!("n{number}"), "agent": "codex", "tier": "push"});
        refused += usize::from(client.call("session.register", register).is_err());
    }
    assert!((50..60).contains(&refused), "{refused}");
    served(&world, "sessions");
    world.cli_json("alice", &["inbox"]);

    // A subscriber that asks and never reads, and every connection that is to be had with half a line in it.
    let mut deaf = Raw::open(&world);
    let ask = br#"{"jsonrpc":"2.0","id":7,"method":"contacts.list"}"#;
    for _ in 0..300 {
        deaf.say(ask);
        deaf.say(b"\n");
    }
    let mut half = Vec::new();
    for _ in 0..320 {
        let mut raw = Raw::open(&world);
        raw.say(br#"{"jsonrpc":"2.0","id":"#);
        half.push(raw);
    }
    served(&world, "connections");
    drop(half);
    // Room again, for whoever comes.
    wait("room on the agent socket", || {
        let client = Client::connect(&Options::agent(world.home("alice"))).ok()?;
        client.call("daemon.health", json!({})).ok()
    });
    deaf.0.get_mut().shutdown(std::net::Shutdown::Both).unwrap();
    let _ = deaf.0.read(&mut [0; 16]);
    served(&world, "after");
    assert!(world.daemon("alice").is_running());
}
