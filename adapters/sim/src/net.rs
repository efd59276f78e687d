//! Connections between the daemons and the relay, and what is on its way on them.

use crate::json::json;
use crate::world::{RelayNode, World};
use messaging_machines::daemon::io::{Effect, Event, LinkEnd, LinkId, WakeEnd};
use messaging_machines::relay::io as relay_io;
use messaging_proto::frame::Received;
use messaging_proto::limits::FRAME_BYTES;
use relay_io::ConnId;
use std::collections::{BTreeMap, VecDeque};

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

/// The open connections and what is on its way.
#[derive(Default)]
pub(crate) struct Net {
    open: BTreeMap<ConnId, (usize, LinkId)>,
    way: VecDeque<Packet>,
    conns: u64,
}

impl Net {
    fn conn(&self, number: usize, link: LinkId) -> Option<ConnId> {
        self.open.iter().find(|(_, end)| **end == (number, link)).map(|(conn, _)| *conn)
    }

    /// Cuts every connection: the daemons' ends. The relay hears of it later.
    pub(crate) fn drop_all(&mut self) -> Vec<(usize, LinkId)> {
        self.way.clear();
        let open = std::mem::take(&mut self.open);
        self.way.extend(open.keys().map(|conn| Packet::UpClose { conn: *conn }));
        open.into_values().collect()
    }

    /// Cuts one daemon's connections.
    pub(crate) fn drop_node(&mut self, number: usize) -> Vec<(usize, LinkId)> {
        let cut: Vec<ConnId> =
            self.open.iter().filter(|(_, end)| end.0 == number).map(|(conn, _)| *conn).collect();
        self.way.retain(|packet| match packet {
            Packet::Down { number: to, .. }
            | Packet::Dial { number: to, .. }
            | Packet::DownClose { number: to, .. } => *to != number,
            Packet::Up { .. } | Packet::UpClose { .. } | Packet::Drained { .. } => true,
        });
        cut.into_iter()
            .filter_map(|conn| {
                self.way.push_back(Packet::UpClose { conn });
                self.open.remove(&conn)
            })
            .collect()
    }

    /// Forgets what is on its way: the relay that would hear of it is gone.
    pub(crate) fn clear(&mut self) {
        self.way.clear();
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
        let Some(packet) = self.net.way.pop_front() else { return false };
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
                    self.net.way.push_back(Packet::UpClose { conn });
                    self.event(number, Event::LinkClosed { link, why: LinkEnd::Closed(code) });
                }
            }
            Packet::UpClose { conn } => self.relay_event(relay_io::Event::Closed { conn }),
            Packet::Drained { conn } => self.relay_event(relay_io::Event::Drained { conn }),
        }
        true
    }

    fn arrive(&mut self, conn: ConnId, text: String) {
        let append = text.contains(r#""t":"roster.append""#);
        let frame = Box::new(Received::parse(text.into_bytes(), FRAME_BYTES));
        self.relay_event(relay_io::Event::Frame { conn, frame });
        if append && self.relay.cut_after_append > 0 {
            self.relay.cut_after_append -= 1;
            if let Some((number, link)) = self.net.open.remove(&conn) {
                self.net
                    .way
                    .retain(|packet| !matches!(packet, Packet::Down { number: to, .. } if *to == number));
                self.net.way.push_back(Packet::UpClose { conn });
                self.link_lost(number, link);
            }
        }
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
            Effect::Dial { link, .. } => self.net.way.push_back(Packet::Dial { number, link }),
            Effect::LinkSend { link, text } => {
                if let Some(conn) = self.net.conn(number, link) {
                    self.net.way.push_back(Packet::Up { conn, text });
                }
            }
            Effect::Hangup { link, .. } => {
                if let Some(conn) = self.net.conn(number, link) {
                    self.net.open.remove(&conn);
                    self.net.way.push_back(Packet::UpClose { conn });
                }
                self.net.way.retain(
                    |packet| !matches!(packet, Packet::Dial { number: n, link: l } if (*n, *l) == (number, link)),
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
                    let text = self.relay.passes(number, text);
                    if let Some(text) = text {
                        self.net.way.push_back(Packet::Down { number, link, text });
                    }
                }
            }
            relay_io::Effect::Mark { conn } => self.net.way.push_back(Packet::Drained { conn }),
            relay_io::Effect::Close { conn, code } => match self.net.open.get(&conn).copied() {
                Some((number, link)) => {
                    self.net.way.push_back(Packet::DownClose { number, link, code });
                }
                None => self.net.way.push_back(Packet::UpClose { conn }),
            },
            relay_io::Effect::Authenticated { .. }
            | relay_io::Effect::Count(_)
            | relay_io::Effect::Log(_)
            | relay_io::Effect::Stopped => {}
        }
    }
}
