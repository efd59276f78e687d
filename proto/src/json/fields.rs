//! Reading typed members out of a value, with the path of the first one that fails.

use super::{Object, Value};
use crate::Code;
use std::fmt;

/// A value that breaks its schema: always [`Code::InvalidRequest`].
///
/// Holds the path of the failing member, made of names from our own tables and of positions, never of
/// anything a peer wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Invalid {
    path: String,
}

impl Invalid {
    /// A failure of the whole value.
    #[must_use]
    pub const fn new() -> Self {
        Self { path: String::new() }
    }

    /// A failure of the member `name`.
    #[must_use]
    pub fn at(name: &'static str) -> Self {
        Self { path: name.to_owned() }
    }

    /// The same failure, seen from the object that holds the value as its member `name`.
    #[must_use]
    pub fn within(mut self, name: &'static str) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path.insert_str(0, dot);
        self.path.insert_str(0, name);
        self
    }

    /// The same failure, seen from the array that holds the value at `index`.
    #[must_use]
    pub fn within_index(mut self, index: usize) -> Self {
        let dot = if self.path.is_empty() || self.path.starts_with('[') { "" } else { "." };
        self.path.insert_str(0, dot);
        self.path.insert_str(0, &format!("[{index}]"));
        self
    }

    /// The path of the failing member, such as `host.kind` or `parts[1]`; empty for the whole value.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The code of every schema failure.
    #[must_use]
    pub const fn code(&self) -> Code {
        Code::InvalidRequest
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str("the value does not match its schema")
        } else {
            write!(f, "{} does not match its schema", self.path)
        }
    }
}

impl std::error::Error for Invalid {}

/// A type with one constructor from a wire value.
pub trait FromValue: Sized {
    /// Reads the value.
    ///
    /// # Errors
    /// [`Invalid`] with the path of the first member that does not match.
    fn from_value(value: &Value) -> Result<Self, Invalid>;
}

/// The members of one object, read by name.
#[derive(Clone, Copy, Debug)]
pub struct Fields<'a>(&'a Object);

impl<'a> Fields<'a> {
    /// The members of `value`, which must be an object.
    ///
    /// # Errors
    /// [`Invalid`] when it is not.
    pub fn of(value: &'a Value) -> Result<Self, Invalid> {
        value.as_object().map(Self).ok_or_else(Invalid::new)
    }

    /// The members of `object`.
    #[must_use]
    pub const fn from_object(object: &'a Object) -> Self {
        Self(object)
    }

    /// The object itself.
    #[must_use]
    pub const fn object(&self) -> &'a Object {
        self.0
    }

    /// The raw member `name`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name)
    }

    /// The member `name`, which must be there.
    ///
    /// # Errors
    /// [`Invalid`] when it is absent, `null`, or not a `T`.
    pub fn req<T: FromValue>(&self, name: &'static str) -> Result<T, Invalid> {
        self.raw(name).map_or_else(
            || Err(Invalid::at(name)),
            |value| T::from_value(value).map_err(|invalid| invalid.within(name)),
        )
    }

    /// The member `name`, when it is there.
    ///
    /// # Errors
    /// [`Invalid`] when it is there and not a `T`; `null` is there.
    pub fn opt<T: FromValue>(&self, name: &'static str) -> Result<Option<T>, Invalid> {
        self.raw(name).map(|value| T::from_value(value).map_err(|invalid| invalid.within(name))).transpose()
    }

    /// Refuses the member `name`.
    ///
    /// # Errors
    /// [`Invalid`] when it is there.
    pub fn absent(&self, name: &'static str) -> Result<(), Invalid> {
        if self.raw(name).is_some() { Err(Invalid::at(name)) } else { Ok(()) }
    }

    /// Refuses members other than `names`: for the few closed objects.
    ///
    /// # Errors
    /// [`Invalid`] of the whole object, since an unknown name is a peer's text.
    pub fn closed(&self, names: &[&str]) -> Result<(), Invalid> {
        if self.0.iter().all(|(name, _)| names.contains(&name)) { Ok(()) } else { Err(Invalid::new()) }
    }

    /// Requires the member `name` to be exactly `text`.
    ///
    /// # Errors
    /// [`Invalid`] otherwise.
    pub fn literal(&self, name: &'static str, text: &str) -> Result<(), Invalid> {
        match self.raw(name) {
            Some(Value::String(value)) if value == text => Ok(()),
            _ => Err(Invalid::at(name)),
        }
    }
}

impl FromValue for Value {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        Ok(value.clone())
    }
}

impl FromValue for Object {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_object().cloned().ok_or_else(Invalid::new)
    }
}

impl FromValue for bool {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value {
            Value::Bool(flag) => Ok(*flag),
            _ => Err(Invalid::new()),
        }
    }
}

impl FromValue for String {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value.as_str().map(str::to_owned).ok_or_else(Invalid::new)
    }
}

/// An integer 0 … 2^53 − 1, however it was spelled (`1`, `1.0`, `1e0`).
impl FromValue for u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value {
            Value::Number(number)
                if *number >= 0.0 && *number <= 9_007_199_254_740_991.0 && number.fract() == 0.0 =>
            {
                Ok(*number as Self)
            }
            _ => Err(Invalid::new()),
        }
    }
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        value
            .as_array()
            .ok_or_else(Invalid::new)?
            .iter()
            .enumerate()
            .map(|(index, item)| T::from_value(item).map_err(|invalid| invalid.within_index(index)))
            .collect()
    }
}
