//! Every case of `tasks.json`, and the tables for all states and all inputs.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::a2a::TaskState;
use messaging_proto::key::MachineId;
use messaging_proto::name::SessionName;
use messaging_proto::payload::CodeText;
use messaging_proto::task::{
    BindError, Bound, Incoming, Records, Role, Stage, TRANSITIONS, TaskView, apply_update, bind,
    can_transition, delivery_expired, delivery_rejected, timeout,
};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use serde_json::{Value, json};
use std::convert::Infallible;
use support::rules::{machine, ulid};
use support::{assert_all_covered, cases, text};

const TASKS: &str = include_str!("../../vectors/messaging/tasks.json");

fn file() -> Value {
    serde_json::from_str(TASKS).unwrap()
}

/// A state by its text, as the schema reads it before any rule is asked.
fn state(text: &str) -> Result<TaskState, Code> {
    TaskState::parse(text).ok_or(Code::InvalidRequest)
}

#[test]
fn covered() {
    assert_all_covered(&file(), &["records", "transitions", "updates", "timeouts", "binding", "stages"]);
}

#[test]
fn transitions() {
    for case in cases(&file(), "transitions") {
        let moved = state(text(case, "from")).and_then(|from| {
            let to = state(text(case, "to"))?;
            let moved = apply_update(from, Some(to), false);
            assert_eq!(moved.is_ok(), can_transition(from, to), "{}", case["name"]);
            moved.map_err(|error| error.code())
        });
        assert_outcome(case, moved.map(|_| json!("allowed")));
    }
}

#[test]
fn updates() {
    for case in cases(&file(), "updates") {
        let from = state(text(case, "state")).unwrap();
        let to = case["to"].as_str().map(|to| state(to).unwrap());
        let updated = apply_update(from, to, case["artifact"].as_bool().unwrap());
        assert_outcome(case, updated.map(|to| json!(to.as_str())).map_err(|error| error.code()));
    }
}

#[test]
fn timeouts() {
    for case in cases(&file(), "timeouts") {
        let at = |member: &str| Wall(case[member].as_u64().unwrap());
        let ended = timeout(state(text(case, "state")).unwrap(), at("updatedAt"), at("now"));
        let ended = ended.map(|end| json!({"state": end.state.as_str(), "text": end.text}));
        assert_eq!(ended.unwrap_or(Value::Null), case["expect"], "{}", case["name"]);
    }
}

#[test]
fn stages() {
    for case in cases(&file(), "stages") {
        let stage = |member: &str| Stage::parse(text(case, member)).unwrap();
        assert_eq!(stage("stage").advance(stage("new")), stage("expect"), "{}", case["name"]);
    }
}

fn assert_outcome(case: &Value, outcome: Result<Value, Code>) {
    match outcome {
        Ok(value) => assert_eq!(value, case["expect"], "{}", case["name"]),
        Err(code) => assert_eq!(code.as_str(), case["error"], "{}", case["name"]),
    }
}

/// The records of a case: what the file names.
struct FileRecords<'a>(&'a Value);

impl Records for FileRecords<'_> {
    type Down = Infallible;

    fn sent(&self, envelope: &Ulid) -> Result<Option<MachineId>, Infallible> {
        Ok(self.0["sent"][envelope.as_str()].as_str().map(machine))
    }

    fn task(&self, task: &Ulid) -> Result<Option<TaskView>, Infallible> {
        let record = &self.0["tasks"][task.as_str()];
        Ok(record.is_object().then(|| TaskView {
            role: serde_json::from_value(record["role"].clone()).unwrap(),
            device: machine(text(record, "device")),
            request: ulid(text(record, "request")),
            session: SessionName::parse(text(record, "session")).unwrap(),
            state: state(text(record, "state")).unwrap(),
        }))
    }

    fn successor(&self, device: &MachineId) -> Result<Option<MachineId>, Infallible> {
        Ok(self.0["successors"][device.to_string()].as_str().map(machine))
    }
}

fn decided<R: Records<Down = Infallible>>(
    records: &R,
    from: &MachineId,
    what: Incoming<'_>,
) -> Result<Bound, BindError> {
    match bind(records, from, what) {
        Ok(decision) => decision,
        Err(down) => match down {},
    }
}

#[test]
fn binding() {
    let file = file();
    for case in cases(&file, "binding") {
        let records = FileRecords(&file["records"][text(case, "records")]);
        let envelope = &case["envelope"];
        let id = |member: &str| envelope[member].as_str().map(ulid);
        let (of, task, reply_to) = (id("ref"), id("taskId"), id("replyTo"));
        let to_agent = envelope["to_agent"].as_str().map(|name| SessionName::parse(name).unwrap());
        let what = match (text(envelope, "type"), envelope["kind"].as_str()) {
            ("receipt", _) => Incoming::Receipt { of: of.as_ref().unwrap() },
            ("task.status" | "task.artifact", _) => Incoming::Update {
                task: task.as_ref().unwrap(),
                reply_to: reply_to.as_ref().unwrap(),
                state: envelope["state"].as_str().map(|text| state(text).unwrap()),
                artifact: envelope["type"] == "task.artifact",
            },
            ("task.cancel", _) => Incoming::Cancel { task: task.as_ref().unwrap() },
            ("message", Some("task")) => Incoming::Request { task: task.as_ref().unwrap() },
            ("message", Some("message")) => Incoming::Message {
                task: task.as_ref(),
                to_agent: to_agent.as_ref(),
                reply_to: reply_to.as_ref(),
            },
            other => panic!("{other:?}"),
        };
        let bound = decided(&records, &machine(text(envelope, "from")), what);
        let outcome = bound.map(|bound| match bound {
            Bound::Receipt => json!({"result": "applied"}),
            Bound::Update { state } => json!({"result": "applied", "state": state.as_str()}),
            Bound::Cancel => json!({"result": "applied", "state": "TASK_STATE_CANCELED"}),
            Bound::CancelTooLate { state } => json!({"result": "ignored", "state": state.as_str()}),
            Bound::Answer { replied: Some(id), .. } => json!({"result": "answer", "replied": id.as_str()}),
            Bound::Answer { replied: None, .. } => json!({"result": "answer"}),
            Bound::Ask => json!({"result": "ask"}),
        });
        assert_outcome(case, outcome.map_err(BindError::code));
    }
}

#[test]
fn the_table_is_the_specification_s() {
    // §6.3, one row a state, in the order SUBMITTED, WORKING, INPUT, AUTH, COMPLETED, FAILED, CANCELED, REJECTED.
    use TaskState::{AuthRequired, Canceled, Completed, Failed, InputRequired, Rejected, Submitted, Working};
    let states = [Submitted, Working, InputRequired, AuthRequired, Completed, Failed, Canceled, Rejected];
    let rows =
        ["01111111", "01111110", "01001110", "01001110", "00000000", "00000000", "00000000", "00000000"];
    for (from, row) in states.into_iter().zip(rows) {
        for (to, allowed) in states.into_iter().zip(row.chars()) {
            assert_eq!(can_transition(from, to), allowed == '1', "{from:?} to {to:?}");
            for artifact in [false, true] {
                let updated = apply_update(from, Some(to), artifact);
                assert_eq!(updated.ok(), (allowed == '1').then_some(to), "{from:?} to {to:?}");
            }
        }
        let alone = apply_update(from, None, true);
        assert_eq!(alone.ok(), (!from.is_terminal()).then_some(from), "an artifact alone in {from:?}");
        assert_eq!(apply_update(from, None, false).unwrap_err().code(), Code::InvalidRequest);
        assert_eq!(from.is_terminal(), !row.contains('1'));
        assert_eq!(
            TRANSITIONS.iter().filter(|(state, _)| *state == from).count(),
            usize::from(row.contains('1'))
        );
    }
}

#[test]
fn a_request_that_did_not_arrive_ends_only_a_task_nobody_took_up() {
    let code = CodeText::parse("some_newer_code").unwrap();
    for state in TaskState::ALL {
        let rejected = delivery_rejected(state, &code);
        let expired = delivery_expired(state);
        assert_eq!(rejected.is_some(), state == TaskState::Submitted);
        assert_eq!(expired.is_some(), state == TaskState::Submitted);
        for end in rejected.iter().chain(&expired) {
            assert!(can_transition(state, end.state));
        }
    }
    let rejected = delivery_rejected(TaskState::Submitted, &code).unwrap();
    assert_eq!(
        (rejected.state, rejected.text.as_str()),
        (TaskState::Rejected, "delivery rejected: some_newer_code")
    );
    let expired = delivery_expired(TaskState::Submitted).unwrap();
    assert_eq!((expired.state, expired.text.as_str()), (TaskState::Failed, "delivery failed: expired"));
}

#[test]
fn a_timeout_is_a_transition_and_a_clock_set_back_ends_nothing() {
    for state in TaskState::ALL {
        let ended = timeout(state, Wall(0), Wall(u64::MAX));
        assert_eq!(ended.is_some(), state.is_interrupted());
        assert!(ended.is_none_or(|end| can_transition(state, end.state)));
        assert_eq!(timeout(state, Wall(1_000), Wall(0)), None);
    }
}

#[test]
fn stages_never_go_back() {
    let order = [
        Stage::Accepted,
        Stage::Relayed,
        Stage::Delivered,
        Stage::Held,
        Stage::HandedToAgent,
        Stage::Read,
        Stage::Replied,
    ];
    for (rank, stage) in order.into_iter().enumerate() {
        for (other, new) in order.into_iter().enumerate() {
            assert_eq!(stage.advance(new), order[rank.max(other)], "{stage:?} then {new:?}");
        }
        for end in [Stage::Rejected, Stage::Expired] {
            assert_eq!(stage.advance(end), if stage == Stage::Replied { stage } else { end });
        }
    }
    for stage in Stage::ALL {
        assert_eq!(Stage::parse(stage.as_str()), Some(stage));
        assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        for end in [Stage::Replied, Stage::Rejected, Stage::Expired] {
            assert_eq!(end.advance(stage), end);
            assert!(end.is_final());
        }
    }
    assert_eq!(Stage::parse("rejected "), None);
    for stage in messaging_proto::payload::Stage::ALL {
        assert_eq!(Stage::from(stage).as_str(), stage.as_str());
    }
}

#[test]
fn a_follow_up_that_answers_another_envelope_is_a_reply_to_it() {
    let file = file();
    let records = FileRecords(&file["records"]["roster"]);
    let bob = machine("LAv5VPvHUbRpPB_svj7Hapf3L7eoqUj3vhp0JGqbdn4");
    let (task, sent) = (ulid("01M3250V006S2KAD4EJMR51X8T"), ulid("01M3250V00F4G54M86K31C5JC3"));
    let web = SessionName::parse("web").unwrap();
    let what = Incoming::Message { task: Some(&task), to_agent: Some(&web), reply_to: Some(&sent) };
    assert_eq!(decided(&records, &bob, what), Ok(Bound::Answer { replied: Some(sent), continues: true }));
    assert!(what.drop_is_answered());
    assert!(!Incoming::Receipt { of: &sent }.drop_is_answered());
}

/// Records in which devices replaced each other in a circle: what a broken store might hold.
struct Circle(MachineId, MachineId);

impl Records for Circle {
    type Down = Infallible;

    fn sent(&self, _: &Ulid) -> Result<Option<MachineId>, Infallible> {
        Ok(Some(self.0))
    }

    fn task(&self, _: &Ulid) -> Result<Option<TaskView>, Infallible> {
        Ok(None)
    }

    fn successor(&self, device: &MachineId) -> Result<Option<MachineId>, Infallible> {
        Ok(Some(if *device == self.0 { self.1 } else { self.0 }))
    }
}

#[test]
fn a_circle_of_successors_ends() {
    let id = |number: u8| support::rules::key(number).machine();
    let records = Circle(id(1), id(2));
    let of = ulid("01M3250V00F4G54M86K31C5JC3");
    assert_eq!(decided(&records, &id(2), Incoming::Receipt { of: &of }), Ok(Bound::Receipt));
    assert_eq!(decided(&records, &id(3), Incoming::Receipt { of: &of }), Err(BindError::NotSent));
}

/// Records of a roster realm, whose machines have no successors.
struct Roster(MachineId);

impl Records for Roster {
    type Down = Infallible;

    fn sent(&self, _: &Ulid) -> Result<Option<MachineId>, Infallible> {
        Ok(Some(self.0))
    }

    fn task(&self, _: &Ulid) -> Result<Option<TaskView>, Infallible> {
        Ok(None)
    }
}

#[test]
fn a_roster_realm_has_no_successors() {
    let id = |number: u8| support::rules::key(number).machine();
    let of = ulid("01M3250V00F4G54M86K31C5JC3");
    let receipt = Incoming::Receipt { of: &of };
    assert_eq!(decided(&Roster(id(1)), &id(1), receipt), Ok(Bound::Receipt));
    assert_eq!(decided(&Roster(id(1)), &id(2), receipt), Err(BindError::NotSent));
}

#[test]
fn records_that_cannot_be_read_decide_nothing() {
    struct Down;
    impl Records for Down {
        type Down = &'static str;

        fn sent(&self, _: &Ulid) -> Result<Option<MachineId>, &'static str> {
            Err("down")
        }

        fn task(&self, _: &Ulid) -> Result<Option<TaskView>, &'static str> {
            Err("down")
        }
    }
    let (id, from) = (ulid("01M3250V00F4G54M86K31C5JC3"), support::rules::key(1).machine());
    let all = [
        Incoming::Receipt { of: &id },
        Incoming::Update { task: &id, reply_to: &id, state: None, artifact: true },
        Incoming::Cancel { task: &id },
        Incoming::Request { task: &id },
        Incoming::Message { task: Some(&id), to_agent: None, reply_to: None },
        Incoming::Message { task: None, to_agent: None, reply_to: Some(&id) },
    ];
    for what in all {
        assert_eq!(bind(&Down, &from, what), Err("down"));
    }
    let plain = Incoming::Message { task: None, to_agent: None, reply_to: None };
    assert_eq!(bind(&Down, &from, plain), Ok(Ok(Bound::Ask)));
    assert_eq!(Role::Requester, serde_json::from_value(json!("requester")).unwrap());
}
