//! The boundary to redb, where its panics are an answer.
//!
//! redb trusts the pages of a file that was closed cleanly, and an assertion fails on one that is damaged. That is no
//! bug of ours to end the process for with "report it": the operator has a broken file, and is told so. Opening and
//! reading only: a panic within a write leaves locks of the library poisoned, and ends the process as any other.

use super::StoreFault;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What this thread has the library do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Open,
    /// A file that turned out to be damaged: the library's half-made values are on their way out.
    Broken,
    Read,
}

/// What a panic is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Panic {
    /// It is no answer of the library.
    Bug,
    /// It is caught here.
    Answer,
    /// It comes from a destructor while another is caught, and nothing can catch it: the process ends here, as it would
    /// have with the first.
    Last,
}

thread_local! {
    static CALL: Cell<Option<Call>> = const { Cell::new(None) };
}

/// Judges a panic of this thread, for the hook that ends a panicking process.
pub(crate) fn judge() -> Panic {
    match CALL.get() {
        None => Panic::Bug,
        Some(Call::Read) => Panic::Answer,
        Some(Call::Open) => {
            CALL.set(Some(Call::Broken));
            Panic::Answer
        }
        Some(Call::Broken) => Panic::Last,
    }
}

/// Opens something; a panic in it is the fault `corrupted`.
pub(super) fn opening<T, E: From<StoreFault>>(work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    call(Call::Open, work)
}

/// Reads something; a panic in it is the fault `corrupted`.
pub(super) fn reading<T>(work: impl FnOnce() -> Result<T, StoreFault>) -> Result<T, StoreFault> {
    call(Call::Read, work)
}

fn call<T, E: From<StoreFault>>(call: Call, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let before = CALL.replace(Some(call));
    let result = catch_unwind(AssertUnwindSafe(work));
    CALL.set(before);
    result.unwrap_or_else(|_| Err(StoreFault("corrupted").into()))
}
