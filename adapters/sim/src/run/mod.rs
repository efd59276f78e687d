//! Plays a plan and holds the world to every invariant: safety while it runs, then every fault ends and everybody must
//! come to rest within a bounded virtual time.

mod act;
mod agents;
mod finish;
mod forge;
mod garbage;
mod guests;
mod news;
mod week;

use crate::coverage::Coverage;
use crate::explain;
use crate::invariants::{Invariants, Watcher};
use crate::json::{at, text};
use crate::plan::{Act, Plan};
use crate::world::World;
use agents::Agent;
use messaging_machines::relay::limits::Limits;
use messaging_proto::hash::Hash;
use messaging_proto::json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

/// What every private text of a plan's people begins with.
pub const SECRET: &str = "plain-text-";

/// What a plan's agents try to send although no daemon lets it out: it is issued by nobody, and only looks like a token.
pub(crate) const CREDENTIAL: &str = concat!("gh", "p_Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2Yz");

/// The limits of a plan's relay: so low that its caps and windows are met.
#[must_use]
pub fn limits() -> Limits {
    Limits {
        // Founding and joining from one address is what plans begin with.
        team_creates_per_hour: 1_000,
        delivery_window: 3,
        queue_per_sender: 12,
        queue_per_machine: 30,
        ..Limits::default()
    }
}

/// What a played plan did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The hash over every effect that was released, in order.
    pub effects: Hash,
    /// How many sends were accepted.
    pub sends: usize,
    /// How many envelopes the relay took.
    pub relayed: usize,
    /// How much virtual time was lived through, in milliseconds: without what everybody slept.
    pub virtual_ms: u64,
    /// What was reached.
    pub coverage: Coverage,
    /// The timeline, when one was asked for.
    pub trace: Vec<String>,
}

/// Something that must hold did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{invariant}: {what}")]
pub struct Failure {
    /// The invariant's name, `panic`, or `liveness` and what of it.
    pub invariant: String,
    /// What did not hold.
    pub what: String,
    /// The timeline, when one was asked for.
    pub trace: Vec<String>,
}

/// A send that was accepted.
struct Sent {
    from: usize,
    to: usize,
    id: String,
}

/// A plan being played.
struct Play {
    world: World,
    seen: Rc<RefCell<Invariants>>,
    agents: Vec<Agent>,
    /// The machines' ids.
    machines: Vec<String>,
    persons: Vec<String>,
    removed: BTreeSet<usize>,
    /// Machines that came from outside, past the team's.
    guests: Vec<usize>,
    tickets: Vec<guests::Ticket>,
    sends: Vec<Sent>,
    words: u64,
    /// The least and the most each clock is ahead by, at any time of the plan.
    skews: Vec<(i64, i64)>,
}

/// Plays a plan. With `trace` the outcome, or the failure, has a timeline.
///
/// # Errors
/// The first thing that did not hold, also when a machine or the world panicked.
pub fn play(plan: &Plan, trace: bool) -> Result<Outcome, Failure> {
    let seen = Rc::new(RefCell::new(Invariants::new(SECRET)));
    if trace {
        seen.borrow_mut().trace = Some(Vec::new());
    }
    let ran = catch_unwind(AssertUnwindSafe(|| played(plan, &seen, true)));
    let trace =
        || seen.try_borrow_mut().map(|mut seen| seen.trace.take().unwrap_or_default()).unwrap_or_default();
    let (invariant, what) = match ran {
        Ok(Ok(mut outcome)) => {
            outcome.trace = trace();
            return Ok(outcome);
        }
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            ("panic".to_owned(), text.to_owned())
        }
    };
    Err(Failure { invariant, what, trace: trace() })
}

/// Plays a plan without its end: what must hold at every step, while faults may last and nobody comes to rest.
///
/// # Errors
/// The first thing that did not hold.
pub fn play_safely(plan: &Plan) -> Result<(), Failure> {
    let seen = Rc::new(RefCell::new(Invariants::new(SECRET)));
    let ran = played(plan, &seen, false);
    ran.map(|_| ()).map_err(|(invariant, what)| Failure { invariant, what, trace: Vec::new() })
}

/// Plays a plan twice: the second run must release the same effects in the same order.
///
/// # Errors
/// What did not hold, or that the runs differ.
pub fn play_twice(plan: &Plan) -> Result<Outcome, Failure> {
    let (first, second) = (play(plan, false)?, play(plan, false)?);
    if first == second {
        return Ok(first);
    }
    let what = format!("two runs differ: effects {} and {}", first.effects, second.effects);
    Err(Failure { invariant: "determinism".to_owned(), what, trace: Vec::new() })
}

fn played(plan: &Plan, seen: &Rc<RefCell<Invariants>>, rest: bool) -> Result<Outcome, (String, String)> {
    let names: Vec<&str> = plan.head.machines.iter().map(String::as_str).collect();
    let mut world = World::new(plan.head.seed);
    world.keep_log = false;
    world.relay.config.limits = limits();
    world.restart_relay();
    world.watch = Some(Box::new(Watcher(Rc::clone(seen))));
    for name in &names {
        world.join_next(name);
    }
    let agents = (0..names.len()).map(Agent::new).collect();
    let persons: Vec<String> =
        names.iter().map(|name| name.split('/').next().unwrap_or_default().to_owned()).collect();
    seen.borrow_mut().facts.persons = persons.iter().cloned().enumerate().collect();
    let machines = (0..names.len()).map(|number| own_id(&mut world, number)).collect();
    let seen = Rc::clone(seen);
    let mut play = Play {
        world,
        seen,
        agents,
        machines,
        persons,
        removed: BTreeSet::new(),
        guests: Vec::new(),
        tickets: Vec::new(),
        sends: Vec::new(),
        words: 0,
        skews: skews(plan),
    };
    for number in 0..names.len() {
        play.open(number);
    }
    play.world.pass(3_000);
    let start = play.world.mono;
    for item in &plan.items {
        let wait = (start + item.at).saturating_sub(play.world.mono);
        play.world.pass(wait);
        play.act(&item.act);
        play.world.settle();
        play.tidy();
        play.check()?;
        play.news_is_out()?;
    }
    if rest {
        play.finish()?;
    }
    let seen = play.seen.borrow();
    Ok(Outcome {
        effects: play.world.effects,
        sends: play.sends.len(),
        relayed: seen.facts.relayed.len(),
        virtual_ms: play.world.mono - play.world.slept,
        coverage: seen.coverage.clone(),
        trace: Vec::new(),
    })
}

/// The least and the most each machine's clock is ahead by, and the relay's last.
fn skews(plan: &Plan) -> Vec<(i64, i64)> {
    let of = |number: usize| {
        let set = plan.items.iter().filter_map(move |item| match item.act {
            Act::Skew { node, ms } if node == number => Some(ms),
            _ => None,
        });
        set.fold((0, 0), |(least, most), ms| (ms.min(least), ms.max(most)))
    };
    (0..=plan.head.machines.len()).map(of).collect()
}

fn own_id(world: &mut World, number: usize) -> String {
    let info = world.ok(number, "team.info", "{}");
    let members = at(&info, "members").as_array().unwrap_or_default();
    let own = members.iter().find(|member| member.get("self") == Some(&Value::Bool(true)));
    text(own.expect("it is a member"), "machine").to_owned()
}

impl Play {
    /// The first invariant that was broken.
    fn check(&self) -> Result<(), (String, String)> {
        match self.seen.borrow().broken.first() {
            Some(broken) => {
                Err((broken.invariant.to_owned(), format!("at {} ms: {}", broken.mono, broken.what)))
            }
            None => Ok(()),
        }
    }

    /// Forgets what clients were told: nobody waits for it.
    fn tidy(&mut self) {
        for node in &mut self.world.nodes {
            node.lines.clear();
            node.closed.clear();
        }
    }

    /// A person lets every other person's agents in.
    fn open(&mut self, number: usize) {
        let others: BTreeSet<String> = self.persons.iter().cloned().collect();
        let own = self.persons[number].clone();
        for person in others.into_iter().filter(|person| *person != own) {
            let params = format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#);
            self.admin(number, "grant.set", &params);
        }
    }
}

/// The lines of a run's timeline that hold one of these texts, and how the run ended.
pub fn explained(plan: &Plan, texts: &[String]) -> (Vec<String>, Result<Outcome, Failure>) {
    let ran = play(plan, true);
    let trace = match &ran {
        Ok(outcome) => outcome.trace.clone(),
        Err(failure) => failure.trace.clone(),
    };
    (explain::filter(trace, texts), ran)
}
