//! Explicit plans: who does what when, and what goes wrong. The runner plays plans and nothing else, so that a plan in
//! the tree means the same after every change of the generator.
//!
//! A plan is text, one JSON value a line: first the [`Head`], then the [`Item`]s in order. Empty lines and lines that
//! start with `#` are skipped.
//!
//! ```text
//! {"seed":7,"machines":["alice/laptop","bob/desk"]}
//! {"at":1000,"send":{"from":0,"to":1,"task":false}}
//! {"at":1500,"reach":{"node":1,"up":false}}
//! ```
//!
//! Numbers of machines and picks count from 0 and are taken modulo what there is, so that every plan can be played.

mod generate;
mod scenes;

pub use generate::{Profile, generate};

use serde::{Deserialize, Serialize};

/// The team of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// The seed of every machine's entropy.
    pub seed: u64,
    /// The machines, `person/label` each. The first founds the team.
    pub machines: Vec<String>,
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// When, in virtual milliseconds since the team was complete. What is late happens at once.
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub act: Act,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Its team.
    pub head: Head,
    /// What happens, in order of time.
    pub items: Vec<Item>,
}

/// What is done to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// Its executor works.
    Working,
    /// Its executor asks for more.
    InputRequired,
    /// Its executor asks to be let in somewhere.
    AuthRequired,
    /// Its executor is done.
    Completed,
    /// Its executor failed.
    Failed,
    /// Its executor refuses.
    Rejected,
}

/// What a member's program that is not ours says to the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Garbage {
    /// No JSON.
    Noise,
    /// A frame type nobody knows.
    Unknown,
    /// A frame that breaks its shape.
    Shape,
    /// A roster entry that extends nothing.
    Entry,
    /// An ack of what was never delivered.
    Ack,
    /// A presence of many sessions that is no envelope.
    Presence,
    /// A second `hello`.
    Hello,
    /// An envelope of its own with one bit of the seal changed.
    Seal,
    /// An envelope it sent before, again.
    Again,
    /// A flood of pings.
    Flood,
}

impl Garbage {
    /// Every one but the flood, which takes long to play.
    pub const QUIET: [Self; 9] = [
        Self::Noise,
        Self::Unknown,
        Self::Shape,
        Self::Entry,
        Self::Ack,
        Self::Presence,
        Self::Hello,
        Self::Seal,
        Self::Again,
    ];
}

/// An envelope that a member's program that is not ours makes, with the member's own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forged {
    /// It names a roster head that nobody has.
    Ahead,
    /// It names another entry at a position that the roster has.
    Diverged,
    /// A receipt of an envelope that went to somebody else.
    Receipt,
    /// A reply to an envelope that went to somebody else.
    Reply,
    /// A completion of a task that somebody else executes.
    Status,
    /// A cancel of a task that somebody else asked for.
    Cancel,
    /// A presence of more sessions than fit.
    Presence,
}

impl Forged {
    /// Every one.
    pub const ALL: [Self; 7] =
        [Self::Ahead, Self::Diverged, Self::Receipt, Self::Reply, Self::Status, Self::Cancel, Self::Presence];
}

/// What a relay that withholds keeps from a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// Nothing any more.
    Nothing,
    /// Roster entries, by broadcast and by sync.
    Roster,
    /// That it took what the machine sent.
    Acks,
}

/// A call that its daemon must refuse, or answer in its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs, reason = "each is the code it is about")]
pub enum Stray {
    NoSession,
    NoPerson,
    NoRecipients,
    BadParams,
    NotFound,
    Secret,
    TooLarge,
    Forbidden,
    NotRegistered,
    Directory,
    WrongRole,
    BadTicket,
    Ambiguous,
}

/// Something that happens.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[allow(missing_docs, reason = "the words of each act are about its fields")]
pub enum Act {
    /// An agent writes to another machine's agent.
    Send { from: usize, to: usize, task: bool },
    /// An agent answers an item of its inbox.
    Reply { node: usize, pick: usize },
    /// An agent is shown its inbox.
    Ack { node: usize },
    /// An agent reads an item.
    Read { node: usize, pick: usize },
    /// An executor moves a task.
    Update { node: usize, pick: usize, to: Move },
    /// A requester cancels a task.
    Cancel { node: usize, pick: usize },
    /// An executor delegates a task on.
    Delegate { from: usize, to: usize, pick: usize },
    /// A person sets what another person's agents may.
    Grant { node: usize, person: usize, level: usize },
    /// A person answers a held request.
    Answer { node: usize, pick: usize, answer: usize },
    /// A person writes to a person.
    Say { node: usize, to: usize },
    /// A person writes to a channel.
    SayIn { node: usize, channel: usize },
    /// A person makes a channel, or asks another into it, or removes one, or leaves it.
    Channel { node: usize, channel: usize, step: usize, person: usize },
    /// The founder removes a machine.
    Remove { node: usize },
    /// The founder invites somebody.
    Invite { node: usize },
    /// A machine takes a new encryption key.
    Rekey { node: usize },
    /// An agent ends its session; the next thing it does begins one again.
    Leave { node: usize },
    /// A call that is refused.
    Stray { node: usize, what: Stray },
    /// The system woke.
    Woke { node: usize },
    /// A machine loses the relay, or finds it again.
    Reach { node: usize, up: bool },
    /// A machine's connection breaks; it may dial again.
    Reset { node: usize },
    /// A machine's connection looks open while nothing passes, or passes again.
    Silent { node: usize, on: bool },
    /// A machine's connection is forgotten between it and the relay; another one works.
    Dead { node: usize },
    /// What a machine's way to the relay takes.
    Latency { node: usize, ms: u64 },
    /// What a machine's socket takes to take more.
    Slow { node: usize, ms: u64 },
    /// The relay cannot be reached, or can again.
    Relay { up: bool },
    /// The relay's process is replaced.
    RelayRestart {},
    /// The relay's store fails at its n-th coming write, and the commit is there afterwards or not.
    RelayFail { at: usize, committed: bool },
    /// A daemon crashes at its n-th coming event.
    Crash { node: usize, at: usize, committed: bool, effects: usize },
    /// A daemon's process is replaced.
    Restart { node: usize },
    /// A daemon's next file writes fail.
    FailSaves { node: usize, count: usize },
    /// The next answer to an append is lost with its connection.
    CutAppend {},
    /// A daemon's clock is off; the relay's with a number past the machines.
    Skew { node: usize, ms: i64 },
    /// Everybody sleeps.
    Sleep { ms: u64 },
    /// The relay drops frames to a machine.
    Drop { node: usize, frames: usize },
    /// The relay swaps the next two frames to a machine.
    Swap { node: usize },
    /// The relay says again what it said.
    Replay { node: usize, back: usize },
    /// The relay says an old `welcome` again.
    Stale { node: usize, back: usize },
    /// A member's program is not ours.
    Garbage { node: usize, what: Garbage },
    /// The same, with envelopes it signs: `pick` says which envelope or task it lies about.
    Forge { node: usize, what: Forged, pick: usize },
    /// The relay forks: the next entry that another member appends is shown to this machine alone, and its author signs
    /// another one in its place for everybody else. Not for the founder.
    Fork { node: usize },
    /// The relay keeps something from a machine.
    Withhold { node: usize, what: Withheld },
    /// A disk is full for the next writes; the relay's with a number past the machines.
    Full { node: usize, writes: usize },
    /// The founder makes a machine an admin, or a member again.
    Role { node: usize, admin: bool },
    /// The founder takes an invite back.
    Revoke { pick: usize },
    /// A client of a daemon, on the agent's socket or the admin's, says a line.
    Line { node: usize, agent: bool, text: String },
    /// The relay says a message to a machine.
    Frame { node: usize, text: String },
    /// A machine outside the team tries to join with one of the tickets that were made.
    Guest { pick: usize },
}

impl Act {
    /// The act's name in a plan.
    #[must_use]
    pub fn name(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        text.split('"').nth(1).unwrap_or_default().to_owned()
    }
}

/// Why a text is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadPlan {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

impl Plan {
    /// Reads a plan.
    ///
    /// # Errors
    /// The first line that is not of its form.
    pub fn parse(text: &str) -> Result<Self, BadPlan> {
        let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
        let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let bad = |line, why: &dyn std::fmt::Display| BadPlan { line, why: why.to_string() };
        let (number, line) = lines.next().ok_or_else(|| bad(1, &"a plan begins with its head"))?;
        let head: Head = serde_json::from_str(line).map_err(|error| bad(number, &error))?;
        let named = head.machines.iter().all(|name| name.split_once('/').is_some());
        if head.machines.is_empty() || !named {
            return Err(bad(number, &"machines are person/label, one at least"));
        }
        let items =
            lines.map(|(number, line)| serde_json::from_str(line).map_err(|error| bad(number, &error)));
        Ok(Self { head, items: items.collect::<Result<_, _>>()? })
    }

    /// The plan's text.
    #[must_use]
    pub fn to_text(&self) -> String {
        let head = serde_json::to_string(&self.head).unwrap_or_default();
        let items = self.items.iter().map(|item| serde_json::to_string(item).unwrap_or_default());
        std::iter::once(head).chain(items).fold(String::new(), |text, line| text + &line + "\n")
    }
}
