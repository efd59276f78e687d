//! The daemon (`messaging/1 §8`): one machine's identity, sessions, mail, tasks and consent.
//!
//! [`Daemon`] composes the roles and holds no rule: it turns an event into notes and calls, and hands each to
//! the roles (see [`ctx`]).

pub mod author;
pub mod chats;
pub mod config;
pub mod consent;
pub mod ctx;
mod devices;
pub mod directory;
mod due;
pub mod evidence;
pub mod files;
#[cfg(feature = "fill")]
mod fill;
pub mod identity;
pub mod io;
pub mod ipc;
pub mod link;
pub mod mail;
pub mod note;
pub mod notices;
pub mod people;
pub mod presence;
pub mod realm;
pub mod roster_sync;
mod rows;
pub mod schema;
mod secrets;
pub mod sessions;
pub mod snapshot;
pub mod status;
pub mod stop;
pub mod tasks;
pub mod team;
#[cfg(test)]
mod testing;
mod text;
pub mod wake;

use crate::machine::{Machine, Out, Step};
use crate::store::{StoreDown, Txn};
use author::Author;
use chats::Chats;
use config::Settings;
use consent::Consent;
use ctx::{About, Answer, Caller, Ctx, Facts, Note, Outcome, Refusal, Role};
use directory::Directory;
use identity::{Keeper, Keys};
use io::{Effect, Event};
use ipc::methods::{Call, Needs};
use ipc::{Admitted, RpcError};
use link::Link;
use mail::Mail;
use messaging_proto::Code;
use messaging_proto::identity::Identity;
use messaging_proto::time::Mono;
use notices::Notices;
use presence::Presence;
use roster_sync::RosterSync;
use sessions::Sessions;
use snapshot::Snapshot;
use std::collections::VecDeque;
use stop::Stop;
use team::Team;
use wake::Wakes;

/// What a daemon is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// `config.json`.
    pub settings: Settings,
    /// The release.
    pub version: String,
    /// The process id.
    pub pid: u32,
}

/// The daemon.
#[derive(Debug)]
pub struct Daemon {
    facts: Facts,
    roles: Roles,
}

/// Every role, in the order they hear a note: what others read first, the link after who has last words on it.
#[derive(Debug, Default)]
struct Roles {
    roster_sync: RosterSync,
    keeper: Keeper,
    author: Author,
    team: Team,
    sessions: Sessions,
    presence: Presence,
    mail: Mail,
    chats: Chats,
    consent: Consent,
    directory: Directory,
    notices: Notices,
    wakes: Wakes,
    snapshot: Snapshot,
    link: Link,
    stop: Stop,
}

impl Roles {
    fn all(&mut self) -> [&mut dyn Role; 15] {
        let Self {
            roster_sync,
            keeper,
            author,
            team,
            sessions,
            presence,
            mail,
            chats,
            consent,
            directory,
            notices,
            wakes,
            snapshot,
            ..
        } = self;
        [
            roster_sync,
            keeper,
            author,
            team,
            sessions,
            presence,
            mail,
            chats,
            consent,
            directory,
            notices,
            wakes,
            snapshot,
            &mut self.link,
            &mut self.stop,
        ]
    }

    /// In the order of [`Self::all`].
    fn deadlines(&self) -> [(Option<Mono>, Timer); 15] {
        [
            (self.roster_sync.deadline(), Timer::RosterSync),
            (self.keeper.deadline(), Timer::Identity),
            (self.author.deadline(), Timer::Author),
            (self.team.deadline(), Timer::Team),
            (self.sessions.deadline(), Timer::Sessions),
            (self.presence.deadline(), Timer::Presence),
            (self.mail.deadline(), Timer::Mail),
            (self.chats.deadline(), Timer::Chats),
            (self.consent.deadline(), Timer::Consent),
            (self.directory.deadline(), Timer::Directory),
            (self.notices.deadline(), Timer::Notices),
            (self.wakes.deadline(), Timer::Wakes),
            (self.snapshot.deadline(), Timer::Snapshot),
            (self.link.deadline(), Timer::Link),
            (self.stop.deadline(), Timer::Stop),
        ]
    }
}

/// Why the next deadline is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A page of the roster is late.
    RosterSync,
    /// Retired keys, and the rotation schedule.
    Identity,
    /// An entry being written is late.
    Author,
    /// A way into a team.
    Team,
    /// Nothing: sessions go by the calendar of the mail role.
    Sessions,
    /// The next presence.
    Presence,
    /// The calendar, or a retry of the outbox.
    Mail,
    /// A search under way, or rows to tidy.
    Chats,
    /// Nothing: consent acts on notes.
    Consent,
    /// The next `contacts` event.
    Directory,
    /// Nothing: notices go by the calendar of the mail role.
    Notices,
    /// A call to a host is made again.
    Wakes,
    /// A copy of the home is let go.
    Snapshot,
    /// A backoff, a timeout or a ping of the relay link.
    Link,
    /// The grace of a stop.
    Stop,
}

impl Daemon {
    /// A daemon over its files: `config.json`, `identity.json` and `pairing.json`.
    #[must_use]
    pub fn new(config: Config, identity: Option<Identity>, pairing: Option<Identity>) -> Self {
        let about = About { version: config.version, pid: config.pid, ..About::default() };
        let facts = Facts {
            about,
            config: config.settings,
            keys: Keys::new(identity, pairing),
            realm: realm::Realm::default(),
            link: link::LinkState::default(),
            conns: ipc::Conns::default(),
            files: files::Files::default(),
        };
        Self { facts, roles: Roles::default() }
    }

    fn serve(roles: &mut Roles, cx: &mut Ctx<'_, '_>, admitted: Admitted) -> Result<(), StoreDown> {
        let Admitted { caller, method, call } = admitted;
        let needs = match method.needs {
            Needs::Nothing => Ok(()),
            Needs::Identity if cx.facts.has_identity() => Ok(()),
            // §8.9: another team would not bring this one back.
            Needs::Identity if cx.facts.keys.alarm() == Some(identity::Alarm::KeysMissing) => {
                let text = "this machine's keys are missing: put its identity.json back";
                Err(RpcError::new(Code::NoIdentity, text))
            }
            Needs::Identity => Err(RpcError::new(Code::NoIdentity, "create or join a team first")),
        };
        let outcome = match needs {
            Ok(()) => Self::dispatch(roles, cx, &caller, call),
            Err(error) => Err(Refusal::Rpc(error)),
        };
        match outcome {
            Ok(Answer::Now(value)) => cx.reply(&caller, Ok(value)),
            Ok(Answer::Later) => {}
            Err(Refusal::Rpc(error)) => cx.reply(&caller, Err(error)),
            Err(Refusal::Down(down)) => return Err(down),
        }
        Ok(())
    }

    fn dispatch(roles: &mut Roles, cx: &mut Ctx<'_, '_>, caller: &Caller, call: Call) -> Outcome<Answer> {
        match call {
            Call::Session(call) => sessions::call(cx, caller, call),
            Call::Contacts => directory::contacts(cx),
            Call::Mail(call) => roles.mail.call(cx, call),
            Call::Chat(call) => roles.chats.call(&mut roles.mail, cx, caller, call),
            Call::Task(call) => tasks::call(cx, call),
            Call::Consent(call) => consent::call(&mut roles.mail, cx, call),
            Call::Notice(call) => notices::call(cx, caller, call),
            Call::People(call) => people::call(cx, &call),
            Call::Snapshot(call) => roles.snapshot.call(cx, caller, call),
            Call::Team(call) => roles.team.call(cx, caller, call),
            Call::Identity(call) => roles.keeper.call(cx, caller, call),
            Call::Status(call) => status::call(cx, call),
            Call::Contact => Err(Refusal::code(Code::InvalidRequest, "a team has no message requests")),
            Call::Directory => Err(Refusal::code(Code::InvalidState, "this home has no hosted directory")),
        }
    }
}

impl Machine for Daemon {
    type Event = Event;
    type Effect = Effect;
    type Timer = Timer;

    fn handle(
        &mut self,
        step: &Step,
        event: Event,
        store: &mut Txn<'_>,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        let Self { facts, roles } = self;
        let mut notes = VecDeque::new();
        match event {
            Event::Start => {
                facts.about.started_at = step.wall;
                notes.push_back(Note::Start);
            }
            Event::LinkOpened { link } => {
                roles.link.opened(&mut Ctx::new(step, store, facts, out, &mut notes), link);
            }
            Event::LinkFrame { link, frame } => {
                roles.link.frame(&mut Ctx::new(step, store, facts, out, &mut notes), link, *frame);
            }
            Event::LinkClosed { link, why } => {
                roles.link.closed(&mut Ctx::new(step, store, facts, out, &mut notes), link, &why);
            }
            Event::IpcOpened { conn, tier } => {
                if facts.conns.open(out, conn, tier, &facts.about) {
                    notes.push_back(Note::ConnOpened(conn));
                }
            }
            Event::IpcLine { conn, line } => {
                if let Some(admitted) = facts.conns.admit(out, conn, &line) {
                    Self::serve(roles, &mut Ctx::new(step, store, facts, out, &mut notes), admitted)?;
                }
            }
            Event::IpcTooLong { conn } => facts.conns.too_long(out, conn),
            Event::IpcClosed { conn } => {
                if let Some(keys) = facts.conns.close(conn) {
                    notes.push_back(Note::ConnClosed { conn, keys });
                }
            }
            Event::Snapshot { copy, folder, files } => {
                roles.snapshot.made(&mut Ctx::new(step, store, facts, out, &mut notes), copy, &folder, files);
            }
            Event::WakeEnded { wake, end } => {
                roles.wakes.ended(&mut Ctx::new(step, store, facts, out, &mut notes), wake, end)?;
            }
            Event::Saved { save, ok } => notes.push_back(Note::Saved { save, ok }),
            Event::Timer => {
                let due: Vec<bool> =
                    roles.deadlines().iter().map(|(at, _)| at.is_some_and(|at| at <= step.mono)).collect();
                for (role, _) in roles.all().into_iter().zip(due).filter(|(_, due)| *due) {
                    role.tick(&mut Ctx::new(step, store, facts, out, &mut notes))?;
                }
            }
            Event::Stop => notes.push_back(Note::StopWanted),
        }
        loop {
            while let Some(note) = notes.pop_front() {
                for role in roles.all() {
                    role.hear(&mut Ctx::new(step, store, facts, out, &mut notes), &note)?;
                }
            }
            match roles.stop.settled(facts, step.mono) {
                Some(note) => notes.push_back(note),
                None => return Ok(()),
            }
        }
    }

    fn deadline(&self) -> Option<(Mono, Timer)> {
        let timers = self.roles.deadlines().into_iter();
        timers.filter_map(|(at, timer)| at.map(|at| (at, timer))).min_by_key(|(at, _)| *at)
    }

    fn timer_event() -> Event {
        Event::Timer
    }
}
