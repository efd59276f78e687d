//! The table of verbs. Doc comments here are the help text.

mod chats;
mod device;
mod hook;
mod mail;
mod people;
mod service;
mod team;

pub(crate) use chats::*;
pub(crate) use device::*;
pub(crate) use hook::*;
pub(crate) use mail::*;
pub(crate) use people::*;
pub(crate) use service::*;
pub(crate) use team::*;

use argh::{ArgsInfo, FromArgs};
use std::path::PathBuf;

/// Stands for a bare `-` (read standard input), which the parser would take for an option.
pub(crate) const STDIN: &str = "\u{1}-";

/// Stands for `--trust` without days.
pub(crate) const TRUST_LONGEST: &str = "longest";

/// The flags that may stand anywhere, and what is left.
#[derive(Debug)]
pub(crate) struct Hoisted {
    pub(crate) home: Option<PathBuf>,
    pub(crate) json: bool,
    pub(crate) rest: Vec<String>,
}

/// Takes `--home <dir>` and `--json` out of the arguments, wherever they stand before a `--`.
pub(crate) fn hoist(arguments: Vec<String>) -> Result<Hoisted, String> {
    let mut hoisted = Hoisted { home: None, json: false, rest: Vec::new() };
    // Of the command line as a whole, so its parser takes it before the verb alone.
    let mut session = None;
    let mut arguments = arguments.into_iter().skip(1).peekable();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--" => {
                hoisted.rest.push(argument);
                hoisted.rest.extend(arguments);
                break;
            }
            "--as" => match arguments.next() {
                Some(name) => session = Some(name),
                None => return Err("--as needs a name".to_owned()),
            },
            "--json" => hoisted.json = true,
            "--home" => match arguments.next() {
                Some(home) if !home.is_empty() => hoisted.home = Some(home.into()),
                _ => return Err("--home needs a folder".to_owned()),
            },
            "-" => hoisted.rest.push(STDIN.to_owned()),
            "--trust" => {
                // Its days may be left out, which the parser does not know.
                let days =
                    arguments.next_if(|next| !next.is_empty() && next.bytes().all(|b| b.is_ascii_digit()));
                hoisted.rest.extend([argument, days.unwrap_or_else(|| TRUST_LONGEST.to_owned())]);
            }
            text => match (text.strip_prefix("--home="), text.strip_prefix("--as=")) {
                (Some(""), _) => return Err("--home needs a folder".to_owned()),
                (Some(home), _) => hoisted.home = Some(home.into()),
                (None, Some(name)) => session = Some(name.to_owned()),
                (None, None) => hoisted.rest.push(argument),
            },
        }
    }
    if let Some(name) = session {
        hoisted.rest.splice(0..0, ["--as".to_owned(), name]);
    }
    // `chat bob` is short for `chat with bob`, unless it names a verb of `chat`.
    let chat = hoisted.rest.iter().position(|word| word == "chat").filter(|at| *at == verb_at(&hoisted.rest));
    if let Some(at) = chat
        && let Some(to) = hoisted.rest.get(at + 1)
        && !matches!(to.as_str(), "with" | "mark-read" | "follow" | "help" | "--help")
    {
        hoisted.rest.insert(at + 1, "with".to_owned());
    }
    Ok(hoisted)
}

/// Where the verb stands: after `help`, or after `--as <name>`.
fn verb_at(words: &[String]) -> usize {
    match words.first().map(String::as_str) {
        Some("--as") => 2,
        Some("help") => 1,
        _ => 0,
    }
}

/// Agents on your teammates' machines: find them, message them, give them tasks, and stay in charge.
///
/// --home <dir> (default $MESSAGING_HOME, else ~/.messaging) and --json may stand anywhere. Two more verbs run
/// the services: `messaging relay --help` and `messaging daemon run --help`.
#[derive(ArgsInfo, FromArgs)]
#[argh(
    example = "See it work, with nothing set up:\n    messaging demo",
    example = "Found a team and invite a teammate:\n    messaging daemon start\n    messaging team create --relay ws://127.0.0.1:8787 --name Blue --person alice --label laptop\n    messaging team invite bob",
    example = "Write to an agent and see what came back:\n    messaging send bob/agent \"Is the build green?\"\n    messaging inbox",
    error_code(1, "an error; the code is the first word after `messaging:`"),
    error_code(2, "the arguments are wrong"),
    error_code(3, "no daemon of this release answers, or it refused its store"),
    error_code(4, "you answered no"),
    error_code(130, "interrupted (Ctrl-C)"),
    error_code(143, "ended by SIGTERM")
)]
pub(crate) struct Cli {
    /// act as this terminal session instead of `cli`
    #[argh(option, arg_name = "name")]
    pub(crate) r#as: Option<String>,
    #[argh(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(ArgsInfo, FromArgs)]
#[argh(subcommand)]
pub(crate) enum Verb {
    Demo(Demo),
    Daemon(Daemon),
    Status(Status),
    Team(Team),
    Identity(Identity),
    Contacts(Contacts),
    Send(Send),
    Inbox(Inbox),
    Read(Read),
    Sent(Sent),
    Search(Search),
    Tasks(Tasks),
    Task(Task),
    Chats(Chats),
    Chat(Chat),
    Channel(Channel),
    People(People),
    Person(Person),
    Grants(Grants),
    Grant(Grant),
    Requests(Requests),
    Answer(Answer),
    Agents(Agents),
    Agent(Agent),
    Notices(Notices),
    Card(Card),
    Contact(Contact),
    Device(Device),
    Erase(Erase),
    Echo(Echo),
    Ui(Ui),
    Doctor(Doctor),
    Explain(Explain),
    Log(Log),
    Hook(Hook),
    Service(Service),
    Completions(Completions),
    Man(Man),
    Version(Version),
}
