//! Control characters, escapes, bidi and invisible text in every field a member can fill: no terminal is given them,
//! in no verb, and no log holds them.

use crate::mallory::{Draft, MARK, object};
use crate::stage::Stage;
use crate::world::wait;
use serde_json::{Value, json};

/// What a terminal, a reader or a row could be deceived with.
fn evil() -> String {
    format!(
        "{MARK}\u{1b}[2J\u{1b}]0;x\u{7}\u{9b}31m\u{202e}\u{2066}\u{200b}\u{feff}\u{e0041}\r\u{8}\u{0}\u{85}\u{ad}end"
    )
}

/// What must not be shown as it is: all but line ends, and what is between columns in a pipe.
fn hidden(text: &str) -> Option<char> {
    text.chars().find(|letter| {
        let code = u32::from(*letter);
        matches!(code, 0..=8 | 0x0b..=0x1f | 0x7f..=0x9f | 0xad | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff)
            || matches!(code, 0xe0000..=0xe0fff)
    })
}

#[test]
fn no_text_of_a_member_reaches_a_terminal_or_a_log_as_it_is() {
    let mut stage = Stage::new();
    let evil = evil();
    let id = || evil.chars().take(40).collect::<String>();
    stage.world.cli_json("bob", &["inbox"]);
    let parts = json!([
        {"text": evil}, {"raw": "AAE=", "filename": evil, "mediaType": evil}, {"url": evil}, {"data": object(&[(&evil, json!(evil))])},
    ]);
    let message = json!({
        "messageId": id(), "contextId": id(), "role": "ROLE_USER", "parts": parts, "metadata": object(&[(&evil, json!(evil))]),
        "extensions": [evil], "referenceTaskIds": [id()],
    });
    // A name for each session of its own, in presence and in mail.
    let session = json!({
        "name": "agent", "client": "mcp", "state": "busy", "tier": "push", "since": 9_007_199_254_740_991_u64,
        "repo": evil, "branch": evil, "doing": evil,
    });
    stage.mallory.presence(&json!({"seq": 1, "label": "evil", "sessions": [session], "features": ["tasks"]}));
    let mail = stage.mallory.relayed(
        &Draft::mail(&json!({"kind": "message", "message": message})).with(json!({"to": {"agent": "cli"}})),
    );
    assert_eq!(stage.mallory.verdict(&mail).0, "delivered");
    let admin = stage.world.admin("bob");
    admin.call("grant.set", json!({"subject": {"person": "mallory"}, "ask": "request"})).unwrap();
    let held = stage.mallory.relayed(
        &Draft::mail(&json!({"kind": "message", "message": message})).with(json!({"to": {"agent": "cli"}})),
    );
    assert_eq!(stage.mallory.verdict(&held).0, "held");
    let line = json!({"messageId": stage.mallory.ulid(), "role": "ROLE_USER", "parts": [{"text": evil}]});
    let line = stage.mallory.relayed(&Draft::line(&json!({"kind": "message", "message": line})));
    assert_eq!(stage.mallory.verdict(&line).0, "delivered");
    // Bob's person asks it for a task, and it answers.
    let sent = stage.world.cli_json("bob", &["send", "mallory/agent@evil", "--task", "do it"]);
    let (task, request) = (sent["results"][0]["taskId"].clone(), sent["results"][0]["envelopeId"].clone());
    let request = request.as_str().unwrap();
    let answer = json!({"messageId": id(), "role": "ROLE_AGENT", "parts": parts});
    let status = json!({"taskId": task, "contextId": id(), "status": {"state": "TASK_STATE_WORKING", "message": answer}});
    let artifact = json!({"artifactId": id(), "name": evil, "description": evil, "parts": parts});
    let artifact = json!({"taskId": task, "contextId": id(), "artifact": artifact});
    for (kind, payload) in [("task.status", status), ("task.artifact", artifact)] {
        let id = stage.mallory.relayed(&Draft::of(kind, &payload).replying(request));
        assert_eq!(stage.mallory.verdict(&id), ("delivered".to_owned(), None), "{kind}");
    }
    let task = task.as_str().unwrap();
    wait("its presence", || {
        let contacts = stage.world.cli_json("bob", &["contacts"]);
        let entries = contacts["entries"].as_array().unwrap();
        entries.iter().any(|entry| entry["person"] == "mallory").then_some(())
    });

    let verbs: [&[&str]; 19] = [
        &["contacts"],
        &["inbox", "--all"],
        &["read", &mail],
        &["tasks"],
        &["task", "show", task],
        &["requests"],
        &["agents"],
        &["agent", "cli"],
        &["agent", "cli", "--with", "agent:mallory/agent"],
        &["chats"],
        &["read", "--with", "agent:mallory/agent"],
        &["read", "--with", "dm:mallory"],
        &["search", MARK],
        &["notices"],
        &["person", "mallory"],
        &["sent"],
        &["log"],
        &["status"],
        &["team", "info"],
    ];
    let mut shown = 0;
    for verb in verbs {
        let output = stage.world.cli("bob", verb);
        let (text, errors) =
            (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success(), "{verb:?}: {errors}");
        for text in [&text, &errors] {
            assert_eq!(hidden(text), None, "{verb:?} shows {text:?}");
        }
        assert!(!errors.contains(MARK), "{verb:?}: {errors}");
        shown += usize::from(text.contains(MARK));
    }
    assert!(shown >= 9, "only {shown} verbs show what it wrote");
    // An error names what is wrong, not what a peer wrote.
    let client = stage.world.admin("bob");
    for (method, params) in [
        ("people.get", json!({"person": evil})),
        ("request.answer", object(&[("id", json!(held)), ("answer", json!("once")), (&evil, Value::Null)])),
        ("conv.read", json!({"conversation": evil})),
    ] {
        let error = client.call(method, params).unwrap_err();
        assert!(!error.to_string().contains(MARK), "{error}");
    }
    admin.call("grant.set", json!({"subject": {"person": "mallory"}, "ask": "open"})).unwrap();
    stage.all_is_well();
}
