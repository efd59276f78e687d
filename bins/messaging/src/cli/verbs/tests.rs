//! The table against the parser, and what is generated from it against the shells.

use super::*;
use std::process::{Command, Stdio};

#[test]
fn every_verb_has_an_example_that_parses_as_that_verb() {
    let root = table();
    let mut seen = 0;
    root.walk(&mut |path, node| {
        if path.is_empty() {
            return;
        }
        assert!(!node.about.is_empty(), "{path:?} says nothing about itself");
        assert!(!node.examples.is_empty(), "{path:?} has no example");
        if path == ["relay"] || path == ["daemon", "run"] {
            return;
        }
        for example in &node.examples {
            let words = split(example);
            let start = words.iter().position(|word| word == "messaging").unwrap();
            let hoisted = super::super::args::hoist(words[start..].to_vec()).unwrap();
            let rest: Vec<&str> = hoisted.rest.iter().map(String::as_str).collect();
            let parsed = <Cli as argh::FromArgs>::from_args(&["messaging"], &rest);
            assert!(parsed.is_ok(), "{example}: {:?}", parsed.err().map(|early| early.output));
            assert_eq!(rest[0], path[0], "{example} is an example of {path:?}");
            seen += 1;
        }
    });
    assert!(seen > 60, "{seen}");
}

/// Words of a command line as a shell splits the plain ones we write, up to a redirection.
fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for character in line.chars() {
        match character {
            '"' => quoted = !quoted,
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    let end = words.iter().position(|word| word == ">" || word == "<").unwrap_or(words.len());
    words.truncate(end);
    words.into_iter().filter(|word| !word.is_empty()).collect()
}

#[test]
fn no_flag_takes_a_value_in_one_verb_and_none_in_another() {
    let root = table();
    let valued = root.valued();
    root.walk(&mut |path, node| {
        for option in node.options.iter().filter(|option| option.value.is_none()) {
            assert!(!valued.contains(&option.long), "{} of {path:?}", option.long);
        }
    });
}

/// What bash offers for the words of a line, the last one unfinished.
fn offered(words: &[&str]) -> Vec<String> {
    let script = format!(
        "{}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_messaging\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        complete::bash(&table()),
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn bash_completes_verbs_flags_and_groups() {
    assert_eq!(offered(&["messaging", "contac"]), ["contact", "contacts"]);
    assert_eq!(offered(&["messaging", "daemon", "sta"]), ["start", "status"]);
    assert_eq!(offered(&["messaging", "status", "--w"]), ["--watch"]);
    assert!(offered(&["messaging", "daemon", "status", "--w"]).is_empty(), "not the other `status`");
    assert_eq!(offered(&["messaging", "--home", "team", "team", "cl"]), ["claim"]);
    assert!(offered(&["messaging", "--home", "te"]).is_empty(), "a value is not a verb");
    assert_eq!(offered(&["messaging", "channel", "remove", "eng", "--js"]), ["--json"]);
    assert_eq!(offered(&["messaging", "relay", "--met"]), ["--metrics"]);
}

/// Feeds a script to a shell's syntax check, where that shell is installed (CI installs it).
fn syntax(shell: &str, script: &str) {
    let child = Command::new(shell).args(["-n"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = child else { return };
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{shell}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_script_is_one_its_shell_reads() {
    let root = table();
    syntax("bash", &complete::bash(&root));
    syntax("zsh", &complete::zsh(&root));
    syntax("fish", &complete::fish(&root));
}

#[test]
fn every_verb_has_a_page_that_groff_takes_without_a_warning() {
    let root = table();
    let pages = man::pages(&root);
    assert_eq!(pages.len(), root.verbs.len() + 1);
    for (name, text) in &pages {
        assert!(text.starts_with(".TH MESSAGING"), "{name}");
        for line in text.lines().filter(|line| line.starts_with(['.', '\''])) {
            let request = line.split(' ').next().unwrap();
            let known = [".TH", ".SH", ".SS", ".TP", ".B", ".BR", ".I", ".PP", ".nf", ".fi"];
            assert!(known.contains(&request), "{name}: {line}");
        }
    }
    let groff = Command::new("groff")
        .args(["-man", "-ww", "-Tutf8", "-z", "/dev/stdin"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut groff) = groff else { return };
    let all: String = pages.iter().map(|(_, text)| text.as_str()).collect();
    std::io::Write::write_all(&mut groff.stdin.take().unwrap(), all.as_bytes()).unwrap();
    let output = groff.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}
