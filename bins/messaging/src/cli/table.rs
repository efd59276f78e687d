//! Tables for a terminal: columns while they fit, else the last cell on a line of its own, else one line a cell.
//!
//! Identifiers are never cut, since people copy them; the last cell (a preview, a title) is.

use super::output::FAINT;
use unicode_width::UnicodeWidthStr;

/// Least room for a last cell beside the others.
const LAST_LEAST: usize = 32;
/// How far a cell on a line of its own is moved in.
const INDENT: &str = "    ";

/// `rows` under `header`, no line wider than `columns` but by an identifier.
pub(super) fn layout(header: &[&str], rows: &[Vec<String>], columns: usize) -> String {
    let Some((last_title, titles)) = header.split_last() else { return String::new() };
    let mut widths: Vec<usize> = titles.iter().map(|title| title.width()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.width());
        }
    }
    let fixed: usize = widths.iter().map(|width| width + 2).sum();
    let longest = rows.iter().filter_map(|row| row.get(titles.len())).map(|cell| cell.width()).max();
    let longest = longest.unwrap_or_default().max(last_title.width());
    let left = columns.saturating_sub(fixed);
    if fixed > columns + 2 {
        return records(header, rows, columns);
    }
    let beside = left >= longest.min(LAST_LEAST);
    let line = |cells: &[&str]| {
        let padded: Vec<String> =
            cells.iter().zip(&widths).map(|(cell, width)| format!("{}  ", pad(cell, *width))).collect();
        padded.concat()
    };
    let mut lines = Vec::new();
    let title = if beside { *last_title } else { "" };
    lines.push(format!("{FAINT}{}{FAINT:#}", format!("{}{title}", line(titles)).trim_end()));
    for row in rows {
        let cells: Vec<&str> = row.iter().take(titles.len()).map(String::as_str).collect();
        let last = row.get(titles.len()).map(String::as_str).unwrap_or_default();
        if beside {
            lines.push(format!("{}{}", line(&cells), cut(last, left)).trim_end().to_owned());
        } else {
            lines.push(line(&cells).trim_end().to_owned());
            if !last.is_empty() {
                lines.push(format!("{INDENT}{}", cut(last, columns.saturating_sub(INDENT.len()))));
            }
        }
    }
    lines.join("\n")
}

/// One line a cell, for rows wider than the terminal.
fn records(header: &[&str], rows: &[Vec<String>], columns: usize) -> String {
    let width = header.iter().map(|title| title.width()).max().unwrap_or_default();
    let mut lines = Vec::new();
    for row in rows {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        for (title, cell) in header.iter().zip(row).filter(|(_, cell)| !cell.is_empty()) {
            let room = if *title == header[header.len() - 1] {
                columns.saturating_sub(width + 2)
            } else {
                usize::MAX
            };
            lines.push(format!("{FAINT}{}{FAINT:#}  {}", pad(title, width), cut(cell, room)));
        }
    }
    lines.join("\n")
}

fn pad(cell: &str, width: usize) -> String {
    format!("{cell}{}", " ".repeat(width.saturating_sub(cell.width())))
}

/// At most `columns` wide, the last one an ellipsis when something was cut.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut kept = String::new();
    for character in text.chars() {
        kept.push(character);
        if kept.width() >= columns {
            kept.pop();
            break;
        }
    }
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn columns_then_a_line_below_then_records() {
        let rows = vec![
            vec!["01M7".to_owned(), "alice".to_owned(), "is the build green today?".to_owned()],
            vec!["01M8".to_owned(), "b".to_owned(), "日本語日本語日本語".to_owned()],
        ];
        let header = ["ID", "FROM", "PREVIEW"];
        assert_eq!(
            plain(&layout(&header, &rows, 40)),
            "ID    FROM   PREVIEW\n01M7  alice  is the build green today?\n01M8  b      日本語日本語日本語"
        );
        assert_eq!(
            plain(&layout(&header, &rows, 20)),
            "ID    FROM\n01M7  alice\n    is the build gr…\n01M8  b\n    日本語日本語日…"
        );
        assert_eq!(plain(&layout(&header, &rows[..1], 10)), "ID       01M7\nFROM     alice\nPREVIEW  …");
        assert_eq!(plain(&layout(&header, &[], 80)), "ID  FROM  PREVIEW");
    }

    #[test]
    fn nothing_is_cut_that_fits() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("日本", 3), "日…");
        assert_eq!(cut("", 0), "");
    }
}
