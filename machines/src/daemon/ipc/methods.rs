//! The method table (`contract ipc §3`–`§5`): every method with its tier, what it needs, and how its params read.
//!
//! A role declares its params as variants of its own `Call`, reads them with a function here or in its module,
//! and the composer routes the call back to it.

use crate::daemon::{consent, directory, mail, sessions, status, tasks};
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
    /// A directory realm, which this build does not have: `invalid_state`.
    Directory,
}

/// One row of the table.
pub struct Method {
    /// The method's name.
    pub name: &'static str,
    /// Its list.
    pub tier: Tier,
    /// What it needs.
    pub needs: Needs,
    /// Reads its params.
    pub read: fn(&Fields<'_>) -> Result<Call, Invalid>,
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
    /// `msg.send`, `inbox.*`, `item.read`.
    Mail(mail::params::Call),
    /// `task.*`.
    Task(tasks::params::Call),
    /// `grant.*`, `request.*`.
    Consent(consent::params::Call),
    /// A method of the directory realm: refused once its params are read.
    Directory,
}

/// The row of a method.
#[must_use]
pub fn find(name: &str) -> Option<&'static Method> {
    TABLE.iter().find(|method| method.name == name)
}

/// Every method.
pub static TABLE: &[Method] = &[
    Method { name: "daemon.health", tier: Tier::Agent, needs: Needs::Nothing, read: status::read_health },
    Method { name: "daemon.status", tier: Tier::Agent, needs: Needs::Nothing, read: status::read_status },
    Method { name: "device.status", tier: Tier::Agent, needs: Needs::Nothing, read: status::read_device },
    Method { name: "daemon.stop", tier: Tier::Admin, needs: Needs::Nothing, read: status::read_stop },
    Method { name: "daemon.woke", tier: Tier::Admin, needs: Needs::Nothing, read: status::read_woke },
    Method { name: "person.attached", tier: Tier::Admin, needs: Needs::Nothing, read: status::read_attached },
    Method {
        name: "session.register",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| sessions::params::register(params).map(Call::Session),
    },
    Method {
        name: "session.update",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| sessions::params::update(params).map(Call::Session),
    },
    Method {
        name: "session.unregister",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| sessions::params::unregister(params).map(Call::Session),
    },
    Method {
        name: "events.subscribe",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| sessions::params::subscribe(params).map(Call::Session),
    },
    Method {
        name: "contacts.list",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| directory::read_contacts(params).map(|()| Call::Contacts),
    },
    Method {
        name: "msg.send",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| mail::params::send(params).map(Call::Mail),
    },
    Method {
        name: "inbox.list",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| mail::params::inbox_list(params).map(Call::Mail),
    },
    Method {
        name: "inbox.get",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| mail::params::inbox_get(params).map(Call::Mail),
    },
    Method {
        name: "inbox.ack",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| mail::params::inbox_ack(params).map(Call::Mail),
    },
    Method {
        name: "item.read",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| mail::params::item_read(params).map(Call::Mail),
    },
    Method {
        name: "task.list",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| tasks::params::list(params).map(Call::Task),
    },
    Method {
        name: "task.get",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| tasks::params::get(params).map(Call::Task),
    },
    Method {
        name: "task.update",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| tasks::params::update(params).map(Call::Task),
    },
    Method {
        name: "task.cancel",
        tier: Tier::Agent,
        needs: Needs::Identity,
        read: |params| tasks::params::cancel(params).map(Call::Task),
    },
    Method {
        name: "grant.list",
        tier: Tier::Human,
        needs: Needs::Identity,
        read: |params| consent::params::grant_list(params).map(Call::Consent),
    },
    Method {
        name: "grant.set",
        tier: Tier::Human,
        needs: Needs::Identity,
        read: |params| consent::params::grant_set(params).map(Call::Consent),
    },
    Method {
        name: "grant.set.preview",
        tier: Tier::Human,
        needs: Needs::Identity,
        read: |params| consent::params::grant_preview(params).map(Call::Consent),
    },
    Method {
        name: "request.list",
        tier: Tier::Human,
        needs: Needs::Identity,
        read: |params| consent::params::request_list(params).map(Call::Consent),
    },
    Method {
        name: "request.answer",
        tier: Tier::Human,
        needs: Needs::Identity,
        read: |params| consent::params::request_answer(params).map(Call::Consent),
    },
    Method {
        name: "request.answer.preview",
        tier: Tier::Human,
        needs: Needs::Identity,
        read: |params| consent::params::request_preview(params).map(Call::Consent),
    },
];
