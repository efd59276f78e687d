//! Reading typed members, and the path of what fails.
#![allow(missing_docs, clippy::unwrap_used)]

use messaging_proto::Code;
use messaging_proto::json::{Fields, FromValue, Invalid, Object, Value, parse_wire};

fn value(text: &str) -> Value {
    parse_wire(text.as_bytes(), usize::MAX).unwrap()
}

#[derive(Debug, PartialEq)]
struct Host {
    kinds: Vec<String>,
}

impl FromValue for Host {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        Ok(Self { kinds: Fields::of(value)?.req("kinds")? })
    }
}

#[test]
fn members_are_read_by_type() {
    let value = value(r#"{"n":1e0,"flag":true,"text":"x","raw":[null],"host":{"kinds":["a","b"]}}"#);
    let fields = Fields::of(&value).unwrap();
    assert_eq!(fields.req::<u64>("n"), Ok(1));
    assert_eq!(fields.req::<bool>("flag"), Ok(true));
    assert_eq!(fields.opt::<String>("text"), Ok(Some("x".to_owned())));
    assert_eq!(fields.opt::<String>("none"), Ok(None));
    assert_eq!(fields.req::<Value>("raw"), Ok(Value::Array(vec![Value::Null])));
    assert_eq!(fields.req::<Host>("host"), Ok(Host { kinds: vec!["a".to_owned(), "b".to_owned()] }));
    assert_eq!(fields.raw("flag"), Some(&Value::Bool(true)));
    assert_eq!(fields.object().len(), 5);
    assert_eq!(fields.literal("text", "x"), Ok(()));
    assert_eq!(fields.absent("none"), Ok(()));
    assert_eq!(fields.closed(&["n", "flag", "text", "raw", "host", "more"]), Ok(()));
}

#[test]
fn failures_name_the_member() {
    let value = value(r#"{"n":null,"host":{"kinds":["a",1]},"list":[[1],[2,"x"]],"hosts":[{"kinds":1}]}"#);
    let fields = Fields::of(&value).unwrap();
    let path = |invalid: Invalid| invalid.path().to_owned();
    assert_eq!(fields.req::<u64>("none").map_err(path).unwrap_err(), "none");
    assert_eq!(fields.req::<u64>("n").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.opt::<u64>("n").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.req::<bool>("n").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.req::<String>("n").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.req::<Vec<u64>>("n").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.req::<Host>("n").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.req::<Host>("host").map_err(path).unwrap_err(), "host.kinds[1]");
    assert_eq!(fields.req::<Vec<Vec<u64>>>("list").map_err(path).unwrap_err(), "list[1][1]");
    assert_eq!(fields.req::<Vec<Host>>("hosts").map_err(path).unwrap_err(), "hosts[0].kinds");
    assert_eq!(fields.literal("n", "x").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.absent("n").map_err(path).unwrap_err(), "n");
    assert_eq!(fields.closed(&["n"]).map_err(path).unwrap_err(), "");
    assert!(Fields::of(&Value::Null).is_err());
    assert_eq!(Invalid::at("n").to_string(), "n does not match its schema");
    assert_eq!(Invalid::new().to_string(), "the value does not match its schema");
    assert_eq!(Invalid::new().code(), Code::InvalidRequest);
}

#[test]
fn integers_are_zero_to_two_to_the_fifty_third_less_one() {
    for (text, number) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("1.0", Some(1)),
        ("10e-1", Some(1)),
        ("9007199254740991", Some(9_007_199_254_740_991)),
        ("9007199254740992", None),
        ("-1", None),
        ("1.5", None),
        ("1e400", None),
        ("null", None),
        ("\"1\"", None),
    ] {
        assert_eq!(u64::from_value(&value(text)).ok(), number, "{text}");
    }
    assert!(u64::from_value(&Value::Number(f64::NAN)).is_err());
}

#[test]
fn objects_keep_order_and_members() {
    let mut object = Object::from([("b", Value::from(true)), ("a", Value::text("x"))]);
    object.set("b", Value::int(2));
    object.set("c", Value::from(vec![Value::from("y")]));
    let names: Vec<&str> = object.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["b", "a", "c"]);
    assert_eq!(object.get("b"), Some(&Value::Number(2.0)));
    assert_eq!(object.remove("a"), Some(Value::from("x")));
    assert_eq!(object.remove("a"), None);
    assert!(!object.is_empty() && Object::new().is_empty());
    let value = Value::from(object);
    assert_eq!(value.get("c").and_then(Value::as_array).and_then(|items| items[0].as_str()), Some("y"));
    assert_eq!(value.get("d"), None);
    assert_eq!(value.as_array(), None);
    assert_eq!(value.as_str(), None);
    assert_eq!(Value::Null.get("a"), None);
}

#[test]
fn objects_in_rows_are_objects() {
    let object: Object =
        serde_json::from_str(r#"{"b":1,"a":[true,null,-2,1.5,"x\n",18446744073709551615]}"#).unwrap();
    assert_eq!(
        serde_json::to_string(&object).unwrap(),
        r#"{"b":1,"a":[true,null,-2,1.5,"x\n",1.8446744073709552e+19]}"#
    );
    let tree: serde_json::Value = serde_json::from_str(r#"{"a":["x",-1]}"#).unwrap();
    assert_eq!(serde_json::from_value::<Value>(tree).unwrap(), value(r#"{"a":["x",-1]}"#));
    assert!(serde_json::from_str::<Object>("[]").is_err());
    assert!(serde_json::from_str::<Value>("[").is_err());
    // A serde format that has something JSON does not is told what was expected.
    let error =
        <Value as serde::Deserialize>::deserialize(serde::de::value::CharDeserializer::<Bytes>::new('x'));
    assert_eq!(error.unwrap(), Value::text("x"));
    let bytes = serde::de::value::BytesDeserializer::<Bytes>::new(b"x");
    assert_eq!(
        <Value as serde::Deserialize>::deserialize(bytes).unwrap_err().to_string(),
        "invalid type: byte array, expected a JSON value"
    );
}

type Bytes = serde::de::value::Error;
