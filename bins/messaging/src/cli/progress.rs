//! What a person sees while something takes longer than a second.

use std::io::{IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Shows, from the second second on, what is waited for and how long; on a terminal only. Ends when dropped.
pub(crate) struct Progress {
    running: Option<(mpsc::Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub(crate) fn start(what: &str) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self { running: None };
        }
        let (stop, stopped) = mpsc::channel();
        let what = what.to_owned();
        let thread = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let start = Instant::now();
            let mut shown = false;
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let _ = write!(anstream::stderr(), "\r\u{1b}[K{what} … {} s", start.elapsed().as_secs());
                let _ = anstream::stderr().flush();
                shown = true;
            }
            if shown {
                let _ = write!(anstream::stderr(), "\r\u{1b}[K");
                let _ = anstream::stderr().flush();
            }
        });
        Self { running: thread.ok().map(|thread| (stop, thread)) }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}
