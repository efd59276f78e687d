//! A client of the server's standard input and output, byte by byte its own: no SDK helps the server here.
#![allow(dead_code, clippy::unwrap_used, reason = "a helper of tests, each of which uses a part of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// How long any one thing may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test.
pub(crate) const SERVER: &str = env!("CARGO_BIN_EXE_messaging-mcp");

/// A running server, killed when dropped.
pub(crate) struct Mcp {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    next: u64,
}

/// What a tool said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) failed: bool,
    /// The structured content, which the first text must repeat.
    pub(crate) document: Value,
    /// The text after it.
    pub(crate) tail: Option<String>,
}

impl Said {
    pub(crate) fn code(&self) -> &str {
        assert!(self.failed, "{}", self.document);
        let error = &self.document["error"];
        let code = error["code"].as_str().unwrap();
        assert!(error["message"].as_str().unwrap().starts_with(&format!("{code}: ")), "{error}");
        assert!(error["remedy"].as_str().unwrap().starts_with("Next: "), "{error}");
        code
    }
}

/// The server's command for a home, its files kept under `state`.
pub(crate) fn command(home: &Path, state: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(SERVER);
    command.arg("--home").arg(home).args(flags).env("XDG_STATE_HOME", state).env_remove("MESSAGING_HOME");
    command
}

impl Mcp {
    /// Starts a server and shakes hands.
    pub(crate) fn start(home: &Path, flags: &[&str]) -> Self {
        let mut mcp = Self::spawn(command(home, &home.with_extension("state"), flags));
        mcp.shake_hands();
        mcp
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(serde_json::from_str(&line).unwrap());
            }
        });
        Self { child, input, lines, next: 0 }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn write(&mut self, message: &Value) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// Sends a request and gives its id.
    pub(crate) fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.next += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params}));
        self.next
    }

    pub(crate) fn reply(&mut self, id: u64) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left).unwrap();
            if line["id"] == id {
                return line;
            }
        }
    }

    /// The next line, whatever it is.
    pub(crate) fn line(&mut self) -> Value {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    /// Writes bytes as they are.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes).unwrap();
        input.flush().unwrap();
    }

    /// Shakes hands with a server that was spawned.
    pub(crate) fn shake_hands(&mut self) {
        let hello = self.request(
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}}),
        );
        assert_eq!(hello["serverInfo"]["name"], "messaging");
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        let mut reply = self.reply(id);
        assert!(reply.get("error").is_none(), "{reply}");
        reply["result"].take()
    }

    /// Calls a tool.
    pub(crate) fn tool(&mut self, verb: &str, arguments: Value) -> Said {
        let name = format!("messaging_{verb}");
        let result = self.request("tools/call", json!({"name": name, "arguments": arguments}));
        let texts: Vec<&str> =
            result["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap()).collect();
        let document = result["structuredContent"].clone();
        assert_eq!(serde_json::from_str::<Value>(texts[0]).unwrap(), document, "the text repeats it");
        let failed = result["isError"] == true;
        assert_eq!(failed, document.get("error").is_some(), "{document}");
        Said { failed, document, tail: texts.get(1).map(|&text| text.to_owned()) }
    }

    /// Calls a tool that must succeed.
    pub(crate) fn ok(&mut self, verb: &str, arguments: Value) -> Value {
        let said = self.tool(verb, arguments);
        assert!(!said.failed, "{verb}: {}", said.document);
        said.document
    }

    /// Calls a tool that must fail, and gives the code.
    pub(crate) fn code(&mut self, verb: &str, arguments: Value) -> String {
        self.tool(verb, arguments).code().to_owned()
    }

    /// Calls a tool until `found` finds something in its result.
    pub(crate) fn until<T>(
        &mut self,
        verb: &str,
        arguments: &Value,
        found: impl Fn(&Value) -> Option<T>,
    ) -> T {
        let end = Instant::now() + PATIENCE;
        loop {
            let document = self.tool(verb, arguments.clone()).document;
            if let Some(found) = found(&document) {
                return found;
            }
            assert!(Instant::now() < end, "{verb} {arguments}: {document}");
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Sends until the other agent's presence is here.
    pub(crate) fn send(&mut self, arguments: Value) -> Value {
        self.until("send", &arguments, |document| document["results"].get(0).cloned())
    }

    /// The first unread item.
    pub(crate) fn unread(&mut self) -> Value {
        self.until("inbox", &json!({}), |document| document["items"].get(0).cloned())
    }

    /// Ends standard input.
    pub(crate) fn close(&mut self) {
        self.input = None;
    }

    /// Waits for the end and says how long it took.
    pub(crate) fn wait_end(&mut self) -> Duration {
        let start = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(start.elapsed() < PATIENCE, "the server goes on");
            std::thread::sleep(Duration::from_millis(5));
        }
        start.elapsed()
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
