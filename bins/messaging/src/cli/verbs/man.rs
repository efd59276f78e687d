//! Manual pages: `messaging(1)` and one page for each verb.

use super::{Node, Opt, everywhere};

/// A page's file name and text.
pub(crate) type Page = (String, String);

/// Exit statuses, as every page lists them.
const STATUSES: &[(&str, &str)] = &[
    ("0", "done"),
    ("1", "an error; its code is the first word after `messaging:`"),
    ("2", "the arguments are wrong, or a question could not be asked and --yes was not given"),
    ("3", "no daemon of this release answers, or it refused its store"),
    ("4", "you answered no"),
    ("130", "interrupted (Ctrl-C)"),
    ("143", "ended by SIGTERM"),
];

/// Every page.
pub(crate) fn pages(root: &Node) -> Vec<Page> {
    let mut pages = vec![("messaging.1".to_owned(), main(root))];
    pages.extend(root.verbs.iter().map(|verb| (format!("messaging-{}.1", verb.name), page(verb))));
    pages
}

fn main(root: &Node) -> String {
    let mut text = head("messaging", "agents on your teammates' machines: messages, tasks, consent");
    text.push_str(
        ".SH SYNOPSIS\n.B messaging\n[\\-\\-home <dir>] [\\-\\-json] [\\-\\-as <session>] <verb> [...]\n",
    );
    text.push_str(".SH DESCRIPTION\n");
    text.push_str(&prose(&root.about));
    text.push_str(".SH VERBS\n");
    for verb in &root.verbs {
        text.push_str(&format!(".TP\n.BR messaging\\-{} (1)\n{}", escape(&verb.name), prose(&verb.about)));
    }
    text.push_str(".SH OPTIONS\n");
    everywhere().iter().chain(&root.options).for_each(|option| text.push_str(&option_text(option)));
    examples(&mut text, &root.examples);
    statuses(&mut text);
    text.push_str(".SH ENVIRONMENT\n");
    for (name, about) in [
        ("MESSAGING_HOME", "the home when --home is not given"),
        ("MESSAGING_DAEMON_UID", "the user whose daemon is trusted when it runs as a user of its own"),
        ("MESSAGING_AUTOSTART", "1: every verb starts the daemon when none answers"),
        ("NO_COLOR", "any value: no colours"),
    ] {
        text.push_str(&format!(".TP\n.B {name}\n{}", prose(about)));
    }
    text.push_str(".SH FILES\n");
    for (name, about) in [
        ("~/.messaging", "the home"),
        ("~/.messaging/config.json", "the settings"),
        ("~/.messaging/identity.json", "the private keys"),
        ("~/.messaging/messaging.db", "the store"),
        ("~/.messaging/run", "the sockets"),
        ("~/.messaging/logs/messagingd.log", "the daemon's log"),
    ] {
        text.push_str(&format!(".TP\n.I {}\n{}", escape(name), prose(about)));
    }
    text
}

fn page(verb: &Node) -> String {
    let name = format!("messaging-{}", verb.name);
    let mut text = head(&name, &verb.about);
    text.push_str(".SH SYNOPSIS\n");
    text.push_str(&synopsis(&[&verb.name], verb));
    if !verb.options.is_empty() || !verb.arguments.is_empty() {
        text.push_str(".SH ARGUMENTS\n");
        arguments(&mut text, verb);
    }
    if !verb.verbs.is_empty() {
        text.push_str(".SH VERBS\n");
        for child in &verb.verbs {
            text.push_str(&format!(".SS {} {}\n", escape(&verb.name), escape(&child.name)));
            text.push_str(&synopsis(&[&verb.name, &child.name], child));
            text.push_str(".PP\n");
            text.push_str(&prose(&child.about));
            arguments(&mut text, child);
            child.notes.iter().for_each(|note| text.push_str(&format!(".PP\n{}", prose(note))));
        }
    }
    verb.notes.iter().for_each(|note| text.push_str(&format!(".SH NOTES\n{}", prose(note))));
    let mut all = verb.examples.clone();
    for child in &verb.verbs {
        all.extend(child.examples.iter().filter(|example| !verb.examples.contains(example)).cloned());
    }
    examples(&mut text, &all);
    statuses(&mut text);
    text.push_str(".SH SEE ALSO\n.BR messaging (1)\n");
    text
}

fn head(name: &str, about: &str) -> String {
    format!(
        ".TH {} 1 \"\" \"messaging {}\" \"Messaging\"\n.SH NAME\n{} \\- {}\n",
        escape(&name.to_ascii_uppercase()),
        env!("CARGO_PKG_VERSION"),
        escape(name),
        escape(about.lines().next().unwrap_or_default())
    )
}

fn synopsis(path: &[&str], node: &Node) -> String {
    format!(".B messaging {}\n{}", escape(&path.join(" ")), prose(&node.synopsis()))
}

fn arguments(text: &mut String, node: &Node) {
    for argument in &node.arguments {
        text.push_str(&format!(".TP\n.I {}\n{}", escape(&argument.name), prose(&argument.about)));
    }
    node.options.iter().for_each(|option| text.push_str(&option_text(option)));
}

fn option_text(option: &Opt) -> String {
    let value = option.value.as_deref().map(|value| format!(" <{value}>")).unwrap_or_default();
    format!(".TP\n.B {}{}\n{}", escape(&option.long), escape(&value), prose(&option.about))
}

fn examples(text: &mut String, examples: &[String]) {
    if examples.is_empty() {
        return;
    }
    text.push_str(".SH EXAMPLES\n.nf\n");
    examples.iter().for_each(|example| text.push_str(&prose(example)));
    text.push_str(".fi\n");
}

fn statuses(text: &mut String) {
    text.push_str(".SH EXIT STATUS\n");
    for (status, about) in STATUSES {
        text.push_str(&format!(".TP\n.B {status}\n{}", prose(about)));
    }
}

/// A line of text: nothing in it is a request to the formatter.
fn prose(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = escape(line);
        if line.starts_with(['.', '\'']) { format!("\\&{line}\n") } else { format!("{line}\n") }
    });
    lines.collect()
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('…', "...").replace('→', "->")
}
