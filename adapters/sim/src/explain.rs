//! A readable timeline of a run: every frame, answer, event and stage, one a line.

use crate::invariants::{rows, word};
use crate::world::{Commit, Who};
use serde_json::Value;

/// The longest line of a timeline, in characters.
const LINE: usize = 220;

/// What a step says, as lines: when, who, what.
pub(crate) fn lines(commit: &Commit<'_>) -> Vec<String> {
    let who = match commit.who {
        Who::Relay => "relay".to_owned(),
        Who::Daemon(number) => format!("machine {number}"),
    };
    let mut lines: Vec<String> = Vec::new();
    for (key, sent) in rows(commit, "sent") {
        let stages = sent.get("history").and_then(Value::as_array).into_iter().flatten();
        let stages: Vec<String> = stages.map(|reached| word(reached, &["stage"])).collect();
        let id = String::from_utf8_lossy(key).trim_end_matches('\0').to_owned();
        lines.push(format!("stage {id} {}", stages.join(" > ")));
    }
    for (_, task) in rows(commit, "task") {
        lines.push(format!(
            "task {} {} {}",
            word(&task, &["id"]),
            word(&task, &["role"]),
            word(&task, &["status", "state"])
        ));
    }
    for (_, item) in rows(commit, "inbox") {
        lines.push(format!(
            "inbox {} {} {:?}",
            word(&item, &["id"]),
            word(&item, &["stage"]),
            word(&item, &["preview"])
        ));
    }
    for (_, ask) in rows(commit, "held") {
        lines.push(format!("held {} {:?}", word(&ask, &["id"]), word(&ask, &["preview"])));
    }
    lines.extend(commit.effects.iter().filter_map(|effect| said(effect)));
    let time = format!("{:>11}", format!("{}.{:03}", commit.mono / 1_000, commit.mono % 1_000));
    let cut = |line: String| line.chars().take(LINE).collect::<String>();
    lines.into_iter().map(|line| cut(format!("{time} {who:<10} {line}"))).collect()
}

fn said(effect: &str) -> Option<String> {
    let effect: Value = serde_json::from_str(effect).ok()?;
    let (name, what) = match &effect {
        Value::Object(effect) => effect.iter().next()?,
        other => return Some(other.to_string()),
    };
    Some(match name.as_str() {
        "Send" => {
            let conn = &what["conn"];
            let (kind, frame) = what["frame"].as_object()?.iter().next()?;
            format!("to {conn}: {} {}", kind.to_lowercase(), short(frame))
        }
        "LinkSend" => {
            let frame: Value = serde_json::from_str(what["text"].as_str()?).ok()?;
            format!("to relay: {} {}", word(&frame, &["t"]), short(&frame))
        }
        "IpcSend" => format!("to client {}: {}", what["conn"], what["line"].as_str()?),
        "Count" | "Mark" => return None,
        name => format!("{} {}", name.to_lowercase(), short(what)),
    })
}

/// A frame without its long parts.
fn short(frame: &Value) -> String {
    let env = match &frame["env"] {
        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
        other => other.clone(),
    };
    if env.is_object() {
        let (id, kind) = (word(&env, &["id"]), word(&env, &["type"]));
        return format!("{kind} {id} from {} to {}", env["from"], env["to"]);
    }
    frame.to_string()
}

/// The lines of a timeline that hold one of these texts; all when there are none.
#[must_use]
pub fn filter(trace: Vec<String>, texts: &[String]) -> Vec<String> {
    trace
        .into_iter()
        .filter(|line| texts.is_empty() || texts.iter().any(|text| line.contains(text)))
        .collect()
}
