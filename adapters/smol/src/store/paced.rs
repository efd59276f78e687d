//! A file that is synced as it is written, piece by piece.
//!
//! A checkpoint writes some megabytes of pages in one go. A sync of the journal meanwhile waits for everything the disk was
//! given before it; so the disk is given little at a time.

use super::locks::file_locks;
use redb::StorageBackend;
use std::io::Error;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that wait for a sync at most.
const PIECE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub(super) struct Paced<B> {
    file: B,
    waiting: AtomicUsize,
}

impl<B: StorageBackend> Paced<B> {
    pub(super) const fn new(file: B) -> Self {
        Self { file, waiting: AtomicUsize::new(0) }
    }
}

impl<B: StorageBackend> StorageBackend for Paced<B> {
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.file.write(offset, data)?;
        if self.waiting.fetch_add(data.len(), Ordering::Relaxed) + data.len() >= PIECE_BYTES {
            self.sync_data()?;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        self.waiting.store(0, Ordering::Relaxed);
        self.file.sync_data()
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

    file_locks!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    #[derive(Debug, Default)]
    struct Counting(InMemoryBackend, AtomicUsize);

    impl StorageBackend for Counting {
        fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
            self.0.write(offset, data)
        }
        fn sync_data(&self) -> Result<(), Error> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
        fn len(&self) -> Result<u64, Error> {
            self.0.len()
        }
        fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
            self.0.read(offset, out)
        }
        fn set_len(&self, len: u64) -> Result<(), Error> {
            self.0.set_len(len)
        }
    }

    #[test]
    fn a_long_write_is_synced_in_pieces() {
        let paced = Paced::new(Counting::default());
        paced.set_len(8 << 20).unwrap();
        let page = [7; 4096];
        for at in 0..1024 {
            paced.write(at * 4096, &page).unwrap();
        }
        assert_eq!(paced.file.1.load(Ordering::Relaxed), (1024 * 4096) / PIECE_BYTES);
        paced.write(0, &page).unwrap();
        paced.sync_data().unwrap();
        assert_eq!(paced.waiting.load(Ordering::Relaxed), 0);
    }
}
