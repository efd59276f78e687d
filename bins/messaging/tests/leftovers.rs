//! What is left when something ends before its time: a demonstration by Ctrl-C, the full-screen view by SIGTERM, and an agent whose
//! daemon goes away. And that a script removes a machine without being asked.

#![allow(clippy::unwrap_used)]

mod terminal;
mod world;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use terminal::Terminal;
use world::{PATIENCE, PROGRAM, World, wait};

/// The processes whose command line names a folder.
fn running_in(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let words = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words
        .map(|words| String::from_utf8_lossy(&words).replace('\0', " "))
        .filter(|words| words.contains(folder))
        .collect()
}

#[test]
fn an_ended_demonstration_leaves_nothing_behind() {
    for signal in [rustix::process::Signal::INT, rustix::process::Signal::TERM] {
        // At the start, and in the middle of the story.
        for moment in ["starting a relay", "founded the team"] {
            let folder = tempfile::tempdir().unwrap();
            let mut demo = Command::new(PROGRAM)
                .arg("demo")
                .env("TMPDIR", folder.path())
                .env_remove("MESSAGING_HOME")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines();
            lines.find(|line| line.as_ref().unwrap().contains(moment)).unwrap().unwrap();
            let pid = rustix::process::Pid::from_child(&demo);
            rustix::process::kill_process(pid, signal).unwrap();
            lines.for_each(drop);
            let ended = demo.wait_with_output().unwrap();
            let expected = if signal == rustix::process::Signal::INT { 130 } else { 143 };
            assert_eq!(ended.status.code(), Some(expected), "{moment}");
            assert_eq!(String::from_utf8(ended.stderr).unwrap(), "", "no error is shown");
            let left: Vec<_> =
                std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert!(left.is_empty(), "{moment}: {left:?}");
            wait("its processes to be gone", || running_in(folder.path()).is_empty().then_some(()));
        }
    }
}

#[test]
fn an_echo_outlives_its_daemon() {
    let mut world = World::new();
    world.pair();
    world.cli_json("bob", &["grant", "alice", "--ask", "open", "--yes"]);
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(world.path("bob")).arg("echo").env_remove("MESSAGING_HOME");
    let mut echo = Terminal::start(&mut command);
    echo.expect("answers every message", PATIENCE);
    world.kill_daemon("bob");
    echo.expect("daemon start`.", PATIENCE);
    world.start_daemon("bob");
    echo.expect("The daemon is back.", PATIENCE);
    world.until_contact("alice", "bob/echo@desk");
    world.cli_json("alice", &["send", "bob/echo", "Still there?", "--wait", "60"]);
    echo.expect("answered", PATIENCE);
    wait("the answer", || {
        let list = world.cli_json("alice", &["inbox"]);
        (list["items"][0]["preview"] == "You said: Still there?").then_some(())
    });
    echo.interrupt();
    let (text, status) = echo.finish(PATIENCE);
    assert_eq!(status, Some(130), "{text}");
}

#[test]
fn an_ended_view_gives_the_terminal_back() {
    let mut world = World::new();
    world.pair();
    world.cli_json("alice", &["send", "bob", "Hello"]);
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(world.path("alice")).arg("ui").env_remove("MESSAGING_HOME");
    let mut view = Terminal::start(&mut command);
    assert!(view.is_cooked());
    view.expect("Hello", PATIENCE);
    assert!(!view.is_cooked(), "it reads keys");
    view.terminate();
    wait("the terminal", || view.is_cooked().then_some(()));
    let (screen, status) = view.finish(PATIENCE);
    assert_eq!(status, Some(143));
    for (mode, what) in [("1049", "the other screen"), ("2004", "marks around a paste")] {
        let at = |end: &str| {
            screen.rfind(&format!("\u{1b}[?{mode}{end}")).unwrap_or_else(|| panic!("{what}: {screen:?}"))
        };
        assert!(at("l") > at("h"), "{what} is off again");
    }
}

#[test]
fn a_script_removes_a_machine_without_being_asked() {
    let mut world = World::new();
    world.pair();
    let run = |words: &[&str]| {
        let mut command = Command::new(PROGRAM);
        command.arg("--home").arg(world.path("alice")).args(words).stdin(Stdio::null());
        command.output().unwrap()
    };
    // Contract ipc §7: the verb has no `--yes` there; a person at a terminal is asked all the same.
    let removed = run(&["--json", "team", "remove", "bob@desk"]);
    assert_eq!(removed.status.code(), Some(0), "{}", String::from_utf8_lossy(&removed.stderr));
    let info = world.cli_json("alice", &["team", "info"]);
    assert_eq!(info["members"].as_array().unwrap().len(), 1);
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(world.path("alice")).args(["team", "remove", "alice@laptop"]);
    let mut terminal = Terminal::start(&mut command);
    terminal.expect("Go on? y/N", PATIENCE);
    terminal.type_text("n\n");
    assert_eq!(terminal.finish(PATIENCE).1, Some(4));
}
