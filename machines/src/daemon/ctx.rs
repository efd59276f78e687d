//! What a role works with, and how roles talk.
//!
//! # How a role is called
//!
//! A role is a struct of its own volatile state that implements [`Role`]. The composer (`daemon/mod.rs`) only
//! routes:
//!
//! * **Notes.** Whatever happens inside the daemon is a [`Note`]. A role says one with [`Ctx::note`]; once the
//!   current call returns, the composer hands every note, in order, to [`Role::hear`] of every role in a fixed
//!   order. Roles never call each other's mutating code.
//! * **Calls.** A client's request reaches a role as a typed `Call` (see `ipc::methods`): params are parsed,
//!   the key is held by the connection, an identity exists when the method needs one. A role has
//!   `fn call(&mut self, cx: &mut Ctx, from: Caller, call: Call) -> Outcome<Answer>` and returns
//!   [`Answer::Now`] with the result, or [`Answer::Later`] after it kept [`Caller`] and will say
//!   [`Ctx::reply`] exactly once (also when the link drops or its own deadline passes). A refusal is
//!   `Err(Refusal::Rpc(..))`: use `?` on `Result<_, RpcError>`, on [`StoreDown`] and on `Invalid`.
//! * **Time.** [`Role::deadline`] is when the role wants [`Role::tick`]; after a tick it is later or gone.
//!
//! # What roles share
//!
//! Rows in the store (each role lists its tables in `schema.rs`), notes, and [`Facts`]. Every member of
//! `Facts` is written by the module that defines its type alone, which Rust's privacy enforces: everybody else
//! reads.
//!
//! # Durability
//!
//! Replies, frames and events said in a step leave only once everything written up to them is durable, so a
//! role writes first and says next in one step and needs no second phase. Files are different: an
//! [`Effect::Save`] is durable at [`Note::Saved`], not before.

pub use super::note::Note;

use super::config::Settings;
use super::files::Files;
use super::identity::Keys;
use super::io::{Effect, File, IpcId, Level, Log, SaveId};
use super::ipc::{Conns, RequestId, RpcError};
use super::link::LinkState;
use super::realm::Realm;
use crate::machine::{Out, Step};
use crate::store::{StoreDown, Txn};
use messaging_proto::Code;
use messaging_proto::frame::ClientOutbound;
use messaging_proto::json::{Invalid, Value};
use messaging_proto::roster::{Member, Roster};
use messaging_proto::time::{Mono, Wall};
use std::collections::VecDeque;

/// The outcome of something that may be refused or meet a dead store.
pub type Outcome<T> = Result<T, Refusal>;

/// Why a call ended without a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// The store is down: only ever passed on.
    Down(StoreDown),
    /// The client is told no.
    Rpc(RpcError),
}

impl From<StoreDown> for Refusal {
    fn from(down: StoreDown) -> Self {
        Self::Down(down)
    }
}

impl From<RpcError> for Refusal {
    fn from(error: RpcError) -> Self {
        Self::Rpc(error)
    }
}

impl From<Invalid> for Refusal {
    fn from(invalid: Invalid) -> Self {
        Self::Rpc(RpcError::params(&invalid))
    }
}

impl Refusal {
    /// A refusal with a code and fixed words that name no value.
    #[must_use]
    pub fn code(code: Code, text: &'static str) -> Self {
        Self::Rpc(RpcError::new(code, text))
    }
}

/// A role: volatile state and the rules of one concern.
pub trait Role {
    /// Something happened inside the daemon.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown>;

    /// When this role wants [`Self::tick`].
    fn deadline(&self) -> Option<Mono> {
        None
    }

    /// The role's deadline passed.
    ///
    /// # Errors
    /// [`StoreDown`] when the store did not answer.
    fn tick(&mut self, _cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        Ok(())
    }
}

/// What a call gets back.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result.
    Now(Value),
    /// The role keeps the [`Caller`] and says [`Ctx::reply`] later, once.
    Later,
}

impl Answer {
    /// `{ok: true}`, the result of a method that has none.
    #[must_use]
    pub fn ok() -> Self {
        Self::Now(obj([("ok", Value::Bool(true))]))
    }
}

/// Whom a request came from: where its reply goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Caller {
    /// The connection.
    pub conn: IpcId,
    /// The request's id on that connection.
    pub id: RequestId,
}

/// What every role may read; see the module documentation for who writes what.
#[derive(Debug)]
pub struct Facts {
    /// This process.
    pub about: About,
    /// `config.json` (written by `config`).
    pub config: Settings,
    /// This machine's keys (written by `identity`).
    pub keys: Keys,
    /// The verified roster (written by `realm`).
    pub realm: Realm,
    /// The relay link (written by `link`).
    pub link: LinkState,
    /// The local connections (written by `ipc`).
    pub conns: Conns,
    /// The ids of file writes (written by `files`).
    pub files: Files,
}

impl Facts {
    /// The verified roster; nothing before a team is created, joined or claimed.
    #[must_use]
    pub fn roster(&self) -> Option<&Roster> {
        self.realm.roster()
    }

    /// This machine as a current member; nothing without a team, without keys, or after its removal.
    #[must_use]
    pub fn me(&self) -> Option<&Member> {
        self.roster()?.member(&self.keys.current()?.machine())
    }

    /// Whether the daemon has an identity in a team, a removed one included: what `no_identity` asks.
    #[must_use]
    pub fn has_identity(&self) -> bool {
        self.keys.current().is_some() && self.roster().is_some()
    }

    /// Whether the roster shows this machine removed.
    #[must_use]
    pub fn removed(&self) -> bool {
        match (self.roster(), self.keys.current()) {
            (Some(roster), Some(identity)) => roster.is_removed(&identity.machine()),
            _ => false,
        }
    }
}

/// What the process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The release.
    pub version: String,
    /// The process id.
    pub pid: u32,
    /// When the machine started.
    pub started_at: Wall,
    /// Whether it was asked to stop.
    pub stopping: bool,
}

/// One step's hands: the clocks, the open transaction, the facts, and what is said.
pub struct Ctx<'a, 't> {
    /// The clocks and the randomness.
    pub step: &'a Step,
    /// The open transaction.
    pub txn: &'a mut Txn<'t>,
    /// What every role may read.
    pub facts: &'a mut Facts,
    out: &'a mut Out<Effect>,
    notes: &'a mut VecDeque<Note>,
}

impl<'a, 't> Ctx<'a, 't> {
    /// The hands of one step.
    pub const fn new(
        step: &'a Step,
        txn: &'a mut Txn<'t>,
        facts: &'a mut Facts,
        out: &'a mut Out<Effect>,
        notes: &'a mut VecDeque<Note>,
    ) -> Self {
        Self { step, txn, facts, out, notes }
    }

    /// Now, as the world tells it.
    #[must_use]
    pub const fn now(&self) -> Wall {
        self.step.wall
    }

    /// Now, for timers.
    #[must_use]
    pub const fn mono(&self) -> Mono {
        self.step.mono
    }

    /// Says something to the other roles, after the current call.
    pub fn note(&mut self, note: Note) {
        self.notes.push_back(note);
    }

    /// Says something to the world, after everything written so far is durable.
    pub fn effect(&mut self, effect: Effect) {
        self.out.push(effect);
    }

    /// Sends a frame on the welcomed link. Nothing is sent, and `false` returned, when there is none.
    pub fn send(&mut self, frame: &ClientOutbound) -> bool {
        let Some(link) = self.facts.link.welcomed() else { return false };
        self.out.push(Effect::LinkSend { link, text: frame.to_text() });
        true
    }

    /// Answers a request that was [`Answer::Later`]. A connection that is gone hears nothing.
    pub fn reply(&mut self, caller: &Caller, result: Result<Value, RpcError>) {
        self.facts.conns.reply(self.out, caller, result);
    }

    /// An event to every connection that subscribed this session key.
    pub fn event_key(&mut self, key: &str, event: &Value) {
        self.facts.conns.event_key(self.out, key, event);
    }

    /// An event to every connection with a subscription.
    pub fn event_all(&mut self, event: &Value) {
        self.facts.conns.event_all(self.out, event);
    }

    /// An event to every connection that called `conv.subscribe`.
    pub fn event_conv(&mut self, event: &Value) {
        self.facts.conns.event_conv(self.out, event);
    }

    /// An event to one connection (replays, and `notice` events, whose `lines` differ per connection).
    pub fn event_to(&mut self, conn: IpcId, event: &Value) {
        self.facts.conns.event_to(self.out, conn, event);
    }

    /// Logs an event. `fields` hold fixed names with codes, ids or numbers.
    pub fn log(&mut self, level: Level, event: &'static str, fields: Vec<(&'static str, String)>) {
        self.out.push(Effect::Log(Log { level, event, fields }));
    }

    /// Writes a file; [`Note::Saved`] with the returned id answers.
    pub fn save(&mut self, file: File) -> SaveId {
        let save = self.facts.files.next(self.step.mono);
        self.out.push(Effect::Save { save, file });
        save
    }
}

/// An object value of these members.
#[must_use]
pub fn obj<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}
