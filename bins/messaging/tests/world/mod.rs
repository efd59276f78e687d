//! Real processes on loopback: one relay, any number of daemons, and clients of their sockets.
#![allow(dead_code, clippy::unwrap_used, reason = "a helper of tests, each of which uses a part of it")]

mod beside;

use messaging_smol::client::{Client, ClientError, Options};
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long any one thing may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test; empty in the tests of another package, which find it beside their own program.
pub(crate) const PROGRAM: &str = match option_env!("CARGO_BIN_EXE_messaging") {
    Some(program) => program,
    None => "",
};

/// The path of the program.
pub(crate) fn program() -> PathBuf {
    if PROGRAM.is_empty() { beside::program("messaging") } else { PROGRAM.into() }
}

/// A process that is killed when dropped.
pub(crate) struct Process {
    child: Child,
    /// What followed `ready`.
    pub(crate) ready: String,
}

impl Process {
    /// Starts the program with `arguments`, its log in `log`, and waits for its ready line.
    pub(crate) fn start(arguments: &[&str], ready: &str, log: &Path) -> Self {
        Self::start_in(&[], arguments, ready, log)
    }

    /// Starts the program and kills it again after `life`, however far it came.
    pub(crate) fn flash(arguments: &[&str], life: Duration, log: &Path) {
        let log = File::options().create(true).append(true).open(log).unwrap();
        let mut command = Command::new(program());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().unwrap();
        std::thread::sleep(life);
        drop(Self { child, ready: String::new() });
    }

    /// As [`Process::start`], with an environment besides its own.
    pub(crate) fn start_in(
        environment: &[(&str, &str)],
        arguments: &[&str],
        ready: &str,
        log: &Path,
    ) -> Self {
        let mut command = Command::new(program());
        Self::start_command(command.args(arguments).envs(environment.iter().copied()), ready, log)
    }

    /// Starts a command of one's own.
    pub(crate) fn start_command(command: &mut Command, ready: &str, log: &Path) -> Self {
        let log = File::options().create(true).append(true).open(log).unwrap();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        Self::adopt(child, ready)
    }

    /// Takes over a child whose ready line is still to be read.
    pub(crate) fn adopt(mut child: Child, ready: &str) -> Self {
        let stdout = child.stdout.take().unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let line = receiver.recv_timeout(PATIENCE);
        let line = line.unwrap_or_else(|_| {
            let _ = child.kill();
            panic!("process {} did not start", child.id())
        });
        let ready =
            line.strip_prefix(ready).unwrap_or_else(|| panic!("unexpected line {line}")).trim().to_owned();
        Self { child, ready }
    }

    /// `kill -9`, and wait for the end.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, and the exit status.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        messaging_smol::supervise::terminate(self.child.id());
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the process did not end");
    }

    /// The exit status once it ended, which is nothing for a signal.
    pub(crate) fn status(&mut self) -> Option<Option<i32>> {
        self.child.try_wait().unwrap().map(|status| status.code())
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A folder with a relay and homes in it.
pub(crate) struct World {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) port: u16,
    relay: Option<Process>,
    daemons: Vec<(String, Option<Process>)>,
    relay_flags: Vec<String>,
    /// What daemons find in their environment besides.
    pub(crate) environment: Vec<(String, String)>,
}

impl World {
    /// A world whose relay runs.
    pub(crate) fn new() -> Self {
        Self::with_relay_flags(&[])
    }

    pub(crate) fn with_relay_flags(flags: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut world = Self {
            folder,
            port: 0,
            relay: None,
            daemons: Vec::new(),
            relay_flags: flags.iter().map(|&flag| flag.to_owned()).collect(),
            environment: Vec::new(),
        };
        world.start_relay();
        world
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn relay_url(&self) -> String {
        let tls = self.relay_flags.iter().any(|flag| flag == "--tls-cert");
        format!("{}://127.0.0.1:{}/v1/connect", if tls { "wss" } else { "ws" }, self.port)
    }

    /// Starts the relay, on the port it had before.
    pub(crate) fn start_relay(&mut self) {
        let db = self.path("relay.db");
        let listen = format!("127.0.0.1:{}", self.port);
        let mut arguments = vec!["relay", "--listen", &listen, "--db", db.to_str().unwrap()];
        arguments.extend(self.relay_flags.iter().map(String::as_str));
        let process = Process::start(&arguments, "messaging-relay: ready ", &self.path("relay.log"));
        self.port = process.ready.parse().unwrap();
        self.relay = Some(process);
    }

    /// Starts the relay and kills it again after `life`, however far it came.
    pub(crate) fn flash_relay(&self, life: Duration) {
        let (db, listen) = (self.path("relay.db"), format!("127.0.0.1:{}", self.port));
        let arguments = ["relay", "--listen", &listen, "--db", db.to_str().unwrap()];
        Process::flash(&arguments, life, &self.path("relay.log"));
    }

    pub(crate) fn relay(&mut self) -> &mut Process {
        self.relay.as_mut().unwrap()
    }

    pub(crate) fn kill_relay(&mut self) {
        self.relay.take().unwrap().kill();
    }

    pub(crate) fn home(&self, name: &str) -> Home {
        Home::new(&self.path(name))
    }

    /// Starts the daemon of the home `name`.
    pub(crate) fn start_daemon(&mut self, name: &str) {
        let home = self.path(name);
        let arguments = ["--home", home.to_str().unwrap(), "daemon", "run"];
        let log = self.path(&format!("{name}.log"));
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let process = Process::start_in(&environment, &arguments, "messagingd: ready ", &log);
        match self.daemons.iter_mut().find(|(known, _)| known == name) {
            Some((_, slot)) => *slot = Some(process),
            None => self.daemons.push((name.to_owned(), Some(process))),
        }
    }

    /// Starts the daemon of the home `name` and kills it again after `life`, however far it came.
    pub(crate) fn flash_daemon(&self, name: &str, life: Duration) {
        let home = self.path(name);
        let arguments = ["--home", home.to_str().unwrap(), "daemon", "run"];
        Process::flash(&arguments, life, &self.path(&format!("{name}.log")));
    }

    pub(crate) fn daemon(&mut self, name: &str) -> &mut Process {
        self.daemons.iter_mut().find(|(known, _)| known == name).unwrap().1.as_mut().unwrap()
    }

    /// Whether the daemon of the home `name` was started and not killed since.
    pub(crate) fn runs(&self, name: &str) -> bool {
        self.daemons.iter().any(|(known, process)| known == name && process.is_some())
    }

    pub(crate) fn kill_daemon(&mut self, name: &str) {
        let slot = &mut self.daemons.iter_mut().find(|(known, _)| known == name).unwrap().1;
        slot.take().unwrap().kill();
    }

    /// A client of the admin socket.
    pub(crate) fn admin(&self, name: &str) -> Client {
        Client::connect(&Options::admin(self.home(name))).unwrap()
    }

    /// Runs `messaging --home <name> arguments…`.
    pub(crate) fn cli(&self, name: &str, arguments: &[&str]) -> Output {
        Command::new(program())
            .arg("--home")
            .arg(self.path(name))
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs it with `--json`, expects success and returns the document.
    pub(crate) fn cli_json(&self, name: &str, arguments: &[&str]) -> Value {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let output = self.cli(name, &all);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{arguments:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until the machine `name` knows the session `address`.
    pub(crate) fn until_contact(&self, name: &str, address: &str) {
        wait(&format!("{address} in the directory of {name}"), || {
            let contacts = self.cli_json(name, &["contacts"]);
            let entries = contacts["entries"].as_array().unwrap();
            entries.iter().any(|entry| entry["address"] == address).then_some(())
        });
    }

    /// A team of `alice@laptop` and `bob@desk`, both daemons running, bob open to alice's asks.
    pub(crate) fn pair(&mut self) {
        for name in ["alice", "bob"] {
            if !self.runs(name) {
                self.start_daemon(name);
            }
        }
        let alice = self.admin("alice");
        let bob = self.admin("bob");
        let relay = self.relay_url();
        alice
            .call(
                "team.create",
                json!({"relay": relay, "name": "Blue", "person": "alice", "label": "laptop"}),
            )
            .unwrap();
        let invite = alice.call("team.invite", json!({"person": "bob"})).unwrap();
        bob.call("team.join", json!({"ticket": invite["ticket"], "label": "desk"})).unwrap();
        bob.call("grant.set", json!({"subject": {"person": "alice"}, "ask": "open"})).unwrap();
        // Her relay tells her of the new member soon after him.
        let open = json!({"subject": {"person": "bob"}, "ask": "open"});
        wait("bob in alice's roster", || alice.call("grant.set", open.clone()).ok());
    }
}

/// An agent session that comes back whenever its daemon does.
pub(crate) struct Agent {
    home: Home,
    name: &'static str,
    key: String,
    client: Option<Client>,
}

impl Agent {
    pub(crate) fn new(world: &World, home: &str, name: &'static str) -> Self {
        let key = format!("{name}-0123456789abcdefghijklmnop");
        Self { home: world.home(home), name, key, client: None }
    }

    /// Calls a method with the session's key; connects and registers again when the daemon was restarted.
    pub(crate) fn call(&mut self, method: &str, mut params: Value) -> Result<Value, ClientError> {
        params["key"] = json!(self.key);
        let end = Instant::now() + PATIENCE;
        loop {
            match self.try_call(method, params.clone()) {
                Err(error)
                    if error.code == messaging_proto::Code::DaemonUnavailable && Instant::now() < end =>
                {
                    self.client = None;
                    std::thread::sleep(Duration::from_millis(20));
                }
                other => return other,
            }
        }
    }

    fn try_call(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let client = Client::connect(&Options::agent(self.home.clone()))?;
                let register = json!({"key": self.key, "name": self.name, "agent": "test", "tier": "push"});
                client.call("session.register", register)?;
                client
            }
        };
        let result = client.call(method, params);
        self.client = Some(client);
        result
    }

    /// Sends a message with an idempotency key until the daemon says it took it; returns the envelope's id.
    pub(crate) fn send(&mut self, to: &str, text: &str, idempotency: &str) -> String {
        let params = json!({"to": to, "parts": [{"text": text}], "idempotencyKey": idempotency});
        let end = Instant::now() + PATIENCE;
        loop {
            match self.call("msg.send", params.clone()) {
                Ok(result) => return result["results"][0]["envelopeId"].as_str().unwrap().to_owned(),
                // The other agent's presence may be on its way.
                Err(error) if Instant::now() < end => {
                    assert_eq!(error.code, messaging_proto::Code::UnknownSession, "{error}");
                    std::thread::sleep(Duration::from_millis(50));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The stage of something sent.
    pub(crate) fn stage(&mut self, id: &str) -> String {
        let item = self.call("item.read", json!({"id": id})).unwrap();
        item["stage"].as_str().unwrap().to_owned()
    }

    /// Waits until something sent reached `stage` or a later one.
    pub(crate) fn wait_stage(&mut self, id: &str, stage: &str) {
        let order = ["accepted", "relayed", "delivered", "held", "handed_to_agent", "read", "replied"];
        let place = |stage: &str| order.iter().position(|known| *known == stage);
        let wanted = place(stage).unwrap();
        wait(&format!("{id} to be {stage}"), || {
            let now = self.stage(id);
            assert_ne!(now, "rejected");
            place(&now).is_some_and(|now| now >= wanted).then_some(())
        });
    }

    /// Every item in the inbox, oldest first.
    pub(crate) fn inbox(&mut self) -> Vec<Value> {
        let mut items = Vec::new();
        let mut cursor: Option<Value> = None;
        loop {
            let mut params = json!({"limit": 200});
            if let Some(cursor) = cursor {
                params["cursor"] = cursor;
            }
            let page = self.call("inbox.list", params).unwrap();
            items.extend(page["items"].as_array().unwrap().iter().cloned());
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        items.reverse();
        items
    }

    pub(crate) fn read(&mut self, id: &str) -> Value {
        self.call("item.read", json!({"id": id})).unwrap()
    }
}

/// Asks again until there is an answer.
pub(crate) fn wait<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("waited too long for {what}");
}

/// Whether a file, or any file in a folder, contains `needle`.
pub(crate) fn contains(path: &Path, needle: &[u8]) -> bool {
    if path.is_dir() {
        return std::fs::read_dir(path).unwrap().any(|entry| contains(&entry.unwrap().path(), needle));
    }
    let Ok(bytes) = std::fs::read(path) else { return false };
    bytes.windows(needle.len()).any(|window| window == needle)
}
