//! Writing roster entries through the relay (`messaging/1 §4`, "Sequencing and forks"): one at a time, signed
//! on top of the head, signed anew after each lost race.
//!
//! Nothing here is durable. An entry whose answer was lost with its connection is looked for in the roster after
//! the next catch-up, and written again only when it is not there. After a crash nobody waits for the answer;
//! a rotation settles itself from `identity.json` (see `identity`).

use super::ctx::{Ctx, Note, Role};
use super::io::Level;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayInbound, Req};
use messaging_proto::hash::{Hash, hash_value};
use messaging_proto::json::{Fields, Invalid, Value, canonicalize};
use messaging_proto::key::{EncKey, MachineId, SigningKey};
use messaging_proto::name::PersonName;
use messaging_proto::roster::{Author as Pen, Fork, Member, Role as MemberRole};
use messaging_proto::time::Mono;
use messaging_proto::ulid::Ulid;
use std::collections::VecDeque;
use std::sync::Arc;

/// How often an entry that lost a race is signed anew (`contract ipc §5`).
const RETRIES: u32 = 5;
/// How soon a relay that is too busy is asked again, when it does not say.
const BUSY_MS: u64 = 1_000;
/// How long an entry may take from the request to its outcome, reconnections included.
const PATIENCE_MS: u64 = 60_000;
/// How long an entry waits for a connection that is being made: `team.invite` right after `team.create`, or a daemon
/// that just started, needs a moment and no error.
const LINK_PATIENCE_MS: u64 = 5_000;

/// Who asked for an entry, and which of its requests it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Job {
    /// A call of `team.*`.
    Team(u64),
    /// A rotation.
    Rotation,
}

/// Why an entry was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// The roster's rules or the relay refuse it: it is not in the roster.
    Refused(Code),
    /// There is no connection to ask on: nothing was sent.
    NoLink,
    /// It was sent, and no answer came in time: whether it is in the roster shows later.
    Unknown,
}

/// What an entry says. It is signed on top of the roster's head, anew after each lost race.
#[derive(Clone, Debug)]
pub enum Draft {
    /// `invite.create`.
    InviteCreate {
        /// The invite's id.
        invite_id: Ulid,
        /// Its seed; only its public half goes into the entry.
        seed: SigningKey,
        /// Whom it admits.
        person: PersonName,
        /// For how long, in milliseconds.
        ttl_ms: u64,
    },
    /// `invite.revoke`.
    InviteRevoke(Ulid),
    /// `member.add`.
    MemberAdd(Member),
    /// `member.remove`.
    MemberRemove(MachineId),
    /// `member.role`.
    MemberRole(MachineId, MemberRole),
    /// `member.rekey`.
    MemberRekey(MachineId, EncKey),
}

impl Draft {
    fn sign(&self, pen: &Pen<'_>) -> Result<Value, Invalid> {
        match self {
            Self::InviteCreate { invite_id, seed, person, ttl_ms } => {
                pen.invite_create(invite_id, &seed.machine(), person, pen.ts().plus(*ttl_ms))
            }
            Self::InviteRevoke(id) => pen.invite_revoke(id),
            Self::MemberAdd(member) => pen.member_add(member),
            Self::MemberRemove(machine) => pen.member_remove(machine),
            Self::MemberRole(machine, role) => pen.member_role(machine, *role),
            Self::MemberRekey(machine, enc) => pen.member_rekey(machine, enc),
        }
    }
}

/// Where the entry being written is.
#[derive(Debug)]
enum Stage {
    /// On its way to the relay.
    Sent { req: Req, entry: Arc<Value> },
    /// The roster is brought up first.
    Syncing,
    /// The connection went while it was on its way.
    Lost,
    /// The relay is too busy; it is asked again at this time.
    Busy(Mono),
}

#[derive(Debug)]
struct Work {
    job: Job,
    draft: Arc<Draft>,
    tries: u32,
    /// Whether its patience runs from the first write on.
    begun: bool,
    due: Mono,
    /// Every entry that was sent for it: any of them in the roster is its outcome.
    sent: Vec<(u64, Hash)>,
}

/// The author role.
#[derive(Debug, Default)]
pub struct Author {
    waiting: VecDeque<Work>,
    current: Option<(Work, Stage)>,
    next: u64,
}

impl Author {
    fn pump(&mut self, cx: &mut Ctx<'_, '_>) {
        while self.current.is_none() && cx.facts.link.up() {
            let Some(work) = self.waiting.pop_front() else { return };
            self.write(cx, work);
        }
    }

    /// Signs and sends, or ends it.
    fn write(&mut self, cx: &mut Ctx<'_, '_>, mut work: Work) {
        if !cx.facts.link.up() {
            if work.sent.is_empty() {
                Self::end(cx, work.job, Err(Unwritten::NoLink));
            } else {
                self.current = Some((work, Stage::Lost));
            }
            return;
        }
        if !std::mem::replace(&mut work.begun, true) {
            work.due = cx.mono().plus(PATIENCE_MS);
        }
        let (entry, text, seq, hash) = match sign(cx, &work.draft) {
            Ok(signed) => signed,
            Err(code) => {
                Self::end(cx, work.job, Err(Unwritten::Refused(code)));
                return;
            }
        };
        self.next += 1;
        let req = Req::parse(&format!("write:{}", self.next)).unwrap_or_else(|| Req::of(self.next));
        cx.send(&ClientOutbound::RosterAppend { req: req.clone(), entry: text });
        work.sent.push((seq, hash));
        self.current = Some((work, Stage::Sent { req, entry: Arc::new(entry) }));
    }

    fn end(cx: &mut Ctx<'_, '_>, job: Job, result: Result<u64, Unwritten>) {
        if let Err(why) = result {
            let code = match why {
                Unwritten::Refused(code) => code.as_str(),
                Unwritten::NoLink => "no_link",
                Unwritten::Unknown => "unknown",
            };
            cx.log(Level::Info, "roster.unwritten", vec![("code", code.to_owned())]);
        }
        cx.note(Note::Written { job, result });
    }

    /// Ends the current work when one of its entries is in the roster.
    fn settle(&mut self, cx: &mut Ctx<'_, '_>) -> bool {
        let Some((work, _)) = &self.current else { return false };
        let roster = cx.facts.roster();
        let found = work
            .sent
            .iter()
            .find(|(seq, hash)| roster.is_some_and(|roster| roster.hash_at(*seq) == Some(*hash)));
        let Some((seq, _)) = found else { return false };
        let (job, seq) = (work.job, *seq);
        self.current = None;
        Self::end(cx, job, Ok(seq));
        true
    }

    /// Once the roster is as new as the relay's: the entry is there, or it is written again.
    fn again(&mut self, cx: &mut Ctx<'_, '_>) {
        if !self.settle(cx)
            && let Some((mut work, _)) = self.current.take()
        {
            work.tries += 1;
            if work.tries > RETRIES {
                Self::end(cx, work.job, Err(Unwritten::Refused(Code::RosterConflict)));
            } else {
                self.write(cx, work);
            }
        }
        self.pump(cx);
    }

    fn answered(&mut self, cx: &mut Ctx<'_, '_>, frame: &RelayInbound) {
        let Some((work, Stage::Sent { req, entry })) = &self.current else { return };
        match frame {
            RelayInbound::RosterOk { req: answered, head } if answered == req => {
                if work.sent.last() == Some(&(head.seq, head.hash)) {
                    cx.note(Note::Accepted(entry.clone()));
                } else {
                    self.resync(cx);
                }
            }
            RelayInbound::Nack { id, code, retry_after_ms } if id == req.as_str() => match code.known() {
                // §4: the author resyncs, signs anew and retries. `internal`: it may be there or not.
                Some(Code::RosterConflict | Code::Internal) => self.resync(cx),
                Some(Code::RateLimited) => {
                    let at = cx.mono().plus(retry_after_ms.unwrap_or(BUSY_MS).max(1));
                    if let Some((work, stage)) = &mut self.current {
                        // Refused for sure: it is not in the roster.
                        work.sent.pop();
                        *stage = Stage::Busy(at);
                    }
                }
                code => {
                    let job = work.job;
                    self.current = None;
                    Self::end(cx, job, Err(Unwritten::Refused(code.unwrap_or(Code::Internal))));
                    self.pump(cx);
                }
            },
            _ => {}
        }
    }

    fn resync(&mut self, cx: &mut Ctx<'_, '_>) {
        if let Some((_, stage)) = &mut self.current {
            *stage = Stage::Syncing;
            cx.note(Note::SyncWanted);
        }
    }
}

/// The entry, its text, its place and its hash; or the code that the roster itself refuses it with.
fn sign(cx: &Ctx<'_, '_>, draft: &Draft) -> Result<(Value, Arc<str>, u64, Hash), Code> {
    let (Some(roster), Some(identity)) = (cx.facts.roster(), cx.facts.keys.current()) else {
        return Err(Code::NoIdentity);
    };
    let pen = Pen::new(identity.signing(), roster, cx.now()).ok_or(Code::NoIdentity)?;
    let entry = draft.sign(&pen).map_err(|invalid| invalid.code())?;
    match roster.check_at(&entry) {
        Ok(Fork(_)) => {}
        Err(error) => return Err(error.code()),
    }
    let code = |invalid: Invalid| invalid.code();
    let text = canonicalize(&entry).map_err(code)?;
    let hash = hash_value(&entry).map_err(code)?;
    let seq = Fields::of(&entry).and_then(|fields| fields.req("seq")).map_err(code)?;
    Ok((entry, text.into(), seq, hash))
}

impl Role for Author {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Write { job, draft } => {
                let due = cx.mono().plus(if cx.facts.link.up() { PATIENCE_MS } else { LINK_PATIENCE_MS });
                let work =
                    Work { job: *job, draft: draft.clone(), tries: 0, begun: false, due, sent: Vec::new() };
                self.waiting.push_back(work);
                self.pump(cx);
            }
            Note::Frame(frame) => self.answered(cx, frame),
            // `roster_sync` heard it first: the entry is in the roster.
            Note::Accepted(_) | Note::RosterChanged { .. } if self.settle(cx) => self.pump(cx),
            Note::Synced if matches!(self.current, Some((_, Stage::Syncing))) => self.again(cx),
            Note::LinkDown => {
                if let Some((_, stage)) = &mut self.current {
                    *stage = Stage::Lost;
                }
            }
            Note::LinkUp => {
                if matches!(self.current, Some((_, Stage::Lost))) {
                    self.again(cx);
                } else {
                    self.pump(cx);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        let waiting = self.waiting.iter().map(|work| work.due);
        let busy = self.current.iter().filter_map(|(_, stage)| match stage {
            Stage::Busy(at) => Some(*at),
            _ => None,
        });
        self.current.iter().map(|(work, _)| work.due).chain(waiting).chain(busy).min()
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let now = cx.mono();
        if self.current.as_ref().is_some_and(|(work, _)| work.due <= now)
            && let Some((work, stage)) = self.current.take()
        {
            let why = match stage {
                Stage::Busy(_) if work.sent.is_empty() => Unwritten::Refused(Code::RateLimited),
                _ => Unwritten::Unknown,
            };
            Self::end(cx, work.job, Err(why));
        }
        if matches!(self.current, Some((_, Stage::Busy(at))) if at <= now)
            && let Some((work, _)) = self.current.take()
        {
            self.write(cx, work);
        }
        let waiting = std::mem::take(&mut self.waiting);
        let (late, waiting) = waiting.into_iter().partition(|work| work.due <= now);
        self.waiting = waiting;
        let late: VecDeque<Work> = late;
        for work in late {
            Self::end(cx, work.job, Err(Unwritten::NoLink));
        }
        self.pump(cx);
        Ok(())
    }
}
