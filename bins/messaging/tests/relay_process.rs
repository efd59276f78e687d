//! The relay as its operator meets it: flags and environment, exit statuses, signals, the service manager, logs, metrics.

#![allow(clippy::unwrap_used)]

mod world;

use messaging_bench::link::Link;
use messaging_bench::team::Team;
use messaging_smol::store::{Location, Options, RedbStore, Schema};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tungstenite::Message;
use world::{PATIENCE, Process, World, wait};

const RELAY: &str = env!("CARGO_BIN_EXE_messaging-relay");
const READY: &str = "messaging-relay: ready ";

/// Runs the relay to its end.
fn run(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(RELAY);
    command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null());
    command.output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

fn signal(process: &Process, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(process.pid()).unwrap()).unwrap(), signal).unwrap();
}

fn get(port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: relay\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    answer
}

#[test]
fn flags_that_do_not_read_exit_2_and_name_the_next_step() {
    for bad in [
        &["--nope"][..],
        &["stray"],
        &["--listen"],
        &["--listen", "nowhere"],
        &["--queue-rows", "0"],
        &["--queue-rows", "1.5"],
        &["--max-teams", "1", "--max-teams", "2"],
        &["--genesis", "nobody"],
        &["--tls-cert", "one.crt"],
    ] {
        let output = run(bad, &[]);
        assert_eq!(output.status.code(), Some(2), "{bad:?}");
        let text = stderr(&output);
        assert!(text.contains("usage") && text.contains("--help"), "{text}");
        assert!(output.stdout.is_empty());
    }
    for (name, value) in [
        ("MESSAGING_RELAY_QUEUE_ROWS", "0"),
        ("MESSAGING_RELAY_HELLO_TIMEOUT_MS", "soon"),
        ("MESSAGING_RELAY_LISTEN", "nowhere"),
        ("MESSAGING_RELAY_TRUSTED_PROXY", "10.0.0.1,proxy"),
        ("MESSAGING_RELAY_LOG_LEVEL", "loud"),
    ] {
        assert_eq!(run(&[], &[(name, value)]).status.code(), Some(2), "{name}");
    }
    // What is not text is no value at all to `std::env::var`: the relay started with its defaults, open to everybody.
    for name in ["TEAM_CREATION", "GENESIS", "DB"] {
        let mut command = Command::new(RELAY);
        command.env(format!("MESSAGING_RELAY_{name}"), OsStr::from_bytes(b"closed\xff")).stdin(Stdio::null());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(&format!("MESSAGING_RELAY_{name} is not UTF-8 text")));
    }
}

#[test]
fn the_environment_sets_what_flags_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (db, other) = (path("relay.db"), path("other.db"));
    let environment = [
        ("MESSAGING_RELAY_LISTEN", "nowhere"),
        ("MESSAGING_RELAY_DB", other.to_str().unwrap()),
        ("MESSAGING_RELAY_RELAY_ID", "wss://relay.example"),
        ("MESSAGING_RELAY_PREAUTH_FRAMES", "2"),
        ("MESSAGING_RELAY_METRICS", ""),
    ];
    let arguments = ["relay", "--listen", "127.0.0.1:0", "--db", db.to_str().unwrap()];
    let relay = Process::start_in(&environment, &arguments, READY, &path("log"));
    assert!(db.exists() && !other.exists(), "the flag wins");
    let mut link = Link::open(relay.ready.parse().unwrap()).unwrap();
    for _ in 0..3 {
        link.say(r#"{"t":"something"}"#.to_owned()).unwrap();
    }
    assert_eq!(link.value().unwrap()["code"], "rate_limited", "the third of two");
}

#[test]
fn a_start_that_is_refused_exits_1_with_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (db, log) = (path("busy.db"), folder.path().join("log"));
    let _other = Process::start(&["relay", "--listen", "127.0.0.1:0", "--db", &db], READY, &log);
    let free = "127.0.0.1:0";
    let (one, key) = (path("one.crt"), path("one.key"));
    for (why, arguments) in [
        ("internal: listen", vec!["--listen", &address, "--db", &path("a.db")]),
        ("invalid_state: another relay", vec!["--listen", free, "--db", &db]),
        ("internal: the database", vec!["--listen", free, "--db", &path("none/b.db")]),
        (
            "invalid_request: tls",
            vec!["--listen", free, "--db", &path("c.db"), "--tls-cert", &one, "--tls-key", &key],
        ),
    ] {
        let output = run(&arguments, &[]);
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{why}: {text}");
        assert!(text.starts_with(&format!("relay: {why}")) && text.lines().count() == 1, "{why}: {text}");
    }
}

#[test]
fn a_store_that_is_not_ours_exits_78_and_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("foreign"), b"SQLite format 3\0 and so on").unwrap();
    let options = Options { cache_bytes: 1 << 20, quick_repair: true, journal: None };
    let ours = Schema::CURRENT;
    let theirs = [
        ("generation", Schema { generation: ours.generation + 1, ..ours }),
        ("newer", Schema { schema: ours.schema + 1, min_reader: ours.schema + 1, ..ours }),
    ];
    for (name, schema) in &theirs {
        RedbStore::open(&Location::new(&path(name)), *schema, options).unwrap().close().unwrap();
    }
    for (name, reason) in [("foreign", "pre-reset"), ("generation", "pre-reset"), ("newer", "newer")] {
        let output = run(&["--listen", "127.0.0.1:0", "--db", path(name).to_str().unwrap()], &[]);
        assert_eq!(output.status.code(), Some(78), "{name}");
        let text = stderr(&output);
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["event"], "relay.store_refused");
        assert_eq!(line["reason"], reason, "{name}");
        assert!(!line["message"].as_str().unwrap().is_empty());
        assert!(line["db"].as_str().unwrap().ends_with(name), "{line}");
        let aside = line["message"].as_str().unwrap().contains("aside");
        assert_eq!(aside, reason == "pre-reset", "a newer store is never moved: {line}");
    }
    // What was refused is as it was for its own program.
    assert_eq!(std::fs::read(path("foreign")).unwrap(), b"SQLite format 3\0 and so on");
    for (name, schema) in &theirs {
        let store = RedbStore::open(&Location::new(&path(name)), *schema, options).unwrap();
        assert_eq!(store.commits(), 1, "{name}");
        store.close().unwrap();
    }
    // A newer store that this release may still read is served, and keeps its own records.
    let readable = Schema { schema: ours.schema + 1, ..ours };
    RedbStore::open(&Location::new(&path("readable")), readable, options).unwrap().close().unwrap();
    let db = path("readable");
    let arguments = ["relay", "--listen", "127.0.0.1:0", "--db", db.to_str().unwrap()];
    let mut relay = Process::start(&arguments, READY, &path("log"));
    assert_eq!(relay.terminate(), Some(0));
}

#[test]
fn a_signal_stops_it_gracefully_and_the_service_manager_is_told() {
    for (number, how) in [Signal::TERM, Signal::INT].into_iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let manager = UnixDatagram::bind(path("notify")).unwrap();
        manager.set_read_timeout(Some(PATIENCE)).unwrap();
        let told = || {
            let mut message = [0; 4_096];
            let count = manager.recv(&mut message).unwrap();
            String::from_utf8(message[..count].to_vec()).unwrap().trim().to_owned()
        };
        let environment = [("NOTIFY_SOCKET", path("notify")), ("WATCHDOG_USEC", "300000".into())]
            .map(|(name, value)| (name, value.to_str().unwrap().to_owned()));
        let environment: Vec<(&str, &str)> =
            environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let db = path("relay.db");
        let arguments = ["relay", "--listen", "127.0.0.1:0", "--db", db.to_str().unwrap()];
        let mut relay = Process::start_in(&environment, &arguments, READY, &path("log"));
        let port = relay.ready.parse().unwrap();
        assert_eq!(told(), "READY=1");
        // It makes progress, connected or not.
        assert_eq!(told(), "WATCHDOG=1");
        let team = Team::found(port, 2).unwrap();
        let mut link = Link::live(port, &team.machines[0].key, &team.id).unwrap();
        let mut stranger = Link::open(port).unwrap();
        let envelope = team.one(0, 1, 1, 100).unwrap();
        link.send_acked(envelope.frame, &envelope.id).unwrap();
        assert_eq!(told(), "WATCHDOG=1");
        signal(&relay, how);
        for link in [&mut link, &mut stranger] {
            let code = loop {
                match link.socket.read() {
                    Ok(Message::Close(Some(close))) => break u16::from(close.code),
                    Ok(_) => {}
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!(code, 1001);
        }
        drop((link, stranger));
        assert_eq!(wait("its end", || relay.status()), Some(0), "signal {number}");
        assert_eq!(wait("the last word", || Some(told()).filter(|word| word != "WATCHDOG=1")), "STOPPING=1");
        let names: Vec<Value> = lines(&path("log")).iter().map(|line| line["event"].clone()).collect();
        assert_eq!(names, ["relay.listening", "team.created", "relay.stopping", "relay.stopped"]);
        // What was acked is there afterwards.
        let again = Process::start(&arguments, READY, &path("log"));
        let mut link = Link::live(again.ready.parse().unwrap(), &team.machines[1].key, &team.id).unwrap();
        assert_eq!(link.value().unwrap()["env"]["id"], envelope.id.as_str());
    }
}

#[test]
fn logs_are_json_up_to_their_level() {
    let folder = tempfile::tempdir().unwrap();
    let db = folder.path().join("relay.db");
    for (level, some) in [("error", false), ("warn", false), ("info", true), ("debug", true)] {
        let log = folder.path().join(level);
        let arguments =
            ["relay", "--listen", "127.0.0.1:0", "--db", db.to_str().unwrap(), "--log-level", level];
        let mut relay = Process::start(&arguments, READY, &log);
        assert_eq!(relay.terminate(), Some(0));
        let lines = lines(&log);
        assert_eq!(!lines.is_empty(), some, "{level}");
        for line in lines {
            assert!(line["at"].is_u64() && line["level"].is_string() && line["event"].is_string(), "{line}");
        }
    }
    // Metrics that anybody may ask are pointed out.
    let log = folder.path().join("insecure");
    let arguments =
        ["relay", "--listen", "127.0.0.1:0", "--db", db.to_str().unwrap(), "--metrics", "0.0.0.0:0"];
    let _relay = Process::start(&arguments, READY, &log);
    wait("the warning", || {
        let lines = lines(&log);
        lines.iter().any(|line| line["event"] == "relay.insecure" && line["level"] == "warn").then_some(())
    });
}

type Labels = &'static [(&'static str, &'static [&'static str])];

/// Every family of a team relay (contract wire-core §7.11): its type, and its labels with every value they may have, or
/// none when the vocabulary is frame types or codes.
const FAMILIES: &[(&str, &str, Labels)] = &[
    ("relay_build_info", "gauge", &[("version", &[]), ("schema", &[])]),
    ("relay_ready", "gauge", &[]),
    ("relay_unready", "gauge", &[("why", &["store_closed", "store_failing", "stopping"])]),
    ("relay_connections", "gauge", &[("state", &["preauth", "auth"])]),
    (
        "relay_connections_refused_total",
        "counter",
        &[("reason", &["preauth_total", "preauth_address", "full"])],
    ),
    ("relay_auth_failures_total", "counter", &[("code", &[])]),
    ("relay_frames_in_total", "counter", &[("t", &[])]),
    ("relay_frames_out_total", "counter", &[("t", &[])]),
    ("relay_nacks_total", "counter", &[("code", &[])]),
    ("relay_rate_limited_total", "counter", &[]),
    ("relay_queue_full_total", "counter", &[]),
    ("relay_queue_rows", "gauge", &[]),
    ("relay_queue_bytes", "gauge", &[]),
    ("relay_queue_oldest_age_seconds", "gauge", &[]),
    ("relay_purged_total", "counter", &[("table", &["queue", "seen", "presence"])]),
    ("relay_buffered_bytes", "gauge", &[]),
    ("relay_slow_terminations_total", "counter", &[("reason", &["socket", "budget"])]),
    ("relay_commit_seconds", "histogram", &[("le", &[])]),
    ("relay_commit_writes_total", "counter", &[]),
    ("relay_store_bytes", "gauge", &[("part", &["used", "free", "wal"])]),
    ("relay_store_failing", "gauge", &[]),
    ("relay_store_errors_total", "counter", &[]),
    ("relay_internal_errors_total", "counter", &[("where", &[])]),
    ("relay_event_loop_delay_seconds", "gauge", &[("quantile", &["0.5", "0.99", "1"])]),
    ("process_resident_memory_bytes", "gauge", &[]),
    ("process_open_fds", "gauge", &[]),
    ("process_start_time_seconds", "gauge", &[]),
];

/// Frame types of `messaging.relay.v1`, and everything else.
const TYPES: &[&str] = &[
    "challenge",
    "hello",
    "welcome",
    "join",
    "roster.sync",
    "roster.entries",
    "roster.append",
    "roster.ok",
    "roster",
    "send",
    "ack",
    "nack",
    "deliver",
    "recv.ack",
    "presence",
    "peer",
    "ping",
    "pong",
    "error",
    "other",
];

#[test]
fn metrics_hold_every_family_and_closed_vocabularies() {
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = World::with_relay_flags(&["--metrics", &metrics.to_string(), "--frames-per-minute", "20"]);
    let team = Team::found(world.port, 3).unwrap();
    let mut link = Link::live(world.port, &team.machines[1].key, &team.id).unwrap();
    let envelope = team.one(1, 2, 1, 100).unwrap();
    link.send_acked(envelope.frame.clone(), &envelope.id).unwrap();
    // Every kind of trouble: a type nobody knows with a name of its own, refusals, a refused hello, a budget.
    link.say(r#"{"t":"evil\"} 1\nrelay_evil{x=\"y"}"#.to_owned()).unwrap();
    link.say(envelope.frame.replacen("\"sig\":\"", "\"sig\":\"A", 1)).unwrap();
    for n in 0..30 {
        link.say(format!(r#"{{"t":"roster.sync","req":"r{n}","after":-1}}"#)).unwrap();
    }
    let mut stranger = Link::open(world.port).unwrap();
    stranger.say(r#"{"t":"hello"}"#.to_owned()).unwrap();
    assert_eq!(stranger.value().unwrap()["code"], "invalid_request");
    wait("the last refusal", || {
        let nack = link.value().unwrap();
        (nack["id"] == "r29").then_some(())
    });
    let answer = get(metrics.port(), "/metrics");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("text/plain; version=0.0.4; charset=utf-8")
    );
    assert!(get(metrics.port(), "/").starts_with("HTTP/1.1 404"));
    let page = answer.split_once("\r\n\r\n").unwrap().1;
    check_page(page);
    for sample in [
        "relay_frames_in_total{t=\"other\"} 1",
        "relay_auth_failures_total{code=\"invalid_request\"} 1",
        "relay_connections{state=\"auth\"} 1",
        "relay_queue_rows 1",
        "relay_ready 1",
    ] {
        assert!(page.lines().any(|line| line == sample), "{sample}\n{page}");
    }
    let count = |name: &str| -> u64 {
        let line =
            page.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}\n{page}"));
        line.rsplit_once(' ').unwrap().1.parse().unwrap()
    };
    assert!(count("relay_rate_limited_total ") >= 10);
    assert_eq!(count("relay_rate_limited_total "), count("relay_nacks_total{code=\"rate_limited\"}"));
    assert!(count("relay_commit_seconds_count ") > 0 && count("relay_commit_writes_total ") > 0);
    assert!(count("relay_store_bytes{part=\"used\"}") > 0);
    // Nothing of a peer: no id, name or text of anybody.
    for name in [team.id.to_string(), team.machines[1].key.machine().to_string(), envelope.id, "evil".into()]
    {
        assert!(!page.contains(&name), "{name}");
    }
}

/// The page holds the families, each with its type, its help and no label or value but its own.
fn check_page(page: &str) {
    let mut seen = Vec::new();
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            let family = FAMILIES.iter().find(|(one, ..)| *one == name);
            assert_eq!(family.unwrap_or_else(|| panic!("an unknown family {name}")).1, kind, "{name}");
            seen.push(name);
        } else if !line.starts_with("# HELP ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
            let known = |name: &str| FAMILIES.iter().find(|(one, ..)| *one == name);
            let family = known(name).or_else(|| known(base?)).unwrap_or_else(|| panic!("{line}"));
            for label in labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty()) {
                let (label, value) = label.split_once('=').unwrap();
                let (_, values) = family.2.iter().find(|(one, _)| *one == label).unwrap();
                let value = value.trim_matches('"');
                assert!(values.is_empty() || values.contains(&value), "{line}");
                assert!(label != "t" || TYPES.contains(&value), "{line}");
                assert!(label != "code" || messaging_proto::Code::from_text(value).is_some(), "{line}");
            }
        }
    }
    let mut wanted: Vec<&str> = FAMILIES.iter().map(|(name, ..)| *name).collect();
    wanted.sort_unstable();
    seen.sort_unstable();
    assert_eq!(seen, wanted);
    // A family with a fixed vocabulary shows all of it, so that nothing appears only after it went wrong.
    for (name, _, labels) in FAMILIES {
        for (label, values) in *labels {
            for value in *values {
                assert!(page.contains(&format!("{name}{{{label}=\"{value}\"")), "{name} {value}");
            }
        }
    }
}

#[test]
fn ready_says_why_it_is_not() {
    let world = World::new();
    assert!(get(world.port, "/healthz").ends_with(r#"{"ok":true}"#));
    let ready = get(world.port, "/readyz");
    assert!(ready.starts_with("HTTP/1.1 200") && ready.contains("cache-control: no-store"), "{ready}");
    assert!(get(world.port, "/metrics").starts_with("HTTP/1.1 404"));
}
