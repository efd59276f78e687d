//! What a message holds, for a person to read.

use super::output;
use super::value::Read;
use serde_json::Value;

/// A text of somebody else: what we say before it, nothing where a body begins, and what they wrote.
pub(crate) type Said = (String, String);

/// The parts of a message, in order.
pub(crate) fn said(parts: &[Value]) -> Vec<Said> {
    let mut said = Vec::new();
    for part in parts {
        let name = part.maybe("filename");
        if let Some(text) = part.maybe("text") {
            said.extend(name.map(|name| (format!("[file, {} bytes] ", text.len()), name.to_owned())));
            said.push((String::new(), text.to_owned()));
        } else if let Some(raw) = part.maybe("raw") {
            let name = name.or_else(|| part.maybe("mediaType")).unwrap_or("without a name");
            said.push((format!("[file, {} bytes] ", decoded_len(raw)), name.to_owned()));
        } else if let Some(url) = part.maybe("url") {
            said.push(("[link] ".to_owned(), url.to_owned()));
        } else if let Some(data) = part.get("data") {
            said.push(("[data] ".to_owned(), data.to_string()));
        }
    }
    said
}

/// How many bytes a base64 text stands for.
fn decoded_len(raw: &str) -> usize {
    (raw.len() / 4 * 3).saturating_sub(raw.bytes().rev().take(2).filter(|byte| *byte == b'=').count())
}

/// The parts of a message as rows.
pub(crate) fn text(parts: &[Value]) -> String {
    let rows: Vec<String> = said(parts)
        .iter()
        .map(|(lead, text)| if lead.is_empty() { output::quoted(text) } else { output::said(lead, text) })
        .collect();
    rows.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_part_says_what_it_is_before_what_they_wrote() {
        let parts = [
            json!({"text": "one\n[file, 1 bytes] two"}),
            json!({"text": "v1", "filename": "tag"}),
            json!({"raw": "AAE=", "filename": "a\nb"}),
            json!({"raw": "", "mediaType": "text/plain"}),
            json!({"url": "https://x"}),
            json!({"data": {"a": 1}}),
        ];
        let rows = text(&parts);
        let shown = "│ one\n│ [file, 1 bytes] two\n[file, 2 bytes] tag\n│ v1\n[file, 2 bytes] a b\n\
            [file, 0 bytes] text/plain\n[link] https://x\n[data] {\"a\":1}";
        assert_eq!(rows, shown);
        assert_eq!(decoded_len("="), 0, "not base64");
    }
}
