//! A relay that says anything at any time: nothing panics, no timer spins, nothing it says is believed, and an
//! honest relay afterwards finds everything as it was.

use crate::common::{World, at, text};
use messaging_proto::hash::sha256;
use messaging_proto::json::Value;

struct Dice(u64, u64);

impl Dice {
    fn bytes(&mut self) -> [u8; 32] {
        self.1 += 1;
        sha256(format!("hostile {} {}", self.0, self.1).as_bytes()).0
    }

    fn roll(&mut self, below: usize) -> usize {
        let bytes = self.bytes();
        usize::from(u16::from_be_bytes([bytes[0], bytes[1]])) % below
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

/// What the world said lately, to be said again out of place.
fn said(world: &World, dice: &mut Dice) -> Option<String> {
    let frames: Vec<&String> =
        world.log.iter().filter(|line| line.contains("LinkSend") || line.contains(r#""Send""#)).collect();
    let line = frames.get(dice.roll(frames.len().max(1)))?;
    let effect = crate::common::json(line.split_once(' ')?.1);
    effect.get("LinkSend").map(|send| text(send, "text").to_owned())
}

fn frame(world: &World, dice: &mut Dice) -> String {
    let hash = messaging_proto::hash::Hash(dice.bytes());
    let seq = dice.pick(&["0", "1", "2", "3", "4", "7", "300", "9007199254740991"]);
    let number = dice.roll(12);
    let req = dice.pick(&["sync:1", "sync:2", "sync:3", "write:1", "write:2", "1", "2", "x"]);
    let entries = dice.pick(&[
        "",
        "{}",
        r#"{"seq":2}"#,
        r#"{"op":"member.remove"},{}"#,
        r#"{"v":"messaging/1","op":"genesis","seq":0,"prev":null}"#,
    ]);
    let more = dice.pick(&["", r#","more":true"#]);
    let code =
        dice.pick(&["roster_conflict", "internal", "forbidden", "rate_limited", "not_member", "who_knows"]);
    let ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    match number {
        0 => format!(r#"{{"t":"welcome","head":{{"seq":{seq},"hash":"{hash}"}},"online":["{hash}"]}}"#),
        1 => format!(r#"{{"t":"roster.entries","req":"{req}","entries":[{entries}]{more}}}"#),
        2 => format!(r#"{{"t":"roster.ok","req":"{req}","head":{{"seq":{seq},"hash":"{hash}"}}}}"#),
        3 => format!(r#"{{"t":"roster","entry":{{"seq":{seq},"op":"member.remove"}}}}"#),
        4 => format!(r#"{{"t":"nack","id":"{req}","code":"{code}"}}"#),
        5 => format!(r#"{{"t":"nack","id":"{ulid}","code":"{code}","retryAfterMs":1}}"#),
        6 => format!(r#"{{"t":"ack","id":"{ulid}","stage":"relayed"}}"#),
        7 => format!(r#"{{"t":"peer","machine":"{hash}","online":true}}"#),
        8 => format!(r#"{{"t":"error","code":"{code}"}}"#),
        9 => format!(r#"{{"t":"challenge","proto":"messaging.relay.v1","relay":"r","nonce":"{hash}"}}"#),
        10 => format!(r#"{{"t":"deliver","env":{{"v":"messaging/2","id":"{ulid}","type":"new"}}}}"#),
        _ => match said(world, dice) {
            // Our own words back to us, as a delivery when they are one.
            Some(text) => text
                .replace(r#""t":"presence""#, r#""t":"deliver""#)
                .replace(r#""t":"send""#, r#""t":"deliver""#),
            None => "{}".to_owned(),
        },
    }
}

#[test]
fn a_relay_may_say_anything() {
    for seed in 0..60 {
        let mut dice = Dice(seed, 0);
        let mut world = World::team(seed, &["alice/laptop", "bob/desk"]);
        let honest = at(&world.ok(1, "team.info", "{}"), "members").clone();
        let admin = world.nodes[1].admin;
        for _ in 0..40 {
            match dice.roll(8) {
                0 => world.pass(u64::try_from(dice.roll(40_000)).unwrap()),
                1 => drop(world.ask(1, admin, "identity.rotateEnc", "{}")),
                2 => world.start(1),
                _ => {
                    let frame = frame(&world, &mut dice);
                    if world.connected(1) {
                        world.say_to(1, &frame);
                    }
                }
            }
        }
        world.start(1);
        world.pass(120_000);
        let info = world.ok(1, "team.info", "{}");
        assert_eq!(at(&info, "head"), at(&world.ok(0, "team.info", "{}"), "head"), "seed {seed}");
        let names = |members: &Value| -> Vec<String> {
            let members = members.as_array().unwrap().iter();
            members.map(|member| text(member, "machine").to_owned()).collect()
        };
        assert_eq!(names(at(&info, "members")), names(&honest), "seed {seed}: nobody came or went");
        let status = world.ok(1, "daemon.status", "{}");
        assert_eq!(text(&status, "relay.state"), "connected", "seed {seed}");
        assert_eq!(at(&status, "alarm"), &Value::Null, "seed {seed}");
        assert!(status.get("divergence").is_none(), "seed {seed}: nobody signed another chain");
    }
}

#[test]
fn a_relay_may_say_anything_to_a_joiner() {
    for seed in 0..60 {
        let mut dice = Dice(seed, 500);
        let mut world = World::team(seed, &["alice/laptop"]);
        let ticket = world.ticket(0, "bob");
        let bob = world.add();
        let params = format!(r#"{{"ticket":"{ticket}","label":"desk"}}"#);
        let admin = world.nodes[bob].admin;
        world.ask(bob, admin, "team.join", &params);
        for _ in 0..dice.roll(12) {
            world.one();
        }
        for _ in 0..6 {
            let frame = frame(&world, &mut dice);
            if world.connected(bob) {
                world.say_to_now(bob, &frame);
            }
            world.one();
        }
        world.pass(130_000);
        if world.call(bob, "team.info", "{}").is_err() {
            // What it was told may have spent the invite's machine; another ticket always works.
            let ticket = world.ticket(0, "bob");
            let label = "other";
            let params = format!(r#"{{"ticket":"{ticket}","label":"{label}"}}"#);
            world.ok(bob, "team.join", &params);
        }
        world.pass(10_000);
        let info = world.ok(bob, "team.info", "{}");
        assert_eq!(at(&info, "head"), at(&world.ok(0, "team.info", "{}"), "head"), "seed {seed}");
    }
}
