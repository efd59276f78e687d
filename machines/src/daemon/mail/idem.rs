//! One call, one effect: repeats of `msg.send` with a key (`messaging/1 §8.2`, `idempotencyKey`).
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `idem` | session key ‖ idempotency key | [`Row`]; kept `ttlMs` |

use crate::daemon::due;
use crate::daemon::rows::{self, Key};
use crate::daemon::text::{canonical, parsed};
use crate::store::{StoreDown, Table, Txn};
use messaging_proto::Code;
use messaging_proto::hash::{Hash, sha256};
use messaging_proto::json::Value;
use messaging_proto::limits::TTL_MS;
use messaging_proto::time::Wall;
use serde::{Deserialize, Serialize};

pub(crate) const IDEM: Table = Table("idem");

#[derive(Debug, Serialize, Deserialize)]
struct Row {
    /// The params, but the session key.
    params: Hash,
    /// The result's canonical text.
    result: String,
}

/// What the params are, but the session key: a taken-over session may repeat nothing of another key anyhow.
pub(crate) fn fingerprint(params: &Value) -> Hash {
    let mut object = params.as_object().cloned().unwrap_or_default();
    object.remove("key");
    sha256(canonical(&Value::Object(object)).as_bytes())
}

/// The result of an earlier call with this key.
///
/// # Errors
/// `invalid_request` when that call had other params.
pub(crate) fn earlier(
    txn: &Txn<'_>,
    session: &str,
    key: &str,
    params: Hash,
) -> Result<Result<Option<Value>, Code>, StoreDown> {
    Ok(match rows::get::<Row>(txn, IDEM, &row_key(session, key))? {
        None => Ok(None),
        Some(row) if row.params == params => Ok(Some(parsed(&row.result))),
        Some(_) => Err(Code::InvalidRequest),
    })
}

/// Keeps the result of the first call with this key.
pub(crate) fn keep(txn: &mut Txn<'_>, session: &str, key: &str, params: Hash, result: &Value, now: Wall) {
    let row_key = row_key(session, key);
    rows::put(txn, IDEM, &row_key, &Row { params, result: canonical(result) });
    due::at(txn, now.plus(TTL_MS), due::Kind::Idempotency, &row_key);
}

/// A row's time is over.
pub(crate) fn forget(txn: &mut Txn<'_>, key: &[u8]) {
    txn.delete(IDEM, key);
}

fn row_key(session: &str, key: &str) -> Key {
    Key::new().text(session).text(key)
}
