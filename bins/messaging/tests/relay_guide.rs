//! Every command of the operator's guide is run, under a folder that stands for `/`, on a free port. What needs a service
//! manager, Docker or a release build is listed, with what is done instead.

#![allow(clippy::unwrap_used)]

mod world;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use world::PATIENCE;

const RELAY: &str = env!("CARGO_BIN_EXE_messaging-relay");

/// Commands that are not run here, and why. A command that begins with none of these is run.
const NOT_HERE: &[(&str, &str)] = &[
    ("cargo build --release", "takes minutes; the program of this test run stands for it"),
    ("systemctl ", "there is no service manager in a container; the unit is verified below"),
    ("journalctl ", "the same"),
    ("docker ", "there is no Docker daemon in a container; the image's command is in tests/relay_docs.rs"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A relay of the guide; killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The machine of the guide.
struct Host {
    folder: tempfile::TempDir,
    port: u16,
}

impl Host {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["usr/local/bin", "etc/systemd/system", "var/lib/messaging-relay", "var/backups", "work"]
        {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let testdata = root().join("adapters/smol/testdata/tls");
        let tls = [("one.crt", "fullchain.pem"), ("one.key", "privkey.pem")];
        for (from, to) in tls {
            std::fs::copy(testdata.join(from), folder.path().join("work").join(to)).unwrap();
        }
        std::os::unix::fs::symlink(root().join("packaging"), folder.path().join("work/packaging")).unwrap();
        Self { folder, port }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The command with its paths under the folder and its ports free ones.
    fn filled(&self, command: &str) -> String {
        let mut command = command.replace("target/release/messaging-relay", RELAY);
        for name in ["/usr/", "/etc/", "/var/"] {
            let under = format!(" {}{name}", self.folder.path().display());
            command = command.replace(&format!(" {name}"), &under);
        }
        command
            .replace("127.0.0.1:8787", &format!("127.0.0.1:{}", self.port))
            .replace("0.0.0.0:443", "127.0.0.1:0")
    }

    fn shell(&self, command: &str) -> Command {
        let mut shell = Command::new("sh");
        let path = format!("{}:{}", self.path("usr/local/bin").display(), std::env::var("PATH").unwrap());
        shell.args(["-c", command]).current_dir(self.path("work")).env("PATH", path).stdin(Stdio::null());
        // A relay that names no address listens where the next one does.
        shell.env("MESSAGING_RELAY_LISTEN", format!("127.0.0.1:{}", self.port));
        shell
    }

    /// Starts a relay and waits until it serves.
    fn serve(&self, command: &str) -> Running {
        let mut shell = self.shell(&format!("exec {}", self.filled(command)));
        let mut child = shell.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let running = Running(child);
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let line = receiver.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{command} does not serve"));
        assert!(line.starts_with("messaging-relay: ready "), "{command}: {line}");
        running
    }

    fn run(&self, command: &str) -> String {
        let output = self.shell(&self.filled(command)).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{command}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// SIGTERM, as a service manager sends it, and a clean end.
fn stop(mut relay: Running) {
    messaging_smol::supervise::terminate(relay.0.id());
    let status = world::wait("the relay to stop", || relay.0.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

fn commands() -> Vec<String> {
    let guide = std::fs::read_to_string(root().join("docs/relay.md")).unwrap();
    let blocks = guide.split("```").filter_map(|block| block.strip_prefix("sh\n"));
    blocks.flat_map(|block| block.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
}

#[test]
fn every_command_of_the_guide_is_run_or_listed() {
    let host = Host::new();
    let plain = "messaging-relay --listen 127.0.0.1:8787 --db ./relay.db";
    let (mut ran, mut listed) = (0, Vec::new());
    for command in commands() {
        if let Some((prefix, _)) = NOT_HERE.iter().find(|(prefix, _)| command.starts_with(prefix)) {
            listed.push(*prefix);
            continue;
        }
        ran += 1;
        if command == "messaging-relay --version" {
            assert!(host.run(&command).contains("protocol messaging/1"));
        } else if command.starts_with("messaging-relay ") {
            stop(host.serve(&command));
        } else if command.starts_with("curl ") {
            let relay = host.serve(plain);
            assert!(host.run(&command).contains("\"ok\":true"), "{command}");
            stop(relay);
        } else {
            host.run(&command);
        }
    }
    assert!(ran >= 9, "{ran}");
    for (prefix, _) in NOT_HERE {
        assert!(listed.contains(prefix), "the guide has no {prefix} any more");
    }
    // What they left behind: a backup that a relay serves, and settings that it reads.
    let backup =
        format!("messaging-relay --listen 127.0.0.1:0 --db {}", host.path("var/backups/relay.db").display());
    stop(host.serve(&backup));
    let settings = std::fs::read_to_string(host.path("etc/messaging/relay.env")).unwrap();
    assert_eq!(settings, "MESSAGING_RELAY_RELAY_ID=wss://relay.example\n");
}

/// The installed unit, and the one `messaging service` writes, as systemd reads them; where it is not installed, not.
#[test]
fn systemd_takes_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        return;
    }
    let host = Host::new();
    let program = host.path("usr/local/bin/messaging-relay");
    std::fs::copy(RELAY, &program).unwrap();
    let unit = std::fs::read_to_string(root().join("packaging/systemd/messaging-relay.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/local/bin/messaging-relay "));
    let unit = unit.replace("/usr/local/bin/messaging-relay", program.to_str().unwrap());
    verify(&host.path("messaging-relay.service"), &unit, &[]);
    let shown = Command::new(world::PROGRAM)
        .args(["--home", "/var/lib/alice of blue", "service", "show", "--kind", "systemd"])
        .output()
        .unwrap();
    let unit = String::from_utf8(shown.stdout).unwrap();
    // The manual pages are installed by their own command.
    let unit = unit.replace("Documentation=man:messaging(1)\n", "");
    verify(&host.path("messaging-daemon.service"), &unit, &["--user"]);
    // The check can fail.
    let wrong = unit.replace("[Service]", "[Service]\nNoSuchSetting=yes");
    std::fs::write(host.path("wrong.service"), wrong).unwrap();
    assert!(!systemd_says(&host.path("wrong.service"), &["--user"]).is_empty());
}

fn verify(path: &Path, unit: &str, flags: &[&str]) {
    std::fs::write(path, unit).unwrap();
    assert_eq!(systemd_says(path, flags), "", "{unit}");
}

/// What it says of this unit alone; others of the machine may have faults of their own.
fn systemd_says(path: &Path, flags: &[&str]) -> String {
    let mut command = Command::new("systemd-analyze");
    command
        .args(flags)
        .args(["verify", "--recursive-errors=no"])
        .arg(path)
        .env("XDG_RUNTIME_DIR", path.parent().unwrap());
    let output = command.output().unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.lines().filter(|line| line.contains(name)).map(|line| format!("{line}\n")).collect()
}

/// The launchd agent parses as XML, with the paths as they are; by Python, which the tests of the MCP server need too.
#[test]
fn launchds_agent_is_a_property_list() {
    let home = "/var/lib/a & b <c> \"d\"";
    let shown = Command::new(world::PROGRAM)
        .args(["--home", home, "service", "show", "--kind", "launchd"])
        .output()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.plist");
    std::fs::write(&file, &shown.stdout).unwrap();
    let script = "import json, plistlib, sys; print(json.dumps(plistlib.load(open(sys.argv[1], 'rb'))))";
    let Ok(output) = Command::new("python3").args(["-c", script]).arg(&file).output() else { return };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let agent: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let arguments = agent["ProgramArguments"].as_array().unwrap();
    assert_eq!(arguments[1..], ["daemon", "run", "--home", home]);
    // Exit 70 is no crash to launchd, and must be started again all the same.
    assert_eq!(agent["KeepAlive"]["SuccessfulExit"], false);
    assert_eq!(agent["RunAtLoad"], true);
}
