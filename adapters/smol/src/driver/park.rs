//! Waiting on this thread alone. The runtime's timers would wake its reactor, and another thread with it, for every
//! wait of a driver; a driver waits thousands of times a second.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for `future`, at most `timeout` when there is one; nothing when it passed.
pub(super) fn wait<T>(future: impl Future<Output = T>, timeout: Option<Duration>) -> Option<T> {
    let end = timeout.map(|timeout| Instant::now() + timeout);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return Some(done);
        }
        match end {
            None => std::thread::park(),
            Some(end) => {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return None;
                }
                std::thread::park_timeout(left);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wakes_for_the_future_and_for_the_time() {
        let start = Instant::now();
        assert_eq!(wait(std::future::pending::<()>(), Some(Duration::from_millis(20))), None);
        assert!(start.elapsed() >= Duration::from_millis(20));
        assert_eq!(wait(std::future::ready(7), Some(Duration::ZERO)), Some(7), "what is there needs no time");
        let (send, receive) = async_channel::bounded(1);
        let sender = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            send.send_blocking(7).unwrap();
        });
        assert_eq!(wait(receive.recv(), None), Some(Ok(7)));
        sender.join().unwrap();
    }
}
