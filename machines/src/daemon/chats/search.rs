//! `search`: lines by the words in them, newest first (`messaging/1 §8.2`, "Chats"; contract ipc §3).
//!
//! Texts are kept a second time as they are compared ([`texts`]), so that a search over all lines reads little and decodes
//! nothing but its hits. A search that has more to read than one step may goes on in the next ones,
//! behind those that wait already.

use super::texts::{self, TEXT, folded};
use super::{lines, read, view};
use crate::daemon::ctx::{Answer, Caller, Ctx, Outcome, obj};
use crate::daemon::io::IpcId;
use crate::daemon::rows::{self, Key};
use crate::store::{Range, StoreDown};
use memchr::memmem::Finder;
use messaging_proto::address::RoomRef;
use messaging_proto::json::Value;
use messaging_proto::time::Mono;
use std::collections::VecDeque;
use std::ops::Bound;

/// Rows read at once.
const BATCH: usize = 32;
/// The most bytes one step reads, give or take a batch: more than a hundred thousand lines of a common length.
const BYTES: usize = 16 << 20;

/// What is looked for.
#[derive(Debug)]
struct Query {
    words: Vec<Finder<'static>>,
    room: Option<u64>,
}

/// A search under way.
#[derive(Debug)]
struct Job {
    query: Query,
    limit: usize,
    /// Only rows below this key are left to read.
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
        let words = folded(query);
        let words = words.split(' ').filter(|word| !word.is_empty());
        let words = words.map(|word| Finder::new(word).into_owned()).collect();
        let mut job = Job { query: Query { words, room }, limit, below: u64::MAX, hits: Vec::new() };
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
        let mut bytes = 0;
        while bytes < BYTES {
            let to = Key::new().num(self.below);
            let to = Bound::Excluded(to.as_slice());
            let found =
                cx.txn.range(TEXT, Range { from: Bound::Unbounded, to, reverse: true, limit: BATCH })?;
            for (key, row) in &found {
                self.below = rows::last_num(key);
                bytes += row.len();
                self.look(cx, row)?;
                if self.hits.len() == self.limit {
                    return Ok(true);
                }
            }
            if found.len() < BATCH {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks for lines in a row, the newest first.
    fn look(&mut self, cx: &Ctx<'_, '_>, row: &[u8]) -> Result<(), StoreDown> {
        let mut found = self.query.found(row);
        while self.hits.len() < self.limit
            && let Some(seq) = found.pop()
        {
            // A room that is gone has no lines, though some may be there yet.
            if let Some(line) = lines::get(cx.txn, seq)? {
                let mut hit = view::line(seq, &line);
                hit.set("conversation", Value::text(line.line.room.to_string()));
                self.hits.push(hit.into());
            }
        }
        Ok(())
    }
}

impl Query {
    /// The lines of a row that are looked for, oldest first.
    fn found(&self, row: &[u8]) -> Vec<u64> {
        let holds = |text: &[u8]| self.words.iter().all(|word| word.find(text).is_some());
        // What the row does not hold as a whole, none of its lines does.
        if !holds(row) {
            return Vec::new();
        }
        let mine = |room| self.room.is_none_or(|wanted| wanted == room);
        let found = texts::entries(row).filter(|entry| mine(entry.room) && holds(entry.text));
        found.map(|entry| entry.seq).collect()
    }
}

fn result(hits: Vec<Value>) -> Value {
    obj([("hits", Value::Array(hits))])
}
