//! Short stories of several acts that single draws hardly ever tell: a request that is declined, agents that do not stop,
//! a ticket that is used twice, a relay that forks.

use super::{Act, Forged, Garbage, Item, Move, Profile, Withheld};
use crate::source::Source;

/// A story being written: its acts, each some time after the one before.
struct Scene {
    at: u64,
    items: Vec<Item>,
}

impl Scene {
    fn then(&mut self, after: u64, act: Act) {
        self.at += after;
        self.items.push(Item { at: self.at, act });
    }
}

/// Adds up to two stories to a plan, at any time of it.
pub(super) fn add(
    source: &mut impl Source,
    profile: Profile,
    count: usize,
    span_ms: u64,
    items: &mut Vec<Item>,
) {
    let span = usize::try_from(span_ms).unwrap_or(usize::MAX);
    for _ in 0..source.below(3) {
        let mut scene = Scene { at: source.below(span) as u64, items: Vec::new() };
        let hostile = profile == Profile::Hostile && source.percent(60);
        let rough = profile == Profile::Rough && source.percent(30);
        if hostile {
            lies(source, count, &mut scene);
        } else if rough {
            full(source, count, &mut scene);
        } else {
            peaceful(source, count, &mut scene);
        }
        items.append(&mut scene.items);
    }
    items.sort_by_key(|item| item.at);
}

/// Two machines.
fn two(source: &mut impl Source, count: usize) -> (usize, usize) {
    let from = source.below(count);
    (from, (from + 1 + source.below(count - 1)) % count)
}

fn peaceful(source: &mut impl Source, count: usize, scene: &mut Scene) {
    let (from, to) = two(source, count);
    // Whose agent it is must be known before anybody can write to it.
    scene.then(0, Act::Ack { node: to });
    scene.then(3_000, Act::Ack { node: from });
    match source.below(8) {
        0 | 1 => {
            // Held, and answered in every way.
            scene.then(100, Act::Grant { node: to, person: from, level: 1 });
            for _ in 0..2 {
                scene.then(500, Act::Send { from, to, task: source.percent(30) });
                scene.then(2_000, Act::Answer { node: to, pick: 0, answer: source.one(&[2, 2, 0, 1, 3]) });
            }
            scene.then(1_000, Act::Grant { node: to, person: from, level: 0 });
        }
        2 => {
            // More than the loop guard lets through; or more than a receiver takes in a minute, which it puts off.
            let (quick, slow) = source.one(&[(44, 0), (60, 14)]);
            for _ in 0..quick {
                scene.then(30, Act::Send { from, to, task: false });
            }
            for _ in 0..slow {
                scene.then(400, Act::Send { from, to, task: false });
            }
        }
        3 | 4 => {
            for _ in 0..3 {
                scene.then(3_000, Act::Send { from, to, task: true });
                for _ in 0..source.below(4) {
                    let moves = [Move::Working, Move::InputRequired, Move::AuthRequired];
                    scene.then(1_500, Act::Update { node: to, pick: 0, to: source.one(&moves) });
                }
                let end = source.one(&[Move::Completed, Move::Failed, Move::Rejected]);
                if source.percent(35) {
                    scene.then(1_500, Act::Cancel { node: from, pick: 0 });
                } else {
                    scene.then(1_500, Act::Update { node: to, pick: 0, to: end });
                }
            }
        }
        5 => {
            // A ticket that is used, used again, and one that was taken back.
            scene.then(0, Act::Invite { node: 0 });
            scene.then(3_000, Act::Guest { pick: 0 });
            if source.percent(50) {
                scene.then(8_000, Act::Guest { pick: 0 });
            } else {
                scene.then(2_000, Act::Invite { node: 0 });
                scene.then(2_000, Act::Revoke { pick: 0 });
                scene.then(3_000, Act::Guest { pick: 0 });
            }
        }
        6 => {
            // Sealed before its sender can know of the new key, and there after it.
            for node in [from, to] {
                scene.then(0, Act::Latency { node, ms: 600 });
            }
            scene.then(0, Act::Rekey { node: to });
            for _ in 0..3 {
                scene.then(300, Act::Send { from, to, task: false });
            }
            for node in [from, to] {
                scene.then(10_000, Act::Latency { node, ms: 0 });
            }
        }
        _ => {
            // Two write to the roster at once.
            for node in [from, to] {
                scene.then(0, Act::Latency { node, ms: 600 });
            }
            scene.then(0, Act::Rekey { node: from });
            scene.then(0, Act::Rekey { node: to });
            for node in [from, to] {
                scene.then(10_000, Act::Latency { node, ms: 0 });
            }
            scene.then(0, Act::Role { node: to, admin: true });
            scene.then(5_000, Act::Role { node: to, admin: false });
        }
    }
}

fn full(source: &mut impl Source, count: usize, scene: &mut Scene) {
    let (from, to) = two(source, count);
    scene.then(0, Act::Ack { node: to });
    match source.below(3) {
        0 => {
            scene.then(0, Act::FailSaves { node: from, count: 2 });
            scene.then(100, Act::Rekey { node: from });
        }
        1 => scene.then(0, Act::Full { node: count, writes: 1 + source.below(40) }),
        _ => scene.then(0, Act::Full { node: from, writes: 1 + source.below(6) }),
    }
    for _ in 0..4 {
        scene.then(700, Act::Send { from, to, task: false });
    }
}

fn lies(source: &mut impl Source, count: usize, scene: &mut Scene) {
    let (from, to) = two(source, count);
    let liar = source.below(count);
    scene.then(0, Act::Ack { node: to });
    match source.below(4) {
        0 => {
            scene.then(0, Act::Fork { node: to });
            scene.then(1_000, Act::Invite { node: 0 });
            scene.then(5_000, Act::Send { from, to, task: false });
            scene.then(1_000, Act::Send { from: to, to: from, task: false });
        }
        1 => {
            let what = source.one(&[Withheld::Roster, Withheld::Acks]);
            scene.then(0, Act::Withhold { node: to, what });
            scene.then(1_000, Act::Invite { node: 0 });
            scene.then(1_000, Act::Send { from: to, to: from, task: false });
            scene.then(60_000, Act::Withhold { node: to, what: Withheld::Nothing });
        }
        _ => {
            scene.then(3_000, Act::Send { from, to, task: true });
            scene.then(1_000, Act::Send { from, to, task: false });
            scene.then(500, Act::Garbage { node: from, what: Garbage::Seal });
            for _ in 0..4 {
                let what = source.one(&Forged::ALL);
                scene.then(500, Act::Forge { node: liar, what, pick: source.below(8) });
            }
        }
    }
}
