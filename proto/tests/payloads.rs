//! Payloads beyond the vectors: what the typed views hold, bounds, meanings, and errors that say nothing.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::a2a::{Id, Message, Part, PartContent, Role, Task, TaskState};
use messaging_proto::envelope::{Class, End, Header, Kind, To};
use messaging_proto::json::{FromValue, Invalid, Value, canonicalize, parse_wire};
use messaging_proto::limits::PRESENCE_BYTES;
use messaging_proto::meaning::{self, Meaning};
use messaging_proto::name::{PersonId, SessionName};
use messaging_proto::payload::presence::trim;
use messaging_proto::payload::{
    ChannelOp, CodeText, Conv, MessageKind, Payload, Receipt, SessionState, Stage, SyncWhat, TaskCancel,
    Tier, Typed,
};
use messaging_proto::realm::{Anchor, Head, RealmView, Role as RosterRole};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use support::realm::{TestRealm, signer};

const ID: &str = "01M7Q5CQG0B6CF8BHJAKRXAX3R";

fn json(text: &str) -> Value {
    parse_wire(text.replace("ID", ID).as_bytes(), usize::MAX).unwrap()
}

fn read(kind: Kind, text: &str) -> Result<Typed, Invalid> {
    Typed::read(kind, &json(text))
}

fn path(kind: Kind, text: &str) -> String {
    read(kind, text).unwrap_err().path().to_owned()
}

fn id() -> Ulid {
    Ulid::parse(ID).unwrap()
}

#[test]
fn a_message_is_read_whole() {
    let Typed::Message(payload) = read(
        Kind::Message,
        r#"{"kind":"message","wake":false,"message":{"messageId":"m","contextId":"c","taskId":"ID",
        "role":"ROLE_AGENT","parts":[{"text":"t","filename":"f","mediaType":"a/b","metadata":{"k":1}},
        {"raw":"AAE="},{"url":"u"},{"data":null}],"extensions":["e"],"referenceTaskIds":["r"],"metadata":{}}}"#,
    )
    .unwrap() else {
        panic!("a message")
    };
    assert_eq!((payload.kind, payload.wake), (MessageKind::Message, false));
    assert_eq!((payload.conv, payload.delegation), (None, None));
    let message = payload.message;
    assert_eq!((message.message_id.as_str(), message.role), ("m", Role::Agent));
    assert_eq!((message.context_id, message.task_id), (Id::parse("c"), Some(id())));
    assert_eq!(
        (message.extensions, message.reference_task_ids),
        (vec!["e".to_owned()], vec![Id::parse("r").unwrap()])
    );
    assert!(message.metadata.unwrap().is_empty());
    let [text, raw, url, data] = message.parts.as_slice() else { panic!("four parts") };
    assert_eq!((text.text(), raw.text()), (Some("t"), None));
    assert_eq!((text.filename.as_deref(), text.media_type.as_deref()), (Some("f"), Some("a/b")));
    assert_eq!(text.metadata.as_ref().unwrap().get("k"), Some(&Value::int(1)));
    assert_eq!(raw.content, PartContent::Raw("AAE=".to_owned()));
    assert_eq!(url.content, PartContent::Url("u".to_owned()));
    assert_eq!(data.content, PartContent::Data(Value::Null));
}

#[test]
fn a_failure_names_the_member() {
    assert_eq!(path(Kind::Message, "[]"), "");
    let message = |rest: &str| {
        let text = format!(r#"{{"kind":"message","message":{{"messageId":"m","role":"ROLE_USER",{rest}}}}}"#);
        path(Kind::Message, &text)
    };
    assert_eq!(message(r#""parts":[{"text":"a"},{"raw":"?"}]"#), "message.parts[1].raw");
    assert_eq!(message(r#""parts":[{"text":"a"},{}]"#), "message.parts[1]");
    assert_eq!(message(r#""parts":[]"#), "message.parts");
    assert_eq!(message(r#""parts":[{"text":"a"}],"taskId":"x""#), "message.taskId");
    let task = r#"{"kind":"task","message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a"}]},"delegation":[1]}"#;
    assert_eq!(path(Kind::Message, task), "delegation[0]");
    assert_eq!(
        path(Kind::TaskStatus, r#"{"taskId":"ID","contextId":"c","status":{"state":"x"}}"#),
        "status.state"
    );
    let presence = r#"{"seq":1,"label":"l","sessions":[],"features":["a","B"]}"#;
    assert_eq!(path(Kind::Presence, presence), "features[1]");
}

#[test]
fn ids_are_counted_in_units() {
    for (text, fits) in [
        ("", false),
        (&*"a".repeat(128), true),
        (&*"a".repeat(129), false),
        (&*"é".repeat(128), true),
        (&*"\u{1f602}".repeat(64), true),
        (&*"\u{1f602}".repeat(65), false),
    ] {
        assert_eq!(Id::parse(text).is_some(), fits, "{text}");
    }
    assert_eq!(Id::from(id()).to_string(), ID);
    assert_eq!(serde_json::to_string(&Id::from(id())).unwrap(), format!("\"{ID}\""));
}

#[test]
fn enumerations_have_one_text_each() {
    for state in TaskState::ALL {
        assert_eq!(TaskState::parse(state.as_str()), Some(state));
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        assert!(!(state.is_terminal() && state.is_interrupted()));
    }
    assert_eq!(TaskState::ALL.iter().filter(|state| state.is_terminal()).count(), 4);
    assert_eq!(TaskState::ALL.iter().filter(|state| state.is_interrupted()).count(), 2);
    for stage in Stage::ALL {
        assert_eq!(Stage::parse(stage.as_str()), Some(stage));
        assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
    }
    for role in [Role::User, Role::Agent] {
        assert_eq!(Role::from_value(&Value::text(role.as_str())), Ok(role));
        assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
    }
    for role in [RosterRole::Admin, RosterRole::Member] {
        assert_eq!(RosterRole::from_value(&Value::text(role.as_str())), Ok(role));
        assert_eq!(serde_json::to_value(role).unwrap(), role.as_str());
    }
    assert!(RosterRole::from_value(&Value::text("owner")).is_err());
    for kind in [MessageKind::Message, MessageKind::Task] {
        assert_eq!(MessageKind::from_value(&Value::text(kind.as_str())), Ok(kind));
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
    }
    for state in [SessionState::Idle, SessionState::Busy] {
        assert_eq!(SessionState::from_value(&Value::text(state.as_str())), Ok(state));
        assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
    }
    for tier in [Tier::Push, Tier::Pull] {
        assert_eq!(Tier::from_value(&Value::text(tier.as_str())), Ok(tier));
        assert_eq!(serde_json::to_value(tier).unwrap(), tier.as_str());
    }
}

#[test]
fn anchors_and_heads_read_back() {
    let realm = TestRealm::small();
    let epoch = Anchor::Epoch { size: 1, root: realm.realm() };
    for anchor in [realm.anchor(), epoch] {
        assert_eq!(Anchor::from_value(&anchor.to_value()), Ok(anchor));
        let row = serde_json::to_string(&anchor).unwrap();
        assert_eq!(serde_json::from_str::<Anchor>(&row).unwrap(), anchor);
    }
    let head = Head { seq: 4, hash: realm.realm() };
    assert_eq!(Head::from_value(&head.to_value()), Ok(head));
    assert_eq!(Anchor::from_value(&json(r#"{"kind":"epoch","size":0}"#)).unwrap_err().path(), "size");
}

#[test]
fn a_receipt_keeps_codes_it_does_not_know() {
    for (code, known) in [("forbidden", Some(Code::Forbidden)), ("code_of_2030", None)] {
        let text = format!(r#"{{"ref":"ID","stage":"rejected","code":"{code}","at":5}}"#);
        let receipt = Receipt::from_value(&json(&text)).unwrap();
        assert_eq!(receipt.code.as_ref().unwrap().known(), known);
        assert_eq!(receipt.code.as_ref().unwrap().to_string(), code);
        assert_eq!(canonicalize(&receipt.to_value()), canonicalize(&json(&text)));
        let row = serde_json::to_string(&receipt).unwrap();
        assert_eq!(serde_json::from_str::<Receipt>(&row).unwrap(), receipt);
    }
    let delivered = Receipt { reference: id(), stage: Stage::Delivered, code: None, at: Wall(1) };
    assert_eq!(Receipt::from_value(&delivered.to_value()), Ok(delivered));
    assert_eq!(CodeText::from(Code::TooLarge).as_str(), "too_large");
    for bad in ["", "_a", "a-b", "9", &"a".repeat(65)] {
        assert_eq!(CodeText::parse(bad), None);
        let row = serde_json::to_string(bad).unwrap();
        let error = serde_json::from_str::<CodeText>(&row).unwrap_err().to_string();
        assert!(bad.len() < 3 || !error.contains(bad));
    }
    assert!(CodeText::parse(&"a".repeat(64)).is_some());
}

#[test]
fn convs_read_back() {
    for text in [
        r#"{"kind":"channel","op":"create","id":"ID","name":"eng","persons":["a","b"],"creator":"a"}"#,
        r#"{"kind":"channel","op":"invite","id":"ID","name":"eng","persons":["a"]}"#,
        r#"{"kind":"channel","op":"remove","id":"ID","name":"eng","persons":["a"]}"#,
        r#"{"kind":"channel","op":"leave","id":"ID","name":"eng"}"#,
        r#"{"kind":"channel","op":"post","id":"ID","name":"eng"}"#,
        r#"{"kind":"self","what":"grant"}"#,
        r#"{"kind":"self","what":"snapshot"}"#,
        r#"{"kind":"request"}"#,
        r#"{"kind":"card","what":"card"}"#,
        r#"{"kind":"card","what":"get"}"#,
    ] {
        let conv = Conv::from_value(&json(text)).unwrap();
        assert_eq!(canonicalize(&conv.to_value()), canonicalize(&json(text)));
    }
    let create = Conv::from_value(&json(
        r#"{"kind":"channel","op":"create","id":"ID","name":"eng","persons":["b","a"],"creator":"c"}"#,
    ));
    let Ok(Conv::Channel(channel)) = create else { panic!("a channel") };
    assert_eq!((channel.id, channel.name.as_str()), (id(), "eng"));
    let persons = ["b", "a"].map(|person| PersonId::parse(person).unwrap()).to_vec();
    assert_eq!(channel.op, ChannelOp::Create { persons, creator: PersonId::parse("c").unwrap() });
    assert_eq!(Conv::from_value(&json(r#"{"kind":"self","what":"grant"}"#)), Ok(Conv::Sync(SyncWhat::Grant)));
}

#[test]
fn tasks_and_their_events_are_read_whole() {
    let task = Task::from_value(&json(
        r#"{"id":"ID","contextId":"c","status":{"state":"TASK_STATE_FAILED","timestamp":"2026-12-02T09:03:00Z"},
        "artifacts":[{"artifactId":"a","parts":[{"text":"t"}]}],
        "history":[{"messageId":"m","role":"ROLE_USER","parts":[{"text":"t"}]}],"metadata":{"x":1}}"#,
    ))
    .unwrap();
    assert_eq!((task.id, task.context_id), (id(), Id::parse("c")));
    assert_eq!(task.status.state, TaskState::Failed);
    assert_eq!((task.artifacts.len(), task.history.len(), task.metadata.unwrap().len()), (1, 1, 1));
    let bare = Task::from_value(&json(r#"{"id":"ID","status":{"state":"TASK_STATE_WORKING"}}"#)).unwrap();
    assert_eq!((bare.artifacts.len(), bare.history.len()), (0, 0));
    assert!(Task::from_value(&json(r#"{"id":"x","status":{"state":"TASK_STATE_WORKING"}}"#)).is_err());

    let artifact = r#"{"taskId":"ID","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"t"}]}}"#;
    let Ok(Typed::TaskArtifact(event)) = read(Kind::TaskArtifact, artifact) else { panic!("an artifact") };
    assert_eq!((event.append, event.last_chunk, event.context_id.as_str()), (false, false, "c"));
    assert_eq!(event.artifact.parts, [Part::from_value(&json(r#"{"text":"t"}"#)).unwrap()]);

    for cancel in [
        TaskCancel { task_id: id(), reason: Some("r".to_owned()) },
        TaskCancel { task_id: id(), reason: None },
    ] {
        assert_eq!(TaskCancel::from_value(&cancel.to_value()), Ok(cancel));
    }
}

#[test]
fn presences_are_read_whole_and_written_back() {
    let text = r#"{"seq":3,"label":"laptop","features":["tasks"],"away":true,"sessions":[
        {"name":"a","client":"codex","state":"busy","tier":"push","since":1,"wake":true,"repo":"r","branch":"b",
        "doing":"d"},{"name":"b","client":"mcp","state":"idle","tier":"pull","since":2,"kept":true}]}"#;
    let Ok(Typed::Presence(presence)) = read(Kind::Presence, text) else { panic!("a presence") };
    assert_eq!((presence.seq, presence.label.as_str(), presence.away), (3, "laptop", true));
    let [live, kept] = presence.sessions.as_slice() else { panic!("two sessions") };
    assert_eq!((live.state, live.tier, live.kept, live.wake), (SessionState::Busy, Tier::Push, false, true));
    assert_eq!((kept.state, kept.tier, kept.kept, kept.wake), (SessionState::Idle, Tier::Pull, true, false));
    assert_eq!((live.doing.as_deref(), kept.doing.as_deref()), (Some("d"), None));
    assert_eq!(canonicalize(&presence.to_value()), canonicalize(&json(text)));
}

#[test]
fn trimming_stops_where_it_must() {
    let odd = |sessions: &str| {
        json(&format!(r#"{{"pad":"{}","sessions":{sessions}}}"#, "x".repeat(PRESENCE_BYTES)))
    };
    // What only members nobody knows make too large loses its sessions and stays too large.
    let trimmed = trim(odd(r#"[{"doing":"d"},3,{"branch":"b","x":1}]"#)).unwrap();
    assert_eq!(trimmed.get("sessions"), Some(&Value::Array(Vec::new())));
    assert_eq!(trim(odd("1")).unwrap().get("sessions"), None);
    assert_eq!(trim(Value::Null), Ok(Value::Null));
    assert!(trim(Value::Number(f64::NAN)).is_err());
}

fn header(from: Option<&str>, to: Option<&str>, class: Class) -> Header {
    let end = |seed: u8, agent: Option<&str>| End {
        person: PersonId::parse("a").unwrap(),
        device: signer(seed).machine(),
        agent: agent.map(|agent| SessionName::parse(agent).unwrap()),
    };
    let realm = TestRealm::small();
    Header {
        id: id(),
        kind: Kind::Message,
        realm: realm.realm(),
        anchor: realm.anchor(),
        from: end(1, from),
        to: To::Device(end(2, to)),
        ts: Wall(1),
        exp: Wall(2),
        class: Some(class),
        reply_to: None,
        seal: None,
    }
}

fn means(header: &Header, payload: &Value) -> Result<Meaning, Invalid> {
    meaning::check(header, payload, &Typed::read(header.kind, payload)?)
}

/// A message with these parts and, beside it, these members.
fn say(parts: &str, beside: &str) -> Value {
    let message = format!(r#"{{"messageId":"ID","role":"ROLE_USER","parts":{parts}}}"#);
    json(&format!(r#"{{"kind":"message","message":{message}{beside}}}"#))
}

#[test]
fn every_meaning_is_found() {
    let text = r#"[{"text":"x"}]"#;
    let plain = say(text, "");
    assert_eq!(means(&header(Some("a"), Some("b"), Class::Own), &plain), Ok(Meaning::Mail));
    assert_eq!(means(&header(None, None, Class::Own), &plain), Ok(Meaning::Line));
    assert_eq!(means(&header(Some("a"), None, Class::Contact), &plain), Ok(Meaning::Line));
    let post = say(text, r#","conv":{"kind":"channel","op":"post","id":"ID","name":"eng"}"#);
    assert_eq!(means(&header(Some("a"), None, Class::Contact), &post), Ok(Meaning::Channel));
    let leave = say(text, r#","conv":{"kind":"channel","op":"leave","id":"ID","name":"eng"}"#);
    assert_eq!(means(&header(None, None, Class::Own), &leave), Ok(Meaning::Channel));
    let sync = say(r#"[{"data":{"grants":[{}],"x":1}}]"#, r#","conv":{"kind":"self","what":"grant"}"#);
    assert_eq!(means(&header(Some("a"), None, Class::Own), &sync), Ok(Meaning::Sync));
    let request = say(text, r#","conv":{"kind":"request"}"#);
    assert_eq!(means(&header(None, None, Class::Request), &request), Ok(Meaning::Request));
    let card = say(r#"[{"data":{"card":{}}}]"#, r#","conv":{"kind":"card","what":"card"}"#);
    assert_eq!(means(&header(None, None, Class::Contact), &card), Ok(Meaning::Card));
    let receipt = json(r#"{"ref":"ID","stage":"read","at":1}"#);
    let receipts = Header { kind: Kind::Receipt, ..header(None, None, Class::Own) };
    assert_eq!(means(&receipts, &receipt), Ok(Meaning::Other));
}

#[test]
fn what_has_no_meaning_names_the_member() {
    let path = |header: &Header, payload: &Value| means(header, payload).unwrap_err().path().to_owned();
    let text = r#"[{"text":"x"}]"#;
    let request = say(text, r#","conv":{"kind":"request"}"#);
    assert_eq!(path(&header(None, None, Class::Contact), &request), "conv");
    assert_eq!(path(&header(None, None, Class::Request), &say(text, "")), "conv");
    let two = say(r#"[{"text":"x"},{"text":"y"}]"#, r#","conv":{"kind":"request"}"#);
    assert_eq!(path(&header(None, None, Class::Request), &two), "message.parts");
    // A class this payload cannot have, since its header says otherwise.
    let team = Header { to: To::Team, ..header(None, None, Class::Own) };
    assert_eq!(path(&team, &say(text, "")), "");
    let get = say(text, r#","conv":{"kind":"card","what":"get"}"#);
    assert_eq!(path(&header(None, None, Class::Contact), &get), "message.parts");
}

#[test]
fn a_payload_keeps_its_raw_value() {
    let raw = json(r#"{"taskId":"ID","zz":{"a":[1,2]}}"#);
    let payload = Payload::read(Kind::TaskCancel, raw.clone()).unwrap();
    assert_eq!(*payload.raw(), raw);
    let (back, typed) = payload.into_parts();
    assert_eq!(back, raw);
    assert!(matches!(typed, Typed::TaskCancel(_)));
    assert!(Payload::read(Kind::Receipt, raw).is_err());
    let message = Message::from_value(&json(r#"{"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]}"#));
    assert_eq!(message.unwrap().parts[0].text(), Some(""));
}
