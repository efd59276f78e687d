//! The daemon as a process.

use crate::mib;
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A daemon process, killed when dropped.
pub(crate) struct Daemon {
    child: Child,
    home: Home,
    /// From its start to its answer to a first call.
    pub(crate) served: Duration,
    /// Its process, which is a child of the recorder's when there is one.
    pid: u32,
}

impl Daemon {
    pub(crate) fn start(program: &Path, home: &Home) -> Self {
        Self::start_under(&[], program, home)
    }

    /// Starts it as the last arguments of another program.
    pub(crate) fn start_under(outer: &[&str], program: &Path, home: &Home) -> Self {
        let begin = Instant::now();
        let mut command = match outer.split_first() {
            Some((outer, arguments)) => {
                let mut command = Command::new(outer);
                command.args(arguments).arg(program);
                command
            }
            None => Command::new(program),
        };
        let mut child = command
            .arg("--home")
            .arg(home.path())
            .args(["daemon", "run"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let pid = line.strip_prefix("messagingd: ready ").unwrap().trim().parse().unwrap();
        let mut daemon = Self { child, home: home.clone(), served: Duration::ZERO, pid };
        daemon.client().call("daemon.status", json!({})).unwrap();
        daemon.served = begin.elapsed();
        daemon
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&Options::admin(self.home.clone())).unwrap()
    }

    /// A client with a session.
    pub(crate) fn register(&self, name: &str, key: &str, agent: &str) -> Client {
        let client = self.client();
        let register = json!({"key": key, "name": name, "agent": agent, "tier": "push"});
        client.call("session.register", register).unwrap();
        client
    }

    /// Ends it as `messaging daemon stop` does.
    pub(crate) fn stop(mut self) {
        self.client().call("daemon.stop", json!({})).unwrap();
        self.child.wait().unwrap();
    }

    /// Milliseconds of processor time it has used.
    pub(crate) fn processor_ms(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        // A hundred ticks a second on every Linux there is.
        ticks * 10
    }

    /// A figure of `/proc/<pid>/status`, in MiB.
    pub(crate) fn memory(&self, name: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        mib(kib * 1024)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if self.pid != self.child.id() {
            messaging_smol::supervise::terminate(self.pid);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
