//! Counting what is open.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many of something may be open.
#[derive(Clone, Debug)]
pub(crate) struct Cap {
    open: Arc<AtomicUsize>,
    max: usize,
}

impl Cap {
    pub(crate) fn new(max: usize) -> Self {
        Self { open: Arc::default(), max }
    }

    /// Takes a place; nothing when none is left.
    pub(crate) fn take(&self) -> Option<Counted> {
        let taken = self
            .open
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |open| (open < self.max).then_some(open + 1));
        taken.is_ok().then(|| Counted(Arc::clone(&self.open)))
    }

    #[cfg(test)]
    pub(crate) fn open(&self) -> usize {
        self.open.load(Ordering::Relaxed)
    }
}

/// A place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_come_back() {
        let cap = Cap::new(1);
        let first = cap.take();
        assert!(first.is_some() && cap.take().is_none() && cap.open() == 1);
        drop(first);
        assert!(cap.take().is_some());
    }
}
