//! What the demonstration prints: one line as each thing happens.

use super::processes::World;
use super::story::Told;
use crate::cli::{BAD, FAINT, GOOD, Output, STRONG, WAITING, hang, number, object, page, string};
use std::path::Path;
use std::time::Instant;

/// Lines with the time since the start.
pub(super) struct Timeline {
    start: Instant,
    out: Output,
}

impl Timeline {
    pub(super) fn start(out: Output) -> Self {
        Self { start: Instant::now(), out }
    }

    /// Milliseconds since the start.
    pub(super) fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Something that happened outside any message.
    pub(super) fn note(&self, text: &str) {
        self.line("", text, "", 0);
    }

    /// Something `who` did.
    pub(super) fn act(&self, who: &str, text: &str) {
        self.line(who, text, "", 0);
    }

    /// A stage that something reached, `after_ms` after it was sent.
    pub(super) fn stage(&self, who: &str, what: &str, stage: &str, after_ms: u64) {
        self.line(who, what, stage, after_ms);
    }

    fn line(&self, who: &str, text: &str, stage: &str, after_ms: u64) {
        let at = self.now_ms();
        if self.out.is_json() {
            let mut members = vec![("at", number(at)), ("who", string(who)), ("what", string(text))];
            if !stage.is_empty() {
                members.extend([("stage", string(stage)), ("afterMs", number(after_ms))]);
            }
            self.out.document(&object(members));
            return;
        }
        let style = match stage {
            "accepted" | "relayed" | "held" => WAITING,
            "rejected" | "expired" => BAD,
            _ => GOOD,
        };
        let stage = if stage.is_empty() {
            String::new()
        } else {
            format!(": {style}{stage}{style:#} {FAINT}after {after_ms} ms{FAINT:#}")
        };
        let lead = format!("{FAINT}{at:>6} ms{FAINT:#}  {STRONG}{who:<14}{STRONG:#} ");
        page(&format!("{}\n", hang(&lead, &format!("{text}{stage}"))));
    }

    /// The end.
    pub(super) fn summary(&self, told: Told) {
        let at = self.now_ms();
        if self.out.is_json() {
            self.out.document(&object([
                ("messages", number(told.messages)),
                ("tasks", number(told.tasks)),
                ("deliveredMs", number(told.delivered_ms)),
                ("totalMs", number(at)),
            ]));
            return;
        }
        let text = format!(
            "{GOOD}It works.{GOOD:#} {} messages and {} task crossed a real relay, end-to-end encrypted, in {:.1} s; \
             a message was stored on the other machine {} ms after it was sent.\n",
            told.messages,
            told.tasks,
            f64::from(u32::try_from(at).unwrap_or(u32::MAX)) / 1000.0,
            told.delivered_ms,
        );
        page(&format!("\n{}\n", hang("", text.trim_end())));
    }

    /// How to look around in what was left running.
    pub(super) fn keep(&self, world: &World, folder: &Path) {
        if self.out.is_json() {
            return;
        }
        let (alice, bob) = (world.alice.path().display(), world.bob.path().display());
        page(&format!(
            "\nIt is still running, in {folder}:\n\n  messaging --home {alice} status\n  messaging --home {alice} \
             contacts\n  messaging --home {alice} send bob/builder \"Hello again\"\n  messaging --home {bob} agents\n  \
             messaging --home {bob} inbox\n\nStop it:\n\n  messaging --home {alice} daemon stop\n  messaging --home {bob} \
             daemon stop\n  kill {relay}\n  rm -r {folder}\n",
            folder = folder.display(),
            relay = world.relay_pid(),
        ));
    }
}
