//! The two sockets: modes, the group, the first line, and lines that are no requests (contract ipc §1, §1.1).

use crate::daemon::{refused, start};
use messaging_smol::home::Home;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

struct Line(BufReader<UnixStream>);

impl Line {
    fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Self(BufReader::new(stream))
    }

    fn say(&mut self, line: &[u8]) {
        self.0.get_mut().write_all(line).unwrap();
    }

    fn next(&mut self) -> Value {
        let mut text = String::new();
        self.0.read_line(&mut text).unwrap();
        assert!(text.ends_with('\n'), "{text}");
        serde_json::from_str(&text).unwrap()
    }

    fn is_closed(&mut self) -> bool {
        // A reset is a close, too: what was sent last may be unread.
        self.0.read(&mut [0]).map_or(true, |read| read == 0)
    }
}

#[test]
fn the_hello_is_the_first_line_on_both_sockets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    let mut daemon = start(&path);
    let version = env!("CARGO_PKG_VERSION");
    for socket in [home.agent_socket(), home.admin_socket()] {
        let params = json!({"daemon": "messagingd", "version": version, "protocol": 1, "pid": daemon.pid()});
        let hello = Line::connect(&socket).next();
        assert_eq!(hello, json!({"jsonrpc": "2.0", "method": "hello", "params": params}));
    }
    // 256 connections a socket; the next one is told who is there, and closed.
    let mut open: Vec<_> = (0..256).map(|_| Line::connect(&home.agent_socket())).collect();
    for line in &mut open {
        line.next();
    }
    let mut more = Line::connect(&home.agent_socket());
    more.next();
    assert!(more.is_closed());
    assert_eq!(Line::connect(&home.admin_socket()).next()["method"], "hello", "the other socket has its own");
    assert_eq!(daemon.terminate(), Some(0));
}

#[test]
fn lines_that_are_no_requests_have_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    let _daemon = start(&path);
    let mut line = Line::connect(&home.admin_socket());
    line.next();
    for (said, id, number, code) in [
        ("{", json!(null), -32700, "invalid_request"),
        (
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"daemon.health"}"#,
            json!(null),
            -32700,
            "invalid_request",
        ),
        ("[]", json!(null), -32600, "invalid_request"),
        (
            r#"{"jsonrpc":"2.0","id":3,"method":"daemon.health","more":1}"#,
            json!(3),
            -32600,
            "invalid_request",
        ),
        (r#"{"jsonrpc":"2.0","id":"a","method":"no.such"}"#, json!("a"), -32601, "not_found"),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"daemon.health","params":{"a":1}}"#,
            json!(4),
            -32602,
            "invalid_request",
        ),
        (r#"{"jsonrpc":"2.0","id":5,"method":"contacts.list"}"#, json!(5), -32000, "no_identity"),
    ] {
        line.say(format!("{said}\r\n").as_bytes());
        let reply = line.next();
        let error = &reply["error"];
        assert_eq!(
            (&reply["id"], &error["code"], &error["data"]["code"]),
            (&id, &json!(number), &json!(code))
        );
        assert!(error["message"].as_str().unwrap().starts_with(&format!("{code}: ")), "{error}");
    }
    // A line without an id is not run and not answered; the next one is.
    line.say(b"{\"jsonrpc\":\"2.0\",\"method\":\"daemon.stop\"}\n{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"daemon.health\"}\n");
    let reply = line.next();
    assert_eq!((&reply["id"], &reply["result"]["state"]), (&json!(6), &json!("running")));
    // A line over a mebibyte ends the connection.
    line.say(&vec![b' '; 1_048_577]);
    let reply = line.next();
    let error = &reply["error"];
    assert_eq!((&error["code"], &error["data"]["code"]), (&json!(-32600), &json!("too_large")));
    assert!(line.is_closed());
}

#[test]
fn the_agent_group_reaches_the_agent_socket_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700)).unwrap();
    let root = rustix::process::geteuid().is_root();
    // Root gives to any group; anybody else to their own.
    let group = if root { 64_100 } else { rustix::process::getegid().as_raw() };
    let config = path.join("config.json");
    std::fs::write(&config, json!({"ipc": {"agentGroup": group}}).to_string()).unwrap();
    std::fs::set_permissions(&config, PermissionsExt::from_mode(0o600)).unwrap();
    let look = |path: &Path| {
        let meta = path.symlink_metadata().unwrap();
        (meta.mode() & 0o7777, meta.gid())
    };
    let mut daemon = start(&path);
    for directory in [home.path().to_owned(), home.run()] {
        assert_eq!(look(&directory), (0o710, group), "{}", directory.display());
    }
    assert_eq!(look(&home.agent_socket()), (0o660, group));
    assert_eq!(look(&home.admin_socket()).0, 0o600);
    assert_eq!(look(&home.store()).0, 0o600);
    assert_eq!(look(&home.logs()).0, 0o700);
    assert_eq!(daemon.terminate(), Some(0));
    // Started again in a home that is shared already, then taken back.
    assert_eq!(start(&path).terminate(), Some(0));
    std::fs::write(&config, "{}").unwrap();
    let mut daemon = start(&path);
    assert_eq!((look(home.path()).0, look(&home.run()).0), (0o700, 0o700));
    assert_eq!(look(&home.agent_socket()).0, 0o600);
    assert_eq!(daemon.terminate(), Some(0));
    if !root {
        std::fs::write(&config, json!({"ipc": {"agentGroup": 0}}).to_string()).unwrap();
        let (status, text) = refused(&path);
        assert!(status == Some(1) && text.starts_with("messagingd: forbidden: "), "{text}");
    }
}
