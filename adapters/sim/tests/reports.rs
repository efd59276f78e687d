//! What users of other agent mail reported, tried in the simulated world. The numbers are those of the collection;
//! `docs/user-reports.md` says where the others are.
#![allow(clippy::unwrap_used)]

use messaging_machines::daemon::io::{IpcId, LinkEnd, Tier};
use messaging_proto::json::Value;
use messaging_sim::{World, at, text};

const HOUR: u64 = 3_600_000;
const MINUTE: u64 = 60_000;

/// An agent called `agent` on a machine, with its connection.
struct Agent(usize, IpcId, String);

impl Agent {
    fn new(world: &mut World, number: usize) -> Self {
        let (conn, key) = (world.connect(number, Tier::Agent), format!("{number}").repeat(24));
        let params = format!(r#"{{"key":"{key}","name":"agent","agent":"codex","tier":"push"}}"#);
        world.call_on(number, conn, "session.register", &params).unwrap();
        Self(number, conn, key)
    }

    fn send(&self, world: &mut World, to: &str, words: &str) -> String {
        let params = format!(r#"{{"key":"{}","to":"{to}","parts":[{{"text":"{words}"}}]}}"#, self.2);
        let sent = world.call_on(self.0, self.1, "msg.send", &params).unwrap();
        text(&sent, "results.0.envelopeId").to_owned()
    }

    fn history(&self, world: &mut World, id: &str) -> Vec<Value> {
        let params = format!(r#"{{"key":"{}","id":"{id}"}}"#, self.2);
        let read = world.call_on(self.0, self.1, "item.read", &params).unwrap();
        at(&read, "history").as_array().unwrap().to_vec()
    }

    fn stage(&self, world: &mut World, id: &str) -> String {
        text(self.history(world, id).last().unwrap(), "stage").to_owned()
    }

    fn inbox(&self, world: &mut World) -> Vec<String> {
        let params = format!(r#"{{"key":"{}","limit":200}}"#, self.2);
        let list = world.call_on(self.0, self.1, "inbox.list", &params).unwrap();
        at(&list, "items")
            .as_array()
            .unwrap()
            .iter()
            .rev()
            .map(|item| text(item, "preview").to_owned())
            .collect()
    }
}

/// Two machines, whose agents may write to each other at once.
fn two(seed: u64) -> (World, Agent, Agent) {
    let mut world = World::team(seed, &["alice/laptop", "bob/desk"]);
    for (number, person) in [(0, "bob"), (1, "alice")] {
        world.ok(number, "grant.set", &format!(r#"{{"subject":{{"person":"{person}"}},"ask":"open"}}"#));
    }
    let (alice, bob) = (Agent::new(&mut world, 0), Agent::new(&mut world, 1));
    world.pass(3_000);
    (world, alice, bob)
}

/// How often daemons dialled since a place in the log.
fn dials(world: &World, since: usize) -> Vec<&String> {
    world.log[since..].iter().filter(|line| line.contains(r#"{"Dial""#)).collect()
}

/// Three days on a link that something in between forgets five minutes after every message: each still arrives.
#[test]
fn report_05_a_link_that_dies_silently_is_noticed() {
    let (mut world, alice, bob) = two(5);
    for hour in 0..72 {
        world.pass(5 * MINUTE);
        world.deaden(1);
        world.pass(55 * MINUTE);
        let id = alice.send(&mut world, "bob/agent", &format!("hour {hour}"));
        world.pass(5 * MINUTE);
        assert_eq!(alice.stage(&mut world, &id), "delivered", "hour {hour}");
    }
    let expected: Vec<String> = (0..72).map(|hour| format!("hour {hour}")).collect();
    assert_eq!(bob.inbox(&mut world), expected, "each once, in order");
}

/// The receiver is away for 200 ms, exactly while the delivery is on its way.
#[test]
fn report_07_a_delivery_in_flight_comes_again() {
    let (mut world, alice, bob) = two(7);
    world.nodes[1].latency = 100;
    let id = alice.send(&mut world, "bob/agent", "in flight");
    world.pass(50);
    assert_eq!(alice.stage(&mut world, &id), "relayed");
    world.reach_from(1, false);
    world.pass(200);
    world.reach_from(1, true);
    world.pass(2 * MINUTE);
    assert_eq!(bob.inbox(&mut world), ["in flight"]);
    assert_eq!(alice.stage(&mut world, &id), "delivered");
}

/// An outage far longer than every step of the backoff ends in a connection, and the next short one is short.
#[test]
fn report_21_it_always_connects_again() {
    let (mut world, ..) = two(21);
    for _ in 0..3 {
        world.reach(false);
        world.pass(6 * HOUR);
        assert!(!world.connected(1));
        world.reach(true);
        world.pass(3 * MINUTE);
        assert!(world.connected(0) && world.connected(1), "within the longest wait");
        world.pass(10 * MINUTE);
        world.reach(false);
        world.pass(1_000);
        world.reach(true);
        world.pass(20_000);
        assert!(world.connected(0) && world.connected(1), "the backoff began again");
    }
}

/// A relay that refuses for an hour, at accept or at the hello: each daemon tries a bounded number of times, and not in
/// step with the others. (What a `retryAfterMs` says is waited for: `a_busy_relay_is_asked_again_when_it_says`.)
#[test]
fn report_29_refused_clients_do_not_storm() {
    let names: Vec<String> = (0..5).map(|number| format!("person-{number}/box")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for at_accept in [true, false] {
        let mut world = World::team(29, &names);
        world.pass(MINUTE);
        if at_accept {
            world.reach(false);
        } else {
            // Full: `rate_limited`, then 1013.
            world.relay.config.limits.connections = 1;
            world.restart_relay();
        }
        world.pass(10 * MINUTE);
        let (mut minutes, machines) = (Vec::new(), world.nodes.len());
        let before = world.log.len();
        for _ in 0..60 {
            let since = world.log.len();
            world.pass(MINUTE);
            minutes.push(dials(&world, since).len());
        }
        let all = dials(&world, before).len();
        assert!(all >= 30 * machines / 2, "they go on trying: {all}");
        assert!(minutes.iter().all(|count| *count <= 4 * machines), "a few a minute each: {minutes:?}");
        // Jitter: some minute differs from the one before.
        assert!(minutes.windows(2).any(|two| two[0] != two[1]), "not in step: {minutes:?}");
        if !at_accept {
            let refused = world.log[before..].iter().filter(|line| line.contains("\"code\":1013"));
            assert!(refused.count() >= 10 * machines, "refused as full");
        }
        world.relay.config.limits.connections = 100;
        world.restart_relay();
        world.reach(true);
        world.pass(3 * MINUTE);
        assert!((0..machines).all(|number| world.connected(number)), "and come back");
    }
}

/// The window of clocks ends where it is said to end, the code is `expired`, the words are about the clock, and a step
/// during a link ends nothing.
#[test]
fn report_59_clocks_that_are_off() {
    let minute = MINUTE.cast_signed();
    // An envelope from the future. One that looks old may simply have waited at the relay.
    for (skew, passes) in [
        (4 * minute, true),
        (5 * minute, true),
        (5 * minute + 1, false),
        (6 * minute, false),
        (24 * 60 * minute, false),
        (-4 * minute, true),
        (-6 * minute, true),
    ] {
        for sender in [true, false] {
            let (mut world, alice, bob) = two(59);
            // A receiver that is behind is a sender that is ahead.
            let (number, skew) = if sender { (0, skew) } else { (1, -skew) };
            world.nodes[number].skew = skew;
            let id = alice.send(&mut world, "bob/agent", "now");
            world.pass(5_000);
            assert_eq!(bob.inbox(&mut world).len(), usize::from(passes), "{skew} ms");
            let last = alice.history(&mut world, &id).last().cloned().unwrap();
            if passes {
                // It is taken; but the receipt is from the future of the one whose clock is behind.
                let stage = if skew.abs() <= 5 * minute { "delivered" } else { "relayed" };
                assert_eq!(text(&last, "stage"), stage, "{skew} ms of {number}");
            } else if sender {
                assert_eq!(text(&last, "code"), "expired", "{skew} ms: {last:?}");
            } else {
                // Both times are in the receiver's own log.
                let log = world.log.iter().rfind(|line| line.starts_with(r#"1 {"Log""#)).unwrap();
                for part in ["inbound.refused", "expired", r#"["ts","#, r#"["clock","#] {
                    assert!(log.contains(part), "{part} in {log}");
                }
            }
            assert!(world.connected(0) && world.connected(1), "{skew} ms: the links are as they were");
        }
    }
    // A hello: the window on both sides, to the millisecond, whoever is off.
    for relay in [true, false] {
        for (skew, passes) in
            [(5 * minute, true), (-5 * minute, true), (5 * minute + 1, false), (-5 * minute - 1, false)]
        {
            let (mut world, ..) = two(59);
            if relay {
                world.relay.skew = skew;
            } else {
                world.nodes[0].skew = skew;
            }
            world.close_link(0, LinkEnd::Lost);
            world.pass(2 * MINUTE);
            let state = text(&world.ok(0, "daemon.health", "{}"), "relay").to_owned();
            assert_eq!(state == "connected", passes, "{skew} ms");
            let status = world.ok(0, "daemon.status", "{}");
            let error = at(&status, "relay").get("lastError").and_then(Value::as_str).unwrap_or_default();
            let words = ["expired", "clock", "UTC"].into_iter().all(|word| error.contains(word));
            assert_eq!(words, !passes, "{skew} ms: {error:?}");
        }
    }
    let (mut world, alice, bob) = two(60);
    for skew in [4 * minute, -4 * minute] {
        for node in &mut world.nodes {
            node.skew = skew;
        }
        world.relay.skew = skew;
        world.pass(MINUTE);
        alice.send(&mut world, "bob/agent", "after a step");
        world.pass(1_000);
    }
    assert_eq!(bob.inbox(&mut world).len(), 2, "it survived a step forward and one back");
}

/// A clock that was wrong when it connected and is set right while it runs: the next hello uses the right one.
#[test]
fn report_61_no_skew_is_kept() {
    let (mut world, alice, bob) = two(61);
    world.nodes[0].skew = (20 * MINUTE).cast_signed();
    world.close_link(0, LinkEnd::Lost);
    world.pass(5 * MINUTE);
    world.nodes[0].skew = 0;
    world.pass(10 * MINUTE);
    assert!(world.connected(0), "the hello after the correction is taken");
    assert_eq!(text(&world.ok(0, "daemon.health", "{}"), "relay"), "connected");
    let id = alice.send(&mut world, "bob/agent", "right again");
    world.pass(5_000);
    assert_eq!(alice.stage(&mut world, &id), "delivered");
    assert_eq!(bob.inbox(&mut world), ["right again"]);
}

/// A proxy that cuts what is idle for a minute finds nothing idle: a link says something both ways long before, also in a
/// team of one, where there is nothing to say.
#[test]
fn report_23_an_idle_link_is_never_idle_for_a_minute() {
    let mut world = World::team(23, &["alice/laptop"]);
    world.pass(MINUTE);
    for _ in 0..60 {
        let since = world.log.len();
        world.pass(45_000);
        let said = |what: &str| world.log[since..].iter().any(|line| line.starts_with(what));
        assert!(said("relay {\"Send\""), "from the relay");
        assert!(said("0 {\"LinkSend\""), "to the relay");
    }
    assert!(!world.log.iter().any(|line| line.contains("link.lost")), "it was never lost");
}

/// Two processes with one home: they throw each other out a few times a minute at most, both say why, and go on saying it.
#[test]
fn report_25_two_daemons_of_one_identity() {
    let (mut world, alice, _) = two(25);
    let copy = world.add();
    world.nodes[copy].base = world.nodes[1].base.clone();
    world.nodes[copy].identity = world.nodes[1].identity.clone();
    world.nodes[copy].config = world.nodes[1].config.clone();
    let since = world.log.len();
    world.start(copy);
    world.pass(20 * MINUTE);
    let dials = dials(&world, since).iter().filter(|line| !line.starts_with("0 ")).count();
    assert!((10..=90).contains(&dials), "{dials} dials of two in twenty minutes");
    for number in [1, copy] {
        let status = world.ok(number, "daemon.status", "{}");
        let error = text(&status, "relay.lastError");
        assert!(error.contains("another daemon with this identity"), "{number}: {error}");
    }
    // The copy ends: mail arrives again, and nothing was lost meanwhile that was not taken by the copy.
    world.reach_from(copy, false);
    world.pass(2 * MINUTE);
    let id = alice.send(&mut world, "bob/agent@desk", "alone again");
    world.pass(5_000);
    assert_eq!(alice.stage(&mut world, &id), "delivered");
}

/// The ack and the redelivery cross in every way: the wire may carry it once more, the inbox has it once.
#[test]
fn report_13_a_crossing_ack_brings_one_delivery_more_at_most() {
    for latency in [700, 740, 749, 750, 751, 760, 800, 1_000] {
        let (mut world, alice, bob) = two(13);
        world.relay.config.limits.redeliver_min_ms = 1_500;
        world.restart_relay();
        world.pass(2 * MINUTE);
        world.nodes[1].latency = latency;
        let since = world.log.len();
        let id = alice.send(&mut world, "bob/agent", "once");
        world.pass(MINUTE);
        let wire =
            world.log[since..].iter().filter(|line| line.contains("\"Deliver\"") && line.contains(&id));
        let wire = wire.count();
        assert!((1..=2).contains(&wire), "{wire} deliveries at {latency} ms each way");
        assert_eq!(bob.inbox(&mut world), ["once"]);
        assert_eq!(alice.stage(&mut world, &id), "delivered");
    }
}

/// A line of exactly the limit, made of families, of letters past the basic plane and of combining marks, arrives as it
/// was written; one unit more is refused before anything is stored.
#[test]
fn report_33_a_line_of_exactly_the_limit_arrives_whole() {
    let (mut world, ..) = two(33);
    let say = |world: &mut World, words: &str, id: &str| {
        let params = format!(r#"{{"conversation":"dm:bob","text":"{words}","clientId":"{id}"}}"#);
        world.call(0, "person.send", &params)
    };
    let mut texts = Vec::new();
    for (number, (unit, each)) in
        [("👨\u{200d}👩\u{200d}👧\u{200d}👦", 11), ("𝔸", 2), ("e\u{301}", 2)].into_iter().enumerate()
    {
        let text = unit.repeat(8_000 / each) + &"x".repeat(8_000 % each);
        say(&mut world, &text, &format!("fits-{number}")).unwrap();
        let long = say(&mut world, &format!("{text}x"), &format!("long-{number}")).unwrap_err();
        assert_eq!(text_of(&long), "too_large");
        texts.push(text);
        world.pass(MINUTE);
    }
    let read = world.ok(1, "conv.read", r#"{"conversation":"dm:alice","after":0,"limit":10}"#);
    let lines: Vec<&str> =
        at(&read, "lines").as_array().unwrap().iter().map(|line| text(line, "text")).collect();
    assert_eq!(lines, texts);
}

fn text_of(error: &Value) -> &str {
    text(error, "data.code")
}

/// Three weeks without a restart of anything: budgets, windows, retained keys and calendars come and go, and the last day
/// is like the first.
#[test]
fn pattern_weeks_without_a_restart() {
    let (mut world, alice, bob) = two(70);
    world.keep_log = false;
    // Nobody is connected all night long, as machines are, which is also what makes three weeks pass quickly here.
    for day in 0..21 {
        for round in 0..3 {
            let ids: Vec<String> = (0..25)
                .map(|number| alice.send(&mut world, "bob/agent@desk", &format!("{day} {round} {number}")))
                .collect();
            world.pass(15 * MINUTE);
            for id in &ids {
                let last = alice.history(&mut world, id).last().cloned().unwrap();
                let stage = text(&last, "stage");
                // Twenty of one agent to another in ten minutes, then the guard; never anything else.
                let code = last.get("code").and_then(Value::as_str);
                assert!(stage == "delivered" || code == Some("loop_guard"), "day {day}: {last:?}");
            }
            let passed = ids.iter().filter(|id| alice.stage(&mut world, id) == "delivered").count();
            assert_eq!(passed, 20, "day {day}, round {round}");
        }
        assert!(bob.inbox(&mut world).iter().any(|item| item.starts_with(&format!("{day} 2 "))), "day {day}");
        for number in [0, 1] {
            world.reach_from(number, false);
        }
        world.pass(23 * HOUR);
        for number in [0, 1] {
            world.reach_from(number, true);
            world.ok(number, "daemon.woke", "{}");
        }
        world.pass(2 * MINUTE);
    }
    for number in [0, 1] {
        let status = world.ok(number, "daemon.status", "{}");
        assert_eq!(
            (text(&status, "relay.state"), at(&status, "outbox.waiting")),
            ("connected", &Value::int(0))
        );
    }
}

/// A first start while the clock says 1970, or a year far away: refused with words about the time, and well once it is set.
#[test]
fn pattern_a_first_start_with_a_clock_that_is_nowhere() {
    let create =
        format!(r#"{{"relay":"{}","name":"team","person":"alice","label":"laptop"}}"#, messaging_sim::URL);
    for skew in [-messaging_sim::START.cast_signed(), 7_000_000_000_000, 300_000_000_000_000] {
        let mut world = World::new(71);
        let number = world.add();
        world.nodes[number].skew = skew;
        assert_eq!(world.refused(number, "team.create", &create), "expired", "{skew}");
        assert_eq!(text(&world.ok(number, "daemon.health", "{}"), "state"), "running");
        world.start(number);
        world.nodes[number].skew = 0;
        world.ok(number, "team.create", &create);
        world.pass(MINUTE);
        assert!(world.connected(number), "{skew}");
    }
}
