//! Everything `messaging` prints goes through here: peer text cleaned for a terminal, one JSON document with
//! `--json`, colour on a terminal only.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use super::failure::Failure;
use super::rows;
use super::value::{object, string};
use anstyle::{AnsiColor, Style};
use messaging_proto::text::terminal_safe;
use messaging_proto::time::Wall;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Where a verb's result goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    json: bool,
}

/// Bold, for what a person looks for first.
pub(crate) const STRONG: Style = Style::new().bold();
/// Green, for what went well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Yellow, for what waits.
pub(crate) const WAITING: Style = AnsiColor::Yellow.on_default();
/// Red, for what failed.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Dim, for detail.
pub(crate) const FAINT: Style = Style::new().dimmed();

impl Output {
    pub(crate) const fn new(json: bool) -> Self {
        Self { json }
    }

    pub(crate) const fn is_json(self) -> bool {
        self.json
    }

    /// The result of a verb: the document with `--json`, else the text. The text may hold peer text.
    pub(crate) fn result(self, document: &Value, text: impl FnOnce() -> String) {
        if self.json {
            self.document(document);
        } else {
            let text = text();
            if !text.is_empty() {
                page(&fitted(&line_end(&text)));
            }
        }
    }

    /// As [`Output::result`] for the text of a file: no line of it is broken.
    pub(crate) fn verbatim(self, document: &Value, text: &str) {
        if self.json {
            self.document(document);
        } else {
            page(&line_end(text));
        }
    }

    /// One JSON document and LF.
    pub(crate) fn document(self, document: &Value) {
        SAID.store(true, Ordering::Relaxed);
        let text = document.to_string();
        // Control and bidirectional characters stay escaped, so that a terminal that shows the JSON is safe too.
        page(&format!("{}\n", escape_hidden(&text)));
    }

    /// A remark about a result, such as that it is not all there is: beside the text on a terminal, and on stderr where
    /// stdout is read by a program.
    pub(crate) fn note(self, text: &str) {
        if self.json || columns().is_none() {
            complain(text);
        } else {
            page(&fitted(&line_end(text)));
        }
    }

    /// An error: on stderr as text, on stdout as a document with `--json`.
    pub(crate) fn fail(self, failure: &Failure) -> ExitCode {
        if failure.quiet {
            return failure.exit().into();
        }
        let message = format!("{}: {}", failure.code, failure.text);
        // One document is all that may stand there: what fails behind the result is told beside it.
        if self.json && (STREAM.load(Ordering::Relaxed) || !SAID.load(Ordering::Relaxed)) {
            let mut members = vec![
                ("code", string(&failure.code)),
                ("message", string(&message)),
                ("remedy", string(&format!("Next: {}", failure.remedy))),
            ];
            if let Some(reason) = &failure.reason {
                members.push(("reason", string(reason)));
            }
            self.document(&object([("error", object(members))]));
        } else {
            complain(&fitted(&format!("messaging: {}\nNext: {}", clean(&message), clean(&failure.remedy))));
        }
        failure.exit().into()
    }
}

/// Whether a JSON document was printed.
static SAID: AtomicBool = AtomicBool::new(false);
/// Whether this verb prints one after the other, each on its line.
static STREAM: AtomicBool = AtomicBool::new(false);

/// This verb prints a document for each thing that happens.
pub(crate) fn is_stream() {
    STREAM.store(true, Ordering::Relaxed);
}

/// Nobody reads on.
const GONE: u8 = 1;
/// What was printed is lost.
const LOST: u8 = 2;
/// How standard output failed, if it did.
static STDOUT: AtomicU8 = AtomicU8::new(0);

/// Settles colours for the process: a terminal of no kind (`TERM`) shows none, also on a build machine (`CI`), where the
/// library would take every terminal for one that does. A wish in so many words (`CLICOLOR_FORCE`) stands above that.
pub(crate) fn settle_colours() {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0");
    let dumb = std::env::var_os("TERM").is_none_or(|kind| kind.is_empty() || kind == "dumb");
    if dumb && !set("CLICOLOR_FORCE") {
        anstream::ColorChoice::Never.write_global();
    }
}

/// Prints to stdout; a closed pipe ends the output, not the program, which may have children to stop.
pub(crate) fn page(text: &str) {
    let mut stdout = anstream::stdout();
    // A prompt has no line end that would send it.
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        let gone = error.kind() == std::io::ErrorKind::BrokenPipe;
        STDOUT.store(if gone { GONE } else { LOST }, Ordering::Relaxed);
    }
}

/// An error once nobody reads what is printed: for verbs that go on until they are stopped.
pub(crate) fn read_on() -> Result<(), Failure> {
    match STDOUT.load(Ordering::Relaxed) {
        // What is not written to shows its end too.
        0 if hung_up() => Err(Failure::unread()),
        0 => Ok(()),
        GONE => Err(Failure::unread()),
        _ => Err(lost()),
    }
}

/// Whether standard output is a pipe that nobody reads.
fn hung_up() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(&stdout, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut fds, Some(&now)), Ok(1..)) && fds[0].revents().contains(PollFlags::ERR)
}

/// `status`, unless what was printed did not arrive.
pub(crate) fn ended(status: ExitCode) -> ExitCode {
    if STDOUT.load(Ordering::Relaxed) != LOST {
        return status;
    }
    let lost = lost();
    complain(&format!("messaging: {}: {}\nNext: {}", lost.code, lost.text, lost.remedy));
    lost.exit().into()
}

fn lost() -> Failure {
    Failure::new("internal", "standard output cannot be written")
        .with_remedy("make room where it goes, or send it elsewhere.")
}

/// A word as a shell takes it: an unquoted `#`, say, begins a comment there.
pub(crate) fn shell_word(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+@:,".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Somebody else's text after a `lead` of ours. Whatever it holds, no row of it begins as one of ours does.
pub(crate) fn said(lead: &str, text: &str) -> String {
    rows::said(lead, text, columns())
}

/// Somebody else's text, all of it behind the gutter.
pub(crate) fn quoted(text: &str) -> String {
    rows::quoted(text)
}

/// `text` of ours after `lead`; on a terminal its further lines stand below its first.
pub(crate) fn hang(lead: &str, text: &str) -> String {
    match columns() {
        Some(columns) => rows::hang(lead, text, columns),
        None => format!("{lead}{text}"),
    }
}

/// Prints a line to stderr.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}

/// Puts what the shell prints next on a line of its own, and leaves it nothing that was typed for this program.
pub(crate) fn restore() {
    if std::io::stdout().is_terminal() {
        page("\n");
    }
    forget_typed();
}

/// Drops what was typed into the terminal and nobody has read: it was meant for what was on the screen then, not for what
/// is asked now, nor for the shell.
pub(crate) fn forget_typed() {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        let _ = rustix::termios::tcflush(&stdin, rustix::termios::QueueSelector::IFlush);
    }
}

/// Whether a person can be asked: both ends are a terminal.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Peer text made inert for one line of a terminal.
pub(crate) fn clean(text: &str) -> String {
    terminal_safe(text).replace('\n', " ")
}

/// Peer text made inert for a terminal, line breaks kept.
pub(crate) fn clean_lines(text: &str) -> String {
    terminal_safe(text)
}

/// How wide the terminal on standard output is; nothing when it is a pipe or a file.
pub(crate) fn columns() -> Option<usize> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(&stdout).ok();
    Some(size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns >= 20).unwrap_or(80))
}

/// Rows as columns that fit the terminal, and as tab-separated values in a pipe.
pub(crate) fn table(header: &[&str], rows: &[Vec<String>]) -> String {
    match columns() {
        Some(columns) => super::table::layout(header, rows, columns),
        None => {
            let mut lines = vec![header.join("\t")];
            lines.extend(rows.iter().map(|row| row.join("\t")));
            lines.join("\n")
        }
    }
}

/// A point in time: how long ago on a terminal, the time itself in a pipe.
pub(crate) fn ago(at: Option<u64>) -> String {
    match (at, columns()) {
        (None, _) => String::new(),
        (Some(at), None) => when(at),
        // As wide as the widest, so that columns stand still.
        (Some(at), Some(_)) => format!("{:6}", span(now().saturating_sub(at))),
    }
}

/// A span of time in its largest unit.
pub(crate) fn span(ms: u64) -> String {
    match ms / 1000 {
        0 => "now".to_owned(),
        seconds @ 1..=59 => format!("{seconds} s"),
        seconds @ 60..=3599 => format!("{} min", seconds / 60),
        seconds @ 3600..=172_799 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// Now, in milliseconds since 1970.
pub(crate) fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// With the lines broken that the terminal would break: at its left edge, where only our own rows begin.
pub(crate) fn fitted(text: &str) -> String {
    columns().map_or_else(|| text.to_owned(), |columns| rows::wrap(text, columns))
}

/// As [`fitted`] for help, whose broken lines go on where they began.
pub(crate) fn fitted_help(text: &str) -> String {
    columns().map_or_else(|| text.to_owned(), |columns| rows::wrap_help(text, columns))
}

fn line_end(text: &str) -> String {
    if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") }
}

/// Replaces what JSON allows but a terminal acts on by `\u` escapes, inside a JSON text.
fn escape_hidden(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        let mut one = [0; 4];
        let plain: &str = character.encode_utf8(&mut one);
        if terminal_safe(plain) == plain {
            text.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    text
}

/// A time as ISO 8601 in UTC, to the second.
pub(crate) fn when(ms: u64) -> String {
    Wall(ms).iso_seconds()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_a_word_as_it_is() {
        for word in ["/usr/bin/messaging", "/home/al b/$x", "a'b", "", "`id`;\\", "日本", "#eng", "~", "a=b"]
        {
            let output = std::process::Command::new("sh")
                .args(["-c", &format!("printf %s {}", shell_word(word))])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
        assert_eq!(shell_word("/usr/bin/messaging"), "/usr/bin/messaging");
    }

    #[test]
    fn json_keeps_hidden_characters_escaped() {
        assert_eq!(escape_hidden("\"a\u{202e}b\u{9b}\""), "\"a\\u202eb\\u009b\"");
        assert_eq!(escape_hidden("\"é😀\""), "\"é😀\"");
    }
}
