//! Whom this machine can reach (`messaging/1 §3` "Resolution", `§8.2` `contacts.list`, `expect`): its own sessions,
//! and those in the last presence of each current member.
//!
//! Volatile: whose entries changed since the last `contacts` event.

use super::ctx::{Answer, Ctx, Note, Outcome, Refusal, Role, obj};
use super::ipc::params::only;
use super::mail::peer::set;
use super::mail::thread::With;
use super::presence::{self, rows::Listed};
use super::sessions::rows as sessions;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::address::{Address, Candidate, ResolveError, SessionAddress, resolve as choose};
use messaging_proto::json::{Fields, Invalid, Object, Value};
use messaging_proto::key::MachineId;
use messaging_proto::name::{AgentKind, Label, PersonId, SessionName};
use messaging_proto::payload::{SessionState, Tier};
use messaging_proto::roster::Roster;
use messaging_proto::time::Mono;
use std::collections::BTreeSet;

/// The shortest time between two `contacts` events, in milliseconds (contract ipc §1.2).
const COALESCE_MS: u64 = 2_000;
/// The most persons one `contacts` event names.
const PERSONS: usize = 64;

/// The machine an address means.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Whose it is.
    pub(crate) person: PersonId,
    /// The machine.
    pub(crate) device: MachineId,
    /// Its label.
    pub(crate) label: Label,
    /// The session.
    pub(crate) session: SessionName,
}

impl Target {
    /// The qualified address.
    pub(crate) fn address(&self) -> SessionAddress {
        SessionAddress {
            person: self.person.clone(),
            session: self.session.clone(),
            label: self.label.clone(),
        }
    }
}

/// The role: it tells clients whose entries changed.
#[derive(Debug, Default)]
pub struct Directory {
    changed: BTreeSet<PersonId>,
    told: Option<Mono>,
}

impl Role for Directory {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::ContactsChanged(person) => self.changed(cx, [person.clone()]),
            Note::Peer { machine, .. } => {
                let member = cx.facts.roster().and_then(|roster| roster.member(machine));
                let person = member.map(|member| member.person.clone());
                self.changed(cx, person);
            }
            Note::SessionsChanged => {
                let own = cx.facts.me().map(|own| own.person.clone());
                self.changed(cx, own);
            }
            // Everybody may have come, gone, or be connected or not.
            Note::RosterChanged { .. } | Note::LinkUp | Note::LinkDown => {
                let members = cx.facts.roster().into_iter().flat_map(Roster::members);
                let all: Vec<_> = members.map(|member| member.person.clone()).collect();
                self.changed(cx, all);
            }
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        if self.changed.is_empty() { None } else { self.told.map(|told| told.plus(COALESCE_MS)) }
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        self.changed(cx, []);
        Ok(())
    }
}

impl Directory {
    fn changed(&mut self, cx: &mut Ctx<'_, '_>, persons: impl IntoIterator<Item = PersonId>) {
        self.changed.extend(persons);
        let now = cx.mono();
        if self.changed.is_empty() || self.told.is_some_and(|told| now.since(told) < COALESCE_MS) {
            return;
        }
        let mut persons = Vec::new();
        while persons.len() < PERSONS
            && let Some(person) = self.changed.pop_first()
        {
            persons.push(Value::text(person.as_str()));
        }
        self.told = Some(now);
        cx.event_all(&obj([("type", Value::text("contacts")), ("persons", Value::Array(persons))]));
    }
}

/// Where a message to `address` goes.
///
/// # Errors
/// `no_recipients`, `ambiguous_address`, `unknown_session`.
pub(crate) fn resolve(cx: &Ctx<'_, '_>, address: &Address) -> Outcome<Target> {
    let nobody =
        || Refusal::Rpc(super::ipc::RpcError::new(Code::NoRecipients, "the address names nobody").at("to"));
    let realm = cx.facts.roster().ok_or_else(nobody)?;
    let own = cx.facts.me().map(|own| own.machine);
    let mut candidates = Vec::new();
    for member in realm.machines_of(&address.person) {
        let lists = if Some(member.machine) == own {
            sessions::by_name(cx.txn, &address.session)?.is_some()
        } else {
            presence::rows::get(cx.txn, &member.machine)?
                .is_some_and(|seen| seen.session(&address.session).is_some())
        };
        candidates.push(Candidate { machine: member.machine, label: &member.label, lists });
    }
    let device = choose(address.label.as_ref(), candidates).map_err(|error| {
        let text = match error {
            ResolveError::NoRecipients => "the address names nobody",
            ResolveError::Ambiguous => "the session is on more than one machine; add @label",
            ResolveError::UnknownSession => "the person has no such session",
        };
        Refusal::Rpc(super::ipc::RpcError::new(error.code(), text).at("to"))
    })?;
    let label = realm.member(&device).map(|member| member.label.clone());
    let label = label.ok_or_else(nobody)?;
    Ok(Target { person: address.person.clone(), device, label, session: address.session.clone() })
}

/// When the recipient will likely see a message (`§8.2`, `expect`); nothing when no presence lists the session.
pub(crate) fn expect(
    cx: &Ctx<'_, '_>,
    target: &Target,
    hint: bool,
) -> Result<Option<&'static str>, StoreDown> {
    if cx.facts.me().is_some_and(|own| own.machine == target.device) {
        let session = sessions::by_name(cx.txn, &target.session)?;
        return Ok(session.map(|session| {
            let wake = presence::wakes(cx, &session);
            expected(true, session.kept(), wake, session.tier, session.state, hint)
        }));
    }
    let seen = presence::rows::get(cx.txn, &target.device)?;
    Ok(seen.as_ref().and_then(|seen| seen.session(&target.session)).map(|listed| {
        let online = cx.facts.link.online(&target.device);
        expected(online, listed.kept, listed.wake, listed.tier, listed.state, hint)
    }))
}

const fn expected(
    online: bool,
    kept: bool,
    wake: bool,
    tier: Tier,
    state: SessionState,
    hint: bool,
) -> &'static str {
    match (online, kept, tier, state) {
        (false, ..) => "offline",
        (true, true, ..) => {
            if wake && hint {
                "wake"
            } else {
                "kept"
            }
        }
        (true, false, Tier::Pull, _) => "on_read",
        (true, false, Tier::Push, SessionState::Busy) => "next_turn",
        (true, false, Tier::Push, SessionState::Idle) => {
            if wake && hint {
                "wake"
            } else {
                "next_prompt"
            }
        }
    }
}

/// Whether any machine of a person lists a session of this name.
pub(crate) fn knows(cx: &Ctx<'_, '_>, with: &With) -> Result<bool, StoreDown> {
    let own = cx.facts.me().filter(|own| own.person == with.person);
    if own.is_some() && sessions::by_name(cx.txn, &with.agent)?.is_some() {
        return Ok(true);
    }
    let machines = cx.facts.roster().into_iter().flat_map(|roster| roster.machines_of(&with.person));
    for member in machines {
        if presence::rows::get(cx.txn, &member.machine)?
            .is_some_and(|seen| seen.session(&with.agent).is_some())
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The agent kind of a session of a machine, as far as known: by its own row, or by its last presence.
pub(crate) fn client_of(
    cx: &Ctx<'_, '_>,
    device: &MachineId,
    session: &SessionName,
) -> Result<Option<AgentKind>, StoreDown> {
    if cx.facts.me().is_some_and(|own| own.machine == *device) {
        return Ok(sessions::by_name(cx.txn, session)?.map(|session| session.agent));
    }
    let seen = presence::rows::get(cx.txn, device)?;
    Ok(seen.as_ref().and_then(|seen| seen.session(session)).map(|listed| listed.client.clone()))
}

/// `contacts.list`, but for the conversations and what consent says, which the caller adds.
pub(crate) fn entries(cx: &Ctx<'_, '_>) -> Outcome<Vec<Value>> {
    entries_of(cx, None)
}

/// Every entry, or those of one person, by address.
pub(crate) fn entries_of(cx: &Ctx<'_, '_>, person: Option<&PersonId>) -> Outcome<Vec<Value>> {
    let Some(own) = cx.facts.me() else {
        return Err(Refusal::code(Code::NoIdentity, "this machine is in no team"));
    };
    let wanted = |of: &PersonId| person.is_none_or(|person| person == of);
    let mut entries = Vec::new();
    let mine = if wanted(&own.person) { sessions::all(cx.txn)? } else { Vec::new() };
    for session in mine {
        let listed = Listed {
            name: session.name.clone(),
            client: session.agent.clone(),
            state: session.state,
            tier: session.tier,
            since: session.since,
            kept: session.kept(),
            wake: presence::wakes(cx, &session),
            repo: session.repo.clone(),
            branch: session.branch.clone(),
            doing: session.doing.clone(),
        };
        let machine = Machine {
            person: &own.person,
            device: own.machine,
            label: &own.label,
            online: true,
            local: true,
        };
        // The machine's own features, then what the session's client says of itself.
        let features: Vec<_> =
            presence::FEATURES.iter().map(|name| (*name).to_owned()).chain(session.features).collect();
        entries.push(machine.entry(&listed, &features));
    }
    let members = cx.facts.roster().into_iter().flat_map(Roster::members);
    for member in members.filter(|member| member.machine != own.machine && wanted(&member.person)) {
        let Some(seen) = presence::rows::get(cx.txn, &member.machine)? else { continue };
        let online = cx.facts.link.online(&member.machine);
        let machine = Machine {
            person: &member.person,
            device: member.machine,
            label: &member.label,
            online,
            local: false,
        };
        entries.extend(seen.sessions.iter().map(|listed| machine.entry(listed, &seen.features)));
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

/// A machine whose sessions are listed.
struct Machine<'a> {
    person: &'a PersonId,
    device: MachineId,
    label: &'a Label,
    online: bool,
    local: bool,
}

impl Machine<'_> {
    /// `DirectoryEntry` (contract ipc §2), under its address.
    fn entry(&self, session: &Listed, features: &[String]) -> (String, Value) {
        let address = format!("{}/{}@{}", self.person, session.name, self.label);
        // A kept session, or one of a machine that is not connected, is shown as offline.
        let state = if session.kept || !self.online { "offline" } else { session.state.as_str() };
        let mut entry = Object::new();
        entry.set("address", Value::text(address.as_str()));
        entry.set("person", Value::text(self.person.as_str()));
        entry.set("agent", Value::text(session.name.as_str()));
        entry.set("device", Value::text(self.device.to_string()));
        entry.set("label", Value::text(self.label.as_str()));
        entry.set("client", Value::text(session.client.as_str()));
        entry.set("state", Value::text(state));
        entry.set("tier", Value::text(session.tier.as_str()));
        entry.set("since", Value::int(session.since.0));
        entry.set("online", Value::Bool(self.online));
        entry.set("local", Value::Bool(self.local));
        entry.set("kept", Value::Bool(session.kept));
        entry.set("wake", Value::Bool(session.wake));
        let features = features.iter().take(16).map(|feature| Value::text(feature.as_str())).collect();
        entry.set("features", Value::Array(features));
        set(&mut entry, "repo", session.repo.as_deref().map(Value::text));
        set(&mut entry, "branch", session.branch.as_deref().map(Value::text));
        set(&mut entry, "doing", session.doing.as_deref().map(Value::text));
        let expect = expected(self.online, session.kept, session.wake, session.tier, session.state, true);
        entry.set("expect", Value::text(expect));
        (address, entry.into())
    }
}

/// Reads the params of `contacts.list`: none.
///
/// # Errors
/// [`Invalid`] for any member.
pub fn read_contacts(params: &Fields<'_>) -> Result<(), Invalid> {
    only(params, &[])
}

/// `contacts.list`.
pub(crate) fn contacts(cx: &Ctx<'_, '_>) -> Outcome<Answer> {
    let entries = entries(cx)?;
    let reach = super::consent::reach(cx)?;
    Ok(Answer::Now(obj([
        ("entries", Value::Array(entries)),
        ("conversations", Value::Array(super::chats::conversations(cx)?)),
        ("reach", Value::Array(reach)),
    ])))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// §8.2: every row of the list of hints, in its order.
    #[test]
    fn hints_follow_the_order_of_the_specification() {
        use SessionState::{Busy, Idle};
        let cases = [
            (expected(false, true, true, Tier::Push, Busy, true), "offline"),
            (expected(true, true, true, Tier::Push, Idle, true), "wake"),
            (expected(true, true, true, Tier::Push, Idle, false), "kept"),
            (expected(true, true, false, Tier::Push, Idle, true), "kept"),
            (expected(true, false, true, Tier::Pull, Busy, true), "on_read"),
            (expected(true, false, true, Tier::Push, Busy, true), "next_turn"),
            (expected(true, false, true, Tier::Push, Idle, true), "wake"),
            (expected(true, false, true, Tier::Push, Idle, false), "next_prompt"),
            (expected(true, false, false, Tier::Push, Idle, true), "next_prompt"),
        ];
        for (index, (got, want)) in cases.into_iter().enumerate() {
            assert_eq!(got, want, "case {index}");
        }
    }
}
