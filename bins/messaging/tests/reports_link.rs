//! What users of other agent mail reported of links, identities and first starts, tried with real processes. The numbers are
//! those of the collection; `docs/user-reports.md` says where the others are.

#![allow(clippy::unwrap_used)]

mod world;

use serde_json::json;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use world::{Agent, World, program, wait};

/// What a proxy between a daemon and its relay does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// It cuts a connection on which one direction was silent for this long.
    CutsIdle(Duration),
    /// It passes no WebSocket ping or pong on.
    SwallowsPings,
}

/// A TCP proxy before a relay. Its threads end with the sockets.
struct Proxy {
    port: u16,
    relay: Arc<AtomicU16>,
    /// Connections made, and connections cut for their silence.
    made: Arc<AtomicUsize>,
    cut: Arc<AtomicUsize>,
}

impl Proxy {
    fn start(mode: Mode) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            relay: Arc::default(),
            made: Arc::default(),
            cut: Arc::default(),
        };
        let (relay, made, cut) = (Arc::clone(&proxy.relay), Arc::clone(&proxy.made), Arc::clone(&proxy.cut));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect(("127.0.0.1", relay.load(Ordering::SeqCst))) else {
                    continue;
                };
                made.fetch_add(1, Ordering::SeqCst);
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let cut = Arc::clone(&cut);
                    std::thread::spawn(move || pump(mode, from, to, &cut));
                }
            }
        });
        proxy
    }
}

/// Copies one direction until it ends.
fn pump(mode: Mode, mut from: TcpStream, mut to: TcpStream, cut: &AtomicUsize) {
    if let Mode::CutsIdle(after) = mode {
        from.set_read_timeout(Some(after)).unwrap();
    }
    let mut frames = Frames::default();
    let mut bytes = [0; 16_384];
    loop {
        let read = match from.read(&mut bytes) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error)
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                cut.fetch_add(1, Ordering::SeqCst);
                break;
            }
            Err(_) => break,
        };
        let passed = match mode {
            Mode::SwallowsPings => frames.pass(&bytes[..read]),
            Mode::CutsIdle(_) => bytes[..read].to_vec(),
        };
        if to.write_all(&passed).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

/// One direction of a WebSocket, without its pings and pongs.
#[derive(Default)]
struct Frames {
    waiting: Vec<u8>,
    upgraded: bool,
}

impl Frames {
    fn pass(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.waiting.extend_from_slice(bytes);
        let mut passed = Vec::new();
        if !self.upgraded {
            let Some(end) = self.waiting.windows(4).position(|four| four == b"\r\n\r\n") else {
                return passed;
            };
            passed.extend(self.waiting.drain(..end + 4));
            self.upgraded = true;
        }
        while let Some(length) = self.frame() {
            let frame: Vec<u8> = self.waiting.drain(..length).collect();
            if !matches!(frame[0] & 0x0f, 9 | 10) {
                passed.extend(frame);
            }
        }
        passed
    }

    /// The length of the first whole frame that waits.
    fn frame(&self) -> Option<usize> {
        let second = *self.waiting.get(1)?;
        let (head, payload) = match second & 0x7f {
            126 => (4, usize::from(u16::from_be_bytes(self.waiting.get(2..4)?.try_into().ok()?))),
            127 => (10, usize::try_from(u64::from_be_bytes(self.waiting.get(2..10)?.try_into().ok()?)).ok()?),
            short => (2, usize::from(short)),
        };
        let length = head + if second & 0x80 == 0 { 0 } else { 4 } + payload;
        (self.waiting.len() >= length).then_some(length)
    }
}

/// A pair whose daemons reach their relay through a proxy.
fn behind(mode: Mode) -> (World, Proxy) {
    let proxy = Proxy::start(mode);
    let id = format!("ws://127.0.0.1:{}", proxy.port);
    let mut world = World::with_relay_flags(&["--relay-id", &id]);
    proxy.relay.store(world.port, Ordering::SeqCst);
    let relay = std::mem::replace(&mut world.port, proxy.port);
    world.pair();
    world.port = relay;
    (world, proxy)
}

fn exchange(world: &World, text: &str) {
    let mut planner = Agent::new(world, "alice", "planner");
    let mut builder = Agent::new(world, "bob", "builder");
    builder.inbox();
    let id = planner.send("bob/builder", text, text);
    planner.wait_stage(&id, "delivered");
    wait(text, || builder.inbox().iter().any(|item| item["preview"] == text).then_some(()));
}

/// A proxy that cuts what is silent for well under a minute never gets to cut; one that drops every WebSocket ping and
/// pong is not noticed, since signs of life are frames of the protocol.
#[test]
fn report_23_idle_links_behind_proxies() {
    let silence = Duration::from_secs(40);
    let (world, proxy) = behind(Mode::CutsIdle(silence));
    let (quiet, swallowing) = behind(Mode::SwallowsPings);
    exchange(&world, "before");
    exchange(&quiet, "before");
    std::thread::sleep(silence + Duration::from_secs(5));
    assert_eq!(
        (proxy.cut.load(Ordering::SeqCst), proxy.made.load(Ordering::SeqCst)),
        (0, 4),
        "two errands, two links"
    );
    exchange(&world, "after");
    exchange(&quiet, "after");
    assert_eq!(swallowing.made.load(Ordering::SeqCst), 4, "no link was made again");
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    std::fs::set_permissions(to, std::fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// A home copied to a second machine, both running: neither hammers the relay, both say what is wrong.
#[test]
fn report_25_a_copied_home_does_not_fight() {
    let mut world = World::new();
    world.pair();
    exchange(&world, "before");
    world.kill_daemon("bob");
    copy(&world.path("bob"), &world.path("copy"));
    world.start_daemon("bob");
    let connected =
        |world: &World, name: &str| world.cli_json(name, &["status"])["relay"]["state"] == "connected";
    wait("bob's link", || connected(&world, "bob").then_some(()));
    world.start_daemon("copy");
    let says = |world: &World, name: &str| {
        let status = world.cli_json(name, &["status"]);
        status["relay"]["lastError"]
            .as_str()
            .is_some_and(|error| error.contains("another daemon with this identity"))
    };
    wait("bob's word", || says(&world, "bob").then_some(()));
    // From here on: at most one more dial of each within the wait of half a minute.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(8) {
        std::thread::sleep(Duration::from_millis(200));
    }
    let lost = |name: &str| {
        let log = std::fs::read_to_string(world.path(&format!("{name}.log"))).unwrap();
        log.lines().filter(|line| line.contains("link.lost") && line.contains("replaced")).count()
    };
    assert!(lost("bob") + lost("copy") <= 2, "{} and {}", lost("bob"), lost("copy"));
    // One of them ends: the other is alone, and mail arrives.
    world.kill_daemon("copy");
    world.admin("bob").call("daemon.woke", json!({})).unwrap();
    wait("bob's link", || connected(&world, "bob").then_some(()));
    exchange(&world, "after");
}

/// Stops the daemon that a command started, also when the test fails.
struct Stop(std::path::PathBuf);

impl Drop for Stop {
    fn drop(&mut self) {
        let _ = Command::new(program()).arg("--home").arg(&self.0).args(["daemon", "stop"]).output();
    }
}

/// A first start from nothing: whatever the umask, the locale, the time zone and the search path, in a home whose name has
/// spaces, quotes and letters of many scripts.
#[test]
fn pattern_a_first_start_under_hostile_circumstances() {
    let world = World::new();
    let relay = world.relay_url();
    for (number, (umask, locale)) in
        [("000", "tr_TR.UTF-8"), ("777", "C"), ("022", "ar_EG.UTF-8")].into_iter().enumerate()
    {
        let home = world.path(&format!("it's \"a\" höme 家 {number}"));
        let run = |arguments: &[&str]| {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", &format!("umask {umask}; exec \"$@\""), "sh"]).arg(program());
            command.arg("--home").arg(&home).arg("--json").args(arguments).stdin(Stdio::null());
            command.env_clear().envs([
                ("LC_ALL", locale),
                ("LANG", locale),
                ("TZ", ":nonsense"),
                ("PATH", ""),
            ]);
            let output = command.output().unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "umask {umask}, {arguments:?}: {text}{errors}");
            serde_json::from_str::<serde_json::Value>(&text).unwrap()
        };
        let _stop = Stop(home.clone());
        run(&["daemon", "start"]);
        run(&[
            "team", "create", "--relay", &relay, "--name", "Blue", "--person", "alice", "--label", "laptop",
        ]);
        assert_eq!(run(&["status"])["identity"]["person"], "alice");
        let mode = std::fs::metadata(&home).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o700, "umask {umask}");
    }
}
