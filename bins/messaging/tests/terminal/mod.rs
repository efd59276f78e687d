//! A terminal of 80 columns and 24 lines around one run of the program, and what of its screen changes from run to run.
#![allow(dead_code, clippy::unwrap_used, reason = "a helper of tests, each of which uses a part of it")]

use regex::Regex;
use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Winsize, tcgetattr, tcsetattr, tcsetwinsize,
};
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A program in a terminal. It is killed when dropped.
pub(crate) struct Terminal {
    child: Child,
    master: File,
    output: mpsc::Receiver<Vec<u8>>,
    seen: Vec<u8>,
    name: CString,
}

impl Terminal {
    /// Starts `command` in a terminal of its own.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::narrow(command, 80)
    }

    /// As [`Terminal::start`], so many columns wide.
    pub(crate) fn narrow(command: &mut Command, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = File::from(rustix::fs::open(name.as_c_str(), flags, Mode::empty()).unwrap());
        command.stdin(slave.try_clone().unwrap()).stdout(slave.try_clone().unwrap()).stderr(slave);
        command.env("TERM", "xterm-256color").env_remove("CI");
        for wish in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
            command.env_remove(wish);
        }
        let child = command.spawn().unwrap();
        // The program alone holds the other end: then its end is this side's end of file.
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null());
        let master = File::from(master);
        let mut reader = master.try_clone().unwrap();
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { child, master, output, seen: Vec::new(), name }
    }

    /// Everything seen so far, escapes included.
    pub(crate) fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen).into_owned()
    }

    /// This terminal for the one who reads from it next, as a shell does.
    pub(crate) fn next_reader(&self) -> File {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        File::from(rustix::fs::open(self.name.as_c_str(), flags, Mode::empty()).unwrap())
    }

    /// Waits for the end of the program; what `next` gets then, at once and without waiting for the end of its line.
    pub(crate) fn left_to(&mut self, next: &mut File, patience: Duration) -> String {
        let end = Instant::now() + patience;
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < end, "it did not end; seen: {}", self.raw());
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut modes = tcgetattr(&*next).unwrap();
        modes.local_modes -= LocalModes::ICANON;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&*next, OptionalActions::Now, &modes).unwrap();
        let mut bytes = [0; 4096];
        let count = next.read(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    }

    /// Types.
    pub(crate) fn type_text(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the output, without its colours, holds `text`.
    pub(crate) fn expect(&mut self, text: &str, patience: Duration) {
        let end = Instant::now() + patience;
        while !anstream::adapter::strip_str(&String::from_utf8_lossy(&self.seen)).to_string().contains(text) {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(_) => panic!("{text:?} did not come; seen: {:?}", String::from_utf8_lossy(&self.seen)),
            }
        }
    }

    /// Waits until the output, without its colours, ends with `text`.
    pub(crate) fn expect_end(&mut self, text: &str, patience: Duration) {
        let end = Instant::now() + patience;
        while !anstream::adapter::strip_str(&String::from_utf8_lossy(&self.seen)).to_string().ends_with(text)
        {
            let left = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(left) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(_) => panic!("{text:?} did not come; seen: {:?}", String::from_utf8_lossy(&self.seen)),
            }
        }
    }

    /// Ctrl-C, as a terminal's driver sends it to its foreground: there is none here, so by signal.
    pub(crate) fn interrupt(&self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }

    /// SIGTERM.
    pub(crate) fn terminate(&self) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Whether it takes lines and shows what is typed, as a shell needs it.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(&self.master).unwrap();
        modes.local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    /// Waits for the end: the whole output, and the exit status (nothing after a signal).
    pub(crate) fn finish(mut self, patience: Duration) -> (String, Option<i32>) {
        let end = Instant::now() + patience;
        loop {
            match self.output.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.seen.extend(bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    panic!("it did not end; seen: {}", String::from_utf8_lossy(&self.seen))
                }
            }
        }
        let status = self.child.wait().unwrap();
        let text = String::from_utf8(std::mem::take(&mut self.seen)).unwrap();
        (text.replace("\r\n", "\n"), status.code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The text without colours and without what is shown while something takes long. Panics on any other escape.
pub(crate) fn plain(text: &str) -> String {
    let progress =
        Regex::new(r"(\x1b\[A)?\r\x1b\[K((waiting for|starting|asking) [a-z ]*… [0-9]+ s)?").unwrap();
    let colours = Regex::new(r"\x1b\[[0-9;]*m").unwrap();
    let text = colours.replace_all(&progress.replace_all(text, ""), "").into_owned();
    let other = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(other, None, "a control character reaches the terminal: {text:?}");
    text
}

/// Ids, times, ports and paths as constants of the same width.
pub(crate) fn normalise(text: &str, folder: &str) -> String {
    let mut text = text.replace(folder, "/tmp/world");
    let rules: [(&str, &str); 21] = [
        (r"(?m)^[0-9]+ pages", "40 pages"),
        (r"messaging1\.[A-Za-z0-9_-]+", "messaging1.TICKET"),
        (r"messaging-(team|admit)\.[A-Za-z0-9_-]+", "messaging-$1.CARD"),
        (r"(?-u:\b)01[0-9A-HJKMNP-TV-Z]{24}(?-u:\b)", "01XXXXXXXXXXXXXXXXXXXXXXXX"),
        (r"[A-Za-z0-9_-]{43}", "KKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKKK"),
        (r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z", "2026-01-01T00:00:00Z"),
        (r"20[0-9]{2}-[0-9]{2}-[0-9]{2}", "2026-01-01"),
        (r"127\.0\.0\.1:[0-9]+", "127.0.0.1:8787"),
        (r"(?-u:\b)pid [0-9]+", "pid 1000"),
        (r"(?-u:\b)in [0-9]+ ms", "in 1 ms"),
        (r"[0-9]+ MiB free", "1000 MiB free"),
        (r"(?-u:\b)up (now|[0-9]+ (s|min|h))", "up 1 s"),
        (r#""at":[0-9]+"#, r#""at":0"#),
        (r#""port":[0-9]+"#, r#""port":8787"#),
        (r"ready [0-9]+", "ready 8787"),
        (r"(?m)^ *[0-9]+ ms  ", "     1 ms  "),
        (r"after [0-9]+ ms", "after 1 ms"),
        (r"[0-9]+ ms after", "1 ms after"),
        (r"in [0-9]+\.[0-9] s", "in 1.0 s"),
        (r"(?m)^(> )?[0-9]{2}:[0-9]{2} ", "${1}00:00 "),
        (r"the oldest for (now|[0-9]+ (s|min))", "the oldest for 1 s"),
    ];
    for (pattern, constant) in rules {
        text = Regex::new(pattern).unwrap().replace_all(&text, constant).into_owned();
    }
    // An age: its column is six wide, or the last.
    let age = Regex::new(r"(?m)  (now|[0-9]+ (?:s|min))( {2,}|$)").unwrap();
    let age = age.replace_all(&text, |found: &regex::Captures<'_>| {
        let width = if found[2].is_empty() { 0 } else { found[0].len() };
        format!("{:width$}", "  1 s")
    });
    age.into_owned()
}
