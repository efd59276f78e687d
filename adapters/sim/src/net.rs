//! Connections between the daemons and the relay, and what is on its way on them.

use crate::json::{at, json, text as text_at};
use crate::world::{RelayNode, World};
use messaging_machines::daemon::io::{Effect, Event, LinkEnd, LinkId, WakeEnd};
use messaging_machines::relay::io as relay_io;
use messaging_proto::frame::Received;
use messaging_proto::hash::RealmId;
use messaging_proto::json::canonicalize;
use messaging_proto::key::MachineId;
use messaging_proto::limits::FRAME_BYTES;
use relay_io::ConnId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Something on its way.
enum Packet {
    /// A frame to a daemon.
    Down { number: usize, link: LinkId, text: String },
    /// A frame to the relay.
    Up { conn: ConnId, text: String },
    /// A daemon's dial.
    Dial { number: usize, link: LinkId },
    /// The relay closed.
    DownClose { number: usize, link: LinkId, code: u16 },
    /// The relay hears that a connection ended.
    UpClose { conn: ConnId },
    /// Everything sent on the connection left.
    Drained { conn: ConnId },
}

/// How many frames to each daemon are remembered, to be said again.
const HISTORY: usize = 64;

/// The open connections and what is on its way.
#[derive(Default)]
pub(crate) struct Net {
    open: BTreeMap<ConnId, (usize, LinkId)>,
    way: VecDeque<(u64, Packet)>,
    /// When the last thing on the way from and to a daemon arrives: nothing overtakes it.
    last: BTreeMap<(usize, bool), u64>,
    /// What was sent to each daemon lately, over all of its connections.
    history: BTreeMap<usize, VecDeque<String>>,
    /// The last envelope each daemon sent.
    sent: BTreeMap<usize, String>,
    /// Connections that both ends believe in and nothing passes on any more.
    dead: BTreeSet<ConnId>,
    /// A frame that waits to be overtaken.
    aside: BTreeMap<usize, Packet>,
    /// Authenticated connections, as the relay's adapter knows them.
    known: BTreeMap<ConnId, (RealmId, MachineId)>,
    conns: u64,
}

impl Net {
    fn conn(&self, number: usize, link: LinkId) -> Option<ConnId> {
        self.open.iter().find(|(_, end)| **end == (number, link)).map(|(conn, _)| *conn)
    }

    /// Cuts every connection: the daemons' ends. The relay hears of it later.
    pub(crate) fn drop_all(&mut self) -> Vec<(usize, LinkId)> {
        self.way.clear();
        self.last.clear();
        self.aside.clear();
        self.known.clear();
        let open = std::mem::take(&mut self.open);
        self.way.extend(open.keys().map(|conn| (0, Packet::UpClose { conn: *conn })));
        open.into_values().collect()
    }

    /// Cuts one daemon's connections.
    pub(crate) fn drop_node(&mut self, number: usize) -> Vec<(usize, LinkId)> {
        let cut: Vec<ConnId> =
            self.open.iter().filter(|(_, end)| end.0 == number).map(|(conn, _)| *conn).collect();
        self.aside.remove(&number);
        self.way.retain(|(_, packet)| match packet {
            Packet::Down { number: to, .. }
            | Packet::Dial { number: to, .. }
            | Packet::DownClose { number: to, .. } => *to != number,
            Packet::Up { .. } | Packet::UpClose { .. } | Packet::Drained { .. } => true,
        });
        cut.into_iter()
            .filter_map(|conn| {
                self.close_up(conn);
                self.open.remove(&conn)
            })
            .collect()
    }

    /// Forgets what is on its way: the relay that would hear of it is gone.
    pub(crate) fn clear(&mut self) {
        self.way.clear();
    }

    /// The relay hears at once that a connection ended.
    fn close_up(&mut self, conn: ConnId) {
        self.known.remove(&conn);
        // After what was sent before it.
        let sent = self
            .way
            .iter()
            .filter(|(_, packet)| matches!(packet, Packet::Up { conn: of, .. } if *of == conn));
        let due = sent.map(|(due, _)| *due).max().unwrap_or(0);
        self.way.push_back((due, Packet::UpClose { conn }));
    }

    /// When the next thing arrives.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.way.iter().map(|(due, _)| *due).min()
    }

    /// A daemon died: its connections are gone, and nobody tells it.
    pub(crate) fn forget_node(&mut self, number: usize) {
        self.drop_node(number);
    }
}

impl RelayNode {
    /// What arrives of a frame to a daemon.
    fn passes(&self, number: usize, text: String) -> Option<String> {
        let swallowed = self.swallow.is_some_and(|(to, what)| to == number && text.contains(what));
        let text = self.rewrite.iter().fold(text, |text, (from, to)| text.replace(from, to));
        (!swallowed && !self.mute).then_some(text)
    }
}

impl World {
    /// The relay's socket closes a daemon's connection.
    pub fn close_link(&mut self, number: usize, why: LinkEnd) {
        for (number, link) in self.net.drop_node(number) {
            self.event(number, Event::LinkClosed { link, why: why.clone() });
        }
    }

    /// Whether a daemon has a connection.
    pub fn connected(&self, number: usize) -> bool {
        self.net.open.values().any(|(to, _)| *to == number)
    }

    /// Whether nothing is wrong between a daemon and the relay, and nothing is on its way between them.
    pub(crate) fn is_undisturbed(&self, number: usize) -> bool {
        let node = &self.nodes[number];
        let conn = self.net.open.iter().find(|(_, end)| end.0 == number).map(|(conn, _)| *conn);
        let sound =
            conn.is_some_and(|conn| self.net.known.contains_key(&conn) && !self.net.dead.contains(&conn));
        let still = [true, false]
            .iter()
            .all(|up| self.net.last.get(&(number, *up)).copied().unwrap_or(0) <= self.mono);
        let fair = node.latency == 0 && node.slow == 0 && node.drop_frames == 0 && !node.swap && !node.silent;
        self.relay.up && sound && still && fair && !node.crashed && self.relay.swallow.is_none()
    }

    /// Something arrives on a daemon's connection that no honest relay said.
    pub fn say_to(&mut self, number: usize, text: &str) {
        self.say_to_now(number, text);
        self.settle();
    }

    /// The same, while everything else stays on its way.
    pub fn say_to_now(&mut self, number: usize, text: &str) {
        let link = self.net.open.values().find(|(to, _)| *to == number).expect("connected").1;
        let frame = Box::new(Received::parse(text.as_bytes().to_vec(), FRAME_BYTES));
        self.event(number, Event::LinkFrame { link, frame });
    }

    /// One thing that is on its way arrives.
    pub fn one(&mut self) {
        self.deliver_one();
    }

    pub(crate) fn link_lost(&mut self, number: usize, link: LinkId) {
        self.event(number, Event::LinkClosed { link, why: LinkEnd::Lost });
    }

    /// Delivers the oldest thing that is on its way.
    pub(crate) fn deliver_one(&mut self) -> bool {
        if let Some(number) = self.nodes.iter().position(|node| !node.crashed && !node.saved.is_empty())
            && let Some((save, ok)) = self.nodes[number].saved.pop_front()
        {
            self.event(number, Event::Saved { save, ok });
            return true;
        }
        let due = self.net.way.iter().map(|(due, _)| *due).min().filter(|due| *due <= self.mono);
        let place = due.and_then(|due| self.net.way.iter().position(|(at, _)| *at == due));
        let Some((_, packet)) = place.and_then(|place| self.net.way.remove(place)) else { return false };
        match packet {
            Packet::Down { number, link, text } => {
                if self.net.conn(number, link).is_some() {
                    let frame = Box::new(Received::parse(text.into_bytes(), FRAME_BYTES));
                    self.event(number, Event::LinkFrame { link, frame });
                }
            }
            Packet::Up { conn, text } => self.arrive(conn, text),
            Packet::Dial { number, link } => self.dial(number, link),
            Packet::DownClose { number, link, code } => {
                if let Some(conn) = self.net.conn(number, link) {
                    self.net.open.remove(&conn);
                    self.net.close_up(conn);
                    self.event(number, Event::LinkClosed { link, why: LinkEnd::Closed(code) });
                }
            }
            Packet::UpClose { conn } => {
                self.net.way.retain(|(_, packet)| {
                    !matches!(packet, Packet::Drained { conn: of } | Packet::Up { conn: of, .. } if *of == conn)
                });
                self.relay_event(relay_io::Event::Closed { conn });
            }
            Packet::Drained { conn } => self.relay_event(relay_io::Event::Drained { conn }),
        }
        true
    }

    /// When something that leaves now arrives: after the way's latency, and after what left before it.
    fn due(&mut self, number: usize, up: bool) -> u64 {
        let latency = self.nodes[number].latency;
        let last = self.net.last.get(&(number, up)).copied().unwrap_or(0);
        // What is due this very millisecond may still be on its way.
        if latency == 0 && last < self.mono {
            // Without latencies everything arrives in the order it left, whoever sent it.
            return 0;
        }
        let due = last.max(self.mono + latency);
        self.net.last.insert((number, up), due);
        due
    }

    /// Sends a frame to a daemon, as its relay lets it.
    fn down(&mut self, number: usize, link: LinkId, text: String) {
        let history = self.net.history.entry(number).or_default();
        history.push_back(text.clone());
        if history.len() > HISTORY {
            history.pop_front();
        }
        if self.nodes[number].silent
            || self.net.conn(number, link).is_some_and(|conn| self.net.dead.contains(&conn))
        {
            return;
        }
        let node = &mut self.nodes[number];
        if node.drop_frames > 0 {
            node.drop_frames -= 1;
            return;
        }
        let packet = Packet::Down { number, link, text };
        if node.swap {
            node.swap = false;
            self.net.aside.insert(number, packet);
            return;
        }
        let due = self.due(number, false);
        self.net.way.push_back((due, packet));
        if let Some(packet) = self.net.aside.remove(&number) {
            self.net.way.push_back((due, packet));
        }
    }

    /// Something between a daemon and the relay forgets its connection: both ends believe in it, and nothing passes.
    pub fn deaden(&mut self, number: usize) {
        let of = self.net.open.iter().filter(|(_, end)| end.0 == number).map(|(conn, _)| *conn);
        let of: Vec<ConnId> = of.collect();
        self.net.dead.extend(of);
    }

    /// Silence ends: another connection works. The one that was silent lost what was said on it, so nothing passes on it any
    /// more either, as TCP promises.
    pub fn end_silence(&mut self, number: usize) {
        if std::mem::take(&mut self.nodes[number].silent) {
            self.deaden(number);
        }
    }

    /// A relay that replays: a frame it sent to a daemon earlier, perhaps on another connection, arrives again. With
    /// `of` it is the latest that holds this text.
    pub fn replay_to(&mut self, number: usize, back: usize, of: &str) {
        let history = self.net.history.get(&number).into_iter().flatten().rev();
        let text = history.filter(|text| text.contains(of)).nth(back).cloned();
        if let Some(text) = text.filter(|_| self.connected(number) && !self.nodes[number].silent) {
            self.say_to_now(number, &text);
        }
    }

    /// The frame of the last envelope that a daemon sent.
    #[must_use]
    pub fn last_sent(&self, number: usize) -> Option<&str> {
        self.net.sent.get(&number).map(String::as_str)
    }

    /// A member whose program is not ours: its connection says this text to the relay.
    pub fn say_up(&mut self, number: usize, text: &str) {
        let conn = self.net.open.iter().find(|(_, end)| end.0 == number).map(|(conn, _)| *conn);
        if let Some(conn) = conn.filter(|_| self.relay.up) {
            self.arrive(conn, text.to_owned());
        }
    }

    /// The relay's store failed: its machine is gone, a new one is built over what is durable, and the connections
    /// that were authenticated live on.
    pub(crate) fn resume_relay(&mut self) {
        self.relay_event(relay_io::Event::Start);
        let open: Vec<_> = self.net.open.iter().map(|(conn, end)| (*conn, *end)).collect();
        for (conn, (number, link)) in open {
            match self.net.known.get(&conn).copied() {
                Some((team, machine)) => {
                    let address = format!("10.0.0.{number}");
                    self.relay_event(relay_io::Event::Resumed { conn, address, team, machine });
                }
                None => {
                    self.net.open.remove(&conn);
                    self.link_lost(number, link);
                }
            }
        }
        self.net.way.retain(|(_, packet)| {
            !matches!(packet, Packet::UpClose { conn } | Packet::Drained { conn } if !self.net.known.contains_key(conn))
        });
    }

    fn arrive(&mut self, conn: ConnId, text: String) {
        let append = text.contains(r#""t":"roster.append""#);
        if append && self.forked(conn, &text) {
            return;
        }
        let frame = Box::new(Received::parse(text.into_bytes(), FRAME_BYTES));
        self.relay_event(relay_io::Event::Frame { conn, frame });
        if append && self.relay.cut_after_append > 0 {
            self.relay.cut_after_append -= 1;
            if let Some((number, link)) = self.net.open.remove(&conn) {
                self.net.way.retain(
                    |(_, packet)| !matches!(packet, Packet::Down { number: to, .. } if *to == number),
                );
                self.net.close_up(conn);
                self.link_lost(number, link);
            }
        }
    }

    /// A relay that forks takes an append for itself: [`RelayNode::fork_to`].
    fn forked(&mut self, conn: ConnId, append: &str) -> bool {
        let author = self.net.open.get(&conn).copied();
        let (Some(to), Some((author, link))) = (self.relay.fork_to, author) else { return false };
        let shown = self.net.open.values().find(|(number, _)| *number == to).copied();
        let (Some((_, shown)), true) = (shown, author != to) else { return false };
        self.relay.fork_to = None;
        self.relay.forked.insert(to);
        let append = json(append);
        let entry = canonicalize(at(&append, "entry")).expect("it came off the wire");
        self.down(to, shown, format!(r#"{{"t":"roster","entry":{entry}}}"#));
        let nack = format!(r#"{{"t":"nack","id":"{}","code":"roster_conflict"}}"#, text_at(&append, "req"));
        // Later, so that the entry signed anew has another time.
        self.net.way.push_back((self.mono + 5, Packet::Down { number: author, link, text: nack }));
        true
    }

    fn dial(&mut self, number: usize, link: LinkId) {
        if !self.relay.up || !self.nodes[number].reaches {
            let why = LinkEnd::Unreachable("connection refused".to_owned());
            self.event(number, Event::LinkClosed { link, why });
            return;
        }
        self.net.conns += 1;
        let conn = ConnId(self.net.conns);
        self.net.open.insert(conn, (number, link));
        self.event(number, Event::LinkOpened { link });
        self.relay_event(relay_io::Event::Opened { conn, address: format!("10.0.0.{number}") });
    }

    /// Plays the adapter of a daemon.
    pub(crate) fn perform(&mut self, number: usize, effect: Effect) {
        match effect {
            Effect::Dial { link, .. } => {
                let due = self.due(number, true);
                self.net.way.push_back((due, Packet::Dial { number, link }));
            }
            Effect::LinkSend { link, text } => {
                if text.contains(r#""t":"send""#) {
                    self.net.sent.insert(number, text.clone());
                }
                if let Some(conn) = self.net.conn(number, link)
                    && !self.nodes[number].silent
                    && !self.net.dead.contains(&conn)
                {
                    let due = self.due(number, true);
                    self.net.way.push_back((due, Packet::Up { conn, text }));
                }
            }
            Effect::Hangup { link, .. } => {
                if let Some(conn) = self.net.conn(number, link) {
                    self.net.open.remove(&conn);
                    self.net.close_up(conn);
                }
                self.net.way.retain(
                    |(_, packet)| !matches!(packet, Packet::Dial { number: n, link: l } if (*n, *l) == (number, link)),
                );
            }
            Effect::IpcSend { conn, line } => {
                let line = json(&line);
                self.nodes[number].lines.push((conn, line));
            }
            Effect::IpcClose { conn } => {
                self.nodes[number].closed.push(conn);
                self.event(number, Event::IpcClosed { conn });
            }
            Effect::Save { save, file } => self.nodes[number].save(save, file),
            // Nothing is copied and nobody is woken here.
            Effect::Snapshot { copy, .. } => {
                self.event(number, Event::Snapshot { copy, folder: String::new(), files: None });
            }
            Effect::Wake { wake, .. } => {
                self.event(number, Event::WakeEnded { wake, end: WakeEnd::Refused });
            }
            Effect::DropSnapshot | Effect::Log(_) => {}
            Effect::Stopped => self.nodes[number].stopped = true,
        }
    }

    /// Plays the adapter of the relay.
    pub(crate) fn perform_relay(&mut self, effect: relay_io::Effect) {
        match effect {
            relay_io::Effect::Send { conn, frame } => {
                if let Some((number, link)) = self.net.open.get(&conn).copied() {
                    let text = frame.to_text();
                    if let Some(text) = self.relay.passes(number, text) {
                        self.down(number, link, text);
                    }
                }
            }
            relay_io::Effect::Mark { conn } => {
                let slow = self.net.open.get(&conn).map_or(0, |(number, _)| self.nodes[*number].slow);
                let due = if slow == 0 { 0 } else { self.mono + slow };
                self.net.way.push_back((due, Packet::Drained { conn }));
            }
            relay_io::Effect::Close { conn, code } => match self.net.open.get(&conn).copied() {
                Some((number, link)) if !self.nodes[number].silent && !self.net.dead.contains(&conn) => {
                    let due = self.due(number, false);
                    self.net.way.push_back((due, Packet::DownClose { number, link, code }));
                }
                Some(_) | None => self.net.close_up(conn),
            },
            relay_io::Effect::Authenticated { conn, team, machine } => {
                self.net.known.insert(conn, (team, machine));
            }
            relay_io::Effect::Count(_) | relay_io::Effect::Log(_) | relay_io::Effect::Stopped => {}
        }
    }
}
