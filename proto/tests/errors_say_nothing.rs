//! No error repeats what was given: each refusal of this crate's text types, over inputs with a marker in them.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use messaging_proto::address::{Address, ConvRef, ResolveError, RoomRef, SessionAddress, ToolAddress};
use messaging_proto::hash::Hash;
use messaging_proto::json::{Fields, FromValue, Object, Value, canonicalize, parse_wire};
use messaging_proto::key::{EncKey, MachineId, Sig};
use messaging_proto::name::{
    AgentKind, ChannelName, HostedId, Label, PersonId, PersonName, ScopeLabel, SessionName, TeamName,
};
use messaging_proto::relay_url::RelayUrl;
use messaging_proto::ulid::Ulid;
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use std::fmt::{Debug, Display};
use support::gen_json;

const MARKER: &str = "Tr0ub4dor&3";

fn assert_silent(error: &(impl Display + Debug)) {
    let told = format!("{error} {error:?}");
    assert!(!told.contains(MARKER), "{told}");
}

/// A type with one text form: it comes back from a wire value and from a row, and a refusal of other text says
/// nothing of it.
fn assert_text_form<T: FromValue + Serialize + DeserializeOwned + Display + Debug + PartialEq>(good: &str)
where
    for<'a> Value: From<&'a T>,
{
    let one = T::from_value(&Value::text(good)).unwrap();
    assert_eq!(one.to_string(), good);
    assert_eq!(Value::from(&one), Value::text(good));
    let row = serde_json::to_string(&one).unwrap();
    assert_eq!(row, serde_json::to_string(good).unwrap());
    assert_eq!(serde_json::from_str::<T>(&row).unwrap(), one);
    // Longer than any of these may be, and in no alphabet.
    let bad = MARKER.repeat(1000);
    assert_silent(&T::from_value(&Value::text(bad.clone())).unwrap_err());
    assert_silent(&T::from_value(&Value::Null).unwrap_err());
    assert_silent(&serde_json::from_value::<T>(bad.into()).unwrap_err());
    assert!(serde_json::from_str::<T>("1").is_err());
}

#[test]
fn text_forms_read_back_and_refuse_silently() {
    assert_text_form::<Address>("alice/builder@laptop");
    assert_text_form::<SessionAddress>("alice/builder@laptop");
    for good in ["me", "me/x", "me/x@l", "#eng", "alice", "alice/x@l"] {
        assert_text_form::<ToolAddress>(good);
    }
    assert_text_form::<RoomRef>("dm:alice");
    assert_text_form::<RoomRef>("channel:eng");
    assert_text_form::<ConvRef>("agent:alice/x");
    assert_text_form::<ConvRef>("channel:eng");
    let bytes_32 = "nVq3wGBirlQGNePR60JUlsDyPssDkoUamYXpppfRpI0";
    assert_text_form::<Hash>(bytes_32);
    assert_text_form::<MachineId>(bytes_32);
    assert_text_form::<EncKey>(bytes_32);
    assert_text_form::<Sig>(&format!("{}A{}Q", "a".repeat(42), "b".repeat(42)));
    assert_text_form::<Ulid>("01M7Q5CQG0B6CF8BHJAKRXAX3R");
    assert_text_form::<PersonName>("alice");
    assert_text_form::<HostedId>("p_abcdefghijklmnopqrstuvwxyz");
    assert_text_form::<PersonId>("alice");
    assert_text_form::<Label>("laptop");
    assert_text_form::<SessionName>("a.b_c-d");
    assert_text_form::<ChannelName>("eng");
    assert_text_form::<TeamName>("Équipe 😀 \n");
    assert_text_form::<AgentKind>("claude-code");
    assert_text_form::<ScopeLabel>("repo:x/y.z");
    assert_text_form::<RelayUrl>("wss://relay.example/v1/connect");
}

#[test]
fn views_of_names_and_urls() {
    assert_eq!(Label::parse("laptop").unwrap().as_ref(), "laptop");
    assert_eq!(RelayUrl::parse("wss://relay.example/x").unwrap().url().path(), "/x");
}

#[test]
fn resolution_errors_say_nothing() {
    for error in [ResolveError::NoRecipients, ResolveError::Ambiguous, ResolveError::UnknownSession] {
        assert_silent(&error);
        assert!(error.to_string().is_ascii());
    }
}

#[test]
fn names_a_peer_chose_are_in_no_path() {
    let object: Object = [(MARKER.to_owned(), Value::Number(f64::NAN))].into_iter().collect();
    let value = Value::from(object);
    assert_silent(&canonicalize(&value).unwrap_err());
    let fields = Fields::of(&value).unwrap();
    assert_silent(&fields.closed(&["a"]).unwrap_err());
    assert_silent(&fields.req::<u64>("a").unwrap_err());
}

proptest! {
    #[test]
    fn parse_errors_say_nothing(damaged in gen_json::damaged(), at in any::<prop::sample::Index>()) {
        let mut bytes = damaged;
        let at = at.index(bytes.len() + 1);
        bytes.splice(at..at, MARKER.bytes());
        if let Err(error) = parse_wire(&bytes, usize::MAX) {
            assert_silent(&error);
        }
    }
}
