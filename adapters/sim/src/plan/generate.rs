//! Plans from choices.

use super::{Act, Garbage, Head, Item, Move, Plan, Stray, scenes};
use crate::source::Source;
use std::str::FromStr;

/// How bad a world is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Nothing goes wrong.
    Calm,
    /// Networks, disks and clocks fail.
    Rough,
    /// The relay and a member lie as well.
    Hostile,
}

impl Profile {
    /// Every profile.
    pub const ALL: [Self; 3] = [Self::Calm, Self::Rough, Self::Hostile];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Rough => "rough",
            Self::Hostile => "hostile",
        }
    }
}

impl FromStr for Profile {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|profile| profile.as_str() == text);
        found.ok_or_else(|| "want calm, rough or hostile".to_owned())
    }
}

const TEAM: [&str; 5] = ["alice/laptop", "bob/desk", "carol/tower", "alice/phone", "bob/phone"];
/// Kinds of actions, of faults, and of lies.
const ACTIONS: usize = 18;
const FAULTS: usize = 15;
const LIES: usize = 6;

/// Which kinds exist in a plan: a swarm of plans without some of them finds what a uniform mix hides.
struct Swarm {
    actions: Vec<usize>,
    faults: Vec<usize>,
    lies: Vec<usize>,
    /// How many items in a hundred are faults, and lies.
    fault: usize,
    lie: usize,
}

impl Swarm {
    fn draw(source: &mut impl Source, profile: Profile) -> Self {
        let mut some = |of: usize, keep: usize| -> Vec<usize> {
            let kept: Vec<usize> = (0..of).filter(|_| source.percent(keep)).collect();
            if kept.is_empty() { vec![0] } else { kept }
        };
        let (actions, faults, lies) = (some(ACTIONS, 70), some(FAULTS, 50), some(LIES, 60));
        let (fault, lie) = match profile {
            Profile::Calm => (0, 0),
            Profile::Rough => (10 + source.below(30), 0),
            Profile::Hostile => (5 + source.below(20), 10 + source.below(20)),
        };
        Self { actions, faults, lies, fault, lie }
    }
}

/// Draws a plan of at most `items` items over about `span_ms` of virtual time.
pub fn generate(source: &mut impl Source, seed: u64, profile: Profile, items: usize, span_ms: u64) -> Plan {
    let count = 2 + source.below(4);
    let machines: Vec<String> = TEAM[..count].iter().map(|name| (*name).to_owned()).collect();
    let swarm = Swarm::draw(source, profile);
    let most = usize::try_from(span_ms / items.max(1) as u64 * 2).unwrap_or(usize::MAX);
    let mut at = 0;
    let mut items: Vec<Item> = (0..items)
        .map(|_| {
            // Bursts, where things cross, and long gaps between them.
            at += if source.percent(60) { source.below(30) } else { source.below(most) } as u64;
            let dice = source.below(100);
            let act = if dice < swarm.fault {
                fault(source, &swarm, count)
            } else if dice < swarm.fault + swarm.lie {
                lie(source, &swarm, count)
            } else {
                action(source, &swarm, count)
            };
            Item { at, act }
        })
        .collect();
    // Drawn last, so that what a seed drew before there were scenes it draws still.
    scenes::add(source, profile, count, span_ms, &mut items);
    Plan { head: Head { seed, machines }, items }
}

fn action(source: &mut impl Source, swarm: &Swarm, count: usize) -> Act {
    let (node, to, pick) = (source.below(count), source.below(count), source.below(8));
    match source.one(&swarm.actions) {
        0 | 1 => Act::Send { from: node, to, task: false },
        2 => Act::Send { from: node, to, task: true },
        3 => Act::Reply { node, pick },
        4 => Act::Ack { node },
        5 => Act::Read { node, pick },
        6 | 7 => {
            let moves = [
                Move::Working,
                Move::Working,
                Move::InputRequired,
                Move::Completed,
                Move::Failed,
                Move::Rejected,
            ];
            Act::Update { node, pick, to: source.one(&moves) }
        }
        8 => Act::Cancel { node, pick },
        9 => Act::Delegate { from: node, to, pick },
        10 => Act::Grant { node, person: to, level: source.below(4) },
        11 => Act::Answer { node, pick, answer: source.below(4) },
        12 => Act::Say { node, to },
        13 => Act::SayIn { node, channel: source.below(2) },
        14 => Act::Channel { node, channel: source.below(2), step: source.below(4), person: to },
        15 => match source.below(8) {
            0 => Act::Remove { node },
            1..=3 => Act::Invite { node },
            _ => Act::Rekey { node },
        },
        16 => {
            let all = [
                Stray::NoSession,
                Stray::NoPerson,
                Stray::NoRecipients,
                Stray::BadParams,
                Stray::NotFound,
                Stray::Secret,
                Stray::TooLarge,
                Stray::Forbidden,
                Stray::NotRegistered,
                Stray::Directory,
                Stray::WrongRole,
                Stray::BadTicket,
                Stray::Ambiguous,
            ];
            Act::Stray { node, what: source.one(&all) }
        }
        _ => {
            if source.percent(50) {
                Act::Woke { node }
            } else {
                Act::Leave { node }
            }
        }
    }
}

fn fault(source: &mut impl Source, swarm: &Swarm, count: usize) -> Act {
    let node = source.below(count);
    match source.one(&swarm.faults) {
        0 | 1 => Act::Reach { node, up: source.percent(50) },
        2 => Act::Reset { node },
        3 => match source.below(2) {
            0 => Act::Dead { node },
            _ => Act::Silent { node, on: source.percent(60) },
        },
        4 => Act::Latency { node, ms: source.one(&[0, 5, 80, 600, 4_000]) },
        5 => Act::Slow { node, ms: source.one(&[0, 100, 5_000]) },
        6 => Act::Relay { up: source.percent(60) },
        7 => Act::RelayRestart {},
        8 => Act::RelayFail { at: 1 + source.below(6), committed: source.percent(50) },
        9 | 10 => {
            let (at, effects) = (1 + source.below(10), source.below(4));
            Act::Crash { node, at, committed: source.percent(60), effects }
        }
        11 => Act::Restart { node },
        12 => Act::FailSaves { node, count: 1 + source.below(3) },
        13 => Act::Skew {
            node: source.below(count + 1),
            ms: source.one(&[0, 60_000, -60_000, 140_000, -140_000, 299_000, -299_000]),
        },
        _ => match source.below(3) {
            0 => Act::CutAppend {},
            _ => Act::Sleep { ms: source.one(&[1_000, 60_000, 3_600_000]) },
        },
    }
}

fn lie(source: &mut impl Source, swarm: &Swarm, count: usize) -> Act {
    let node = source.below(count);
    match source.one(&swarm.lies) {
        0 => Act::Drop { node, frames: 1 + source.below(4) },
        1 => Act::Swap { node },
        2 => Act::Replay { node, back: source.below(40) },
        3 => Act::Stale { node, back: source.below(3) },
        _ => {
            let quiet = Garbage::QUIET;
            let what = quiet.get(source.below(quiet.len() + 1)).copied().unwrap_or(Garbage::Flood);
            Act::Garbage { node, what }
        }
    }
}
