//! The rows of consent.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `grant` | subject | the grant's canonical text, as signed |
//! | `review` | subject | [`Review`]: levels that lapsed with their signer |
//! | `synced` | device | nothing: own devices a snapshot was sent to |
//!
//! A subject is `p` or `c` ‖ the person or the channel id.

use crate::daemon::notices;
use crate::daemon::rows::{self, Key};
use crate::daemon::text::parsed;
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::consent::{ConsentGrant, Review, Subject};
use messaging_proto::key::MachineId;
use messaging_proto::limits::GRANTS_PER_PERSON;

pub(crate) const GRANT: Table = Table("grant");
pub(crate) const REVIEW: Table = Table("review");
pub(crate) const SYNCED: Table = Table("synced");

/// The grant held for a subject.
pub(crate) fn get(txn: &Txn<'_>, subject: &Subject) -> Result<Option<ConsentGrant>, StoreDown> {
    let text = rows::get::<String>(txn, GRANT, &key(subject))?;
    Ok(text.and_then(|text| ConsentGrant::from_store(parsed(&text)).ok()))
}

/// Every grant held.
pub(crate) fn all(txn: &Txn<'_>) -> Result<Vec<ConsentGrant>, StoreDown> {
    let texts = rows::list::<String>(txn, GRANT, &Key::new(), GRANTS_PER_PERSON)?;
    Ok(texts.into_iter().filter_map(|(_, text)| ConsentGrant::from_store(parsed(&text)).ok()).collect())
}

/// The grants about channels.
pub(crate) fn about_channels(txn: &Txn<'_>) -> Result<Vec<ConsentGrant>, StoreDown> {
    let texts = rows::list::<String>(txn, GRANT, &Key::new().bytes(b"c"), GRANTS_PER_PERSON)?;
    Ok(texts.into_iter().filter_map(|(_, text)| ConsentGrant::from_store(parsed(&text)).ok()).collect())
}

/// How many grants are held.
pub(crate) fn count(txn: &Txn<'_>) -> Result<usize, StoreDown> {
    Ok(usize::try_from(rows::counted(txn, "grants")?).unwrap_or(usize::MAX))
}

/// Holds a grant in place of the subject's other one, and takes the subject off the review list when it settles it.
pub(crate) fn put(txn: &mut Txn<'_>, grant: &ConsentGrant) -> Result<(), StoreDown> {
    let key = key(&grant.subject);
    if !rows::has(txn, GRANT, &key)? {
        rows::count(txn, "grants", 1)?;
    }
    rows::put(txn, GRANT, &key, &crate::daemon::text::canonical(grant.raw()));
    notices::plan_trust(txn, grant);
    if let Some(entry) = review(txn, &grant.subject)?
        && entry.is_settled_by(grant)
    {
        rows::delete(txn, REVIEW, &key);
    }
    Ok(())
}

/// Lets go of a grant that lapsed whole.
pub(crate) fn remove(txn: &mut Txn<'_>, subject: &Subject) -> Result<(), StoreDown> {
    let key = key(subject);
    if rows::has(txn, GRANT, &key)? {
        rows::count(txn, "grants", -1)?;
        rows::delete(txn, GRANT, &key);
    }
    Ok(())
}

/// What waits for the person to confirm it again.
pub(crate) fn review(txn: &Txn<'_>, subject: &Subject) -> Result<Option<Review>, StoreDown> {
    rows::get(txn, REVIEW, &key(subject))
}

/// The review list.
pub(crate) fn reviews(txn: &Txn<'_>) -> Result<Vec<Review>, StoreDown> {
    Ok(rows::list(txn, REVIEW, &Key::new(), GRANTS_PER_PERSON)?
        .into_iter()
        .map(|(_, review)| review)
        .collect())
}

/// Puts lapsed levels on the review list.
pub(crate) fn put_review(txn: &mut Txn<'_>, review: &Review) {
    rows::put(txn, REVIEW, &key(&review.subject), review);
}

/// Whether this own device got a snapshot.
pub(crate) fn is_synced(txn: &Txn<'_>, device: &MachineId) -> Result<bool, StoreDown> {
    rows::has(txn, SYNCED, &Key::new().bytes(&device.0))
}

/// Notes that this own device got a snapshot.
pub(crate) fn mark_synced(txn: &mut Txn<'_>, device: &MachineId) {
    rows::mark(txn, SYNCED, &Key::new().bytes(&device.0));
}

fn key(subject: &Subject) -> Key {
    match subject {
        Subject::Person(person) => Key::new().bytes(b"p").text(person.as_str()),
        Subject::Channel(channel) => Key::new().bytes(b"c").text(channel.as_str()),
    }
}
