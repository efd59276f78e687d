//! Founding, joining and administering a team.

use crate::probe::Probe;
use crate::world::Process;
use serde_json::{Value, json};

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// Carol's home tries every way in.
pub(crate) fn ways_in(probe: &mut Probe) {
    let relay = probe.world.relay_url();
    let create = json!({"relay": relay, "name": "Blue", "person": "carol", "label": "nas"});
    let team = "A".repeat(43);
    let pair = json!({"relay": relay, "team": team, "person": "carol", "label": "nas"});
    // Keys to found a team with, then to join one: one purpose at a time.
    let prepared = probe.ok("carol", "team.prepare", json!({}));
    assert_eq!(probe.ok("carol", "team.prepare", json!({})), prepared);
    probe.err("carol", "team.pair", pair.clone(), "invalid_state (founding keys)");
    probe.err("carol", "team.claim", json!({}), "invalid_state (founding keys)");
    assert_eq!(probe.ok("carol", "team.pairCancel", json!({})), json!({"cancelled": true}));
    assert_eq!(probe.ok("carol", "team.pairCancel", json!({})), json!({"cancelled": false}));
    probe.err("carol", "team.claim", json!({}), "invalid_state (nothing waits)");
    let dead =
        json!({"relay": "ws://127.0.0.1:1/v1/connect", "name": "Blue", "person": "carol", "label": "nas"});
    probe.err("carol", "team.create", dead, "relay_unavailable");
    probe.ok("carol", "team.pairCancel", json!({}));
    // A relay where nobody may found a team, and one where one an hour may.
    let (_closed, elsewhere) = another_relay(probe, "closed", ["--team-creation", "closed"], &create);
    probe.err("carol", "team.create", elsewhere, "forbidden");
    probe.ok("carol", "team.pairCancel", json!({}));
    let (_slow, elsewhere) = another_relay(probe, "slow", ["--team-creates-per-hour", "1"], &create);
    probe.world.start_daemon("erin");
    probe.world.admin("erin").call("team.create", elsewhere.clone()).unwrap();
    probe.err("carol", "team.create", elsewhere, "rate_limited");
    probe.ok("carol", "team.pairCancel", json!({}));

    // By invite.
    probe.err("carol", "team.join", json!({"ticket": "what", "label": "nas"}), "invalid_request (ticket)");
    let invite = probe.ok("alice", "team.invite", json!({"person": "carol"}));
    probe.ok("alice", "team.revoke", json!({"inviteId": invite["inviteId"]}));
    probe.err("alice", "team.revoke", json!({"inviteId": invite["inviteId"]}), "invite_invalid");
    probe.err("alice", "team.revoke", json!({"inviteId": ULID}), "invite_invalid");
    probe.err("carol", "team.join", json!({"ticket": invite["ticket"], "label": "nas"}), "invite_invalid");
    let taken = probe.ok("alice", "team.invite", json!({"person": "bob", "ttlMs": 60_000}));
    probe.err("carol", "team.join", json!({"ticket": taken["ticket"], "label": "desk"}), "forbidden");

    // By keys: paired, not yet added, added, claimed.
    let info = probe.ok("alice", "team.info", json!({}));
    let mut pair = pair;
    pair["team"] = info["team"].clone();
    let card = probe.ok("carol", "team.pair", pair);
    probe.err("carol", "team.create", create.clone(), "invalid_state (pairing)");
    probe.err("carol", "team.prepare", json!({}), "invalid_state (pairing)");
    assert_eq!(probe.ok("carol", "team.claim", json!({})), json!({"state": "waiting"}));
    let add = json!({"machine": card["machine"], "enc": card["enc"], "person": "carol", "label": "nas"});
    probe.err("bob", "team.add", add.clone(), "forbidden (member)");
    let with = |name: &str, value: &str| {
        let mut add = add.clone();
        add[name] = json!(value);
        add
    };
    let mut desk = with("person", "bob");
    desk["label"] = json!("desk");
    probe.err("alice", "team.add", desk, "forbidden (label)");
    probe.err("alice", "team.add", with("machine", &"A".repeat(43)), "invalid_request (key)");
    probe.ok("alice", "team.add", add.clone());
    let again = probe.raw("alice", "team.add", add);
    assert!(again.is_err(), "a machine is added once");
    let claimed = probe.until("carol", "team.claim", &json!({}), |claimed| claimed["state"] == "done");
    assert_eq!(claimed["person"], "carol");
    for (method, params) in [
        ("team.create", create),
        ("team.prepare", json!({})),
        ("team.claim", json!({})),
        ("team.pair", with_team(&probe.world.relay_url())),
        ("team.join", json!({"ticket": invite["ticket"], "label": "nas"})),
    ] {
        probe.err("carol", method, params, "invalid_state (team)");
    }
}

fn with_team(relay: &str) -> Value {
    json!({"relay": relay, "team": "A".repeat(43), "person": "carol", "label": "nas"})
}

/// A relay of its own, while the process lives, and the params that found a team there.
fn another_relay(probe: &Probe, name: &str, flags: [&str; 2], create: &Value) -> (Process, Value) {
    let db = probe.world.path(&format!("{name}.db"));
    let arguments = ["relay", "--listen", "127.0.0.1:0", flags[0], flags[1], "--db", db.to_str().unwrap()];
    let log = probe.world.path(&format!("{name}.log"));
    let relay = Process::start(&arguments, "messaging-relay: ready ", &log);
    let mut create = create.clone();
    create["relay"] = json!(format!("ws://127.0.0.1:{}/v1/connect", relay.ready));
    (relay, create)
}

fn machine(info: &Value, person: &str) -> Value {
    let members = info["members"].as_array().unwrap().iter();
    members.clone().find(|member| member["person"] == person).unwrap()["machine"].clone()
}

/// What admins do, and what others may not.
pub(crate) fn members(probe: &mut Probe) {
    let info =
        probe.until("carol", "team.info", &json!({}), |info| info["members"].as_array().unwrap().len() == 3);
    let (bob, carol) = (machine(&info, "bob"), machine(&info, "carol"));
    let enc = info["members"][0]["enc"].clone();
    let nobody = "A".repeat(43);
    for (method, params) in
        [("team.invite", json!({"person": "dora"})), ("team.revoke", json!({"inviteId": ULID}))]
    {
        probe.err("bob", method, params, "forbidden");
    }
    for (method, params) in [
        ("team.remove", json!({"machine": carol})),
        ("team.role", json!({"machine": carol, "role": "admin"})),
        ("team.rekey", json!({"machine": carol, "enc": enc})),
    ] {
        probe.err("bob", method, params, "forbidden (member)");
    }
    let alice = machine(&info, "alice");
    probe.err("alice", "team.remove", json!({"machine": alice}), "forbidden (last admin)");
    probe.err("alice", "team.role", json!({"machine": alice, "role": "member"}), "forbidden (last admin)");
    for (method, params) in [
        ("team.remove", json!({"machine": nobody})),
        ("team.role", json!({"machine": nobody, "role": "admin"})),
        ("team.rekey", json!({"machine": nobody, "enc": enc})),
    ] {
        probe.err("alice", method, params, "not_found");
    }
    probe.ok("alice", "team.role", json!({"machine": bob, "role": "admin"}));
    probe.until("bob", "team.info", &json!({}), |info| info["role"] == "admin");
    probe.ok("alice", "team.role", json!({"machine": bob, "role": "member"}));
    // A channel that carol is in: the creator may remove her, a member may not.
    let three = |persons: &[&str]| json!({"name": "eng", "persons": persons});
    let params = three(&["carol"]);
    probe.until("bob", "people.get", &json!({"person": "carol"}), |_| true);
    probe.ok("bob", "channel.invite", params.clone());
    let in_it = |listed: &Value| {
        let rooms = listed["conversations"].as_array().unwrap();
        rooms.iter().any(|room| room["conversation"] == "channel:eng")
    };
    probe.until("carol", "conv.list", &json!({}), in_it);
    probe.err("carol", "channel.remove", three(&["alice"]), "forbidden");
    probe.ok("bob", "channel.remove", params);
    probe.until("carol", "conv.list", &json!({}), |listed| !in_it(listed));
    probe.ok("bob", "channel.leave", json!({"name": "eng"}));
    // The same session name on two machines of one person.
    ambiguous(probe, &info);
    probe.ok("alice", "team.rekey", json!({"machine": carol, "enc": enc}));
    probe.ok("alice", "team.remove", json!({"machine": carol}));
    probe.until("carol", "device.status", &json!({}), |status| status["binding"] == "removed");
    // It still knows the team it was in, where it has no role any more.
    assert!(probe.ok("carol", "team.info", json!({})).get("role").is_none());
    let status = probe.ok("carol", "daemon.status", json!({}));
    assert_eq!((&status["identity"], status["team"].get("role")), (&json!(null), None));
}

/// A second machine of bob's with a session of the same name.
fn ambiguous(probe: &mut Probe, info: &Value) {
    probe.world.start_daemon("tower");
    let tower = probe.world.admin("tower");
    let relay = probe.world.relay_url();
    let pair = json!({"relay": relay, "team": info["team"], "person": "bob", "label": "tower"});
    let card = tower.call("team.pair", pair).unwrap();
    probe.ok(
        "alice",
        "team.add",
        json!({"machine": card["machine"], "enc": card["enc"], "person": "bob", "label": "tower"}),
    );
    crate::world::wait("the tower to be in", || {
        let claimed = tower.call("team.claim", json!({})).ok()?;
        (claimed["state"] == "done").then_some(())
    });
    let key = "tower-0123456789abcdefghijklmnop";
    let register = json!({"key": key, "name": "agent", "agent": "test", "tier": "push"});
    tower.call("session.register", register).unwrap();
    probe.until("alice", "people.get", &json!({"person": "bob"}), |bob| {
        bob["entries"].as_array().unwrap().len() == 2
    });
    let params = json!({"key": crate::probe::LEAD, "to": "bob/agent", "parts": [{"text": "x"}]});
    probe.err("alice", "msg.send", params, "ambiguous_address");
    probe.until("bob", "notice.list", &json!({}), |listed| {
        let notices = listed["notices"].as_array().unwrap();
        notices.iter().any(|notice| notice["device"]["label"] == "tower")
    });
}

/// What needs the relay says so without it.
pub(crate) fn without_a_relay(probe: &mut Probe) {
    let info = probe.ok("alice", "team.info", json!({}));
    let bob = machine(&info, "bob");
    let enc = info["members"][0]["enc"].clone();
    let invite = probe.ok("alice", "team.invite", json!({"person": "dora"}));
    probe.world.kill_relay();
    probe.until("alice", "daemon.status", &json!({}), |status| status["relay"]["state"] != "connected");
    // Each waits some seconds for the link to come back: all at once.
    let calls = [
        ("team.invite", json!({"person": "dora"})),
        ("team.revoke", json!({"inviteId": invite["inviteId"]})),
        ("team.add", json!({"machine": bob, "enc": enc, "person": "bob", "label": "x"})),
        ("team.remove", json!({"machine": bob})),
        ("team.role", json!({"machine": bob, "role": "admin"})),
        ("team.rekey", json!({"machine": bob, "enc": enc})),
        ("identity.rotateEnc", json!({})),
    ];
    let results: Vec<_> = std::thread::scope(|scope| {
        let world = &probe.world;
        let call = |(method, params): &(&'static str, Value)| {
            let (method, params) = (*method, params.clone());
            scope.spawn(move || world.admin("alice").call(method, params))
        };
        let started: Vec<_> = calls.iter().map(call).collect();
        started.into_iter().map(|call| call.join().unwrap()).collect()
    });
    for ((method, params), result) in calls.iter().zip(results) {
        probe.refused(method, params, result, "relay_unavailable");
    }
    probe.world.start_daemon("dora");
    let dora = probe.world.admin("dora");
    let result = dora.call("team.join", json!({"ticket": invite["ticket"], "label": "x"}));
    assert_eq!(result.clone().unwrap_err().code.as_str(), "relay_unavailable");
    probe.remember("team.join", &result);
    let relay = probe.world.relay_url();
    dora.call("team.pairCancel", json!({})).unwrap();
    dora.call("team.pair", json!({"relay": relay, "team": info["team"], "person": "dora", "label": "x"}))
        .unwrap();
    let result = dora.call("team.claim", json!({}));
    assert_eq!(result.clone().unwrap_err().code.as_str(), "relay_unavailable");
    probe.remember("team.claim", &result);
    probe.world.start_relay();
}
