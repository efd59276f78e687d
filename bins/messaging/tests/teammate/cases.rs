//! One bad envelope of each kind, with what the specification makes of it.

use crate::mallory::{Draft, MARK, now};
use crate::stage::{Fate, Stage};
use messaging_proto::key::EncSecret;
use serde_json::{Value, json};

type Cases = Vec<(&'static str, Draft, Fate)>;

const ULID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
/// A clock's skew and a bit, in milliseconds.
const SKEW: u64 = 400_000;
const WEEK: u64 = 604_800_000;

/// Mail whose message has these members over those of an honest one.
fn mail(message: &Value) -> Value {
    let mut payload = json!({"kind": "message", "message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": MARK}]}});
    for (name, value) in message.as_object().unwrap() {
        payload["message"][name] = value.clone();
    }
    payload
}

/// Mail whose payload has these members besides.
fn with(mut payload: Value, members: &Value) -> Value {
    for (name, value) in members.as_object().unwrap() {
        payload[name] = value.clone();
    }
    payload
}

fn honest() -> Draft {
    Draft::mail(&mail(&json!({})))
}

/// A part that nests `depth` arrays, in mail.
fn deep(depth: usize) -> Draft {
    let data = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    Draft::bytes(mail(&json!({"parts": [{"data": "DATA"}]})).to_string().replace("\"DATA\"", &data))
}

/// Mail whose plaintext has `bytes` bytes.
fn sized(bytes: usize) -> Draft {
    let payload = |pad: usize| mail(&json!({"parts": [{"text": "x".repeat(pad)}]})).to_string();
    Draft::bytes(payload(bytes - payload(0).len()))
}

/// What the relay refuses before anybody sees it (`messaging/1 §7`, "send"; contract wire-core §7.6).
pub(crate) fn headers(stage: &mut Stage) -> Cases {
    use Fate::Relay;
    let alice = stage.mallory.machine("alice");
    let head = stage.mallory.roster.head().unwrap();
    let ts = now();
    let anchor = |seq: u64, hash: &str| json!({"anchor": {"kind": "roster", "seq": seq, "hash": hash}});
    let other = "A".repeat(43);
    vec![
        ("a version to come", honest().with(json!({"v": "messaging/2"})), Relay("invalid_request")),
        ("a type to come", honest().with(json!({"type": "message.v9"})), Relay("invalid_request")),
        ("no type", honest().with(json!({"type": null})), Relay("invalid_request")),
        ("another team", honest().with(json!({"realm": other})), Relay("not_member")),
        ("a class its ends deny", honest().with(json!({"class": "self"})), Relay("invalid_request")),
        ("no class", honest().with(json!({"class": null})), Relay("invalid_request")),
        ("to everybody", honest().with(json!({"to": {"team": true}})), Relay("invalid_request")),
        (
            "an anchor of the other kind of realm",
            honest().with(json!({"anchor": {"kind": "epoch", "size": 1, "root": other}})),
            Relay("invalid_request"),
        ),
        ("another history", honest().with(anchor(head.seq, &other)), Relay("roster_conflict")),
        ("a head nobody has", honest().with(anchor(head.seq + 9, &other)), Relay("roster_conflict")),
        ("from alice's machine", honest().with(json!({"from": {"device": alice}})), Relay("forbidden")),
        ("as alice", honest().with(json!({"from": {"person": "alice"}})), Relay("not_member")),
        ("to bob at alice's", honest().with(json!({"to": {"device": alice}})), Relay("not_member")),
        ("unsigned", honest().unsigned(), Relay("bad_signature")),
        ("written tomorrow", honest().with(json!({"ts": ts + SKEW, "exp": ts + 2 * SKEW})), Relay("expired")),
        ("over", honest().with(json!({"ts": ts - SKEW, "exp": ts - 1})), Relay("expired")),
        ("for ever", honest().with(json!({"exp": ts + WEEK + SKEW})), Relay("expired")),
        ("ends before it begins", honest().with(json!({"ts": ts, "exp": ts - 1})), Relay("expired")),
        ("a large header", honest().with(json!({"more": MARK.repeat(1_100)})), Relay("too_large")),
        ("a large body", sized(262_145), Relay("too_large")),
        ("an update of nothing", Draft::of("task.status", &json!({})), Relay("invalid_request")),
        ("sealed presence", honest().with(json!({"type": "presence"})), Relay("invalid_request")),
    ]
}

/// What opens to nothing that is a payload (`messaging/1 §5`, step 9; contract wire-core §5.5, §5.6, §6).
pub(crate) fn bodies() -> Cases {
    use Fate::Rejected;
    let invalid = Rejected("invalid_request");
    let sealed = Rejected("bad_signature");
    let message = |message: Value| Draft::mail(&mail(&message));
    let line = |members: Value| Draft::line(&with(mail(&json!({"messageId": ULID})), &members));
    let stranger = EncSecret::from_bytes([9; 32]).public();
    vec![
        ("sealed to somebody else", honest().sealed_to(stranger), sealed),
        ("a body that is no seal", honest().then(json!({"body": "AAAA"})), sealed),
        ("a seal of another header", honest().then(json!({"to": {"agent": "planner"}})), sealed),
        ("a header with more than was sealed", honest().then(json!({"more": 1})), sealed),
        ("nothing", Draft::bytes(""), invalid),
        ("no text", Draft::bytes([0xff, 0xfe]), invalid),
        ("a byte order mark", Draft::bytes(format!("\u{feff}{}", mail(&json!({})))), invalid),
        ("no JSON", Draft::bytes("{"), invalid),
        ("two values", Draft::bytes(format!("{0}{0}", mail(&json!({})))), invalid),
        (
            "a name twice",
            Draft::bytes(mail(&json!({})).to_string().replace("{\"kind\"", "{\"kind\":\"task\",\"kind\"")),
            invalid,
        ),
        ("half a surrogate", Draft::bytes(mail(&json!({})).to_string().replace(MARK, "\\ud800")), invalid),
        (
            "a number past every number",
            Draft::bytes(with(mail(&json!({})), &json!({"n": "N"})).to_string().replace("\"N\"", "1e400")),
            invalid,
        ),
        (
            "an integer past the exact ones",
            Draft::mail(&with(mail(&json!({})), &json!({"n": 9_007_199_254_740_993_u64}))),
            invalid,
        ),
        ("deeper than a payload", deep(29), invalid),
        ("as deep as a payload", deep(28), Rejected("too_large")),
        ("another payload", Draft::mail(&json!({"ref": ULID, "stage": "read", "at": 1})), invalid),
        ("a kind to come", Draft::mail(&with(mail(&json!({})), &json!({"kind": "poll"}))), invalid),
        ("no parts", message(json!({"parts": []})), invalid),
        ("too many parts", message(json!({"parts": vec![json!({"text": ""}); 101]})), invalid),
        ("a part of two kinds", message(json!({"parts": [{"text": MARK, "url": MARK}]})), invalid),
        ("bytes that are none", message(json!({"parts": [{"raw": "A=="}]})), invalid),
        ("a long id", message(json!({"messageId": "m".repeat(129)})), invalid),
        ("a role of nobody", message(json!({"role": "ROLE_SYSTEM"})), invalid),
        ("a null", message(json!({"contextId": null})), invalid),
        ("a task that is no id", message(json!({"taskId": MARK})), invalid),
        ("mail of nobody", honest().with(json!({"from": {"agent": null}})), invalid),
        (
            "mail with a channel",
            Draft::mail(&with(
                mail(&json!({})),
                &json!({"conv": {"kind": "channel", "op": "post", "id": ULID, "name": "eng"}}),
            )),
            invalid,
        ),
        (
            "mail to nobody's agent",
            honest().with(json!({"to": {"agent": "nobody"}})),
            Rejected("unknown_session"),
        ),
        (
            "a task without a chain",
            Draft::mail(&with(mail(&json!({"taskId": ULID, "contextId": "c"})), &json!({"kind": "task"}))),
            invalid,
        ),
        ("mail with a chain", Draft::mail(&with(mail(&json!({})), &json!({"delegation": []}))), invalid),
        ("a cancel of no id", Draft::of("task.cancel", &json!({"taskId": MARK})), invalid),
        ("a line with a task", Draft::line(&mail(&json!({"messageId": ULID, "taskId": ULID}))), invalid),
        ("a line that asks for a task", line(json!({"kind": "task"})), invalid),
        ("a line whose id is none", Draft::line(&mail(&json!({"messageId": MARK}))), invalid),
        (
            "a channel operation to come",
            line(json!({"conv": {"kind": "channel", "op": "rename", "id": ULID, "name": "eng"}})),
            invalid,
        ),
        ("a conversation to come", line(json!({"conv": {"kind": "group"}})), invalid),
        ("sync of another person", line(json!({"conv": {"kind": "self", "what": "grant"}})), invalid),
        (
            "a message request in one org",
            Draft::line(&json!({
                "kind": "message", "conv": {"kind": "request"},
                "message": {"messageId": ULID, "role": "ROLE_USER", "parts": [{"text": MARK}]},
            }))
            .with(json!({"class": "request"})),
            invalid,
        ),
    ]
}

/// Chains that prove nothing (`messaging/1 §6.7`; contract delegation-consent §1.3).
pub(crate) fn chains(stage: &mut Stage) -> Cases {
    use Fate::Rejected;
    let alice = stage.mallory.machine("alice");
    let team = stage.mallory.roster.team().unwrap().to_string();
    let ts = now();
    let mallory = &stage.mallory;
    let forbidden = Rejected("forbidden");
    let mut cases: Cases = Vec::new();
    let mut add = |name, task: &str, grants: Vec<Value>, fate| {
        let message = json!({"taskId": task, "contextId": "c"});
        let payload = with(mail(&message), &json!({"kind": "task", "delegation": grants}));
        cases.push((name, Draft::mail(&payload), fate));
    };
    let one = |over: &Value| {
        let mut members = json!({"task": ULID});
        for (name, value) in over.as_object().unwrap() {
            members[name] = value.clone();
        }
        vec![mallory.grant(&members)]
    };
    let two = |first: Value, second: Value, task: &str| {
        let mut root = json!({"task": task, "to": "mallory/two@evil"});
        let mut last = json!({"task": task, "from": "mallory/two@evil", "to": "bob/builder@desk"});
        for (into, over) in [(&mut root, first), (&mut last, second)] {
            for (name, value) in over.as_object().unwrap() {
                into[name] = value.clone();
            }
        }
        let root = mallory.grant(&root);
        if last.get("parent").is_none() {
            last["parent"] = json!(hash(&root));
        }
        vec![root, mallory.grant(&last)]
    };
    add(
        "the task of somebody else",
        &stage.task.0,
        one(&json!({"task": stage.task.0})),
        Rejected("invalid_request"),
    );
    add("a chain for another task", ULID, one(&json!({"task": stage.task.0})), forbidden);
    add("a chain for another session", ULID, one(&json!({"to": "bob/other@desk"})), forbidden);
    add("a chain of another session", ULID, one(&json!({"from": "mallory/other@evil"})), forbidden);
    add("as alice's agent", ULID, one(&json!({"from": "alice/planner@laptop"})), Rejected("not_member"));
    add(
        "by alice's machine",
        ULID,
        one(&json!({"from": "alice/planner@laptop", "by": alice})),
        Rejected("bad_signature"),
    );
    add("by nobody's machine", ULID, one(&json!({"by": "A".repeat(43)})), Rejected("not_member"));
    add("of another label", ULID, one(&json!({"from": "mallory/agent@desk"})), Rejected("not_member"));
    add("of another team", ULID, one(&json!({"realm": "A".repeat(43)})), Rejected("invalid_request"));
    add("written tomorrow", ULID, one(&json!({"ts": ts + SKEW, "exp": ts + 2 * SKEW})), Rejected("expired"));
    add("over", ULID, one(&json!({"ts": ts - SKEW, "exp": ts - 1})), Rejected("expired"));
    add("for longer than a week", ULID, one(&json!({"exp": ts + WEEK + SKEW})), Rejected("expired"));
    add("a root with a parent", ULID, one(&json!({"parent": team})), Rejected("invalid_request"));
    add("deeper than any", ULID, one(&json!({"maxDepth": 5})), Rejected("invalid_request"));
    add("no grant", ULID, vec![], Rejected("invalid_request"));
    add("five grants", ULID, vec![one(&json!({})).remove(0); 5], Rejected("invalid_request"));
    add("a large chain", ULID, one(&json!({"more": MARK.repeat(1_100)})), Rejected("too_large"));
    // The hop is its session `two`'s.
    let mut hop = |name, grants: Vec<Value>, fate| {
        let payload = with(
            mail(&json!({"taskId": ULID, "contextId": "c"})),
            &json!({"kind": "task", "delegation": grants}),
        );
        cases.push((name, Draft::mail(&payload).with(json!({"from": {"agent": "two"}})), fate));
    };
    let none = json!({});
    hop("a wider scope", two(json!({"scope": ["read"]}), none.clone(), ULID), forbidden);
    hop(
        "another scope",
        two(json!({"scope": ["read"]}), json!({"scope": ["read", "write"]}), ULID),
        forbidden,
    );
    hop("a greater depth", two(json!({"maxDepth": 2}), json!({"maxDepth": 3}), ULID), forbidden);
    hop("a longer life", two(json!({"exp": ts + 100_000}), json!({"exp": ts + 100_001}), ULID), forbidden);
    hop("more hops than allowed", two(json!({"maxDepth": 1}), json!({"maxDepth": 1}), ULID), forbidden);
    hop("another parent", two(none.clone(), json!({"parent": team}), ULID), Rejected("invalid_request"));
    hop("a gap", two(json!({"to": "mallory/three@evil"}), none, ULID), Rejected("invalid_request"));
    let mut round = two(
        json!({"from": "mallory/two@evil", "to": "mallory/three@evil"}),
        json!({"from": "mallory/three@evil", "to": "mallory/two@evil"}),
        ULID,
    );
    let parent = hash(&round[1]);
    round.push(mallory.grant(&json!({"task": ULID, "from": "mallory/two@evil", "parent": parent})));
    hop("a round", round, forbidden);
    cases
}

fn hash(grant: &Value) -> String {
    messaging_proto::hash::hash_value(&crate::mallory::wire(grant)).unwrap().to_string()
}

/// Progress of what it is no part of, or in no order (`messaging/1 §5`, "Counterpart binding", §6.3, §6.4).
pub(crate) fn progress(stage: &mut Stage) -> Cases {
    use Fate::{Rejected, Silent};
    let [first, back] = stage.mail.clone();
    let (task, request) = stage.task.clone();
    let status = |task: &str, reply: &str, state: &str| {
        let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": MARK}]});
        let payload =
            json!({"taskId": task, "contextId": "c", "status": {"state": state, "message": message}});
        Draft::of("task.status", &payload).replying(reply)
    };
    let artifact = |task: &str, reply: &str| {
        let artifact = json!({"artifactId": MARK, "parts": [{"text": MARK}]});
        let payload = json!({"taskId": task, "contextId": "c", "artifact": artifact});
        Draft::of("task.artifact", &payload).replying(reply)
    };
    let receipt = |of: &str, stage: &str, code: Value| {
        let mut payload = json!({"ref": of, "stage": stage, "at": 1});
        if !code.is_null() {
            payload["code"] = code;
        }
        Draft::of("receipt", &payload)
    };
    let none = Value::Null;
    vec![
        ("a receipt for alice's mail", receipt(&first, "read", none.clone()), Silent),
        ("a receipt for mail to alice", receipt(&back, "rejected", json!("refused")), Silent),
        ("a receipt for nothing", receipt(ULID, "read", none.clone()), Silent),
        ("a stage to come", receipt(&back, "replied", none.clone()), Silent),
        ("a code without a rejection", receipt(&back, "read", json!("refused")), Silent),
        ("a code that is none", receipt(&back, "rejected", json!(MARK)), Silent),
        ("progress of alice's task", status(&task, &request, "TASK_STATE_FAILED"), Rejected("not_found")),
        ("a result of alice's task", artifact(&task, &request), Rejected("not_found")),
        ("progress of no task", status(ULID, &request, "TASK_STATE_FAILED"), Rejected("not_found")),
        (
            "a cancel of alice's task",
            Draft::of("task.cancel", &json!({"taskId": task, "reason": MARK})),
            Rejected("not_found"),
        ),
        (
            "a cancel of its own work",
            Draft::of("task.cancel", &json!({"taskId": stage.my_task.0})),
            Rejected("not_found"),
        ),
        ("a follow-up of alice's task", Draft::mail(&mail(&json!({"taskId": task}))), Rejected("not_found")),
        (
            "a follow-up of its own work",
            Draft::mail(&mail(&json!({"taskId": stage.my_task.0}))),
            Rejected("not_found"),
        ),
        (
            "progress for another request",
            status(&stage.my_task.0, &stage.mine, "TASK_STATE_WORKING"),
            Rejected("invalid_request"),
        ),
        (
            "back to the start",
            status(&stage.my_task.0, &stage.my_task.1, "TASK_STATE_SUBMITTED"),
            Rejected("invalid_state"),
        ),
        (
            "a state to come",
            status(&stage.my_task.0, &stage.my_task.1, "TASK_STATE_PAUSED"),
            Rejected("invalid_request"),
        ),
    ]
}

/// Changes of chats it may not make (`messaging/1 §6.8`; contract delegation-consent §3.2).
pub(crate) fn chats(stage: &mut Stage) -> Cases {
    use Fate::Rejected;
    let [eng, all] = stage.channels.clone();
    let fresh = stage.mallory.ulid();
    let mut op = |name, conv: Value, fate| {
        let mut conv = conv;
        conv["kind"] = json!("channel");
        let payload = with(mail(&json!({"messageId": stage.mallory.ulid()})), &json!({"conv": conv}));
        (name, Draft::line(&payload), fate)
    };
    let forbidden = Rejected("forbidden");
    let not_found = Rejected("not_found");
    let mut cases = vec![
        op("a line where it is no member", json!({"op": "post", "id": eng, "name": "eng"}), forbidden),
        op("a line where nobody is", json!({"op": "post", "id": fresh, "name": "eng"}), not_found),
        op("a line under another name", json!({"op": "post", "id": all, "name": "eng"}), not_found),
        op(
            "letting itself in",
            json!({"op": "invite", "id": eng, "name": "eng", "persons": ["mallory"]}),
            forbidden,
        ),
        op("leaving what it is not in", json!({"op": "leave", "id": eng, "name": "eng"}), forbidden),
        op(
            "removing where it is no member",
            json!({"op": "remove", "id": eng, "name": "eng", "persons": ["alice"]}),
            forbidden,
        ),
        op(
            "removing who it did not invite",
            json!({"op": "remove", "id": all, "name": "all", "persons": ["alice"]}),
            forbidden,
        ),
        op(
            "removing itself",
            json!({"op": "remove", "id": all, "name": "all", "persons": ["mallory"]}),
            forbidden,
        ),
        op(
            "inviting nobody",
            json!({"op": "invite", "id": all, "name": "all", "persons": ["nobody"]}),
            not_found,
        ),
        op(
            "making one again",
            json!({"op": "create", "id": eng, "name": "eng", "persons": ["bob", "mallory"], "creator": "mallory"}),
            forbidden,
        ),
        op(
            "making one without itself",
            json!({"op": "create", "id": fresh, "name": "x", "persons": ["alice", "bob"], "creator": "alice"}),
            forbidden,
        ),
        op(
            "making one without bob",
            json!({"op": "create", "id": fresh, "name": "x", "persons": ["alice", "mallory"], "creator": "alice"}),
            forbidden,
        ),
        op(
            "making one with nobody",
            json!({"op": "create", "id": fresh, "name": "x", "persons": ["bob", "mallory", "nobody"], "creator": "mallory"}),
            not_found,
        ),
        op(
            "one person twice",
            json!({"op": "create", "id": fresh, "name": "x", "persons": ["bob", "mallory", "bob"], "creator": "mallory"}),
            Rejected("invalid_request"),
        ),
        op(
            "a name that is none",
            json!({"op": "create", "id": fresh, "name": MARK, "persons": ["bob", "mallory"], "creator": "mallory"}),
            Rejected("invalid_request"),
        ),
    ];
    let payload = with(
        mail(&json!({"messageId": ULID})),
        &json!({"conv": {"kind": "channel", "op": "leave", "id": all, "name": "all"}}),
    );
    let by_agent = Draft::line(&payload).with(json!({"from": {"agent": "agent"}}));
    cases.push(("a change by an agent", by_agent, Rejected("invalid_request")));
    cases
}

/// At the edge of what is allowed.
pub(crate) fn edges() -> Cases {
    use Fate::Delivered;
    vec![
        ("as large as a payload", sized(262_144), Delivered),
        ("as deep as a line of the local API", deep(27), Delivered),
        (
            "of an agent whose name is another's",
            honest().with(json!({"from": {"agent": "planner"}})),
            Delivered,
        ),
        (
            "a number at the edge",
            Draft::mail(&with(mail(&json!({})), &json!({"n": 9_007_199_254_740_991_u64}))),
            Delivered,
        ),
        ("a text that is a NUL", Draft::mail(&mail(&json!({"parts": [{"text": "\u{0}"}]}))), Delivered),
    ]
}
