//! What the daemon says about itself (`messaging/1 §8.2`, "Health"; `contract ipc §3.2`).

use super::ctx::{Answer, Ctx, Note, Outcome, obj};
use super::ipc::{self, params::only};
use super::link::LinkPhase;
use super::mail::{inbox, outbox};
use super::schema;
use messaging_proto::json::{Fields, Invalid, Value};

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

/// The role: no state of its own.
#[derive(Debug, Default)]
pub struct Status;

impl Status {
    /// Serves a call.
    ///
    /// # Errors
    /// None but a dead store.
    pub fn call(cx: &mut Ctx<'_, '_>, call: Call) -> Outcome<Answer> {
        Ok(match call {
            Call::Health => Answer::Now(health(cx)?),
            Call::Status | Call::Device => Answer::ok(),
            Call::Stop => {
                cx.note(Note::StopWanted);
                Answer::Now(obj([
                    ("ok", Value::Bool(true)),
                    ("pid", Value::int(u64::from(cx.facts.about.pid))),
                ]))
            }
            Call::Woke => {
                cx.note(Note::Woke);
                Answer::ok()
            }
            Call::Attached => Answer::ok(),
        })
    }
}

fn health(cx: &Ctx<'_, '_>) -> Outcome<Value> {
    let relay = match cx.facts.link.phase() {
        LinkPhase::Connected => "connected",
        LinkPhase::Connecting => "connecting",
        LinkPhase::Offline => "offline",
    };
    let alarm = cx.facts.keys.alarm().map_or(Value::Null, |alarm| Value::text(alarm.as_str()));
    // The outbox drains, or an item waits for a client to be handed it.
    let busy = (cx.facts.link.up() && outbox::waiting(cx.txn)?.0 > 0) || inbox::any_waiting(cx.txn)?;
    Ok(obj([
        ("state", Value::text("running")),
        ("relay", Value::text(relay)),
        ("directory", Value::text("ok")),
        ("alarm", alarm),
        ("busy", Value::Bool(busy)),
        ("version", Value::text(cx.facts.about.version.as_str())),
        ("storeSchema", Value::int(schema::SCHEMA)),
    ]))
}
