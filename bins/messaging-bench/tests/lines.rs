//! The benchmark starts a real relay and prints a JSON line a workload, at a size that takes seconds. Its figures mean nothing here.

#![allow(clippy::unwrap_used)]

#[path = "../../messaging/tests/world/beside.rs"]
mod beside;

use serde_json::Value;
use std::process::{Command, Stdio};

fn run(arguments: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_messaging-bench"));
    command.arg("--relay").arg(beside::program("messaging-relay")).args(arguments).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

#[test]
fn each_workload_prints_a_line_of_json() {
    for (arguments, workload, figures) in [
        // The yardstick.
        (&["--only", "commit"][..], "commit", &["commit_p50_ms"][..]),
        // The same load at a fixed rate.
        (&["--only", "latency", "--rate", "400"], "latency", &["e2e_p50_ms", "e2e_p99_ms", "got"]),
        (&["--only", "drain", "--backlog", "300"], "drain", &["drain_msgs_s", "got"]),
        (&["--only", "idle", "--connections", "20"], "idle", &["connections"]),
    ] {
        let lines = run(arguments);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line = &lines[0];
        assert_eq!((line["workload"].as_str(), line["error"].as_str()), (Some(workload), None), "{line}");
        assert_eq!((line["peer"].as_str(), line["bytes"].as_u64()), (Some("messaging-relay"), Some(1_536)));
        for figure in figures {
            assert!(line[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {line}");
        }
    }
    // What goes wrong is told in the line.
    let mut command = Command::new(env!("CARGO_BIN_EXE_messaging-bench"));
    let output = command.args(["--relay", "/nowhere/relay", "--only", "drain"]).output().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(line["error"].is_string(), "{line}");
}
