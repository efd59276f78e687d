//! Target `daemon_machine`: a team whose daemons get any calls, any frames, crashes and faults in any order.

use super::events;
use crate::plan::{Act, Forged, Garbage, Head, Item, Move, Plan, Stray, Withheld};
use crate::run::play_safely;
use arbitrary::Arbitrary;
use messaging_machines::daemon::ipc::methods;

/// A method of the local API, or none.
fn method(number: u8) -> &'static str {
    let methods: Vec<&str> = methods::all().map(|method| method.name).chain(["no.method"]).collect();
    at(&methods, number)
}

/// Names of params, and what stands for them.
const NAMES: [&str; 24] = [
    "key",
    "name",
    "agent",
    "tier",
    "to",
    "parts",
    "kind",
    "replyTo",
    "taskId",
    "state",
    "message",
    "artifact",
    "idempotencyKey",
    "id",
    "ids",
    "stage",
    "limit",
    "cursor",
    "conversation",
    "text",
    "clientId",
    "subject",
    "ask",
    "persons",
];
const VALUES: [&str; 24] = [
    r#""111111111111111111111111""#,
    r#""agent""#,
    r#""codex""#,
    r#""push""#,
    r#""alice/agent@laptop""#,
    r#"[{"text":"hi"}]"#,
    r#""task""#,
    r#""01ARZ3NDEKTSV4RRFFQ69G5FAV""#,
    r#""TASK_STATE_WORKING""#,
    r#"[{"text":"x"}]"#,
    r#"{"parts":[{"data":{"a":1}}]}"#,
    r#""k""#,
    r#"["01ARZ3NDEKTSV4RRFFQ69G5FAV"]"#,
    r#""read""#,
    "50",
    r#""dm:alice""#,
    r#""channel:eng""#,
    r#"{"person":"alice"}"#,
    r#""open""#,
    r#"["alice","bob"]"#,
    "null",
    "-1",
    "1e400",
    r#"{"a":{"a":[[[[]]]]}}"#,
];

/// Frames of a relay that says anything.
const FRAMES: [&str; 14] = [
    r#"{"t":"welcome","head":{"seq":N,"hash":"HASH"},"online":[]}"#,
    r#"{"t":"challenge","proto":"messaging.relay.v1","relay":"ws://127.0.0.1:8787","nonce":"HASH"}"#,
    r#"{"t":"roster.entries","req":"sync:N","entries":[{}],"more":true}"#,
    r#"{"t":"roster.ok","req":"write:N","head":{"seq":N,"hash":"HASH"}}"#,
    r#"{"t":"roster","entry":{"seq":N,"op":"member.remove"}}"#,
    r#"{"t":"nack","id":"write:N","code":"roster_conflict"}"#,
    r#"{"t":"nack","id":"sync:N","code":"rate_limited","retryAfterMs":N}"#,
    r#"{"t":"ack","id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","stage":"relayed"}"#,
    r#"{"t":"peer","machine":"HASH","online":true}"#,
    r#"{"t":"error","code":"not_member"}"#,
    r#"{"t":"deliver","env":{"v":"messaging/2","id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","type":"new","from":{"device":"HASH","person":"alice"}}}"#,
    r#"{"t":"deliver","env":{"v":"messaging/1","id":"01ARZ3NDEKTSV4RRFFQ69G5FAV","type":"message"}}"#,
    r#"{"t":"ping","n":N}"#,
    r#"{"t":"pong"}"#,
];

/// One event.
#[derive(Clone, Debug, Arbitrary)]
enum Happens {
    Call { node: u8, agent: bool, method: u8, params: Vec<(u8, u8)> },
    Line { node: u8, agent: bool, bytes: Vec<u8> },
    Frame { node: u8, frame: u8, number: u8 },
    Bytes { node: u8, bytes: Vec<u8> },
    Send { from: u8, to: u8, task: bool },
    Reply { node: u8, pick: u8 },
    Show { node: u8 },
    Read { node: u8, pick: u8 },
    Update { node: u8, pick: u8, to: u8 },
    Cancel { node: u8, pick: u8 },
    Delegate { from: u8, to: u8, pick: u8 },
    Grant { node: u8, person: u8, level: u8 },
    Answer { node: u8, pick: u8, answer: u8 },
    Say { node: u8, to: u8 },
    Channel { node: u8, step: u8, person: u8 },
    Rekey { node: u8 },
    Invite,
    Stray { node: u8, what: u8 },
    Forge { node: u8, what: u8, pick: u8 },
    Garbage { node: u8, what: u8 },
    Withhold { node: u8, what: u8 },
    Reach { node: u8, up: bool },
    Crash { node: u8, at: u8, committed: bool, effects: u8 },
    Restart { node: u8 },
    Full { node: u8, writes: u8 },
    FailSaves { node: u8 },
    RelayRestart,
    Skew { node: u8, ms: i32 },
    Sleep { ms: u32 },
    Replay { node: u8, back: u8 },
    Drop { node: u8, frames: u8 },
    Swap { node: u8 },
    Wait { ms: u16 },
}

fn at<T: Copy>(of: &[T], number: u8) -> T {
    of[usize::from(number) % of.len()]
}

impl Happens {
    #[allow(clippy::too_many_lines, reason = "one arm an event")]
    fn act(self) -> Act {
        let n = usize::from;
        let moves = [
            Move::Working,
            Move::InputRequired,
            Move::AuthRequired,
            Move::Completed,
            Move::Failed,
            Move::Rejected,
        ];
        match self {
            Self::Call { node, agent, method, params } => {
                let params: Vec<String> = params
                    .into_iter()
                    .take(6)
                    .map(|(name, value)| format!(r#""{}":{}"#, at(&NAMES, name), at(&VALUES, value)))
                    .collect();
                let text = format!(
                    r#"{{"jsonrpc":"2.0","id":7,"method":"{}","params":{{{}}}}}"#,
                    self::method(method),
                    params.join(",")
                );
                Act::Line { node: n(node), agent, text }
            }
            Self::Line { node, agent, bytes } => {
                Act::Line { node: n(node), agent, text: String::from_utf8_lossy(&bytes).into_owned() }
            }
            Self::Frame { node, frame, number } => {
                let hash = "A".repeat(43);
                let text = at(&FRAMES, frame).replace("HASH", &hash).replace('N', &number.to_string());
                Act::Frame { node: n(node), text }
            }
            Self::Bytes { node, bytes } => {
                Act::Frame { node: n(node), text: String::from_utf8_lossy(&bytes).into_owned() }
            }
            Self::Send { from, to, task } => Act::Send { from: n(from), to: n(to), task },
            Self::Reply { node, pick } => Act::Reply { node: n(node), pick: n(pick) },
            Self::Show { node } => Act::Ack { node: n(node) },
            Self::Read { node, pick } => Act::Read { node: n(node), pick: n(pick) },
            Self::Update { node, pick, to } => {
                Act::Update { node: n(node), pick: n(pick), to: at(&moves, to) }
            }
            Self::Cancel { node, pick } => Act::Cancel { node: n(node), pick: n(pick) },
            Self::Delegate { from, to, pick } => Act::Delegate { from: n(from), to: n(to), pick: n(pick) },
            Self::Grant { node, person, level } => {
                Act::Grant { node: n(node), person: n(person), level: n(level) }
            }
            Self::Answer { node, pick, answer } => {
                Act::Answer { node: n(node), pick: n(pick), answer: n(answer) }
            }
            Self::Say { node, to } => Act::Say { node: n(node), to: n(to) },
            Self::Channel { node, step, person } => {
                Act::Channel { node: n(node), channel: n(person & 1), step: n(step), person: n(person) }
            }
            Self::Rekey { node } => Act::Rekey { node: n(node) },
            Self::Invite => Act::Invite { node: 0 },
            Self::Stray { node, what } => Act::Stray { node: n(node), what: at(&STRAYS, what) },
            Self::Forge { node, what, pick } => {
                Act::Forge { node: n(node), what: at(&Forged::ALL, what), pick: n(pick) }
            }
            Self::Garbage { node, what } => Act::Garbage { node: n(node), what: at(&Garbage::QUIET, what) },
            Self::Withhold { node, what } => {
                let what = at(&[Withheld::Nothing, Withheld::Roster, Withheld::Acks], what);
                Act::Withhold { node: n(node), what }
            }
            Self::Reach { node, up } => Act::Reach { node: n(node), up },
            Self::Crash { node, at, committed, effects } => {
                Act::Crash { node: n(node), at: n(at % 16), committed, effects: n(effects % 4) }
            }
            Self::Restart { node } => Act::Restart { node: n(node) },
            Self::Full { node, writes } => Act::Full { node: n(node % 4), writes: n(writes % 8) },
            Self::FailSaves { node } => Act::FailSaves { node: n(node), count: 2 },
            Self::RelayRestart => Act::RelayRestart {},
            Self::Skew { node, ms } => Act::Skew { node: n(node % 4), ms: i64::from(ms % 299_000) },
            Self::Sleep { ms } => Act::Sleep { ms: u64::from(ms % 3_600_000) },
            Self::Replay { node, back } => Act::Replay { node: n(node), back: n(back) },
            Self::Drop { node, frames } => Act::Drop { node: n(node), frames: n(frames) },
            Self::Swap { node } => Act::Swap { node: n(node) },
            Self::Wait { .. } => Act::Woke { node: 0 },
        }
    }
}

const STRAYS: [Stray; 6] =
    [Stray::NoSession, Stray::BadParams, Stray::NotFound, Stray::WrongRole, Stray::Forbidden, Stray::Secret];
/// The plan that bytes stand for.
fn plan(data: &[u8]) -> Plan {
    let machines = ["alice/laptop", "bob/desk", "carol/tower"].map(str::to_owned).to_vec();
    let mut at = 0;
    let items = events::<Happens>(data).into_iter().map(|happens| {
        at += match happens {
            Happens::Wait { ms } => u64::from(ms),
            _ => 20,
        };
        Item { at, act: happens.act() }
    });
    Plan { head: Head { seed: data.len() as u64, machines }, items: items.collect() }
}

/// Any calls, frames, crashes and faults: no machine panics, no timer spins, and no invariant breaks.
///
/// # Panics
/// When one does; the message holds the plan, which `messaging-sim run` plays again.
pub fn daemon_machine(data: &[u8]) {
    let plan = plan(data);
    if plan.items.is_empty() {
        return;
    }
    if let Err(failure) = play_safely(&plan) {
        panic!("{failure}\n{}", plan.to_text());
    }
}
