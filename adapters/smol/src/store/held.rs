//! A file behind glass: it is read, and what is written to it stays in memory.
//!
//! redb writes to a file as soon as it opens it, to mark it as open or to repair it. A store that is not ours must not be
//! changed (`messaging/1 §8.8`), and whose it is only shows in its rows; so they are looked at through this first.

use super::locks::file_locks;
use redb::StorageBackend;
use std::collections::BTreeMap;
use std::io::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What is kept of the file is kept in pieces of this size.
const BLOCK: usize = 4096;

#[derive(Debug)]
pub(super) struct Held<B> {
    file: B,
    over: Mutex<Over>,
}

#[derive(Debug)]
struct Over {
    blocks: BTreeMap<u64, Box<[u8; BLOCK]>>,
    len: u64,
    /// How much of the file still counts: what was cut off and grown again is zeros.
    valid: u64,
}

impl<B: StorageBackend> Held<B> {
    pub(super) fn new(file: B) -> Result<Self, Error> {
        let len = file.len()?;
        Ok(Self { file, over: Mutex::new(Over { blocks: BTreeMap::new(), len, valid: len }) })
    }

    fn over(&self) -> MutexGuard<'_, Over> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills `out` with what stands at `offset`, as the file alone has it.
    fn file_bytes(&self, valid: u64, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let there = usize::try_from(valid.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
        let (file, zeros) = out.split_at_mut(there);
        zeros.fill(0);
        if file.is_empty() { Ok(()) } else { self.file.read(offset, file) }
    }
}

/// The parts of `len` bytes at `offset`: block, place in it, and how many.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let block = BLOCK as u64;
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let start = usize::try_from(at % block).unwrap_or(0);
        let count = (BLOCK - start).min(len - done);
        done += count;
        (count > 0).then_some((at / block, start, count))
    })
}

impl<B: StorageBackend> StorageBackend for Held<B> {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.over().len)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let over = self.over();
        if offset.saturating_add(out.len() as u64) > over.len {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        self.file_bytes(over.valid, offset, out)?;
        let mut rest = out;
        for (block, start, count) in parts(offset, rest.len()) {
            let (now, after) = rest.split_at_mut(count);
            if let Some(held) = over.blocks.get(&block) {
                now.copy_from_slice(&held[start..start + count]);
            }
            rest = after;
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), Error> {
        let mut over = self.over();
        over.valid = over.valid.min(len);
        over.len = len;
        let (last, kept) = (len / BLOCK as u64, usize::try_from(len % BLOCK as u64).unwrap_or(0));
        over.blocks.split_off(&(last + u64::from(kept > 0)));
        if let Some(block) = over.blocks.get_mut(&last) {
            block[kept..].fill(0);
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut over = self.over();
        let mut rest = data;
        for (block, start, count) in parts(offset, data.len()) {
            let (now, after) = rest.split_at(count);
            let valid = over.valid;
            let held = match over.blocks.entry(block) {
                std::collections::btree_map::Entry::Occupied(held) => held.into_mut(),
                std::collections::btree_map::Entry::Vacant(none) => {
                    let mut bytes = Box::new([0; BLOCK]);
                    self.file_bytes(valid, block * BLOCK as u64, &mut bytes[..])?;
                    none.insert(bytes)
                }
            };
            held[start..start + count].copy_from_slice(now);
            rest = after;
        }
        over.len = over.len.max(offset + data.len() as u64);
        Ok(())
    }

    file_locks!();
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    /// The same operations on a plain backend and on one behind glass read the same, and the file below is as it was.
    #[test]
    fn reads_as_if_it_had_been_written() {
        let before: Vec<u8> = (0..3 * BLOCK + 100).map(|n| (n % 251) as u8).collect();
        let memory = |bytes: &[u8]| {
            let backend = InMemoryBackend::new();
            backend.set_len(bytes.len() as u64).unwrap();
            backend.write(0, bytes).unwrap();
            backend
        };
        let (plain, held) = (memory(&before), Held::new(memory(&before)).unwrap());
        let whole = |backend: &dyn StorageBackend| {
            let mut bytes = vec![0; usize::try_from(backend.len().unwrap()).unwrap()];
            backend.read(0, &mut bytes).unwrap();
            bytes
        };
        let mut state = 3_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..2_000 {
            if random(6) == 0 {
                let len = random(6 * BLOCK as u64);
                plain.set_len(len).unwrap();
                held.set_len(len).unwrap();
            } else {
                let len = plain.len().unwrap();
                let offset = random(len + 1);
                let data = vec![round as u8; usize::try_from(random(len - offset + 1)).unwrap()];
                plain.write(offset, &data).unwrap();
                held.write(offset, &data).unwrap();
            }
            assert_eq!(held.len().unwrap(), plain.len().unwrap(), "{round}");
            assert!(whole(&held) == whole(&plain), "{round}");
        }
        assert!(held.read(held.len().unwrap(), &mut [0]).is_err());
        assert!(whole(&held.file) == before);
    }

    #[test]
    fn parts_cover_what_was_asked_for() {
        assert_eq!(parts(4090, 10).collect::<Vec<_>>(), [(0, 4090, 6), (1, 0, 4)]);
        assert_eq!(parts(8192, 4096).collect::<Vec<_>>(), [(2, 0, 4096)]);
        assert_eq!(parts(5, 0).count(), 0);
    }
}
