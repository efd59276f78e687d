//! The texts of lines as `search` compares them, many to a row, so that a search over all of them reads few rows.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `chat_text` | seq of the first line it was made for | version, then entries: seq, room (8 bytes each), length (4), text |

use crate::daemon::rows::Key;
use crate::daemon::schema::ROW;
use crate::store::{Range, Row, StoreDown, Table, Txn};
use std::ops::Bound;

pub(crate) const TEXT: Table = Table("chat_text");

/// A row this long takes no more lines.
const FULL: usize = 16 << 10;

/// A text as it is compared: every letter in lower case, one by one, so that what stands around it changes nothing.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // The one letter with two lower-case forms.
    text.chars().flat_map(char::to_lowercase).map(|letter| if letter == 'ς' { 'σ' } else { letter }).collect()
}

/// One line's text in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// The line.
    pub(super) seq: u64,
    /// Its room.
    pub(super) room: u64,
    /// Its folded text.
    pub(super) text: &'a [u8],
}

impl Entry<'_> {
    fn write(self, row: &mut Vec<u8>) {
        row.extend(self.seq.to_be_bytes());
        row.extend(self.room.to_be_bytes());
        // A line is at most `chatChars` long.
        row.extend(u32::try_from(self.text.len()).unwrap_or(u32::MAX).to_be_bytes());
        row.extend(self.text);
    }
}

/// The entries of a row, oldest first; up to the first that cannot be read.
pub(super) fn entries(row: &[u8]) -> impl Iterator<Item = Entry<'_>> {
    let mut rest = match row.split_first() {
        Some((&ROW, rest)) => rest,
        _ => &[],
    };
    std::iter::from_fn(move || {
        let (seq, after) = rest.split_first_chunk::<8>()?;
        let (room, after) = after.split_first_chunk::<8>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (text, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Entry { seq: u64::from_be_bytes(*seq), room: u64::from_be_bytes(*room), text })
    })
}

/// Adds the text of the newest line.
pub(super) fn add(txn: &mut Txn<'_>, seq: u64, room: u64, text: &str) -> Result<(), StoreDown> {
    let text = folded(text);
    let entry = Entry { seq, room, text: text.as_bytes() };
    let (key, mut row) = match up_to(txn, seq)? {
        Some((key, row)) if row.len() < FULL => (key, row),
        _ => (Key::new().num(seq).as_slice().to_vec(), vec![ROW]),
    };
    entry.write(&mut row);
    txn.put(TEXT, &key, &row);
    Ok(())
}

/// Takes a line's text out.
pub(super) fn remove(txn: &mut Txn<'_>, seq: u64) -> Result<(), StoreDown> {
    let Some((key, row)) = up_to(txn, seq)? else { return Ok(()) };
    let mut kept = vec![ROW];
    for entry in entries(&row).filter(|entry| entry.seq != seq) {
        entry.write(&mut kept);
    }
    if kept.len() == 1 {
        txn.delete(TEXT, &key);
    } else {
        txn.put(TEXT, &key, &kept);
    }
    Ok(())
}

/// The row whose lines go up to this one or beyond.
fn up_to(txn: &Txn<'_>, seq: u64) -> Result<Option<Row>, StoreDown> {
    let to = Key::new().num(seq);
    let to = Bound::Included(to.as_slice());
    let found = txn.range(TEXT, Range { from: Bound::Unbounded, to, reverse: true, limit: 1 })?;
    Ok(found.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Base, MemoryBase, Writes};

    #[test]
    fn letters_fold_one_by_one() {
        assert_eq!(folded("Grüße AUS Zürich"), "grüße aus zürich");
        assert_eq!(folded("ΟΔΟΣ"), folded("οδος"));
        assert!(folded("ΟΔΟΣΑ").contains(&folded("ΟΔΟΣ")), "also inside a word");
        assert_eq!(folded("İ"), "i\u{307}");
    }

    /// Rows are filled and emptied line by line, in any order of leaving, and hold nothing of who left.
    #[test]
    fn rows_hold_exactly_the_lines_that_are_kept() {
        let base = MemoryBase::default();
        let mut writes = Writes::new();
        let mut txn = Txn::new(&base, None, &mut writes);
        let text = |seq: u64| format!("Line{seq}-{}", "x".repeat(usize::try_from(seq % 7).unwrap() * 300));
        let seqs: Vec<u64> = (0..400).map(|number| 10 + number * 3).collect();
        for seq in &seqs {
            add(&mut txn, *seq, seq % 5, &text(*seq)).unwrap();
        }
        let all = |txn: &Txn<'_>| {
            let rows = txn.prefix(TEXT, &[], 1_000).unwrap();
            assert!(rows.iter().all(|(_, row)| row.len() > 1 && row.len() < FULL + 2_048));
            rows.iter()
                .flat_map(|(_, row)| {
                    entries(row).map(|entry| (entry.seq, entry.room, entry.text.to_vec())).collect::<Vec<_>>()
                })
                .collect::<Vec<_>>()
        };
        let want = |seq: &u64| (*seq, seq % 5, text(*seq).to_ascii_lowercase().into_bytes());
        assert_eq!(all(&txn), seqs.iter().map(want).collect::<Vec<_>>());
        let (gone, kept): (Vec<u64>, Vec<u64>) = seqs.iter().partition(|seq| *seq % 4 != 2);
        for seq in gone.iter().rev() {
            remove(&mut txn, *seq).unwrap();
            remove(&mut txn, *seq).unwrap();
        }
        assert_eq!(all(&txn), kept.iter().map(want).collect::<Vec<_>>());
        for seq in kept {
            remove(&mut txn, seq).unwrap();
        }
        assert!(all(&txn).is_empty());
        remove(&mut txn, 10).unwrap();
        assert_eq!(base.range(TEXT, whole()).unwrap(), []);
    }

    const fn whole() -> Range<'static> {
        Range { from: Bound::Unbounded, to: Bound::Unbounded, reverse: false, limit: 1 }
    }

    #[test]
    fn a_cut_row_ends_early() {
        let mut row = vec![ROW];
        Entry { seq: 1, room: 2, text: b"abc" }.write(&mut row);
        Entry { seq: 2, room: 2, text: b"def" }.write(&mut row);
        for length in 0..row.len() {
            assert!(entries(&row[..length]).count() < 2, "{length}");
        }
        assert_eq!(entries(&row).count(), 2);
        row[0] = ROW + 1;
        assert_eq!(entries(&row).count(), 0, "a newer row");
    }
}
