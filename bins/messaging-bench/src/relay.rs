//! The relay process under measurement.

use crate::Fault;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// Limits that a benchmark has to raise.
const RAISED: [(&str, &str); 11] = [
    ("--frames-per-minute", "1000000000"),
    ("--bytes-per-minute", "1000000000000"),
    ("--queue-per-sender", "10000000"),
    ("--queue-per-machine", "10000000"),
    ("--queue-bytes-per-machine", "100000000000"),
    ("--queue-rows", "100000000"),
    ("--queue-bytes", "1000000000000"),
    ("--preauth-per-address", "4096"),
    ("--preauth-connections", "4096"),
    ("--max-teams", "1000000"),
    ("--team-creates-per-hour", "1000000"),
];

/// Starts the process; it and its port once it serves.
fn spawn(program: &Path, folder: &Path, flags: &[(&str, &str)]) -> Result<(Child, u16), Fault> {
    let mut command = Command::new(program);
    command.args(["--listen", "127.0.0.1:0", "--log-level", "error", "--db"]);
    command.arg(folder.join("relay.db"));
    for (flag, value) in flags {
        command.args([flag, value]);
    }
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().ok_or("the relay has no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    let port = line.trim().strip_prefix("messaging-relay: ready ").ok_or("the relay did not start")?;
    Ok((child, port.parse()?))
}

/// A running relay in a folder of its own.
pub struct Relay {
    child: Child,
    /// Where it listens.
    pub port: u16,
    folder: tempfile::TempDir,
}

impl Relay {
    /// Starts the relay with the limits a benchmark has to raise.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start(program: &Path, folder: &Path) -> Result<Self, Fault> {
        Self::start_with(program, folder, &RAISED)
    }

    /// Starts the relay with these flags.
    ///
    /// # Errors
    /// When it does not start.
    pub fn start_with(program: &Path, folder: &Path, flags: &[(&str, &str)]) -> Result<Self, Fault> {
        let folder = tempfile::tempdir_in(folder)?;
        let (child, port) = spawn(program, folder.path(), flags)?;
        Ok(Self { child, port, folder })
    }

    /// Bytes of the store's file.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn store_bytes(&self) -> Result<u64, Fault> {
        Ok(std::fs::metadata(self.folder.path().join("relay.db"))?.len())
    }

    /// Bytes of the journal's two files.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn journal_bytes(&self) -> Result<u64, Fault> {
        let bytes = |name: &str| Ok::<_, Fault>(std::fs::metadata(self.folder.path().join(name))?.len());
        Ok(bytes("relay.db.journal-0")? + bytes("relay.db.journal-1")?)
    }

    /// Kills the process as a power cut would, starts it again over the same store, and says how long that took, in
    /// milliseconds. It listens on another port then.
    ///
    /// # Errors
    /// When it does not start.
    pub fn crash(&mut self, program: &Path) -> Result<u64, Fault> {
        self.child.kill()?;
        self.child.wait()?;
        let start = Instant::now();
        (self.child, self.port) = spawn(program, self.folder.path(), &RAISED)?;
        Ok(u64::try_from(start.elapsed().as_millis())?)
    }

    /// Resident memory in bytes.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn resident(&self) -> Result<u64, Fault> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").trim().parse::<u64>()? * 1024)
    }

    /// CPU time used so far, user and system, in microseconds.
    ///
    /// # Errors
    /// When it cannot be told.
    pub fn cpu_micros(&self) -> Result<u64, Fault> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let (_, fields) = stat.rsplit_once(") ").ok_or("no stat")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(ticks * 1_000_000 / rustix::param::clock_ticks_per_second())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
