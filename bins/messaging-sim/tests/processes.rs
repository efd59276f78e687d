//! The same seed is the same run: twice in one process, and in another process, in a world of hundreds of sessions.
#![allow(clippy::unwrap_used)]

use messaging_sim::large::large;
use std::process::Command;

fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_messaging-sim")).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_large_world_is_one_in_two_runs_and_two_processes() {
    let (first, second) = (large(1), large(1));
    assert_eq!(first, second);
    assert!(first.sessions >= 200 && first.rows >= 5_000 && first.sends >= 400, "{first:?}");
    let other = run(&["large", "--seed", "1"]);
    assert!(
        other.contains(&first.effects.to_string()) && other.contains(&first.stores.to_string()),
        "{other}"
    );
}

#[test]
fn a_plan_is_one_run_in_two_processes_and_seeds_differ() {
    let of = |seed: &str| {
        let shown = run(&["run", "--seed", seed, "--once"]);
        shown.lines().find(|line| line.starts_with("seed")).unwrap().to_owned()
    };
    assert_eq!(of("3"), of("3"));
    let effects = |line: String| line.rsplit(' ').next().unwrap().to_owned();
    assert_ne!(effects(of("3")), effects(of("6")));
}
