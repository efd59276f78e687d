//! Writes a capture: everything a machine is given and says, for `messaging-sim replay` (`messaging_machines::capture` is its
//! form). Off unless asked for.
//!
//! **A capture is a secret.** It holds private keys, session keys, the randomness that every key and nonce was drawn from,
//! and the plaintext of what people wrote. So the file is 0600, says so in its first line, and the service says so when
//! it starts.
//!
//! An event is written before the machine takes it and what the machine made of it before anybody hears of it, so a
//! capture never knows less than a peer does, also after `kill -9`. It is not synced: a power cut may lose its end.
//!
//! When a file is past its size the service begins a new one and keeps the one before as `FILE.1`. A machine's memory is
//! not in a capture, so a new file begins with a new machine: sockets of a relay live on, clients of a daemon connect
//! again, as after a failed store. When a capture cannot be written it ends, and the service goes on.

#[cfg(test)]
mod tests;

use crate::log::Log;
use crate::store::Reader;
use messaging_machines::capture::{self, Origin, Record, TITLE};
use messaging_machines::store::{Base, Range, Table, Writes};
use messaging_machines::{Machine, Step};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Bound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// Bytes of a file, besides the rows it begins with, before a new one is begun.
pub const CAPTURE_BYTES: u64 = 256 << 20;
/// Rows of one read of the store.
const ROWS: usize = 1_000;

/// Where to capture, and how much.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The file.
    pub path: PathBuf,
    /// Bytes of it before a new one is begun.
    pub bytes: u64,
}

impl CaptureOptions {
    /// A capture of the usual size.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), bytes: CAPTURE_BYTES }
    }
}

/// What the next machine is built from; whoever builds it says so.
#[derive(Clone, Debug, Default)]
pub struct Built(Arc<Mutex<Option<Origin>>>);

impl Built {
    /// Notes what the machine that is built now is built from.
    pub fn note(&self, origin: Origin) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(origin);
    }

    fn take(&self) -> Option<Origin> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A capture that is being written.
#[derive(Debug)]
pub struct Capture {
    options: CaptureOptions,
    tables: &'static [Table],
    built: Built,
    log: Log,
    /// Nothing once it could not be written.
    file: Option<File>,
    /// Bytes since the machine began.
    bytes: u64,
    /// Whether the file is old enough for a new one to begin.
    old: bool,
}

impl Capture {
    /// Opens the file, or goes on in one that an earlier process wrote.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] for a file that is not a private one of this user,
    /// [`io::ErrorKind::InvalidData`] for one that is no capture, and whatever the system says.
    pub fn open(options: CaptureOptions, tables: &'static [Table], log: &Log) -> io::Result<Self> {
        let file = open(&options.path)?;
        let old = file.metadata()?.len() >= options.bytes;
        let shown = options.path.display().to_string();
        log.warn("capture.on", &[("file", shown.into()), ("secret", "keys and plaintexts".into())]);
        Ok(Self {
            options,
            tables,
            built: Built::default(),
            log: log.clone(),
            file: Some(file),
            bytes: 0,
            old,
        })
    }

    /// Where builders say what a machine is built from.
    #[must_use]
    pub fn built(&self) -> Built {
        self.built.clone()
    }

    /// Whether it is time for a new file, and with it a new machine.
    #[must_use]
    pub(crate) const fn full(&self) -> bool {
        self.file.is_some() && self.bytes >= self.options.bytes
    }

    /// A machine begins over what this reader reads.
    pub(crate) fn begin(&mut self, reader: &Reader) {
        if self.file.is_none() {
            return;
        }
        if self.old || self.bytes >= self.options.bytes {
            self.rotate();
        }
        let Some(origin) = self.built.take() else { return self.fail(&io::ErrorKind::InvalidData.into()) };
        self.record(&Record::Begin { release: env!("CARGO_PKG_VERSION").to_owned(), origin });
        for table in self.tables {
            if !self.rows(*table, reader) {
                return self.fail(&io::ErrorKind::Other.into());
            }
        }
        // A large store is no reason to begin anew at once.
        self.bytes = 0;
    }

    fn rows(&mut self, table: Table, reader: &Reader) -> bool {
        let mut last: Option<Vec<u8>> = None;
        loop {
            let from = last.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
            let range = Range { from, to: Bound::Unbounded, reverse: false, limit: ROWS };
            let Ok(rows) = reader.range(table, range) else { return false };
            let Some((key, _)) = rows.last() else { return true };
            last = Some(key.clone());
            self.record(&Record::Rows { table: table.0.to_owned(), rows });
        }
    }

    /// A machine is about to take an event.
    pub(crate) fn event<M: Machine>(&mut self, step: &Step, event: &M::Event) {
        self.record(&capture::event(step, event));
    }

    /// It made this of it.
    pub(crate) fn effects<M: Machine>(&mut self, answered: bool, effects: &[M::Effect]) {
        self.record(&capture::effects(answered, effects));
    }

    /// A batch is on its way to the disk.
    pub(crate) fn batch(&mut self, writes: &Writes) {
        let (rows, digest) = capture::digest(writes);
        self.record(&Record::Batch { rows, digest });
    }

    /// A batch arrived there, or may not have.
    pub(crate) fn done(&mut self, durable: bool) {
        self.record(&Record::Done { durable });
    }

    /// The machine is gone.
    pub(crate) fn lost(&mut self) {
        self.record(&Record::Lost);
    }

    /// The service stops, after its last rows were written or not.
    pub(crate) fn end(&mut self, writes: &Writes, durable: bool) {
        if !writes.is_empty() {
            self.batch(writes);
            self.done(durable);
        }
        self.record(&Record::End);
    }

    fn record(&mut self, record: &Record) {
        let Some(file) = &mut self.file else { return };
        let mut bytes = Zeroizing::new(Vec::new());
        capture::write(record, &mut bytes);
        self.bytes += bytes.len() as u64;
        if let Err(error) = file.write_all(&bytes) {
            self.fail(&error);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.file = None;
        self.log.error("capture.failed", &[("error", format!("{:?}", error.kind()).into())]);
    }

    /// Keeps the file as the one before, and begins another.
    fn rotate(&mut self) {
        let mut before = self.options.path.clone().into_os_string();
        before.push(".1");
        let renewed = std::fs::rename(&self.options.path, &before).and_then(|()| open(&self.options.path));
        match renewed {
            Ok(file) => {
                (self.file, self.old) = (Some(file), false);
                self.log.info("capture.rotated", &[]);
            }
            Err(error) => self.fail(&error),
        }
    }
}

/// Opens a capture at its end; a new one gets its first line.
fn open(path: &Path) -> io::Result<File> {
    let private = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::RDWR
        | OFlags::CREATE
        | OFlags::APPEND
        | OFlags::CLOEXEC
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK;
    let mut file = File::from(rustix::fs::open(path, flags, private)?);
    let meta = file.metadata()?;
    let ours = meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw();
    if !ours || meta.mode() & 0o022 != 0 {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    rustix::fs::fchmod(&file, private)?;
    if meta.len() == 0 {
        file.write_all(TITLE.as_bytes())?;
    } else {
        let mut title = vec![0; TITLE.len()];
        let read = file.read_exact(&mut title);
        if read.is_err() || title != TITLE.as_bytes() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    Ok(file)
}
