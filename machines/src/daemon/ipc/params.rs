//! Types for params, each with its bounds in the type, and the closed-object check
//! (`messaging/1 §8.2`, "Strict params").

use messaging_proto::json::{Fields, FromValue, Invalid, Value};
use messaging_proto::units::utf16_len;

/// A string of `MIN` to `MAX` UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<const MIN: usize, const MAX: usize>(pub String);

impl<const MIN: usize, const MAX: usize> FromValue for Text<MIN, MAX> {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let text = value.as_str().ok_or_else(Invalid::new)?;
        if (MIN..=MAX).contains(&utf16_len(text)) { Ok(Self(text.to_owned())) } else { Err(Invalid::new()) }
    }
}

/// An integer of `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Int<const MIN: u64, const MAX: u64>(pub u64);

impl<const MIN: u64, const MAX: u64> FromValue for Int<MIN, MAX> {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let number = u64::from_value(value)?;
        if (MIN..=MAX).contains(&number) { Ok(Self(number)) } else { Err(Invalid::new()) }
    }
}

/// An array of `MIN` to `MAX` elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T: FromValue, const MIN: usize, const MAX: usize> FromValue for List<T, MIN, MAX> {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let length = value.as_array().ok_or_else(Invalid::new)?.len();
        // The bound first: a long array costs nothing to refuse.
        if !(MIN..=MAX).contains(&length) {
            return Err(Invalid::new());
        }
        Vec::from_value(value).map(Self)
    }
}

/// A session key (`contract ipc §2`): a bearer credential, so it is never printed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey(String);

impl SessionKey {
    /// The key's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionKey(..)")
    }
}

impl FromValue for SessionKey {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let text = value.as_str().ok_or_else(Invalid::new)?;
        let fits = (22..=128).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if fits { Ok(Self(text.to_owned())) } else { Err(Invalid::new()) }
    }
}

/// Refuses members other than `names`. Every params object, and every tabled object inside one, is read
/// through this.
///
/// # Errors
/// [`Invalid`] without a path: the unknown name is the client's text.
pub fn only(params: &Fields<'_>, names: &[&str]) -> Result<(), Invalid> {
    params.closed(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::ctx::obj;

    #[test]
    fn bounds_are_inclusive_and_count_utf16_units() {
        let text = |text: &str| Text::<1, 2>::from_value(&Value::text(text)).is_ok();
        assert!(!text("") && text("a") && text("\u{1F600}") && !text("a\u{1F600}"));
        let int = |number: u64| Int::<3, 5>::from_value(&Value::int(number)).is_ok();
        assert!(!int(2) && int(3) && int(5) && !int(6));
        let list = |count: usize| {
            List::<bool, 1, 2>::from_value(&Value::Array(vec![Value::Bool(true); count])).is_ok()
        };
        assert!(!list(0) && list(1) && list(2) && !list(3));
        let key = |text: &str| SessionKey::from_value(&Value::text(text)).is_ok();
        assert!(
            key(&"a".repeat(22)) && key(&"-_".repeat(64)) && !key(&"a".repeat(21)) && !key(&"a".repeat(129))
        );
        assert!(!key("aaaaaaaaaaaaaaaaaaaaa=aaaa"));
    }

    #[test]
    fn an_unknown_member_has_no_path() {
        let params = obj([("a", Value::Null), ("secret", Value::Null)]);
        let fields = Fields::of(&params).unwrap();
        assert_eq!(only(&fields, &["a", "secret"]), Ok(()));
        assert_eq!(only(&fields, &["a"]).unwrap_err().path(), "");
    }
}
