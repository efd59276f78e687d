//! An error that escapes every handler ends the process (`§7`, "Process"): one line, exit 70.

use super::client::Client;
use super::*;
use crate::log::Level;
use std::process::Command;

/// Set in the process that is to fail.
const CHILD: &str = "MESSAGING_TEST_FATAL";

/// Fails when a connection opens.
struct Bomb;

impl Machine for Bomb {
    type Event = Event;
    type Effect = Effect;
    type Timer = ();

    fn handle(
        &mut self,
        _: &Step,
        event: Event,
        _: &mut Txn<'_>,
        _: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        assert!(!matches!(event, Event::Opened { .. }), "text of a peer");
        Ok(())
    }

    fn deadline(&self) -> Option<(Mono, ())> {
        None
    }

    fn timer_event() -> Event {
        Event::Timer
    }
}

/// Not a test of its own: what the other test runs in a process of its own.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = RelayOptions::new("127.0.0.1:0", dir.path().join("relay.db"));
    let log = Log::stderr(Level::Info);
    crate::process::exit_on_panic("relay.fatal", &log);
    let relay = start_at(&options, Location::new(&options.db), &log, Box::new(|| {}), |_| Bomb).unwrap();
    drop(Client::connect(relay.address));
    std::thread::sleep(std::time::Duration::from_secs(20));
}

#[test]
fn a_bug_ends_the_process_with_one_line_and_status_70() {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["relay::tests::fatal::child", "--exact", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    assert_eq!(child.status.code(), Some(70));
    let text = String::from_utf8(child.stderr).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .filter(|line| line.contains("relay.fatal"))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert_eq!((lines[0]["level"].as_str(), lines[0]["error"].as_str()), (Some("error"), Some("panic")));
    assert_eq!(lines[0]["origin"], "relay", "the thread");
    assert!(lines[0]["frame"].as_str().unwrap().contains("fatal.rs:"));
    assert!(!text.contains("text of a peer"), "never the message");
}
