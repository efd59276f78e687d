//! Log lines: one JSON object each, `{at, level, event, …}` (contract ipc §6.2), to stderr and optionally a file.
//!
//! Names and fields are fixed words, codes, ids and numbers. Nothing a peer wrote is logged.

use crate::clock;
use serde_json::{Map, Value};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A log file is moved to `<name>.1` past this many bytes.
const ROTATE_BYTES: u64 = 16 * 1024 * 1024;

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something a person must act on.
    Error,
    /// Something unexpected that was handled.
    Warn,
    /// What happens in normal service.
    Info,
    /// Detail.
    Debug,
}

impl Level {
    /// The level with this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Error, Self::Warn, Self::Info, Self::Debug].into_iter().find(|level| level.as_str() == name)
    }

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// Where lines go. Clones share one destination.
#[derive(Clone, Debug)]
pub struct Log(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    level: Level,
    sinks: Mutex<Sinks>,
}

#[derive(Debug, Default)]
struct Sinks {
    stderr: bool,
    file: Option<LogFile>,
    kept: Option<Vec<Value>>,
}

#[derive(Debug)]
struct LogFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Log {
    /// Lines up to `level` go to stderr.
    #[must_use]
    pub fn stderr(level: Level) -> Self {
        Self::with(level, Sinks { stderr: true, ..Sinks::default() })
    }

    /// Lines up to `level` go to stderr and to the file at `path` (0600, appended to, rotated once at 16 MiB).
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn stderr_and_file(level: Level, path: &Path) -> std::io::Result<Self> {
        let file = LogFile::open(path)?;
        Ok(Self::with(level, Sinks { stderr: true, file: Some(file), kept: None }))
    }

    /// Every line is kept in memory: for tests.
    #[must_use]
    pub fn kept() -> Self {
        Self::with(Level::Debug, Sinks { kept: Some(Vec::new()), ..Sinks::default() })
    }

    fn with(level: Level, sinks: Sinks) -> Self {
        Self(Arc::new(Inner { level, sinks: Mutex::new(sinks) }))
    }

    /// Writes a line.
    pub fn event(&self, level: Level, event: &str, fields: &[(&str, Value)]) {
        if level > self.0.level {
            return;
        }
        let mut line = Map::new();
        line.insert("at".to_owned(), Value::from(clock::wall().0));
        line.insert("level".to_owned(), Value::from(level.as_str()));
        line.insert("event".to_owned(), Value::from(event));
        line.extend(fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let line = Value::Object(line);
        let mut sinks = self.0.sinks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = &mut sinks.kept {
            kept.push(line);
            return;
        }
        let text = format!("{line}\n");
        if sinks.stderr {
            // Nobody to tell when even stderr is gone.
            let _ = std::io::stderr().lock().write_all(text.as_bytes());
        }
        if let Some(file) = &mut sinks.file {
            file.write(&text);
        }
    }

    /// Something a person must act on.
    pub fn error(&self, event: &str, fields: &[(&str, Value)]) {
        self.event(Level::Error, event, fields);
    }

    /// Something unexpected that was handled.
    pub fn warn(&self, event: &str, fields: &[(&str, Value)]) {
        self.event(Level::Warn, event, fields);
    }

    /// What happens in normal service.
    pub fn info(&self, event: &str, fields: &[(&str, Value)]) {
        self.event(Level::Info, event, fields);
    }

    /// The lines of [`Log::kept`] so far.
    #[must_use]
    pub fn lines(&self) -> Vec<Value> {
        self.0.sinks.lock().unwrap_or_else(PoisonError::into_inner).kept.clone().unwrap_or_default()
    }

    /// The event names of [`Log::kept`] so far.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.lines().iter().filter_map(|line| line["event"].as_str().map(str::to_owned)).collect()
    }
}

impl LogFile {
    fn open(path: &Path) -> std::io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file, bytes })
    }

    /// A full disk must not stop the daemon: a line that does not fit is lost here, and is on stderr.
    fn write(&mut self, text: &str) {
        if self.bytes > ROTATE_BYTES {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            if std::fs::rename(&self.path, old).is_ok()
                && let Ok(fresh) = Self::open(&self.path)
            {
                *self = fresh;
            }
        }
        if self.file.write_all(text.as_bytes()).is_ok() {
            self.bytes += text.len() as u64;
        }
    }
}

/// The start of a foreign word, fit for a terminal and a log: ASCII letters, digits and `.-_+`, at most 64.
#[must_use]
pub fn plain(text: &str) -> String {
    text.chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || ".-_+".contains(c) { c } else { '?' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn lines_are_json_with_a_level() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let log =
            Log::with(Level::Info, Sinks { file: Some(LogFile::open(&path).unwrap()), ..Sinks::default() });
        log.info("a.b", &[("n", Value::from(1)), ("word", Value::from("x\ny"))]);
        log.event(Level::Debug, "quiet", &[]);
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 1);
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((line["level"].as_str(), line["event"].as_str()), (Some("info"), Some("a.b")));
        assert_eq!(line["word"], "x\ny");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_log_file_rotates() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.log");
        let mut file = LogFile::open(&path).unwrap();
        file.bytes = ROTATE_BYTES + 1;
        file.write("one\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
        assert!(dir.path().join("x.log.1").exists());
    }

    #[test]
    fn foreign_words_are_inert() {
        assert_eq!(plain("1.2.3\u{1b}[2J"), "1.2.3??2J");
    }
}
