//! Valid envelopes of every type and meaning, to change something in.

use super::envelope_open::NOW;
use super::{Draw, World};
use crate::envelope::{End, HeaderParts, Kind, To};
use crate::json::{Value, parse_wire};
use crate::name::SessionName;
use crate::realm::RealmView;
use crate::ulid::Ulid;

/// What one envelope is made of.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) parts: HeaderParts,
    pub(super) payload: Value,
}

/// A template: type, agent at each end, whether it answers, whether it goes to an own machine, payload.
type Template = (Kind, bool, bool, bool, bool, &'static str);

macro_rules! line {
    ($rest:literal) => {
        concat!(
            r#"{"kind":"message","message":{"messageId":"01M7Q5CQG0B6CF8BHJAKRXAX3R","role":"ROLE_USER","#,
            $rest
        )
    };
}

const TEMPLATES: &[Template] = &[
    (
        Kind::Message,
        true,
        true,
        true,
        false,
        r#"{"kind":"message","message":{"messageId":"m-1","contextId":"c","role":"ROLE_AGENT","parts":[
        {"text":"hello","metadata":{"a":[1]}},{"raw":"AAECAw==","filename":"f","mediaType":"a/b"},
        {"url":"https://x.example/"},{"data":null}],"metadata":{},"extensions":["e"],
        "referenceTaskIds":["r"],"taskId":"01M7Q5CQG0ZB6RE6FNMHVHM30W"},"wake":false}"#,
    ),
    (
        Kind::Message,
        true,
        true,
        false,
        false,
        r#"{"kind":"task","message":{"messageId":"m","contextId":"c","taskId":"01M7Q5CQG0ZB6RE6FNMHVHM30W",
        "role":"ROLE_USER","parts":[{"text":"do"}]},"delegation":[{
        "realm":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE","task":"01M7Q5CQG0ZB6RE6FNMHVHM30W",
        "from":"alice/a@laptop","to":"bob/b@laptop","by":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE",
        "ts":1795000000000,"exp":1795000001000,"maxDepth":4,"scope":["repo:x"],
        "parent":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE",
        "sig":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ"}]}"#,
    ),
    (Kind::Message, false, false, false, false, line!(r#""parts":[{"text":"hi"}]}}"#)),
    (Kind::Message, true, false, false, true, line!(r#""parts":[{"text":"hi"}]}}"#)),
    (
        Kind::Message,
        false,
        false,
        false,
        false,
        line!(
            r#""parts":[{"text":"x"}]},"conv":{"kind":"channel","op":"create","id":"01M7Q5CQG0ZB6RE6FNMHVHM30W",
            "name":"eng","persons":["alice","bob"],"creator":"alice"}}"#
        ),
    ),
    (
        Kind::Message,
        true,
        false,
        false,
        false,
        line!(
            r#""parts":[{"text":"x"}]},"conv":{"kind":"channel","op":"post","id":"01M7Q5CQG0ZB6RE6FNMHVHM30W",
            "name":"eng"}}"#
        ),
    ),
    (
        Kind::Message,
        false,
        false,
        false,
        true,
        line!(r#""parts":[{"data":{"grants":[{},{"a":1}]}}]},"conv":{"kind":"self","what":"snapshot"}}"#),
    ),
    (
        Kind::Message,
        false,
        false,
        false,
        false,
        line!(r#""parts":[{"text":"please"}]},"conv":{"kind":"request"}}"#),
    ),
    (
        Kind::Message,
        false,
        false,
        false,
        false,
        line!(r#""parts":[{"data":{"card":{}}}]},"conv":{"kind":"card","what":"card"}}"#),
    ),
    (
        Kind::Message,
        false,
        false,
        false,
        false,
        line!(r#""parts":[{"data":{"get":true}}]},"conv":{"kind":"card","what":"get"}}"#),
    ),
    (
        Kind::Receipt,
        false,
        false,
        false,
        false,
        r#"{"ref":"01M7Q5CQG0ZB6RE6FNMHVHM30W","stage":"rejected","code":"forbidden","at":1795000000000}"#,
    ),
    (
        Kind::TaskStatus,
        true,
        false,
        true,
        false,
        r#"{"taskId":"01M7Q5CQG0ZB6RE6FNMHVHM30W","contextId":"c","status":{"state":"TASK_STATE_WORKING",
        "message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"t"}]},
        "timestamp":"2026-12-02T09:03:00.5+01:00"},"metadata":{}}"#,
    ),
    (
        Kind::TaskArtifact,
        true,
        false,
        true,
        false,
        r#"{"taskId":"01M7Q5CQG0ZB6RE6FNMHVHM30W","contextId":"c","artifact":{"artifactId":"a","name":"n",
        "description":"d","parts":[{"raw":""}],"metadata":{},"extensions":[]},"append":true,"lastChunk":false}"#,
    ),
    (Kind::TaskCancel, true, false, false, false, r#"{"taskId":"01M7Q5CQG0ZB6RE6FNMHVHM30W","reason":"r"}"#),
    (
        Kind::Presence,
        false,
        false,
        false,
        false,
        r#"{"seq":3,"label":"laptop","features":["tasks"],"away":true,"sessions":[{"name":"a","client":"codex",
        "state":"busy","tier":"push","since":1,"wake":true,"repo":"r","branch":"b","doing":"d"},{"name":"b",
        "client":"mcp","state":"idle","tier":"pull","since":2,"kept":true}]}"#,
    ),
];

/// One of the templates, from alice's first machine.
pub(super) fn sample(world: &World, draw: &mut Draw<'_>) -> Option<Sample> {
    let (kind, from_agent, to_agent, answers, own, payload) = *draw.one_of(TEMPLATES)?;
    let to = world.machines.get(if own { 1 } else { 2 })?;
    let from = world.machines.first()?;
    let end = |machine: &super::world::Machine, agent: bool| End {
        person: machine.device().person.clone(),
        device: machine.signing.machine(),
        agent: SessionName::parse("a").filter(|_| agent),
    };
    let parts = HeaderParts {
        id: Ulid::new(NOW, draw.array()),
        kind,
        realm: world.realm(),
        anchor: world.anchor(),
        from: end(from, from_agent),
        to: if kind == Kind::Presence { To::Team } else { To::Device(end(to, to_agent)) },
        ts: NOW,
        exp: NOW.plus(1000),
        reply_to: answers.then(|| Ulid::new(NOW, [5; 10])),
    };
    let payload = parse_wire(payload.as_bytes(), payload.len()).ok()?;
    Some(Sample { parts, payload })
}
