//! Refusals of chains, grants and cards that no vector has, and that no refusal repeats what it refuses.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::card::{sign_contact_card, verify_contact_card};
use messaging_proto::consent::sync::{Holding, Taken, take};
use messaging_proto::consent::{
    Ask, ConsentError, ConsentGrant, Levels, NewGrant as NewConsent, Subject, resign_grant,
    sign_consent_grant, verify_consent_grant,
};
use messaging_proto::delegation::{DelegationError, Hop, NewGrant, create_grant, verify_chain};
use messaging_proto::json::{Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::limits::{GRANT_BYTES, TTL_MS};
use messaging_proto::name::{PersonId, ScopeLabel};
use messaging_proto::realm::RealmView;
use messaging_proto::task::{BindError, TaskError};
use messaging_proto::time::Wall;
use std::fmt::{Debug, Display};
use support::rules::{View, address, key, person, ulid};

const MARKER: &str = "Tr0ub4dor&3";
const NOW: Wall = Wall(1_790_000_000_000);
const TASK: &str = "01M3250V00XV4QZAKXP0R6HGFA";

fn assert_silent(error: &(impl Display + Debug)) {
    let told = format!("{error} {error:?}");
    assert!(!told.contains(MARKER) && !told.contains("bob") && !told.contains("alice"), "{told}");
}

fn view() -> View {
    let mut view = View::new();
    view.add(key(1).machine(), "alice", "laptop");
    view.add(key(2).machine(), "bob", "desk");
    view
}

fn new_grant(view: &View) -> NewGrant {
    NewGrant {
        realm: view.realm,
        task: ulid(TASK),
        from: address("alice/api@laptop"),
        to: address("bob/web@desk"),
        ts: NOW,
        exp: None,
        max_depth: None,
        scope: None,
    }
}

/// Every value that is one string or number away from `value`, at any depth: the marker in its place.
fn with_marker(value: &Value) -> Vec<Value> {
    match value {
        Value::Object(object) => {
            let inside = object.iter().flat_map(|(name, member)| {
                with_marker(member).into_iter().map(move |member| {
                    let mut object = object.clone();
                    object.set(name, member);
                    Value::Object(object)
                })
            });
            let mut more = object.clone();
            more.set(MARKER, Value::text(MARKER));
            inside.chain([Value::Object(more), Value::text(MARKER)]).collect()
        }
        Value::Array(items) => {
            let inside = (0..items.len()).flat_map(|at| {
                with_marker(&items[at]).into_iter().map(move |item| {
                    let mut items = items.clone();
                    items[at] = item;
                    Value::Array(items)
                })
            });
            inside.chain([Value::text(MARKER)]).collect()
        }
        _ => vec![Value::text(MARKER), Value::Null, Value::Number(f64::INFINITY)],
    }
}

#[test]
fn no_refusal_of_a_chain_repeats_it() {
    let view = view();
    let root = create_grant(&key(1), &new_grant(&view), None).unwrap();
    let back = NewGrant {
        from: address("bob/web@desk"),
        to: address("alice/docs@laptop"),
        scope: Some(vec![ScopeLabel::parse("a").unwrap()]),
        ..new_grant(&view)
    };
    let child = create_grant(&key(2), &back, Some(&root)).unwrap();
    let hop = Hop { by: key(2).machine(), from: back.from.clone(), to: back.to.clone(), task: back.task };
    let chain = Value::Array(vec![root.clone(), child]);
    verify_chain(&chain, &view, &hop, NOW).unwrap();
    for changed in with_marker(&chain) {
        assert_silent(&verify_chain(&changed, &view, &hop, NOW).unwrap_err());
    }
    for changed in with_marker(&root) {
        // A grant here is the parent's reader, which does not verify: only its shape can be refused.
        if let Err(error) = create_grant(&key(2), &back, Some(&changed)) {
            assert_silent(&error);
        }
    }
    let others = [
        Hop { by: key(1).machine(), ..hop.clone() },
        Hop { from: address("bob/api@desk"), ..hop.clone() },
        Hop { to: address("alice/web@laptop"), ..hop.clone() },
        Hop { task: ulid("01M3250V00CF7TX2VX2FMEFPN7"), ..hop.clone() },
    ];
    for (other, member) in others.iter().zip(["by", "from", "to", "task"]) {
        let error = verify_chain(&chain, &view, other, NOW).unwrap_err();
        assert_eq!(error, DelegationError::OtherHop { member });
        assert_silent(&error);
    }
}

#[test]
fn a_new_grant_keeps_to_what_the_wire_can_say() {
    let view = view();
    let refused = |new: NewGrant| create_grant(&key(1), &new, None).unwrap_err();
    let last = Wall((1 << 53) - 1);
    let past = Wall(1 << 53);
    let shape = |error: DelegationError| match error {
        DelegationError::Shape(invalid) => invalid.path().to_owned(),
        other => panic!("{other:?}"),
    };
    assert_eq!(shape(refused(NewGrant { ts: past, ..new_grant(&view) })), "ts");
    assert_eq!(shape(refused(NewGrant { exp: Some(past), ..new_grant(&view) })), "exp");
    assert_eq!(shape(refused(NewGrant { max_depth: Some(0), ..new_grant(&view) })), "maxDepth");
    let labels = vec![ScopeLabel::parse("a").unwrap(); 17];
    assert_eq!(shape(refused(NewGrant { scope: Some(labels), ..new_grant(&view) })), "scope");
    // The default end is ttlMs on, which the wire cannot say any more.
    assert_eq!(refused(NewGrant { ts: last, ..new_grant(&view) }), DelegationError::Lifetime);
    let till_the_end = NewGrant { ts: Wall(last.0 - TTL_MS), ..new_grant(&view) };
    assert!(create_grant(&key(1), &till_the_end, None).is_ok());
    let not_json = Value::Object([("x".to_owned(), Value::Number(f64::NAN))].into_iter().collect());
    assert_eq!(
        shape(create_grant(&key(1), &new_grant(&view), Some(&not_json)).unwrap_err()),
        "parent.maxDepth"
    );
}

fn consent(view: &View, levels: Levels) -> NewConsent {
    NewConsent {
        realm: view.realm,
        id: ulid(TASK),
        person: person("alice"),
        ts: NOW,
        subject: Subject::Person(person("bob")),
        levels,
    }
}

#[test]
fn no_refusal_of_a_grant_or_card_repeats_it() {
    let view = view();
    let levels = Levels { ask: Some(Ask::Open), trusted_until: Some(NOW), ..Levels::default() };
    let unsigned = consent(&view, levels).to_value();
    let grant = sign_consent_grant(&key(1), unsigned.clone()).unwrap();
    for changed in with_marker(grant.raw()) {
        assert_silent(&verify_consent_grant(&changed, &view.realm, &person("alice")).unwrap_err());
    }
    for changed in with_marker(&unsigned) {
        if let Err(error) = sign_consent_grant(&key(1), changed) {
            assert_silent(&error);
        }
    }
    let mut card: Object = ["v", "realm", "ts"]
        .iter()
        .map(|name| ((*name).to_owned(), grant.raw().get(name).unwrap().clone()))
        .collect();
    card.set("from", Value::text("alice"));
    card.set("to", Value::text("bob"));
    card.set("seq", Value::int(1));
    let can = [("chat", Value::Bool(true)), ("agentMail", Value::Bool(true)), ("ask", Value::text("no"))];
    card.set("can", Value::Object(can.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()));
    let card = sign_contact_card(&key(1), Value::Object(card)).unwrap();
    for changed in with_marker(card.raw()) {
        let refused = verify_contact_card(&changed, &view.realm, &person("alice"), &person("bob"));
        assert_silent(&refused.unwrap_err());
    }
}

#[test]
fn what_is_signed_here_keeps_the_rules_too() {
    let view = view();
    let trusted = |ask| Levels { ask, trusted_until: Some(NOW), ..Levels::default() };
    let refused = sign_consent_grant(&key(1), consent(&view, trusted(None)).to_value()).unwrap_err();
    assert_eq!(refused, ConsentError::Rule { member: "trustedUntil" });
    let pad = |len: usize| {
        let Value::Object(mut object) = consent(&view, Levels::default()).to_value() else { panic!() };
        object.set("pad", Value::text("p".repeat(len)));
        Value::Object(object)
    };
    assert_eq!(sign_consent_grant(&key(1), pad(GRANT_BYTES)).unwrap_err(), ConsentError::TooLarge);
    assert_eq!(sign_consent_grant(&key(1), Value::Null).unwrap_err().code(), Code::InvalidRequest);
    assert_eq!(sign_contact_card(&key(1), pad(0)).unwrap_err().code(), Code::InvalidRequest);
    // A grant so large that a re-sign's own member is too much for it.
    let size = |grant: &ConsentGrant| messaging_proto::json::canonicalize(grant.raw()).unwrap().len();
    let small = sign_consent_grant(&key(1), pad(1)).unwrap();
    let full = sign_consent_grant(&key(1), pad(1 + GRANT_BYTES - size(&small))).unwrap();
    assert_eq!(size(&full), GRANT_BYTES);
    assert_eq!(resign_grant(&full, &key(2), NOW, true).unwrap_err(), ConsentError::TooLarge);
    assert_eq!(resign_grant(&small, &key(2), Wall(1 << 53), true).unwrap_err().code(), Code::InvalidRequest);
    assert_eq!(ConsentGrant::from_store(Value::Null).unwrap_err().code(), Code::InvalidRequest);
}

#[test]
fn a_store_that_is_down_takes_no_grant() {
    struct Down(View, PersonId);
    impl Holding for Down {
        type Down = &'static str;

        fn realm(&self) -> &messaging_proto::hash::RealmId {
            &self.0.realm
        }

        fn person(&self) -> &PersonId {
            &self.1
        }

        fn is_current(&self, device: &MachineId) -> bool {
            self.0.device(device).is_some()
        }

        fn held(&self, _: &Subject) -> Result<Option<ConsentGrant>, &'static str> {
            Err("down")
        }

        fn count(&self) -> Result<usize, &'static str> {
            Err("down")
        }
    }
    let down = Down(view(), person("alice"));
    assert_eq!(down.cap(), 2000);
    let grant = sign_consent_grant(&key(1), consent(&down.0, Levels::default()).to_value()).unwrap();
    assert_eq!(take(&down, grant.raw()), Err("down"));
    assert_eq!(take(&down, &Value::Null), Ok(Taken::Skip(Code::InvalidRequest)));
}

#[test]
fn refusals_are_told_apart() {
    let bind = [
        (BindError::NotSent, "ref names nothing sent to this machine"),
        (BindError::NoTask, "taskId names no task with this machine"),
        (BindError::OtherSession, "to.agent is not the task's session"),
        (BindError::OtherRequest, "replyTo is not the task's request"),
        (BindError::TaskExists, "taskId is in use"),
        (BindError::State(TaskError::Ended), "the task has ended"),
        (BindError::State(TaskError::Transition), "the task's state does not lead to the update's"),
        (BindError::State(TaskError::Empty), "the update has neither state nor artifact"),
    ];
    for (error, told) in bind {
        assert_eq!(error.to_string(), told);
    }
}
