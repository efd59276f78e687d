//! What somebody who has read nothing may do: every verb with the wrong words, without a daemon, without a home, with a full
//! disk, with nobody who reads. No panic; the code first, one next step last, and the same as JSON.

#![allow(clippy::unwrap_used)]

mod terminal;
mod world;

use regex::Regex;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use terminal::{Terminal, plain};
use world::{Agent, PATIENCE, PROGRAM, World, wait};

/// Every leaf of the table of verbs, from the completion script.
fn leaves() -> Vec<Vec<String>> {
    let script = Command::new(PROGRAM).args(["completions", "bash"]).output().unwrap();
    let script = String::from_utf8(script.stdout).unwrap();
    let paths: Vec<&str> = script
        .lines()
        .filter_map(|line| Some(line.trim().strip_prefix('"')?.split_once("\") offer=")?.0))
        .collect();
    let leaf =
        |path: &&&str| !path.is_empty() && !paths.iter().any(|other| other.starts_with(&format!("{path} ")));
    let leaves: Vec<_> =
        paths.iter().filter(leaf).map(|path| path.split(' ').map(str::to_owned).collect()).collect();
    assert!(leaves.len() > 50, "{leaves:?}");
    leaves
}

fn run(home: &Path, arguments: &[impl AsRef<std::ffi::OsStr>]) -> Output {
    let mut command = Command::new(PROGRAM);
    command.env_remove("MESSAGING_HOME").env("HOME", home).arg("--home").arg(home.join("h")).args(arguments);
    command.stdin(Stdio::null()).output().unwrap()
}

/// Whether a run that failed said so as it should.
fn proper(what: &str, output: &Output) {
    let status = output.status.code().unwrap_or_else(|| panic!("{what} ended by a signal"));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!([0, 1, 2, 3, 4].contains(&status), "{what}: {status}: {errors}");
    assert!(!errors.contains("panicked"), "{what}: {errors}");
    let control = errors.chars().chain(text.chars()).find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(control, None, "{what}: {errors}{text}");
    if status == 0 {
        return;
    }
    // The services name themselves.
    let first = Regex::new("(?m)^messaging(?: relay| daemon run)?: [a-z_]+: .").unwrap();
    assert_eq!(first.find_iter(&errors).count(), 1, "{what}: {errors}");
    assert_eq!(errors.matches("Next: ").count(), 1, "{what}: {errors}");
    assert!(errors.trim_end().lines().last().unwrap().starts_with("Next: "), "{what}: {errors}");
    assert!(errors.ends_with(".\n") && !errors.ends_with("..\n"), "{what}: {errors}");
}

/// Wrong words for a verb. Those that would do something with them are given none that they take.
fn wrong(verb: &[String]) -> Vec<Vec<OsString>> {
    let base: Vec<OsString> = verb.iter().map(OsString::from).collect();
    let with =
        |more: &[&str]| base.iter().cloned().chain(more.iter().map(OsString::from)).collect::<Vec<_>>();
    let long = "x".repeat(10_000);
    let mut bytes = base.clone();
    bytes.push(OsString::from_vec(vec![0x66, 0xff, 0xfe]));
    vec![
        with(&["--no-such-flag"]),
        with(&["--no-such-flag=\u{1b}[2J"]),
        with(&[&long, &long, &long, &long, &long, &long]),
        with(&["\u{1b}]0;x\u{7}", "\u{202e}", "a", "b", "c", "d"]),
        with(&["--home"]),
        bytes,
    ]
}

#[test]
fn wrong_words_at_every_verb_are_answered_with_a_code_and_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let mut runs = 0;
    for verb in leaves() {
        for words in wrong(&verb) {
            let output = run(folder.path(), &words);
            assert_ne!(output.status.code(), Some(0), "{words:?} is taken");
            proper(&format!("{words:.100?}"), &output);
            runs += 1;
        }
    }
    assert!(runs > 300, "{runs}");
    assert!(!folder.path().join("h").exists(), "none of it makes a home");
}

/// The verbs that do nothing without a daemon, bare and with plausible words.
#[test]
fn every_verb_without_a_daemon_says_how_to_start_one_and_the_same_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let alone = [
        // A person stays in it: it starts the daemon.
        "chat",
        "relay",
        "demo",
        "daemon",
        "team",
        "ui",
        "explain",
        "log",
        "hook",
        "service",
        "completions",
        "man",
        "version",
        "doctor",
    ];
    let mut unavailable = 0;
    for verb in leaves().iter().filter(|verb| !alone.contains(&verb[0].as_str())) {
        for count in 0..4 {
            let words: Vec<String> = verb
                .iter()
                .cloned()
                .chain(["bob/agent", "x", "y"].into_iter().take(count).map(str::to_owned))
                .collect();
            let output = run(folder.path(), &words);
            proper(&format!("{words:?}"), &output);
            assert_ne!(output.status.code(), Some(0), "{words:?}");
            let json = run(folder.path(), &[&["--json".to_owned()], words.as_slice()].concat());
            let document: Value =
                serde_json::from_slice(&json.stdout).unwrap_or_else(|_| panic!("{words:?}: {json:?}"));
            let error = &document["error"];
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let message = error["message"].as_str().unwrap();
            assert!(message.starts_with(&format!("{}: ", error["code"].as_str().unwrap())), "{document}");
            assert_eq!(said, format!("messaging: {message}\n{}\n", error["remedy"].as_str().unwrap()));
            assert_eq!(json.status.code(), output.status.code());
            unavailable += usize::from(error["code"] == "daemon_unavailable");
            if error["code"] == "daemon_unavailable" {
                let home = folder.path().join("h");
                let step = format!("Next: run `messaging --home {} daemon start`.", home.display());
                assert_eq!(error["remedy"], step);
                assert_eq!(json.status.code(), Some(3));
            }
        }
    }
    assert!(unavailable > 30, "{unavailable}");
}

/// No home, one that is nobody's, one that cannot be made, a path too long.
#[test]
fn homes_that_cannot_be_used_say_what_to_do() {
    let none = Command::new(PROGRAM).args(["inbox"]).env_clear().output().unwrap();
    proper("no home", &none);
    assert_eq!(none.status.code(), Some(2));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    let long = folder.path().join("x".repeat(200));
    for (home, step) in [
        (file.as_path(), "name a folder of your own"),
        (Path::new("/proc/no-such-folder"), "name"),
        (long.as_path(), "name a home with a shorter path"),
        (Path::new(""), "run `messaging help`"),
    ] {
        for verb in [
            &["daemon", "start"][..],
            &[
                "team",
                "create",
                "--relay",
                "ws://127.0.0.1:1",
                "--name",
                "a",
                "--person",
                "a",
                "--label",
                "a",
            ],
        ] {
            let output = Command::new(PROGRAM).arg("--home").arg(home).args(verb).output().unwrap();
            proper(&format!("{home:?} {verb:?}"), &output);
            assert_ne!(output.status.code(), Some(0), "{home:?}");
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(home.starts_with("/proc") || errors.contains(&format!("Next: {step}")), "{errors}");
        }
    }
}

/// A home that may be read and not written, as another user; only root can be one.
#[test]
fn a_read_only_home_is_named() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    open(folder.path());
    let program = folder.path().join("messaging");
    std::fs::copy(PROGRAM, &program).unwrap();
    open(&program);
    for (verb, step) in [
        (&["daemon", "start"][..], "name a folder of your own with --home"),
        (&["doctor"], "name a folder of your own with --home"),
        (&["inbox"], "run `messaging daemon start`"),
        (&["service", "install"], "check who owns the folder above it"),
    ] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program).args(verb);
        command.env("HOME", folder.path()).env_remove("MESSAGING_HOME").env_remove("XDG_CONFIG_HOME");
        let output = command.stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        proper(&format!("{verb:?}"), &output);
        assert!(errors.contains(&format!("Next: {step}")), "{verb:?}: {errors}");
    }
}

/// What is printed onto a full disk did not arrive, and a script must not take it for all there is.
#[test]
fn output_that_is_lost_is_an_error_and_output_nobody_reads_is_none() {
    for verb in [
        &["explain"][..],
        &["--json", "explain"],
        &["completions", "zsh"],
        &["help"],
        &["relay", "--help"],
        &["version"],
    ] {
        let onto = |stdout: Stdio| {
            let mut command = Command::new(PROGRAM);
            let child = command.args(verb).stdout(stdout).stderr(Stdio::piped()).spawn().unwrap();
            child.wait_with_output().unwrap()
        };
        let output = onto(File::options().write(true).open("/dev/full").unwrap().into());
        proper(&format!("{verb:?} onto a full disk"), &output);
        assert_eq!(output.status.code(), Some(1), "{verb:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = onto(writer.into());
        assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{verb:?}: {output:?}");
    }
}

/// Verbs that go on until they are stopped end when nobody reads on, without a next thing to print.
#[test]
fn what_goes_on_ends_with_its_reader() {
    let mut world = World::new();
    world.pair();
    let home = world.path("alice");
    for verb in [&["status", "--watch"][..], &["log", "--follow"], &["echo", "--name", "brief"]] {
        let mut command = Command::new(PROGRAM);
        let mut child = command.arg("--home").arg(&home).args(verb).stdout(Stdio::piped()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut String::new()).unwrap();
        drop(reader);
        let status = wait(&format!("{verb:?} to end"), || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{verb:?}");
    }
}

/// Texts and files of any size and kind.
#[test]
fn what_is_sent_is_bounded_and_said() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.inbox();
    let send = |arguments: &[&str]| world.cli("alice", &[&["send", "bob/builder"], arguments].concat());
    wait("bob's agent", || send(&["first"]).status.success().then_some(()));
    let text = "é".repeat(5_000);
    assert!(send(&[&text]).status.success(), "10 kB");
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large");
    std::fs::write(&large, vec![7; 3 << 20]).unwrap();
    for (arguments, code) in [
        (&["--file", "/dev/zero"][..], "too_large"),
        (&["--file", large.to_str().unwrap()], "too_large"),
        (&["--file", "/"], "usage"),
        (&["--file", "/no/such\u{1b}[2Jfile"], "usage"),
        (&[""], "usage"),
        (&[" \n"], "usage"),
        (&[], "usage"),
        // Standard input is empty.
        (&["-"], "usage"),
    ] {
        let output = send(arguments);
        proper(&format!("{arguments:?}"), &output);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.starts_with(&format!("messaging: {code}: ")), "{arguments:?}: {errors}");
    }
    wait("the two that were sent", || (builder.inbox().len() == 2).then_some(()));
    // A relay that is not there, and an address that names nobody.
    for (arguments, step) in [
        (
            &[
                "team",
                "create",
                "--relay",
                "ws://127.0.0.1:1",
                "--name",
                "N",
                "--person",
                "n",
                "--label",
                "l",
            ][..],
            "check that a relay runs at that address",
        ),
        (
            &["team", "create", "--relay", "http://x", "--name", "N", "--person", "n", "--label", "l"],
            "a relay is wss://",
        ),
        (
            &["team", "create", "--relay", "wss://x", "--name", "", "--person", "n", "--label", "l"],
            "give the team a name",
        ),
        (
            &["team", "create", "--relay", "wss://x", "--name", "N", "--person", "N n", "--label", "l"],
            "a person is",
        ),
        (
            &["team", "create", "--relay", "wss://x", "--name", "N", "--person", "n", "--label", "My Laptop"],
            "a label is",
        ),
        (&["team", "join", "nonsense"], "copy the ticket whole"),
    ] {
        let output = world.cli("carol", arguments);
        proper(&format!("{arguments:?}"), &output);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(&format!("Next: {step}")), "{errors}");
    }
    assert!(world.cli("carol", &["daemon", "stop"]).status.success());
    for (arguments, step) in [
        (&["read", "01M7"][..], "copy the id whole from a list"),
        (&["read", "--with", "bob"], "name it dm:<person>"),
        (&["answer", "01M7XXXXXXXXXXXXXXXXXXXXXX", "maybe", "--yes"], "answer once, always"),
        (&["grant", "bob", "--ask", "maybe", "--yes"], "--ask takes"),
        (&["tasks", "--state", "silly"], "a state is"),
        (&["search", ""], "search for one word"),
        (&["send", "", "x"], "name an agent as"),
        (&["send", "*", "x"], "name an agent as"),
        (&["read"], "run `messaging help read`"),
        (&["read", "01M7", "--with", "dm:bob"], "run `messaging help read`"),
        (&["log", "--level", "loud"], "run `messaging help log`"),
        (&["identity", "migrate", "--to", "moon"], "run `messaging help identity migrate`"),
        (&["grant", "bob", "--trust", "5", "--yes"], "add --ask open"),
        (&["grant", "bob", "--ask", "open", "--trust", "99999", "--yes"], "name 90 days or fewer"),
        (&["grant", "bob", "--ask", "open", "--trust", "9999999999999", "--yes"], "--trust takes days"),
        (&["grant", "bob", "--discoverable", "yes", "--yes"], "name yourself"),
        (&["grants", "nobody"], "run `messaging people"),
        (&["channel", "create", "own", "alice"], "leave out your own name"),
    ] {
        let output = world.cli("alice", arguments);
        proper(&format!("{arguments:?}"), &output);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(&format!("Next: {step}")), "{arguments:?}: {errors}");
    }
}

/// With `--json` whatever is printed is one document, help and the errors of the services' flags too.
#[test]
fn what_is_asked_for_as_json_is_one_document() {
    let mut world = World::new();
    world.pair();
    for (words, status) in [
        (&["help"][..], 0),
        (&["--help"], 0),
        (&["help", "grant"], 0),
        (&["explain", "usage"], 0),
        (&["grants", "bob"], 0),
        (&["log", "--lines", "3"], 0),
        (&["log", "--level", "error"], 0),
        (&["relay", "--wrong"], 2),
        (&["relay", "--listen", "8787"], 2),
        (&["daemon", "run", "--wrong"], 2),
    ] {
        let output = world.cli("alice", &[&["--json"], words].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{words:?}: {text}"));
        assert_eq!((output.status.code(), document.is_object()), (Some(status), true), "{words:?}");
        assert_eq!(text.lines().count(), 1, "{words:?}");
        assert_eq!(document["error"]["code"] == "usage", status == 2, "{words:?}: {text}");
    }
    let log: Value =
        serde_json::from_slice(&world.cli("alice", &["--json", "log", "--lines", "2"]).stdout).unwrap();
    assert_eq!(log["lines"].as_array().unwrap().len(), 2);
}

/// Terminals of other kinds: narrow, without colour, without a language.
#[test]
fn other_terminals_get_no_escapes_and_no_lines_that_are_too_wide() {
    let mut world = World::new();
    world.pair();
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.inbox();
    world.cli_json(
        "alice",
        &["send", "bob/builder", "a text of several words for a narrow terminal", "--wait", "60"],
    );
    for verb in
        [&["status"][..], &["contacts"], &["sent"], &["doctor"], &["team", "info"], &["explain"], &["grants"]]
    {
        let home = world.path("alice");
        let program = |name: &str, value: &str| {
            let mut command = Command::new("env");
            command.arg(format!("{name}={value}")).arg(PROGRAM).arg("--home").arg(&home).args(verb);
            command
        };
        for (name, value) in [("TERM", "dumb"), ("TERM", ""), ("NO_COLOR", "1")] {
            // A build machine says so, and its terminal is no other for that.
            for place in ["HERE=1", "CI=true"] {
                let mut command = Command::new("env");
                command.arg(place).arg(format!("{name}={value}")).arg(PROGRAM);
                let (text, _) = Terminal::start(command.arg("--home").arg(&home).args(verb)).finish(PATIENCE);
                assert!(!text.contains('\u{1b}'), "{place} {name} {verb:?}: {text:?}");
            }
        }
        let (text, _) = Terminal::start(&mut program("LC_ALL", "C")).finish(PATIENCE);
        assert!(plain(&text).len() > 10, "{verb:?}");
        let (text, _) = Terminal::narrow(&mut program("LC_ALL", "C"), 40).finish(PATIENCE);
        for line in plain(&text).lines() {
            let words = line.split_whitespace().map(|word| word.chars().count());
            let unbreakable = words.max().unwrap_or_default() + 20 > 40;
            assert!(line.chars().count() <= 40 || unbreakable, "{verb:?}: {line}");
        }
    }
}
