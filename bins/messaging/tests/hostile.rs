//! What a hostile client gets from a real relay process: the specified answer and close code, and the process stays up.

#![allow(clippy::unwrap_used)]

mod world;

use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, sign_hello};
use messaging_proto::hash::{Hash, RealmId};
use messaging_proto::json::{Value as Wire, canonicalize};
use messaging_proto::key::{EncSecret, SigningKey};
use messaging_proto::name::{Label, PersonId, TeamName};
use messaging_proto::roster::{Author, Member, Role, Roster, genesis};
use messaging_proto::time::Wall;
use serde_json::{Value, json};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;
use tungstenite::protocol::WebSocket;
use tungstenite::{Message, client::IntoClientRequest};
use world::{PATIENCE, World, wait};

/// A WebSocket to the relay, past its challenge.
struct Link {
    socket: WebSocket<TcpStream>,
    relay: String,
    nonce: String,
}

impl Link {
    fn open(world: &World) -> Self {
        let mut request = world.relay_url().into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "messaging.relay.v1".parse().unwrap());
        let stream = TcpStream::connect(("127.0.0.1", world.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        let mut link = Self { socket, relay: String::new(), nonce: String::new() };
        let challenge = link.frame().unwrap();
        assert_eq!(challenge["t"], "challenge");
        link.relay = challenge["relay"].as_str().unwrap().to_owned();
        link.nonce = challenge["nonce"].as_str().unwrap().to_owned();
        link
    }

    fn say(&mut self, text: impl Into<String>) {
        // A relay that already closed is found out by reading.
        let _ = self.socket.send(Message::text(text.into()));
    }

    /// The next frame, or the close code.
    fn frame(&mut self) -> Result<Value, u16> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
                Ok(Message::Close(Some(close))) => return Err(close.code.into()),
                Ok(Message::Close(None)) => return Err(1005),
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Reads `error` with this code, then the close with that one.
    fn ends(&mut self, code: &str, close: u16) {
        let error = self.frame().unwrap();
        assert_eq!((&error["t"], &error["code"]), (&json!("error"), &json!(code)));
        assert_eq!(self.frame().unwrap_err(), close);
    }

    fn hello_text(&self, machine: &Founder, nonce: &str, ts: Wall) -> String {
        let nonce = Nonce::parse(nonce).unwrap();
        let claim = HelloClaim { relay: &self.relay, nonce: &nonce, team: &machine.team, ts };
        ClientOutbound::Hello(sign_hello(&machine.key, &claim).unwrap()).to_text()
    }
}

/// A machine that founded a team.
struct Founder {
    key: SigningKey,
    team: RealmId,
    roster: Roster,
}

fn now() -> Wall {
    Wall(u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap())
}

fn member(seed: u8, person: &str, role: Role) -> (SigningKey, Member) {
    let key = SigningKey::from_seed([seed; 32]);
    let member = Member {
        machine: key.machine(),
        enc: EncSecret::from_bytes([seed; 32]).public(),
        person: PersonId::parse(person).unwrap(),
        role,
        label: Label::parse("laptop").unwrap(),
    };
    (key, member)
}

fn append(link: &mut Link, entry: &Wire) -> Value {
    let entry = canonicalize(entry).unwrap();
    link.say(format!("{{\"t\":\"roster.append\",\"req\":\"r\",\"entry\":{entry}}}"));
    loop {
        let frame = link.frame().unwrap();
        if frame["t"] == "roster.ok" || frame["t"] == "nack" {
            return frame;
        }
    }
}

fn found(world: &World, seed: u8) -> Founder {
    let (key, member) = member(seed, "alice", Role::Admin);
    let entry = genesis(&key, now(), &TeamName::parse("T").unwrap(), &member).unwrap();
    assert_eq!(append(&mut Link::open(world), &entry)["t"], "roster.ok");
    let roster = Roster::from_entries(&[entry]).unwrap();
    Founder { key, team: roster.team().unwrap(), roster }
}

/// A link that said a valid hello.
fn live(world: &World, founder: &Founder) -> Link {
    let mut link = Link::open(world);
    let hello = link.hello_text(founder, &link.nonce, now());
    link.say(hello);
    assert_eq!(link.frame().unwrap()["t"], "welcome");
    link
}

#[test]
fn hostile_frames_get_their_answer_and_the_relay_stays_up() {
    let mut world = World::new();
    let founder = found(&world, 1);

    // Before hello: not JSON, not an object, no type, binary, too large, a type that is not served, too many frames.
    for text in ["{", "[]", "{}", r#"{"t":1}"#, r#"{"t":"ping","t":"ping"}"#, "{\"t\":\"\\ud800\"}", ""] {
        let mut link = Link::open(&world);
        link.say(text);
        link.ends("invalid_request", 4002);
    }
    let mut link = Link::open(&world);
    link.socket.send(Message::binary(vec![1])).unwrap();
    assert_eq!(link.frame().unwrap_err(), 4002);
    let mut link = Link::open(&world);
    link.say(format!(r#"{{"t":"x","pad":"{}"}}"#, "p".repeat(32_768)));
    assert_eq!(link.frame().unwrap_err(), 1009);
    // The declared length is enough.
    let mut link = Link::open(&world);
    let header = [0x81, 0xff, 0, 0, 0, 0, 0x06, 0x40, 0, 0, 1, 2, 3, 4];
    link.socket.get_mut().write_all(&header).unwrap();
    assert_eq!(link.frame().unwrap_err(), 1009);
    let mut link = Link::open(&world);
    link.say(r#"{"t":"roster.sync","req":"a","after":-1}"#);
    link.ends("forbidden", 4002);
    let mut link = Link::open(&world);
    for _ in 0..9 {
        link.say(r#"{"t":"of the future"}"#);
    }
    link.ends("rate_limited", 4002);

    // A hello of another team, with another's nonce, from another time, or changed.
    let mut link = Link::open(&world);
    let other = Founder { key: SigningKey::from_seed([1; 32]), team: Hash([7; 32]), roster: Roster::new() };
    let hello = link.hello_text(&other, &link.nonce, now());
    link.say(hello);
    link.ends("not_member", 4001);
    let replayed = {
        let earlier = Link::open(&world);
        earlier.hello_text(&founder, &earlier.nonce, now())
    };
    let mut link = Link::open(&world);
    link.say(replayed);
    link.ends("bad_signature", 4001);
    let mut link = Link::open(&world);
    let hello = link.hello_text(&founder, &link.nonce, now().minus(300_001 + 60_000));
    link.say(hello);
    link.ends("expired", 4001);
    let mut link = Link::open(&world);
    link.say(r#"{"t":"hello","proto":"messaging.relay.v2"}"#);
    link.ends("invalid_request", 4001);

    // After hello: a second hello, an unknown type, a bad shape with and without an id, too large.
    let mut link = live(&world, &founder);
    link.say(r#"{"t":"of the future","x":1}"#);
    link.say(r#"{"t":"ping","n":7}"#);
    assert_eq!(link.frame().unwrap(), json!({"t": "pong", "n": 7}));
    link.say(r#"{"t":"send","env":{"id":"01M7Q5F6K8FS28ZVG7YPT2PQY9"}}"#);
    let nack = link.frame().unwrap();
    assert_eq!((&nack["t"], &nack["code"]), (&json!("nack"), &json!("invalid_request")));
    assert_eq!(nack["id"], "01M7Q5F6K8FS28ZVG7YPT2PQY9");
    link.say(r#"{"t":"recv.ack"}"#);
    assert_eq!(link.frame().unwrap()["t"], "error");
    let hello = link.hello_text(&founder, &link.nonce, now());
    link.say(hello);
    link.ends("invalid_request", 4002);
    let mut link = live(&world, &founder);
    link.say("p".repeat(1_048_577));
    assert_eq!(link.frame().unwrap_err(), 1009);

    // What comes right behind a `hello` that is taken is under the limit after it, and behind one that is not it is not read.
    let large = format!(r#"{{"t":"ping","n":5,"pad":"{}"}}"#, "p".repeat(100_000));
    let mut link = Link::open(&world);
    let hello = link.hello_text(&founder, &link.nonce, now());
    link.say(hello);
    link.say(&large);
    assert_eq!(link.frame().unwrap()["t"], "welcome");
    assert_eq!(link.frame().unwrap(), json!({"t": "pong", "n": 5}));
    let mut link = Link::open(&world);
    let hello = link.hello_text(&other, &link.nonce, now());
    link.say(hello);
    link.say(&large);
    link.ends("not_member", 4001);

    // A newer connection of the machine replaces the older.
    let mut older = live(&world, &founder);
    let _newer = live(&world, &founder);
    assert_eq!(older.frame().unwrap_err(), 4004);

    assert!(world.relay().is_running());
    live(&world, &founder);
}

#[test]
fn a_removed_machine_is_told_and_refused() {
    let world = World::new();
    let mut founder = found(&world, 3);
    let (bob, bob_member) = member(4, "bob", Role::Member);
    let mut alice = live(&world, &founder);
    let add = Author::new(&founder.key, &founder.roster, now()).unwrap().member_add(&bob_member).unwrap();
    assert_eq!(append(&mut alice, &add)["t"], "roster.ok");
    founder.roster.apply(&add, Default::default()).unwrap();
    let bob = Founder { key: bob, team: founder.team, roster: Roster::new() };
    let mut link = live(&world, &bob);

    let pen = Author::new(&founder.key, &founder.roster, now()).unwrap();
    let remove = pen.member_remove(&bob.key.machine()).unwrap();
    assert_eq!(append(&mut alice, &remove)["t"], "roster.ok");
    // Online: its own removal, signed, then the close.
    let last = loop {
        let frame = link.frame().unwrap();
        if frame["t"] == "roster" {
            break frame;
        }
    };
    assert_eq!(last["entry"]["op"], "member.remove");
    assert_eq!(link.frame().unwrap_err(), 4003);
    // Afterwards: refused at hello.
    let mut link = Link::open(&world);
    let hello = link.hello_text(&bob, &link.nonce, now());
    link.say(hello);
    link.ends("not_member", 4001);
}

/// A daemon whose machine is removed while it runs stops acting for it, and says so.
#[test]
fn a_removed_daemon_knows_it() {
    let mut world = World::new();
    world.pair();
    world.cli_json("alice", &["team", "remove", "bob@desk", "--yes"]);
    wait("bob's machine to see its removal", || {
        let device = world.cli_json("bob", &["identity", "show"]);
        (device["binding"] == "removed").then_some(())
    });
    let output = world.cli("bob", &["send", "alice/cli@laptop", "still here"]);
    assert!(!output.status.success());
    std::thread::sleep(Duration::from_millis(100));
    assert!(world.daemon("bob").is_running());
}
