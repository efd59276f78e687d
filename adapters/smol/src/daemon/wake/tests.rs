//! A small HTTP host plays the service: what it is asked, and everything that must not be called.

use super::*;
use async_io::block_on;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::mpsc;

/// A host that gives one answer and reports the request.
fn host(answer: &'static str) -> (u16, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = Vec::new();
            let mut piece = [0; 4_096];
            loop {
                let count = stream.read(&mut piece).unwrap_or(0);
                request.extend_from_slice(&piece[..count]);
                let text = String::from_utf8_lossy(&request);
                let whole = text.split_once("\r\n\r\n").is_some_and(|(head, body)| {
                    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                    length.is_some_and(|length| body.len() >= length.parse().unwrap())
                });
                if count == 0 || whole {
                    break;
                }
            }
            let _ = sender.send(String::from_utf8(request).unwrap());
            if answer.is_empty() {
                // Says nothing, until the test ends.
                std::thread::sleep(Duration::from_secs(30));
            }
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (port, receiver)
}

struct Set {
    dir: tempfile::TempDir,
}

impl Set {
    fn new(text: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let set = Self { dir };
        std::fs::write(set.file(), text).unwrap();
        std::fs::set_permissions(set.file(), PermissionsExt::from_mode(0o600)).unwrap();
        set
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("service.json")
    }

    fn call(&self, pid: u64) -> WakeEnd {
        self.call_within(pid, TIMEOUT)
    }

    fn call_within(&self, pid: u64, timeout: Duration) -> WakeEnd {
        let host = HostCall { location: "/home/b/a b&c".to_owned(), session_id: "ses_1".to_owned(), pid };
        let ids = [Ulid::parse("01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap()];
        block_on(call_within(Some(self.file()), &host, &ids, timeout))
    }
}

fn me() -> u64 {
    u64::from(std::process::id())
}

fn service(port: u16) -> String {
    format!(r#"{{"pid":{},"url":"http://127.0.0.1:{port}","password":"pass:word","version":1}}"#, me())
}

#[test]
fn the_call_is_the_specifications() {
    let (port, requests) = host("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(Set::new(&service(port)).call(me()), WakeEnd::Answered);
    let request = requests.recv_timeout(TIMEOUT).unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let line = "POST /api/rpc/messaging.opencode/wake?location[directory]=%2Fhome%2Fb%2Fa%20b%26c HTTP/1.1";
    assert_eq!(head.lines().next(), Some(line));
    assert!(head.contains("\r\nauthorization: Basic b3BlbmNvZGU6cGFzczp3b3Jk\r\n"), "{head}");
    assert!(head.contains("\r\ncontent-type: application/json\r\n"));
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    let expected = json!({"input": {"sessionID": "ses_1", "envelopeIds": ["01ARZ3NDEKTSV4RRFFQ69G5FAV"]}});
    assert_eq!(body, expected);
    // Without a password there is no header.
    let plain = format!(r#"{{"pid":{},"url":"http://localhost:{port}/"}}"#, me());
    assert_eq!(Set::new(&plain).call(me()), WakeEnd::Answered);
    assert!(!requests.recv_timeout(TIMEOUT).unwrap().contains("authorization"));
}

#[test]
fn answers_end_the_attempt_and_failures_do_not() {
    for (answer, end) in [
        ("HTTP/1.1 404 Not Found\r\n\r\n", WakeEnd::Answered),
        ("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n\r\n", WakeEnd::Answered),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n", WakeEnd::Answered),
        ("HTTP/1.1 500 Internal Server Error\r\n\r\n", WakeEnd::Again),
        ("HTTP/1.1 503 Busy\r\n\r\n", WakeEnd::Again),
        ("what is this", WakeEnd::Again),
    ] {
        let (port, requests) = host(answer);
        assert_eq!(Set::new(&service(port)).call(me()), end, "{answer}");
        assert_eq!(requests.iter().take(1).count(), 1);
        assert!(requests.try_recv().is_err(), "asked once: {answer}");
    }
}

#[test]
fn no_answer_and_nobody_there() {
    let (port, _requests) = host("");
    assert_eq!(Set::new(&service(port)).call_within(me(), Duration::from_millis(300)), WakeEnd::Again);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    assert_eq!(Set::new(&service(port)).call(me()), WakeEnd::Again);
}

/// §8.6: what must hold of the file and of what it says. Nobody is called otherwise.
#[test]
fn what_is_not_called() {
    let (port, requests) = host("HTTP/1.1 200 OK\r\n\r\n");
    let good = service(port);
    // Another process than the one the session named, and one that is gone.
    assert_eq!(Set::new(&good).call(1), WakeEnd::Refused);
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = u64::from(child.id());
    child.wait().unwrap();
    let of_dead = format!(r#"{{"pid":{dead},"url":"http://127.0.0.1:{port}"}}"#);
    assert_eq!(Set::new(&of_dead).call(dead), WakeEnd::Refused);
    // A mode that lets others write it; a link; a folder; nothing.
    let set = Set::new(&good);
    for mode in [0o620, 0o602, 0o666] {
        std::fs::set_permissions(set.file(), PermissionsExt::from_mode(mode)).unwrap();
        assert_eq!(set.call(me()), WakeEnd::Refused, "{mode:o}");
    }
    let real = set.dir.path().join("real.json");
    std::fs::write(&real, &good).unwrap();
    std::fs::set_permissions(&real, PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::remove_file(set.file()).unwrap();
    symlink(&real, set.file()).unwrap();
    assert_eq!(set.call(me()), WakeEnd::Refused);
    std::fs::remove_file(set.file()).unwrap();
    assert_eq!(set.call(me()), WakeEnd::Refused);
    std::fs::create_dir(set.file()).unwrap();
    assert_eq!(set.call(me()), WakeEnd::Refused);
    // Another owner, where this test may make one.
    let set = Set::new(&good);
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(set.file(), Some(1), None).unwrap();
        assert_eq!(set.call(me()), WakeEnd::Refused);
    }
    // Content.
    let long = format!(r#"{{"pid":{},"url":"http://127.0.0.1:{port}","x":"{}"}}"#, me(), "x".repeat(4_096));
    for text in [
        long,
        String::new(),
        "[]".to_owned(),
        format!(r#"{{"pid":"{}","url":"http://127.0.0.1:{port}"}}"#, me()),
        format!(r#"{{"pid":{},"pid":{},"url":"http://127.0.0.1:{port}"}}"#, me(), me()),
        format!(r#"{{"pid":{},"url":"http://127.0.0.1:{port}","password":7}}"#, me()),
    ] {
        assert_eq!(Set::new(&text).call(me()), WakeEnd::Refused, "{text}");
    }
    for url in [
        "https://127.0.0.1:P",
        "http://10.0.0.1:P",
        "http://127.0.0.2:P",
        "http://0.0.0.0:P",
        "http://127.0.0.1.example:P",
        "http://localhost.example:P",
        "http://user@127.0.0.1:P",
        "http://127.0.0.1:P/path",
        "http://127.0.0.1:P?x",
        "http://127.0.0.1:P#x",
        "http://127.0.0.1:+P",
        "http://[::2]:P",
        "http://:P",
        "http://127.0.0.1:0",
        "ws://127.0.0.1:P",
    ] {
        let text = format!(r#"{{"pid":{},"url":"{}"}}"#, me(), url.replace('P', &port.to_string()));
        assert_eq!(Set::new(&text).call(me()), WakeEnd::Refused, "{url}");
    }
    assert!(requests.try_recv().is_err(), "nobody was called");
}
