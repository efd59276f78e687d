//! A thousand envelopes of many machines that wait at the relay for one daemon: how soon it has them, and what it costs.

use crate::print;
use crate::process::Daemon;
use messaging_smol::client::Client;
use messaging_smol::home::Home;
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Machines that send; each keeps to what a machine may send in a minute.
const SENDERS: usize = 20;
const EACH: usize = 50;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A relay process, killed when dropped.
struct Relay(Child);

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn relay(program: &Path, folder: &Path) -> (Relay, String) {
    let mut command = Command::new(program);
    command.args(["relay", "--listen", "127.0.0.1:0", "--db"]).arg(folder.join("relay.db"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit(' ').next().unwrap().to_owned();
    (Relay(child), format!("ws://127.0.0.1:{port}/v1/connect"))
}

/// Sends, has them received, and prints what that took.
pub(crate) fn run(program: &Path, perf: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let (_relay, url) = relay(program, folder.path());
    let home = |name: &str| Home::new(&folder.path().join(name));
    let bob = Daemon::start(program, &home("bob"));
    let admin = bob.client();
    let create = json!({"relay": url, "name": "Blue", "person": "bob", "label": "desk"});
    admin.call("team.create", create).unwrap();
    let senders: Vec<_> = (0..SENDERS)
        .map(|number| {
            let person = format!("person-{number}");
            let invite = admin.call("team.invite", json!({"person": person})).unwrap();
            let daemon = Daemon::start(program, &home(&person));
            let join = json!({"ticket": invite["ticket"], "label": "laptop"});
            daemon.client().call("team.join", join).unwrap();
            admin.call("grant.set", json!({"subject": {"person": person}, "ask": "open"})).unwrap();
            daemon
        })
        .collect();
    let session = bob.register("builder", crate::filling::KEY, "codex");
    let clients: Vec<_> =
        senders.iter().map(|sender| sender.register("cli", "cli-0123456789abcdefghijkl", "cli")).collect();
    for client in &clients {
        // Bob's session is known once its presence came.
        until(|| client.call("contacts.list", json!({})).unwrap().to_string().contains("bob/builder"));
    }
    drop((session, admin));
    bob.stop();

    for (client, number) in clients.iter().flat_map(|client| (0..EACH).map(move |number| (client, number))) {
        let text = format!("message {number}: is the build green, and who is to look at the tests?");
        let params = json!({
            "key": "cli-0123456789abcdefghijkl", "to": "bob/builder@desk", "parts": [{"text": text}],
        });
        client.call("msg.send", params).unwrap();
    }
    let sent = |client: &Client| client.call("daemon.status", json!({})).unwrap()["outbox"]["waiting"] == 0;
    until(|| clients.iter().all(sent));

    let record = perf.map(|file| ["perf", "record", "-F", "4999", "-g", "-o", file, "--"]);
    let bob = Daemon::start_under(record.as_ref().map_or(&[], |record| &record[..]), program, &home("bob"));
    let begin = Instant::now();
    let client = bob.register("builder", crate::filling::KEY, "codex");
    until(|| {
        let listed = client.call("inbox.list", json!({"key": crate::filling::KEY, "limit": 1})).unwrap();
        listed["unread"] == SENDERS * EACH
    });
    let (took, processor) = (begin.elapsed(), bob.processor_ms());
    let count = SENDERS * EACH;
    #[allow(clippy::cast_precision_loss, reason = "figures to show")]
    let (rate, micros) =
        ((count as f64 / took.as_secs_f64()).round(), processor as f64 * 1000.0 / count as f64);
    print(
        "receive",
        json!({"envelopes": count, "per_second": rate, "processor_us_each": micros, "rss_mib": bob.memory("VmRSS")}),
    );
    bob.stop();
}

fn until(mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited too long");
        std::thread::sleep(Duration::from_millis(10));
    }
}
