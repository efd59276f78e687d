//! The method table (`contract ipc §3`–`§5`): every method with its tier, what it needs, and how its params read.
//!
//! A role declares its params as variants of its own `Call`, reads them with a function here or in its module,
//! and the composer routes the call back to it.

use super::directory as directory_realm;
use crate::daemon::team::reads;
use crate::daemon::{
    chats, consent, directory, identity, mail, notices, people, sessions, snapshot, status, tasks, team,
};
use messaging_proto::json::{Fields, Invalid};

/// Which list a method is in (`messaging/1 §8.2`, "Tiers"). The agent socket serves the first alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// Agents' tools.
    Agent,
    /// Acting as the person.
    Human,
    /// This device and the daemon.
    Admin,
}

/// What must be there before a method runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Nothing,
    /// An identity in a team, else `no_identity`.
    Identity,
}

/// Reads the params of a method.
type Read = fn(&Fields<'_>) -> Result<Call, Invalid>;

/// One row of the table.
pub struct Method {
    /// The method's name.
    pub name: &'static str,
    /// Its list.
    pub tier: Tier,
    /// What it needs.
    pub needs: Needs,
    /// Reads its params.
    pub read: Read,
}

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// A request's params, typed, by the role that serves it.
#[derive(Clone, Debug)]
pub enum Call {
    /// `daemon.*`, `device.status`.
    Status(status::Call),
    /// `session.*`, `events.subscribe`.
    Session(sessions::Call),
    /// `contacts.list`.
    Contacts,
    /// `conv.*`, `person.send`, `search`, `channel.*`.
    Chat(chats::params::Call),
    /// `msg.send`, `inbox.*`, `item.read`, `conv.read`, `agents.*`.
    Mail(mail::params::Call),
    /// `task.*`.
    Task(tasks::params::Call),
    /// `grant.*`, `request.*`.
    Consent(consent::params::Call),
    /// `notice.*`.
    Notice(notices::Call),
    /// `people.*`.
    People(people::Call),
    /// `daemon.snapshot`.
    Snapshot(snapshot::Call),
    /// `team.*`.
    Team(team::Call),
    /// `identity.*`.
    Identity(identity::Call),
    /// A method of the directory realm: `invalid_state` once its params are read.
    Directory,
    /// A message request, which a roster realm has none of: `invalid_request` once its params are read.
    Contact,
}

/// The row of a method.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    all().find(|method| method.name == name)
}

/// Every method there is, those that a roster realm only refuses among them.
pub fn all() -> impl Iterator<Item = &'static Method> {
    TABLE.iter().chain(directory_realm::TABLE)
}

/// Every method that a roster realm serves.
pub static TABLE: &[Method] = &[
    open(Tier::Agent, "daemon.health", status::read_health),
    open(Tier::Agent, "daemon.status", status::read_status),
    open(Tier::Agent, "device.status", status::read_device),
    member(Tier::Agent, "session.register", |params| sessions::params::register(params).map(Call::Session)),
    member(Tier::Agent, "session.update", |params| sessions::params::update(params).map(Call::Session)),
    member(Tier::Agent, "session.unregister", |params| {
        sessions::params::unregister(params).map(Call::Session)
    }),
    member(Tier::Agent, "events.subscribe", |params| sessions::params::subscribe(params).map(Call::Session)),
    member(Tier::Agent, "contacts.list", |params| directory::read_contacts(params).map(|()| Call::Contacts)),
    member(Tier::Agent, "msg.send", |params| mail::params::send(params).map(Call::Mail)),
    member(Tier::Agent, "inbox.list", |params| mail::params::inbox_list(params).map(Call::Mail)),
    member(Tier::Agent, "inbox.get", |params| mail::params::inbox_get(params).map(Call::Mail)),
    member(Tier::Agent, "inbox.ack", |params| mail::params::inbox_ack(params).map(Call::Mail)),
    member(Tier::Agent, "item.read", |params| mail::params::item_read(params).map(Call::Mail)),
    member(Tier::Agent, "conv.read", |params| mail::params::conv_read(params).map(Call::Mail)),
    member(Tier::Agent, "search", |params| chats::params::search(params).map(Call::Chat)),
    member(Tier::Human, "conv.list", |params| chats::params::list(params).map(Call::Chat)),
    member(Tier::Human, "conv.markRead", |params| chats::params::mark_read(params).map(Call::Chat)),
    member(Tier::Human, "conv.subscribe", |params| chats::params::subscribe(params).map(Call::Chat)),
    member(Tier::Human, "person.send", |params| chats::params::send(params).map(Call::Chat)),
    member(Tier::Human, "channel.create", |params| chats::params::create(params).map(Call::Chat)),
    member(Tier::Human, "channel.invite", |params| chats::params::invite(params).map(Call::Chat)),
    member(Tier::Human, "channel.leave", |params| chats::params::leave(params).map(Call::Chat)),
    member(Tier::Human, "channel.remove", |params| chats::params::remove(params).map(Call::Chat)),
    member(Tier::Human, "agents.list", |params| mail::params::agents_list(params).map(Call::Mail)),
    member(Tier::Human, "agents.read", |params| mail::params::agents_read(params).map(Call::Mail)),
    member(Tier::Agent, "task.list", |params| tasks::params::list(params).map(Call::Task)),
    member(Tier::Agent, "task.get", |params| tasks::params::get(params).map(Call::Task)),
    member(Tier::Agent, "task.update", |params| tasks::params::update(params).map(Call::Task)),
    member(Tier::Agent, "task.cancel", |params| tasks::params::cancel(params).map(Call::Task)),
    member(Tier::Human, "grant.list", |params| consent::params::grant_list(params).map(Call::Consent)),
    member(Tier::Human, "grant.set", |params| consent::params::grant_set(params).map(Call::Consent)),
    member(Tier::Human, "grant.set.preview", |params| {
        consent::params::grant_preview(params).map(Call::Consent)
    }),
    member(Tier::Human, "request.list", |params| consent::params::request_list(params).map(Call::Consent)),
    member(Tier::Human, "request.answer", |params| {
        consent::params::request_answer(params).map(Call::Consent)
    }),
    member(Tier::Human, "request.answer.preview", |params| {
        consent::params::request_preview(params).map(Call::Consent)
    }),
    member(Tier::Human, "card.get", |params| consent::params::card_get(params).map(Call::Consent)),
    member(Tier::Human, "contact.request", |params| {
        consent::params::contact_request(params).map(Call::Consent)
    }),
    member(Tier::Human, "contact.request.preview", |params| {
        consent::params::contact_preview(params).map(Call::Consent)
    }),
    open(Tier::Human, "notice.subscribe", |params| notices::subscribe(params).map(Call::Notice)),
    open(Tier::Human, "notice.list", |params| notices::list(params).map(Call::Notice)),
    open(Tier::Human, "notice.ack", |params| notices::ack(params).map(Call::Notice)),
    member(Tier::Human, "people.search", |params| people::search(params).map(Call::People)),
    member(Tier::Human, "people.get", |params| people::get(params).map(Call::People)),
    open(Tier::Admin, "daemon.snapshot", snapshot::read),
    open(Tier::Admin, "daemon.stop", status::read_stop),
    open(Tier::Admin, "daemon.woke", status::read_woke),
    open(Tier::Admin, "person.attached", status::read_attached),
    member(Tier::Admin, "identity.rotateEnc", identity::read_rotate),
    open(Tier::Admin, "team.prepare", reads::prepare),
    open(Tier::Admin, "team.create", reads::create),
    open(Tier::Admin, "team.join", reads::join),
    open(Tier::Admin, "team.pair", reads::pair),
    open(Tier::Admin, "team.claim", reads::claim),
    open(Tier::Admin, "team.pairCancel", reads::pair_cancel),
    member(Tier::Admin, "team.info", reads::info),
    member(Tier::Admin, "team.invite", reads::invite),
    member(Tier::Admin, "team.revoke", reads::revoke),
    member(Tier::Admin, "team.add", reads::add),
    member(Tier::Admin, "team.remove", reads::remove),
    member(Tier::Admin, "team.role", reads::role),
    member(Tier::Admin, "team.rekey", reads::rekey),
];

/// A method that needs nothing.
const fn open(tier: Tier, name: &'static str, read: Read) -> Method {
    Method { name, tier, needs: Needs::Nothing, read }
}

/// A method that needs an identity in a team.
const fn member(tier: Tier, name: &'static str, read: Read) -> Method {
    Method { name, tier, needs: Needs::Identity, read }
}
