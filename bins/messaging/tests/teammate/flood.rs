//! More of everything than anybody takes: what bob holds stays within its bounds, and the others are served.

use crate::mallory::{Draft, MARK};
use crate::stage::Stage;
use crate::world::wait;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// The longest a call may take while bob is flooded: a hundred times what it takes, for a busy machine.
const SOON: Duration = Duration::from_secs(10);

/// Mail of this many bytes and a bit.
fn mail(bytes: usize) -> Draft {
    Draft::mail(&json!({
        "kind": "message",
        "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": MARK.repeat(bytes / MARK.len())}]},
    }))
}

/// Its mail in bob's inbox.
fn mailed(stage: &mut Stage) -> usize {
    stage.bob.inbox().iter().filter(|item| item["from"]["person"] == "mallory").count()
}

/// Alice writes to bob and he has it; his daemon answers.
fn others_are_served(stage: &mut Stage, honest: &mut Vec<String>) {
    let admin = stage.world.admin("bob");
    let start = Instant::now();
    for method in ["daemon.health", "contacts.list", "conv.list", "request.list", "agents.list"] {
        admin.call(method, json!({})).unwrap();
    }
    assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
    let id = stage.alice.send("bob/builder@desk", "honest", &format!("honest-{}", honest.len()));
    stage.alice.wait_stage(&id, "delivered");
    honest.push(id);
}

fn restart(stage: &mut Stage) {
    stage.world.kill_daemon("bob");
    stage.world.start_daemon("bob");
}

/// Bytes of the files of a folder whose names begin so.
fn stored(home: &Path) -> u64 {
    let files = std::fs::read_dir(home).unwrap().map(Result::unwrap);
    let store = files.filter(|file| file.file_name().to_string_lossy().starts_with("messaging.db"));
    store.map(|file| file.metadata().unwrap().len()).sum()
}

/// The most memory a process ever held, in bytes; nothing where the system does not say.
fn peak(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse::<u64>().ok().map(|kib| kib * 1024)
}

#[test]
fn floods_fill_nothing_and_hold_up_nobody() {
    let mut stage = Stage::new();
    let mut honest = Vec::new();

    // Two hundred sessions with the names of others', as large as presence may be, more often than it may.
    let sessions: Vec<Value> = (0..200)
        .map(|number| {
            let name = match number {
                0 => "agent".to_owned(),
                1 => "builder".to_owned(),
                2 => "planner".to_owned(),
                _ => format!("n{number}"),
            };
            json!({"name": name, "client": "cli", "state": "idle", "tier": "push", "since": 1, "repo": MARK.repeat(25)})
        })
        .collect();
    for seq in 1..=20 {
        let payload = json!({"seq": seq, "label": "evil", "sessions": sessions, "features": []});
        stage.mallory.presence(&payload);
    }
    others_are_served(&mut stage, &mut honest);
    let contacts = stage.world.admin("bob").call("contacts.list", json!({})).unwrap();
    let entries = contacts["entries"].as_array().unwrap();
    assert_eq!(entries.iter().filter(|entry| entry["person"] == "mallory").count(), 200);
    for entry in entries {
        let own = entry["address"]
            .as_str()
            .unwrap()
            .starts_with(&format!("{}/", entry["person"].as_str().unwrap()));
        assert!(own && (entry["person"] == "mallory") == (entry["label"] == "evil"), "{entry}");
    }
    // Another machine's presence is not its to say: the relay stops it, and bob's list stays.
    let other = stage.mallory.machine("alice");
    let said = json!({"seq": u32::MAX, "label": "laptop", "sessions": [], "features": []});
    let (_, text) = stage
        .mallory
        .make(&Draft::of("presence", &said).with(json!({"from": {"person": "alice", "device": other}})));
    stage.mallory.say(&format!(r#"{{"t":"presence","env":{text}}}"#));

    // It says that it is a terminal, so no loop is guarded against: the budget of its machine holds.
    let start = Instant::now();
    for _ in 0..80 {
        let (_, text) = stage.mallory.make(&mail(2_000));
        stage.mallory.push(&text);
    }
    others_are_served(&mut stage, &mut honest);
    wait("the mail of a minute", || (mailed(&mut stage) >= 60).then_some(()));
    let allowed = 60 + usize::try_from(start.elapsed().as_secs()).unwrap() + 1;
    let now = mailed(&mut stage);
    assert!(now <= allowed, "{now} of {allowed}");
    // What was put off comes, each once, whoever dies meanwhile.
    restart(&mut stage);
    wait("the rest", || (mailed(&mut stage) == 80).then_some(()));
    others_are_served(&mut stage, &mut honest);

    // Requests without end: twenty wait, the others are refused.
    let admin = stage.world.admin("bob");
    admin.call("grant.set", json!({"subject": {"person": "mallory"}, "ask": "request"})).unwrap();
    let asked: Vec<String> = (0..30)
        .map(|_| {
            let (id, text) = stage.mallory.make(&mail(100_000));
            stage.mallory.push(&text);
            id
        })
        .collect();
    others_are_served(&mut stage, &mut honest);
    let mut said: Vec<_> = asked.iter().map(|id| stage.mallory.verdict(id)).collect();
    said.sort();
    assert_eq!(said[..20], vec![("held".to_owned(), None); 20]);
    assert_eq!(said[20..], vec![("rejected".to_owned(), Some("rate_limited".to_owned())); 10]);
    let listed = admin.call("request.list", json!({})).unwrap();
    assert_eq!(listed["asks"].as_array().unwrap().len(), 20);

    // Lines, channels, progress of nothing.
    for number in 0..70 {
        let id = stage.mallory.ulid();
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": "😈".repeat(8_000)}]});
        let mut payload = json!({"kind": "message", "message": message});
        if number % 2 == 1 {
            payload["conv"] = json!({
                "kind": "channel", "op": "create", "id": stage.mallory.ulid(), "name": "eng",
                "persons": ["bob", "mallory"], "creator": "alice",
            });
        }
        let (_, text) = stage.mallory.make(&Draft::line(&payload));
        stage.mallory.push(&text);
    }
    others_are_served(&mut stage, &mut honest);
    restart(&mut stage);
    for _ in 0..150 {
        let status = json!({"taskId": stage.mallory.ulid(), "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}});
        let request = stage.mallory.ulid();
        let (_, text) = stage.mallory.make(&Draft::of("task.status", &status).replying(&request));
        stage.mallory.push(&text);
    }
    others_are_served(&mut stage, &mut honest);
    stage.mallory.settle();
    let admin = stage.world.admin("bob");
    let chats = admin.call("conv.list", json!({"limit": 200})).unwrap();
    let chats = chats["conversations"].as_array().unwrap();
    let channels = chats.iter().filter(|chat| chat["kind"] == "channel").count();
    assert_eq!(channels, 2 + 35, "each under a name of its own");
    let names: std::collections::BTreeSet<_> =
        chats.iter().map(|chat| chat["conversation"].as_str().unwrap()).collect();
    assert!(names.len() == chats.len() && names.contains("channel:eng-36"), "{names:?}");

    let got: Vec<String> = stage
        .bob
        .inbox()
        .iter()
        .filter(|item| item["from"]["person"] == "alice" && item["kind"] == "message")
        .map(|item| item["id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(got[1..], honest, "honest mail, in its order, once");
    let bytes = stored(&stage.world.path("bob"));
    assert!(bytes < 64 << 20, "bob's store holds {bytes} bytes");
    if let Some(peak) = peak(stage.world.daemon("bob").pid()) {
        assert!(peak < 150 << 20, "bob's daemon held {peak} bytes");
    }
    stage.all_is_well();
}
