//! The client against a scripted daemon.

use super::*;
use messaging_proto::Code;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Instant;

fn home(dir: &Path) -> Home {
    let home = Home::new(&dir.join("home"));
    crate::home::private_directory(home.path(), 0o700).unwrap();
    crate::home::private_directory(&home.run(), 0o700).unwrap();
    home
}

fn options(home: &Home) -> Options {
    Options { hello_timeout: Duration::from_millis(300), owner: Owner::me(), ..Options::admin(home.clone()) }
}

fn hello() -> Hello {
    Hello { version: env!("CARGO_PKG_VERSION").to_owned(), protocol: IPC_PROTOCOL, pid: 7, deployment: None }
}

/// Serves one connection with `script`.
fn daemon(home: &Home, script: impl FnOnce(UnixStream) + Send + 'static) -> std::thread::JoinHandle<()> {
    let listener = UnixListener::bind(home.admin_socket()).unwrap();
    std::thread::spawn(move || script(listener.accept().unwrap().0))
}

fn say(stream: &mut UnixStream, line: &str) {
    stream.write_all(format!("{line}\n").as_bytes()).unwrap();
}

#[test]
fn calls_and_events_are_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let daemon = daemon(&home, |mut stream| {
        say(&mut stream, &hello().line());
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(first["method"], "daemon.status");
        assert_eq!(first["params"], json!({"a": 1}));
        say(&mut stream, &json!({"jsonrpc":"2.0","method":"event","params":{"type":"relay"}}).to_string());
        say(&mut stream, &json!({"jsonrpc":"2.0","id":999,"result":{}}).to_string());
        say(&mut stream, &json!({"jsonrpc":"2.0","id":first["id"],"result":{"ok":true}}).to_string());
        let second: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let data = json!({"code":"rate_limited","retryAfterMs":5,"field":"parts[0]"});
        let error = json!({"code":-32000,"message":"rate_limited: slow down","data":data});
        say(&mut stream, &json!({"jsonrpc":"2.0","id":second["id"],"error":error}).to_string());
    });
    let client = Client::connect(&options(&home)).unwrap();
    assert_eq!(client.hello().pid, 7);
    assert_eq!(client.call("daemon.status", json!({"a": 1})).unwrap(), json!({"ok": true}));
    assert_eq!(client.next_event(Some(Duration::ZERO)).unwrap(), Some(json!({"type": "relay"})));
    let error = client.call("msg.send", json!({})).unwrap_err();
    assert_eq!((error.code, error.retry_after_ms), (Code::RateLimited, Some(5)));
    assert_eq!((error.message.as_str(), error.field.as_deref()), ("slow down", Some("parts[0]")));
    daemon.join().unwrap();
    assert!(client.wait_closed(Duration::from_secs(5)));
    assert_eq!(client.call("daemon.status", json!({})).unwrap_err().code, Code::DaemonUnavailable);
}

#[test]
fn a_call_without_a_reply_ends() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let daemon = daemon(&home, |mut stream| {
        say(&mut stream, &hello().line());
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        std::thread::sleep(Duration::from_millis(200));
    });
    let client = Client::connect(&options(&home)).unwrap();
    let error = client.call_within("daemon.status", json!({}), Duration::from_millis(30)).unwrap_err();
    assert_eq!(error.code, Code::DaemonUnavailable);
    daemon.join().unwrap();
}

#[test]
fn hellos_that_do_not_fit() {
    let other = Hello { version: "9.9.9".to_owned(), ..hello() };
    let protocol = Hello { protocol: 2, ..hello() };
    for (line, code) in [
        (Some(other.line()), Code::DaemonMismatch),
        (Some(protocol.line()), Code::DaemonMismatch),
        (Some("{}".to_owned()), Code::DaemonMismatch),
        (Some("SSH-2.0-x".to_owned()), Code::DaemonMismatch),
        (None, Code::DaemonUnavailable),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let home = home(dir.path());
        let said = line.clone();
        let daemon = daemon(&home, move |mut stream| {
            if let Some(line) = said {
                say(&mut stream, &line);
            }
        });
        assert_eq!(Client::connect(&options(&home)).unwrap_err().code, code, "{line:?}");
        daemon.join().unwrap();
    }
}

#[test]
fn silence_is_a_mismatch_within_the_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    let daemon = daemon(&home, |mut stream| {
        // A byte now and then must not extend the wait.
        for _ in 0..10 {
            std::thread::sleep(Duration::from_millis(100));
            if stream.write_all(b" ").is_err() {
                return;
            }
        }
    });
    let start = Instant::now();
    assert_eq!(Client::connect(&options(&home)).unwrap_err().code, Code::DaemonMismatch);
    assert!(start.elapsed() < Duration::from_millis(900));
    daemon.join().unwrap();
}

#[test]
fn a_socket_that_is_not_private_is_not_trusted() {
    let dir = tempfile::tempdir().unwrap();
    let home = home(dir.path());
    assert_eq!(Client::connect(&options(&home)).unwrap_err().code, Code::DaemonUnavailable, "no socket");
    let _listener = UnixListener::bind(home.admin_socket()).unwrap();
    std::fs::set_permissions(home.run(), std::fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(Client::connect(&options(&home)).unwrap_err().code, Code::Forbidden);
    std::fs::set_permissions(home.run(), std::fs::Permissions::from_mode(0o700)).unwrap();
    let owner = Owner { me: Owner::me().me + 1, daemon: None };
    assert_eq!(Client::connect(&Options { owner, ..options(&home) }).unwrap_err().code, Code::Forbidden);
    std::fs::remove_file(home.admin_socket()).unwrap();
    std::fs::write(home.admin_socket(), "").unwrap();
    assert_eq!(Client::connect(&options(&home)).unwrap_err().code, Code::Forbidden, "a plain file");
}
