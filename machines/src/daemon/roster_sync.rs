//! Keeping the roster up with the team (`messaging/1 §4`, "Live entries" and "Sequencing and forks"; `§5`,
//! "Roster head check"; `§7`, "Paging"): catch-up after the welcome, broadcasts, and the entries that a signed
//! head promises. Deliveries wait here while the roster catches up.
//!
//! What is durable when: every entry with its step, evidence with its step. A sync under way is forgotten by a
//! crash, and the next welcome begins it anew; a held delivery is not acked, so the relay sends it again.

use super::ctx::{Ctx, Note, Role};
use super::evidence::{Evidence, ForkProof, Standing};
use super::io::Level;
use super::link::Report;
use super::realm::Loaded;
use super::text::canonical;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::envelope::{Inspected, signed_head};
use messaging_proto::frame::{ClientOutbound, RelayInbound, Req};
use messaging_proto::json::{Fields, Value};
use messaging_proto::limits::ROSTER_PAGE_ENTRIES;
use messaging_proto::realm::{Head, Relation};
use messaging_proto::roster::{ApplyOptions, Fork, Roster, RosterError, head_relation};
use messaging_proto::time::Mono;
use std::collections::VecDeque;
use std::sync::Arc;

/// How long a page may take.
const PAGE_MS: u64 = 30_000;
/// How many deliveries wait for a sync; the relay sends again what is over.
const HELD: usize = 4_096;
/// Their bytes together.
const HELD_BYTES: usize = 33_554_432;
/// How soon the relay is asked again for a head that it did not provide.
const ASK_AGAIN_MS: u64 = 10_000;
/// How soon entries that are known to be missing are asked for again without anybody waiting for them.
const RETRY_MS: u64 = 60_000;
/// How soon a relay that is too busy is asked again, when it does not say.
const BUSY_MS: u64 = 1_000;

/// A `roster.sync` under way.
#[derive(Debug)]
struct Sync {
    req: Req,
    /// The last position held when the page was asked for.
    after: Option<u64>,
    /// The position to reach; nothing to take all there is.
    goal: Option<u64>,
    /// Pages this round may still take.
    pages: u64,
    /// The head when the round began.
    began: Option<u64>,
    /// When the page is given up; or asked for, while the relay is too busy.
    due: Mono,
    busy: bool,
}

/// The roster-sync role.
#[derive(Debug, Default)]
pub struct RosterSync {
    sync: Option<Sync>,
    next: u64,
    /// The welcome's head, until the catch-up is over.
    welcomed: Option<Head>,
    /// Past this position a broadcast came in that could not be applied yet.
    gap: Option<u64>,
    /// Somebody asked for all there is while a sync was under way.
    again: bool,
    held: VecDeque<Arc<Inspected>>,
    held_bytes: usize,
    /// When the relay last did not provide a head it was asked for, and which.
    asked: Option<(u64, Mono)>,
    /// A position the relay did not provide, and when it is asked for again.
    retry: Option<(u64, Mono)>,
    removed: bool,
}

impl RosterSync {
    fn start(&self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        if cx.facts.realm.load(cx.txn)? == Loaded::Broken {
            cx.log(Level::Error, "roster.broken", vec![]);
        }
        cx.facts.realm.review(cx.txn);
        if let Some(seq) = cx.facts.realm.fork() {
            cx.facts.link.report(Report::Fork(seq));
        }
        Ok(())
    }

    /// §7 "Welcome, client side".
    fn welcomed(&mut self, cx: &mut Ctx<'_, '_>, head: Head) {
        self.abort();
        self.welcomed = Some(head);
        let Some(roster) = cx.facts.roster() else { return };
        match head_relation(roster, &head) {
            Relation::Ahead => self.begin(cx, Some(head.seq)),
            Relation::Consistent => {
                if roster.head().is_some_and(|mine| mine.seq > head.seq) {
                    cx.facts.link.report(Report::Behind(head.seq));
                }
                self.caught_up(cx);
            }
            Relation::Diverged { .. } => {
                cx.facts.link.report(Report::Head(head.seq));
                self.caught_up(cx);
            }
        }
    }

    fn caught_up(&mut self, cx: &mut Ctx<'_, '_>) {
        if self.welcomed.take().is_some() {
            cx.note(Note::CaughtUp);
        }
        self.release(cx);
    }

    /// Begins a round towards `goal`.
    fn begin(&mut self, cx: &mut Ctx<'_, '_>, goal: Option<u64>) {
        let mine = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
        let missing = goal.map_or(u64::MAX, |goal| goal.saturating_sub(mine.unwrap_or(0)));
        // §7 "Paging": as many pages as the missing entries fill.
        let pages = missing.div_ceil(ROSTER_PAGE_ENTRIES as u64);
        self.ask(cx, goal, pages, mine);
    }

    fn ask(&mut self, cx: &mut Ctx<'_, '_>, goal: Option<u64>, pages: u64, began: Option<u64>) {
        let after = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
        self.next += 1;
        let req = Req::parse(&format!("sync:{}", self.next)).unwrap_or_else(|| Req::of(self.next));
        let position = after.and_then(|seq| i64::try_from(seq).ok()).unwrap_or(-1);
        if cx.send(&ClientOutbound::RosterSync { req: req.clone(), after: position }) {
            let due = cx.mono().plus(PAGE_MS);
            self.sync =
                Some(Sync { req, after, goal, pages: pages.saturating_sub(1), began, due, busy: false });
        } else {
            self.sync = None;
        }
    }

    fn page(&mut self, cx: &mut Ctx<'_, '_>, entries: &[Value], more: bool) {
        let Some(Sync { after, goal, pages, began, .. }) = self.sync.take() else { return };
        let before = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
        let mut failed = None;
        // A broadcast that was applied meanwhile is in the page, too.
        let overlap = before.map_or(0, |seq| seq + 1).saturating_sub(after.map_or(0, |seq| seq + 1));
        // §7 "Paging": a page begins right after what was held; one that does not ends the paging.
        for entry in entries.iter().skip(usize::try_from(overlap).unwrap_or(usize::MAX)) {
            if let Err(error) = cx.facts.realm.append(cx.txn, entry, ApplyOptions::STORED) {
                failed = Some(error);
                Self::refused(cx, entry, failed.as_ref());
                break;
            }
        }
        self.changed(cx, before);
        let mine = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
        let short = goal.is_none_or(|goal| mine.is_none_or(|mine| mine < goal));
        let on = failed.is_none() && short && more && !entries.is_empty() && mine > after;
        if on && pages > 0 {
            self.ask(cx, goal, pages, began);
        } else if on && mine > began {
            // Pages can be shorter than they may be: a round that advanced is followed by another.
            self.begin(cx, goal);
        } else {
            self.ended(cx, goal, failed.is_some());
        }
    }

    /// The relay refuses the request.
    fn nacked(&mut self, cx: &mut Ctx<'_, '_>, code: Option<Code>, retry_after_ms: Option<u64>) {
        let Some(sync) = &mut self.sync else { return };
        if code == Some(Code::RateLimited) {
            sync.busy = true;
            sync.due = cx.mono().plus(retry_after_ms.unwrap_or(BUSY_MS).clamp(1, PAGE_MS));
        } else {
            let goal = sync.goal;
            self.ended(cx, goal, false);
        }
    }

    /// A sync ended, whatever it brought. `reported` when it is said already what the relay did wrong.
    fn ended(&mut self, cx: &mut Ctx<'_, '_>, goal: Option<u64>, reported: bool) {
        self.sync = None;
        let mine = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
        let missing = |goal: u64| mine.is_none_or(|mine| mine < goal);
        if let Some(goal) = goal.filter(|goal| missing(*goal)) {
            self.asked = Some((goal, cx.mono()));
            self.retry = Some((goal, cx.mono().plus(RETRY_MS)));
            if !reported {
                cx.facts.link.report(Report::Shortfall(goal));
            }
            cx.log(Level::Warn, "roster.shortfall", vec![("seq", goal.to_string())]);
        } else if let Some(gap) = self.gap.take().filter(|gap| missing(*gap)) {
            self.begin(cx, Some(gap));
        } else if std::mem::take(&mut self.again) {
            self.begin(cx, None);
        }
        if self.sync.is_none() {
            self.gap = None;
            self.again = false;
            cx.note(Note::Synced);
            self.caught_up(cx);
        }
    }

    /// An entry came live (`§4`, "Live entries").
    fn broadcast(&mut self, cx: &mut Ctx<'_, '_>, entry: &Value) {
        let before = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
        match cx.facts.realm.append(cx.txn, entry, ApplyOptions::broadcast(cx.step.wall)) {
            Ok(_) => self.changed(cx, before),
            Err(RosterError::Conflict) => {
                let seq = Fields::of(entry).ok().and_then(|fields| fields.req::<u64>("seq").ok());
                match (seq, before) {
                    // Entries before it are still on the way.
                    (Some(seq), Some(mine)) if seq > mine + 1 => {
                        self.gap = self.gap.max(Some(seq));
                        if self.sync.is_none() && self.welcomed.is_none() {
                            let gap = self.gap.take();
                            self.begin(cx, gap);
                        }
                    }
                    _ => Self::refused(cx, entry, None),
                }
            }
            Err(error) => {
                cx.facts.link.report(Report::Broadcast(error.code()));
                cx.log(Level::Warn, "roster.broadcast", vec![("code", error.code().to_string())]);
            }
        }
    }

    /// An entry that does not extend this roster: the proof of a fork, or junk.
    fn refused(cx: &mut Ctx<'_, '_>, entry: &Value, error: Option<&RosterError>) {
        let Some(roster) = cx.facts.roster() else { return };
        let seq = Fields::of(entry).ok().and_then(|fields| fields.req::<u64>("seq").ok()).unwrap_or(0);
        let held = roster.head().is_some_and(|mine| seq <= mine.seq);
        let report = match roster.check_at(entry) {
            Ok(Fork(true)) => {
                // Both signed entries, so that it can be shown to others, also after a restart.
                let proof = ForkProof { seq, at: cx.now(), entry: canonical(entry) };
                cx.facts.realm.keep_fork(cx.txn, proof);
                Report::Fork(seq)
            }
            // The entry is held already.
            Ok(Fork(false)) if error.is_none() => return,
            // §4: one that fails at an old position is junk, and ignored.
            Err(_) if error.is_none() && held => return,
            Err(RosterError::Conflict) if error.is_none() => Report::Head(seq.saturating_sub(1)),
            _ => Report::Served(error.map_or(Code::RosterConflict, RosterError::code)),
        };
        cx.log(
            Level::Warn,
            "roster.refused",
            vec![("why", report.word().to_owned()), ("seq", seq.to_string())],
        );
        cx.facts.link.report(report);
    }

    /// The roster may have new entries past `before`.
    fn changed(&mut self, cx: &mut Ctx<'_, '_>, before: Option<u64>) {
        let mine = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
        if mine == before {
            return;
        }
        cx.facts.realm.review(cx.txn);
        cx.note(Note::RosterChanged { from: before.map_or(0, |seq| seq + 1) });
        self.notice_removal(cx);
    }

    fn notice_removal(&mut self, cx: &mut Ctx<'_, '_>) {
        if !self.removed && cx.facts.removed() {
            self.removed = true;
            cx.log(Level::Warn, "roster.removed", vec![]);
            cx.note(Note::Removed);
        }
    }

    /// A delivery came in: it waits for a sync under way, or for one to its own anchor.
    fn arrived(&mut self, cx: &mut Ctx<'_, '_>, inspected: &Arc<Inspected>) {
        if self.sync.is_none() && self.welcomed.is_none() {
            match self.ahead(cx, inspected) {
                Some(seq) => self.begin(cx, Some(seq)),
                None => {
                    cx.note(Note::Deliver(inspected.clone()));
                    return;
                }
            }
        }
        let bytes = inspected.jcs().map_or(0, |text| text.len());
        if self.held.len() < HELD && self.held_bytes + bytes <= HELD_BYTES {
            self.held_bytes += bytes;
            self.held.push_back(inspected.clone());
        }
    }

    /// The position to catch up to before this envelope is judged, once.
    fn ahead(&self, cx: &Ctx<'_, '_>, inspected: &Inspected) -> Option<u64> {
        let roster = cx.facts.roster()?;
        let head = signed_head(inspected, &roster.team()?)?;
        if head_relation(roster, &head) != Relation::Ahead {
            return None;
        }
        let now = cx.mono();
        let lately = self.asked.is_some_and(|(seq, at)| seq >= head.seq && now.since(at) < ASK_AGAIN_MS);
        if lately {
            return None;
        }
        Some(head.seq)
    }

    /// Hands on what waited. One that is ahead of what the relay just provided is evidence against it; one that
    /// is ahead of a head nobody asked for yet is asked for first.
    fn release(&mut self, cx: &mut Ctx<'_, '_>) {
        while self.sync.is_none() {
            let Some(inspected) = self.held.pop_front() else {
                self.held_bytes = 0;
                return;
            };
            if let Some(seq) = self.ahead(cx, &inspected) {
                self.held.push_front(inspected);
                self.begin(cx, Some(seq));
                continue;
            }
            self.held_bytes = self.held_bytes.saturating_sub(inspected.jcs().map_or(0, |text| text.len()));
            cx.note(Note::Deliver(inspected));
        }
    }

    /// Keeps the proof of a head that the relay does not provide.
    fn keep_shortfall(cx: &mut Ctx<'_, '_>, inspected: &Inspected) {
        let now = cx.now();
        let Some(roster) = cx.facts.roster() else { return };
        let head = roster.team().and_then(|team| signed_head(inspected, &team));
        if head.is_none_or(|head| head_relation(roster, &head) != Relation::Ahead) {
            return;
        }
        if let Some(evidence) = Evidence::of(inspected, roster, now) {
            cx.facts.link.report(Report::Shortfall(evidence.seq));
            cx.facts.realm.keep(cx.txn, Standing::Ahead, evidence);
        }
    }

    fn diverged(cx: &mut Ctx<'_, '_>, inspected: &Inspected) {
        let now = cx.now();
        let Some(roster) = cx.facts.roster() else { return };
        let Some(evidence) = Evidence::of(inspected, roster, now) else { return };
        if evidence.mine.is_some_and(|mine| mine != evidence.theirs) {
            let seq = evidence.seq.to_string();
            // The alarm stands in the status. Whoever follows another chain signs it with every presence, which is no news.
            if cx.facts.realm.keep(cx.txn, Standing::Diverged, evidence) {
                cx.log(Level::Error, "roster.divergence", vec![("seq", seq)]);
            }
        }
    }

    fn abort(&mut self) {
        self.sync = None;
        self.welcomed = None;
        self.gap = None;
        self.again = false;
        self.retry = None;
        self.held.clear();
        self.held_bytes = 0;
    }
}

impl Role for RosterSync {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start => {
                self.start(cx)?;
                self.notice_removal(cx);
            }
            Note::Adopted => {
                self.removed = false;
                self.notice_removal(cx);
            }
            Note::Welcomed { head } => self.welcomed(cx, *head),
            Note::LinkDown => self.abort(),
            Note::Frame(frame) => match &**frame {
                RelayInbound::RosterEntries { req, entries, more }
                    if self.sync.as_ref().is_some_and(|sync| sync.req == *req) =>
                {
                    self.page(cx, entries, *more);
                }
                RelayInbound::Nack { id, code, retry_after_ms }
                    if self.sync.as_ref().is_some_and(|sync| sync.req.as_str() == id) =>
                {
                    self.nacked(cx, code.known(), *retry_after_ms);
                }
                RelayInbound::Roster { entry } => self.broadcast(cx, entry),
                _ => {}
            },
            Note::Accepted(entry) => {
                let before = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
                // Checked before it was sent; a broadcast may have brought it meanwhile.
                let _ = cx.facts.realm.append(cx.txn, entry, ApplyOptions::STORED);
                self.changed(cx, before);
            }
            Note::SyncWanted => {
                if cx.facts.link.welcomed().is_none() {
                    cx.note(Note::Synced);
                } else if self.sync.is_some() || self.welcomed.is_some() {
                    self.again = true;
                } else {
                    self.begin(cx, None);
                }
            }
            Note::Arrived(inspected) => self.arrived(cx, inspected),
            // Handed on with its anchor still ahead: the relay was asked, and did not provide.
            Note::Deliver(inspected) => Self::keep_shortfall(cx, inspected),
            Note::Diverged(inspected) => Self::diverged(cx, inspected),
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        match &self.sync {
            Some(sync) => Some(sync.due),
            None => self.retry.map(|(_, at)| at),
        }
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let now = cx.mono();
        match (&self.sync, self.retry) {
            (Some(sync), _) if sync.due <= now => {
                let (goal, pages, began) = (sync.goal, sync.pages.saturating_add(1), sync.began);
                if sync.busy { self.ask(cx, goal, pages, began) } else { self.ended(cx, goal, false) }
            }
            (None, Some((goal, at))) if at <= now => {
                self.retry = None;
                let mine = cx.facts.roster().and_then(Roster::head).map(|head| head.seq);
                if mine.is_none_or(|mine| mine < goal) && cx.facts.link.welcomed().is_some() {
                    self.begin(cx, Some(goal));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
