//! How far a connection's client may be ahead of the machine.
//!
//! Events queue up to a number of them, whatever their size: one client that writes faster than its lines are handled
//! would fill that queue alone, with a gigabyte at worst, and everybody else would wait behind it.

use std::future::poll_fn;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, Waker};

/// The most lines of one connection that wait for the machine.
const LINES: usize = 16;
/// The most bytes of them, once there is more than one.
const BYTES: usize = 1 << 20;

/// What of a connection waits for the machine.
#[derive(Debug, Default)]
pub(super) struct Gate(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    lines: usize,
    bytes: usize,
    waker: Option<Waker>,
}

impl Gate {
    /// Waits until there is room for a line of `bytes` more, and takes it. One task at a time.
    pub(super) async fn enter(&self, bytes: usize) {
        poll_fn(|cx| {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let room = waiting.lines < LINES && waiting.bytes + bytes <= BYTES;
            if waiting.lines > 0 && !room {
                waiting.waker = Some(cx.waker().clone());
                return Poll::Pending;
            }
            waiting.lines += 1;
            waiting.bytes += bytes;
            Poll::Ready(())
        })
        .await;
    }

    /// The machine took a line of `bytes`.
    pub(super) fn left(&self, bytes: usize) {
        let waker = {
            let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.lines = waiting.lines.saturating_sub(1);
            waiting.bytes = waiting.bytes.saturating_sub(bytes);
            waiting.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};

    fn enters(gate: &Gate, bytes: usize) -> bool {
        block_on(poll_once(gate.enter(bytes))).is_some()
    }

    #[test]
    fn a_client_is_a_few_lines_ahead_or_one_large_one() {
        let gate = Gate::default();
        for _ in 0..LINES {
            assert!(enters(&gate, 10));
        }
        assert!(!enters(&gate, 10));
        gate.left(10);
        assert!(enters(&gate, 10) && !enters(&gate, 10));
        for _ in 0..LINES {
            gate.left(10);
        }
        // The largest line there is always gets in alone.
        assert!(enters(&gate, 2 * BYTES) && !enters(&gate, 0));
        gate.left(2 * BYTES);
        assert!(enters(&gate, BYTES - 1) && enters(&gate, 1) && !enters(&gate, 1));
    }

    #[test]
    fn who_waits_is_woken() {
        let gate = std::sync::Arc::new(Gate::default());
        assert!(enters(&gate, BYTES));
        let other = std::sync::Arc::clone(&gate);
        let waits = std::thread::spawn(move || block_on(other.enter(1)));
        std::thread::sleep(std::time::Duration::from_millis(20));
        gate.left(BYTES);
        waits.join().unwrap();
    }
}
