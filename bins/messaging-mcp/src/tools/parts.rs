//! The parts of messages and artifacts, and a task's record (contract ipc §8.2).

use super::{Context, items, peer_address, short_state, word};
use crate::failure::Failure;
use crate::files;
use crate::text::{Author, Object, Source, media_type, time};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use serde_json::{Value, json};

/// Shows parts. Files are kept under `id`, which is the daemon's.
pub(crate) fn show(parts: &[Value], source: Source<'_>, id: &str) -> Vec<Value> {
    parts.iter().enumerate().map(|(at, part)| one(part, source, id, at)).collect()
}

fn one(part: &Value, source: Source<'_>, id: &str, at: usize) -> Value {
    let author = source.author.as_str();
    if let Some(text) = part["text"].as_str() {
        return json!({"type": "text", "text": source.show("text", text), "author": author});
    }
    if let Some(url) = part["url"].as_str() {
        return json!({"type": "link", "url": source.show("link", url), "author": author});
    }
    if let Some(raw) = part["raw"].as_str() {
        let bytes = BASE64_STANDARD.decode(raw).unwrap_or_default();
        let name = part["filename"].as_str();
        // What this side sent it has already.
        let path = (source.author == Author::Peer).then(|| files::keep(id, at, name, &bytes)).flatten();
        return Object::new()
            .set("type", "file")
            .maybe("name", name.map(|name| source.show("file-name", name)))
            .maybe("mediaType", part["mediaType"].as_str().and_then(media_type))
            .set("bytes", bytes.len())
            .maybe("path", path)
            .set("author", author)
            .into();
    }
    // As text: no reader's numbers are wide enough for every peer's (user report 39).
    let data = part.get("data").unwrap_or(&Value::Null).to_string();
    json!({"type": "data", "json": source.show("data", &data), "author": author})
}

/// `ToolTask` of a record or a summary.
pub(crate) async fn task(cx: &Context<'_>, task: &Value) -> Result<Value, Failure> {
    let id = word(task, "taskId");
    let asked = is_asked(task);
    let with = peer_address(&task["peer"]);
    // §11 "Authors": the request is the requester's, the status the executor's.
    let title = Source { author: Author::of(!asked), from: with, id: Some(id) };
    let status = Source { author: Author::of(asked), from: with, id: Some(id) };
    let said = task["statusPreview"].as_str();
    let consent = if asked { Some(cx.consent(&Value::Null, &task["peer"]).await?) } else { None };
    Ok(Object::new()
        .set("id", id)
        .set("role", if asked { "asked" } else { "mine" })
        .set("with", with)
        .set("state", short_state(&task["state"]))
        .set("title", title.show("title", word(task, "title")))
        .set("titleAuthor", title.author.as_str())
        .maybe("status", said.map(|said| status.show("status", said)))
        .maybe("statusAuthor", said.map(|_| status.author.as_str()))
        .set("updated", time(&task["updatedAt"]))
        .maybe("consent", consent)
        .into())
}

/// Whether this session executes the task.
pub(crate) fn is_asked(task: &Value) -> bool {
    word(task, "role") == "executor"
}

/// The artifacts of a record.
pub(crate) fn artifacts(task: &Value) -> Vec<Value> {
    let id = word(task, "taskId");
    let source =
        Source { author: Author::of(is_asked(task)), from: peer_address(&task["peer"]), id: Some(id) };
    items(task, "artifacts")
        .iter()
        .enumerate()
        .map(|(at, artifact)| {
            Object::new()
                .set("id", artifact_id(&artifact["artifactId"], at))
                .maybe("name", artifact["name"].as_str().map(|name| source.show("artifact-name", name)))
                .set("author", source.author.as_str())
                .set("parts", show(items(artifact, "parts"), source, &format!("{id}-a{at}")))
                .into()
        })
        .collect()
}

/// An artifact's id where it is only an id; the executor may write a text there.
fn artifact_id(id: &Value, at: usize) -> String {
    let plain = |id: &&str| {
        (1..=64).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    id.as_str().filter(plain).map_or_else(|| format!("artifact-{}", at + 1), str::to_owned)
}
