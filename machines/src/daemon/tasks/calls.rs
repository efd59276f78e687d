//! `task.list`, `task.get`, `task.update`, `task.cancel` (contract ipc §3).

use super::change::{self, NewArtifact};
use super::params::Call;
use super::rows::{self, Task, TaskRole};
use super::view::{self, Origin};
use crate::daemon::ctx::{Answer, Ctx, Outcome, Refusal, obj};
use crate::daemon::ipc::RpcError;
use crate::daemon::mail::post::{self, Draft};
use crate::daemon::mail::sent::What;
use crate::daemon::secrets;
use crate::daemon::sessions;
use crate::daemon::text::{AROUND_RECORD, fits_a_line};
use crate::machine::Label;
use messaging_proto::Code;
use messaging_proto::a2a::TaskState;
use messaging_proto::address::SessionAddress;
use messaging_proto::envelope::{End, Kind};
use messaging_proto::json::{Object, Value};
use messaging_proto::payload::TaskCancel;
use messaging_proto::task::apply_update;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// `task.list`.
#[derive(Clone, Debug)]
pub struct List {
    pub(crate) key: String,
    pub(crate) role: Option<TaskRole>,
    pub(crate) state: Vec<TaskState>,
    pub(crate) context: Option<String>,
    pub(crate) peer: Option<SessionAddress>,
    pub(crate) updated_after: Option<Wall>,
    pub(crate) limit: usize,
    pub(crate) cursor: Option<String>,
}

/// An artifact of `task.update`.
#[derive(Clone, Debug)]
pub(crate) struct NewPart {
    pub(crate) artifact_id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) parts: Value,
    pub(crate) append: bool,
    pub(crate) last_chunk: bool,
}

/// `task.update`.
#[derive(Clone, Debug)]
pub struct Update {
    pub(crate) key: String,
    pub(crate) task: Ulid,
    pub(crate) state: Option<TaskState>,
    pub(crate) message: Option<Value>,
    pub(crate) artifact: Option<NewPart>,
}

/// `task.cancel`.
#[derive(Clone, Debug)]
pub struct Cancel {
    pub(crate) key: String,
    pub(crate) task: Ulid,
    pub(crate) reason: Option<String>,
}

/// Serves a call.
pub(crate) fn call(cx: &mut Ctx<'_, '_>, call: Call) -> Outcome<Answer> {
    match call {
        Call::List(params) => list(cx, &params),
        Call::Get { key, task } => get(cx, &key, &task),
        Call::Update(params, raw) => update(cx, *params, &raw),
        Call::Cancel(params, raw) => cancel(cx, &params, &raw),
    }
}

impl List {
    fn wants(&self, task: &Task) -> bool {
        self.role.is_none_or(|role| role == task.role)
            && (self.state.is_empty() || self.state.contains(&task.status.state))
            && self.context.as_ref().is_none_or(|context| *context == task.context)
            && self.peer.as_ref().is_none_or(|peer| task.peer.address().as_ref() == Some(peer))
            && self.updated_after.is_none_or(|after| task.updated >= after)
    }
}

/// Records read at a time.
const READ: usize = 200;

/// `task.list`: newest update first.
fn list(cx: &mut Ctx<'_, '_>, params: &List) -> Outcome<Answer> {
    let session = sessions::of_key(cx, &params.key)?;
    let after = params.cursor.as_deref().map(place).transpose()?;
    let (mut tasks, mut total, mut next) = (Vec::new(), 0_u64, None);
    let mut before = None;
    loop {
        let page = rows::newest(cx.txn, session.mailbox, before, READ)?;
        let last = page.len() < READ;
        for task in page {
            let here = (task.updated.0, task.order);
            before = Some(here);
            if !params.wants(&task) {
                continue;
            }
            total += 1;
            if after.is_some_and(|after| here >= after) {
                continue;
            }
            if tasks.len() < params.limit {
                next = Some(here);
                tasks.push(view::summary(&task).into());
            } else if tasks.len() == params.limit {
                // One more than fits: there is another page.
                tasks.push(Value::Null);
            }
        }
        if last {
            break;
        }
    }
    let more = tasks.len() > params.limit;
    tasks.truncate(params.limit);
    let mut result = Object::new();
    result.set("tasks", Value::Array(tasks));
    result.set("total", Value::int(total));
    if let (true, Some((updated, order))) = (more, next) {
        result.set("nextCursor", Value::text(format!("{updated}.{order}")));
    }
    Ok(Answer::Now(result.into()))
}

fn place(cursor: &str) -> Outcome<(u64, u64)> {
    cursor
        .split_once('.')
        .and_then(|(updated, order)| Some((updated.parse().ok()?, order.parse().ok()?)))
        .ok_or_else(|| {
            RpcError::new(Code::InvalidRequest, "cursor is not one of this method").at("cursor").into()
        })
}

/// `task.get`.
fn get(cx: &mut Ctx<'_, '_>, key: &str, task: &Ulid) -> Outcome<Answer> {
    let session = sessions::of_key(cx, key)?;
    let task = rows::of_mailbox(cx.txn, task, session.mailbox)?.ok_or_else(unknown)?;
    answer(cx, &task)
}

/// `task.update`, by the executor's session. Everything is checked and sealed before anything is written.
fn update(cx: &mut Ctx<'_, '_>, params: Update, raw: &Value) -> Outcome<Answer> {
    let session = sessions::of_key(cx, &params.key)?;
    let mut task = rows::of_mailbox(cx.txn, &params.task, session.mailbox)?.ok_or_else(unknown)?;
    if task.role != TaskRole::Executor {
        return Err(Refusal::code(Code::InvalidState, "only the agent that was asked updates a task"));
    }
    secrets::refuse(cx, "task.update", raw)?;
    if task.status.state.is_terminal() {
        return Err(Refusal::code(Code::InvalidState, "the task has ended"));
    }
    if params.message.is_some() && params.state.is_none() {
        return Err(RpcError::new(Code::InvalidRequest, "message needs a state").at("message").into());
    }
    let next = apply_update(task.status.state, params.state, params.artifact.is_some())
        .map_err(|error| Refusal::code(error.code(), "the task does not move there"))?;
    if params.message.as_ref().is_some_and(|parts| !fits_a_line(parts, AROUND_RECORD)) {
        return Err(too_large(Code::TooLarge));
    }
    let now = cx.now();
    let artifact = params.artifact.map(|part| new_artifact(cx, part));
    let mut sealed = Vec::new();
    let mut joined = None;
    if let Some(artifact) = &artifact {
        joined = Some(change::join_artifact(cx.txn, &task, artifact)?.map_err(too_large)?);
        sealed.extend(change::seal_artifact(cx, &task, artifact).map_err(unsendable)?);
    }
    if params.state.is_some() {
        change::set_status(&mut task, next, params.message.as_ref(), now);
        sealed.extend(change::seal_status(cx, &task, true).map_err(unsendable)?);
    }
    if let Some(joined) = &joined {
        change::put_artifact(cx, &mut task, joined);
    }
    let status = params.state.is_some();
    let delta = match &artifact {
        Some(artifact) => change::artifact_delta(status, artifact),
        None => view::Delta { status, artifact: None },
    };
    change::save(cx, &mut task, Origin::Local, Some(delta))?;
    for ready in sealed {
        post::queue(cx, ready, Some(What::Task))?;
    }
    answer(cx, &task)
}

fn new_artifact(cx: &Ctx<'_, '_>, part: NewPart) -> NewArtifact {
    let id =
        part.artifact_id.unwrap_or_else(|| Ulid::new(cx.now(), cx.step.draw(Label::ArtifactId)).to_string());
    let mut artifact = Object::new();
    artifact.set("artifactId", Value::text(id));
    for (name, text) in [("name", part.name), ("description", part.description)] {
        if let Some(text) = text {
            artifact.set(name, Value::text(text));
        }
    }
    artifact.set("parts", part.parts);
    NewArtifact { value: artifact.into(), append: part.append, last_chunk: part.last_chunk }
}

/// `task.cancel`, by the requester's session. The executor's answer arrives as an event.
fn cancel(cx: &mut Ctx<'_, '_>, params: &Cancel, raw: &Value) -> Outcome<Answer> {
    let session = sessions::of_key(cx, &params.key)?;
    let task = rows::of_mailbox(cx.txn, &params.task, session.mailbox)?.ok_or_else(unknown)?;
    if task.role != TaskRole::Requester {
        return Err(Refusal::code(Code::InvalidState, "only the agent that asked cancels a task"));
    }
    secrets::refuse(cx, "task.cancel", raw)?;
    if task.status.state.is_terminal() {
        return Err(Refusal::code(Code::InvalidState, "the task has ended"));
    }
    let draft = Draft {
        kind: Kind::TaskCancel,
        from_agent: Some(task.session.clone()),
        to: End { person: task.peer.person.clone(), device: task.peer.device, agent: None },
        reply_to: None,
        payload: TaskCancel { task_id: task.id, reason: params.reason.clone() }.to_value(),
    };
    let ready = post::seal(cx, &draft).map_err(|error| unsendable(error.code()))?;
    post::queue(cx, ready, Some(What::Task))?;
    answer(cx, &task)
}

fn answer(cx: &Ctx<'_, '_>, task: &Task) -> Outcome<Answer> {
    Ok(Answer::Now(obj([("task", view::record(cx.txn, task)?)])))
}

fn unknown() -> Refusal {
    RpcError::new(Code::NotFound, "the session has no such task").at("taskId").into()
}

fn too_large(code: Code) -> Refusal {
    Refusal::code(code, "the task would hold more than it may")
}

fn unsendable(code: Code) -> Refusal {
    Refusal::code(code, "the update cannot be sent")
}
