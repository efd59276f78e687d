//! `search`: lines by the words in them, newest first (`messaging/1 §8.2`, "Chats"; contract ipc §3).
//!
//! A line's text is kept a second time as it is compared, apart from the line, so that a search over all lines reads
//! little and decodes nothing but its hits. A search that has more to read than one step may goes on in the next ones,
//! behind those that wait already.

use super::lines::{self, TEXT};
use super::{read, view};
use crate::daemon::ctx::{Answer, Caller, Ctx, Outcome, obj};
use crate::daemon::io::IpcId;
use crate::daemon::rows::{self, Key};
use crate::daemon::schema::ROW;
use crate::store::{Range, StoreDown};
use memchr::memmem::Finder;
use messaging_proto::address::RoomRef;
use messaging_proto::json::Value;
use messaging_proto::time::Mono;
use std::collections::VecDeque;
use std::ops::Bound;

/// Lines read at once.
const BATCH: usize = 1_024;
/// The most lines one step reads.
const LINES: usize = 40 * BATCH;
/// The most bytes one step reads, give or take a batch.
const BYTES: usize = 8 << 20;

/// A text as it is compared: every letter in lower case, one by one, so that what stands around it changes nothing.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    // The one letter with two lower-case forms.
    text.chars().flat_map(char::to_lowercase).map(|letter| if letter == 'ς' { 'σ' } else { letter }).collect()
}

/// A search under way.
#[derive(Debug)]
struct Job {
    words: Vec<String>,
    room: Option<u64>,
    limit: usize,
    /// Only lines below this number are left to read.
    below: u64,
    hits: Vec<Value>,
}

/// The searches that did not end in their first step.
#[derive(Debug, Default)]
pub(super) struct Searches {
    waiting: VecDeque<(Caller, Job)>,
    next: Option<Mono>,
}

impl Searches {
    /// Serves `search`.
    pub(super) fn call(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        from: &Caller,
        query: &str,
        of: Option<&RoomRef>,
        limit: usize,
    ) -> Outcome<Answer> {
        let room = match of {
            None => None,
            Some(of) => match read::room(cx, of)? {
                Some(room) => Some(room),
                None => return Ok(Answer::Now(result(Vec::new()))),
            },
        };
        let words = folded(query).split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        let mut job = Job { words, room, limit, below: u64::MAX, hits: Vec::new() };
        if job.step(cx)? {
            return Ok(Answer::Now(result(job.hits)));
        }
        self.waiting.push_back((from.clone(), job));
        self.plan(cx);
        Ok(Answer::Later)
    }

    /// Goes on with the search that waits longest.
    pub(super) fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        if let Some((caller, mut job)) = self.waiting.pop_front() {
            if job.step(cx)? {
                cx.reply(&caller, Ok(result(job.hits)));
            } else {
                self.waiting.push_back((caller, job));
            }
        }
        self.plan(cx);
        Ok(())
    }

    /// A connection ended: nobody waits for its searches.
    pub(super) fn closed(&mut self, conn: IpcId) {
        self.waiting.retain(|(caller, _)| caller.conn != conn);
        if self.waiting.is_empty() {
            self.next = None;
        }
    }

    /// When a search goes on.
    pub(super) const fn deadline(&self) -> Option<Mono> {
        self.next
    }

    fn plan(&mut self, cx: &Ctx<'_, '_>) {
        self.next = (!self.waiting.is_empty()).then(|| cx.mono().plus(1));
    }
}

impl Job {
    /// Reads on, as much as a step may. Whether the search ended.
    fn step(&mut self, cx: &Ctx<'_, '_>) -> Result<bool, StoreDown> {
        let words: Vec<Finder<'_>> = self.words.iter().map(Finder::new).collect();
        let (mut lines, mut bytes) = (0, 0);
        while lines < LINES && bytes < BYTES {
            let to = Key::new().num(self.below);
            let to = Bound::Excluded(to.as_slice());
            let found =
                cx.txn.range(TEXT, Range { from: Bound::Unbounded, to, reverse: true, limit: BATCH })?;
            for (key, value) in &found {
                self.below = rows::last_num(key);
                bytes += value.len();
                if !self.holds(&words, value) {
                    continue;
                }
                // A room that is gone has no lines, though some may be there yet.
                if let Some(row) = lines::get(cx.txn, self.below)? {
                    let mut hit = view::line(self.below, &row);
                    hit.set("conversation", Value::text(row.line.room.to_string()));
                    self.hits.push(hit.into());
                }
                if self.hits.len() == self.limit {
                    return Ok(true);
                }
            }
            if found.len() < BATCH {
                return Ok(true);
            }
            lines += found.len();
        }
        Ok(false)
    }

    /// Whether a text's row is one that is looked for.
    fn holds(&self, words: &[Finder<'_>], value: &[u8]) -> bool {
        let Some((&[ROW], rest)) = value.split_first_chunk::<1>() else { return false };
        let Some((room, text)) = rest.split_first_chunk::<8>() else { return false };
        self.room.is_none_or(|wanted| wanted == u64::from_be_bytes(*room))
            && words.iter().all(|word| word.find(text).is_some())
    }
}

fn result(hits: Vec<Value>) -> Value {
    obj([("hits", Value::Array(hits))])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_fold_one_by_one() {
        assert_eq!(folded("Grüße AUS Zürich"), "grüße aus zürich");
        assert_eq!(folded("ΟΔΟΣ"), folded("οδος"));
        assert!(folded("ΟΔΟΣΑ").contains(&folded("ΟΔΟΣ")), "also inside a word");
        assert_eq!(folded("İ"), "i\u{307}");
    }
}
