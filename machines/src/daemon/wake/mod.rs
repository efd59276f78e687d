//! The wake bridge (`messaging/1 §8.6`): which sessions' hosts are asked to load their client, when, and for what.
//!
//! Volatile: what waits, and the calls under way. A crash forgets them, and the items wait for the client's catch-up,
//! as they do whenever a wake leads nowhere.

use super::ctx::{Ctx, Note, Role};
use super::io::{Effect, HostCall, Level, WakeEnd, WakeId};
use super::sessions::rows as sessions;
use crate::store::StoreDown;
use messaging_proto::time::Mono;
use messaging_proto::ulid::Ulid;
use std::collections::{BTreeMap, VecDeque};

/// Ids one call carries at most.
const IDS: usize = 16;
/// Calls at once.
const CALLS: usize = 4;
/// The waits before each retry, in milliseconds.
const RETRIES: [u64; 3] = [1_000, 2_000, 4_000];
/// The most ids that wait for one key: a client that comes back finds the others in its catch-up.
const WAITING: usize = 256;

/// A call that was made, or is made again.
#[derive(Debug)]
struct Attempt {
    ids: Vec<Ulid>,
    /// How often it failed.
    failed: usize,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The host was asked.
    Calling(WakeId),
    /// It is asked at this time.
    At(Mono),
}

#[derive(Debug, Default)]
struct Wanted {
    /// Ids that no call carried yet.
    ids: VecDeque<Ulid>,
    attempt: Option<Attempt>,
}

/// The role.
#[derive(Debug, Default)]
pub struct Wakes {
    keys: BTreeMap<String, Wanted>,
    next: u64,
}

impl Role for Wakes {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        if let Note::WakeWanted { key, item } = note
            && cx.facts.config.wake_bridge()
            && host(cx, key)?.is_some()
        {
            let wanted = self.keys.entry(key.clone()).or_default();
            wanted.ids.push_back(*item);
            if wanted.ids.len() > WAITING {
                wanted.ids.pop_front();
            }
            self.pump(cx)?;
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        // A call that is late ends by the adapter's own timeout; one that waits for a free place has no time.
        if self.calling() >= CALLS {
            return None;
        }
        let attempts = self.keys.values().filter_map(|wanted| wanted.attempt.as_ref());
        attempts.filter_map(|attempt| if let Stage::At(at) = attempt.stage { Some(at) } else { None }).min()
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        self.pump(cx)
    }
}

/// Where a key's client can be woken; nothing while a connection holds the key: its client has the items then.
fn host(cx: &Ctx<'_, '_>, key: &str) -> Result<Option<HostCall>, StoreDown> {
    if cx.facts.conns.held(key) {
        return Ok(None);
    }
    let host = sessions::by_key(cx.txn, key)?.and_then(|session| session.host);
    Ok(host.map(|host| HostCall { location: host.location, session_id: host.session_id, pid: host.pid }))
}

impl Wakes {
    fn calling(&self) -> usize {
        let attempts = self.keys.values().filter_map(|wanted| wanted.attempt.as_ref());
        attempts.filter(|attempt| matches!(attempt.stage, Stage::Calling(_))).count()
    }

    /// Makes every call that is due, as far as there are places.
    fn pump(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let now = cx.mono();
        let due = |wanted: &Wanted| match &wanted.attempt {
            Some(attempt) => matches!(attempt.stage, Stage::At(at) if at <= now),
            None => !wanted.ids.is_empty(),
        };
        let keys: Vec<String> =
            self.keys.iter().filter(|(_, wanted)| due(wanted)).map(|(key, _)| key.clone()).collect();
        for key in keys {
            if self.calling() >= CALLS {
                break;
            }
            let host = host(cx, &key)?;
            let (Some(host), Some(wanted)) = (host, self.keys.get_mut(&key)) else {
                // §8.6: once the client holds the key, or the session is gone, there is nothing to wake.
                self.keys.remove(&key);
                continue;
            };
            self.next += 1;
            let wake = WakeId(self.next);
            let attempt = wanted.attempt.get_or_insert_with(|| {
                let count = wanted.ids.len().min(IDS);
                Attempt { ids: wanted.ids.drain(..count).collect(), failed: 0, stage: Stage::At(now) }
            });
            attempt.stage = Stage::Calling(wake);
            let ids = attempt.ids.clone();
            cx.effect(Effect::Wake { wake, host, ids });
        }
        Ok(())
    }

    /// A call ended.
    pub(crate) fn ended(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        wake: WakeId,
        end: WakeEnd,
    ) -> Result<(), StoreDown> {
        let this = |wanted: &Wanted| {
            wanted.attempt.as_ref().is_some_and(|attempt| attempt.stage == Stage::Calling(wake))
        };
        let key = self.keys.iter().find(|(_, wanted)| this(wanted)).map(|(key, _)| key.clone());
        // A call of a machine that was dropped since.
        let Some(key) = key else { return Ok(()) };
        let now = cx.mono();
        if let Some(wanted) = self.keys.get_mut(&key)
            && let Some(attempt) = &mut wanted.attempt
        {
            let again = RETRIES.get(attempt.failed).filter(|_| end == WakeEnd::Again);
            cx.log(Level::Debug, "wake.ended", vec![("end", end.as_str().to_owned())]);
            match again {
                Some(wait) => {
                    attempt.failed += 1;
                    attempt.stage = Stage::At(now.plus(*wait));
                }
                None => wanted.attempt = None,
            }
            if wanted.attempt.is_none() && wanted.ids.is_empty() {
                self.keys.remove(&key);
            }
        }
        self.pump(cx)
    }
}

#[cfg(test)]
mod tests;
