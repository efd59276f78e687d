//! The relay never holds or says a plaintext (`messaging/1 §12`); and a credential that a daemon refused to send is kept by
//! nobody (`§8.7`).

use super::{Facts, Invariant};
use crate::run::CREDENTIAL;
use crate::world::{Commit, Who};

/// Looks for the mark of private texts in what the relay stores and says, and in what daemons send to it.
pub(super) struct Sealed;

impl Invariant for Sealed {
    fn name(&self) -> &'static str {
        "relay-sees-no-plaintext"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let secret = facts.secret.as_bytes();
        let holds = |bytes: &[u8]| bytes.windows(secret.len()).any(|part| part == secret);
        if commit.who == Who::Relay
            && let Some((table, ..)) =
                commit.writes.iter().find(|(_, key, row)| holds(key) || row.is_some_and(holds))
        {
            return Err(format!("a private text is in {}", table.0));
        }
        let leaves = |effect: &&String| commit.who == Who::Relay || effect.starts_with(r#"{"LinkSend""#);
        if commit.effects.iter().filter(leaves).any(|effect| holds(effect.as_bytes())) {
            return Err("a private text left unsealed".to_owned());
        }
        let whole = |bytes: &[u8]| bytes.windows(CREDENTIAL.len()).any(|part| part == CREDENTIAL.as_bytes());
        if let Some((table, ..)) = commit.writes.iter().find(|(.., row)| row.is_some_and(whole)) {
            return Err(format!("a credential is in {}", table.0));
        }
        Ok(())
    }
}
