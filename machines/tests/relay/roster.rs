//! Founding, joining, appending, reading and removing (contract wire-core §7.4, §7.5).

use crate::support::{Client, World, closes, counts, frames, nacks};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Count, Effect, Log};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, Nonce, RelayFrame, Req};
use messaging_proto::hash::Hash;
use messaging_proto::json::Value;
use messaging_proto::key::SigningKey;
use messaging_proto::limits::{CLOCK_SKEW_MS, FRAME_BYTES, TTL_MS};
use messaging_proto::name::{PersonName, TeamName};
use messaging_proto::realm::Role;
use messaging_proto::roster::{Author, genesis};
use messaging_proto::ticket::{JoinClaim, join_proof, redeem_proof};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

const RELAY: &str = "wss://relay.example";

fn clients(count: u8) -> Vec<Client> {
    (1..=count).map(Client::new).collect()
}

fn founding(world: &World, by: &Client, name: &str) -> Value {
    genesis(&by.key, world.wall, &TeamName::parse(name).unwrap(), &by.member(Role::Admin)).unwrap()
}

fn refused(world: &mut World, conn: ConnId, entry: &Value, code: Code) {
    let said = world.append(conn, entry);
    assert_eq!(nacks(&said, conn), [("77".to_owned(), code)], "{said:?}");
    assert!(closes(&said, conn).is_empty(), "the connection stays");
}

/// An open invite of the first client, with its id and seed.
fn invite(world: &mut World, admin: &Client, conn: ConnId, number: u8, ttl: u64) -> (Ulid, SigningKey) {
    let seed = SigningKey::from_seed([number; 32]);
    let id = Ulid::new(world.wall, [number; 10]);
    let person = PersonName::parse("p9").unwrap();
    let expires = world.wall.plus(ttl);
    let entry = world.author(admin).invite_create(&id, &seed.machine(), &person, expires).unwrap();
    world.append_ok(conn, &entry);
    (id, seed)
}

fn redeem(world: &World, joiner: &Client, id: &Ulid, seed: &SigningKey) -> Value {
    let member = joiner.member(Role::Member).to_value();
    let proof = redeem_proof(seed, &world.team_id(), id, &member).unwrap();
    world.author(joiner).redeem(id, &proof, member).unwrap()
}

fn join(team: Hash, id: &Ulid, seed: &SigningKey, nonce: &Nonce, after: i64) -> ClientOutbound {
    let claim = JoinClaim { relay: RELAY, team: &team, invite_id: id, nonce };
    let proof = join_proof(seed, &claim).unwrap();
    ClientOutbound::Join { req: Req::of(5), team, invite_id: *id, proof, after }
}

#[test]
fn a_genesis_passes_what_the_relay_asks_in_order() {
    let founder = Client::new(1);
    let other = Client::new(2);
    // Off.
    let mut config = Config::new(RELAY);
    config.team_creation = false;
    let mut world = World::new(config);
    let entry = founding(&world, &founder, "a");
    let (conn, _) = world.open();
    refused(&mut world, conn, &entry, Code::Forbidden);
    // Shape comes before that.
    let mut broken = entry.clone();
    if let Value::Object(object) = &mut broken {
        object.remove("name");
    }
    refused(&mut world, conn, &broken, Code::InvalidRequest);
    let mut large = entry;
    if let Value::Object(object) = &mut large {
        object.set("x", Value::text("x".repeat(16_384)));
    }
    refused(&mut world, conn, &large, Code::TooLarge);

    // Only listed machines.
    let mut config = Config::new(RELAY);
    config.genesis = vec![founder.machine()];
    config.limits.max_teams = 2;
    config.limits.team_creates_per_hour = 2;
    let mut world = World::new(config);
    let (conn, _) = world.open();
    let entry = founding(&world, &other, "a");
    refused(&mut world, conn, &entry, Code::Forbidden);
    let first = founding(&world, &founder, "a");
    let said = world.append(conn, &first);
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::RosterOk { .. }]));
    assert!(said.contains(&Effect::Log(Log::TeamCreated)));
    // Known before anything else is asked.
    refused(&mut world, conn, &first, Code::RosterConflict);
    let second = founding(&world, &founder, "b");
    assert!(matches!(frames(&world.append(conn, &second), conn)[..], [RelayFrame::RosterOk { .. }]));
    // The hourly limit of an address comes before the limit of teams.
    let third = founding(&world, &founder, "c");
    let said = world.append(conn, &third);
    match &frames(&said, conn)[..] {
        [RelayFrame::Nack { code: Code::RateLimited, retry_after_ms: Some(3_600_000), .. }] => {}
        other => panic!("{other:?}"),
    }
    let (elsewhere, _) = world.open_from("192.0.2.2");
    refused(&mut world, elsewhere, &third, Code::Forbidden);
    refused(&mut world, elsewhere, &first, Code::RosterConflict);
    assert_eq!(world.count_rows("relay.team"), 2);

    // What `Roster.apply` asks comes last.
    let mut world = World::new(Config::new(RELAY));
    let (conn, _) = world.open();
    let stale = {
        let mut past = World::new(Config::new(RELAY));
        past.wall = Wall(world.wall.0 - CLOCK_SKEW_MS - 1);
        founding(&past, &founder, "a")
    };
    refused(&mut world, conn, &stale, Code::Expired);
    let name = TeamName::parse("a").unwrap();
    let not_admin = genesis(&founder.key, world.wall, &name, &founder.member(Role::Member)).unwrap();
    refused(&mut world, conn, &not_admin, Code::Forbidden);
    assert_eq!(world.count_rows("relay.team"), 0);
}

#[test]
fn before_hello_only_genesis_and_redeem_are_appended() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let (conn, _) = world.open();
    let author = world.author(&clients[0]);
    let entries = [
        author.member_remove(&clients[1].machine()).unwrap(),
        author.member_role(&clients[1].machine(), Role::Admin).unwrap(),
        author.member_add(&Client::new(7).member(Role::Member)).unwrap(),
    ];
    for entry in &entries {
        refused(&mut world, conn, entry, Code::Forbidden);
    }
    let said = world.say_text(conn, br#"{"t":"roster.append","req":"r","entry":1}"#);
    assert_eq!(nacks(&said, conn), [("r".to_owned(), Code::InvalidRequest)]);
}

#[test]
fn a_joiner_reads_by_proof_redeems_and_is_a_member() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let admin = world.login(&clients[0]);
    let other = world.login(&clients[1]);
    let joiner = Client::new(9);
    let (id, seed) = invite(&mut world, &clients[0], admin, 40, 1_000_000);
    let (conn, nonce) = world.open();
    let team = world.team_id();
    let said = world.say(conn, &join(team, &id, &seed, &nonce, -1));
    match &frames(&said, conn)[..] {
        [RelayFrame::RosterEntries { entries, more: false, .. }] => {
            assert_eq!(entries.len() as u64, world.head().seq + 1);
        }
        other => panic!("{other:?}"),
    }
    let said = world.say(conn, &join(team, &id, &seed, &nonce, world.head().seq as i64));
    assert!(
        matches!(&frames(&said, conn)[..], [RelayFrame::RosterEntries { entries, .. }] if entries.is_empty())
    );

    let entry = redeem(&world, &joiner, &id, &seed);
    let said = world.append_ok(conn, &entry);
    for member in [admin, other] {
        assert!(matches!(&frames(&said, member)[..], [RelayFrame::Roster { .. }]));
    }
    let hello = world.hello(&joiner, &nonce);
    assert!(matches!(frames(&world.say(conn, &hello), conn)[..], [RelayFrame::Welcome { .. }]));

    // A used invite lets nobody read, and admits nobody.
    let (again, nonce) = world.open();
    let said = world.say(again, &join(team, &id, &seed, &nonce, -1));
    assert_eq!(nacks(&said, again), [("5".to_owned(), Code::InviteInvalid)]);
    let entry = redeem(&world, &Client::new(10), &id, &seed);
    refused(&mut world, again, &entry, Code::InviteInvalid);
}

#[test]
fn join_is_refused_alike_whatever_fails() {
    let clients = clients(1);
    let mut world = World::team(Config::new(RELAY), &clients);
    let admin = world.login(&clients[0]);
    let (id, seed) = invite(&mut world, &clients[0], admin, 40, 60_000);
    let (revoked, revoked_seed) = invite(&mut world, &clients[0], admin, 41, 60_000);
    let entry = world.author(&clients[0]).invite_revoke(&revoked).unwrap();
    world.append_ok(admin, &entry);
    let (conn, nonce) = world.open();
    let team = world.team_id();
    let unknown = Ulid::new(world.wall, [99; 10]);
    let no = |world: &mut World, frame: &ClientOutbound| {
        let said = world.say(conn, frame);
        assert_eq!(nacks(&said, conn), [("5".to_owned(), Code::InviteInvalid)]);
    };
    no(&mut world, &join(Hash([9; 32]), &id, &seed, &nonce, -1));
    no(&mut world, &join(team, &unknown, &seed, &nonce, -1));
    no(&mut world, &join(team, &revoked, &revoked_seed, &nonce, -1));
    no(&mut world, &join(team, &id, &revoked_seed, &nonce, -1));
    no(&mut world, &join(team, &id, &seed, &Nonce([1; 32]), -1));
    // The relay's clock ends an invite; its last millisecond is inside.
    let (conn, nonce) = world.open();
    world.wall = world.wall.plus(59_999);
    let said = world.say(conn, &join(team, &id, &seed, &nonce, -1));
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::RosterEntries { .. }]));
    world.wall = world.wall.plus(1);
    let said = world.say(conn, &join(team, &id, &seed, &nonce, -1));
    assert_eq!(nacks(&said, conn), [("5".to_owned(), Code::InviteInvalid)]);
}

#[test]
fn a_redeem_cannot_be_backdated_nor_find_an_unknown_team() {
    let clients = clients(1);
    let mut world = World::team(Config::new(RELAY), &clients);
    let admin = world.login(&clients[0]);
    let (id, seed) = invite(&mut world, &clients[0], admin, 40, TTL_MS);
    let joiner = Client::new(9);
    let entry = redeem(&world, &joiner, &id, &seed);
    world.wall = world.wall.plus(CLOCK_SKEW_MS + 1);
    let (conn, _) = world.open();
    refused(&mut world, conn, &entry, Code::Expired);
    let elsewhere = World::team(Config::new(RELAY), &[Client::new(5)]);
    let entry = redeem(&elsewhere, &joiner, &id, &seed);
    refused(&mut world, conn, &entry, Code::InviteInvalid);
}

#[test]
fn an_append_after_hello_is_checked_in_order() {
    let clients = clients(3);
    let mut world = World::team(Config::new(RELAY), &clients);
    let admin = world.login(&clients[0]);
    let member = world.login(&clients[1]);
    let remove = world.author(&clients[0]).member_remove(&clients[2].machine()).unwrap();
    let said = world.say_text(admin, br#"{"t":"roster.append","req":"r","entry":{}}"#);
    assert_eq!(nacks(&said, admin), [("r".to_owned(), Code::InvalidRequest)]);
    let entry = founding(&world, &clients[0], "z");
    refused(&mut world, admin, &entry, Code::Forbidden);
    let foreign = Author::at(&clients[0].key, Hash([5; 32]), world.head(), world.wall);
    let foreign = foreign.member_remove(&clients[2].machine()).unwrap();
    refused(&mut world, admin, &foreign, Code::InvalidRequest);
    // Another's entry, however valid.
    refused(&mut world, member, &remove, Code::Forbidden);
    // Then `Roster.apply`.
    let by_member = world.author(&clients[1]).member_remove(&clients[2].machine()).unwrap();
    refused(&mut world, member, &by_member, Code::Forbidden);
    let long_ago = Wall(world.wall.0 - CLOCK_SKEW_MS - 1);
    let backdated = Author::at(&clients[0].key, world.team_id(), world.head(), long_ago);
    let backdated = backdated.member_remove(&clients[2].machine()).unwrap();
    // It is before the entry before it, which comes before its distance from now.
    refused(&mut world, admin, &backdated, Code::InvalidRequest);
    world.append_ok(admin, &remove);
    refused(&mut world, admin, &remove, Code::RosterConflict);
}

#[test]
fn an_accepted_entry_goes_to_everybody_but_its_author() {
    let clients = clients(4);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conns: Vec<ConnId> = clients.iter().take(3).map(|client| world.login(client)).collect();
    let entry =
        world.author(&clients[1]).member_rekey(&clients[1].machine(), &clients[2].member(Role::Member).enc);
    let said = world.append_ok(conns[1], &entry.unwrap());
    assert_eq!(frames(&said, conns[1]).len(), 1, "roster.ok alone");
    for other in [conns[0], conns[2]] {
        let text = world.roster.entry(world.head().seq).unwrap().text().clone();
        assert_eq!(frames(&said, other), [RelayFrame::Roster { entry: text }]);
    }
    // The relay's chain is the one it answers with, also after it starts again.
    world.crash(crate::support::Crash::Lost);
    let conn = world.login(&clients[3]);
    let said = world.say(conn, &ClientOutbound::RosterSync { req: Req::of(1), after: -1 });
    let texts: Vec<_> = world.roster.entries(-1).map(|entry| entry.text().clone()).collect();
    let req = Req::of(1);
    assert_eq!(frames(&said, conn), [RelayFrame::RosterEntries { req, entries: texts, more: false }]);
}

#[test]
fn pages_hold_256_entries_and_fit_a_frame() {
    let clients = clients(1);
    let mut world = World::team(Config::new(RELAY), &clients);
    let mut config = world.config.clone();
    config.limits.frames_per_minute = 100_000;
    config.limits.bytes_per_minute = 1 << 40;
    world.config = config;
    world.crash(crate::support::Crash::Lost);
    let conn = world.login(&clients[0]);
    let large = |world: &World, bytes: usize| {
        let entry = world.author(&clients[0]).member_role(&clients[0].machine(), Role::Admin).unwrap();
        let Value::Object(mut object) = entry else { panic!() };
        object.remove("sig");
        object.set("x", Value::text("x".repeat(bytes)));
        let sig = clients[0]
            .key
            .sign_value(messaging_proto::domain::Domain::Roster, &object.clone().into())
            .unwrap();
        object.set("sig", Value::text(sig.to_string()));
        Value::from(object)
    };
    for _ in 0..300 {
        let entry = large(&world, 1);
        world.append_ok(conn, &entry);
    }
    for _ in 0..100 {
        let entry = large(&world, 15_000);
        world.append_ok(conn, &entry);
    }
    let mut after = -1;
    let mut sizes = Vec::new();
    loop {
        let said = world.say(conn, &ClientOutbound::RosterSync { req: Req::of(1), after });
        let frame = frames(&said, conn).remove(0);
        assert!(frame.to_text().len() <= FRAME_BYTES);
        let RelayFrame::RosterEntries { entries, more, .. } = frame else { panic!() };
        let first = world.roster.entry((after + 1) as u64).unwrap().text();
        assert_eq!(&entries[0], first, "a page starts right after");
        sizes.push(entries.len());
        after += entries.len() as i64;
        if !more {
            break;
        }
    }
    assert_eq!(after as u64, world.head().seq);
    assert_eq!(sizes[0], 256);
    assert!(sizes.len() >= 3 && sizes[1] < 256, "{sizes:?}");
    for after in [after, after + 1, (1 << 53) - 1] {
        let said = world.say(conn, &ClientOutbound::RosterSync { req: Req::of(1), after });
        let empty = RelayFrame::RosterEntries { req: Req::of(1), entries: Vec::new(), more: false };
        assert_eq!(frames(&said, conn), [empty], "at or past the head");
    }
}

#[test]
fn a_removed_machine_gets_its_entry_before_4003() {
    let clients = clients(3);
    let mut world = World::team(Config::new(RELAY), &clients);
    let conns: Vec<ConnId> = clients.iter().map(|client| world.login(client)).collect();
    let entry = world.author(&clients[0]).member_remove(&clients[1].machine()).unwrap();
    let said = world.append_ok(conns[0], &entry);
    let text = world.roster.entry(world.head().seq).unwrap().text().clone();
    let broadcast = RelayFrame::Roster { entry: text };
    assert_eq!(frames(&said, conns[1]), std::slice::from_ref(&broadcast));
    assert_eq!(closes(&said, conns[1]), [4003]);
    let entry_at =
        said.iter().position(|effect| matches!(effect, Effect::Send { conn, .. } if *conn == conns[1]));
    let close_at = said.iter().position(|effect| matches!(effect, Effect::Close { .. }));
    assert!(entry_at < close_at);
    let gone = RelayFrame::Peer { machine: clients[1].machine(), online: false };
    assert_eq!(frames(&said, conns[2]), [broadcast, gone]);
    assert!(world.say(conns[1], &ClientOutbound::Ping { n: None }).is_empty());
    let (conn, said) = world.connect(&clients[1]);
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Error { code: Code::NotMember, .. }]));
    assert_eq!(closes(&said, conn), [4001]);
    assert_eq!(counts(&said), [Count::AuthFailure(Code::NotMember)]);
}

#[test]
fn who_removes_itself_is_answered_told_and_closed() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let other = world.login(&clients[0]);
    let conn = world.login(&clients[1]);
    let entry = world.author(&clients[1]).member_remove(&clients[1].machine()).unwrap();
    let said = world.append_ok(conn, &entry);
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::RosterOk { .. }, RelayFrame::Roster { .. }]));
    assert_eq!(closes(&said, conn), [4003]);
    assert!(matches!(
        frames(&said, other)[..],
        [RelayFrame::Roster { .. }, RelayFrame::Peer { online: false, .. }]
    ));
}

#[test]
fn a_label_is_free_again_and_the_new_machine_has_a_queue_of_its_own() {
    let clients = clients(2);
    let mut world = World::team(Config::new(RELAY), &clients);
    let admin = world.login(&clients[0]);
    let draft = world.draft(&clients[0], &clients[1]);
    world.send(admin, &draft.sign(&clients[0]));
    let entry = world.author(&clients[0]).member_remove(&clients[1].machine()).unwrap();
    world.append_ok(admin, &entry);
    let mut member = clients[1].member(Role::Member);
    let newer = Client::new(3);
    member.machine = newer.machine();
    let entry = world.author(&clients[0]).member_add(&member).unwrap();
    world.append_ok(admin, &entry);
    let (conn, said) = world.connect(&newer);
    assert!(matches!(frames(&said, conn)[..], [RelayFrame::Welcome { .. }]));
    assert_eq!(world.count_rows("relay.envelope"), 0);
}
