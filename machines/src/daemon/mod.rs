//! The daemon (`messaging/1 §8`): one machine's identity, sessions, mail, tasks and consent.
//!
//! [`Daemon`] composes the roles and holds no rule: it turns an event into notes and calls, and hands each to
//! the roles (see [`ctx`]).

pub mod author;
pub mod config;
pub mod consent;
pub mod ctx;
pub mod directory;
mod due;
pub mod identity;
pub mod io;
pub mod ipc;
pub mod link;
pub mod mail;
pub mod presence;
pub mod realm;
mod rows;
pub mod schema;
mod secrets;
pub mod sessions;
pub mod status;
pub mod tasks;
#[cfg(test)]
mod testing;
mod text;

use crate::machine::{Machine, Out, Step};
use crate::store::{StoreDown, Txn};
use config::Settings;
use consent::Consent;
use ctx::{About, Answer, Caller, Ctx, Facts, Note, Outcome, Refusal, Role};
use directory::Directory;
use identity::Keys;
use io::{Effect, Event};
use ipc::methods::{Call, Needs};
use ipc::{Admitted, RpcError};
use mail::Mail;
use messaging_proto::Code;
use messaging_proto::identity::Identity;
use messaging_proto::time::{Mono, Wall};
use presence::Presence;
use sessions::Sessions;
use status::Status;
use std::collections::VecDeque;

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

/// Every role, in the order they hear a note.
#[derive(Debug, Default)]
struct Roles {
    sessions: Sessions,
    presence: Presence,
    mail: Mail,
    consent: Consent,
    directory: Directory,
}

impl Roles {
    fn all(&mut self) -> [&mut dyn Role; 5] {
        [&mut self.sessions, &mut self.presence, &mut self.mail, &mut self.consent, &mut self.directory]
    }

    fn deadlines(&self) -> [(Option<Mono>, Timer); 5] {
        [
            (self.sessions.deadline(), Timer::Sessions),
            (self.presence.deadline(), Timer::Presence),
            (self.mail.deadline(), Timer::Mail),
            (self.consent.deadline(), Timer::Consent),
            (self.directory.deadline(), Timer::Directory),
        ]
    }
}

/// Why the next deadline is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// A backoff, a timeout or a ping of the relay link.
    Link,
    /// Nothing: sessions go by the calendar of the mail role.
    Sessions,
    /// The next presence.
    Presence,
    /// The calendar, or a retry of the outbox.
    Mail,
    /// Nothing: consent acts on notes.
    Consent,
    /// The next `contacts` event.
    Directory,
}

impl Daemon {
    /// A daemon over its files: `config.json`, `identity.json` and `pairing.json`.
    #[must_use]
    pub fn new(config: Config, identity: Option<Identity>, pairing: Option<Identity>) -> Self {
        let about = About { version: config.version, pid: config.pid, started_at: Wall(0) };
        let facts = Facts {
            about,
            config: config.settings,
            keys: Keys::new(identity, pairing),
            realm: realm::Realm::default(),
            link: link::LinkState::default(),
            conns: ipc::Conns::default(),
        };
        Self { facts, roles: Roles::default() }
    }

    fn serve(roles: &mut Roles, cx: &mut Ctx<'_, '_>, admitted: Admitted) -> Result<(), StoreDown> {
        let Admitted { caller, method, call } = admitted;
        let needs = match method.needs {
            Needs::Nothing => Ok(()),
            Needs::Identity if cx.facts.has_identity() => Ok(()),
            Needs::Identity => Err(RpcError::new(Code::NoIdentity, "create or join a team first")),
            Needs::Directory => {
                Err(RpcError::new(Code::InvalidState, "this home is not in a directory realm"))
            }
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
            Call::Task(call) => tasks::call(cx, call),
            Call::Consent(call) => consent::call(&mut roles.mail, cx, call),
            Call::Status(call) => Status::call(cx, call),
            Call::Directory => {
                Err(Refusal::code(Code::InvalidState, "this home is not in a directory realm"))
            }
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
            Event::LinkOpened { .. } | Event::LinkFrame { .. } | Event::LinkClosed { .. } => {}
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
            Event::Saved { file, ok } => notes.push_back(Note::Saved { file, ok }),
            Event::Timer => {
                let due: Vec<bool> =
                    roles.deadlines().iter().map(|(at, _)| at.is_some_and(|at| at <= step.mono)).collect();
                for (role, _) in roles.all().into_iter().zip(due).filter(|(_, due)| *due) {
                    role.tick(&mut Ctx::new(step, store, facts, out, &mut notes))?;
                }
            }
            Event::Stop => notes.push_back(Note::StopWanted),
        }
        while let Some(note) = notes.pop_front() {
            for role in roles.all() {
                role.hear(&mut Ctx::new(step, store, facts, out, &mut notes), &note)?;
            }
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Mono, Timer)> {
        let timers = self.roles.deadlines().into_iter();
        timers.filter_map(|(at, timer)| at.map(|at| (at, timer))).min_by_key(|(at, _)| *at)
    }

    fn timer_event() -> Event {
        Event::Timer
    }
}
