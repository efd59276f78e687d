//! A place among the connections that have not said `hello`, given back when dropped.

use messaging_machines::relay::limits::{Limits, Preauth, Scope};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The caps before `hello`, shared by the threads that accept.
#[derive(Clone, Debug)]
pub(super) struct Places(Arc<Mutex<Preauth>>);

impl Places {
    pub(super) fn new(limits: &Limits) -> Self {
        Self(Arc::new(Mutex::new(Preauth::new(limits))))
    }

    fn lock(&self) -> MutexGuard<'_, Preauth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for `address`.
    ///
    /// # Errors
    /// The cap it met.
    pub(super) fn take(&self, address: &str) -> Result<Place, Scope> {
        self.lock().admit(address)?;
        Ok(Place { places: self.clone(), address: address.to_owned() })
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> u64 {
        self.lock().held()
    }
}

/// A taken place.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    address: String,
}

impl Place {
    /// Whose it is.
    pub(super) fn address(&self) -> &str {
        &self.address
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.lock().release(&self.address);
    }
}
