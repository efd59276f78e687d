//! What the daemon says about itself (`messaging/1 §8.2`, "Health"; `contract ipc §3.2`).

use super::ctx::{Answer, Ctx, Note, Outcome, obj};
use super::identity::{self, Alarm};
use super::ipc::{self, IPC_PROTOCOL, params::only};
use super::mail::{inbox, outbox};
use super::{schema, sessions};
use messaging_proto::identity::Identity;
use messaging_proto::json::{Fields, Invalid, Object, Value};
use messaging_proto::units::cut_utf16;

/// `relay.lastError` holds at most this many UTF-16 code units.
const ERROR_UNITS: usize = 500;

/// The calls this role serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// `daemon.status`.
    Status,
    /// `daemon.health`.
    Health,
    /// `device.status`.
    Device,
    /// `daemon.stop`.
    Stop,
    /// `daemon.woke`.
    Woke,
    /// `person.attached`, which changes nothing outside a Jelly host.
    Attached,
}

macro_rules! bare {
    ($($name:ident => $call:ident),*) => {$(
        /// Reads the params of a method that takes none.
        ///
        /// # Errors
        /// [`Invalid`] for any member.
        pub fn $name(params: &Fields<'_>) -> Result<ipc::methods::Call, Invalid> {
            only(params, &[])?;
            Ok(ipc::methods::Call::Status(Call::$call))
        }
    )*};
}
bare!(read_status => Status, read_health => Health, read_device => Device, read_stop => Stop, read_woke => Woke);

/// Reads `person.attached`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn read_attached(params: &Fields<'_>) -> Result<ipc::methods::Call, Invalid> {
    only(params, &["attached"])?;
    params.req::<bool>("attached")?;
    Ok(ipc::methods::Call::Status(Call::Attached))
}

/// Serves a call.
///
/// # Errors
/// None but a dead store.
pub(crate) fn call(cx: &mut Ctx<'_, '_>, call: Call) -> Outcome<Answer> {
    Ok(match call {
        Call::Health => Answer::Now(health(cx)?),
        Call::Status => Answer::Now(status(cx)?),
        Call::Device => Answer::Now(device(cx)),
        Call::Stop => {
            cx.note(Note::StopWanted);
            let pid = Value::int(u64::from(cx.facts.about.pid));
            Answer::Now(obj([("ok", Value::Bool(true)), ("pid", pid)]))
        }
        Call::Woke => {
            cx.note(Note::Woke);
            Answer::ok()
        }
        Call::Attached => Answer::ok(),
    })
}

fn alarm(cx: &Ctx<'_, '_>) -> Value {
    cx.facts.keys.alarm().map_or(Value::Null, |alarm| Value::text(alarm.as_str()))
}

fn health(cx: &Ctx<'_, '_>) -> Outcome<Value> {
    // The outbox drains, or an item waits for a client to be handed it.
    let busy = (cx.facts.link.up() && outbox::waiting(cx.txn)?.0 > 0) || inbox::any_waiting(cx.txn)?;
    let state = if cx.facts.about.stopping { "stopping" } else { "running" };
    Ok(obj([
        ("state", Value::text(state)),
        ("relay", Value::text(cx.facts.link.phase().as_str())),
        ("directory", Value::text("ok")),
        ("alarm", alarm(cx)),
        ("busy", Value::Bool(busy)),
        ("version", Value::text(cx.facts.about.version.as_str())),
        ("storeSchema", Value::int(schema::SCHEMA)),
    ]))
}

/// `device.status` of a roster realm: the binding follows the membership (`§8.2`, "Devices").
fn device(cx: &Ctx<'_, '_>) -> Value {
    let mut result = Object::new();
    result.set("realm", Value::text("roster"));
    let machine = cx.facts.keys.current().map(Identity::machine);
    result.set("device", machine.map_or(Value::Null, |machine| Value::text(machine.to_string())));
    let binding = match cx.facts.me() {
        Some(me) => {
            result.set("person", Value::text(me.person.as_str()));
            result.set("label", Value::text(me.label.as_str()));
            "bound"
        }
        None if cx.facts.removed() => "removed",
        None => "none",
    };
    result.set("binding", Value::text(binding));
    result.set("alarm", alarm(cx));
    result.into()
}

fn status(cx: &Ctx<'_, '_>) -> Outcome<Value> {
    let about = &cx.facts.about;
    let mut result = Object::new();
    result.set("version", Value::text(about.version.as_str()));
    result.set("protocol", Value::int(IPC_PROTOCOL));
    result.set("storeSchema", Value::int(schema::SCHEMA));
    result.set("pid", Value::int(u64::from(about.pid)));
    result.set("startedAt", Value::int(about.started_at.0));
    result.set("realm", Value::text("roster"));
    let me = cx.facts.me();
    result.set(
        "identity",
        me.map_or(Value::Null, |me| {
            obj([
                ("device", Value::text(me.machine.to_string())),
                ("person", Value::text(me.person.as_str())),
                ("label", Value::text(me.label.as_str())),
            ])
        }),
    );
    if let Some((team, name, head)) =
        cx.facts.roster().and_then(|roster| Some((roster.team()?, roster.name()?, roster.head()?)))
    {
        let mut info = Object::new();
        info.set("team", Value::text(team.to_string()));
        info.set("name", Value::text(name.as_str()));
        info.set("head", head.to_value());
        if let Some(me) = me {
            info.set("role", Value::text(me.role.as_str()));
        }
        result.set("team", info.into());
    }
    result.set("relay", relay(cx));
    let (waiting, oldest) = outbox::waiting(cx.txn)?;
    let mut queue = Object::new();
    queue.set("waiting", Value::int(waiting));
    if let Some(oldest) = oldest {
        queue.set("oldest", Value::int(oldest.0));
    }
    result.set("outbox", queue.into());
    let sessions = sessions::rows::all(cx.txn)?;
    let kept = sessions.iter().filter(|session| session.kept()).count();
    let live = Value::int((sessions.len() - kept) as u64);
    result.set("sessions", obj([("live", live), ("kept", Value::int(kept as u64))]));
    result.set("alarm", alarm(cx));
    if let Some(evidence) = cx.facts.realm.divergence() {
        let mine = evidence.mine.map_or_else(String::new, |hash| hash.to_string());
        result.set(
            "divergence",
            obj([
                ("device", Value::text(evidence.device.to_string())),
                ("person", Value::text(evidence.person.as_str())),
                ("seq", Value::int(evidence.seq)),
                ("mine", Value::text(mine)),
                ("theirs", Value::text(evidence.theirs.to_string())),
                ("at", Value::int(evidence.at.0)),
                ("envelopeId", Value::text(evidence.envelope_id.as_str())),
            ]),
        );
    }
    Ok(result.into())
}

fn relay(cx: &Ctx<'_, '_>) -> Value {
    let mut relay = Object::new();
    let url = cx.facts.config.relay().map_or(Value::Null, |url| Value::text(url.as_str()));
    relay.set("url", url);
    relay.set("state", Value::text(cx.facts.link.phase().as_str()));
    if let Some(since) = cx.facts.link.since() {
        relay.set("since", Value::int(since.0));
    }
    if let Some(error) = last_error(cx) {
        relay.set("lastError", Value::text(cut_utf16(&error, ERROR_UNITS)));
    }
    relay.into()
}

/// What is wrong with the relay or, through it, with this machine.
fn last_error(cx: &Ctx<'_, '_>) -> Option<String> {
    if cx.facts.removed() {
        return Some("this machine was removed from the team".to_owned());
    }
    if cx.facts.keys.file_taken() && cx.facts.roster().is_none() {
        let text = "the store of this machine's team is gone: put messaging.db back from a snapshot, or move the home \
                    aside and set it up again";
        return Some(text.to_owned());
    }
    // §8.9 "Not an alarm".
    let rekeyed = cx.facts.keys.alarm() != Some(Alarm::Restored) && identity::admin_rekeyed(cx).is_some();
    let rekeyed = rekeyed.then(|| {
        "an admin replaced this machine's encryption key; rotate it to receive mail again".to_owned()
    });
    rekeyed.or_else(|| cx.facts.link.last_error().map(super::link::Report::sentence))
}
