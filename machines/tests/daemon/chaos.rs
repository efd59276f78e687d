//! Random teams under random faults: nothing is lost that was accepted, and once the faults end everybody agrees.

use crate::common::{Crash, World, at, text};
use messaging_proto::hash::sha256;
use messaging_proto::identity::IdentityFile;
use messaging_proto::json::{FromValue, Value};

/// A stream of numbers from a seed.
struct Dice(u64, u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.1 += 1;
        let hash = sha256(format!("dice {} {}", self.0, self.1).as_bytes()).0;
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&hash[..8]);
        usize::try_from(u64::from_be_bytes(bytes) % below as u64).unwrap()
    }
}

/// Asks without waiting: its connection may die with the daemon.
fn ask(world: &mut World, number: usize, method: &str, params: &str) {
    if world.nodes[number].crashed {
        world.settle();
    }
    let conn = world.nodes[number].admin;
    world.ask(number, conn, method, params);
}

fn fault(world: &mut World, dice: &mut Dice) {
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

fn action(world: &mut World, dice: &mut Dice, joined: usize) {
    let number = dice.roll(joined);
    match dice.roll(6) {
        0 => ask(world, number, "identity.rotateEnc", "{}"),
        1 | 2 => ask(world, 0, "team.invite", r#"{"person":"guest"}"#),
        3 => ask(world, number, "daemon.woke", "{}"),
        _ => world.pass(u64::try_from(dice.roll(20_000)).unwrap()),
    }
}

/// Ends every fault and lets everything settle.
fn heal(world: &mut World) {
    for number in 0..world.nodes.len() {
        world.nodes[number].crash = None;
        world.nodes[number].fail_saves.clear();
        world.nodes[number].reaches = true;
    }
    world.relay.cut_after_append = 0;
    world.reach(true);
    world.pass(200_000);
}

fn agree(world: &mut World, seed: u64) {
    let info = world.ok(0, "team.info", "{}");
    for number in 0..world.nodes.len() {
        let what = format!("seed {seed}, machine {number}");
        assert_eq!(text(&world.ok(number, "daemon.health", "{}"), "relay"), "connected", "{what}");
        let mine = world.ok(number, "team.info", "{}");
        assert_eq!(at(&mine, "head"), at(&info, "head"), "{what}: one chain");
        let status = world.ok(number, "daemon.status", "{}");
        assert_eq!(at(&status, "alarm"), &Value::Null, "{what}");
        assert!(status.get("divergence").is_none(), "{what}");
        let file = world.nodes[number].identity.clone().unwrap();
        let identity = IdentityFile::new(zeroize::Zeroizing::new(file)).read().unwrap();
        let own = |member: &&Value| at(member, "self") == &Value::Bool(true);
        let me = at(&mine, "members").as_array().unwrap().iter().find(own).unwrap();
        assert_eq!(text(me, "enc"), identity.enc().to_string(), "{what}: its own key");
        assert!(identity.pending().is_none(), "{what}: nothing is unsettled");
        assert!(world.nodes[number].pairing.is_none(), "{what}");
    }
}

#[test]
fn faults_come_and_go_and_everybody_agrees() {
    let mut entries = 0;
    for seed in 0..40 {
        let mut dice = Dice(seed, 0);
        let mut world = World::team(seed, &["alice/laptop", "bob/desk", "carol/phone"]);
        for _ in 0..60 {
            if dice.roll(5) == 0 {
                fault(&mut world, &mut dice);
            } else {
                action(&mut world, &mut dice, 3);
            }
            world.settle();
        }
        heal(&mut world);
        agree(&mut world, seed);
        let info = world.ok(0, "team.info", "{}");
        entries += u64::from_value(at(&info, "head.seq")).unwrap() - 4;
    }
    assert!(entries > 200, "{entries} entries were written in all");
}

#[test]
fn a_join_under_faults_ends_in_the_team_or_can_be_done_again() {
    for seed in 0..60 {
        let mut dice = Dice(seed, 1_000);
        let mut world = World::team(seed, &["alice/laptop"]);
        let ticket = world.ticket(0, "bob");
        let bob = world.add();
        let params = format!(r#"{{"ticket":"{ticket}","label":"desk"}}"#);
        ask(&mut world, bob, "team.join", &params);
        for _ in 0..12 {
            fault(&mut world, &mut dice);
            world.pass(u64::try_from(dice.roll(3_000)).unwrap());
            if dice.roll(4) == 0 {
                ask(&mut world, bob, "team.join", &params);
            }
        }
        heal(&mut world);
        if world.call(bob, "team.info", "{}").is_err() {
            world.ok(bob, "team.join", &params);
            world.pass(60_000);
        }
        agree(&mut world, seed);
        let info = world.ok(0, "team.info", "{}");
        assert_eq!(at(&info, "members").as_array().unwrap().len(), 2, "seed {seed}: no ghost joined");
    }
}
