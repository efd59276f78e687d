//! A value that passed its checks, as a type.

use std::ops::Deref;

/// A `T` whose signature, membership and times were checked against a realm.
///
/// Only the checks of this crate make one, so a function that takes it cannot be handed a value nobody checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    /// Wraps a value its caller has just checked.
    pub(crate) const fn by_check(value: T) -> Self {
        Self(value)
    }

    /// The value, no longer marked as checked.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
