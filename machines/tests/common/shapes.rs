//! The shapes of stored rows (`messaging/1 §8.8`, "The test").

use messaging_machines::store::MemoryBase;
use std::collections::{BTreeMap, BTreeSet};

/// Every shape a value has: members with their types, and `text`, `number`, `flag` for the rest.
fn shape(value: &serde_json::Value) -> String {
    use serde_json::Value as Json;
    match value {
        Json::Null => "null".to_owned(),
        Json::Bool(_) => "flag".to_owned(),
        Json::Number(_) => "number".to_owned(),
        Json::String(_) => "text".to_owned(),
        Json::Array(items) => {
            let shapes: BTreeSet<String> = items.iter().map(shape).collect();
            format!("[{}]", shapes.into_iter().collect::<Vec<_>>().join("|"))
        }
        Json::Object(members) => {
            let members: BTreeMap<&str, String> =
                members.iter().map(|(name, value)| (name.as_str(), shape(value))).collect();
            let members: Vec<String> =
                members.iter().map(|(name, shape)| format!("{name}:{shape}")).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

/// The tables this daemon's own roles wrote, each with the shapes of its rows.
pub fn shapes(bases: &[&MemoryBase], tables: &[&str]) -> String {
    let mut seen: BTreeMap<&str, BTreeSet<String>> =
        tables.iter().map(|table| (*table, BTreeSet::new())).collect();
    for (table, key, value) in bases.iter().flat_map(|base| base.iter()) {
        let Some(rows) = seen.get_mut(table.0) else { continue };
        let body = match value.split_first() {
            Some((1, body)) => body,
            _ => value,
        };
        let body = match serde_json::from_slice(body) {
            Ok(_) if table.0 == "roster" => "canonical entry".to_owned(),
            _ if table.0 == "chat_text" => "bytes of texts".to_owned(),
            Ok(value) => shape(&value),
            Err(_) => format!("{} bytes", value.len()),
        };
        let key = match table.0 {
            "meta" | "team" => format!("{} = ", String::from_utf8_lossy(key)),
            _ => format!("{} byte key = ", key.len()),
        };
        rows.insert(format!("{key}{body}"));
    }
    let table = |(table, rows): (&str, BTreeSet<String>)| {
        format!("{table}\n{}", rows.iter().map(|row| format!("  {row}\n")).collect::<String>())
    };
    seen.into_iter().map(table).collect()
}
