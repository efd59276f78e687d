//! Which name a session gets (`messaging/1 §8.2`, `session.register`).

use super::rows::{self, Session};
use crate::store::{StoreDown, Txn};
use messaging_proto::name::{AgentKind, SessionName};

/// The most suffixes tried; far more than there can be sessions.
const SUFFIXES: u32 = 20_000;

/// The name for a session that asks for `asked`, and the kept session it takes over with it.
///
/// A name is taken by a live session of another key, or by a kept one of another agent kind. For a key that has a
/// session already (`fresh` is false) a kept one is taken too: the mail that waits there has an owner still, and
/// this key has a mailbox. Nothing when every suffix is taken.
pub(super) fn choose(
    txn: &Txn<'_>,
    key: &str,
    asked: &SessionName,
    agent: &AgentKind,
    fresh: bool,
) -> Result<Option<(SessionName, Option<Session>)>, StoreDown> {
    for number in 1..=SUFFIXES {
        let Some(name) = suffixed(asked, number) else { return Ok(None) };
        match rows::by_name(txn, &name)? {
            None => return Ok(Some((name, None))),
            Some(other) if other.key == key => return Ok(Some((name, None))),
            Some(other) if fresh && other.kept() && other.agent == *agent => {
                return Ok(Some((name, Some(other))));
            }
            Some(_) => {}
        }
    }
    Ok(None)
}

/// `asked`, or `asked-<number>` from 2, cut so that the whole fits 64 characters.
fn suffixed(asked: &SessionName, number: u32) -> Option<SessionName> {
    if number == 1 {
        return Some(asked.clone());
    }
    let suffix = format!("-{number}");
    // Session names are ASCII, so bytes are characters.
    let base = asked.as_str().get(..asked.as_str().len().min(64 - suffix.len()))?;
    SessionName::parse(&format!("{base}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_fit_the_longest_name() {
        let long = SessionName::parse(&"a".repeat(64)).unwrap();
        assert_eq!(suffixed(&long, 1).unwrap(), long);
        let second = suffixed(&long, 2).unwrap();
        assert_eq!(second.as_str(), format!("{}-2", "a".repeat(62)));
        assert_eq!(suffixed(&long, 10).unwrap().as_str().len(), 64);
        let short = SessionName::parse("agent").unwrap();
        assert_eq!(suffixed(&short, 12).unwrap().as_str(), "agent-12");
    }
}
