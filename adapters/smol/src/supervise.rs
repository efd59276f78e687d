//! Starting and stopping the daemon of a home (`messaging/1 §8.1`, `§8.2` "Hello", `§8.8` "A refused store").
//!
//! A daemon is started only where nothing answers, and stopped by asking it. Signals are the fallback, and only ever go
//! to a pid that the lock still names, since a freed pid may already be another process's.

use crate::client::{Client, ClientError, Options};
use crate::home::Home;
use messaging_proto::Code;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The exit status of a daemon that refused its store.
pub const STORE_REFUSED_EXIT: i32 = 78;

const STOP_ANSWER: Duration = Duration::from_millis(5_000);
const STOP_WHOLE: Duration = Duration::from_millis(30_000);
const POLL: Duration = Duration::from_millis(20);

/// A daemon that serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its process.
    pub pid: u32,
    /// It ran before.
    pub already: bool,
}

/// Starts `program arguments… --home <home>` in the background and waits until it serves, at most `wait`.
///
/// # Errors
/// `daemon_mismatch` when a daemon of another release answers (it is never replaced), `store_refused` with its reason,
/// the code of a refused start, or `daemon_unavailable` when it does not serve in time.
pub fn start(
    program: &Path,
    arguments: &[&str],
    home: &Home,
    wait: Duration,
) -> Result<Started, ClientError> {
    let options = Options::admin(home.clone());
    match Client::connect(&options) {
        Ok(client) => return Ok(Started { pid: client.hello().pid, already: true }),
        Err(error) if error.code == Code::DaemonUnavailable => {}
        Err(error) => return Err(error),
    }
    // The daemon outlives whoever starts it: it keeps none of their files open, so that nobody waits for its end by them.
    close_fds::set_fds_cloexec_threadsafe(3, &[]);
    let mut command = Command::new(program);
    command.args(arguments);
    match home.path().to_str() {
        Some(path) => command.args(["--home", path]),
        // Arguments are text.
        None => command.env("MESSAGING_HOME", home.path()),
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own group: an interrupt of this terminal is not for it.
        .process_group(0)
        .spawn()
        .map_err(|_| ClientError::new(Code::DaemonUnavailable, "the daemon's program cannot be started"))?;
    let end = Instant::now() + wait;
    if ready(&mut child, wait) {
        let pid = child.id();
        // Nobody reads what it says further. A client that goes on leaves no zombie when the daemon ends before it.
        drop(child.stderr.take());
        let _ = std::thread::Builder::new().name("reaper".to_owned()).spawn(move || child.wait());
        return Ok(Started { pid, already: false });
    }
    match child.try_wait() {
        Ok(Some(status)) => {
            let error = refused(status.code(), &mut child);
            // Another start won the race: its daemon is the one that serves, as soon as it does.
            if error.code != Code::InvalidState {
                return Err(error);
            }
            loop {
                match Client::connect(&options) {
                    Ok(client) => return Ok(Started { pid: client.hello().pid, already: true }),
                    Err(other) if other.code == Code::DaemonUnavailable && Instant::now() < end => {
                        std::thread::sleep(POLL);
                    }
                    Err(_) => return Err(error),
                }
            }
        }
        _ => Err(ClientError::new(Code::DaemonUnavailable, "the daemon did not serve in time")),
    }
}

/// Whether the child says that it is ready before it ends or `wait` passes.
fn ready(child: &mut Child, wait: Duration) -> bool {
    let Some(stdout) = child.stdout.take() else { return false };
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let end = Instant::now() + wait;
    loop {
        match receiver.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line.starts_with("messagingd: ready ") => return true,
            Ok(_) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => return false,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                let _ = child.wait();
                return false;
            }
        }
    }
}

/// The error of a daemon that ended instead of serving, from its status and its line on stderr.
fn refused(status: Option<i32>, child: &mut Child) -> ClientError {
    let mut text = String::new();
    if let Some(stderr) = child.stderr.take() {
        let _ = stderr.take(65_536).read_to_string(&mut text);
    }
    let words = text.lines().find_map(|line| line.strip_prefix("messagingd: "));
    if status == Some(STORE_REFUSED_EXIT) {
        let reason = words
            .and_then(|line| line.strip_prefix("store_refused: "))
            .and_then(|rest| rest.split(':').next())
            .filter(|reason| matches!(*reason, "pre-reset" | "newer"));
        let mut error = ClientError::new(Code::StoreRefused, "the daemon refused the store of its home");
        error.reason = reason.map(str::to_owned);
        return error;
    }
    let code = words.and_then(|line| line.split(':').next()).and_then(Code::from_text);
    match (code, words.and_then(|line| line.split_once(": "))) {
        (Some(code), Some((_, text))) => ClientError::new(code, text),
        _ => ClientError::new(Code::DaemonUnavailable, "the daemon ended before it served"),
    }
}

/// Stops the daemon of a home and waits until its process has ended. Whether there was one.
///
/// # Errors
/// As [`stop_named`].
pub fn stop(home: &Home) -> Result<bool, ClientError> {
    stop_named(home).map(|pid| pid.is_some())
}

/// As [`stop`], with the pid of the one that was stopped.
///
/// # Errors
/// `daemon_unavailable` when it does not end in time, `forbidden` when the home is not private or no pid may be
/// signalled.
pub fn stop_named(home: &Home) -> Result<Option<u32>, ClientError> {
    let options = Options::admin(home.clone());
    let lock_before = home.locked_by();
    let hello = match Client::probe(&options) {
        Ok(hello) => hello,
        Err(error) if error.code == Code::DaemonUnavailable => return Ok(None),
        Err(error) => return Err(error),
    };
    let same_release = hello.check(&options.version).is_ok();
    let asked = same_release
        && Client::connect(&options).is_ok_and(|client| {
            client.call_within("daemon.stop", serde_json::json!({}), STOP_ANSWER).is_ok()
        });
    if !asked {
        let lock_now = home.locked_by();
        let named_now = lock_now == Some(hello.pid);
        let allowed = if same_release {
            // Absent or this pid when the command began; and when it named it, it still does.
            lock_before.is_none_or(|pid| pid == hello.pid) && (lock_before.is_none() || named_now)
        } else {
            named_now
        };
        if lock_before == Some(hello.pid) && lock_now.is_none() {
            return Ok(Some(hello.pid));
        }
        if !allowed {
            return Err(ClientError::new(
                Code::Forbidden,
                "the lock names another process; none was signalled",
            ));
        }
        terminate(hello.pid);
    }
    let end = Instant::now() + STOP_WHOLE;
    while is_alive(hello.pid) {
        // A third pid in the lock owns the home now: the one that was stopped is gone.
        if home.locked_by().is_some_and(|pid| pid != hello.pid && Some(pid) != lock_before) {
            return Ok(Some(hello.pid));
        }
        if Instant::now() >= end {
            return Err(ClientError::new(Code::DaemonUnavailable, "the daemon did not end in time"));
        }
        std::thread::sleep(POLL);
    }
    Ok(Some(hello.pid))
}

/// Whether a process with this pid exists, a zombie not counted.
#[must_use]
pub fn is_alive(pid: u32) -> bool {
    let Some(id) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    if test_kill_process(id).is_err() {
        return false;
    }
    // A dead child that its parent has not waited for still takes signals.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| !rest.starts_with('Z'))
}

/// Sends SIGTERM; whether the process took it.
pub fn terminate(pid: u32) -> bool {
    i32::try_from(pid).ok().and_then(Pid::from_raw).is_some_and(|id| kill_process(id, Signal::TERM).is_ok())
}
