//! The table of verbs as data: what completions and manual pages are generated from.
//!
//! It is read off the parser's own definitions, so it cannot name a verb or a flag that the parser does not take. The two
//! services that parse their own flags (`relay`, `daemon run`) are added from theirs.

pub(super) mod complete;
pub(super) mod man;
#[cfg(test)]
mod tests;

use super::args::Cli;
use crate::flags::Flag;
use argh::{ArgsInfo, CommandInfoWithArgs, FlagInfoKind, Optionality};

/// One verb, or a group of verbs.
#[derive(Debug)]
pub(super) struct Node {
    /// Its last word; `messaging` for the root.
    pub(super) name: String,
    pub(super) about: String,
    pub(super) options: Vec<Opt>,
    pub(super) arguments: Vec<Argument>,
    pub(super) examples: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) verbs: Vec<Node>,
}

/// A flag.
#[derive(Debug)]
pub(super) struct Opt {
    /// With its dashes.
    pub(super) long: String,
    /// What its value is called; nothing for a switch.
    pub(super) value: Option<String>,
    pub(super) about: String,
    pub(super) required: bool,
    pub(super) repeats: bool,
}

/// A positional argument.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) required: bool,
    pub(super) repeats: bool,
}

/// The flags that may stand anywhere.
pub(super) fn everywhere() -> Vec<Opt> {
    let option = |long: &str, value: Option<&str>, about: &str| Opt {
        long: long.to_owned(),
        value: value.map(str::to_owned),
        about: about.to_owned(),
        required: false,
        repeats: false,
    };
    vec![
        option("--home", Some("dir"), "the home (default $MESSAGING_HOME, else ~/.messaging)"),
        option("--json", None, "one JSON document on standard output instead of text"),
        option("--help", None, "help with examples"),
    ]
}

/// The whole table.
pub(super) fn table() -> Node {
    let mut root = read("messaging", &Cli::get_args_info());
    let daemon = root.verbs.iter_mut().find(|verb| verb.name == "daemon");
    if let Some(daemon) = daemon {
        daemon.verbs.push(service(
            "run",
            "run the daemon in the foreground, for a service manager",
            crate::messagingd::FLAGS,
            "messaging daemon run --log-level debug",
        ));
    }
    root.verbs.push(service(
        "relay",
        "run a relay: it stores and forwards sealed envelopes for teams",
        crate::relay::FLAGS,
        "messaging relay --listen 127.0.0.1:8787 --db /var/lib/messaging/relay.db",
    ));
    root.verbs.sort_by(|one, other| one.name.cmp(&other.name));
    root
}

fn service(name: &str, about: &str, flags: &[Flag], example: &str) -> Node {
    let options = flags
        .iter()
        .filter(|flag| !matches!(flag.name, "help" | "json" | "home"))
        .map(|flag| Opt {
            long: format!("--{}", flag.name),
            value: (!flag.value.is_empty()).then(|| flag.value.trim_matches(['<', '>']).to_owned()),
            about: flag.help.to_owned(),
            required: false,
            repeats: flag.repeats,
        })
        .collect();
    Node {
        name: name.to_owned(),
        about: about.to_owned(),
        options,
        arguments: Vec::new(),
        examples: vec![example.to_owned()],
        notes: Vec::new(),
        verbs: Vec::new(),
    }
}

fn read(name: &str, info: &CommandInfoWithArgs) -> Node {
    let options = info
        .flags
        .iter()
        .filter(|flag| !flag.hidden && flag.long != "--help")
        .map(|flag| Opt {
            long: flag.long.to_owned(),
            value: match flag.kind {
                FlagInfoKind::Switch => None,
                FlagInfoKind::Option { arg_name } => Some(arg_name.to_owned()),
            },
            about: flag.description.to_owned(),
            required: flag.optionality == Optionality::Required,
            repeats: flag.optionality == Optionality::Repeating,
        })
        .collect();
    let arguments = info
        .positionals
        .iter()
        .filter(|argument| !argument.hidden)
        .map(|argument| Argument {
            name: argument.name.to_owned(),
            about: argument.description.to_owned(),
            required: argument.optionality == Optionality::Required,
            repeats: matches!(argument.optionality, Optionality::Repeating | Optionality::Greedy),
        })
        .collect();
    let lines = |texts: &[&str]| {
        let lines = texts.iter().flat_map(|text| text.lines());
        lines.map(str::to_owned).collect()
    };
    Node {
        name: name.to_owned(),
        about: info.description.to_owned(),
        options,
        arguments,
        examples: lines(info.examples),
        notes: info.notes.iter().map(|&note| note.to_owned()).collect(),
        verbs: info.commands.iter().map(|verb| read(verb.name, &verb.command)).collect(),
    }
}

impl Node {
    /// Calls `visit` with every node and its words after `messaging`, the root's first.
    pub(super) fn walk<'a>(&'a self, visit: &mut impl FnMut(&[&'a str], &'a Node)) {
        fn go<'a>(node: &'a Node, path: &mut Vec<&'a str>, visit: &mut impl FnMut(&[&'a str], &'a Node)) {
            visit(path, node);
            for verb in &node.verbs {
                path.push(&verb.name);
                go(verb, path, visit);
                path.pop();
            }
        }
        go(self, &mut Vec::new(), visit);
    }

    /// The flags that take a value, anywhere in the table.
    pub(super) fn valued(&self) -> Vec<String> {
        let mut longs = Vec::new();
        self.walk(&mut |_, node| {
            longs.extend(node.options.iter().filter(|option| option.value.is_some()).map(|o| o.long.clone()));
        });
        longs.extend(everywhere().into_iter().filter(|option| option.value.is_some()).map(|o| o.long));
        longs.sort();
        longs.dedup();
        longs
    }

    /// `[--limit <n>] <id>`, without the words that lead here.
    pub(super) fn synopsis(&self) -> String {
        let mut words = Vec::new();
        for option in &self.options {
            let text = match &option.value {
                Some(value) => format!("{} <{value}>", option.long),
                None => option.long.clone(),
            };
            let text = if option.required { text } else { format!("[{text}]") };
            words.push(if option.repeats { format!("{text}...") } else { text });
        }
        for argument in &self.arguments {
            let text = format!("<{}>", argument.name);
            let text = if argument.required || argument.repeats { text } else { format!("[{text}]") };
            words.push(if argument.repeats { format!("[{text}...]") } else { text });
        }
        if !self.verbs.is_empty() {
            words.push("<verb> [...]".to_owned());
        }
        words.join(" ")
    }
}
