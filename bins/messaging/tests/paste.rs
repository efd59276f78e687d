//! Text pasted into a terminal, and keys typed before a question was on it, are neither commands nor answers.

#![allow(clippy::unwrap_used)]

mod terminal;
mod world;

use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;
use terminal::Terminal;
use world::{Agent, PATIENCE, PROGRAM, World, wait};

const SETTLED: Duration = Duration::from_millis(700);

/// A world in which a request of bob's waits for alice's answer.
fn held() -> World {
    let mut world = World::new();
    world.pair();
    world.admin("alice").call("grant.set", json!({"subject": {"person": "bob"}, "ask": "request"})).unwrap();
    let mut planner = Agent::new(&world, "alice", "planner");
    planner.inbox();
    world.until_contact("bob", "alice/planner@laptop");
    let mut builder = Agent::new(&world, "bob", "builder");
    builder.send("alice/planner@laptop", "Is the build green?", "one");
    wait("the request", || world.cli_json("alice", &["requests"])["asks"].get(0).cloned());
    world
}

fn start(world: &World, arguments: &[&str]) -> Terminal {
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(world.path("alice")).args(arguments).env_remove("MESSAGING_HOME");
    Terminal::start(&mut command)
}

fn texts(world: &World) -> Vec<String> {
    let page = world.cli_json("alice", &["read", "--with", "dm:bob"]);
    page["lines"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap().to_owned()).collect()
}

fn asks(world: &World) -> Vec<Value> {
    world.cli_json("alice", &["requests"])["asks"].as_array().unwrap().clone()
}

#[test]
fn in_the_full_screen_view_a_paste_is_text_and_type_ahead_no_answer() {
    let world = held();
    world.cli_json("alice", &["send", "bob", "Hello"]);
    let mut ui = start(&world, &["ui"]);
    ui.expect("Hello", PATIENCE);
    assert!(ui.raw().contains("\u{1b}[?2004h"), "the terminal is asked to mark what is pasted");
    // The view moves over what is blank: words are looked for one by one.
    // In a list: dropped. The request's list, `a` and `y` are in it.
    ui.type_text("\u{1b}[200~3ay\n\u{1b}[201~");
    ui.expect("dropped;", PATIENCE);
    // In the line being written: text, and one line, which only the Enter after it sends.
    ui.type_text("w");
    ui.expect("To", PATIENCE);
    ui.type_text("\u{1b}[200~first line\n3ay permitted\u{1b}[201~");
    ui.expect("permitted", PATIENCE);
    std::thread::sleep(SETTLED);
    assert_eq!((texts(&world), asks(&world).len()), (vec!["Hello".to_owned()], 1));
    ui.type_text("\r");
    ui.expect("Sent;", PATIENCE);
    assert_eq!(texts(&world), ["Hello", "first line 3ay permitted"]);
    // A terminal without such marks: the question comes up, and is not answered by what was typed before it was seen.
    ui.type_text("3ayyyy");
    ui.expect("yes", PATIENCE);
    std::thread::sleep(SETTLED);
    assert_eq!(asks(&world).len(), 1);
    ui.type_text("n");
    ui.expect("changed.", PATIENCE);
    ui.type_text("a");
    std::thread::sleep(SETTLED);
    ui.type_text("y");
    ui.expect("Answered.", PATIENCE);
    assert!(asks(&world).is_empty());
    ui.type_text("q");
    let (screen, status) = ui.finish(PATIENCE);
    assert_eq!(status, Some(0));
    assert!(screen.contains("\u{1b}[?2004l"), "the marks are off again");
}

#[test]
fn a_chat_takes_a_paste_as_one_line_and_leaves_nothing_to_the_shell() {
    let mut world = World::new();
    world.pair();
    let mut chat = start(&world, &["chat", "bob"]);
    chat.expect_end("> ", PATIENCE);
    chat.type_text("one\n/quit\nthree\n");
    wait("the pasted line", || (texts(&world) == ["one /quit three"]).then_some(()));
    // The chat goes on; what comes alone is a command again.
    std::thread::sleep(SETTLED);
    world.kill_daemon("alice");
    chat.expect("daemon_unavailable", PATIENCE);
    chat.type_text("lost\n");
    chat.expect("Not sent", PATIENCE);
    // It goes on by itself when the daemon is back.
    world.start_daemon("alice");
    chat.expect("The daemon is back.", PATIENCE);
    std::thread::sleep(SETTLED);
    chat.type_text("four\n");
    wait("the line after", || (texts(&world) == ["one /quit three", "four"]).then_some(()));
    chat.type_text("half a line, for nob");
    let mut shell = chat.next_reader();
    std::thread::sleep(SETTLED);
    chat.interrupt();
    assert_eq!(chat.left_to(&mut shell, PATIENCE), "", "the shell would run it");
}

#[test]
fn a_question_on_the_command_line_is_not_answered_ahead() {
    let world = held();
    let id = asks(&world)[0]["id"].as_str().unwrap().to_owned();
    // The answer is in the terminal before the program starts.
    let mut terminal = start_with_typed(&world, &["answer", &id, "always"], "y\n");
    terminal.expect("y/N", PATIENCE);
    std::thread::sleep(SETTLED);
    assert_eq!(asks(&world).len(), 1);
    terminal.type_text("n\n");
    assert_eq!(terminal.finish(PATIENCE).1, Some(4));
}

fn start_with_typed(world: &World, arguments: &[&str], typed: &str) -> Terminal {
    let mut command = Command::new("sh");
    // The program starts when the text is there.
    command.args(["-c", "sleep 0.3; exec \"$@\"", "sh", PROGRAM, "--home"]).arg(world.path("alice"));
    command.args(arguments).env_remove("MESSAGING_HOME");
    let mut terminal = Terminal::start(&mut command);
    terminal.type_text(typed);
    terminal
}

#[test]
fn bytes_that_are_no_text_are_refused_aloud() {
    let mut world = World::new();
    world.pair();
    let mut command = Command::new(PROGRAM);
    command.arg("--home").arg(world.path("alice")).args(["chat", "bob"]).env_remove("MESSAGING_HOME");
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null());
    let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"l1\xff\nl2\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && words.contains("UTF-8"), "{words}");
    assert!(texts(&world).is_empty());
}
