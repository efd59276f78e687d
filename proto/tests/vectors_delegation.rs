//! Every case of `delegation.json`.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::Code;
use messaging_proto::delegation::{Hop, NewGrant, Summary, create_grant, grant_hash, verify_chain};
use messaging_proto::domain::{Domain, signed_bytes};
use messaging_proto::hash::Hash;
use messaging_proto::json::{FromValue, Value, parse_wire};
use messaging_proto::name::ScopeLabel;
use messaging_proto::time::Wall;
use support::rules::{View, address, key_of, machine, ulid, wire_text, with_lone_surrogates};
use support::{assert_all_covered, cases, ours, text};

const DELEGATION: &str = include_str!("../../vectors/messaging/delegation.json");

fn view(file: &serde_json::Value) -> View {
    let mut view = View::new();
    view.realm = Hash::parse(file["view"]["realm"].as_str().unwrap()).unwrap();
    for member in cases(&file["view"], "machines") {
        view.add(machine(text(member, "machine")), text(member, "person"), text(member, "label"));
    }
    view
}

/// What verifying the chain of a case gives, from its wire text on.
fn verify(view: &View, case: &serde_json::Value) -> Result<Summary, Code> {
    // A clock that is no integer, and a chain that is no wire JSON, do not get as far as the function.
    let now = Wall(case["now"].as_u64().ok_or(Code::InvalidRequest)?);
    let chain = parse_wire(wire_text(&case["chain"]).as_bytes(), usize::MAX).map_err(|e| e.code())?;
    let hop = &case["hop"];
    let hop = Hop {
        by: machine(text(hop, "by")),
        from: address(text(hop, "from")),
        to: address(text(hop, "to")),
        task: ulid(text(hop, "task")),
    };
    verify_chain(&chain, view, &hop, now).map_err(|error| error.code())
}

#[test]
fn chains() {
    let file = with_lone_surrogates(DELEGATION);
    assert_all_covered(&file, &["view", "keys", "cases", "create"]);
    let view = view(&file);
    let mut accepted = 0;
    for case in cases(&file, "cases") {
        let name = text(case, "name");
        match (verify(&view, case), case["error"].as_str()) {
            (Err(code), error) => assert_eq!(Some(code.as_str()), error, "{name}"),
            (Ok(summary), error) => {
                assert_eq!(None, error, "{name}");
                assert_eq!(serde_json::to_value(&summary).unwrap(), case["expect"], "{name}");
                accepted += 1;
                let grants = case["chain"].as_array().unwrap();
                assert_eq!(case["texts"].as_array().unwrap().len(), grants.len(), "{name}");
                for (index, grant) in grants.iter().enumerate() {
                    let mut unsigned = grant.clone();
                    unsigned.as_object_mut().unwrap().remove("sig");
                    let signed = signed_bytes(Domain::Delegation, &ours(&unsigned)).unwrap();
                    assert_eq!(signed, case["texts"][index].as_str().unwrap().as_bytes(), "{name}");
                    assert_eq!(
                        grant_hash(&ours(grant)).unwrap().to_string(),
                        case["hashes"][index],
                        "{name}"
                    );
                }
            }
        }
    }
    assert!(accepted > 0);
}

#[test]
fn keys() {
    let file = with_lone_surrogates(DELEGATION);
    for pair in cases(&file, "keys") {
        assert_eq!(key_of(text(pair, "seed")).machine().to_string(), pair["machine"]);
    }
}

/// The typed input of a case; nothing when a member has the wrong type or a name breaks its grammar.
fn input(raw: &Value) -> Option<NewGrant> {
    let fields = messaging_proto::json::Fields::of(raw).ok()?;
    let scope = raw.get("scope").map(Vec::<ScopeLabel>::from_value).transpose().ok()?;
    Some(NewGrant {
        realm: fields.req("realm").ok()?,
        task: fields.req("task").ok()?,
        from: fields.req("from").ok()?,
        to: fields.req("to").ok()?,
        ts: Wall(fields.req("ts").ok()?),
        exp: fields.opt("exp").ok()?.map(Wall),
        max_depth: fields.opt("maxDepth").ok()?,
        scope,
    })
}

#[test]
fn creates() {
    let file = with_lone_surrogates(DELEGATION);
    for case in cases(&file, "create") {
        let name = text(case, "name");
        let new = input(&ours(&case["input"])).unwrap();
        let parent = case.get("parent").map(ours);
        match create_grant(&key_of(text(case, "seed")), &new, parent.as_ref()) {
            Ok(grant) => assert_eq!(grant_as_json(&grant), case["expect"], "{name}"),
            Err(error) => assert_eq!(error.code().as_str(), case["error"], "{name}"),
        }
    }
}

fn grant_as_json(value: &Value) -> serde_json::Value {
    serde_json::from_str(&messaging_proto::json::canonicalize(value).unwrap()).unwrap()
}
