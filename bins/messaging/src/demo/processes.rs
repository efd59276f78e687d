//! The demonstration's processes: started from this executable, stopped when the demonstration ends.

use crate::cli::Failure;
use messaging_smol::home::Home;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const START: Duration = Duration::from_secs(10);
const STOP: Duration = Duration::from_secs(5);

/// What was started and has to be stopped, by whoever comes first: the end of the story or a signal.
#[derive(Clone, Default)]
pub(super) struct Processes(Arc<Mutex<Children>>);

impl Processes {
    pub(super) fn lock(&self) -> MutexGuard<'_, Children> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processes.
#[derive(Default)]
pub(super) struct Children(Vec<Child>);

impl Children {
    /// Stops them: the daemons are asked, what does not answer is ended.
    pub(super) fn stop(&mut self) {
        for child in self.0.iter().rev() {
            let _ = messaging_smol::supervise::terminate(child.id());
        }
        let end = Instant::now() + STOP;
        for mut child in self.0.drain(..) {
            while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A relay and two daemons.
pub(super) struct World {
    pub(super) relay: String,
    pub(super) alice: Home,
    pub(super) bob: Home,
    store: PathBuf,
    processes: Processes,
}

impl World {
    /// A world in a folder, with nothing started yet.
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            relay: String::new(),
            alice: Home::new(&folder.join("alice")),
            bob: Home::new(&folder.join("bob")),
            store: folder.join("relay.db"),
            processes: Processes::default(),
        }
    }

    /// What it starts.
    pub(super) fn processes(&self) -> Processes {
        self.processes.clone()
    }

    /// Starts all three and waits until each says it is ready.
    pub(super) fn start(&mut self) -> Result<(), Failure> {
        let store = text(&self.store);
        let port = self.spawn(
            "messaging-relay: ready ",
            &["relay", "--listen", "127.0.0.1:0", "--log-level", "error", "--db", &store],
        )?;
        self.relay = format!("ws://127.0.0.1:{port}/v1/connect");
        for home in [self.alice.clone(), self.bob.clone()] {
            self.spawn(
                "messagingd: ready ",
                &["--home", &text(home.path()), "daemon", "run", "--log-level", "error"],
            )?;
        }
        Ok(())
    }

    /// The relay's process id.
    pub(super) fn relay_pid(&self) -> u32 {
        self.processes.lock().0.first().map_or(0, Child::id)
    }

    /// Leaves the processes running.
    pub(super) fn keep(&self) {
        self.processes.lock().0.clear();
    }

    /// Stops the processes.
    pub(super) fn stop(&self) {
        self.processes.lock().stop();
    }

    /// Starts this executable with `arguments` and returns what follows `ready` on its first line.
    fn spawn(&self, ready: &str, arguments: &[&str]) -> Result<String, Failure> {
        let failed = |what: &str| Failure::new("internal", format!("a process of the demonstration {what}"));
        let program = std::env::current_exe().map_err(|_| failed("cannot be found"))?;
        // Started and noted in one: a signal between the two would leave it behind.
        let mut processes = self.processes.lock();
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|_| failed("cannot be started"))?;
        let stdout = child.stdout.take();
        processes.0.push(child);
        drop(processes);
        let Some(stdout) = stdout else { return Err(failed("has no output")) };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let Ok(line) = line else { return };
                let _ = sender.send(line);
            }
        });
        match receiver.recv_timeout(START) {
            Ok(line) => match line.strip_prefix(ready) {
                Some(rest) => Ok(rest.trim().to_owned()),
                None => Err(failed("did not start")),
            },
            // Its output has ended: it said why on stderr, which is this one's.
            Err(RecvTimeoutError::Disconnected) => Err(failed("ended at once; its own words are above")
                .with_remedy("do what they say, or give $TMPDIR a folder with room, and try again.")),
            Err(RecvTimeoutError::Timeout) => Err(failed("did not start in time")),
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop();
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
