//! The ids of file writes.

use super::io::SaveId;
use messaging_proto::time::Mono;

/// Gives every file write its id. Only this module changes it.
#[derive(Debug, Default)]
pub struct Files {
    next: u64,
}

impl Files {
    /// An id past every one before, those of a machine that was dropped included.
    pub(in crate::daemon) fn next(&mut self, now: Mono) -> SaveId {
        self.next = (self.next + 1).max(now.0);
        SaveId(self.next)
    }
}
