//! This device and the daemon.

use crate::probe::Probe;
use crate::world::wait;
use messaging_proto::limits::RETAINED_KEYS;
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

pub(crate) fn this_device(probe: &mut Probe) {
    let status = probe.ok("alice", "daemon.status", json!({}));
    assert_eq!((&status["team"]["role"], &status["relay"]["state"]), (&json!("admin"), &json!("connected")));
    let health = probe.ok("alice", "daemon.health", json!({}));
    assert_eq!((&health["state"], &health["alarm"]), (&json!("running"), &json!(null)));
    assert_eq!(probe.ok("alice", "device.status", json!({}))["binding"], "bound");
    assert_eq!(probe.ok("carol", "device.status", json!({}))["binding"], "none");
    probe.ok("alice", "daemon.woke", json!({}));
    probe.ok("alice", "person.attached", json!({"attached": false}));
    let enc = probe.ok("bob", "identity.rotateEnc", json!({}))["enc"].clone();
    let has = |info: &serde_json::Value| {
        info["members"].as_array().unwrap().iter().any(|member| member["enc"] == enc)
    };
    probe.until("alice", "team.info", &json!({}), has);
    snapshot(probe);
}

/// A copy that opens as a home of its own, without keys.
fn snapshot(probe: &mut Probe) {
    let taken = probe.ok("bob", "daemon.snapshot", json!({}));
    probe.err("bob", "daemon.snapshot", json!({}), "invalid_state");
    let folder = Path::new(taken["folder"].as_str().unwrap()).to_owned();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let mut names = Vec::new();
    for file in taken["files"].as_array().unwrap() {
        let path = folder.join(file["name"].as_str().unwrap());
        assert_eq!(path.metadata().unwrap().len(), file["bytes"].as_u64().unwrap());
        let output = std::process::Command::new("sha256sum").arg(&path).output().unwrap();
        let sum = String::from_utf8(output.stdout).unwrap();
        assert_eq!(sum.split(' ').next(), file["sha256"].as_str());
        assert_eq!(mode(&path), 0o600);
        names.push(file["name"].as_str().unwrap().to_owned());
    }
    assert_eq!(names, ["messaging.db", "config.json"]);
    let manifest = std::fs::read(folder.join("manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!((&manifest["files"], &manifest["at"]), (&taken["files"], &taken["at"]));
    // Restored into a home of its own: everything is there but the keys, and it does not act as this machine.
    let restored = probe.world.path("restored");
    std::fs::create_dir(&restored).unwrap();
    std::fs::set_permissions(&restored, PermissionsExt::from_mode(0o700)).unwrap();
    for name in names {
        std::fs::copy(folder.join(&name), restored.join(&name)).unwrap();
        std::fs::set_permissions(restored.join(&name), PermissionsExt::from_mode(0o600)).unwrap();
    }
    assert_eq!(probe.ok("bob", "daemon.snapshot", json!({"done": true})), json!({"released": true}));
    wait("the copy to be gone", || (!folder.exists()).then_some(()));
    assert_eq!(probe.ok("bob", "daemon.snapshot", json!({"done": true})), json!({"released": false}));
    probe.world.start_daemon("restored");
    let admin = probe.world.admin("restored");
    let status = admin.call("daemon.status", json!({})).unwrap();
    assert_eq!((&status["alarm"], &status["relay"]["state"]), (&json!("keys_missing"), &json!("offline")));
    let notices = admin.call("notice.list", json!({})).unwrap();
    assert!(notices["notices"][0]["id"].as_str().unwrap().starts_with("a_keys_missing"));
    let relay = probe.world.relay_url();
    let ticket = probe.ok("alice", "team.invite", json!({"person": "bob"}))["ticket"].clone();
    for (method, params) in [
        ("team.prepare", json!({})),
        ("team.create", json!({"relay": relay, "name": "Blue", "person": "bob", "label": "desk"})),
        ("team.join", json!({"ticket": ticket, "label": "desk"})),
        ("team.pair", json!({"relay": relay, "team": "A".repeat(43), "person": "bob", "label": "desk"})),
        ("team.claim", json!({})),
    ] {
        let result = admin.call(method, params.clone());
        probe.refused(method, &params, result, "invalid_state (keys_missing)");
    }
    probe.world.kill_daemon("restored");
}

/// The second machine of bob's rotates until it retains all it may, and is then put back to an older key file.
pub(crate) fn keys(probe: &mut Probe) {
    let file = probe.world.home("tower").path().join("identity.json");
    let older = std::fs::read(&file).unwrap();
    let tower = probe.world.admin("tower");
    for _ in 0..RETAINED_KEYS {
        tower.call("identity.rotateEnc", json!({})).unwrap();
    }
    let result = tower.call("identity.rotateEnc", json!({}));
    probe.refused("identity.rotateEnc", &json!({}), result, "invalid_state (retained)");
    assert_eq!(probe.world.daemon("tower").terminate(), Some(0));
    std::fs::write(&file, older).unwrap();
    probe.world.start_daemon("tower");
    let tower = probe.world.admin("tower");
    for method in ["daemon.status", "daemon.health", "device.status"] {
        let result = tower.call(method, json!({}));
        probe.remember(method, &result);
        assert_eq!(result.unwrap()["alarm"], "restored", "{method}");
    }
    let result = tower.call("identity.rotateEnc", json!({}));
    probe.refused("identity.rotateEnc", &json!({}), result, "invalid_state (alarm)");
    let params = json!({"subject": {"person": "alice"}, "ask": "open"});
    for method in ["grant.set", "grant.set.preview"] {
        probe.refused(method, &params, tower.call(method, params.clone()), "invalid_state");
    }
}

pub(crate) fn stop(probe: &mut Probe) {
    let stopped = probe.ok("carol", "daemon.stop", json!({}));
    assert_eq!(stopped["pid"], probe.world.daemon("carol").pid());
    wait("the daemon to end", || (!probe.world.daemon("carol").is_running()).then_some(()));
}
