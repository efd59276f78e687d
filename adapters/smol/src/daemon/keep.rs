//! The files beside the store: `identity.json`, `pairing.json`, `config.json`. Read at the start, then written by a
//! thread of their own, in order.

use crate::driver::Events;
use crate::files;
use crate::home::Home;
use crate::log::Log;
use messaging_machines::daemon::config::{CONFIG_BYTES, Settings};
use messaging_machines::daemon::io::{Event, File, FileKind, SaveId};
use messaging_proto::Code;
use messaging_proto::identity::{Identity, IdentityFile};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// The largest identity file.
const IDENTITY_BYTES: usize = 65_536;

/// Why a file cannot be used: the start is refused.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {text}")]
pub(super) struct FileError {
    pub(super) code: Code,
    name: &'static str,
    text: String,
}

fn name(kind: FileKind) -> &'static str {
    match kind {
        FileKind::Identity => "identity.json",
        FileKind::Pairing => "pairing.json",
        FileKind::Config => "config.json",
    }
}

/// What the files hold now. A machine that is rebuilt starts from it.
#[derive(Debug)]
pub(super) struct Kept {
    home: Home,
    now: Mutex<Now>,
}

#[derive(Debug)]
struct Now {
    identity: Option<IdentityFile>,
    pairing: Option<IdentityFile>,
    settings: Settings,
}

/// What a machine is built from.
pub(super) struct Parts {
    pub(super) identity: Option<Identity>,
    pub(super) pairing: Option<Identity>,
    pub(super) settings: Settings,
}

impl Kept {
    /// Reads the files; names of unknown members of `config.json` are logged.
    pub(super) fn load(home: &Home, log: &Log) -> Result<Self, FileError> {
        let settings = match read(home, FileKind::Config, CONFIG_BYTES)? {
            None => Settings::default(),
            Some(text) => {
                let parsed = Settings::parse(&text).map_err(|invalid| FileError {
                    code: Code::InvalidRequest,
                    name: "config.json",
                    text: invalid.to_string(),
                })?;
                for unknown in parsed.unknown {
                    log.warn("config.unknown", &[("name", crate::log::plain(&unknown).into())]);
                }
                parsed.settings
            }
        };
        let now = Now {
            identity: identity(home, FileKind::Identity)?,
            pairing: identity(home, FileKind::Pairing)?,
            settings,
        };
        Ok(Self { home: home.clone(), now: Mutex::new(now) })
    }

    fn now(&self) -> MutexGuard<'_, Now> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The configuration.
    pub(super) fn settings(&self) -> Settings {
        self.now().settings.clone()
    }

    /// What a machine is built from now. The texts were read once, at the start or before they were written.
    pub(super) fn parts(&self) -> Parts {
        let now = self.now();
        let read = |file: &Option<IdentityFile>| file.as_ref().and_then(|file| file.read().ok());
        Parts { identity: read(&now.identity), pairing: read(&now.pairing), settings: now.settings.clone() }
    }

    fn path(&self, kind: FileKind) -> PathBuf {
        self.home.path().join(name(kind))
    }

    /// Writes a file, and remembers what it holds.
    fn save(&self, file: File) -> io::Result<()> {
        let kind = kind(&file);
        let path = self.path(kind);
        match file {
            File::Identity(content) | File::Pairing(content) => {
                match &content {
                    Some(content) => files::write_private(&path, content.text().as_bytes())?,
                    None => files::remove(&path)?,
                }
                let mut now = self.now();
                match kind {
                    FileKind::Pairing => now.pairing = content,
                    _ => now.identity = content,
                }
            }
            File::Config(text) => {
                let parsed = Settings::parse(text.as_bytes()).map_err(|_| io::ErrorKind::InvalidData)?;
                files::write_private(&path, text.as_bytes())?;
                self.now().settings = parsed.settings;
            }
        }
        Ok(())
    }
}

const fn kind(file: &File) -> FileKind {
    match file {
        File::Identity(_) => FileKind::Identity,
        File::Pairing(_) => FileKind::Pairing,
        File::Config(_) => FileKind::Config,
    }
}

fn read(home: &Home, kind: FileKind, max: usize) -> Result<Option<Zeroizing<Vec<u8>>>, FileError> {
    files::read_private(&home.path().join(name(kind)), max).map_err(|error| {
        let (code, text) = match error.kind() {
            io::ErrorKind::PermissionDenied => {
                (Code::Forbidden, "not a private file of this user; run: chmod 600 on it".to_owned())
            }
            io::ErrorKind::FileTooLarge => (Code::InvalidRequest, "larger than it may be".to_owned()),
            _ => (Code::Internal, error.to_string()),
        };
        FileError { code, name: name(kind), text }
    })
}

fn identity(home: &Home, kind: FileKind) -> Result<Option<IdentityFile>, FileError> {
    let broken = || FileError {
        code: Code::InvalidRequest,
        name: name(kind),
        text: "not an identity this release can read; restore it from a backup".to_owned(),
    };
    let Some(bytes) = read(home, kind, IDENTITY_BYTES)? else { return Ok(None) };
    let text = std::str::from_utf8(&bytes).map_err(|_| broken())?;
    let file = IdentityFile::new(Zeroizing::new(text.to_owned()));
    file.read().map_err(|_| broken())?;
    Ok(Some(file))
}

/// The thread that writes.
#[derive(Debug)]
pub(super) struct Keeper {
    files: async_channel::Sender<(SaveId, File)>,
    thread: std::thread::JoinHandle<()>,
}

impl Keeper {
    /// Starts the thread. It reports each file with [`Event::Saved`].
    pub(super) fn spawn(kept: &Arc<Kept>, events: Events<Event>, log: &Log) -> io::Result<(Self, Saves)> {
        let (files, queue) = async_channel::unbounded();
        let (kept, log) = (Arc::clone(kept), log.clone());
        let thread = std::thread::Builder::new().name("files".to_owned()).spawn(move || {
            while let Ok((save, file)) = queue.recv_blocking() {
                let kind = kind(&file);
                let result = kept.save(file);
                if let Err(error) = &result {
                    let fields =
                        [("file", name(kind).into()), ("error", format!("{:?}", error.kind()).into())];
                    log.error("file.save_failed", &fields);
                }
                events.send_blocking(Event::Saved { save, ok: result.is_ok() });
            }
        })?;
        let saves = Saves(files.clone());
        Ok((Self { files, thread }, saves))
    }

    /// Writes what is queued and ends.
    pub(super) fn finish(self) {
        self.files.close();
        // A thread that panicked has ended the process.
        let _ = self.thread.join();
    }
}

/// Where files to write go.
#[derive(Clone, Debug)]
pub(super) struct Saves(async_channel::Sender<(SaveId, File)>);

impl Saves {
    /// Queues a file.
    pub(super) fn save(&self, save: SaveId, file: File) {
        // Closed only when the daemon ends.
        let _ = self.0.try_send((save, file));
    }
}
