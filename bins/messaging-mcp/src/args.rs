//! Reading a tool's input: closed, bounded, and every refusal names the member (contract ipc §8).

use crate::failure::Failure;
use messaging_proto::address::ToolAddress;
use messaging_proto::ulid::Ulid;
use messaging_proto::units::utf16_len;
use rmcp::model::JsonObject;
use serde_json::Value;
use std::ops::RangeInclusive;

/// The members that were not read yet.
pub(crate) struct Args {
    members: JsonObject,
    /// What is put before a member's name: where an object is inside another.
    path: String,
}

/// Any length from one.
pub(crate) const ANY: RangeInclusive<usize> = 1..=usize::MAX;

impl Args {
    pub(crate) fn new(members: JsonObject) -> Self {
        Self { members, path: String::new() }
    }

    /// An object inside this one.
    pub(crate) fn inside(value: Value, path: &str) -> Result<Self, Failure> {
        match value {
            Value::Object(members) => Ok(Self { members, path: format!("{path}.") }),
            _ => Err(Failure::invalid(path, "must be an object")),
        }
    }

    /// The path of a member.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}{name}", self.path)
    }

    pub(crate) fn invalid(&self, name: &str, what: &str) -> Failure {
        Failure::invalid(&self.path(name), what)
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name)
    }

    /// A text of `units` UTF-16 units.
    pub(crate) fn text(
        &mut self,
        name: &str,
        units: RangeInclusive<usize>,
    ) -> Result<Option<String>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) if units.contains(&utf16_len(&text)) => Ok(Some(text)),
            Some(Value::String(text)) if text.is_empty() => Err(self.invalid(name, "must not be empty")),
            Some(Value::String(_)) => Err(self.invalid(name, "is too long or too short")),
            Some(_) => Err(self.invalid(name, "must be a text")),
        }
    }

    /// A text that must be there.
    pub(crate) fn needed(&mut self, name: &str, units: RangeInclusive<usize>) -> Result<String, Failure> {
        self.text(name, units)?.ok_or_else(|| self.invalid(name, "is missing"))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(self.invalid(name, "must be true or false")),
        }
    }

    pub(crate) fn int(&mut self, name: &str, range: RangeInclusive<u64>) -> Result<Option<u64>, Failure> {
        match self.take(name) {
            None => Ok(None),
            // A model writes 20.0 for 20 now and then; JSON knows no difference.
            Some(Value::Number(number)) => number
                .as_u64()
                .or_else(|| number.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64))
                .filter(|number| range.contains(number))
                .map(Some)
                .ok_or_else(|| self.invalid(name, "is out of bounds")),
            Some(_) => Err(self.invalid(name, "must be a whole number")),
        }
    }

    pub(crate) fn id(&mut self, name: &str) -> Result<Option<Ulid>, Failure> {
        let Some(text) = self.text(name, ANY)? else { return Ok(None) };
        Ulid::parse(&text).map(Some).ok_or_else(|| self.invalid(name, "is not an id"))
    }

    pub(crate) fn needed_id(&mut self, name: &str) -> Result<Ulid, Failure> {
        self.id(name)?.ok_or_else(|| self.invalid(name, "is missing"))
    }

    pub(crate) fn address(&mut self, name: &str) -> Result<Option<ToolAddress>, Failure> {
        let Some(text) = self.text(name, ANY)? else { return Ok(None) };
        ToolAddress::parse(&text).map(Some).ok_or_else(|| {
            self.invalid(name, "is no address: use me/agent, person/agent, person/agent@label or #channel")
        })
    }

    /// One of a fixed set.
    pub(crate) fn one_of(
        &mut self,
        name: &str,
        known: &[&'static str],
    ) -> Result<Option<&'static str>, Failure> {
        let Some(text) = self.text(name, ANY)? else { return Ok(None) };
        let found = known.iter().find(|known| **known == text);
        found.map(|known| Some(*known)).ok_or_else(|| self.invalid(name, "is none of the values it may have"))
    }

    pub(crate) fn array(
        &mut self,
        name: &str,
        items: RangeInclusive<usize>,
    ) -> Result<Option<Vec<Value>>, Failure> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Array(array)) if items.contains(&array.len()) => Ok(Some(array)),
            Some(Value::Array(_)) => Err(self.invalid(name, "has too many items or none")),
            Some(_) => Err(self.invalid(name, "must be a list")),
        }
    }

    /// Refuses whatever is left. The name is the caller's own, but it may be peer text it copied: it is not repeated.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        if self.members.is_empty() {
            return Ok(());
        }
        let what = if self.path.is_empty() { "input" } else { self.path.trim_end_matches('.') };
        Err(Failure::invalid(what, "has a member the tool does not know"))
    }
}
