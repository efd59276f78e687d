//! How much may be on its way to a socket.
//!
//! The window bounds deliveries, not bytes: 64 large envelopes are more than one socket may buffer. So the relay
//! stops at a limit of bytes that the socket has not taken, and asks to be told when it has.

/// Bytes after which the relay asks.
const MARK: usize = 512 << 10;
/// Bytes at which the relay stops: well under what one socket may buffer (16 MiB).
const FULL: usize = 1 << 20;

/// What was sent to one socket and may not have left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Pace {
    /// Sent before the mark that is not answered yet.
    marked: Option<usize>,
    /// Sent since.
    since: usize,
}

impl Pace {
    pub(super) const fn sent(&mut self, bytes: usize) {
        self.since += bytes;
    }

    /// Whether to set a mark now; it counts as set.
    pub(super) fn mark(&mut self) -> bool {
        let due = self.marked.is_none() && self.since >= MARK;
        if due {
            self.marked = Some(std::mem::take(&mut self.since));
        }
        due
    }

    /// The mark was reached.
    pub(super) const fn drained(&mut self) {
        self.marked = None;
    }

    /// Whether nothing more should be sent before the mark is reached.
    pub(super) fn is_full(&self) -> bool {
        self.marked.is_some_and(|marked| marked + self.since >= FULL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_pace_always_has_a_mark_out() {
        let mut pace = Pace::default();
        let mut marks = 0;
        for _ in 0..1_000 {
            if pace.is_full() {
                assert!(pace.marked.is_some());
                pace.drained();
            }
            pace.sent(100_000);
            marks += usize::from(pace.mark());
            assert!(pace.marked.unwrap_or(0) + pace.since < FULL + 200_000);
        }
        assert!(marks > 100);
    }

    #[test]
    fn one_large_envelope_is_not_stuck() {
        let mut pace = Pace::default();
        pace.sent(2 << 20);
        assert!(pace.mark() && pace.is_full());
        pace.drained();
        assert!(!pace.is_full() && !pace.mark());
    }
}
