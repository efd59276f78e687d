//! Who may open a connection before saying who it is (`messaging/1 §7`, "Limits").

use super::Limits;
use std::collections::BTreeMap;

/// Which cap an upgrade met: the `scope` of `conn.preauth_full`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All connections before `hello`.
    Total,
    /// Those of one client address.
    Address,
}

impl Scope {
    /// `total` or `address`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Address => "address",
        }
    }
}

/// The connections that have not said a valid `hello`. The adapter asks it at the upgrade, and gives the place
/// back at [`super::super::io::Effect::Authenticated`] or when the connection ends, whichever is first.
#[derive(Clone, Debug)]
pub struct Preauth {
    total: u64,
    per_address: u64,
    held: u64,
    addresses: BTreeMap<String, u64>,
}

impl Preauth {
    /// None yet.
    #[must_use]
    pub const fn new(limits: &Limits) -> Self {
        Self {
            total: limits.pre_auth_connections,
            per_address: limits.pre_auth_per_address,
            held: 0,
            addresses: BTreeMap::new(),
        }
    }

    /// Takes a place.
    ///
    /// # Errors
    /// The cap that is reached; nothing was taken.
    pub fn admit(&mut self, address: &str) -> Result<(), Scope> {
        if self.held >= self.total {
            return Err(Scope::Total);
        }
        match self.addresses.get_mut(address) {
            Some(count) if *count >= self.per_address => return Err(Scope::Address),
            Some(count) => *count += 1,
            None => drop(self.addresses.insert(address.to_owned(), 1)),
        }
        self.held += 1;
        Ok(())
    }

    /// Gives a place back.
    pub fn release(&mut self, address: &str) {
        let Some(count) = self.addresses.get_mut(address) else { return };
        *count -= 1;
        if *count == 0 {
            self.addresses.remove(address);
        }
        self.held -= 1;
    }

    /// How many places are taken: `relay_connections{state="preauth"}`.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_caps_hold_and_places_come_back() {
        let limits = Limits { pre_auth_connections: 3, pre_auth_per_address: 2, ..Limits::default() };
        let mut preauth = Preauth::new(&limits);
        assert_eq!(preauth.admit("a"), Ok(()));
        assert_eq!(preauth.admit("a"), Ok(()));
        assert_eq!(preauth.admit("a"), Err(Scope::Address));
        assert_eq!(preauth.admit("b"), Ok(()));
        assert_eq!(preauth.admit("c"), Err(Scope::Total));
        preauth.release("a");
        assert_eq!(preauth.admit("a"), Ok(()));
        for address in ["a", "a", "b", "b", "z"] {
            preauth.release(address);
        }
        assert_eq!((preauth.held(), preauth.addresses.len()), (0, 0));
    }
}
