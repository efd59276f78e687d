//! The command line of a person (contract of the local API, "`messaging` CLI").
//!
//! [`args`] is the table of verbs; each verb group is a file that turns arguments into one call of the daemon and
//! its result into text. [`output`] is the only way to stdout, [`failure`] the only way to an exit status.

mod agents;
mod args;
mod cause;
mod chat;
mod chats;
mod consent;
mod daemon;
mod device;
mod doctor;
mod echo;
mod failure;
mod generate;
mod hook;
mod identity;
mod interrupted;
mod log;
mod mail;
mod outcome;
mod outgoing;
mod output;
mod parts;
mod progress;
mod remedy;
mod rows;
mod save;
mod service;
mod shell;
mod steps;
mod table;
mod tasks;
mod team;
mod usage;
mod value;
mod verbs;

use args::{Cli, Verb};
use std::ffi::OsString;
use std::process::ExitCode;

pub(crate) use args::Demo;
pub(crate) use failure::Failure;
pub(crate) use interrupted::before_end;
pub(crate) use mail::peer;
pub(crate) use output::{
    BAD, FAINT, GOOD, Output, STRONG, WAITING, can_ask, clean, complain, ended, fitted_help, forget_typed,
    hang, now as time_now, page, span, when as time_text,
};
pub(crate) use parts::said as parts_said;
pub(crate) use rows::{said as said_in, wrap};
pub(crate) use table::cut;

/// Whether standard output is a terminal.
pub(crate) fn on_terminal() -> bool {
    output::columns().is_some()
}

pub(crate) use progress::Progress;
pub(crate) use shell::{Shell, fresh_key};
pub(crate) use value::{Read, array, number, object, string};

/// Runs `messaging` with the process's arguments, the program's name first.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    output::settle_colours();
    let json = arguments.iter().skip(1).take_while(|word| *word != "--").any(|word| word == "--json");
    let mut texts = Vec::new();
    for argument in arguments {
        match argument.into_string() {
            Ok(text) => texts.push(text),
            Err(_) => return wrong(json, "an argument is not UTF-8 text"),
        }
    }
    let hoisted = match args::hoist(texts) {
        Ok(hoisted) => hoisted,
        Err(message) => return wrong(json, &message),
    };
    // The services parse their own flags: the same ones as `messaging-relay` and `messagingd`.
    let rest: Vec<&str> = hoisted.rest.iter().map(String::as_str).collect();
    match rest.as_slice() {
        ["relay", flags @ ..] => {
            return crate::relay::run("messaging relay", &with_json(flags, hoisted.json));
        }
        ["daemon", "run", flags @ ..] => {
            let flags = with_json(flags, hoisted.json);
            return crate::messagingd::run("messaging daemon run", hoisted.home.as_deref(), &flags);
        }
        ["--version"] => return version(hoisted.json),
        ["help"] => return parse_and_run(&["--help"], &hoisted),
        ["help", verb @ ..] => {
            let mut words = verb.to_vec();
            words.push("--help");
            return parse_and_run(&words, &hoisted);
        }
        _ => {}
    }
    parse_and_run(&rest, &hoisted)
}

/// A service's flags with the one that was taken out of them, since it may stand anywhere.
fn with_json<'a>(flags: &[&'a str], json: bool) -> Vec<&'a str> {
    [flags, if json { &["--json"] } else { &[] }].concat()
}

fn parse_and_run(words: &[&str], hoisted: &args::Hoisted) -> ExitCode {
    let out = Output::new(hoisted.json);
    let cli = match <Cli as argh::FromArgs>::from_args(&["messaging"], words) {
        Ok(cli) => cli,
        Err(early) if early.status.is_ok() => {
            // The parser's word for exit statuses means something else here.
            let help = early.output.replace("\nError codes:\n", "\nExit statuses:\n");
            let help = rows::wrap_help(&help, 80);
            out.verbatim(&object([("help", string(&help))]), &help);
            return output::ended(ExitCode::SUCCESS);
        }
        Err(early) => return out.fail(&usage::refused(words, &early.output)),
    };
    let mut shell = Shell::new(hoisted.home.clone(), out, cli.r#as);
    if matches!(cli.verb, Verb::Version(_)) {
        return version(hoisted.json);
    }
    if goes_on(&cli.verb) {
        output::is_stream();
    }
    messaging_smol::interrupt::exit_on_interrupt(interrupted::end);
    let autostart =
        std::env::var("MESSAGING_AUTOSTART").is_ok_and(|value| value == "1") && needs_daemon(&cli.verb);
    let started = if autostart { shell.autostart() } else { Ok(()) };
    match started.and_then(|()| dispatch(&mut shell, cli.verb)) {
        Ok(()) => output::ended(ExitCode::SUCCESS),
        Err(failure) => shell.out.fail(&usage::with_help(words, failure)),
    }
}

fn dispatch(shell: &mut Shell, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Demo(args) => crate::demo::run(shell, &args),
        Verb::Daemon(args) => daemon::run(shell, args.verb),
        Verb::Status(args) => daemon::status(shell, &args),
        Verb::Team(args) => team::run(shell, args.verb),
        Verb::Identity(args) => identity::run(shell, args.verb),
        Verb::Contacts(_) => agents::contacts(shell),
        Verb::Send(args) => mail::send(shell, args),
        Verb::Inbox(args) => mail::inbox(shell, &args),
        Verb::Read(args) => mail::read(shell, args),
        Verb::Sent(args) => mail::sent(shell, &args),
        Verb::Search(args) => chats::search(shell, args),
        Verb::Tasks(args) => tasks::list(shell, args),
        Verb::Task(args) => tasks::run(shell, args.verb),
        Verb::Chats(_) => chats::list(shell),
        Verb::Chat(args) => chats::run(shell, args.verb),
        Verb::Channel(args) => chats::channel(shell, args.verb),
        Verb::People(args) => agents::people(shell, args),
        Verb::Person(args) => agents::person(shell, args),
        Verb::Grants(args) => consent::list(shell, args),
        Verb::Grant(args) => consent::grant(shell, args),
        Verb::Requests(args) => consent::requests(shell, &args),
        Verb::Answer(args) => consent::answer(shell, args),
        Verb::Agents(_) => agents::agents(shell),
        Verb::Agent(args) => agents::agent(shell, args),
        Verb::Notices(args) => agents::notices(shell, &args),
        Verb::Card(args) => agents::card(shell, &args),
        Verb::Contact(args) => device::contact(shell, &args),
        Verb::Device(args) => device::run(shell, &args.verb),
        Verb::Erase(_) => device::erase(shell),
        Verb::Echo(args) => echo::run(shell, &args),
        Verb::Ui(_) => crate::ui::run(shell),
        Verb::Doctor(_) => doctor::run(shell),
        Verb::Explain(args) => remedy::explain(shell, &args),
        Verb::Log(args) => log::run(shell, &args),
        Verb::Hook(args) => hook::run(shell, &args),
        Verb::Service(args) => service::run(shell, &args.verb),
        Verb::Completions(args) => generate::completions(shell, &args),
        Verb::Man(args) => generate::pages(shell, &args),
        Verb::Version(_) => Ok(()),
    }
}

/// Whether a verb prints what happens as it happens.
const fn goes_on(verb: &Verb) -> bool {
    match verb {
        Verb::Chat(args) => !matches!(args.verb, args::ChatVerb::MarkRead(_)),
        Verb::Notices(args) => args.follow,
        Verb::Status(args) => args.watch,
        Verb::Log(args) => args.follow,
        Verb::Echo(_) => true,
        _ => false,
    }
}

/// Whether a verb talks to the daemon and does not itself start, stop or judge it.
const fn needs_daemon(verb: &Verb) -> bool {
    !matches!(
        verb,
        Verb::Demo(_)
            | Verb::Daemon(_)
            | Verb::Doctor(_)
            | Verb::Explain(_)
            | Verb::Log(_)
            | Verb::Hook(_)
            | Verb::Service(_)
            | Verb::Completions(_)
            | Verb::Man(_)
            | Verb::Version(_)
    )
}

fn wrong(json: bool, message: &str) -> ExitCode {
    Output::new(json).fail(&Failure::usage(message).with_remedy("run `messaging help`."))
}

fn version(json: bool) -> ExitCode {
    let version = env!("CARGO_PKG_VERSION");
    output::page(&if json {
        format!("{{\"protocol\":\"messaging/1\",\"version\":\"{version}\"}}\n")
    } else {
        format!("messaging {version} (protocol messaging/1)\n")
    });
    output::ended(ExitCode::SUCCESS)
}
