//! Stopping (`contract ipc §11.1`, "shutdown"): replies in work are finished, the last words said, the link
//! closed, then the process may end.

use super::ctx::{Ctx, Facts, Note, Role};
use super::io::{Effect, Level};
use crate::store::StoreDown;
use messaging_proto::time::Mono;

/// How long replies in work may take.
const GRACE_MS: u64 = 5_000;

/// Where the stop is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    /// Replies in work are finished until this time.
    Draining(Mono),
    Stopped,
}

/// The stop role: the last to hear a note.
#[derive(Debug, Default)]
pub struct Stop {
    phase: Phase,
}

impl Stop {
    /// The note to say once nothing is in work any more, or the grace is over. Asked after every step.
    pub fn settled(&mut self, facts: &Facts, now: Mono) -> Option<Note> {
        match self.phase {
            Phase::Draining(until) if facts.conns.in_work() == 0 || until <= now => {
                self.phase = Phase::Stopped;
                Some(Note::Stopping)
            }
            _ => None,
        }
    }
}

impl Role for Stop {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::StopWanted if self.phase == Phase::Running => {
                self.phase = Phase::Draining(cx.mono().plus(GRACE_MS));
                cx.facts.about.stopping = true;
                cx.log(Level::Info, "daemon.stopping", vec![]);
            }
            // The roles before this one have said their last words; the link role has hung up.
            Note::Stopping => cx.effect(Effect::Stopped),
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        match self.phase {
            Phase::Draining(until) => Some(until),
            Phase::Running | Phase::Stopped => None,
        }
    }
}
