//! Every command in the documentation is run, on machines of its own, and shows what the page says it shows.
//!
//! A block begins with three backticks and `console <machine> [background] [exit=<status>]`. Lines that begin with `$ ` are run
//! there, in a terminal of 80 columns; the lines after one are what it shows, `…` standing for any text and, alone, for any
//! lines. `<ticket>`, `<card>`, `<admit card>` and `<id>` are what was shown last. A command that only looks is run again until
//! it shows what the page says, since what it looks for may be on its way. `export` holds for what follows on that machine.
//!
//! Pages that run as they stand on one computer are run on one: with the same user, home folder and working directory for every
//! terminal.

#![allow(clippy::unwrap_used)]

mod terminal;
mod world;

use regex::Regex;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use terminal::{Terminal, plain};
use world::{PATIENCE, PROGRAM};

/// Pages whose every block is held to the rules above. Others may have blocks of other kinds.
const STRICT: &[&str] = &[
    "README.md",
    "docs/quickstart.md",
    "docs/two-machines.md",
    "docs/team-of-five.md",
    "docs/own-user.md",
    "docs/security.md",
    "docs/troubleshooting.md",
    "docs/protocol.md",
    "docs/backup.md",
    "docs/replay.md",
];

/// Commands of `sh` blocks, which something else runs.
const ELSEWHERE: &[&str] = &[
    "cargo run --release --bin messaging -- demo",
    "cargo test --workspace",
    "cargo install --path bins/messaging",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A command and what it shows.
struct Step {
    machine: String,
    command: String,
    shows: Vec<String>,
    background: bool,
    exit: i32,
    line: usize,
}

/// A block of a page: its first line's words after the backticks, and its lines with their numbers.
type Block = (String, Vec<(usize, String)>);

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), open) {
            (Some(info), false) => {
                blocks.push((info.to_owned(), Vec::new()));
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => blocks.last_mut().unwrap().1.push((at + 1, line.to_owned())),
            (None, false) => {}
        }
    }
    assert!(!open, "a block does not end");
    blocks
}

fn steps(page: &str, text: &str) -> Vec<Step> {
    let strict = STRICT.contains(&page);
    let mut steps = Vec::new();
    for (info, lines) in blocks(text) {
        let words: Vec<&str> = info.split_whitespace().collect();
        if words.first() != Some(&"console") {
            for (at, line) in lines.iter().filter(|_| strict) {
                let command = line.trim_start().trim_start_matches("$ ");
                if info == "sh" {
                    assert!(ELSEWHERE.contains(&command), "{page}:{at}: nothing runs `{command}`");
                }
                assert!(
                    !command.starts_with("messaging "),
                    "{page}:{at}: a command in a block that is not run"
                );
            }
            continue;
        }
        let machine = words.get(1).unwrap_or_else(|| panic!("{page}: a console block without a machine"));
        let exit =
            words.iter().find_map(|word| word.strip_prefix("exit=")).map_or(0, |exit| exit.parse().unwrap());
        for (at, line) in lines {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    machine: (*machine).to_owned(),
                    command: command.to_owned(),
                    shows: Vec::new(),
                    background: words.contains(&"background"),
                    exit,
                    line: at,
                }),
                (None, Some(step)) if step.line < at => step.shows.push(line),
                (None, _) => panic!("{page}:{at}: output before a command"),
            }
        }
    }
    steps
}

/// Whether the lines shown are those of the page.
fn fits(shown: &[&str], page: &[String]) -> bool {
    let Some((first, rest)) = page.split_first() else { return shown.iter().all(|line| line.is_empty()) };
    if first.trim() == "…" {
        return (0..=shown.len()).any(|skip| fits(&shown[skip..], rest));
    }
    let Some((line, others)) = shown.split_first() else { return false };
    let pieces: Vec<String> = first.trim_end().split('…').map(regex::escape).collect();
    let pattern = Regex::new(&format!("^{}$", pieces.join(".*"))).unwrap();
    pattern.is_match(line.trim_end()) && fits(others, rest)
}

/// The machines of one page.
struct Machines {
    folder: tempfile::TempDir,
    /// Whether all of them are terminals of one computer.
    together: bool,
    /// What each terminal has exported.
    exports: BTreeMap<String, Vec<String>>,
    tools: PathBuf,
    port: u16,
    background: Vec<Terminal>,
    last: BTreeMap<&'static str, String>,
    used: Vec<String>,
}

impl Machines {
    fn new(together: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let tools = folder.path().join("bin");
        std::fs::create_dir(&tools).unwrap();
        let programs = Path::new(PROGRAM).parent().unwrap();
        for name in ["messaging", "messagingd", "messaging-relay", "messaging-mcp"] {
            std::os::unix::fs::symlink(programs.join(name), tools.join(name)).unwrap();
        }
        let simulator = programs.join("messaging-sim");
        if !simulator.is_file() {
            // `cargo test --workspace` made it; a test of one package alone did not.
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
            assert!(cargo.args(["build", "-p", "messaging-sim-cli"]).status().unwrap().success());
        }
        std::os::unix::fs::symlink(simulator, tools.join("messaging-sim")).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Self {
            folder,
            together,
            exports: BTreeMap::new(),
            tools,
            port,
            background: Vec::new(),
            last: BTreeMap::new(),
            used: Vec::new(),
        }
    }

    fn home(&mut self, machine: &str) -> PathBuf {
        let machine = if self.together { "computer" } else { machine };
        let home = self.folder.path().join(machine);
        std::fs::create_dir_all(&home).unwrap();
        if !self.used.iter().any(|used| used == machine) {
            self.used.push(machine.to_owned());
        }
        home
    }

    fn filled(&self, command: &str) -> String {
        let mut command = command
            .replace("wss://relay.example", &format!("ws://127.0.0.1:{}", self.port))
            .replace("127.0.0.1:8787", &format!("127.0.0.1:{}", self.port))
            .replace("/mnt/backup", self.folder.path().join("backup").to_str().unwrap());
        for (name, value) in &self.last {
            command = command.replace(name, value);
        }
        command
    }

    fn start(&mut self, step: &Step) -> Terminal {
        let home = self.home(&step.machine);
        let path = format!("{}:{}", self.tools.display(), std::env::var("PATH").unwrap());
        let mut lines = self.exports.get(&step.machine).cloned().unwrap_or_default();
        lines.push(self.filled(&step.command));
        let mut command = Command::new("bash");
        command
            .args(["-c", &lines.join("\n")])
            .current_dir(&home)
            .env_clear()
            .envs([("PATH", path.as_str()), ("LANG", "C.UTF-8")])
            .env("HOME", &home)
            .env("USER", &step.machine)
            .env("MESSAGING_RELAY_LISTEN", format!("127.0.0.1:{}", self.port));
        Terminal::start(&mut command)
    }

    fn learn(&mut self, text: &str) {
        for (name, pattern) in [
            ("<ticket>", r"messaging1\.[A-Za-z0-9_-]+"),
            ("<card>", r"messaging-team\.[A-Za-z0-9_-]+"),
            ("<admit card>", r"messaging-admit\.[A-Za-z0-9_-]+"),
            ("<id>", r"(?-u:\b)01[0-9A-HJKMNP-TV-Z]{24}(?-u:\b)"),
        ] {
            if let Some(found) = Regex::new(pattern).unwrap().find(text) {
                self.last.insert(name, found.as_str().to_owned());
            }
        }
    }

    fn run(&mut self, page: &str, step: &Step) {
        let place = format!("{page}:{}: {}", step.line, step.command);
        if step.command.starts_with("export ") {
            assert!(step.shows.is_empty(), "{place} shows nothing");
            self.exports.entry(step.machine.clone()).or_default().push(step.command.clone());
            return;
        }
        if step.background {
            let mut terminal = self.start(step);
            let first = step.shows.first().unwrap_or_else(|| panic!("{place}: what does it show?"));
            let known = first.split('…').max_by_key(|piece| piece.len()).unwrap();
            terminal.expect(known.trim(), PATIENCE);
            self.background.push(terminal);
            return;
        }
        let end = Instant::now() + PATIENCE;
        loop {
            let (text, status) = self.start(step).finish(PATIENCE);
            let text = plain(&text);
            let lines: Vec<&str> = text.lines().collect();
            let right = status == Some(step.exit) && (step.shows.is_empty() || fits(&lines, &step.shows));
            if right {
                self.learn(&text);
                return;
            }
            assert!(
                looks(&step.command) && Instant::now() < end,
                "{place}\nthe page shows:\n{}\nit showed (status {status:?}):\n{text}",
                step.shows.join("\n")
            );
            std::thread::sleep(Duration::from_millis(150));
        }
    }
}

/// Whether a command changes nothing, so that it may be run again.
fn looks(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().filter(|word| !word.starts_with("--")).collect();
    let verb = words.get(1).copied().unwrap_or_default();
    let read = [
        "requests", "inbox", "sent", "contacts", "status", "chats", "tasks", "doctor", "search", "notices",
        "agents", "person", "people",
    ];
    words.first() == Some(&"messaging")
        && (read.contains(&verb)
            || matches!(words[1..], ["team", "info" | "claim", ..] | ["task", "show", ..])
            || command.contains("read --with"))
}

impl Machines {
    /// What the next page asks for first: Ctrl-C where something runs in a terminal, and new terminals.
    fn new_terminals(&mut self) {
        for terminal in std::mem::take(&mut self.background) {
            terminal.interrupt();
            terminal.finish(PATIENCE);
        }
        self.exports.clear();
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for machine in std::mem::take(&mut self.used) {
            let folder = self.folder.path().join(&machine);
            let inside = std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok);
            let homes = inside.map(|entry| entry.path()).filter(|path| path.join("run").is_dir());
            for home in homes.chain([folder.join("var")]) {
                let mut command = Command::new(PROGRAM);
                command.arg("--home").arg(home).args(["daemon", "stop"]);
                let _ = command.env("MESSAGING_DAEMON_UID", "64001").output();
            }
        }
    }
}

fn page(name: &str) {
    run_page(name, &mut Machines::new(false));
}

fn run_page(name: &str, machines: &mut Machines) {
    let text = std::fs::read_to_string(root().join(name)).unwrap();
    for step in &steps(name, &text) {
        machines.run(name, step);
    }
}

#[test]
fn readme() {
    run_page("README.md", &mut Machines::new(true));
}

/// Whoever follows one page after the other, on the same computer.
#[test]
fn quickstart_then_two_machines_then_a_team_of_five() {
    let mut machines = Machines::new(true);
    for page in ["docs/quickstart.md", "docs/two-machines.md", "docs/team-of-five.md"] {
        run_page(page, &mut machines);
        machines.new_terminals();
    }
}

#[test]
fn security() {
    page("docs/security.md");
}

#[test]
fn troubleshooting() {
    page("docs/troubleshooting.md");
}

#[test]
fn protocol() {
    page("docs/protocol.md");
}

#[test]
fn replay() {
    page("docs/replay.md");
}

#[test]
fn backup() {
    page("docs/backup.md");
}

/// The commands of this page make users and change owners. They run in a container's root alone, with numbers for the users.
#[test]
fn own_user() {
    let text = std::fs::read_to_string(root().join("docs/own-user.md")).unwrap();
    assert!(!steps("docs/own-user.md", &text).is_empty());
    if rustix::process::geteuid().is_root() {
        own_user_as_root(&steps("docs/own-user.md", &text));
    }
}

fn own_user_as_root(steps: &[Step]) {
    let mut machines = Machines::new(false);
    // Others must be able to pass through.
    let open = |path: &Path| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    open(machines.folder.path());
    // The program, where any user may run it.
    for name in ["messaging", "messagingd"] {
        std::fs::remove_file(machines.tools.join(name)).unwrap();
        std::fs::copy(PROGRAM, machines.tools.join(name)).unwrap();
        open(&machines.tools.join(name));
    }
    let shim = machines.tools.join("sudo");
    let home = machines.home("host");
    open(&home);
    std::fs::write(&shim, include_str!("docs/sudo.sh").replace("@WORLD@", home.to_str().unwrap())).unwrap();
    open(&shim);
    for step in steps {
        machines.run("docs/own-user.md", step);
    }
}

/// Pages of other hands: what they mark as `console` is run too.
#[test]
fn every_other_page() {
    for entry in std::fs::read_dir(root().join("docs")).unwrap() {
        let name = format!("docs/{}", entry.unwrap().file_name().to_str().unwrap());
        if name.ends_with(".md") && !STRICT.contains(&name.as_str()) {
            page(&name);
        }
    }
}

/// What the runner does not run, something else does.
#[test]
fn commands_that_build_are_run_by_ci() {
    let ci = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    for command in [
        "cargo test --workspace",
        "cargo install --path bins/messaging",
        "cargo install --path bins/messaging-mcp",
    ] {
        assert!(ci.contains(command), "{command}");
    }
    // The demonstration: tests/first_light.rs.
}

/// The table of codes is the program's: a row for each code, with the same advice on trying again.
#[test]
fn troubleshooting_has_every_code() {
    let text = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let explained = Command::new(PROGRAM).args(["explain", "--json"]).output().unwrap();
    let explained: serde_json::Value = serde_json::from_slice(&explained.stdout).unwrap();
    let rows: BTreeMap<&str, Vec<&str>> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(code, rest)| (code, rest.trim_end_matches(" |").split(" | ").collect()))
        .collect();
    // What `messaging` says by itself in the same place.
    let own = ["usage", "answered_no"];
    let all: Vec<&str> = messaging_proto::Code::ALL.iter().map(|code| code.as_str()).chain(own).collect();
    assert_eq!(rows.len(), all.len(), "a row for each code and no other");
    let codes = explained["codes"].as_array().unwrap();
    assert_eq!(codes.len(), all.len());
    for code in all {
        let row = rows.get(code).unwrap_or_else(|| panic!("no row for {code}"));
        let known = codes.iter().find(|known| known["code"] == code).unwrap();
        assert_eq!(row.len(), 3, "{code}: meaning, try again, what to do");
        assert_eq!(row[1], known["retry"].as_str().unwrap(), "{code}");
        assert!(row[0].len() > 10 && row[2].len() >= 10, "{code} says too little");
    }
}

#[test]
fn what_fits_and_what_does_not() {
    let page = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    assert!(fits(&["sent 01M7 to bob"], &page("sent … to bob")));
    assert!(!fits(&["sent 01M7 to eve"], &page("sent … to bob")));
    assert!(fits(&["a", "b", "c"], &page("a\n…\nc")));
    assert!(fits(&["a", "c"], &page("a\n…\nc")));
    assert!(!fits(&["a", "b"], &page("a")));
    assert!(!fits(&["a"], &page("a\nb")));
    assert!(fits(&["a (b) [c]"], &page("a (b) [c]")));
}
