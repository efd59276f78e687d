//! The params of `task.*` (contract ipc §3).

use super::calls::{Cancel, List, NewPart, Update};
use super::rows::TaskRole;
use crate::daemon::ipc::params::{self, SessionKey, Text, only};
use crate::daemon::mail::params::{Parts, limit};
use messaging_proto::a2a::TaskState;
use messaging_proto::json::{Fields, FromValue, Invalid, Value};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// What the role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `task.list`.
    List(Box<List>),
    /// `task.get`.
    Get {
        /// The session.
        key: String,
        /// The task.
        task: Ulid,
    },
    /// `task.update`, with the params as they came.
    Update(Box<Update>, Value),
    /// `task.cancel`, with the params as they came.
    Cancel(Cancel, Value),
}

impl FromValue for TaskRole {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        match value.as_str() {
            Some("requester") => Ok(Self::Requester),
            Some("executor") => Ok(Self::Executor),
            _ => Err(Invalid::new()),
        }
    }
}

impl FromValue for NewPart {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        only(&fields, &["artifactId", "name", "description", "parts", "append", "lastChunk"])?;
        Ok(Self {
            artifact_id: fields.opt::<Text<1, 128>>("artifactId")?.map(|text| text.0),
            name: fields.opt::<Text<1, 200>>("name")?.map(|text| text.0),
            description: fields.opt::<Text<1, 2000>>("description")?.map(|text| text.0),
            parts: fields.req::<Parts>("parts")?.0,
            append: fields.opt("append")?.unwrap_or(false),
            last_chunk: fields.opt("lastChunk")?.unwrap_or(true),
        })
    }
}

fn key(params: &Fields<'_>) -> Result<String, Invalid> {
    Ok(params.req::<SessionKey>("key")?.as_str().to_owned())
}

fn raw(params: &Fields<'_>) -> Value {
    Value::Object(params.object().clone())
}

/// Reads `task.list`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn list(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "role", "state", "contextId", "peer", "updatedAfter", "limit", "cursor"])?;
    Ok(Call::List(Box::new(List {
        key: key(params)?,
        role: params.opt("role")?,
        state: params.opt::<params::List<TaskState, 1, 8>>("state")?.map(|list| list.0).unwrap_or_default(),
        context: params.opt::<Text<1, 128>>("contextId")?.map(|text| text.0),
        peer: params.opt("peer")?,
        updated_after: params.opt::<u64>("updatedAfter")?.map(Wall),
        limit: limit::<100>(params, 20)?,
        cursor: params.opt::<Text<1, 512>>("cursor")?.map(|text| text.0),
    })))
}

/// Reads `task.get`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn get(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "taskId"])?;
    Ok(Call::Get { key: key(params)?, task: params.req("taskId")? })
}

/// Reads `task.update`. What depends on the task's record is judged with the record.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn update(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "taskId", "state", "message", "artifact"])?;
    let update = Update {
        key: key(params)?,
        task: params.req("taskId")?,
        state: params.opt("state")?,
        message: params.opt::<Parts>("message")?.map(|parts| parts.0),
        artifact: params.opt("artifact")?,
    };
    Ok(Call::Update(Box::new(update), raw(params)))
}

/// Reads `task.cancel`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn cancel(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "taskId", "reason"])?;
    let cancel = Cancel {
        key: key(params)?,
        task: params.req("taskId")?,
        reason: params.opt::<Text<1, 2000>>("reason")?.map(|text| text.0),
    };
    Ok(Call::Cancel(cancel, raw(params)))
}
