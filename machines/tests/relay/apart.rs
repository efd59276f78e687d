//! What is kept apart: a removed machine from the team it left, and teams from each other.

use crate::support::{Client, Crash, World, closes, frames, nacks};
use messaging_machines::relay::Config;
use messaging_machines::relay::io::{ConnId, Effect};
use messaging_proto::Code;
use messaging_proto::frame::{ClientOutbound, RelayFrame, Req};
use messaging_proto::realm::Role;

const RELAY: &str = "wss://relay.example";

fn config() -> Config {
    let mut config = Config::new(RELAY);
    config.limits.frames_per_minute = 1_000_000;
    config.limits.delivery_window = 4;
    config
}

fn clients(count: u8) -> Vec<Client> {
    (1..=count).map(Client::new).collect()
}

fn deliveries_of(effects: &[Effect], conn: ConnId, from: &Client) -> usize {
    let device = format!("\"from\":{{\"device\":\"{}\"", from.machine());
    frames(effects, conn)
        .iter()
        .filter(|frame| matches!(frame, RelayFrame::Deliver { env } if env.contains(&device)))
        .count()
}

/// Whatever of its envelopes waits, is on its way, is due again, or would start with a new link: more than one step of the
/// sweep deletes.
#[test]
fn nothing_of_a_removed_machine_is_delivered_any_more() {
    let clients = clients(4);
    let (admin, gone, online, offline) = (&clients[0], &clients[1], &clients[2], &clients[3]);
    for crash in [false, true] {
        let mut world = World::team(config(), &clients);
        let admin_conn = world.login(admin);
        let gone_conn = world.login(gone);
        let online_conn = world.login(online);
        for _ in 0..300 {
            for to in [online, offline] {
                let env = world.draft(gone, to).sign(gone);
                assert!(nacks(&world.send(gone_conn, &env), gone_conn).is_empty());
            }
        }
        // And what waits for it.
        let env = world.draft(admin, gone).sign(admin);
        world.send(admin_conn, &env);
        let kept = world.draft(admin, offline).sign(admin);
        world.send(admin_conn, &kept);
        assert_eq!(deliveries_of(&world.effects, online_conn, gone), 4, "a window of them");
        let entry = world.author(admin).member_remove(&gone.machine()).unwrap();
        let mut said = world.append_ok(admin_conn, &entry);
        assert_eq!(closes(&said, gone_conn), [4003]);
        let mut online_conn = online_conn;
        if crash {
            world.crash(Crash::Lost);
            online_conn = world.login(online);
        }
        let (late, more) = world.connect(offline);
        said.extend(more);
        said.extend(world.pass(70_000));
        assert_eq!(deliveries_of(&said, online_conn, gone), 0, "crash: {crash}");
        assert_eq!(deliveries_of(&said, late, gone), 0, "crash: {crash}");
        assert!(deliveries_of(&said, late, admin) > 0, "others' envelopes come");
        assert_eq!(world.count_rows("relay.order"), 1);
        assert_eq!(world.count_rows("relay.envelope"), 1);
        assert_eq!(world.count_rows("relay.sweep"), 0);
    }
}

#[test]
fn teams_learn_nothing_of_each_other() {
    let (ours, theirs) = (clients(2), [Client::new(11), Client::new(12)]);
    let mut world = World::team(config(), &ours);
    let our_conns: Vec<ConnId> = ours.iter().map(|client| world.login(client)).collect();
    let our_roster = world.roster.clone();
    let start = world.effects.len();
    world.roster = messaging_proto::roster::Roster::new();
    world.found(&theirs[0]);
    let conn = world.login(&theirs[0]);
    let entry = world.author(&theirs[0]).member_add(&theirs[1].member(Role::Member)).unwrap();
    world.append_ok(conn, &entry);
    let (other, said) = world.connect(&theirs[1]);
    let online = vec![theirs[0].machine()];
    assert_eq!(frames(&said, other), [RelayFrame::Welcome { head: world.head(), online }]);
    let env = world.presence_draft(&theirs[0], 1).sign(&theirs[0]);
    world.say(conn, &ClientOutbound::Presence { env });
    // To a machine of ours: by their realm, and by ours.
    let draft = world.draft(&theirs[0], &ours[0]);
    let said = world.send(conn, &draft.sign(&theirs[0]));
    assert_eq!(nacks(&said, conn)[0].1, Code::NotMember);
    let their_roster = std::mem::replace(&mut world.roster, our_roster);
    let draft = world.draft(&theirs[0], &ours[0]);
    let said = world.send(conn, &draft.sign(&theirs[0]));
    assert_eq!(nacks(&said, conn)[0].1, Code::NotMember);
    let entry = world.author(&theirs[0]).member_remove(&ours[0].machine()).unwrap();
    assert_eq!(nacks(&world.append(conn, &entry), conn)[0].1, Code::InvalidRequest);
    // What they read is their own.
    let said = world.say(conn, &ClientOutbound::RosterSync { req: Req::of(1), after: -1 });
    match &frames(&said, conn)[..] {
        [RelayFrame::RosterEntries { entries, .. }] => {
            assert_eq!(entries.len(), their_roster.entries(-1).count())
        }
        other => panic!("{other:?}"),
    }
    // An id of one is no id of the other, whoever has both.
    world.close(conn);
    for conn in our_conns {
        assert!(frames(&world.effects[start..], conn).is_empty());
    }
}
