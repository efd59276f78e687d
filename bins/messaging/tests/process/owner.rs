//! One daemon for a home, whatever the last one left (user report 49).

use crate::daemon::{Bystander, READY, Reaper, cli, cli_error, ended, start};
use crate::world::{PATIENCE, Process, program, wait};
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

fn pid_of(home: &Home) -> u32 {
    let client = Client::connect(&Options::admin(home.clone())).unwrap();
    client.call("daemon.health", json!({})).unwrap();
    client.hello().pid
}

#[test]
fn report_49_what_a_killed_daemon_left_is_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    let mut daemon = start(&path);
    daemon.kill();
    assert!(home.agent_socket().exists() && home.admin_socket().exists(), "kill -9 removes nothing");
    assert_eq!(home.locked_by(), Some(daemon.pid()));
    // Nobody listens: neither a client nor `daemon stop` takes what is left for a daemon.
    assert_eq!(cli_error(&path, &["status"])["code"], "daemon_unavailable");
    assert!(cli(&path, &["daemon", "stop"]).status.success());
    for _ in 0..3 {
        let mut again = start(&path);
        // Ready means that a client is answered now.
        assert_eq!(pid_of(&home), again.pid());
        assert_eq!(home.locked_by(), Some(again.pid()));
        assert_eq!(again.ready, again.pid().to_string());
        again.kill();
    }
    let mut last = start(&path);
    assert_eq!(last.terminate(), Some(0));
    assert!(!home.agent_socket().exists() && !home.admin_socket().exists() && !home.pid_file().exists());
}

#[test]
fn report_49_a_reused_pid_is_never_signalled() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    start(&path).kill();
    let mut bystander = Bystander::new();
    let name = format!("{}\n", bystander.pid());
    // The lock of a dead daemon names a process that came after it.
    std::fs::write(home.pid_file(), &name).unwrap();
    assert!(cli(&path, &["daemon", "stop"]).status.success(), "there is nothing to stop");
    assert!(bystander.is_well());
    let mut daemon = start(&path);
    assert_eq!(home.locked_by(), Some(daemon.pid()), "the owner is the one that runs");
    assert!(bystander.is_well());

    // A daemon that hangs, and a lock that names somebody else: nobody is signalled.
    let id = Pid::from_raw(i32::try_from(daemon.pid()).unwrap()).unwrap();
    kill_process(id, Signal::STOP).unwrap();
    std::fs::write(home.pid_file(), &name).unwrap();
    let error = cli_error(&path, &["daemon", "stop"]);
    assert_eq!(error["code"], "daemon_mismatch", "it says no hello: {error}");
    kill_process(id, Signal::CONT).unwrap();
    assert!(bystander.is_well() && daemon.is_running());
    // It answers again, and is stopped by asking; the lock that names another stays.
    assert!(cli(&path, &["daemon", "stop"]).status.success());
    assert_eq!(ended(&mut daemon), Some(0));
    assert!(bystander.is_well());
    assert_eq!(home.locked_by(), Some(bystander.pid()), "only the owner removes its own name");
}

/// Starts `count` daemons at once; the one that runs, and how the others ended.
fn race(path: &Path, count: usize) -> (Process, Vec<(Option<i32>, String)>) {
    let mut children: Vec<_> = (0..count)
        .map(|_| {
            let mut command = Command::new(program());
            command.arg("--home").arg(path).args(["daemon", "run"]).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let end = Instant::now() + PATIENCE;
    let mut losers = Vec::new();
    while losers.len() + 1 < count {
        assert!(Instant::now() < end, "{} of {count} run", count - losers.len());
        children.retain_mut(|child| {
            let Some(status) = child.try_wait().unwrap() else { return true };
            let mut text = String::new();
            child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
            losers.push((status.code(), text));
            false
        });
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    (Process::adopt(children.pop().unwrap(), READY), losers)
}

#[test]
fn report_49_of_many_started_at_once_one_runs() {
    for count in [2, 10, 10] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("home");
        let home = Home::new(&path);
        // Also over what a crash left.
        if count == 10 {
            start(&path).kill();
        }
        let (mut daemon, losers) = race(&path, count);
        assert_eq!(pid_of(&home), daemon.pid());
        assert_eq!(home.locked_by(), Some(daemon.pid()));
        for (status, text) in losers {
            assert_eq!(status, Some(1), "{text}");
            assert!(
                text.starts_with("messagingd: invalid_state: another messagingd runs in this home"),
                "{text}"
            );
            assert_eq!(text.lines().count(), 1, "{text}");
        }
        assert_eq!(daemon.terminate(), Some(0));
    }
}

#[test]
fn report_49_daemon_start_ten_times_at_once_finds_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("home");
    let home = Home::new(&path);
    let _reaper = Reaper(home.clone());
    let outputs: Vec<_> = std::thread::scope(|scope| {
        let start = || scope.spawn(|| cli(&path, &["--json", "daemon", "start"]));
        let started: Vec<_> = (0..10).map(|_| start()).collect();
        started.into_iter().map(|start| start.join().unwrap()).collect()
    });
    let pid = pid_of(&home);
    let mut first = 0;
    for output in outputs {
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        let said: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(said["pid"], pid, "every start names the daemon that serves");
        first += usize::from(said["started"] == true);
    }
    assert_eq!(first, 1);
    assert!(cli(&path, &["daemon", "stop"]).status.success());
    wait("the lock to be free", || home.locked_by().is_none().then_some(()));
    // `daemon stop` returned once the process had ended: a start right after finds the home free.
    for _ in 0..3 {
        assert!(cli(&path, &["daemon", "start"]).status.success());
        assert!(cli(&path, &["daemon", "stop"]).status.success());
    }
}
