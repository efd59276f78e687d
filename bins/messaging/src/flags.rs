//! Flags of the services: `--name value`, `--name=value` or `MESSAGING_…` in the environment; the flag wins.
//!
//! The services take flags that repeat and that have an environment form, which the verb parser does not know.

use crate::cli::{Failure, Output, clean, complain, hang};
use std::collections::BTreeMap;
use std::env::VarError;
use std::fmt;
use std::process::ExitCode;

const USAGE: u8 = 2;

/// A flag of a service.
pub(crate) struct Flag {
    /// Without the dashes.
    pub(crate) name: &'static str,
    /// How the help shows its value; empty for a switch.
    pub(crate) value: &'static str,
    /// One line of help.
    pub(crate) help: &'static str,
    /// Whether it may stand more than once.
    pub(crate) repeats: bool,
}

/// What is wrong with the flags: exit 2.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadFlags {
    /// No such flag.
    Unknown(String),
    /// A flag without its value.
    NoValue(&'static str),
    /// A flag that stands twice.
    Twice(&'static str),
    /// A value that does not read.
    Value(&'static str, &'static str),
    /// A variable of the environment that is not text.
    NotText(String),
}

impl fmt::Display for BadFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(flag) => write!(f, "there is no flag {flag}"),
            Self::NoValue(name) => write!(f, "--{name} needs a value"),
            Self::Twice(name) => write!(f, "--{name} stands twice"),
            Self::Value(name, needs) => write!(f, "--{name} needs {needs}"),
            Self::NotText(variable) => write!(f, "{variable} is not UTF-8 text"),
        }
    }
}

/// Flags by name.
#[derive(Debug, Default)]
pub(crate) struct Flags(BTreeMap<&'static str, Vec<String>>);

impl Flags {
    /// Reads `arguments` by `table`. What the arguments do not set, `environment` may.
    pub(crate) fn read(
        table: &'static [Flag],
        arguments: &[&str],
        environment: impl Fn(&str) -> Result<Option<String>, BadFlags>,
    ) -> Result<Self, BadFlags> {
        let mut flags = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let (name, inline) = match argument.split_once('=') {
                Some((name, value)) => (name, Some(value)),
                None => (*argument, None),
            };
            let known = name.strip_prefix("--").and_then(|name| table.iter().find(|flag| flag.name == name));
            let Some(flag) = known else { return Err(BadFlags::Unknown(name.to_owned())) };
            let value = match (flag.value.is_empty(), inline) {
                (true, None) => String::new(),
                (true, Some(_)) => return Err(BadFlags::Value(flag.name, "no value")),
                (false, Some(value)) => value.to_owned(),
                (false, None) => arguments.next().ok_or(BadFlags::NoValue(flag.name))?.to_string(),
            };
            let values = flags.0.entry(flag.name).or_default();
            if !values.is_empty() && !flag.repeats {
                return Err(BadFlags::Twice(flag.name));
            }
            values.push(value);
        }
        for flag in table {
            let value = environment(flag.name)?.filter(|value| !value.is_empty());
            if flag.value.is_empty() || flags.0.contains_key(flag.name) {
                continue;
            }
            if let Some(value) = value {
                let values = if flag.repeats {
                    value.split(',').map(|item| item.trim().to_owned()).collect()
                } else {
                    vec![value]
                };
                flags.0.insert(flag.name, values);
            }
        }
        Ok(flags)
    }

    /// Whether the flag is set.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The flag's value.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(|values| values.last()).map(String::as_str)
    }

    /// Every value of the flag.
    pub(crate) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map(Vec::as_slice).unwrap_or_default()
    }

    /// The flag's value as an integer of at least 1, or `default`.
    pub(crate) fn limit(&self, name: &'static str, default: u64) -> Result<u64, BadFlags> {
        match self.one(name) {
            None => Ok(default),
            Some(text) => match text.parse() {
                Ok(value) if value >= 1 && !text.starts_with('+') => Ok(value),
                _ => Err(BadFlags::Value(name, "an integer of at least 1")),
            },
        }
    }
}

/// A variable of the environment.
///
/// # Errors
/// [`BadFlags::NotText`]. Ignored, such a value would start a service with a default in its place: a relay that is
/// open, say.
pub(crate) fn variable(name: &str) -> Result<Option<String>, BadFlags> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value)),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(BadFlags::NotText(name.to_owned())),
    }
}

/// Ends `program` before its start: what is wrong with its words, and the next step, as JSON where they ask for it. The
/// status is 2.
pub(crate) fn refused(program: &str, arguments: &[&str], message: &str) -> ExitCode {
    if arguments.contains(&"--json") {
        let failure = Failure::usage(clean(message)).with_remedy(format!("run `{program} --help`."));
        return Output::new(true).fail(&failure);
    }
    complain(&format!("{program}: usage: {}\nNext: run `{program} --help`.", clean(message)));
    USAGE.into()
}

/// The help of a service.
pub(crate) fn help(program: &str, about: &str, table: &[Flag], after: &str) -> String {
    let width = table.iter().map(|flag| flag.name.len() + flag.value.len()).max().unwrap_or_default() + 1;
    let mut text = format!("Usage: {program} [flags]\n\n{}\n\nFlags:\n", hang("", about));
    for flag in table {
        let left = format!("{} {}", flag.name, flag.value);
        text.push_str(&hang(&format!("  --{left:<width$}  "), flag.help));
        text.push('\n');
    }
    text.push_str(after);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: &[Flag] = &[
        Flag { name: "listen", value: "<host>:<port>", help: "", repeats: false },
        Flag { name: "genesis", value: "<id>", help: "", repeats: true },
        Flag { name: "rows", value: "<n>", help: "", repeats: false },
        Flag { name: "version", value: "", help: "", repeats: false },
    ];

    fn read(arguments: &[&str]) -> Result<Flags, BadFlags> {
        Flags::read(TABLE, arguments, |name| Ok((name == "genesis").then(|| "x, y".to_owned())))
    }

    #[test]
    fn flags_win_over_the_environment() {
        let flags = read(&["--listen", "a:1", "--genesis=z"]).unwrap();
        assert_eq!(flags.one("listen"), Some("a:1"));
        assert_eq!(flags.all("genesis"), ["z"]);
        assert_eq!(read(&[]).unwrap().all("genesis"), ["x", "y"]);
    }

    #[test]
    fn a_variable_that_is_no_text_is_refused_whatever_the_flags_say() {
        let bad = || BadFlags::NotText("X".into());
        for arguments in [&[][..], &["--listen", "a:1"]] {
            let read =
                Flags::read(TABLE, arguments, |name| if name == "listen" { Err(bad()) } else { Ok(None) });
            assert_eq!(read.unwrap_err(), bad());
        }
    }

    #[test]
    fn what_does_not_read_is_named() {
        assert_eq!(read(&["--nope"]).unwrap_err(), BadFlags::Unknown("--nope".into()));
        assert_eq!(read(&["stray"]).unwrap_err(), BadFlags::Unknown("stray".into()));
        assert_eq!(read(&["--listen"]).unwrap_err(), BadFlags::NoValue("listen"));
        assert_eq!(read(&["--listen", "a", "--listen", "b"]).unwrap_err(), BadFlags::Twice("listen"));
        assert_eq!(read(&["--version=1"]).unwrap_err(), BadFlags::Value("version", "no value"));
        for bad in ["0", "-1", "+1", "1.5", "x", ""] {
            assert!(read(&["--rows", bad]).unwrap().limit("rows", 7).is_err(), "{bad}");
        }
        assert_eq!(read(&["--rows", "3"]).unwrap().limit("rows", 7), Ok(3));
        assert_eq!(read(&[]).unwrap().limit("rows", 7), Ok(7));
    }
}
