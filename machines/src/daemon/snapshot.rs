//! A copy of the home as of one moment (`messaging/1 §8.2`, "Backups"): one at a time, held for an hour.
//!
//! What is held is known to this process alone. A machine that starts, also after its store failed, lets go of whatever
//! copy there is, and so does one that stops.

use super::ctx::{Answer, Caller, Ctx, Note, Outcome, Refusal, Role, obj};
use super::io::{CopiedFile, Effect, Level, SaveId};
use super::ipc::{self, RpcError, params::only};
use super::schema;
use crate::store::StoreDown;
use messaging_proto::Code;
use messaging_proto::json::{Fields, Invalid, Value};
use messaging_proto::time::{Mono, Wall};

/// How long a copy is held, in milliseconds (contract ipc §12).
pub(crate) const HELD_MS: u64 = 3_600_000;

/// `daemon.snapshot`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Makes a copy.
    Take,
    /// Lets go of it.
    Done,
}

/// Reads `daemon.snapshot`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn read(params: &Fields<'_>) -> Result<ipc::methods::Call, Invalid> {
    only(params, &["done"])?;
    let call = match params.raw("done") {
        None => Call::Take,
        Some(Value::Bool(true)) => Call::Done,
        Some(_) => return Err(Invalid::at("done")),
    };
    Ok(ipc::methods::Call::Snapshot(call))
}

#[derive(Debug, Default)]
enum State {
    #[default]
    None,
    Making {
        copy: SaveId,
        at: Wall,
        caller: Caller,
    },
    Held {
        until: Mono,
    },
}

/// The role.
#[derive(Debug, Default)]
pub struct Snapshot {
    state: State,
}

impl Snapshot {
    /// Serves a call.
    ///
    /// # Errors
    /// `invalid_state` while a copy is made or held.
    pub(crate) fn call(&mut self, cx: &mut Ctx<'_, '_>, from: &Caller, call: Call) -> Outcome<Answer> {
        match (call, &self.state) {
            (Call::Take, State::None) => {
                let copy = cx.facts.files.next(cx.step.mono);
                let at = cx.now();
                cx.effect(Effect::Snapshot { copy, at });
                self.state = State::Making { copy, at, caller: from.clone() };
                Ok(Answer::Later)
            }
            (Call::Take, _) | (Call::Done, State::Making { .. }) => {
                Err(Refusal::code(Code::InvalidState, "a snapshot is made or held; release it with done"))
            }
            (Call::Done, State::None) => Ok(released(false)),
            (Call::Done, State::Held { .. }) => {
                self.release(cx);
                Ok(released(true))
            }
        }
    }

    /// The copy is made, or could not be. `folder` is where.
    pub(crate) fn made(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        of: SaveId,
        folder: &str,
        files: Option<Vec<CopiedFile>>,
    ) {
        let (at, caller) = match std::mem::take(&mut self.state) {
            State::Making { copy, at, caller } if copy == of => (at, caller),
            // Of a machine that was dropped since: this one let go of it when it started.
            other => {
                self.state = other;
                return;
            }
        };
        let Some(files) = files else {
            cx.log(Level::Error, "snapshot.failed", vec![]);
            cx.effect(Effect::DropSnapshot);
            cx.reply(&caller, Err(RpcError::new(Code::Internal, "the copy could not be written")));
            return;
        };
        self.state = State::Held { until: cx.mono().plus(HELD_MS) };
        cx.log(Level::Info, "snapshot.held", vec![("files", files.len().to_string())]);
        let files = files.iter().map(|file| {
            obj([
                ("name", Value::text(file.name.as_str())),
                ("bytes", Value::int(file.bytes)),
                ("sha256", Value::text(file.sha256.as_str())),
            ])
        });
        let result = obj([
            ("folder", Value::text(folder)),
            ("files", Value::Array(files.collect())),
            ("storeSchema", Value::int(schema::SCHEMA)),
            ("at", Value::int(at.0)),
            ("until", Value::int(cx.now().plus(HELD_MS).0)),
        ]);
        cx.reply(&caller, Ok(result));
    }

    fn release(&mut self, cx: &mut Ctx<'_, '_>) {
        self.state = State::None;
        cx.log(Level::Info, "snapshot.released", vec![]);
        cx.effect(Effect::DropSnapshot);
    }
}

fn released(whether: bool) -> Answer {
    Answer::Now(obj([("released", Value::Bool(whether))]))
}

impl Role for Snapshot {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            // What a process before this one left.
            Note::Start => cx.effect(Effect::DropSnapshot),
            Note::Stopping if !matches!(self.state, State::None) => self.release(cx),
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        match self.state {
            State::Held { until } => Some(until),
            _ => None,
        }
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        self.release(cx);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::io::Event;
    use crate::daemon::testing::{World, at, text};

    fn copied() -> Option<Vec<CopiedFile>> {
        let file = CopiedFile { name: "messaging.db".to_owned(), bytes: 5, sha256: "ab".repeat(32) };
        Some(vec![file])
    }

    #[test]
    fn one_at_a_time_for_an_hour() {
        let mut world = World::new(&["alice/desk"]);
        let admin = world.connect(0);
        let released = |value: bool| obj([("released", Value::Bool(value))]);
        assert_eq!(world.ok(0, admin, "daemon.snapshot", r#"{"done":true}"#), released(false));
        for hand in [true, false] {
            let copy = world.asks(0, admin, "daemon.snapshot", "{}");
            assert_eq!(world.refused(0, admin, "daemon.snapshot", "{}"), "invalid_state");
            assert_eq!(world.refused(0, admin, "daemon.snapshot", r#"{"done":true}"#), "invalid_state");
            let of = *world.nodes[0].copies.last().unwrap();
            // A report about another copy is nobody's.
            world.handle(0, Event::Snapshot { copy: SaveId(1), folder: "x".to_owned(), files: None });
            assert!(world.answer(0, admin, copy).is_none());
            let folder = "/run/snapshot".to_owned();
            world.handle(0, Event::Snapshot { copy: of, folder, files: copied() });
            let result = world.answer(0, admin, copy).unwrap();
            assert_eq!(text(&result, "result.folder"), "/run/snapshot");
            assert_eq!(text(&result, "result.files.0.name"), "messaging.db");
            assert_eq!(at(&result, "result.until"), &Value::int(world.wall + HELD_MS));
            assert_eq!(at(&result, "result.storeSchema"), &Value::int(1));
            assert_eq!(world.refused(0, admin, "daemon.snapshot", "{}"), "invalid_state");
            if hand {
                assert_eq!(world.ok(0, admin, "daemon.snapshot", r#"{"done":true}"#), released(true));
            } else {
                world.pass(HELD_MS);
            }
            assert_eq!(world.ok(0, admin, "daemon.snapshot", r#"{"done":true}"#), released(false));
        }
        assert_eq!(world.nodes[0].dropped, 3, "at the start, by hand, after an hour");
    }

    #[test]
    fn a_copy_that_fails_is_let_go() {
        let mut world = World::new(&["alice/desk"]);
        let admin = world.connect(0);
        let call = world.asks(0, admin, "daemon.snapshot", "{}");
        let copy = *world.nodes[0].copies.last().unwrap();
        world.handle(0, Event::Snapshot { copy, folder: "x".to_owned(), files: None });
        let result = world.answer(0, admin, call).unwrap();
        assert_eq!(text(&result, "error.data.code"), "internal");
        assert_eq!(world.nodes[0].dropped, 2);
        let agent = world.agent(0);
        assert_eq!(world.refused(0, agent, "daemon.snapshot", "{}"), "forbidden");
        for params in [r#"{"done":false}"#, r#"{"more":1}"#] {
            assert_eq!(world.refused(0, admin, "daemon.snapshot", params), "invalid_request");
        }
    }
}
