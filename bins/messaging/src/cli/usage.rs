//! Wrong arguments, said in a sentence: the parser's own words are lists, and name neither the verb nor its help.

use super::failure::Failure;
use super::output::clean;
use super::verbs::{Node, everywhere, table};

/// Most edits between what was typed and what is offered instead.
const NEAR: usize = 2;

/// The error of `words`, which the parser refused with `said`.
pub(super) fn refused(words: &[&str], said: &str) -> Failure {
    let root = table();
    let (node, path) = place(&root, words);
    let text = sentences(node, &path, said).join("; ");
    let known: String = text.chars().take(300).collect();
    Failure::usage(clean(&known)).with_remedy(help_of(&path))
}

/// The failure of a verb that ran, with the help of the verb where its code alone has nothing better to say.
pub(super) fn with_help(words: &[&str], failure: Failure) -> Failure {
    let general = Failure::new(&failure.code, "").remedy;
    if !matches!(failure.code.as_str(), "invalid_request" | "usage") || failure.remedy != general {
        return failure;
    }
    let root = table();
    let (_, path) = place(&root, words);
    failure.with_remedy(help_of(&path))
}

/// The deepest verb that `words` lead to, and its words.
fn place<'a>(root: &'a Node, words: &[&str]) -> (&'a Node, Vec<&'a str>) {
    let valued = root.valued();
    let (mut node, mut path) = (root, Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if valued.iter().any(|option| option == word) {
            words.next();
            continue;
        }
        match node.verbs.iter().find(|verb| verb.name == *word) {
            Some(verb) => {
                node = verb;
                path.push(&*verb.name);
            }
            // What follows are the verb's own arguments.
            None if !word.starts_with('-') => break,
            None => {}
        }
    }
    (node, path)
}

fn help_of(path: &[&str]) -> String {
    match path {
        [] => "run `messaging help`.".to_owned(),
        path => format!("run `messaging help {}`.", path.join(" ")),
    }
}

/// What the parser said, each thing a clause.
fn sentences(node: &Node, path: &[&str], said: &str) -> Vec<String> {
    let verb = if path.is_empty() { "messaging".to_owned() } else { path.join(" ") };
    let mut clauses = Vec::new();
    let mut lines = said.lines().peekable();
    while let Some(line) = lines.next() {
        let mut names = Vec::new();
        while let Some(name) = lines.next_if(|next| next.starts_with(' ')) {
            names.push(name.trim());
        }
        clauses.push(match line.trim_end() {
            "" => continue,
            "Required positional arguments not provided:" => {
                let names: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
                format!("{verb} needs {}", names.join(" and "))
            }
            "Required options not provided:" => format!("{verb} needs {}", names.join(" and ")),
            "One of the following subcommands must be present:" => match path {
                [] => "it needs a verb, such as demo, team, send, inbox or doctor".to_owned(),
                _ => {
                    let names: Vec<&str> = node.verbs.iter().map(|verb| &*verb.name).collect();
                    format!("{verb} needs one of {}", names.join(", "))
                }
            },
            line => match line.strip_prefix("Unrecognized argument: ") {
                Some(word) => unknown(node, &verb, word),
                None => value(line, &verb),
            },
        });
    }
    clauses
}

/// A word that is neither a flag, a verb nor an argument that is left.
fn unknown(node: &Node, verb: &str, word: &str) -> String {
    let flags: Vec<String> =
        node.options.iter().chain(&everywhere()).map(|option| option.long.clone()).collect();
    let verbs: Vec<String> = node.verbs.iter().map(|verb| verb.name.clone()).collect();
    let (what, known) = if word.starts_with('-') {
        ("flag", flags)
    } else if verbs.is_empty() {
        let takes_text = node.arguments.iter().any(|argument| matches!(&*argument.name, "text" | "query"));
        let hint = if takes_text { "; put quotes around a text of several words" } else { "" };
        return format!("{verb} takes no further argument: {word}{hint}");
    } else {
        ("verb", verbs)
    };
    let near = known.iter().map(|known| (distance(known, word), known)).min();
    let hint = match near {
        Some((edits, near)) if edits <= NEAR => format!("; did you mean {near}?"),
        _ => String::new(),
    };
    format!("{verb} has no {what} {word}{hint}")
}

/// A value that does not read, or a flag that stands twice.
fn value(line: &str, verb: &str) -> String {
    let between = |open: &str| line.split_once(open).and_then(|(_, rest)| rest.split_once('\''));
    match (line.starts_with("Error parsing "), between("option '"), between("positional argument '")) {
        (true, Some((name, rest)), _) | (true, _, Some((name, rest))) => {
            let why = rest.rsplit_once("': ").map_or("it does not read", |(_, why)| why);
            let why =
                if why.contains("digit") || why.contains("integer") { "it takes a number" } else { why };
            format!("{verb}: the value of {name} does not read: {why}")
        }
        (false, Some((name, _)), _) if line.starts_with("No value provided") => {
            format!("{verb}: {name} needs a value")
        }
        _ => line.trim_end_matches('.').to_owned(),
    }
}

/// Edits between two words: changed, missing, further and swapped letters.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().take(64).collect());
    let mut rows = vec![(0..=other.len()).collect::<Vec<usize>>()];
    for (i, a) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in other.iter().enumerate() {
            let swapped = i > 0 && j > 0 && one[i - 1] == *b && *a == other[j - 1];
            let change = rows[i][j] + usize::from(a != b);
            let mut least = change.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if swapped {
                least = least.min(rows[i - 1][j - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::args::Cli;

    fn said(words: &[&str]) -> (String, String) {
        let early = <Cli as argh::FromArgs>::from_args(&["messaging"], words).err().unwrap();
        assert!(early.status.is_err(), "{words:?} is help");
        let failure = refused(words, &early.output);
        assert_eq!(failure.code, "usage");
        (failure.text, failure.remedy)
    }

    #[test]
    fn what_is_wrong_names_the_verb_and_its_help() {
        for (words, text, remedy) in [
            (&[][..], "it needs a verb, such as demo, team, send, inbox or doctor", "run `messaging help`."),
            (&["sned", "bob"], "messaging has no verb sned; did you mean send?", "run `messaging help`."),
            (&["send"], "send needs <to>", "run `messaging help send`."),
            (&["--as", "x", "send"], "send needs <to>", "run `messaging help send`."),
            (
                &["send", "bob", "a", "b"],
                "send takes no further argument: b; put quotes around a text of several words",
                "run `messaging help send`.",
            ),
            (&["inbox", "x"], "inbox takes no further argument: x", "run `messaging help inbox`."),
            (
                &["send", "--wiat", "3", "bob", "x"],
                "send has no flag --wiat; did you mean --wait?",
                "run `messaging help send`.",
            ),
            (&["send", "bob", "x", "--wait"], "send: --wait needs a value", "run `messaging help send`."),
            (
                &["send", "bob", "x", "--wait", "soon"],
                "send: the value of --wait does not read: it takes a number",
                "run `messaging help send`.",
            ),
            (
                &["team"],
                "team needs one of create, prepare, invite, revoke, join, pair, add, claim, pair-cancel, info, remove, role",
                "run `messaging help team`.",
            ),
            (
                &["team", "inivte"],
                "team has no verb inivte; did you mean invite?",
                "run `messaging help team`.",
            ),
            (&["team", "zebra"], "team has no verb zebra", "run `messaging help team`."),
        ] {
            assert_eq!(said(words), (text.to_owned(), remedy.to_owned()), "{words:?}");
        }
        let (text, remedy) = said(&["team", "create", "--name", "x"]);
        assert_eq!(text, "team create needs --relay and --person and --label");
        assert_eq!(remedy, "run `messaging help team create`.");
    }

    #[test]
    fn what_was_typed_is_inert_and_short() {
        let (text, _) = said(&["\u{1b}[2J"]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        let (text, _) = said(&[&"x".repeat(10_000)]);
        assert!(text.chars().count() <= 300);
    }

    #[test]
    fn edits_are_counted() {
        for (one, other, edits) in
            [("send", "sned", 1), ("send", "send", 0), ("", "ab", 2), ("inbox", "inbx", 1), ("ui", "me", 2)]
        {
            assert_eq!(distance(one, other), edits, "{one} {other}");
        }
    }
}
