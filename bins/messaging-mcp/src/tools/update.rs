//! `task_update` for whoever does a task, `task_cancel` for whoever asked it.

use super::{Context, is_done, long_state, parts, short_state};
use crate::args::{ANY, Args};
use crate::failure::Failure;
use crate::files;
use crate::schema::STATES;
use messaging_proto::Code;
use serde_json::{Value, json};

pub(crate) async fn update(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let id = args.needed_id("id")?;
    let state = args.one_of("state", &STATES)?;
    let text = args.text("text", ANY)?;
    let artifact = match args.take("artifact") {
        Some(artifact) => Some(self::artifact(cx, artifact)?),
        None => None,
    };
    args.finish()?;
    if state.is_none() && artifact.is_none() {
        return Err(Failure::invalid("state", "or artifact is needed"));
    }
    if text.is_some() && state.is_none() {
        return Err(Failure::invalid("text", "needs state"));
    }
    let mut params = json!({"taskId": id.as_str()});
    if let Some(state) = state {
        params["state"] = json!(long_state(state));
    }
    if let Some(text) = text {
        params["message"] = json!([{ "text": text }]);
    }
    if let Some(artifact) = artifact {
        params["artifact"] = artifact;
    }
    let updated = cx.call("task.update", params).await?;
    cx.session.tally.seen(id.as_str());
    Ok(json!({"task": parts::task(cx, &updated["task"]).await?}))
}

fn artifact(cx: &Context<'_>, artifact: Value) -> Result<Value, Failure> {
    let mut artifact = Args::inside(artifact, "artifact")?;
    let name = artifact.text("name", 1..=200)?;
    let text = artifact.text("text", ANY)?;
    let files = files::parts(&mut artifact, cx.session.home())?;
    artifact.finish()?;
    let mut parts: Vec<Value> = text.map(|text| json!({ "text": text })).into_iter().collect();
    parts.extend(files);
    if parts.is_empty() {
        return Err(Failure::invalid("artifact", "needs text or files"));
    }
    let mut made = json!({ "parts": parts });
    if let Some(name) = name {
        made["name"] = json!(name);
    }
    Ok(made)
}

pub(crate) async fn cancel(cx: &Context<'_>, mut args: Args) -> Result<Value, Failure> {
    let id = args.needed_id("id")?;
    let reason = args.text("reason", 1..=2000)?;
    args.finish()?;
    let missing = || Failure::not_found("no task has this id");
    let task = cx.task(id.as_str()).await?.ok_or_else(missing)?;
    if !parts::is_asked(&task) && is_done(&short_state(&task["state"])) {
        return finished(cx, &task).await;
    }
    let mut params = json!({"taskId": id.as_str()});
    if let Some(reason) = reason {
        params["reason"] = json!(reason);
    }
    match cx.call("task.cancel", params).await {
        Ok(cancelled) => Ok(json!({"task": parts::task(cx, &cancelled["task"]).await?, "sent": true})),
        // It finished at the same moment.
        Err(failure) if failure.is(Code::InvalidState) && !parts::is_asked(&task) => {
            match cx.task(id.as_str()).await?.filter(|task| is_done(&short_state(&task["state"]))) {
                Some(task) => finished(cx, &task).await,
                None => Err(failure),
            }
        }
        Err(failure) => Err(failure),
    }
}

async fn finished(cx: &Context<'_>, task: &Value) -> Result<Value, Failure> {
    Ok(json!({"task": parts::task(cx, task).await?, "sent": false}))
}
