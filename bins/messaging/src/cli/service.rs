//! `service …`: the daemon as a systemd user unit or a launchd agent.

use super::args::{ServiceShow, ServiceVerb};
use super::failure::Failure;
use super::output::{FAINT, STRONG};
use super::shell::{Shell, daemon_program};
use super::value::{object, string};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const LABEL: &str = "messaging.daemon";

/// What starts services for a user.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Systemd,
    Launchd,
}

impl Kind {
    fn here() -> Self {
        if cfg!(target_os = "macos") { Self::Launchd } else { Self::Systemd }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Systemd => "systemd",
            Self::Launchd => "launchd",
        }
    }

    /// Where its file goes.
    fn path(self, name: &str) -> Result<PathBuf, Failure> {
        let set = |variable| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = set("HOME").ok_or_else(|| Failure::usage("$HOME is not set"))?;
        Ok(match self {
            Self::Systemd => {
                let config = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
                config.join("systemd/user").join(format!("{name}.service"))
            }
            Self::Launchd => home.join("Library/LaunchAgents").join(format!("{name}.plist")),
        })
    }

    /// The commands that start it now and at every login, and those that undo that.
    fn commands(self, name: &str, file: &Path, start: bool) -> Vec<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let file = file.display().to_string();
        match (self, start) {
            (Self::Systemd, true) => vec![
                words(&["systemctl", "--user", "daemon-reload"]),
                words(&["systemctl", "--user", "enable", "--now", name]),
            ],
            (Self::Systemd, false) => vec![words(&["systemctl", "--user", "disable", "--now", name])],
            (Self::Launchd, true) => vec![words(&["launchctl", "load", "-w", &file])],
            (Self::Launchd, false) => vec![words(&["launchctl", "unload", "-w", &file])],
        }
    }
}

/// What a service file says.
struct Unit {
    program: PathBuf,
    /// What makes the program the daemon.
    arguments: &'static [&'static str],
    home: PathBuf,
    name: String,
}

impl Unit {
    fn of(shell: &Shell) -> Result<Self, Failure> {
        let (program, arguments) = daemon_program()?;
        let home = std::path::absolute(shell.home()?.path())
            .map_err(|_| Failure::usage("the home's path cannot be made absolute"))?;
        for path in [&program, &home] {
            // Neither format can hold these, and no home has them by accident.
            if path.to_str().is_none_or(|text| text.chars().any(|c| c.is_control())) {
                return Err(Failure::usage(
                    "the path of the program or of the home has characters a service file cannot hold",
                ));
            }
        }
        let default = std::env::var_os("HOME").map(|user| Path::new(&user).join(".messaging"));
        let name = if default.is_none_or(|default| default == home) {
            LABEL.replace('.', "-")
        } else {
            // One service for each home.
            let hash = messaging_proto::hash::sha256(home.to_string_lossy().as_bytes()).to_string();
            let short: String = hash.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
            format!("{}-{}", LABEL.replace('.', "-"), short.to_ascii_lowercase())
        };
        Ok(Self { program, arguments, home, name })
    }

    /// Either starts it again after a signal or an escaped error, exit 70 (`messaging/1 §8.1`, "Process"). What launchd knows
    /// of exit statuses is success alone, so there a start that is refused is tried again every ten seconds.
    fn text(&self, kind: Kind) -> String {
        let (program, home) = (self.program.display().to_string(), self.home.display().to_string());
        match kind {
            Kind::Systemd => format!(
                "[Unit]\nDescription=Messaging daemon\nDocumentation=man:messaging(1)\n\
                 StartLimitIntervalSec=300\nStartLimitBurst=10\n\n\
                 [Service]\nType=notify\nNotifyAccess=main\nExecStart={}{} --home {}\n\
                 Restart=on-failure\nRestartSec=2\n\
                 # A refused start, wrong flags and a refused store do not get better by starting again.\n\
                 RestartPreventExitStatus=1 2 78\nTimeoutStopSec=30\nUMask=0077\nNoNewPrivileges=yes\n\n\
                 [Install]\nWantedBy=default.target\n",
                unit_word(&program),
                self.arguments.iter().map(|word| format!(" {word}")).collect::<String>(),
                unit_word(&home)
            ),
            Kind::Launchd => format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                 <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
                 <plist version=\"1.0\">\n<dict>\n\
                 \x20 <key>Label</key><string>{}</string>\n\
                 \x20 <key>ProgramArguments</key>\n  <array>\n\
                 \x20   <string>{}</string>\n{}\
                 \x20   <string>--home</string>\n    <string>{}</string>\n  </array>\n\
                 \x20 <key>RunAtLoad</key><true/>\n\
                 \x20 <key>KeepAlive</key>\n  <dict><key>SuccessfulExit</key><false/></dict>\n\
                 \x20 <key>ThrottleInterval</key><integer>10</integer>\n\
                 \x20 <key>Umask</key><integer>63</integer>\n\
                 </dict>\n</plist>\n",
                xml(&self.name),
                xml(&program),
                self.arguments
                    .iter()
                    .map(|word| format!("    <string>{word}</string>\n"))
                    .collect::<String>(),
                xml(&home)
            ),
        }
    }
}

/// A word of `ExecStart`: quoted, with its specifiers and variables taken literally.
fn unit_word(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{text}\"")
}

fn xml(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

pub(super) fn run(shell: &Shell, verb: &ServiceVerb) -> Result<(), Failure> {
    let unit = Unit::of(shell)?;
    let kind = Kind::here();
    match verb {
        ServiceVerb::Show(args) => show(shell, &unit, args),
        ServiceVerb::Install(args) => {
            let file = kind.path(&unit.name)?;
            let cannot = || {
                Failure::usage("the service's file cannot be written")
                    .with_remedy("check who owns the folder above it.")
            };
            if let Some(folder) = file.parent() {
                std::fs::create_dir_all(folder).map_err(|_| cannot())?;
            }
            std::fs::write(&file, unit.text(kind)).map_err(|_| cannot())?;
            let commands = kind.commands(&unit.name, &file, true);
            if args.start {
                execute(&commands)?;
            }
            let document = describe(&unit, kind, &file, &[("started", Value::Bool(args.start))]);
            shell.out.result(&document, || {
                let mut text =
                    format!("The service {STRONG}{}{STRONG:#} is in {}.", unit.name, file.display());
                if args.start {
                    text.push_str("\nIt runs, and starts at every login.");
                } else {
                    let lines: Vec<String> = commands.iter().map(|command| command.join(" ")).collect();
                    text.push_str(&format!(
                        "\nStart it now and at every login:\n    {}",
                        lines.join("\n    ")
                    ));
                }
                if kind == Kind::Systemd {
                    text.push_str(&format!(
                        "\n{FAINT}To run while you are logged out: loginctl enable-linger{FAINT:#}"
                    ));
                }
                text
            });
            Ok(())
        }
        ServiceVerb::Uninstall(_) => {
            let file = kind.path(&unit.name)?;
            let there = file.exists();
            if there {
                // A service that does not run is as good as stopped.
                let _ = execute(&kind.commands(&unit.name, &file, false));
                std::fs::remove_file(&file)
                    .map_err(|_| Failure::usage("the service's file cannot be removed"))?;
            }
            let document = describe(&unit, kind, &file, &[("removed", Value::Bool(there))]);
            shell.out.result(&document, || {
                if there {
                    "The service is gone; the home is as it was."
                } else {
                    "No service was installed."
                }
                .to_owned()
            });
            Ok(())
        }
    }
}

fn show(shell: &Shell, unit: &Unit, args: &ServiceShow) -> Result<(), Failure> {
    let kind = match args.kind.as_deref() {
        None => Kind::here(),
        Some("systemd") => Kind::Systemd,
        Some("launchd") => Kind::Launchd,
        Some(_) => return Err(Failure::usage("--kind takes systemd or launchd")),
    };
    let text = unit.text(kind);
    let file = kind.path(&unit.name)?;
    let document = describe(unit, kind, &file, &[("text", string(&text))]);
    shell.out.verbatim(&document, &text);
    Ok(())
}

fn describe(unit: &Unit, kind: Kind, file: &Path, more: &[(&str, Value)]) -> Value {
    let mut members = vec![
        ("name", string(&unit.name)),
        ("kind", string(kind.name())),
        ("file", string(&file.display().to_string())),
    ];
    members.extend(more.iter().cloned());
    object(members)
}

fn execute(commands: &[Vec<String>]) -> Result<(), Failure> {
    for command in commands {
        let Some((program, arguments)) = command.split_first() else { continue };
        let done = Command::new(program).args(arguments).output();
        if !done.is_ok_and(|done| done.status.success()) {
            return Err(Failure::new("internal", format!("`{}` failed", command.join(" ")))
                .with_remedy("run it by hand and read what it says."));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit() -> Unit {
        Unit {
            program: "/opt/a \"b\" $c/messaging".into(),
            arguments: &["daemon", "run"],
            home: "/home/al & <x>/100%".into(),
            name: "messaging-daemon".to_owned(),
        }
    }

    #[test]
    fn paths_are_taken_literally_in_both_formats() {
        let systemd = unit().text(Kind::Systemd);
        assert!(systemd.contains(
            "ExecStart=\"/opt/a \\\"b\\\" $$c/messaging\" daemon run --home \"/home/al & <x>/100%%\"\n"
        ));
        let launchd = unit().text(Kind::Launchd);
        assert!(launchd.contains("<string>/home/al &amp; &lt;x&gt;/100%</string>"), "{launchd}");
        assert!(launchd.contains("<string>/opt/a \"b\" $c/messaging</string>"));
    }

    #[test]
    fn a_crash_is_started_again_and_a_refusal_is_not() {
        let systemd = unit().text(Kind::Systemd);
        assert!(
            systemd.contains("Restart=on-failure\n") && systemd.contains("RestartPreventExitStatus=1 2 78\n")
        );
    }
}
