//! The value a wire text stands for.

/// One JSON value. Numbers are IEEE-754 doubles, as the wire grammar reads them (`messaging/1 §2`).
///
/// A value from [`super::parse_wire`] has no repeated member names, no lone surrogates and bounded depth;
/// its numbers may still be outside I-JSON, which [`super::canonicalize`] judges.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`: a value like any other, never "absent".
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number; infinite when the text overflowed.
    Number(f64),
    /// A string.
    String(String),
    /// An array.
    Array(Vec<Value>),
    /// An object.
    Object(Object),
}

/// An object's members in the order they were written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Object(Vec<(String, Value)>);

impl Value {
    /// A string value.
    pub fn text(text: impl Into<String>) -> Self {
        Self::String(text.into())
    }

    /// An integer value. Exact up to 2^53.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub const fn int(number: u64) -> Self {
        Self::Number(number as f64)
    }

    /// The object inside, if this is one.
    #[must_use]
    pub const fn as_object(&self) -> Option<&Object> {
        match self {
            Self::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The string inside, if this is one.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The elements inside, if this is an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// How many containers nest in it, itself included: nothing for a scalar, 1 for a flat object or array.
    #[must_use]
    pub fn depth(&self) -> usize {
        let inner = match self {
            Self::Array(items) => items.iter().map(Self::depth).max(),
            Self::Object(object) => object.0.iter().map(|(_, value)| value.depth()).max(),
            _ => return 0,
        };
        1 + inner.unwrap_or(0)
    }

    /// The member `name` of this object; nothing for a missing member or another type.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.as_object().and_then(|object| object.get(name))
    }
}

impl Object {
    /// An object without members.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The member with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    /// Sets a member: in place when it exists, else at the end.
    pub fn set(&mut self, name: impl Into<String>, value: Value) {
        let name = name.into();
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some((_, slot)) => *slot = value,
            None => self.0.push((name, value)),
        }
    }

    /// Appends a member without looking for a repeated name: for a caller that knows there is none.
    pub fn push(&mut self, name: String, value: Value) {
        self.0.push((name, value));
    }

    /// Removes a member and returns it.
    pub fn remove(&mut self, name: &str) -> Option<Value> {
        let at = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(at).1)
    }

    /// The members in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub(super) fn members(&self) -> &[(String, Value)] {
        &self.0
    }

    /// How many members there are.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(String, Value)> for Object {
    fn from_iter<I: IntoIterator<Item = (String, Value)>>(members: I) -> Self {
        Self(members.into_iter().collect())
    }
}

impl<const N: usize> From<[(&str, Value); N]> for Object {
    fn from(members: [(&str, Value); N]) -> Self {
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

impl<const N: usize> From<[(&str, Value); N]> for Value {
    fn from(members: [(&str, Value); N]) -> Self {
        Self::Object(members.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

impl IntoIterator for Object {
    type Item = (String, Value);
    type IntoIter = std::vec::IntoIter<(String, Value)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object)
    }
}
