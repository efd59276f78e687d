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

/// The text with lines broken between words where they are wider than `columns`; continued lines are moved in as far as
/// theirs. Styles take no room.
pub(crate) fn wrap(text: &str, columns: usize) -> String {
    let wide = |text: &str| anstream::adapter::strip_str(text).to_string().width();
    let mut wrapped = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        if wide(line.trim_end_matches('\n')) <= columns {
            wrapped.push_str(line);
            continue;
        }
        let indent = &line[..line.len() - line.trim_start_matches(' ').len()];
        let mut at = 0;
        for word in line.split_inclusive(' ') {
            let width = wide(word.trim_end());
            if at > indent.len() && at + width > columns {
                wrapped.truncate(wrapped.trim_end_matches(' ').len());
                wrapped.push('\n');
                wrapped.push_str(indent);
                at = indent.len();
            }
            wrapped.push_str(word);
            at += wide(word.trim_end_matches('\n'));
        }
    }
    wrapped
}

/// `text` after `lead`, broken between words, its further lines as far in as its first.
pub(super) fn hang(lead: &str, text: &str, columns: usize) -> String {
    let width = anstream::adapter::strip_str(lead).to_string().width();
    // On a narrow terminal too little would be left beside it.
    let (indent, first) = if width * 2 > columns { (INDENT.len(), width) } else { (width, width) };
    let mut lines = String::from(lead);
    let mut at = first;
    for (number, word) in text.split(' ').enumerate() {
        let wide = anstream::adapter::strip_str(word).to_string().width();
        if number > 0 {
            if at + 1 + wide > columns && at > indent {
                lines.push('\n');
                lines.push_str(&" ".repeat(indent));
                at = indent;
            } else {
                lines.push(' ');
                at += 1;
            }
        } else if at + wide > columns && width > INDENT.len() && indent < first {
            lines.truncate(lines.trim_end().len());
            lines.push('\n');
            lines.push_str(&" ".repeat(indent));
            at = indent;
        }
        lines.push_str(word);
        at += wide;
    }
    lines
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
    fn long_lines_break_between_words_and_keep_their_indent() {
        assert_eq!(wrap("one two three\nfour", 8), "one two\nthree\nfour");
        assert_eq!(wrap("  one two three", 9), "  one two\n  three");
        assert_eq!(wrap("unbreakable-and-long x", 6), "unbreakable-and-long\nx");
        assert_eq!(wrap("\u{1b}[1mone\u{1b}[0m two", 7), "\u{1b}[1mone\u{1b}[0m two");
        assert_eq!(wrap("", 8), "");
    }

    #[test]
    fn what_hangs_stands_below_its_first_word() {
        assert_eq!(hang("ok  ", "one two three", 12), "ok  one two\n    three");
        assert_eq!(hang("\u{1b}[1mok\u{1b}[0m  ", "one two", 80), "\u{1b}[1mok\u{1b}[0m  one two");
        assert_eq!(hang("a long lead  ", "one two three", 20), "a long lead  one two\n    three");
        assert_eq!(hang("a long lead  ", "unbreakable", 20), "a long lead\n    unbreakable");
        assert_eq!(hang("lead  ", "", 80), "lead  ");
    }

    #[test]
    fn nothing_is_cut_that_fits() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("日本", 3), "日…");
        assert_eq!(cut("", 0), "");
    }
}
