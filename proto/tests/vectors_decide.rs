//! Every case of `decide.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::card::card_can;
use messaging_proto::consent::hold::{Then, answer, hold, next_ts};
use messaging_proto::consent::{
    AgentMail, Ask, Chat, DecideInput, Decision, Kind, Levels, Relation, decide, effective_policy,
};
use messaging_proto::pacing::A2h;
use messaging_proto::time::{Mono, Wall};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use support::rules::person;
use support::{assert_all_covered, cases, text};

const DECIDE: &str = include_str!("../../vectors/messaging/decide.json");

fn file() -> Value {
    let file = serde_json::from_str(DECIDE).unwrap();
    assert_all_covered(&file, &["policies", "table", "cardCan", "holds", "answers", "pacing"]);
    file
}

fn read<T: DeserializeOwned>(case: &Value, member: &str) -> T {
    serde_json::from_value(case[member].clone()).unwrap()
}

fn now(case: &Value) -> Wall {
    Wall(case["now"].as_u64().unwrap())
}

/// The policy of a case.
fn policy(case: &Value) -> messaging_proto::consent::Policy {
    let person: Option<Levels> = read(case, "person");
    let channels: Vec<Levels> = read(case, "channels");
    let channels = channels.iter().collect::<Vec<_>>();
    effective_policy(read(case, "relation"), person.as_ref(), &channels, now(case))
}

#[test]
fn policies() {
    for case in cases(&file(), "policies") {
        assert_eq!(json!(policy(case)), case["expect"], "{}", case["name"]);
    }
}

#[test]
fn table() {
    for case in cases(&file(), "table") {
        let what = &case["what"];
        let chain = what["chain"].as_array().into_iter().flatten();
        let chain = chain.map(|name| person(name.as_str().unwrap())).collect::<Vec<_>>();
        let chain = chain.iter().collect::<Vec<_>>();
        let kind = match (text(what, "kind"), what["by"].as_str()) {
            ("answer", None) => Kind::Answer,
            ("line", Some("person")) => Kind::PersonLine,
            ("line", Some("agent")) => Kind::AgentLine,
            ("change", None) => Kind::Change,
            ("ask", None) => Kind::Ask(&chain),
            ("request", None) => Kind::Request,
            other => panic!("{other:?}"),
        };
        let (sender, receiver) = (person(text(case, "sender")), person(text(case, "receiver")));
        let policy = policy(case);
        let relation = read(case, "relation");
        let input = DecideInput { relation, kind, sender: &sender, receiver: &receiver, policy: &policy };
        let decision = match decide(input) {
            Decision::Deliver { class, silent } => {
                json!({"act": "deliver", "class": class, "silent": silent})
            }
            Decision::Hold => json!({"act": "hold"}),
            Decision::Refuse(code) => json!({"act": "refuse", "code": code.as_str()}),
        };
        assert_eq!(decision, case["expect"], "{}", case["name"]);
    }
}

#[test]
fn cards() {
    for case in cases(&file(), "cardCan") {
        let person: Option<Levels> = read(case, "person");
        let can = card_can(read(case, "relation"), person.as_ref(), now(case));
        assert_eq!(json!(can), case["expect"], "{}", case["name"]);
    }
    let own = card_can(Relation::Own, None, Wall(0));
    assert_eq!(json!(own), json!({"chat": true, "agentMail": true, "ask": "open"}));
}

#[test]
fn holds() {
    for case in cases(&file(), "holds") {
        let count = |member: &str| usize::try_from(case[member].as_u64().unwrap()).unwrap();
        let chain = case["chainCode"].as_str().map(|code| Code::from_text(code).unwrap());
        let (sender, others) = (count("heldFromSender"), count("heldFromOthers"));
        match hold(case["sessionKnown"].as_bool().unwrap(), chain, sender, sender + others) {
            Ok(()) => assert_eq!(case["expect"], "held", "{}", case["name"]),
            Err(code) => assert_eq!(case["error"], code.as_str(), "{}", case["name"]),
        }
    }
}

#[test]
fn answers() {
    for case in cases(&file(), "answers") {
        let levels: Levels = read(case, "levels");
        match answer(read(case, "kind"), read(case, "answer"), &levels, now(case)) {
            Ok(answered) => {
                let then = match answered.then {
                    Then::Deliver => "deliver",
                    Then::Declined => "declined",
                    Then::File => "file",
                    Then::Dismiss => "dismiss",
                };
                assert_eq!(case["then"], then, "{}", case["name"]);
                assert_eq!(json!(answered.levels), case["levelsAfter"], "{}", case["name"]);
            }
            Err(code) => assert_eq!(case["error"], code.as_str(), "{}", case["name"]),
        }
    }
}

#[test]
fn pacing() {
    for case in cases(&file(), "pacing") {
        let times: Vec<u64> = read(case, "times");
        let mut counter = A2h::new();
        times.into_iter().for_each(|time| counter.accept(Mono(time)));
        let checked = match counter.check(Mono(now(case).0)) {
            Ok(()) => json!("allowed"),
            Err(retry_at) => json!({"error": Code::RateLimited.as_str(), "retryAt": retry_at.0}),
        };
        assert_eq!(checked, case["expect"], "{}", case["name"]);
    }
}

#[test]
fn paced_lines_are_let_in_again_when_said() {
    let mut counter = A2h::new();
    let mut now = Mono(0);
    let mut accepted = 0;
    // As fast as the counter lets: never past either bound, and always in at the time it named.
    while now < Mono(3 * 86_400_000) {
        match counter.check(now) {
            Ok(()) => {
                counter.accept(now);
                accepted += 1;
                now = now.plus(1);
            }
            Err(retry_at) => {
                assert!(retry_at > now);
                assert!(counter.check(Mono(retry_at.0 - 1)).is_err());
                assert!(!counter.is_idle(now));
                now = retry_at;
                assert_eq!(counter.check(now), Ok(()));
            }
        }
    }
    assert_eq!(accepted, 300);
    assert!(counter.is_idle(now.plus(86_400_000)));
    assert_eq!(serde_json::from_value::<A2h>(json!(counter)).unwrap(), counter);
}

#[test]
fn a_new_grant_is_newer_than_the_one_it_replaces() {
    assert_eq!(next_ts(Wall(5), None), Wall(5));
    assert_eq!(next_ts(Wall(5), Some(Wall(3))), Wall(5));
    assert_eq!(next_ts(Wall(5), Some(Wall(9))), Wall(10));
}

#[test]
fn the_relation_of_a_roster_realm() {
    assert_eq!(Relation::in_roster(true), Relation::Own);
    assert_eq!(Relation::in_roster(false), Relation::Org);
}

#[test]
fn every_level_is_either_kept_or_lapses_when_its_signer_is_removed() {
    for chat in [None, Some(Chat::Open), Some(Chat::Muted), Some(Chat::Blocked)] {
        for agent_mail in [None, Some(AgentMail::Open), Some(AgentMail::Blocked)] {
            for ask in [None, Some(Ask::Open), Some(Ask::Request), Some(Ask::No)] {
                for trusted_until in [None, Some(Wall(1))] {
                    for discoverable in [None, Some(false), Some(true)] {
                        let levels = Levels { chat, agent_mail, ask, trusted_until, discoverable };
                        let (kept, lapsed) = (levels.restricting(), levels.widening());
                        assert_eq!(kept.chat.or(lapsed.chat), chat);
                        assert_eq!(kept.agent_mail.or(lapsed.agent_mail), agent_mail);
                        assert_eq!(kept.ask.or(lapsed.ask), ask);
                        assert_eq!(lapsed.trusted_until, trusted_until);
                        assert_eq!(kept.discoverable.or(lapsed.discoverable), discoverable);
                        assert_eq!(kept.restricting(), kept);
                        assert!(kept.widening().is_clear());
                        assert!(lapsed.restricting().is_clear());
                    }
                }
            }
        }
    }
}
