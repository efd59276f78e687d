//! Deleting the lines of a channel that ended here, a bounded number at a time.
//!
//! | Table | Key | Value |
//! |---|---|---|
//! | `chat_gone` | room | nothing: its lines are being deleted |

use super::lines::{self, ORDER};
use crate::daemon::ctx::Ctx;
use crate::daemon::rows::{self, Key};
use crate::store::{StoreDown, Table, Txn};

pub(crate) const GONE: Table = Table("chat_gone");

/// Lines deleted in one step.
const STEP: usize = 256;

/// A room is gone: its first lines go with it.
pub(super) fn begin(cx: &mut Ctx<'_, '_>, room: u64) -> Result<(), StoreDown> {
    rows::mark(cx.txn, GONE, &Key::new().num(room));
    step(cx)
}

/// Whether lines of a gone room are left.
pub(super) fn is_due(txn: &Txn<'_>) -> Result<bool, StoreDown> {
    Ok(!txn.prefix(GONE, &[], 1)?.is_empty())
}

/// Deletes some lines of the first gone room.
pub(super) fn step(cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
    let gone = cx.txn.prefix(GONE, &[], 1)?;
    let Some((key, _)) = gone.first() else { return Ok(()) };
    let order = cx.txn.prefix(ORDER, key, STEP)?;
    for (key, _) in &order {
        lines::delete(cx, rows::last_num(key))?;
    }
    if order.len() < STEP {
        cx.txn.delete(GONE, key);
    }
    Ok(())
}
