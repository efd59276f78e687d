//! Which file writes are under way. The adapter answers the writes of one file in order.

use super::io::{File, FileKind};
use std::collections::VecDeque;

/// One write of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SaveId(u64);

/// The writes under way. Only this module changes them.
#[derive(Debug, Default)]
pub struct Files {
    next: u64,
    under_way: VecDeque<(FileKind, SaveId)>,
}

impl Files {
    pub(in crate::daemon) fn begin(&mut self, file: &File) -> SaveId {
        let kind = match file {
            File::Identity(_) => FileKind::Identity,
            File::Pairing(_) => FileKind::Pairing,
            File::Config(_) => FileKind::Config,
        };
        self.next += 1;
        self.under_way.push_back((kind, SaveId(self.next)));
        SaveId(self.next)
    }

    /// The write that an answer of the adapter is for.
    pub(in crate::daemon) fn end(&mut self, kind: FileKind) -> Option<SaveId> {
        let at = self.under_way.iter().position(|(other, _)| *other == kind)?;
        self.under_way.remove(at).map(|(_, save)| save)
    }
}
