//! A file whose pages are written in order, and synced piece by piece.
//!
//! redb writes each page by itself and in no order. What it writes until its next sync is kept here, and written where it
//! belongs in as few pieces as it has gaps: a checkpoint changes thousands of pages, most of them side by side, and each
//! write costs the file system and the disk by itself.
//!
//! A sync of the journal waits for everything the disk was given before it; so the disk is given little at a time.

use super::locks::file_locks;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io::Error;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Bytes that wait for a sync at most, and the longest single write.
const PIECE_BYTES: usize = 1 << 20;
/// Bytes that are kept back to be put in order, at most.
const KEPT_BYTES: usize = 4 << 20;
/// Memory for what is kept that stays between syncs, at most.
const IDLE_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Paced<B> {
    file: B,
    /// Held by whoever changes `kept` or the file's length.
    changing: Mutex<()>,
    /// Read by others while it is written to the file, so that a page is in one of the two at any moment.
    kept: RwLock<Kept>,
}

/// What was written and is not in the file, by offset; nothing in it overlaps.
#[derive(Debug, Default)]
struct Kept {
    /// Which part of `bytes` stands where.
    pages: BTreeMap<u64, Range<usize>>,
    /// One piece of memory that is used again: thousands of pages, each with memory of its own, would leave holes behind.
    bytes: Vec<u8>,
}

impl Kept {
    /// The page before the end of a range, when it reaches into it.
    fn last_in(&self, offset: u64, len: usize) -> Option<(u64, &[u8])> {
        let (at, place) = self.pages.range(..offset + len as u64).next_back()?;
        (at + place.len() as u64 > offset).then(|| (*at, self.page(place)))
    }

    fn page(&self, place: &Range<usize>) -> &[u8] {
        self.bytes.get(place.clone()).unwrap_or_default()
    }

    /// Keeps a page that overlaps no other, or is as long as the one that stands there.
    fn keep(&mut self, offset: u64, data: &[u8]) {
        let there = self.pages.get(&offset).and_then(|place| self.bytes.get_mut(place.clone()));
        if let Some(there) = there.filter(|there| there.len() == data.len()) {
            there.copy_from_slice(data);
            return;
        }
        let (start, end) = (self.bytes.len(), self.bytes.len() + data.len());
        if end > self.bytes.capacity() && end > IDLE_BYTES {
            self.bytes.reserve_exact(KEPT_BYTES.max(end) - start);
        }
        self.bytes.extend_from_slice(data);
        self.pages.insert(offset, start..self.bytes.len());
    }

    fn clear(&mut self) {
        self.pages.clear();
        self.bytes.clear();
    }

    /// Gives the memory back: a checkpoint comes every few seconds, and what it needed stands idle until then.
    fn release(&mut self) {
        if self.bytes.capacity() > IDLE_BYTES {
            *self = Self::default();
        }
    }
}

impl<B: StorageBackend> Paced<B> {
    pub(super) fn new(file: B) -> Self {
        Self { file, changing: Mutex::default(), kept: RwLock::default() }
    }

    fn changing(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> RwLockReadGuard<'_, Kept> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_mut(&self) -> RwLockWriteGuard<'_, Kept> {
        self.kept.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes everything that is kept. It stays kept when that failed.
    fn write_kept(&self, _changing: &MutexGuard<'_, ()>) -> Result<(), Error> {
        let kept = self.kept();
        if kept.pages.is_empty() {
            return Ok(());
        }
        let (mut piece, mut start, mut unsynced) =
            (Vec::with_capacity(PIECE_BYTES.min(kept.bytes.len())), 0, 0);
        for (at, place) in &kept.pages {
            let page = kept.page(place);
            let goes_on = *at == start + piece.len() as u64 && piece.len() + page.len() <= PIECE_BYTES;
            if !goes_on && !piece.is_empty() {
                self.file.write(start, &piece)?;
                unsynced += piece.len();
                piece.clear();
            }
            if unsynced >= PIECE_BYTES {
                self.file.sync_data()?;
                unsynced = 0;
            }
            if piece.is_empty() {
                start = *at;
            }
            piece.extend_from_slice(page);
        }
        self.file.write(start, &piece)?;
        if unsynced + piece.len() >= PIECE_BYTES {
            self.file.sync_data()?;
        }
        drop(kept);
        self.kept_mut().clear();
        Ok(())
    }
}

impl<B: StorageBackend> StorageBackend for Paced<B> {
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let changing = self.changing();
        let same = |(at, page): (u64, &[u8])| at == offset && page.len() == data.len();
        let fits = {
            let kept = self.kept();
            let apart = kept.last_in(offset, data.len()).is_none_or(same);
            apart && kept.bytes.len() + data.len() <= KEPT_BYTES
        };
        if !fits {
            self.write_kept(&changing)?;
        }
        if data.len() > KEPT_BYTES {
            return self.file.write(offset, data);
        }
        self.kept_mut().keep(offset, data);
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        let changing = self.changing();
        self.write_kept(&changing)?;
        self.kept_mut().release();
        drop(changing);
        self.file.sync_data()
    }

    fn len(&self) -> Result<u64, Error> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        if let Some((at, page)) = self.kept().last_in(offset, out.len()) {
            let from = offset.checked_sub(at).and_then(|from| usize::try_from(from).ok());
            if let Some(whole) = from.and_then(|from| page.get(from..from + out.len())) {
                out.copy_from_slice(whole);
                return Ok(());
            }
        } else {
            return self.file.read(offset, out);
        }
        self.write_kept(&self.changing())?;
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let changing = self.changing();
        // What is cut off must not come back.
        self.write_kept(&changing)?;
        self.file.set_len(len)
    }

    fn close(&self) -> Result<(), Error> {
        self.write_kept(&self.changing())?;
        self.file.close()
    }

    file_locks!(locks);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use redb::backends::InMemoryBackend;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[derive(Debug, Default)]
    struct Counting {
        file: InMemoryBackend,
        writes: AtomicUsize,
        syncs: AtomicUsize,
    }

    impl StorageBackend for Counting {
        fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
            self.writes.fetch_add(1, Ordering::Relaxed);
            self.file.write(offset, data)
        }
        fn sync_data(&self) -> Result<(), Error> {
            self.syncs.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        fn len(&self) -> Result<u64, Error> {
            self.file.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
            self.file.read(offset, out)
        }
        fn set_len(&self, len: u64) -> Result<(), Error> {
            self.file.set_len(len)
        }
    }

    #[test]
    fn pages_in_any_order_are_written_in_order_and_synced_in_pieces() {
        let paced = Paced::new(Counting::default());
        paced.set_len(8 << 20).unwrap();
        // 4 MiB of pages, all of them, and in no order.
        for at in 0..1024 {
            paced.write(at * 389 % 1024 * 4096, &[7; 4096]).unwrap();
        }
        let counts = || (paced.file.writes.load(Ordering::Relaxed), paced.file.syncs.load(Ordering::Relaxed));
        assert_eq!(counts(), (0, 0));
        paced.sync_data().unwrap();
        assert_eq!(counts(), (4, 5), "a sync for each piece, and the one that was asked for");
        paced.sync_data().unwrap();
        assert_eq!(counts(), (4, 6));
        let mut all = vec![0; 4 << 20];
        paced.file.read(0, &mut all).unwrap();
        assert!(all.iter().all(|byte| *byte == 7));
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let paced = Paced::new(Counting::default());
        paced.set_len(64 << 20).unwrap();
        for at in 0..8_192 {
            paced.write(at * 8_192, &[7; 4096]).unwrap();
            assert!(paced.kept().bytes.len() <= KEPT_BYTES);
        }
        assert!(paced.file.syncs.load(Ordering::Relaxed) > 20);
    }

    #[test]
    fn what_a_checkpoint_needed_is_given_back_with_its_sync() {
        let paced = Paced::new(Counting::default());
        paced.set_len(8 << 20).unwrap();
        let mut capacities = Vec::new();
        for pages in [1, 2_000] {
            for at in 0..pages {
                paced.write(at * 4096, &[7; 4096]).unwrap();
                assert!(paced.kept().bytes.capacity() <= KEPT_BYTES);
            }
            capacities.push(paced.kept().bytes.capacity());
            paced.sync_data().unwrap();
            capacities.push(paced.kept().bytes.capacity());
        }
        assert!(capacities[0] == capacities[1] && capacities[0] <= IDLE_BYTES, "{capacities:?}");
        assert_eq!(capacities[2..], [KEPT_BYTES, 0]);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Write(u64, Vec<u8>),
        Read(u64, usize),
        Len(u64),
        Sync,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0_u64..40, prop::collection::vec(any::<u8>(), 1..12)).prop_map(|(at, data)| Op::Write(at, data)),
            2 => (0_u64..40, 1_usize..24).prop_map(|(at, len)| Op::Read(at, len)),
            1 => (32_u64..64).prop_map(Op::Len),
            1 => Just(Op::Sync),
        ]
    }

    proptest! {
        /// It reads as the plain file does, whatever overlaps, and after a sync the file itself does.
        #[test]
        fn it_is_one_file(ops in prop::collection::vec(op(), 0..60)) {
            let (paced, plain) = (Paced::new(InMemoryBackend::new()), InMemoryBackend::new());
            for file in [&paced as &dyn StorageBackend, &plain] {
                file.set_len(64).unwrap();
            }
            let whole = |file: &dyn StorageBackend| {
                let mut out = vec![0; usize::try_from(file.len().unwrap()).unwrap()];
                file.read(0, &mut out).unwrap();
                out
            };
            for op in ops {
                let len = plain.len().unwrap();
                match op {
                    Op::Write(at, data) if at + data.len() as u64 <= len => {
                        paced.write(at, &data).unwrap();
                        plain.write(at, &data).unwrap();
                    }
                    Op::Read(at, count) if at + count as u64 <= len => {
                        let (mut one, mut other) = (vec![0; count], vec![0; count]);
                        paced.read(at, &mut one).unwrap();
                        plain.read(at, &mut other).unwrap();
                        prop_assert_eq!(one, other);
                    }
                    Op::Len(len) => {
                        paced.set_len(len).unwrap();
                        plain.set_len(len).unwrap();
                    }
                    Op::Sync => {
                        paced.sync_data().unwrap();
                        prop_assert_eq!(whole(&paced.file), whole(&plain));
                    }
                    Op::Write(..) | Op::Read(..) => {}
                }
            }
            prop_assert_eq!(whole(&paced), whole(&plain));
        }
    }
}
