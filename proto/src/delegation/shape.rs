//! The shape of one delegation grant: all that the payload schema asks of it (`messaging/1 §6.7`).

use crate::address::SessionAddress;
use crate::hash::{Hash, RealmId};
use crate::json::{Fields, FromValue, Invalid, Value};
use crate::key::{MachineId, Sig};
use crate::limits::{DELEGATION_DEPTH, DELEGATION_SCOPES};
use crate::name::ScopeLabel;
use crate::time::Wall;
use crate::ulid::Ulid;

/// The known members of one grant of delegation. Its signature and its hash are over the raw value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Where it holds.
    pub realm: RealmId,
    /// The task it was made for.
    pub task: Ulid,
    /// Who delegates.
    pub from: SessionAddress,
    /// Who is asked.
    pub to: SessionAddress,
    /// The machine of `from`, which signs.
    pub by: MachineId,
    /// When it was made.
    pub ts: Wall,
    /// When it ends.
    pub exp: Wall,
    /// Most grants of any chain through this one: 1 … `delegationDepth`.
    pub max_depth: u64,
    /// What it is narrowed to, as written; absent when unrestricted.
    pub scope: Option<Vec<ScopeLabel>>,
    /// The hash of the grant before it; absent at the root.
    pub parent: Option<Hash>,
    /// The signature, not judged here.
    pub sig: Sig,
}

impl FromValue for Grant {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        let max_depth = fields.req("maxDepth")?;
        if !(1..=DELEGATION_DEPTH as u64).contains(&max_depth) {
            return Err(Invalid::at("maxDepth"));
        }
        if fields
            .raw("scope")
            .and_then(Value::as_array)
            .is_some_and(|labels| labels.len() > DELEGATION_SCOPES)
        {
            return Err(Invalid::at("scope"));
        }
        Ok(Self {
            realm: fields.req("realm")?,
            task: fields.req("task")?,
            from: fields.req("from")?,
            to: fields.req("to")?,
            by: fields.req("by")?,
            ts: Wall(fields.req("ts")?),
            exp: Wall(fields.req("exp")?),
            max_depth,
            scope: fields.opt("scope")?,
            parent: fields.opt("parent")?,
            sig: fields.req("sig")?,
        })
    }
}
