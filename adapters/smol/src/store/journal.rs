//! The journal: what was committed since the last checkpoint, in two files that take turns.
//!
//! A commit is one record appended to the current file, and one sync. A record is
//!
//! ```text
//! length of body u32 | CRC-32 of number and body u32 | number u64 | body
//! body: per table: length of name u8, name, rows u32; per row: length of key u32, key,
//!       length of value + 1 u32 (0: deleted), value
//! ```
//!
//! with integers big-endian. Numbers are those of [`super::RedbStore::commits`], without gaps. A checkpoint puts
//! everything up to a number into redb, whose own row says so; records up to that number are then of no more use,
//! and their file is written again from its start. What an earlier turn left behind a file's end has lower numbers,
//! and a record that a crash tore does not match its sum: both end the file. Only the last record can be torn, since
//! none is written before the one before it is synced; so a whole record of a higher number behind the end is not what a
//! crash leaves: something in front of it is damaged, and the journal is refused rather than cut short.
//!
//! Files are never shortened in between. So all but the first turn writes where the disk has room already, and a
//! sync has no metadata to write.

use super::StoreFault;
use messaging_machines::store::{Table, Writes};
use redb::{StorageBackend, StorageError};

/// Length, sum and number.
const HEADER: usize = 16;
/// A growing file grows by zeros up to a multiple of this, then of its own length, up to a multiple of [`GROW_MOST_BYTES`]:
/// a sync after it grew also writes the file system's own records of that, and waits for whatever else grew.
const GROW_BYTES: u64 = 128 << 10;
const GROW_MOST_BYTES: u64 = 1 << 20;
/// A file longer than this is cut when its turn comes again.
const KEEP_BYTES: u64 = 3 * super::CHECKPOINT_BYTES as u64;
/// Room for encoding that is kept.
const BUFFER_BYTES: usize = 2 << 20;

/// A journal file, or what stands for one in a test.
pub(super) type File = Box<dyn StorageBackend>;

#[derive(Debug)]
pub(super) struct Journal {
    files: [File; 2],
    /// Where rows can be.
    tables: &'static [Table],
    lens: [u64; 2],
    current: usize,
    /// Where the next record goes.
    end: u64,
    buffer: Vec<u8>,
}

/// What a journal held that redb does not.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) writes: Writes,
    /// The number of the last record; that of redb when there is none.
    pub(super) last: u64,
}

/// The records at the start of a file.
struct Chain<'a> {
    file: usize,
    bytes: &'a [u8],
    /// Number and body.
    records: Vec<(u64, &'a [u8])>,
    end: usize,
}

impl Journal {
    /// Reads both files. `durable` is the number up to which redb has everything; `tables` are those that rows can
    /// be in.
    ///
    /// What is found is written and synced once more: the sync that failed for it may have been the last word.
    ///
    /// # Errors
    /// When a file cannot be read or written, or records are missing between those that are there, or damaged.
    pub(super) fn open(
        files: [File; 2],
        durable: u64,
        tables: &'static [Table],
    ) -> Result<(Self, Found), StoreFault> {
        let contents = [read(&files[0])?, read(&files[1])?];
        let mut found = Found { writes: Writes::new(), last: durable };
        let (mut current, mut end) = (0, 0);
        let chains = [Chain::of(0, &contents[0]), Chain::of(1, &contents[1])];
        if chains.iter().any(|chain| chain.is_cut_short(durable)) {
            return Err(StoreFault("corrupted"));
        }
        let mut chains: Vec<Chain<'_>> = chains.into_iter().filter(|chain| chain.last() > durable).collect();
        chains.sort_by_key(Chain::last);
        for chain in &chains {
            for (number, body) in &chain.records {
                if *number <= found.last {
                    continue;
                }
                if *number != found.last + 1 {
                    return Err(StoreFault("corrupted"));
                }
                decode(body, tables, &mut found.writes).ok_or(StoreFault("corrupted"))?;
                found.last = *number;
            }
            (current, end) = (chain.file, chain.end as u64);
            files[chain.file].write(0, &chain.bytes[..chain.end]).map_err(fault)?;
            files[chain.file].sync_data().map_err(fault)?;
        }
        let lens = [contents[0].len() as u64, contents[1].len() as u64];
        Ok((Self { files, tables, lens, current, end, buffer: Vec::new() }, found))
    }

    /// Appends a record and syncs it.
    ///
    /// # Errors
    /// When that failed. Whether the record is there is then unknown, and the journal must be opened again.
    pub(super) fn append(&mut self, number: u64, writes: &Writes) -> Result<(), StoreFault> {
        let mut record = std::mem::take(&mut self.buffer);
        record.clear();
        encode(number, writes, self.tables, &mut record).ok_or(StoreFault("value_too_large"))?;
        let (file, len) = (&self.files[self.current], &mut self.lens[self.current]);
        let used = record.len();
        let end = self.end + used as u64;
        if end > *len {
            let step = len.next_power_of_two().clamp(GROW_BYTES, GROW_MOST_BYTES);
            let padded = end.next_multiple_of(step);
            record.resize(usize::try_from(padded - self.end).map_err(|_| StoreFault("file_too_large"))?, 0);
            let grown = file.set_len(padded).and_then(|()| file.write(self.end, &record));
            if grown.is_err() {
                // The last room of a disk is for records.
                file.write(self.end, &record[..used]).map_err(fault)?;
            }
            *len = padded;
        } else {
            file.write(self.end, &record).map_err(fault)?;
        }
        file.sync_data().map_err(fault)?;
        self.end = end;
        if record.capacity() <= BUFFER_BYTES {
            self.buffer = record;
        }
        Ok(())
    }

    /// Goes on in the other file, from its start: redb has everything that was in it.
    pub(super) fn rotate(&mut self) {
        self.current = 1 - self.current;
        self.end = 0;
        if self.lens[self.current] > KEEP_BYTES && self.files[self.current].set_len(0).is_ok() {
            self.lens[self.current] = 0;
        }
    }

    /// Bytes of both files.
    pub(super) fn bytes(&self) -> u64 {
        self.lens.iter().sum()
    }

    /// Empties both files: redb has everything. What stays when that fails is of no more use either.
    pub(super) fn clear(&self) {
        for file in &self.files {
            let _ = file.set_len(0);
        }
    }
}

impl<'a> Chain<'a> {
    fn of(file: usize, bytes: &'a [u8]) -> Self {
        let mut chain = Self { file, bytes, records: Vec::new(), end: 0 };
        while let Some((number, body)) = record(&bytes[chain.end..]) {
            if chain.records.last().is_some_and(|(last, _)| *last + 1 != number) {
                break;
            }
            chain.records.push((number, body));
            chain.end += HEADER + body.len();
        }
        chain
    }

    /// Whether a record that belongs behind the last one is there all the same, wherever it begins.
    fn is_cut_short(&self, durable: u64) -> bool {
        let newest = durable.max(self.last());
        let rest = &self.bytes[self.end..];
        // The sum is only taken of what could be a record: its length fits, and its number comes next but for a few.
        (0..rest.len().saturating_sub(HEADER)).any(|at| {
            let number = rest[at + 8..].first_chunk().map_or(0, |number| u64::from_be_bytes(*number));
            let near = number > newest && number - newest <= KEEP_BYTES;
            near && record(&rest[at..]).is_some()
        })
    }

    fn last(&self) -> u64 {
        self.records.last().map_or(0, |(number, _)| *number)
    }
}

fn fault(error: std::io::Error) -> StoreFault {
    StorageError::Io(error).into()
}

fn read(file: &File) -> Result<Vec<u8>, StoreFault> {
    let len = file.len().map_err(fault)?;
    let mut bytes = vec![0; usize::try_from(len).map_err(|_| StoreFault("file_too_large"))?];
    file.read(0, &mut bytes).map_err(fault)?;
    Ok(bytes)
}

/// The number and the body of the record at the start of `bytes`, if a whole one is there.
fn record(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (header, rest) = bytes.split_first_chunk::<HEADER>()?;
    let (sizes, number) = header.split_at(8);
    let (length, sum) = sizes.split_at(4);
    let length = usize::try_from(u32::from_be_bytes(length.try_into().ok()?)).ok()?;
    let body = rest.get(..length).filter(|body| !body.is_empty())?;
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(number);
    hasher.update(body);
    let whole = hasher.finalize() == u32::from_be_bytes(sum.try_into().ok()?);
    whole.then_some((u64::from_be_bytes(number.try_into().ok()?), body))
}

fn length(of: &[u8]) -> Option<[u8; 4]> {
    Some(u32::try_from(of.len()).ok()?.to_be_bytes())
}

/// Nothing when something is too long for its length, or in a table that would not be read back.
fn encode(number: u64, writes: &Writes, tables: &[Table], out: &mut Vec<u8>) -> Option<()> {
    out.reserve(HEADER + writes.bytes() + 1_024);
    out.extend_from_slice(&[0; 8]);
    out.extend_from_slice(&number.to_be_bytes());
    let mut current: Option<(Table, usize, u32)> = None;
    for (table, key, value) in writes.iter() {
        let at = match &mut current {
            Some((name, at, rows)) if *name == table => {
                *rows += 1;
                *at
            }
            _ => {
                out.push(u8::try_from(table.0.len()).ok().filter(|_| tables.contains(&table))?);
                out.extend_from_slice(table.0.as_bytes());
                current = Some((table, out.len(), 1));
                out.extend_from_slice(&[0; 4]);
                out.len() - 4
            }
        };
        let rows = current.map_or(0, |(_, _, rows)| rows);
        out[at..at + 4].copy_from_slice(&rows.to_be_bytes());
        out.extend_from_slice(&length(key)?);
        out.extend_from_slice(key);
        match value {
            Some(value) => {
                out.extend_from_slice(&u32::try_from(value.len()).ok()?.checked_add(1)?.to_be_bytes());
                out.extend_from_slice(value);
            }
            None => out.extend_from_slice(&[0; 4]),
        }
    }
    let sum = crc32fast::hash(&out[8..]);
    let body = length(&out[HEADER..])?;
    out[..4].copy_from_slice(&body);
    out[4..8].copy_from_slice(&sum.to_be_bytes());
    Some(())
}

/// Adds a body's rows to `into`; nothing when it is not of its form or names another table.
fn decode(mut body: &[u8], tables: &[Table], into: &mut Writes) -> Option<()> {
    fn take<'a>(from: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = from.split_at_checked(count)?;
        *from = rest;
        Some(taken)
    }
    fn number(from: &mut &[u8]) -> Option<usize> {
        usize::try_from(u32::from_be_bytes(take(from, 4)?.try_into().ok()?)).ok()
    }
    while let Some((name, rest)) = body.split_first() {
        body = rest;
        let name = take(&mut body, usize::from(*name))?;
        let table = *tables.iter().find(|table| table.0.as_bytes() == name)?;
        for _ in 0..number(&mut body)? {
            let key = number(&mut body)?;
            let key = take(&mut body, key)?.to_vec();
            let value = match number(&mut body)? {
                0 => None,
                length => Some(take(&mut body, length - 1)?.to_vec()),
            };
            into.write(table, key, value);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use redb::backends::InMemoryBackend;

    const T: Table = Table("t");
    const U: Table = Table("other");

    fn batch(n: u8) -> Writes {
        let mut writes = Writes::new();
        writes.write(T, vec![n], Some(vec![n; usize::from(n)]));
        writes.write(T, vec![n, 1], Some(Vec::new()));
        writes.write(U, vec![n - 1], None);
        writes
    }

    /// What a crash would leave.
    fn copy(journal: &Journal) -> [File; 2] {
        [0, 1].map(|file| image(&read(&journal.files[file]).unwrap()))
    }

    fn image(bytes: &[u8]) -> File {
        let file = InMemoryBackend::new();
        file.set_len(bytes.len() as u64).unwrap();
        file.write(0, bytes).unwrap();
        Box::new(file)
    }

    fn memory() -> [File; 2] {
        [image(&[]), image(&[])]
    }

    fn open(files: [File; 2], durable: u64) -> Result<(Journal, Found), StoreFault> {
        Journal::open(files, durable, &[T, U])
    }

    fn expected(from: u8, to: u8) -> Writes {
        let mut all = Writes::new();
        (from..=to).for_each(|n| all.absorb(batch(n)));
        all
    }

    fn rows(writes: &Writes) -> Vec<(Table, Vec<u8>, Option<Vec<u8>>)> {
        writes.iter().map(|(table, key, value)| (table, key.to_vec(), value.map(<[u8]>::to_vec))).collect()
    }

    #[test]
    fn what_was_appended_is_found_from_any_number_on() {
        let (mut journal, found) = open(memory(), 7).unwrap();
        assert_eq!((found.last, found.writes.is_empty()), (7, true));
        for n in 8..=20 {
            journal.append(u64::from(n), &batch(n)).unwrap();
            if n == 12 || n == 17 {
                journal.rotate();
            }
        }
        // The first file was written again from 18 on.
        for durable in 12..=20_u8 {
            let (_, found) = open(copy(&journal), u64::from(durable)).unwrap();
            assert_eq!(found.last, 20);
            assert_eq!(rows(&found.writes), rows(&expected(durable + 1, 20)), "{durable}");
        }
        assert_eq!(open(copy(&journal), 11).unwrap_err(), StoreFault("corrupted"), "12 is overwritten");
        let (mut again, _) = open(copy(&journal), 17).unwrap();
        again.append(21, &batch(21)).unwrap();
        let (_, found) = open(copy(&again), 17).unwrap();
        assert_eq!(rows(&found.writes), rows(&expected(18, 21)));
        again.clear();
        assert_eq!(open(copy(&again), 21).unwrap().1.last, 21);
    }

    #[test]
    fn a_torn_record_is_none_wherever_it_is_torn() {
        let (mut journal, _) = open(memory(), 0).unwrap();
        journal.append(1, &batch(1)).unwrap();
        let whole = usize::try_from(journal.end).unwrap();
        journal.append(2, &batch(2)).unwrap();
        let bytes = read(&journal.files[0]).unwrap();
        let end = usize::try_from(journal.end).unwrap();
        for cut in whole..end {
            // What was not written is what was there before: zeros, nothing, or an older turn's bytes.
            for rest in [vec![], vec![0; 100], bytes[..whole].repeat(2), vec![0xff; 100]] {
                let torn = [&bytes[..cut], &rest[..]].concat();
                if torn.get(..end) == Some(&bytes[..end]) {
                    continue;
                }
                let (mut journal, found) = open([image(&torn), image(&[])], 0).unwrap();
                assert_eq!((found.last, rows(&found.writes)), (1, rows(&batch(1))), "{cut}");
                journal.append(2, &batch(9)).unwrap();
                let (_, found) = open(copy(&journal), 0).unwrap();
                assert_eq!(rows(&found.writes).len(), 6);
            }
        }
        for at in whole..end {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert_eq!(open([image(&flipped), image(&[])], 0).unwrap().1.last, 1, "{at}");
        }
    }

    #[test]
    fn damage_before_a_whole_record_is_no_torn_end() {
        let (mut journal, _) = open(memory(), 0).unwrap();
        let mut ends = vec![0];
        for n in 1..=4_u8 {
            journal.append(u64::from(n), &batch(n)).unwrap();
            ends.push(usize::try_from(journal.end).unwrap());
        }
        let bytes = read(&journal.files[0]).unwrap();
        for at in 0..ends[3] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x40;
            let files = [image(&flipped), image(&[])];
            assert_eq!(open(files, 0).unwrap_err(), StoreFault("corrupted"), "{at}");
            let record = (1..=4).find(|n| at < ends[*n]).unwrap();
            assert!(open([image(&flipped), image(&[])], record as u64).is_err(), "{at}");
        }
        for at in ends[3]..ends[4] {
            let mut flipped = bytes.clone();
            flipped[at] ^= 0x40;
            assert_eq!(open([image(&flipped), image(&[])], 0).unwrap().1.last, 3, "{at}");
        }
        assert_eq!(open([image(&bytes), image(&[])], 0).unwrap().1.last, 4);
    }

    #[test]
    fn a_file_grows_in_few_steps() {
        let (mut journal, _) = open(memory(), 0).unwrap();
        let mut lens = std::collections::BTreeSet::new();
        for n in 1..=100 {
            let mut writes = Writes::new();
            writes.write(T, vec![n], Some(vec![n; 80 << 10]));
            journal.append(u64::from(n), &writes).unwrap();
            lens.insert(journal.lens[0]);
        }
        assert!(journal.end > 7 << 20 && lens.len() <= 12, "{lens:?}");
        assert_eq!(open(copy(&journal), 0).unwrap().1.last, 100);
    }

    #[test]
    fn a_table_nobody_knows_is_refused() {
        let (mut journal, _) = open(memory(), 0).unwrap();
        journal.append(1, &batch(1)).unwrap();
        assert_eq!(Journal::open(copy(&journal), 0, &[T]).unwrap_err(), StoreFault("corrupted"));
        let (mut journal, _) = Journal::open(memory(), 0, &[T]).unwrap();
        journal.append(1, &batch(1)).unwrap_err();
    }
}
