//! The one line an inbox shows of a message (contract ipc §2).

use super::clean::{cut, one_line};
use super::points::{Points, push};
use crate::a2a::{Part, PartContent};

/// How long a preview may be, in UTF-16 units.
const PREVIEW_UNITS: usize = 200;

/// The preview of a message's parts: the texts as one line, a stand-in for each other part.
///
/// Hidden points stay as they are: whoever shows a preview cleans it for where it is shown.
#[must_use]
pub fn preview(parts: &[Part]) -> String {
    let words = parts.iter().map(|part| match &part.content {
        PartContent::Text(text) => text.clone(),
        PartContent::Raw(_) => match part.filename.as_ref().or(part.media_type.as_ref()) {
            Some(name) => format!("[file {name}]"),
            None => "[file]".to_owned(),
        },
        PartContent::Data(_) => "[data]".to_owned(),
        PartContent::Url(_) => "[link]".to_owned(),
    });
    let text = words.collect::<Vec<_>>().join(" ");
    cut(one_line(&text.points(), push), PREVIEW_UNITS)
}
