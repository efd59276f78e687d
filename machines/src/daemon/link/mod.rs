//! The relay link (`messaging/1 §7`; `contract wire-core §7`): one connection at a time, dialled while there is
//! something to connect for.
//!
//! A machine of a team says `hello` and is welcomed; before there is a team, the team role's errand uses the
//! connection with the frames that come before a `hello`. Nothing here is durable: after a crash the link is
//! dialled anew.

mod backlog;
mod backoff;
mod phase;
mod state;

pub use state::{LinkPhase, LinkState, Report};

use super::ctx::{Ctx, Note, Role};
use super::io::{Effect, Level, LinkEnd, LinkId};
use crate::machine::Label;
use crate::store::StoreDown;
use backlog::{Backlog, Next};
use backoff::Backoff;
use messaging_proto::Code;
use messaging_proto::frame::{
    ClientOutbound, HelloClaim, Nonce, PROTO, Parsed, Received, RelayInbound, sign_hello,
};
use messaging_proto::relay_url::{RelayUrl, relay_origin};
use messaging_proto::time::Mono;
use messaging_proto::ulid::Ulid;
use phase::{DEAD_MS, Heard, Phase, Purpose};
use std::sync::Arc;

/// From dialling to an open WebSocket.
const DIAL_MS: u64 = 30_000;
/// From an open WebSocket to its challenge, and from `hello` to its answer.
const ANSWER_MS: u64 = 10_000;
/// A connection that lived this long was a good one: the backoff begins anew.
const GOOD_MS: u64 = 10_000;

/// Longer ids of another relay are not repeated.
const ID_BYTES: usize = 300;

/// WebSocket close: done with it.
const CLOSE_DONE: u16 = 1000;
/// WebSocket close: the relay broke the protocol.
const CLOSE_PROTOCOL: u16 = 4002;
/// The relay closed: another connection of this machine took over.
const REPLACED: u16 = 4004;
/// The relay closed: it says this machine was removed.
const REMOVED: u16 = 4003;

/// The link role.
#[derive(Debug)]
pub struct Link {
    phase: Phase,
    backoff: Backoff,
    next: u64,
    errand: Option<RelayUrl>,
    /// What waited at the relay, until it is read.
    backlog: Option<Backlog>,
    /// What was last logged as the end of a connection.
    warned: Option<&'static str>,
    stopping: bool,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            phase: Phase::Idle,
            backoff: Backoff::default(),
            next: 0,
            errand: None,
            backlog: None,
            warned: None,
            stopping: false,
        }
    }
}

impl Link {
    /// The WebSocket of this link is open.
    pub fn opened(&mut self, cx: &mut Ctx<'_, '_>, id: LinkId) {
        if let Phase::Dialing { link, url, purpose, .. } = &self.phase
            && *link == id
        {
            self.phase = Phase::Opened { link: id, url: url.clone(), purpose: *purpose, since: cx.mono() };
        }
    }

    /// A message arrived.
    pub fn frame(&mut self, cx: &mut Ctx<'_, '_>, id: LinkId, received: Received<RelayInbound>) {
        if self.current() != Some(id) {
            return;
        }
        let now = cx.mono();
        if let Phase::Errand { heard, .. } | Phase::Welcomed { heard, .. } = &mut self.phase {
            *heard = Heard::now(now);
        }
        match received.parsed {
            Parsed::Frame(RelayInbound::Ping { n }) => {
                say(cx, id, &ClientOutbound::Pong { n });
            }
            Parsed::Frame(RelayInbound::Pong { n }) => self.answered(cx, n),
            Parsed::Unknown | Parsed::BadShape { .. } => {}
            Parsed::Frame(frame) => self.heard(cx, id, frame),
            Parsed::Malformed => self.drop_link(cx, CLOSE_PROTOCOL, Report::Protocol),
        }
    }

    /// The link ended, or could not be made.
    pub fn closed(&mut self, cx: &mut Ctx<'_, '_>, id: LinkId, why: &LinkEnd) {
        if self.current() != Some(id) {
            return;
        }
        let report = match why {
            LinkEnd::Unreachable(words) => Report::Unreachable(words.clone()),
            LinkEnd::Lost => Report::Lost,
            // §7 "Removal": a hint; only the verified roster stops this machine.
            LinkEnd::Closed(REMOVED) => Report::SaidRemoved,
            LinkEnd::Closed(REPLACED) => Report::Replaced,
            LinkEnd::Closed(code) => Report::Closed(*code),
        };
        self.lost(cx, report);
    }

    fn heard(&mut self, cx: &mut Ctx<'_, '_>, id: LinkId, frame: RelayInbound) {
        match (&self.phase, frame) {
            (Phase::Opened { url, purpose, .. }, RelayInbound::Challenge { proto, relay, nonce }) => {
                // §7 "Relay id": byte for byte, so that a relay cannot pass a hello on to another.
                if proto != PROTO {
                    self.drop_link(cx, CLOSE_PROTOCOL, Report::Challenge);
                    return;
                }
                if relay != url.origin() {
                    // Said only where it reads as an origin: what else a relay sends here is its own text.
                    let named = relay_origin(&relay).filter(|id| *id == relay && id.len() <= ID_BYTES);
                    self.drop_link(cx, CLOSE_PROTOCOL, Report::OtherRelay(named));
                    return;
                }
                let (url, purpose) = (url.clone(), *purpose);
                match purpose {
                    Purpose::Errand => {
                        self.phase = Phase::Errand { link: id, url, heard: Heard::now(cx.mono()) };
                        cx.facts.link.set_errand(Some(id));
                        cx.note(Note::ErrandOpen { relay, nonce });
                    }
                    Purpose::Member => self.greet(cx, id, url, &relay, &nonce),
                }
            }
            (Phase::Greeting { url, .. }, RelayInbound::Welcome { head, online }) => {
                let url = url.clone();
                self.phase =
                    Phase::Welcomed { link: id, url, since: cx.mono(), heard: Heard::now(cx.mono()) };
                cx.facts.link.welcome(id, online);
                cx.note(Note::Welcomed { head });
            }
            (Phase::Greeting { .. }, RelayInbound::Error { code }) => {
                // §7 "Removal": a refused hello is a hint, too. The relay closes.
                let report = match code.known() {
                    Some(Code::Expired) => Report::Clock(cx.now()),
                    code => Report::Refused(code),
                };
                cx.facts.link.report(report);
            }
            (Phase::Errand { .. }, frame) => cx.note(Note::ErrandFrame(Arc::new(frame))),
            (Phase::Welcomed { .. }, frame) => {
                if let (RelayInbound::Deliver(_), Some(backlog)) = (&frame, &mut self.backlog) {
                    backlog.came();
                }
                Self::route(cx, frame);
            }
            _ => {}
        }
    }

    /// A frame of the welcomed link, as the note of whom it is for.
    fn route(cx: &mut Ctx<'_, '_>, frame: RelayInbound) {
        match frame {
            RelayInbound::Deliver(envelope) => cx.note(Note::Arrived(Arc::from(envelope))),
            RelayInbound::Ack { id } => cx.note(Note::Relayed(id)),
            RelayInbound::Nack { ref id, ref code, retry_after_ms } => {
                let note = match Ulid::parse(id) {
                    Some(id) => Note::Nacked { id, code: code.known(), retry_after_ms },
                    None => Note::Frame(Arc::new(frame)),
                };
                cx.note(note);
            }
            RelayInbound::Peer { machine, online } => {
                if cx.facts.link.set_online(machine, online) {
                    cx.note(Note::Peer { machine, online });
                }
            }
            RelayInbound::Error { code } => cx.facts.link.report(Report::Refused(code.known())),
            frame => cx.note(Note::Frame(Arc::new(frame))),
        }
    }

    /// The relay answered a `ping`.
    fn answered(&mut self, cx: &mut Ctx<'_, '_>, n: Option<u64>) {
        let now = cx.mono();
        if let Some(backlog) = &mut self.backlog {
            let next = backlog.answered(n, now);
            self.read_on(cx, next);
        }
    }

    /// Asks the relay whether more waits, or says that what waited is read.
    fn read_on(&mut self, cx: &mut Ctx<'_, '_>, next: Next) {
        let Phase::Welcomed { link, .. } = &self.phase else { return };
        match next {
            Next::Ask(n) => say(cx, *link, &ClientOutbound::Ping { n: Some(n) }),
            Next::Wait => {}
            Next::Read => {
                self.backlog = None;
                cx.facts.link.set_read();
                self.publish(cx);
            }
        }
    }

    fn greet(&mut self, cx: &mut Ctx<'_, '_>, link: LinkId, url: RelayUrl, relay: &str, nonce: &Nonce) {
        let team = cx.facts.roster().and_then(messaging_proto::roster::Roster::team);
        let hello = match (team, cx.facts.keys.current()) {
            (Some(team), Some(identity)) => {
                let claim = HelloClaim { relay, nonce, team: &team, ts: cx.now() };
                sign_hello(identity.signing(), &claim).ok()
            }
            _ => None,
        };
        match hello {
            Some(hello) => {
                say(cx, link, &ClientOutbound::Hello(hello));
                self.phase = Phase::Greeting { link, url, since: cx.mono() };
            }
            None => self.drop_link(cx, CLOSE_DONE, Report::Lost),
        }
    }

    fn current(&self) -> Option<LinkId> {
        match &self.phase {
            Phase::Idle | Phase::Waiting { .. } => None,
            Phase::Dialing { link, .. }
            | Phase::Opened { link, .. }
            | Phase::Errand { link, .. }
            | Phase::Greeting { link, .. }
            | Phase::Welcomed { link, .. } => Some(*link),
        }
    }

    /// What there is to connect for, and where.
    fn goal(&self, cx: &Ctx<'_, '_>) -> Option<(RelayUrl, Purpose)> {
        if self.stopping {
            return None;
        }
        if let Some(url) = &self.errand {
            return Some((url.clone(), Purpose::Errand));
        }
        // §8.9: with `keys_missing` there is no identity, so nothing is dialled. §12: a removed machine stops.
        let member = cx.facts.has_identity() && !cx.facts.removed();
        let url = cx.facts.config.relay().filter(|_| member)?;
        Some((url.clone(), Purpose::Member))
    }

    /// Brings the connection in line with what there is to connect for.
    fn steer(&mut self, cx: &mut Ctx<'_, '_>) {
        let goal = self.goal(cx);
        let current = match &self.phase {
            Phase::Idle => None,
            Phase::Waiting { until } if goal.is_some() && *until > cx.mono() => {
                self.publish(cx);
                return;
            }
            Phase::Waiting { .. } => None,
            Phase::Dialing { link, url, purpose, .. } | Phase::Opened { link, url, purpose, .. } => {
                Some((*link, url.clone(), *purpose))
            }
            Phase::Errand { link, url, .. } => Some((*link, url.clone(), Purpose::Errand)),
            Phase::Greeting { link, url, .. } | Phase::Welcomed { link, url, .. } => {
                Some((*link, url.clone(), Purpose::Member))
            }
        };
        if let Some((link, url, purpose)) = current {
            if goal.as_ref() == Some(&(url, purpose)) {
                self.publish(cx);
                return;
            }
            cx.effect(Effect::Hangup { link, code: CLOSE_DONE });
            self.forget(cx);
            self.backoff = Backoff::default();
        }
        self.phase = match goal {
            None => Phase::Idle,
            Some((url, purpose)) => {
                // Never reused: past every id of this machine, and of one that was dropped before it.
                self.next = (self.next + 1).max(cx.mono().0);
                let link = LinkId(self.next);
                cx.effect(Effect::Dial { link, url: url.as_str().to_owned() });
                Phase::Dialing { link, url, purpose, since: cx.mono() }
            }
        };
        self.publish(cx);
    }

    /// Closes the connection for a fault, and waits before the next.
    fn drop_link(&mut self, cx: &mut Ctx<'_, '_>, code: u16, report: Report) {
        if let Some(link) = self.current() {
            cx.effect(Effect::Hangup { link, code });
        }
        self.lost(cx, report);
    }

    /// The connection is gone.
    fn lost(&mut self, cx: &mut Ctx<'_, '_>, report: Report) {
        let slow = report == Report::Replaced;
        if let Phase::Welcomed { since, .. } = &self.phase
            && cx.mono().since(*since) >= GOOD_MS
        {
            self.backoff = Backoff::default();
        }
        cx.facts.link.report(report);
        // A refusal says more than the close that follows it. Each cause is warned of once, not with every try.
        let why = cx.facts.link.last_error().map(Report::word).unwrap_or_default();
        let warn = cx.facts.link.last_error().is_some_and(Report::warns) && self.warned != Some(why);
        self.warned = Some(why);
        let level = if warn { Level::Warn } else { Level::Info };
        cx.log(level, "link.lost", vec![("why", why.to_owned())]);
        self.forget(cx);
        let wait = self.backoff.next(slow, |bound| cx.step.draw_below(Label::Jitter, bound));
        self.phase = Phase::Waiting { until: cx.mono().plus(wait) };
        self.steer(cx);
    }

    /// Tells the others that the connection is no more.
    fn forget(&mut self, cx: &mut Ctx<'_, '_>) {
        if matches!(self.phase, Phase::Dialing { purpose: Purpose::Errand, .. })
            || matches!(self.phase, Phase::Opened { purpose: Purpose::Errand, .. } | Phase::Errand { .. })
        {
            cx.note(Note::ErrandClosed);
        }
        if matches!(self.phase, Phase::Welcomed { .. }) {
            cx.note(Note::LinkDown);
        }
        cx.facts.link.drop_connection();
        self.backlog = None;
        self.phase = Phase::Idle;
    }

    /// Publishes the phase, and tells the clients when it changed.
    fn publish(&self, cx: &mut Ctx<'_, '_>) {
        let phase = match &self.phase {
            Phase::Idle => LinkPhase::Offline,
            Phase::Welcomed { .. } if cx.facts.link.read() => LinkPhase::Connected,
            _ => LinkPhase::Connecting,
        };
        if cx.facts.link.set_phase(phase, cx.step.wall) {
            let event = super::ctx::obj([
                ("type", messaging_proto::json::Value::text("relay")),
                ("state", messaging_proto::json::Value::text(phase.as_str())),
            ]);
            cx.event_all(&event);
        }
    }

    /// Silence on an open connection: a `ping`, then the end.
    fn silence(&mut self, cx: &mut Ctx<'_, '_>) {
        let now = cx.mono();
        let (Phase::Errand { link, heard, .. } | Phase::Welcomed { link, heard, .. }) = &mut self.phase
        else {
            return;
        };
        if heard.deadline() > now {
            return;
        }
        if heard.pinged || now.since(heard.at) >= DEAD_MS {
            self.drop_link(cx, CLOSE_DONE, Report::Silent);
        } else {
            heard.pinged = true;
            let link = *link;
            say(cx, link, &ClientOutbound::Ping { n: None });
        }
    }
}

impl Role for Link {
    fn hear(&mut self, cx: &mut Ctx<'_, '_>, note: &Note) -> Result<(), StoreDown> {
        match note {
            Note::Start | Note::Adopted | Note::Removed => self.steer(cx),
            Note::Errand(url) => {
                self.errand = Some(url.clone());
                // Somebody waits: the backoff of an earlier goal does not hold.
                if matches!(self.phase, Phase::Waiting { .. }) {
                    self.phase = Phase::Idle;
                    self.backoff = Backoff::default();
                }
                self.steer(cx);
            }
            Note::ErrandAgain if self.errand.is_some() => {
                if let Some(link) = self.current() {
                    cx.effect(Effect::Hangup { link, code: CLOSE_DONE });
                }
                self.phase = Phase::Idle;
                cx.facts.link.drop_connection();
                self.backoff = Backoff::default();
                self.steer(cx);
            }
            Note::ErrandDone => {
                self.errand = None;
                self.steer(cx);
            }
            Note::CaughtUp => {
                if let Phase::Welcomed { link, .. } = &self.phase {
                    let link = *link;
                    cx.facts.link.set_caught_up();
                    self.warned = None;
                    cx.log(Level::Info, "link.connected", vec![("link", link.0.to_string())]);
                    // Before what waits here goes out: so little stands between the welcome and its answer.
                    let backlog = self.backlog.insert(Backlog::new(cx.mono()));
                    let next = backlog.ask();
                    self.read_on(cx, next);
                    cx.note(Note::LinkUp);
                }
            }
            // §8.2 `daemon.woke`: a link that waits out its backoff is opened at once.
            Note::Woke => {
                if matches!(self.phase, Phase::Waiting { .. }) {
                    self.phase = Phase::Idle;
                    self.backoff = Backoff::default();
                    self.steer(cx);
                }
            }
            Note::Stopping => {
                self.stopping = true;
                self.steer(cx);
            }
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<Mono> {
        match &self.phase {
            Phase::Idle => None,
            Phase::Waiting { until } => Some(*until),
            Phase::Dialing { since, .. } => Some(since.plus(DIAL_MS)),
            Phase::Opened { since, .. } | Phase::Greeting { since, .. } => Some(since.plus(ANSWER_MS)),
            Phase::Errand { heard, .. } => Some(heard.deadline()),
            Phase::Welcomed { heard, .. } => {
                let due = self.backlog.as_ref().map(Backlog::due);
                Some(due.map_or(heard.deadline(), |due| due.min(heard.deadline())))
            }
        }
    }

    fn tick(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        if self.deadline().is_none_or(|at| at > cx.mono()) {
            return Ok(());
        }
        match &self.phase {
            Phase::Idle => {}
            Phase::Waiting { .. } => self.steer(cx),
            Phase::Dialing { .. } => {
                self.drop_link(cx, CLOSE_DONE, Report::Unreachable("no answer in time".to_owned()));
            }
            Phase::Opened { .. } | Phase::Greeting { .. } => self.drop_link(cx, CLOSE_DONE, Report::Silent),
            Phase::Errand { .. } => self.silence(cx),
            Phase::Welcomed { .. } => {
                let now = cx.mono();
                if let Some(backlog) = self.backlog.as_mut().filter(|backlog| backlog.due() <= now) {
                    let next = backlog.overdue(now);
                    self.read_on(cx, next);
                }
                self.silence(cx);
            }
        }
        Ok(())
    }
}

fn say(cx: &mut Ctx<'_, '_>, link: LinkId, frame: &ClientOutbound) {
    cx.effect(Effect::LinkSend { link, text: frame.to_text() });
}
