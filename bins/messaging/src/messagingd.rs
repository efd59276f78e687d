//! `messagingd` and `messaging daemon run`: flags in, [`messaging_smol::daemon::run`], an exit status out.

use crate::cli::{ended, fitted_help, page};
use crate::flags::{Flag, Flags, help, refused, variable};
use crate::relay::{capture, log_level, version};
use messaging_machines::daemon::schema::SCHEMA;
use messaging_smol::daemon::DaemonOptions;
use messaging_smol::home::Home;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) static FLAGS: &[Flag] = &[
    Flag {
        name: "home",
        value: "<dir>",
        help: "the home (default $MESSAGING_HOME, else ~/.messaging)",
        repeats: false,
    },
    Flag {
        name: "log-level",
        value: "error|warn|info|debug",
        help: "how much to log, as JSON lines on stderr and in logs/messagingd.log (default info)",
        repeats: false,
    },
    Flag {
        name: "capture",
        value: "<path>",
        help: "keep everything the daemon is given and says here, for replay: SECRET (default $MESSAGING_CAPTURE, else off)",
        repeats: false,
    },
    Flag {
        name: "capture-bytes",
        value: "<n>",
        help: "bytes of that file before a new one begins (default $MESSAGING_CAPTURE_BYTES, else 268435456)",
        repeats: false,
    },
    Flag { name: "version", value: "", help: "print the version", repeats: false },
    Flag {
        name: "json",
        value: "",
        help: "the version, or what is wrong with the flags, as JSON",
        repeats: false,
    },
    Flag { name: "help", value: "", help: "print this", repeats: false },
];

/// Whether this process's program is `messagingd`.
static THIS: AtomicBool = AtomicBool::new(false);

/// Whether this process's program is `messagingd`, whatever it was asked to be.
pub(crate) fn is_this() -> bool {
    THIS.load(Ordering::Relaxed)
}

/// Runs `messagingd` with the process's arguments, the program's name first. `messagingd cli …`, or a link named
/// `messaging`, is the command line.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    THIS.store(true, Ordering::Relaxed);
    let name = arguments.first().map(Path::new).and_then(Path::file_name);
    if name.is_some_and(|name| name == "messaging") {
        return crate::cli::main(arguments);
    }
    if arguments.get(1).is_some_and(|first| first == "cli") {
        return crate::cli::main(arguments.into_iter().skip(1).collect());
    }
    let texts: Result<Vec<String>, _> = arguments.into_iter().skip(1).map(OsString::into_string).collect();
    let Ok(texts) = texts else { return refused("messagingd", &[], "an argument is not UTF-8 text") };
    let flags: Vec<&str> = texts.iter().map(String::as_str).collect();
    run("messagingd", None, &flags)
}

/// Runs the daemon with these flags, as `program`; `home` is a home found before the flags.
pub(crate) fn run(program: &str, home: Option<&Path>, arguments: &[&str]) -> ExitCode {
    // The home's own variable is read by `Home::from_env`; the other flags have no environment form.
    let environment = |name: &str| match name {
        "capture" => variable("MESSAGING_CAPTURE"),
        "capture-bytes" => variable("MESSAGING_CAPTURE_BYTES"),
        _ => Ok(None),
    };
    let flags = match Flags::read(FLAGS, arguments, environment) {
        Ok(flags) => flags,
        Err(error) => return refused(program, arguments, &error.to_string()),
    };
    if flags.has("help") {
        page(&fitted_help(&help(
            program,
            "The daemon of this machine: its identity, sessions, mail, tasks and consent.",
            FLAGS,
            "\n`messaging daemon start` runs it in the background.\n\nExit: 0 stopped, 1 start refused, 2 flags, 70 \
             internal error, 78 store refused.\n",
        )));
        return ended(ExitCode::SUCCESS);
    }
    if flags.has("version") {
        page(&version("messagingd", SCHEMA, flags.has("json")));
        return ended(ExitCode::SUCCESS);
    }
    let (level, capture) = match log_level(&flags).and_then(|level| Ok((level, capture(&flags)?))) {
        Ok(both) => both,
        Err(error) => return refused(program, arguments, &error.to_string()),
    };
    let home = flags.one("home").map(Path::new).or(home).map(Home::new).or_else(Home::from_env);
    let Some(home) = home else {
        return refused(program, arguments, "there is no home: set --home, $MESSAGING_HOME or $HOME");
    };
    messaging_smol::daemon::run(&DaemonOptions { log_level: level, capture, ..DaemonOptions::new(home) })
        .into()
}
