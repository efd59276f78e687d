//! What waits to be sent on one connection, shared by the thread that says it and the task that writes it.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::time::Instant;

/// Room for items that an empty queue keeps.
const KEPT_ITEMS: usize = 8;

/// Something for the socket, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A message.
    Text(String),
    /// Report when everything before this has left.
    Mark,
    /// Close with this code.
    Close(u16),
    /// Drop the connection now.
    Abort,
}

/// One connection's queue. Its bytes count in a total that outboxes share.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    total: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<Item>,
    /// Bytes in `items`, and bytes handed to the socket that it has not taken yet.
    bytes: usize,
    waker: Option<Waker>,
    /// Since when a close or an abort is queued.
    ending: Option<Instant>,
}

impl Outbox {
    /// An empty queue.
    pub(crate) fn new(total: Arc<AtomicUsize>) -> Self {
        Self { state: Mutex::default(), total }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a message; the bytes that now wait here. Nothing is queued behind a close.
    /// The task is not woken: see [`Outbox::wake`].
    pub(crate) fn push(&self, text: String) -> usize {
        let mut state = self.lock();
        if state.ending.is_some() {
            return 0;
        }
        state.bytes += text.len();
        self.total.fetch_add(text.len(), Ordering::Relaxed);
        state.items.push_back(Item::Text(text));
        state.bytes
    }

    /// Queues a mark.
    pub(crate) fn mark(&self) {
        let mut state = self.lock();
        if state.ending.is_none() {
            state.items.push_back(Item::Mark);
        }
    }

    /// Queues a close; the first one counts.
    pub(crate) fn close(&self, code: u16) {
        let mut state = self.lock();
        if state.ending.is_none() {
            state.ending = Some(Instant::now());
            state.items.push_back(Item::Close(code));
        }
    }

    /// Drops everything queued, and the connection.
    pub(crate) fn abort(&self) {
        let mut state = self.lock();
        state.ending.get_or_insert_with(Instant::now);
        state.items.clear();
        state.items.push_back(Item::Abort);
        self.total.fetch_sub(std::mem::take(&mut state.bytes), Ordering::Relaxed);
    }

    /// Wakes the connection's task.
    pub(crate) fn wake(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// The next item.
    pub(crate) fn next(&self) -> Option<Item> {
        let mut state = self.lock();
        let item = state.items.pop_front();
        if state.items.is_empty() && state.items.capacity() > KEPT_ITEMS {
            // A burst does not stay with an idle connection.
            state.items = VecDeque::new();
        }
        item
    }

    /// Waits until there is an item.
    pub(crate) async fn ready(&self) {
        poll_fn(|cx| {
            let mut state = self.lock();
            if !state.items.is_empty() {
                return Poll::Ready(());
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// Waits until a close (unless it is `noticed`) or an abort is queued.
    pub(crate) async fn ended(&self, noticed: bool) {
        poll_fn(|cx| {
            let mut state = self.lock();
            let abort = state.items.front() == Some(&Item::Abort);
            if abort || (!noticed && state.ending.is_some()) {
                return Poll::Ready(());
            }
            state.waker = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    /// The socket took `bytes` of what [`Outbox::next`] gave.
    pub(crate) fn flushed(&self, bytes: usize) {
        let mut state = self.lock();
        // After an abort everything is forgotten already.
        let bytes = bytes.min(state.bytes);
        state.bytes -= bytes;
        self.total.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes that wait here.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }

    /// Since when a close or an abort is queued: what arrives after it is not for the machine.
    pub(crate) fn ending(&self) -> Option<Instant> {
        self.lock().ending
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        self.total.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_until_the_socket_took_them() {
        let total = Arc::<AtomicUsize>::default();
        let total = || total.clone();
        let outbox = Outbox::new(total());
        let waiting = || total().load(Ordering::Relaxed);
        assert_eq!(outbox.push("12345".to_owned()), 5);
        outbox.mark();
        assert_eq!(outbox.next(), Some(Item::Text("12345".to_owned())));
        assert_eq!((waiting(), outbox.next()), (5, Some(Item::Mark)));
        outbox.flushed(5);
        assert_eq!(waiting(), 0);
        outbox.push("123".to_owned());
        outbox.abort();
        assert_eq!((waiting(), outbox.next()), (0, Some(Item::Abort)));
        outbox.flushed(3);
        assert_eq!(waiting(), 0, "forgotten bytes are not taken off twice");
        assert_eq!(outbox.push("x".to_owned()), 0);
    }

    #[test]
    fn nothing_is_queued_behind_a_close() {
        let total = Arc::<AtomicUsize>::default();
        let outbox = Outbox::new(Arc::clone(&total));
        outbox.push("1".to_owned());
        outbox.close(4002);
        outbox.close(1001);
        outbox.push("2".to_owned());
        outbox.mark();
        let items: Vec<_> = std::iter::from_fn(|| outbox.next()).collect();
        assert_eq!(items, [Item::Text("1".to_owned()), Item::Close(4002)]);
        drop(outbox);
        assert_eq!(total.load(Ordering::Relaxed), 0);
    }
}
