//! Consent, people and notices.

use crate::probe::{LEAD, Probe};
use serde_json::{Value, json};

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/// A request of alice's that waits for bob. Its id.
fn held(probe: &mut Probe) -> String {
    let id = probe.mail(&json!({}));
    probe.until("bob", "request.list", &json!({}), |listed| {
        listed["asks"].as_array().unwrap().iter().any(|ask| ask["id"] == id.as_str())
    });
    id
}

pub(crate) fn consent(probe: &mut Probe) {
    let alice = json!({"person": "alice"});
    let preview = probe.ok("bob", "grant.set.preview", json!({"subject": alice, "ask": "request"}));
    assert_eq!(preview["sentence"], "alice may ask your agents after you agree each time.");
    probe.ok("bob", "grant.set", json!({"subject": alice, "ask": "request"}));
    let listed = probe.ok("bob", "grant.list", json!({"subject": alice}));
    assert_eq!(listed["grants"][0]["ask"], "request");
    probe.err("bob", "grant.list", json!({"subject": {"channel": "nowhere"}}), "not_found");
    for method in ["grant.set", "grant.set.preview"] {
        for (params, code) in [
            (json!({"subject": {"person": "nobody"}, "ask": "open"}), "not_found (person)"),
            (json!({"subject": {"channel": "nowhere"}, "ask": "open"}), "not_found (channel)"),
            (
                json!({"subject": {"channel": "eng"}, "chat": "muted"}),
                "invalid_request (levels of a channel)",
            ),
            (json!({"subject": alice, "discoverable": true}), "invalid_request (discoverable)"),
            (json!({"subject": alice, "trustedUntil": 1}), "invalid_request (trustedUntil without ask)"),
            (
                json!({"subject": alice, "ask": "open", "trustedUntil": 9_000_000_000_000_u64}),
                "invalid_request (trustedUntil too far)",
            ),
            (
                json!({"subject": alice, "ask": "request", "trust": true}),
                "invalid_request (trust without ask)",
            ),
            (
                json!({"subject": alice, "ask": "open", "trust": true, "trustedUntil": 1}),
                "invalid_request (trust with trustedUntil)",
            ),
        ] {
            probe.err("bob", method, params, code);
        }
    }
    probe.ok("bob", "notice.subscribe", json!({"lines": true}));
    for answer in ["once", "decline", "always", "block"] {
        let id = held(probe);
        let params = json!({"id": id, "answer": answer});
        let preview = probe.ok("bob", "request.answer.preview", params.clone());
        assert_eq!((&preview["kind"], &preview["count"]), (&json!("message"), &json!(1)));
        let wrong = json!({"id": id, "answer": "accept"});
        probe.err("bob", "request.answer.preview", wrong.clone(), "invalid_request (answer)");
        probe.err("bob", "request.answer", wrong, "invalid_request (answer)");
        assert_eq!(probe.ok("bob", "request.answer", params.clone())["answered"], json!([id]));
        probe.err("bob", "request.answer", params, "not_found");
        let stage = if matches!(answer, "once" | "always") { "held" } else { "rejected" };
        probe.until("alice", "item.read", &json!({"key": LEAD, "id": id}), |sent| sent["stage"] == stage);
        // What the next answer needs: nothing granted.
        probe.ok("bob", "grant.set", json!({"subject": alice, "ask": "request"}));
    }
    probe.err("bob", "request.answer.preview", json!({"id": ULID, "answer": "once"}), "not_found");
    assert_eq!(probe.ok("bob", "card.get", alice.clone()), json!({"sent": false}));
    probe.err("bob", "card.get", json!({"person": "nobody"}), "not_found");
    probe.ok("bob", "grant.set", json!({"subject": alice, "ask": "open"}));
}

pub(crate) fn people_and_notices(probe: &mut Probe) {
    assert_eq!(probe.ok("alice", "people.search", json!({"query": "b"}))["people"][0]["person"], "bob");
    let bob = probe.ok("alice", "people.get", json!({"person": "bob"}));
    assert_eq!((&bob["relation"], &bob["devices"][0]["label"]), (&json!("org"), &json!("desk")));
    assert_eq!(bob["deviceChanges"][0]["change"], "added");
    probe.err("alice", "people.get", json!({"person": "nobody"}), "not_found");

    let listed = probe.ok("bob", "notice.list", json!({"lines": true}));
    let of = |category: &str| -> Vec<Value> {
        let all = listed["notices"].as_array().unwrap().iter();
        all.filter(|notice| notice["category"] == category).cloned().collect()
    };
    assert_eq!(of("request").len(), 4);
    assert!(of("message").iter().any(|notice| notice["line"] == "again"));
    let newest = &listed["notices"][0]["id"];
    probe.ok("bob", "notice.subscribe", json!({"after": newest}));
    probe.err("bob", "notice.subscribe", json!({"after": "m_nothing"}), "not_found");
    probe.ok("bob", "notice.ack", json!({"ids": [newest, "m_nothing"]}));
    let after = probe.ok("bob", "notice.list", json!({}));
    assert!(after["notices"].as_array().unwrap().iter().all(|notice| notice["id"] != *newest));
}
