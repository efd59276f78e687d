//! No daemon logs an error, except the ones that say what a plan did on purpose: a file that could not be written.

use super::{Facts, Invariant};
use crate::world::Commit;

/// Looks at every log line.
pub(super) struct NoErrors;

impl Invariant for NoErrors {
    fn name(&self) -> &'static str {
        "no-error-log"
    }

    fn commit(&mut self, commit: &Commit<'_>, _: &Facts) -> Result<(), String> {
        let loud =
            |effect: &&String| effect.starts_with(r#"{"Log""#) && effect.contains(r#""level":"Error""#);
        let error = commit.effects.iter().filter(loud).find(|effect| !effect.contains("not_saved"));
        error.map_or(Ok(()), |effect| Err(effect.clone()))
    }
}
