//! What a verb has to undo when a signal ends it: children it started, a folder it made, the terminal's mode.

use super::output;
use std::sync::{Mutex, PoisonError};

type Undo = Box<dyn FnOnce() + Send>;

/// Undone last first. A program has one verb, so the list is the program's.
static UNDO: Mutex<Vec<Undo>> = Mutex::new(Vec::new());

/// Has `undo` run before the program ends by a signal. It must not wait for the verb itself, which goes on meanwhile.
pub(crate) fn before_end(undo: impl FnOnce() + Send + 'static) {
    UNDO.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(undo));
}

/// The end by a signal.
pub(super) fn end() {
    output::restore();
    let mut undo = std::mem::take(&mut *UNDO.lock().unwrap_or_else(PoisonError::into_inner));
    while let Some(undo) = undo.pop() {
        undo();
    }
}
