//! A member of the team with keys of its own and no daemon: it says to the relay whatever it likes.

use crate::world::{PATIENCE, World};
use messaging_proto::b64u;
use messaging_proto::domain::Domain;
use messaging_proto::envelope::{Inspected, open_envelope};
use messaging_proto::frame::{ClientOutbound, HelloClaim, Nonce, sign_hello};
use messaging_proto::hash::sha256;
use messaging_proto::json::{Value as Wire, canonicalize, parse_wire};
use messaging_proto::key::{EncKey, EncSecret, SigningKey};
use messaging_proto::roster::{Author, Roster};
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce as SealNonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::protocol::WebSocket;
use tungstenite::{Error, Message, client::IntoClientRequest};

/// A word in every text it writes: no log and no error may hold it.
pub(crate) const MARK: &str = "PEERTEXT";

/// How a `serde_json` value is a wire value.
pub(crate) fn wire(value: &Value) -> Wire {
    parse_wire(value.to_string().as_bytes(), 1 << 24).unwrap()
}

fn text_of(value: &Value) -> String {
    canonicalize(&wire(value)).unwrap()
}

pub(crate) fn now() -> u64 {
    u64::try_from(std::time::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}

/// What the relay said to an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Relayed,
    Refused(String),
}

/// An envelope to be made.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    /// Members over those of an honest header; `null` takes one away.
    pub(crate) header: Value,
    /// Members over those of the sealed envelope, which is then signed again.
    pub(crate) after: Value,
    /// What is sealed.
    pub(crate) plain: Vec<u8>,
    /// The key it is sealed to, when it is not the recipient's.
    pub(crate) key: Option<EncKey>,
    /// Whether it is signed by nobody's key.
    pub(crate) unsigned: bool,
}

impl Draft {
    fn new(header: Value, plain: Vec<u8>) -> Self {
        Self { header, after: json!({}), plain, key: None, unsigned: false }
    }

    /// Mail or a task request of its session `agent` to bob's `builder`.
    pub(crate) fn mail(payload: &Value) -> Self {
        Self::bytes(payload.to_string())
    }

    /// The same with a plaintext as it stands.
    pub(crate) fn bytes(plain: impl Into<Vec<u8>>) -> Self {
        Self::new(
            json!({"type": "message", "from": {"agent": "agent"}, "to": {"agent": "builder"}}),
            plain.into(),
        )
    }

    /// A message of its person to bob.
    pub(crate) fn line(payload: &Value) -> Self {
        Self::new(json!({"type": "message"}), payload.to_string().into())
    }

    /// An envelope of another type to bob's machine.
    pub(crate) fn of(kind: &str, payload: &Value) -> Self {
        Self::new(json!({"type": kind}), payload.to_string().into())
    }

    pub(crate) fn with(mut self, header: Value) -> Self {
        cover(&mut self.header, &header);
        self
    }

    pub(crate) fn then(mut self, after: Value) -> Self {
        self.after = after;
        self
    }

    pub(crate) fn sealed_to(mut self, key: EncKey) -> Self {
        self.key = Some(key);
        self
    }

    pub(crate) fn unsigned(mut self) -> Self {
        self.unsigned = true;
        self
    }

    pub(crate) fn replying(self, id: &str) -> Self {
        self.with(json!({"replyTo": id}))
    }
}

/// Members of objects over members of objects, `null` among them.
fn cover(into: &mut Value, over: &Value) {
    let (Value::Object(into), Value::Object(over)) = (into, over) else { return };
    for (name, value) in over {
        match into.get_mut(name) {
            Some(there) if there.is_object() && value.is_object() => cover(there, value),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

/// Members of objects over members of objects; `null` takes one away.
fn merge(into: &mut Value, over: &Value) {
    let (Value::Object(into), Value::Object(over)) = (into, over) else { return };
    for (name, value) in over {
        match into.get_mut(name) {
            Some(there) if there.is_object() && value.is_object() => merge(there, value),
            _ if value.is_null() => drop(into.remove(name)),
            _ => drop(into.insert(name.clone(), value.clone())),
        }
    }
}

pub(crate) struct Mallory {
    pub(crate) key: SigningKey,
    pub(crate) enc: EncSecret,
    pub(crate) roster: Roster,
    socket: Option<WebSocket<TcpStream>>,
    url: (String, u16),
    relay: String,
    drawn: u64,
    /// The receipts it got, by the envelope each is for.
    receipts: BTreeMap<String, Vec<(String, Option<String>)>>,
    /// Everything else it was sent: headers and payloads.
    pub(crate) got: Vec<(Value, Value)>,
    /// The last nack of each id.
    answers: BTreeMap<String, Said>,
}

impl Mallory {
    /// Joins the team that `alice` administers, and connects.
    pub(crate) fn join(world: &World) -> Self {
        let mut mallory = Self {
            key: SigningKey::from_seed([66; 32]),
            enc: EncSecret::from_bytes([67; 32]),
            roster: Roster::new(),
            socket: None,
            url: (world.relay_url(), world.port),
            relay: String::new(),
            drawn: 0,
            receipts: BTreeMap::new(),
            got: Vec::new(),
            answers: BTreeMap::new(),
        };
        let (machine, enc) = (mallory.key.machine().to_string(), mallory.enc.public().to_string());
        let add = json!({"machine": machine, "enc": enc, "person": "mallory", "label": "evil"});
        let alice = world.admin("alice");
        let info = alice.call("team.info", json!({})).unwrap();
        alice.call("team.add", add).unwrap();
        mallory.connect(info["team"].as_str().unwrap());
        mallory
    }

    fn connect(&mut self, team: &str) {
        let mut request = self.url.0.as_str().into_client_request().unwrap();
        request.headers_mut().insert("sec-websocket-protocol", "messaging.relay.v1".parse().unwrap());
        let stream = TcpStream::connect(("127.0.0.1", self.url.1)).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        // The handshake needs its answer whole.
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let (socket, _) = tungstenite::client(request, stream).unwrap();
        socket.get_ref().set_read_timeout(Some(Duration::from_millis(10))).unwrap();
        self.socket = Some(socket);
        let challenge = self.until(|frame| frame["t"] == "challenge");
        self.relay = challenge["relay"].as_str().unwrap().to_owned();
        let nonce = Nonce::parse(challenge["nonce"].as_str().unwrap()).unwrap();
        let team = messaging_proto::hash::Hash::parse(team).unwrap();
        let claim = HelloClaim { relay: &self.relay, nonce: &nonce, team: &team, ts: Wall(now()) };
        let hello = ClientOutbound::Hello(sign_hello(&self.key, &claim).unwrap()).to_text();
        self.say(&hello);
        self.until(|frame| frame["t"] == "welcome");
        self.sync();
    }

    /// Reads the whole roster again.
    pub(crate) fn sync(&mut self) {
        self.say(r#"{"t":"roster.sync","req":"s","after":-1}"#);
        let page = self.until(|frame| frame["t"] == "roster.entries");
        let entries: Vec<Wire> = page["entries"].as_array().unwrap().iter().map(wire).collect();
        self.roster = Roster::from_entries(&entries).unwrap();
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.socket.as_mut().unwrap().send(Message::text(text)).unwrap();
    }

    /// Reads what came within a few milliseconds. Whether anything did.
    fn read(&mut self) -> Option<Value> {
        match self.socket.as_mut().unwrap().read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
            Ok(Message::Close(close)) => panic!("the relay closed the link of a member: {close:?}"),
            Ok(_) => None,
            Err(Error::Io(error))
                if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) =>
            {
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(frame) = self.read() {
                if is(&frame) {
                    return frame;
                }
                self.hear(&frame);
            }
        }
        panic!("the relay did not answer");
    }

    fn hear(&mut self, frame: &Value) {
        let id = frame["id"].as_str().unwrap_or_default().to_owned();
        match frame["t"].as_str().unwrap() {
            "ack" => drop(self.answers.insert(id, Said::Relayed)),
            "nack" => {
                let code = frame["code"].as_str().unwrap().to_owned();
                self.answers.insert(id, Said::Refused(code));
            }
            "deliver" => self.take(&frame["env"]),
            "ping" => self.say(&json!({"t": "pong", "n": frame["n"]}).to_string().replace(",\"n\":null", "")),
            _ => {}
        }
    }

    fn take(&mut self, env: &Value) {
        if env["type"] == "presence" {
            return;
        }
        let ack = json!({"t": "recv.ack", "from": env["from"]["device"], "id": env["id"]});
        self.say(&ack.to_string());
        let inspected = Inspected::new(wire(env));
        let Ok(payload) = open_envelope(&inspected, &[&self.enc]) else { return };
        let payload: Value = serde_json::from_str(&canonicalize(payload.raw()).unwrap()).unwrap();
        if env["type"] == "receipt" {
            let reached = (
                payload["stage"].as_str().unwrap().to_owned(),
                payload["code"].as_str().map(ToOwned::to_owned),
            );
            let of = payload["ref"].as_str().unwrap().to_owned();
            self.receipts.entry(of).or_default().push(reached);
        } else {
            self.got.push((env.clone(), payload));
        }
    }

    /// 32 bytes nobody drew before.
    pub(crate) fn draw(&mut self) -> [u8; 32] {
        self.drawn += 1;
        sha256(&[&self.drawn.to_be_bytes()[..], b"mallory"].concat()).0
    }

    pub(crate) fn ulid(&mut self) -> String {
        let drawn = self.draw();
        Ulid::new(Wall(now()), drawn[..10].try_into().unwrap()).to_string()
    }

    fn member(&self, person: &str) -> &messaging_proto::roster::Member {
        self.roster.members().find(|member| member.person.as_str() == person).unwrap()
    }

    /// The machine of a person.
    pub(crate) fn machine(&self, person: &str) -> String {
        self.member(person).machine.to_string()
    }

    /// The text of an envelope, and its id. It is to bob unless its header says otherwise.
    pub(crate) fn make(&mut self, draft: &Draft) -> (String, String) {
        let ephemeral = EncSecret::from_bytes(self.draw());
        let nonce: [u8; 12] = self.draw()[..12].try_into().unwrap();
        let head = self.roster.head().unwrap();
        let ts = now();
        let presence = draft.header["type"] == "presence";
        let mut header = json!({
            "v": "messaging/1", "id": self.ulid(), "realm": self.roster.team().unwrap().to_string(),
            "anchor": {"kind": "roster", "seq": head.seq, "hash": head.hash.to_string()},
            "from": {"person": "mallory", "device": self.key.machine().to_string()},
            "ts": ts, "exp": ts + 600_000,
        });
        let bob = self.member("bob");
        let sealing = json!({
            "to": {"person": "bob", "device": bob.machine.to_string()}, "class": "contact", "enc": "seal",
            "epk": ephemeral.public().to_string(), "nonce": b64u::encode(&nonce),
        });
        let key = draft.key.unwrap_or(bob.enc);
        merge(&mut header, &if presence { json!({"to": {"team": true}, "enc": "none"}) } else { sealing });
        merge(&mut header, &draft.header);
        let body = if presence {
            serde_json::from_slice(&draft.plain).unwrap()
        } else {
            json!(b64u::encode(&seal(&ephemeral, &key, nonce, &text_of(&header), &draft.plain)))
        };
        let mut envelope = header;
        envelope["body"] = body;
        merge(&mut envelope, &draft.after);
        let sig = self.key.sign_value(Domain::Envelope, &wire(&envelope)).unwrap().to_string();
        envelope["sig"] = if draft.unsigned { json!("A".repeat(86)) } else { json!(sig) };
        (envelope["id"].as_str().unwrap_or_default().to_owned(), text_of(&envelope))
    }

    /// Sends an envelope's text and does not wait for what the relay says.
    pub(crate) fn push(&mut self, envelope: &str) {
        self.say(&format!(r#"{{"t":"send","env":{envelope}}}"#));
        while let Some(frame) = self.read_now() {
            self.hear(&frame);
        }
    }

    fn read_now(&mut self) -> Option<Value> {
        let quick = |mallory: &Self, time| {
            mallory.socket.as_ref().unwrap().get_ref().set_read_timeout(Some(time)).unwrap();
        };
        quick(self, Duration::from_millis(1));
        let frame = self.read();
        quick(self, Duration::from_millis(10));
        frame
    }

    /// Sends an envelope's text. What the relay says to it.
    pub(crate) fn send(&mut self, id: &str, envelope: &str) -> Said {
        self.answers.remove(id);
        self.say(&format!(r#"{{"t":"send","env":{envelope}}}"#));
        self.answer(id)
    }

    fn answer(&mut self, id: &str) -> Said {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(said) = self.answers.remove(id) {
                return said;
            }
            if let Some(frame) = self.read() {
                self.hear(&frame);
            }
        }
        panic!("the relay said nothing to {id}");
    }

    /// Sends an envelope that the relay takes. Its id.
    pub(crate) fn relayed(&mut self, draft: &Draft) -> String {
        let (id, text) = self.make(draft);
        assert_eq!(self.send(&id, &text), Said::Relayed);
        id
    }

    /// Says a presence.
    pub(crate) fn presence(&mut self, payload: &Value) {
        let (_, text) = self.make(&Draft::of("presence", payload));
        self.say(&format!(r#"{{"t":"presence","env":{text}}}"#));
    }

    /// Sends what is answered and changes nothing, and waits for the answer: what was sent before it was decided.
    pub(crate) fn settle(&mut self) {
        let id = self.ulid();
        let wish = json!({
            "kind": "message", "conv": {"kind": "card", "what": "get"},
            "message": {"messageId": id, "role": "ROLE_USER", "parts": [{"data": {"get": true}}]},
        });
        let id = self.relayed(&Draft::line(&wish));
        assert_eq!(self.verdict(&id), ("delivered".to_owned(), None));
    }

    /// What bob said of an envelope last, once he did.
    pub(crate) fn verdict(&mut self, id: &str) -> (String, Option<String>) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(said) = self.said(id).last() {
                return said.clone();
            }
            if let Some(frame) = self.read() {
                self.hear(&frame);
            }
        }
        panic!("nothing was said of {id}");
    }

    /// What bob said of an envelope so far.
    pub(crate) fn said(&self, id: &str) -> &[(String, Option<String>)] {
        self.receipts.get(id).map_or(&[], Vec::as_slice)
    }

    /// A delegation grant of its own machine.
    pub(crate) fn grant(&self, members: &Value) -> Value {
        let ts = now();
        let mut grant = json!({
            "realm": self.roster.team().unwrap().to_string(), "from": "mallory/agent@evil",
            "to": "bob/builder@desk", "by": self.key.machine().to_string(), "ts": ts, "exp": ts + 600_000,
            "maxDepth": 4,
        });
        merge(&mut grant, members);
        let sig = self.key.sign_value(Domain::Delegation, &wire(&grant)).unwrap();
        grant["sig"] = json!(sig.to_string());
        grant
    }

    /// Publishes a new encryption key of its own.
    pub(crate) fn rekey(&mut self) {
        let enc = EncSecret::from_bytes(self.draw());
        let pen = Author::new(&self.key, &self.roster, Wall(now())).unwrap();
        let entry = pen.member_rekey(&self.key.machine(), &enc.public()).unwrap();
        let text = canonicalize(&entry).unwrap();
        self.say(&format!(r#"{{"t":"roster.append","req":"k","entry":{text}}}"#));
        let said = self.until(|frame| frame["req"] == "k" || (frame["t"] == "nack" && frame["id"] == "k"));
        assert_eq!(said["t"], "roster.ok");
        self.roster.apply(&entry, Default::default()).unwrap();
        self.enc = enc;
    }
}

/// A seal made without this project's code for sealing, over any bytes.
fn seal(ephemeral: &EncSecret, to: &EncKey, nonce: [u8; 12], aad: &str, plain: &[u8]) -> Vec<u8> {
    let shared = ephemeral.agree(to).unwrap();
    let salt = [ephemeral.public().as_bytes().as_slice(), to.as_bytes()].concat();
    let derived = Salt::new(HKDF_SHA256, &salt).extract(&*shared);
    let key = UnboundKey::from(derived.expand(&[b"messaging/1/seal"], &AES_256_GCM).unwrap());
    let mut body = plain.to_vec();
    let nonce = SealNonce::assume_unique_for_key(nonce);
    LessSafeKey::new(key).seal_in_place_append_tag(nonce, Aad::from(aad.as_bytes()), &mut body).unwrap();
    body
}

/// An object of these members over an empty one.
pub(crate) fn object(members: &[(&str, Value)]) -> Value {
    Value::Object(
        members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Map<_, _>>(),
    )
}
