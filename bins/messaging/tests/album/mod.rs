//! Screens of verbs, compared with those in `golden/`.
#![allow(clippy::unwrap_used)]

use crate::terminal::{Terminal, normalise, plain};
use crate::world::{PATIENCE, PROGRAM};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The screens of one run.
pub(crate) struct Album {
    pub(crate) seen: BTreeSet<String>,
    differ: Vec<String>,
    /// What stands for `/tmp/world` in a screen.
    pub(crate) folder: String,
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

pub(crate) fn program(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    // Not by its flag, which next steps would repeat: how long it is differs from machine to machine.
    command.args(arguments).env("MESSAGING_HOME", home);
    command
}

impl Album {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { seen: BTreeSet::new(), differ: Vec::new(), folder: folder.to_str().unwrap().to_owned() }
    }

    /// Runs a verb in a terminal and keeps its screen as `name`. Returns the screen.
    pub(crate) fn shot(&mut self, name: &str, home: &Path, arguments: &[&str]) -> String {
        self.shot_with(name, home, arguments, |_| {})
    }

    pub(crate) fn shot_with(
        &mut self,
        name: &str,
        home: &Path,
        arguments: &[&str],
        act: impl FnOnce(&mut Terminal),
    ) -> String {
        let mut terminal = Terminal::start(&mut program(home, arguments));
        act(&mut terminal);
        let (text, status) = terminal.finish(PATIENCE);
        let text = plain(&text);
        if !name.starts_with("service-show") && !["usage-as-json", "relay-refused"].contains(&name) {
            // The length of the tree's own path is not the screen's.
            fits(&text.replace(&self.folder, "/tmp/world"));
        }
        let words: Vec<String> = arguments
            .iter()
            .map(|word| if word.contains([' ', '#']) { format!("\"{word}\"") } else { (*word).to_owned() })
            .collect();
        let ended = status.map_or_else(|| "by a signal".to_owned(), |status| status.to_string());
        let screen =
            format!("$ messaging {}\n{text}[exit {ended}]\n", words.join(" ")).replacen(" \n", "\n", 1);
        self.keep(name, &normalise(&screen, &self.folder));
        text
    }

    pub(crate) fn keep(&mut self, name: &str, screen: &str) {
        assert!(self.seen.insert(name.to_owned()), "{name} twice");
        let path = golden().join(format!("{name}.txt"));
        let known = std::fs::read_to_string(&path).unwrap_or_default();
        if known == screen {
            return;
        }
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, screen).unwrap();
        } else {
            self.differ.push(format!("--- {name}: expected\n{known}--- {name}: shown\n{screen}"));
        }
    }

    pub(crate) fn check(&self) {
        assert!(self.differ.is_empty(), "{}", self.differ.join("\n"));
    }
}

/// No line is wider than the terminal, but for what has no place to break it.
pub(crate) fn fits(text: &str) {
    for line in text.lines().filter(|line| line.trim_start().contains(' ')) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}
