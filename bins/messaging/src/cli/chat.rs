//! `chat <person|#channel>`: a conversation line by line, with what others write as it comes.

use super::args::ChatWith;
use super::chats::room;
use super::failure::Failure;
use super::output::{self, BAD, FAINT, GOOD, STRONG, WAITING};
use super::shell::Shell;
use super::value::{Read, number, object, string};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// How soon a line of somebody else shows.
const POLL: Duration = Duration::from_millis(120);
/// Lines that come closer together than this were not typed: they are one pasted text.
const BURST: Duration = Duration::from_millis(100);
/// Lines looked at again when the state of one changed.
const RECENT: u64 = 50;

const HELP: &str = "What you type is sent as a line. Besides:\n\
    \x20 /help              this\n\
    \x20 /history <n>       the last n lines again\n\
    \x20 /reply <id> <text> answer in the thread of a line\n\
    \x20 /ids               the ids of the last lines\n\
    \x20 /quit              leave (as do Ctrl-D and Ctrl-C)\n\
    \x20 //text             send a line that begins with a slash\n\
    Marks: · sent, not confirmed   ✓ on a machine of theirs   ? held for their person   ✗ refused\n";

struct Chat<'a> {
    shell: &'a mut Shell,
    room: String,
    shown: u64,
    /// Own lines that are not settled, with the state last shown.
    pending: BTreeMap<String, (String, String)>,
    terminal: bool,
    /// Something was printed since the prompt.
    said: bool,
}

pub(super) fn run(shell: &mut Shell, args: &ChatWith) -> Result<(), Failure> {
    shell.autostart()?;
    let room = room(shell, &args.to)?;
    shell.call("conv.subscribe", object([]))?;
    let terminal = std::io::stdin().is_terminal() && !shell.out.is_json();
    let mut chat = Chat { shell, room, shown: 0, pending: BTreeMap::new(), terminal, said: true };
    chat.open(args)?;
    let _leave = Leave;
    let typed = read_input();
    chat.prompt();
    loop {
        match chat.turn(&typed) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(failure) if chat.terminal && failure.is_lost() => {
                if !chat.wait_for_daemon(&failure, &typed)? {
                    return Ok(());
                }
            }
            Err(failure) => {
                // On a row of its own, not after what is being typed.
                if chat.terminal {
                    output::page("\r\u{1b}[K");
                }
                return Err(failure);
            }
        }
    }
}

/// However a chat ends, what is still typed is not for the shell.
struct Leave;

impl Drop for Leave {
    fn drop(&mut self) {
        output::forget_typed();
    }
}

/// The lines that came together with `first`, as one text, and how many they were; nothing when it came alone. Pasted text
/// is text: none of it is a command.
fn burst(first: &str, typed: &mpsc::Receiver<Typed>) -> Option<(String, usize)> {
    let mut lines = vec![first.to_owned()];
    while let Ok(Ok(line)) = typed.recv_timeout(BURST) {
        lines.push(line);
    }
    let rows = lines.len();
    (rows > 1).then(|| (lines.join(" "), rows))
}

/// What was typed: a line, or that it was no text.
type Typed = Result<String, NotText>;

/// Bytes that are not UTF-8.
struct NotText;

/// Lines from standard input, read aside since reading blocks. The channel ends with the input.
fn read_input() -> mpsc::Receiver<Typed> {
    let (sender, receiver) = mpsc::channel();
    let _ = std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        for line in std::io::stdin().lines() {
            let line = match line {
                Err(error) if error.kind() != std::io::ErrorKind::InvalidData => return,
                line => line.map_err(|_| NotText),
            };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Chat<'_> {
    /// Shows what happened and acts on a line that was typed; whether to go on.
    fn turn(&mut self, typed: &mpsc::Receiver<Typed>) -> Result<bool, Failure> {
        self.events()?;
        let on = match typed.recv_timeout(POLL) {
            Ok(Ok(line)) => match self.terminal.then(|| burst(&line, typed)).flatten() {
                Some((pasted, rows)) => {
                    self.send(None, &pasted, rows)?;
                    true
                }
                None => self.typed(&line)?,
            },
            Ok(Err(NotText)) if self.terminal => {
                output::complain(&format!("{BAD}That was not UTF-8 text: not sent.{BAD:#}"));
                true
            }
            Ok(Err(NotText)) => {
                return Err(Failure::usage("a line of standard input is not UTF-8 text")
                    .with_remedy("turn it into UTF-8: it and what follows it were not sent."));
            }
            Err(RecvTimeoutError::Timeout) => return Ok(true),
            Err(RecvTimeoutError::Disconnected) => {
                self.last_look()?;
                return Ok(false);
            }
        };
        self.said = true;
        if on {
            self.prompt();
        }
        Ok(on)
    }

    /// Until the daemon is back nothing is sent; whether to go on.
    fn wait_for_daemon(&mut self, failure: &Failure, typed: &mpsc::Receiver<Typed>) -> Result<bool, Failure> {
        let words = format!(
            "{BAD}{}{BAD:#}: {}. Nothing is sent until it is back; /quit leaves.\nNext: {}",
            failure.code, failure.text, failure.remedy
        );
        self.say(&output::fitted(&words));
        self.prompt();
        loop {
            match typed.recv_timeout(Shell::AGAIN) {
                Ok(Ok(line)) if matches!(&*line, "/quit" | "/q") => return Ok(false),
                Ok(Ok(line)) if line.trim().is_empty() => self.said = true,
                Ok(_) => self.say(&format!("{BAD}Not sent: the daemon is not back yet.{BAD:#}")),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(false),
            }
            self.shell.reconnect();
            let back = self.shell.call("conv.subscribe", object([])).and_then(|_| {
                self.say(&format!("{GOOD}The daemon is back.{GOOD:#}"));
                self.fresh()?;
                self.states()
            });
            self.prompt();
            match back {
                Ok(()) => return Ok(true),
                Err(failure) if failure.is_lost() => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// The history, and where the unread lines begin.
    fn open(&mut self, args: &ChatWith) -> Result<(), Failure> {
        let list = self.shell.call("conv.list", object([("limit", number(200))]))?;
        let known = list.items("conversations").iter().find(|one| one.text("conversation") == self.room);
        let read = known.and_then(|one| one.int("readUpTo")).unwrap_or_default();
        let unread = known.and_then(|one| one.int("unread")).unwrap_or_default();
        let limit = args.history.max(unread).clamp(1, 100);
        let page = self.read(&[("limit", number(limit))])?;
        let lines = page.items("lines");
        if self.terminal {
            let more = if page.flag("more") { ", earlier lines are not shown" } else { "" };
            output::page(&format!(
                "{STRONG}{}{STRONG:#} {FAINT}{} unread{more}; /help for help{FAINT:#}\n",
                output::clean(&args.to),
                unread
            ));
        }
        let mut marked = unread == 0;
        for line in lines {
            if !marked && !line.flag("out") && line.int("seq").is_some_and(|seq| seq > read) {
                if self.terminal {
                    output::page(&format!("{WAITING}── unread ──{WAITING:#}\n"));
                }
                marked = true;
            }
            self.show(line);
        }
        self.note_link()?;
        self.mark_read()
    }

    /// Says when what others write cannot arrive.
    fn note_link(&mut self) -> Result<(), Failure> {
        let health = self.shell.call("daemon.health", object([]))?;
        if health.text("relay") != "connected" {
            output::complain(&format!(
                "{WAITING}The relay is {}: newer lines may wait there, and yours wait here.{WAITING:#}",
                health.text("relay")
            ));
        }
        Ok(())
    }

    fn read(&mut self, more: &[(&'static str, Value)]) -> Result<Value, Failure> {
        let mut members = vec![("conversation", string(&self.room))];
        members.extend(more.iter().cloned());
        self.shell.call("conv.read", object(members))
    }

    fn prompt(&mut self) {
        if self.terminal && self.said {
            output::page("> ");
        }
        self.said = false;
    }

    /// Prints above the prompt.
    fn say(&mut self, text: &str) {
        self.said = true;
        if self.terminal {
            output::page(&format!("\r\u{1b}[K{text}\n"));
        } else {
            output::page(&format!("{text}\n"));
        }
    }

    fn show(&mut self, line: &Value) {
        self.shown = self.shown.max(line.int("seq").unwrap_or_default());
        if let Some(state @ ("sent" | "held")) = line.maybe("state") {
            self.pending.insert(line.text("id").to_owned(), (state.to_owned(), excerpt(line)));
        }
        if self.shell.out.is_json() {
            self.shell.out.document(line);
            return;
        }
        self.say(&describe(line));
    }

    /// Everything that happened since the last look.
    fn events(&mut self) -> Result<(), Failure> {
        let (mut lines, mut states) = (false, false);
        while let Some(event) = self.shell.event(Some(Duration::ZERO))? {
            match event.text("type") {
                "conv" if event.text("conversation") == self.room => match event.text("change") {
                    "line" => lines = true,
                    "deleted" => return Err(Failure::new("not_found", "the channel is gone")),
                    _ => states = true,
                },
                "relay" if self.terminal => {
                    self.say(&format!("{FAINT}the relay is {}{FAINT:#}", event.text("state")));
                    self.prompt();
                }
                _ => {}
            }
        }
        if lines {
            self.fresh()?;
        }
        if lines || states {
            self.states()?;
            self.prompt();
        }
        Ok(())
    }

    /// Lines that came since.
    fn fresh(&mut self) -> Result<(), Failure> {
        loop {
            let page = self.read(&[("after", number(self.shown)), ("limit", number(100))])?;
            let before = self.shown;
            for line in page.items("lines") {
                self.show(line);
            }
            if !page.flag("more") || self.shown == before {
                break;
            }
        }
        self.mark_read()
    }

    /// Own lines whose state moved.
    fn states(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let page = self.read(&[("limit", number(RECENT))])?;
        for line in page.items("lines") {
            let Some((shown, text)) = self.pending.get(line.text("id")).cloned() else { continue };
            let state = line.text("state").to_owned();
            if state == shown {
                continue;
            }
            if self.shell.out.is_json() {
                self.shell.out.document(line);
            } else {
                self.say(&format!("  {} {FAINT}{text}{FAINT:#}", mark(line)));
            }
            if matches!(state.as_str(), "sent" | "held") {
                self.pending.insert(line.text("id").to_owned(), (state, text));
            } else {
                self.pending.remove(line.text("id"));
            }
        }
        Ok(())
    }

    fn mark_read(&mut self) -> Result<(), Failure> {
        // A program that reads along is not the person having read.
        if !self.terminal || self.shown == 0 {
            return Ok(());
        }
        let params = object([("conversation", string(&self.room)), ("upTo", number(self.shown))]);
        self.shell.call("conv.markRead", params).map(drop)
    }

    /// Acts on what was typed; whether to go on.
    fn typed(&mut self, line: &str) -> Result<bool, Failure> {
        let (thread, text) = match line.strip_prefix('/') {
            None => (None, line),
            Some(rest) if rest.starts_with('/') => (None, rest),
            Some("quit" | "q") => return Ok(false),
            Some("ids") => {
                let page = self.read(&[("limit", number(20))])?;
                for line in page.items("lines") {
                    self.say(&output::said(&format!("{}  ", line.text("id")), &excerpt(line)));
                }
                return Ok(true);
            }
            Some(rest) => {
                let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
                match (word, after.split_once(' ')) {
                    ("reply", Some((id, text))) => (Some(id), text),
                    ("history", _) => {
                        let count = after.parse::<u64>().unwrap_or(20).clamp(1, 100);
                        let page = self.read(&[("limit", number(count))])?;
                        page.items("lines").iter().for_each(|line| self.show(line));
                        return Ok(true);
                    }
                    _ => {
                        output::page(HELP);
                        return Ok(true);
                    }
                }
            }
        };
        self.send(thread, text, 1)?;
        Ok(true)
    }

    /// Sends a line that took `rows` rows of the terminal to type.
    fn send(&mut self, thread: Option<&str>, text: &str, rows: usize) -> Result<(), Failure> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let mut members = vec![("conversation", string(&self.room)), ("text", string(text))];
        members.extend(thread.map(|thread| ("thread", string(thread))));
        match self.shell.call("person.send", object(members)) {
            Ok(_) => {
                if self.terminal {
                    // The line as sent, with its mark, takes the place of what was typed.
                    output::page(&"\u{1b}[A\r\u{1b}[K".repeat(rows));
                }
                self.fresh()?;
            }
            // A line that was refused does not end the chat.
            Err(failure) if self.terminal => {
                let words =
                    format!("{BAD}{}{BAD:#}: {}\nNext: {}", failure.code, failure.text, failure.remedy);
                output::complain(&output::fitted(&words));
            }
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    /// The input ended: what was just sent may still come to be confirmed.
    fn last_look(&mut self) -> Result<(), Failure> {
        if !self.terminal {
            self.events()?;
        }
        Ok(())
    }
}

fn excerpt(line: &Value) -> String {
    super::table::cut(&output::clean(line.text("text")), 50)
}

fn mark(line: &Value) -> String {
    match line.maybe("state") {
        Some("sent") => format!("{WAITING}·{WAITING:#}"),
        Some("delivered") => format!("{GOOD}✓{GOOD:#}"),
        Some("held") => format!("{WAITING}?{WAITING:#}"),
        Some("refused") => format!("{BAD}✗{BAD:#}"),
        _ => " ".to_owned(),
    }
}

fn describe(line: &Value) -> String {
    let who = match line.maybe("agent") {
        Some(agent) => format!("{}/{agent}", line.text("person")),
        None => line.text("person").to_owned(),
    };
    let at = line.int("at").map(output::when).unwrap_or_default();
    let time = at.get(11..16).unwrap_or_default();
    let lead = format!("{FAINT}{time}{FAINT:#} {} {STRONG}{}{STRONG:#}  ", mark(line), output::clean(&who));
    output::said(&lead, line.text("text"))
}
