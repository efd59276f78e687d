//! What every verb shows on a terminal of 80 columns, against the screens in `golden/`, from a real relay and daemons.
//!
//! `UPDATE_GOLDEN=1 cargo test -p messaging --test golden` writes the screens anew; look at them before committing.

#![allow(clippy::unwrap_used)]

mod album;
mod terminal;
mod world;

use album::{Album, fits, program};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use terminal::{Terminal, normalise, plain};
use world::{Agent, PATIENCE, PROGRAM, World, wait};

/// An id in a screen.
fn id_in(screen: &str) -> String {
    let id = regex::Regex::new(r"(?-u:\b)01[0-9A-HJKMNP-TV-Z]{24}(?-u:\b)").unwrap();
    id.find(screen).unwrap_or_else(|| panic!("no id in {screen}")).as_str().to_owned()
}

fn word_in(screen: &str, prefix: &str) -> String {
    screen.split_whitespace().find(|word| word.starts_with(prefix)).unwrap().to_owned()
}

/// Every leaf of the table of verbs, from the completion script.
fn leaves() -> BTreeSet<String> {
    let script = Command::new(PROGRAM).args(["completions", "bash"]).output().unwrap();
    let script = String::from_utf8(script.stdout).unwrap();
    let paths: Vec<String> = script
        .lines()
        .filter_map(|line| {
            line.trim().strip_prefix('"')?.split_once("\") offer=").map(|(path, _)| path.to_owned())
        })
        .filter(|path| !path.is_empty())
        .collect();
    assert!(paths.len() > 50, "{paths:?}");
    let leaf = |path: &&String| !paths.iter().any(|other| other.starts_with(&format!("{path} ")));
    paths.iter().filter(leaf).map(|path| path.replace(' ', "-")).collect()
}

#[test]
fn every_verb_has_a_screen_and_every_screen_is_as_it_was() {
    let mut world = World::new();
    let mut album = Album::new(world.folder.path());
    before_a_team(&mut album, &world);
    services(&mut album, &world);
    demonstration(&mut album, &world);
    team(&mut album, &mut world);
    let (mut planner, mut builder) = agents(&mut album, &world);
    mail(&mut album, &world, &mut planner, &mut builder);
    tasks(&mut album, &world, &mut builder);
    chats(&mut album, &world);
    echo(&mut album, &world);
    hosted(&mut album, &world);
    out_of_reach(&mut album, &mut world, &mut builder);
    // A group's own name with more words is a screen of its member: `inbox-empty` is one of `inbox`.
    let shown =
        |leaf: &String| album.seen.iter().any(|name| name == leaf || name.starts_with(&format!("{leaf}-")));
    // The whole screens of `ui` are in `tmux/`.
    let missing: Vec<String> = leaves().into_iter().filter(|leaf| !shown(leaf) && leaf != "ui").collect();
    assert!(missing.is_empty(), "no screen of {missing:?}");
    album.check();
}

/// Stops the daemon that `daemon start` left behind, also when the test fails.
struct Stop(PathBuf);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = program(&self.0, &["daemon", "stop"]).output();
    }
}

fn before_a_team(album: &mut Album, world: &World) {
    let solo = world.path("solo");
    album.shot("version", &solo, &["version"]);
    album.shot("help-send", &solo, &["help", "send"]);
    let help = String::from_utf8(program(&solo, &["help"]).output().unwrap().stdout).unwrap();
    for leaf in leaves() {
        let verb = leaf.split('-').next().unwrap();
        let listed = help.lines().any(|line| line.trim_start().starts_with(verb));
        assert!(listed || verb == "relay", "help does not list {verb}");
    }
    assert!(help.lines().all(|line| line.starts_with("      messaging ") || line.chars().count() <= 80));
    album.shot("usage", &solo, &["sned", "bob"]);
    album.shot("usage-nothing", &solo, &[]);
    album.shot("usage-group", &solo, &["daemon"]);
    album.shot("usage-flag", &solo, &["send", "bob/agent", "hello", "--wiat", "3"]);
    album.shot("usage-words", &solo, &["send", "bob/agent", "hello", "there"]);
    album.shot("usage-as-json", &solo, &["--json", "send"]);
    album.shot("explain", &solo, &["explain", "unknown_session"]);
    album.shot("explain-all", &solo, &["explain"]);
    album.shot("doctor-no-home", &solo, &["doctor"]);
    album.shot("status-no-daemon", &solo, &["status"]);
    album.shot("status-no-daemon-named", &solo, &["--home", solo.to_str().unwrap(), "status"]);
    album.shot("log-none", &solo, &["log"]);
    let _stop = Stop(solo.clone());
    album.shot("daemon-start", &solo, &["daemon", "start"]);
    album.shot("daemon-start-again", &solo, &["daemon", "start"]);
    album.shot("daemon-health", &solo, &["daemon", "health"]);
    album.shot("daemon-status", &solo, &["daemon", "status"]);
    album.shot("status-no-team", &solo, &["status"]);
    album.shot("inbox-no-team", &solo, &["inbox"]);
    album.shot("doctor-no-team", &solo, &["doctor"]);
    album.shot("team-claim-none", &solo, &["team", "claim"]);
    album.shot("team-prepare", &solo, &["team", "prepare"]);
    album.shot("team-pair-cancel", &solo, &["team", "pair-cancel"]);
    album.shot("identity-migrate-running", &solo, &["identity", "migrate", "--to", "file"]);
    album.shot("daemon-snapshot", &solo, &["daemon", "snapshot"]);
    album.shot("daemon-snapshot-done", &solo, &["daemon", "snapshot", "--done"]);
    album.shot("daemon-snapshot-none", &solo, &["daemon", "snapshot", "--done"]);
    album.shot("daemon-stop", &solo, &["daemon", "stop"]);
    album.shot("daemon-stop-again", &solo, &["daemon", "stop"]);
    album.shot("identity-migrate-none", &solo, &["identity", "migrate", "--to", "file"]);
    let logged = world.path("logged");
    std::fs::create_dir_all(logged.join("logs")).unwrap();
    std::fs::write(
        logged.join("logs/messagingd.log"),
        "{\"at\":1796223062000,\"level\":\"info\",\"event\":\"daemon.start\",\"version\":\"0.1.0\"}\n\
         {\"at\":1796223063000,\"level\":\"warn\",\"event\":\"relay.closed\",\"code\":1006}\n\
         {\"at\":1796223064000,\"level\":\"debug\",\"event\":\"relay.dial\"}\n",
    )
    .unwrap();
    album.shot("log", &logged, &["log", "--level", "info"]);
    album.shot("man", &solo, &["man", &world.path("man").to_string_lossy()]);
    album.shot("completions-unknown", &solo, &["completions", "tcsh"]);
    // The path of the program differs from machine to machine.
    let program = std::fs::canonicalize(PROGRAM).unwrap();
    let folder = std::mem::replace(&mut album.folder, program.to_str().unwrap().to_owned());
    album.shot("service-show", Path::new("/var/lib/alice"), &["service", "show", "--kind", "systemd"]);
    album.shot(
        "service-show-launchd",
        Path::new("/var/lib/alice"),
        &["service", "show", "--kind", "launchd"],
    );
    album.shot("hook", Path::new("/var/lib/alice"), &["hook", "claude-code", "--print-config"]);
    album.folder = folder;
    album.shot("hook-by-hand", &solo, &["hook", "codex"]);
    album.shot("hook-unknown", &solo, &["hook", "emacs", "--print-config"]);
    let user = world.path("user");
    std::fs::create_dir_all(&user).unwrap();
    for (name, verb) in [("service-install", "install"), ("service-uninstall", "uninstall")] {
        let mut command = program_as(&user, &["service", verb]);
        let (text, status) = Terminal::start(&mut command).finish(PATIENCE);
        let screen = format!("$ messaging service {verb}\n{}[exit {}]\n", plain(&text), status.unwrap());
        album.keep(name, &normalise(&screen, &album.folder));
    }
}

/// The two services in the foreground: ready, and stopped by Ctrl-C.
fn services(album: &mut Album, world: &World) {
    let run = |album: &mut Album, name: &str, home: &Path, arguments: &[&str], ready: &str| {
        album.shot_with(name, home, arguments, |terminal| {
            terminal.expect(ready, PATIENCE);
            terminal.interrupt();
        });
    };
    let db = world.path("other.db");
    let flags = ["relay", "--listen", "127.0.0.1:0", "--db", db.to_str().unwrap()];
    run(album, "relay", &world.path("solo"), &flags, "messaging-relay: ready");
    run(album, "daemon-run", &world.path("other"), &["daemon", "run"], "messagingd: ready");
    for (name, arguments) in [
        ("relay-help", &["relay", "--help"][..]),
        ("relay-usage", &["relay", "--listen", "8787"]),
        ("relay-refused", &["relay", "--db", "/nonexistent/relay.db", "--listen", "127.0.0.1:0"]),
        ("daemon-run-help", &["daemon", "run", "--help"]),
        ("daemon-run-usage", &["daemon", "run", "--level", "info"]),
    ] {
        album.shot(name, &world.path("solo"), arguments);
    }
}

/// Its times differ from run to run, and with them where its lines are broken.
fn demonstration(album: &mut Album, world: &World) {
    let mut command = program_as(&world.path("solo"), &["demo"]);
    let (text, status) = Terminal::start(&mut command).finish(PATIENCE);
    let text = plain(&text);
    fits(&text);
    let whole = regex::Regex::new(r"\n {25,}").unwrap().replace_all(&text, " ").into_owned();
    let whole =
        regex::Regex::new("(?s)It works.*").unwrap().replace(&whole, |found: &regex::Captures<'_>| {
            format!("{}\n", found[0].split_whitespace().collect::<Vec<_>>().join(" "))
        });
    let screen = format!("$ messaging demo\n{whole}[exit {}]\n", status.unwrap());
    album.keep("demo", &normalise(&screen, &album.folder));
}

/// An agent of bob's that answers alice, until it is stopped.
fn echo(album: &mut Album, world: &World) {
    album.shot_with("echo", &world.path("bob"), &["echo"], |terminal| {
        terminal.expect("answers every message", PATIENCE);
        world.cli_json("alice", &["send", "bob/echo", "Hello there", "--wait", "60"]);
        terminal.expect("answered", PATIENCE);
        terminal.interrupt();
    });
    let item = wait("the answer", || {
        let list = world.cli_json("alice", &["inbox"]);
        list["items"].get(0).map(|item| item["id"].as_str().unwrap().to_owned())
    });
    world.cli_json("alice", &["read", &item]);
}

/// A user without a systemd session, as in a container.
fn program_as(user: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).env("HOME", user).env_remove("XDG_CONFIG_HOME").env_remove("MESSAGING_HOME");
    command
}

fn team(album: &mut Album, world: &mut World) {
    for name in ["alice", "bob", "carol"] {
        world.start_daemon(name);
    }
    let (alice, bob, carol) = (world.path("alice"), world.path("bob"), world.path("carol"));
    let relay = world.relay_url();
    album.shot(
        "team-create",
        &alice,
        &["team", "create", "--relay", &relay, "--name", "Blue", "--person", "alice", "--label", "laptop"],
    );
    let invite = album.shot("team-invite", &alice, &["team", "invite", "bob"]);
    let ticket = word_in(&invite, "messaging1.");
    album.shot("team-join", &bob, &["team", "join", &ticket, "--label", "desk"]);
    album.shot("team-join-again", &carol, &["team", "join", &ticket, "--label", "nook"]);
    let second = world.cli_json("alice", &["team", "invite", "dave"]);
    album.shot("team-revoke", &alice, &["team", "revoke", second["inviteId"].as_str().unwrap()]);
    let info = world.cli_json("alice", &["team", "info"]);
    let card = info["card"].as_str().unwrap();
    let pair =
        album.shot("team-pair", &carol, &["team", "pair", card, "--person", "carol", "--label", "nook"]);
    let admit = word_in(&pair, "messaging-admit.");
    album.shot("team-claim-waiting", &carol, &["team", "claim"]);
    album.shot("team-add", &alice, &["team", "add", &admit]);
    // Seen once only: the claim that finds the entry ends the pairing.
    let (text, _) = wait("carol to be added", || {
        let claim = Terminal::start(&mut program(&carol, &["team", "claim"])).finish(PATIENCE);
        (!claim.0.contains("Not added")).then_some(claim)
    });
    album.keep("team-claim", &format!("$ messaging team claim\n{}", normalise(&plain(&text), &album.folder)));
    album.shot("identity-show-carol", &carol, &["identity", "show"]);
    album.shot("team-role", &alice, &["team", "role", "bob@desk", "admin"]);
    album.shot("team-role-nobody", &alice, &["team", "role", "bob@shed", "admin"]);
    album.shot("team-invite-forbidden", &carol, &["team", "invite", "eve"]);
    album.shot("team-info", &alice, &["team", "info"]);
    album.shot("identity-show", &alice, &["identity", "show"]);
    album.shot("identity-rotate-enc", &bob, &["identity", "rotate-enc"]);
    album.shot_with("team-remove", &alice, &["team", "remove", "carol@nook"], |terminal| {
        terminal.expect("y/N\r\n", PATIENCE);
        terminal.type_text("y\n");
    });
    world.kill_daemon("carol");
    album.shot("status", &alice, &["status"]);
    album.shot("doctor", &alice, &["doctor"]);
}

fn agents(album: &mut Album, world: &World) -> (Agent, Agent) {
    let mut planner = Agent::new(world, "alice", "planner");
    let mut builder = Agent::new(world, "bob", "builder");
    album.shot("agents-none", &world.path("alice"), &["agents"]);
    planner.inbox();
    builder.inbox();
    world.until_contact("alice", "bob/builder@desk");
    // Bob's terminal is a session too; its first command makes it one.
    world.cli_json("bob", &["inbox"]);
    world.until_contact("alice", "bob/cli@desk");
    world.cli_json("alice", &["inbox"]);
    album.shot("contacts", &world.path("alice"), &["contacts"]);
    album.shot("agents", &world.path("alice"), &["agents"]);
    (planner, builder)
}

/// The stage of something alice's terminal sent.
fn until_stage(world: &World, id: &str, stage: &str) {
    wait(stage, || (world.cli_json("alice", &["sent", id])["stage"] == stage).then_some(()));
}

fn mail(album: &mut Album, world: &World, planner: &mut Agent, builder: &mut Agent) {
    let (alice, bob) = (world.path("alice"), world.path("bob"));
    album.shot("inbox-empty", &alice, &["inbox"]);
    album.shot("sent-none", &alice, &["sent"]);
    let sent = album.shot("send", &alice, &["send", "bob/builder@desk", "Is the build green?"]);
    let first = id_in(&sent);
    until_stage(world, &first, "held");
    album.shot("send-unknown", &alice, &["send", "bob/nosuch", "hello"]);
    album.shot("send-secret", &alice, &["send", "bob/builder", "ghp_0123456789abcdefghijABCDEFGHIJ012345"]);
    album.shot("sent", &alice, &["sent"]);
    album.shot("sent-id", &alice, &["sent", &first]);
    let requests = album.shot("requests", &bob, &["requests"]);
    let request = id_in(&requests);
    album.shot_with("answer", &bob, &["answer", &request, "once"], |terminal| {
        terminal.expect("y/N\r\n", PATIENCE);
        terminal.type_text("n\n");
    });
    album.shot_with("requests-answer", &bob, &["requests", "--answer"], |terminal| {
        terminal.expect("q)uit?\r\n", PATIENCE);
        terminal.type_text("a\n");
        terminal.expect("y/N\r\n", PATIENCE);
        terminal.type_text("y\n");
    });
    album.shot("requests-none", &bob, &["requests"]);
    let item = wait("the message", || builder.inbox().first().cloned());
    builder.call("inbox.ack", json!({"ids": [item["id"]], "stage": "handed_to_agent"})).unwrap();
    until_stage(world, &first, "handed_to_agent");
    album.shot("grants", &bob, &["grants"]);
    album.shot("grant", &alice, &["grant", "bob", "--ask", "open", "--yes"]);
    album.shot_with("grant-trust", &bob, &["grant", "alice", "--ask", "open", "--trust", "7"], |terminal| {
        terminal.expect("y/N\r\n", PATIENCE);
        terminal.type_text("y\n");
    });
    let answer =
        json!({"to": "alice/cli@laptop", "parts": [{"text": "Green since noon."}], "replyTo": item["id"]});
    builder.call("msg.send", answer).unwrap();
    wait("the answer", || world.cli_json("alice", &["inbox"])["items"].get(0).cloned());
    until_stage(world, &first, "replied");
    let inbox = album.shot("inbox", &alice, &["inbox"]);
    album.shot("read", &alice, &["read", &id_in(&inbox)]);
    album.shot("inbox-all", &alice, &["inbox", "--all"]);
    album.shot("read-with-agent", &alice, &["read", "--with", "agent:bob/builder"]);
    let asked = planner.send("bob/builder@desk", "Which commit?", "one");
    planner.wait_stage(&asked, "delivered");
    album.shot("agent", &alice, &["agent", "planner"]);
    album.shot("agent-with", &alice, &["agent", "planner", "--with", "agent:bob/builder"]);
    album.shot("sent-busy", &alice, &["sent"]);
}

fn tasks(album: &mut Album, world: &World, builder: &mut Agent) {
    let alice = world.path("alice");
    album.shot("tasks-none", &alice, &["tasks"]);
    album.shot("send-task", &alice, &["send", "bob/builder@desk", "Run the migration on staging", "--task"]);
    let task = world.cli_json("alice", &["tasks"])["tasks"][0]["taskId"].as_str().unwrap().to_owned();
    let get = |builder: &mut Agent| builder.call("task.get", json!({"taskId": task})).ok();
    wait("the task", || get(builder));
    let working = json!({"taskId": task, "state": "TASK_STATE_WORKING", "message": [{"text": "on it"}]});
    builder.call("task.update", working).unwrap();
    wait("work on the task", || {
        let shown = world.cli_json("alice", &["task", "show", &task]);
        (shown["task"]["state"] == "TASK_STATE_WORKING").then_some(())
    });
    album.shot("tasks", &alice, &["tasks"]);
    album.shot("task-show", &alice, &["task", "show", &task]);
    album.shot("task-update", &alice, &["task", "update", &task, "--state", "completed"]);
    album.shot("task-cancel", &alice, &["task", "cancel", &task, "--reason", "not needed"]);
}

fn chats(album: &mut Album, world: &World) {
    let (alice, bob) = (world.path("alice"), world.path("bob"));
    album.shot("chats-none", &alice, &["chats"]);
    album.shot("send-line", &alice, &["send", "bob", "Lunch at noon?"]);
    wait("the line", || {
        let page = world.cli_json("bob", &["read", "--with", "dm:alice"]);
        (page["lines"].as_array().unwrap().len() == 1).then_some(())
    });
    wait("its confirmation", || {
        let page = world.cli_json("alice", &["read", "--with", "dm:bob"]);
        (page["lines"][0]["state"] == "delivered").then_some(())
    });
    album.shot("chats", &bob, &["chats"]);
    album.shot_with("chat-with", &bob, &["chat", "alice"], |terminal| {
        terminal.expect("Lunch at noon?", PATIENCE);
        terminal.expect_end("> ", PATIENCE);
        terminal.type_text("Yes, the usual place\n");
        // The terminal repeats what is typed; the second is the line as sent, with its mark.
        wait("bob's line", || {
            let page = world.cli_json("alice", &["read", "--with", "dm:bob"]);
            (page["lines"].as_array().unwrap().len() == 2).then_some(())
        });
        terminal.expect("✓ Yes, the usual place", PATIENCE);
        terminal.expect_end("> ", PATIENCE);
        terminal.type_text("/quit\n");
    });
    album.shot("read-with", &alice, &["read", "--with", "dm:bob"]);
    album.shot("chat-mark-read", &alice, &["chat", "mark-read", "dm:bob"]);
    album.shot("channel-create", &alice, &["channel", "create", "eng", "bob"]);
    album.shot("channel-create-again", &alice, &["channel", "create", "eng", "bob"]);
    album.shot("channel-invite", &alice, &["channel", "invite", "eng", "bob"]);
    wait("the channel at bob's", || {
        let list = world.cli_json("bob", &["chats"]);
        let all = list["conversations"].as_array().unwrap();
        all.iter().any(|one| one["conversation"] == "channel:eng").then_some(())
    });
    album.shot("send-channel", &alice, &["send", "#eng", "Deploying at five"]);
    wait("the line in the channel", || {
        let page = world.cli_json("bob", &["read", "--with", "channel:eng"]);
        page["lines"].as_array().unwrap().iter().any(|line| line["text"] == "Deploying at five").then_some(())
    });
    album.shot("people", &alice, &["people", "b"]);
    album.shot("people-nobody", &alice, &["people", "zebra"]);
    album.shot("person", &alice, &["person", "bob"]);
    album.shot("person-nobody", &alice, &["person", "zebra"]);
    album.shot("notices", &bob, &["notices", "--ack"]);
    album.shot("notices-none", &bob, &["notices"]);
    album.shot("search", &bob, &["search", "deploying five"]);
    album.shot("search-nothing", &bob, &["search", "zebra"]);
    album.shot_with("chat-follow", &bob, &["chat", "follow", "--since", "0"], |terminal| {
        terminal.expect("channel:eng", PATIENCE);
        std::thread::sleep(std::time::Duration::from_millis(500));
        terminal.interrupt();
    });
    album.shot("channel-leave", &bob, &["channel", "leave", "eng"]);
    wait("his leaving at alice's", || {
        let list = world.cli_json("alice", &["chats"]);
        let all = list["conversations"].as_array().unwrap();
        let channel = all.iter().find(|one| one["conversation"] == "channel:eng").unwrap();
        let persons = channel["persons"].as_array().unwrap();
        persons.iter().all(|person| person != "bob").then_some(())
    });
    album.shot("channel-remove", &alice, &["channel", "remove", "eng", "bob"]);
}

/// What only a hosted realm has.
fn hosted(album: &mut Album, world: &World) {
    let alice = world.path("alice");
    album.shot("card", &alice, &["card", "bob"]);
    album.shot("contact", &alice, &["contact", "eve@example.org", "hello"]);
    album.shot("device-status", &alice, &["device", "status"]);
    album.shot("device-list", &alice, &["device", "list"]);
    album.shot("device-link", &alice, &["device", "link"]);
    album.shot("device-approve", &alice, &["device", "approve", "link", "--sas", "123456"]);
    let machine = "A".repeat(43);
    album.shot("device-remove", &alice, &["device", "remove", &machine]);
    album.shot("device-login", &alice, &["device", "login"]);
    album.shot("device-login-cancel", &alice, &["device", "login-cancel"]);
    album.shot("erase", &alice, &["erase"]);
    album.shot("identity-replace", &alice, &["identity", "replace"]);
}

/// The relay is gone: what cannot be known must not look like what is empty.
fn out_of_reach(album: &mut Album, world: &mut World, builder: &mut Agent) {
    let alice = world.path("alice");
    let _ = builder;
    world.kill_relay();
    wait("alice's daemon to notice", || {
        let health = world.cli_json("alice", &["daemon", "health"]);
        (health["relay"] != "connected").then_some(())
    });
    album.shot("inbox-unknowable", &alice, &["inbox"]);
    album.shot("contacts-unknowable", &alice, &["contacts"]);
    album.shot("send-no-relay", &alice, &["send", "bob/builder@desk", "Still there?"]);
    album.shot("sent-no-relay", &alice, &["sent"]);
    album.shot("doctor-no-relay", &alice, &["doctor"]);
    let _: Value = world.cli_json("alice", &["status"]);
}
