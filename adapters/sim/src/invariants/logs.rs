//! No daemon logs an error, except the ones that say what a plan did on purpose: a file that could not be written.

use super::{Facts, Invariant};
use crate::world::Commit;

/// Looks at every log line.
pub(super) struct NoErrors;

impl Invariant for NoErrors {
    fn name(&self) -> &'static str {
        "no-error-log"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let loud =
            |effect: &&String| effect.starts_with(r#"{"Log""#) && effect.contains(r#""level":"Error""#);
        // The alarm of a fork is one, while there is a fork.
        let forked = |effect: &&String| !facts.forked.is_empty() && effect.contains("roster.divergence");
        let mut errors = commit.effects.iter().filter(loud).filter(|effect| !forked(effect));
        let error = errors.find(|effect| !effect.contains("not_saved"));
        error.map_or(Ok(()), |effect| Err(effect.clone()))
    }
}
