//! What a process owes its operator: exit statuses, signals, readiness, and a last line when it fails.

use crate::log::Log;
use crate::store::library::{self, Panic};
use async_signal::Signal;
use futures_lite::StreamExt;
use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Exit status of an internal failure (`EX_SOFTWARE`).
pub const SOFTWARE: u8 = 70;
/// Exit status of a refused store (`EX_CONFIG`).
pub const STORE_REFUSED: u8 = 78;

/// Ends the process with [`SOFTWARE`] on any panic, after one line. The line names the place and never the message,
/// which could quote a peer or a key (`messaging/1 §7`, §8.1, "Process").
pub fn exit_on_panic(event: &'static str, log: &Log) {
    let log = log.clone();
    std::panic::set_hook(Box::new(move |info| {
        match library::judge() {
            Panic::Bug => {}
            Panic::Answer => return,
            Panic::Last => {
                complain(
                    "internal: the database: corrupted. Next: keep a copy of its files, and restore a backup.",
                );
                std::process::exit(1);
            }
        }
        let thread = std::thread::current().name().unwrap_or("main").to_owned();
        log.error(
            event,
            &[("origin", thread.into()), ("error", "panic".into()), ("frame", frame(info).into())],
        );
        std::process::exit(i32::from(SOFTWARE));
    }));
}

fn frame(info: &PanicHookInfo<'_>) -> String {
    info.location().map_or_else(String::new, |at| format!("{}:{}", at.file(), at.line()))
}

/// Why a process wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// SIGTERM or SIGINT.
    Signal,
    /// SIGHUP, where it is asked for.
    Reload,
    /// The driver's thread ended.
    Ended,
}

/// What the main thread waits for.
pub struct Waiter {
    wakes: mpsc::Receiver<Wake>,
    wake: mpsc::Sender<Wake>,
}

impl Waiter {
    /// Takes SIGTERM and SIGINT from now on.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn new() -> std::io::Result<Self> {
        Self::taking(&[Signal::Term, Signal::Int])
    }

    /// Takes SIGHUP besides, as [`Wake::Reload`].
    ///
    /// # Errors
    /// When the system refuses.
    pub fn with_reload() -> std::io::Result<Self> {
        Self::taking(&[Signal::Term, Signal::Int, Signal::Hup])
    }

    fn taking(signals: &[Signal]) -> std::io::Result<Self> {
        // A file at the size that the system allows one: the write fails as on a full disk, where without a handler the
        // signal would end the process.
        let signals = signals.iter().copied().chain([Signal::Xfsz]);
        let mut signals = async_signal::Signals::new(signals)?;
        let (wake, wakes) = mpsc::channel();
        let signalled = wake.clone();
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            while let Some(Ok(signal)) = async_io::block_on(signals.next()) {
                let wake = match signal {
                    Signal::Xfsz => continue,
                    Signal::Hup => Wake::Reload,
                    _ => Wake::Signal,
                };
                if signalled.send(wake).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { wakes, wake })
    }

    /// What a driver calls when it ends.
    #[must_use]
    pub fn ended(&self) -> Box<dyn FnOnce() + Send> {
        let wake = self.wake.clone();
        Box::new(move || {
            // Nobody waits any more when the process is on its way out.
            let _ = wake.send(Wake::Ended);
        })
    }

    /// Waits for the first of them.
    #[must_use]
    pub fn wait(&self) -> Wake {
        self.wakes.recv().unwrap_or(Wake::Ended)
    }

    /// Waits for the first of them, at most `timeout`.
    #[must_use]
    pub fn wait_for(&self, timeout: Duration) -> Option<Wake> {
        match self.wakes.recv_timeout(timeout) {
            Ok(wake) => Some(wake),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => Some(Wake::Ended),
        }
    }

    /// Waits for the driver's end, at most `timeout`; whether it came.
    #[must_use]
    pub fn wait_ended(&self, timeout: Duration) -> bool {
        let end = Instant::now() + timeout;
        loop {
            match self.wakes.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Wake::Ended) | Err(mpsc::RecvTimeoutError::Disconnected) => return true,
                Ok(Wake::Signal | Wake::Reload) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

/// What the service manager is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It serves.
    Ready,
    /// It is shutting down.
    Stopping,
    /// It makes progress.
    Alive,
}

/// Tells the service manager, if there is one.
pub fn notify(notice: Notice) {
    let state = match notice {
        Notice::Ready => sd_notify::NotifyState::Ready,
        Notice::Stopping => sd_notify::NotifyState::Stopping,
        Notice::Alive => sd_notify::NotifyState::Watchdog,
    };
    // Nobody listens outside systemd.
    let _ = sd_notify::notify(&[state]);
}

/// How often the service manager wants to hear that the process makes progress, if it does.
#[must_use]
pub fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// One line on stdout, for whoever started the process.
pub fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// One line on stderr.
pub fn complain(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}
