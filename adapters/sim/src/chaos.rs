//! Random teams under random faults: nothing is lost that was accepted, and once the faults end everybody agrees.

use crate::json::{at, text};
use crate::node::Crash;
use crate::world::World;
use messaging_proto::hash::{Hash, sha256};
use messaging_proto::identity::IdentityFile;
use messaging_proto::json::{FromValue, Value};
use std::panic::{AssertUnwindSafe, catch_unwind};
use zeroize::Zeroizing;

/// How many steps a run of [`team`] takes unless told otherwise.
pub const STEPS: usize = 60;

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed everything came from.
    pub seed: u64,
    /// How many faults and actions were drawn.
    pub steps: usize,
    /// How many entries the roster has at the end.
    pub entries: u64,
    /// How many members the roster has at the end.
    pub members: usize,
    /// SHA-256 over every effect that was released, in order.
    pub effects: Hash,
}

/// Something that must hold did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {what}")]
pub struct Failure {
    /// The seed that shows it.
    pub seed: u64,
    /// What did not hold, and on which machine.
    pub what: String,
}

/// A stream of numbers from a seed.
pub struct Dice {
    seed: u64,
    rolls: u64,
}

impl Dice {
    /// The stream of a seed, from a position on.
    #[must_use]
    pub const fn new(seed: u64, rolls: u64) -> Self {
        Self { seed, rolls }
    }

    /// The next number, from 0 up to and without `below` (0 when that is 0).
    pub fn roll(&mut self, below: usize) -> usize {
        self.rolls += 1;
        let hash = sha256(format!("dice {} {}", self.seed, self.rolls).as_bytes()).0;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash[..8]);
        usize::try_from(u64::from_be_bytes(bytes) % below.max(1) as u64).unwrap_or(0)
    }
}

/// Asks without waiting: its connection may die with the daemon.
pub fn ask(world: &mut World, number: usize, method: &str, params: &str) {
    if world.nodes[number].crashed {
        world.settle();
    }
    let conn = world.nodes[number].admin;
    world.ask(number, conn, method, params);
}

/// Does one random harm: restarts, cut or refused connections, crashes, a lost answer, failing file writes.
pub fn fault(world: &mut World, dice: &mut Dice) {
    let number = dice.roll(world.nodes.len());
    match dice.roll(9) {
        0 => world.restart_relay(),
        1 => {
            let up = !world.relay.up;
            world.reach(up);
        }
        2 | 3 => {
            let reaches = !world.nodes[number].reaches;
            world.reach_from(number, reaches);
        }
        4 | 5 => {
            let crash = Crash { at: 1 + dice.roll(12), committed: dice.roll(2) == 1, effects: dice.roll(4) };
            world.crash(number, crash);
        }
        6 => world.relay.cut_after_append = 1,
        7 => world.nodes[number].fail_saves.extend([dice.roll(2) == 1, dice.roll(2) == 1]),
        _ => world.start(number),
    }
}

/// Does one random thing that people do, on one of the first `joined` machines, or lets up to 20 seconds pass.
pub fn action(world: &mut World, dice: &mut Dice, joined: usize) {
    let number = dice.roll(joined);
    match dice.roll(6) {
        0 => ask(world, number, "identity.rotateEnc", "{}"),
        1 | 2 => ask(world, 0, "team.invite", r#"{"person":"guest"}"#),
        3 => ask(world, number, "daemon.woke", "{}"),
        _ => world.pass(dice.roll(20_000) as u64),
    }
}

/// Ends every fault and lets everything settle.
pub fn heal(world: &mut World) {
    for number in 0..world.nodes.len() {
        world.nodes[number].crash = None;
        world.nodes[number].fail_saves.clear();
        world.nodes[number].reaches = true;
    }
    world.relay.cut_after_append = 0;
    world.reach(true);
    world.pass(200_000);
}

/// Whether everybody agrees: all connected, one chain, no alarm and no divergence, each machine's key in the
/// roster is the one in its file, and nothing is unsettled.
///
/// # Errors
/// The first thing that does not hold, with the machine's number.
pub fn agree(world: &mut World, seed: u64) -> Result<(), Failure> {
    let all: Vec<usize> = (0..world.nodes.len()).collect();
    agree_of(world, &all).map_err(|what| Failure { seed, what })
}

/// The same of some machines; machine 0 must be among the members.
///
/// # Errors
/// The first thing that does not hold, with the machine's number.
pub fn agree_of(world: &mut World, numbers: &[usize]) -> Result<(), String> {
    let call = |world: &mut World, number: usize, method: &str| {
        world.call(number, method, "{}").map_err(|error| format!("machine {number}: {method}: {error:?}"))
    };
    let head = at(&call(world, 0, "team.info")?, "head").clone();
    for &number in numbers {
        let need = |holds: bool, what: &str| {
            if holds { Ok(()) } else { Err(format!("machine {number}: {what}")) }
        };
        let health = call(world, number, "daemon.health")?;
        need(text(&health, "relay") == "connected", "it is not connected")?;
        let mine = call(world, number, "team.info")?;
        need(at(&mine, "head") == &head, "its chain is another one than machine 0's")?;
        let status = call(world, number, "daemon.status")?;
        need(at(&status, "alarm") == &Value::Null, "it raises an alarm")?;
        need(status.get("divergence").is_none(), "it reports a divergence")?;
        let file = world.nodes[number].identity.clone();
        let identity = file.and_then(|file| IdentityFile::new(Zeroizing::new(file)).read().ok());
        let own = |member: &&Value| at(member, "self") == &Value::Bool(true);
        let enc = at(&mine, "members").as_array().and_then(|members| members.iter().find(own));
        let enc = enc.map(|me| text(me, "enc"));
        let kept = identity.as_ref().map(|identity| identity.enc().to_string());
        need(enc.is_some() && enc == kept.as_deref(), "the roster has another key of it than its file")?;
        need(identity.is_some_and(|identity| identity.pending().is_none()), "its key change is unsettled")?;
        need(world.nodes[number].pairing.is_none(), "its pairing is unsettled")?;
    }
    Ok(())
}

/// A team of three: faults and actions in random order, then peace, and everybody agrees.
///
/// # Errors
/// What did not hold, also when a machine or the world panicked.
pub fn team(seed: u64, steps: usize) -> Result<Report, Failure> {
    guarded(seed, || {
        let mut dice = Dice::new(seed, 0);
        let mut world = World::team(seed, &["alice/laptop", "bob/desk", "carol/phone"]);
        for _ in 0..steps {
            if dice.roll(5) == 0 {
                fault(&mut world, &mut dice);
            } else {
                action(&mut world, &mut dice, 3);
            }
            world.settle();
        }
        heal(&mut world);
        agree(&mut world, seed)?;
        report(&mut world, seed, steps)
    })
}

/// A join under faults: it ends in the team, or can be done again with the same ticket.
///
/// # Errors
/// What did not hold, also when a machine or the world panicked.
pub fn join(seed: u64) -> Result<Report, Failure> {
    const FAULTS: usize = 12;
    guarded(seed, || {
        let mut dice = Dice::new(seed, 1_000);
        let mut world = World::team(seed, &["alice/laptop"]);
        let ticket = world.ticket(0, "bob");
        let bob = world.add();
        let params = format!(r#"{{"ticket":"{ticket}","label":"desk"}}"#);
        ask(&mut world, bob, "team.join", &params);
        for _ in 0..FAULTS {
            fault(&mut world, &mut dice);
            world.pass(dice.roll(3_000) as u64);
            if dice.roll(4) == 0 {
                ask(&mut world, bob, "team.join", &params);
            }
        }
        heal(&mut world);
        if world.call(bob, "team.info", "{}").is_err() {
            world.ok(bob, "team.join", &params);
            world.pass(60_000);
        }
        agree(&mut world, seed)?;
        report(&mut world, seed, FAULTS)
    })
}

/// Runs [`team`] twice: the second run must release the same effects in the same order.
///
/// # Errors
/// What did not hold in a run, or that the two runs differ.
pub fn team_twice(seed: u64, steps: usize) -> Result<Report, Failure> {
    let first = team(seed, steps)?;
    let second = team(seed, steps)?;
    if first == second {
        return Ok(first);
    }
    let what = format!("two runs differ: effects {} and {}", first.effects, second.effects);
    Err(Failure { seed, what })
}

fn info(world: &mut World, number: usize, seed: u64) -> Result<Value, Failure> {
    let failed = |error| Failure { seed, what: format!("machine {number}: team.info: {error:?}") };
    world.call(number, "team.info", "{}").map_err(failed)
}

fn report(world: &mut World, seed: u64, steps: usize) -> Result<Report, Failure> {
    let info = info(world, 0, seed)?;
    // The first entry has number 0.
    let entries = u64::from_value(at(&info, "head.seq")).map(|seq| seq + 1);
    let entries = entries.map_err(|error| Failure { seed, what: format!("head.seq: {error}") })?;
    let members = at(&info, "members").as_array().map_or(0, <[Value]>::len);
    let effects = world.effects;
    Ok(Report { seed, steps, entries, members, effects })
}

/// A panic of a machine or of the world is a finding too, and must not hide the seed.
fn guarded(seed: u64, run: impl FnOnce() -> Result<Report, Failure>) -> Result<Report, Failure> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Err(Failure { seed, what: format!("panic: {text}") })
    })
}
