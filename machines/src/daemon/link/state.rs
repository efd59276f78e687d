//! What the other roles know of the link, and what last went wrong with the relay.

use crate::daemon::io::LinkId;
use messaging_proto::Code;
use messaging_proto::key::MachineId;
use messaging_proto::time::Wall;
use std::collections::BTreeSet;

/// The link as the API names it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkPhase {
    /// Welcomed, caught up, and what waited at the relay is read: what this machine holds is all there is for it.
    Connected,
    /// On the way there.
    Connecting,
    /// There is nothing to connect to.
    #[default]
    Offline,
}

impl LinkPhase {
    /// The phase's name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Connecting => "connecting",
            Self::Offline => "offline",
        }
    }
}

/// What went wrong with the relay, in fixed words (`daemon.status`, `relay.lastError`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// No connection was made; the adapter's fixed words.
    Unreachable(String),
    /// The connection was lost without a close.
    Lost,
    /// The relay closed with this code.
    Closed(u16),
    /// Nothing came from the relay for too long.
    Silent,
    /// The relay said what no relay says.
    Protocol,
    /// The challenge is of another protocol.
    Challenge,
    /// The challenge is of another relay (`§7`, "Relay id"): the id it names, where that reads as one.
    OtherRelay(Option<String>),
    /// The relay refused the `hello` or a frame.
    Refused(Option<Code>),
    /// The relay refused the `hello` for its time: what the clock said here.
    Clock(Wall),
    /// The relay says that this machine was removed. A hint: the verified roster decides.
    SaidRemoved,
    /// Another connection of this machine took over. This process has one at a time, so another one has its keys, and
    /// that is said until this one ends.
    Replaced,
    /// The relay broadcast an entry that does not hold (`§4`, "Live entries").
    Broadcast(Code),
    /// The relay served an entry that does not hold.
    Served(Code),
    /// Two valid entries at one position (`§4`, "Sequencing and forks").
    Fork(u64),
    /// The relay's head is not on this chain.
    Head(u64),
    /// The relay does not provide the entries up to a head it or a member named.
    Shortfall(u64),
    /// The relay's chain ends before this one.
    Behind(u64),
}

impl Report {
    /// Whether it stays said once the link is up again: faults of the relay do, lost connections do not.
    const fn stands(&self) -> bool {
        match self {
            Self::Broadcast(_)
            | Self::Served(_)
            | Self::Fork(_)
            | Self::Head(_)
            | Self::Shortfall(_)
            | Self::Behind(_)
            | Self::Replaced => true,
            Self::Unreachable(_)
            | Self::Lost
            | Self::Closed(_)
            | Self::Silent
            | Self::Protocol
            | Self::Challenge
            | Self::OtherRelay(_)
            | Self::Refused(_)
            | Self::Clock(_)
            | Self::SaidRemoved => false,
        }
    }

    /// Whether a person should look: what ends by itself, as a lost connection does, is no warning.
    #[must_use]
    pub const fn warns(&self) -> bool {
        !matches!(self, Self::Lost | Self::Closed(_) | Self::Silent)
    }

    /// One word for the log.
    #[must_use]
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Lost => "lost",
            Self::Closed(_) => "closed",
            Self::Silent => "silent",
            Self::Protocol => "protocol",
            Self::Challenge => "challenge",
            Self::OtherRelay(_) => "relay_id",
            Self::Refused(_) => "refused",
            Self::Clock(_) => "clock",
            Self::SaidRemoved => "removed",
            Self::Replaced => "replaced",
            Self::Broadcast(_) => "broadcast",
            Self::Served(_) => "served",
            Self::Fork(_) => "fork",
            Self::Head(_) => "head",
            Self::Shortfall(_) => "shortfall",
            Self::Behind(_) => "behind",
        }
    }

    /// The sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let code = |code: &Option<Code>| code.map_or("an unknown code", Code::as_str);
        match self {
            Self::Unreachable(words) => format!("the relay cannot be reached: {words}"),
            Self::Lost => "the connection to the relay was lost".to_owned(),
            Self::Closed(code) => format!("the relay closed the connection with {code}"),
            Self::Silent => "the relay did not answer".to_owned(),
            Self::Protocol => "the relay broke the protocol".to_owned(),
            Self::Challenge => "the challenge names another protocol".to_owned(),
            Self::OtherRelay(Some(id)) => format!("the challenge names another relay id: {id}"),
            Self::OtherRelay(None) => "the challenge names another relay id".to_owned(),
            Self::Refused(refused) => format!("the relay refused with {}", code(refused)),
            Self::Clock(here) => format!(
                "the relay refused with expired: the clock here says {} UTC, and the relay's is more than five minutes away",
                here.moment()
            ),
            Self::SaidRemoved => "the relay says that this machine was removed".to_owned(),
            Self::Replaced => "another daemon with this identity is connected to the relay".to_owned(),
            Self::Broadcast(code) => format!("the relay broadcast a roster entry that fails with {code}"),
            Self::Served(code) => format!("the relay served a roster entry that fails with {code}"),
            Self::Fork(seq) => format!("the roster forks: two valid entries at seq {seq}"),
            Self::Head(seq) => format!("the relay's roster differs from this one at seq {seq}"),
            Self::Shortfall(seq) => format!("the relay does not provide the roster up to seq {seq}"),
            Self::Behind(seq) => format!("the relay's roster ends at seq {seq}, before this one"),
        }
    }
}

/// What others know of the link. Only the link's own modules change it, but for [`LinkState::report`].
#[derive(Debug, Default)]
pub struct LinkState {
    phase: LinkPhase,
    since: Option<Wall>,
    welcomed: Option<LinkId>,
    caught_up: bool,
    read: bool,
    errand: Option<LinkId>,
    online: BTreeSet<MachineId>,
    standing: Option<Report>,
    passing: Option<Report>,
}

impl LinkState {
    /// The link as the API names it.
    #[must_use]
    pub const fn phase(&self) -> LinkPhase {
        self.phase
    }

    /// Since when it is in that phase.
    #[must_use]
    pub const fn since(&self) -> Option<Wall> {
        self.since
    }

    /// Whether the link is welcomed and caught up: sends go out.
    #[must_use]
    pub const fn up(&self) -> bool {
        self.caught_up
    }

    /// The connection that said `welcome`.
    #[must_use]
    pub const fn welcomed(&self) -> Option<LinkId> {
        self.welcomed
    }

    /// The connection of the team role's errand, once challenged.
    #[must_use]
    pub const fn errand(&self) -> Option<LinkId> {
        self.errand
    }

    /// Whether another member's machine is connected, as the relay says. Nobody is while the link is down.
    #[must_use]
    pub fn online(&self, machine: &MachineId) -> bool {
        self.online.contains(machine)
    }

    /// What last went wrong: what is wrong now, else the latest fault of the relay.
    #[must_use]
    pub const fn last_error(&self) -> Option<&Report> {
        match &self.passing {
            Some(report) => Some(report),
            None => self.standing.as_ref(),
        }
    }

    /// What is wrong now, if anything.
    #[must_use]
    pub const fn passing(&self) -> Option<&Report> {
        self.passing.as_ref()
    }

    /// Says that something went wrong with the relay.
    pub(in crate::daemon) fn report(&mut self, report: Report) {
        // A close code after a refusal says less than the refusal.
        let detail = matches!(
            self.passing,
            Some(
                Report::Refused(_)
                    | Report::Clock(_)
                    | Report::Challenge
                    | Report::OtherRelay(_)
                    | Report::Protocol
            )
        );
        if report.stands() {
            // Every welcome after a fork says that the chains differ; that there is proof says more.
            if !matches!((&self.standing, &report), (Some(Report::Fork(_)), Report::Head(_))) {
                self.standing = Some(report);
            }
        } else if !(detail && matches!(report, Report::Closed(_) | Report::Lost)) {
            self.passing = Some(report);
        }
    }

    pub(super) fn set_phase(&mut self, phase: LinkPhase, now: Wall) -> bool {
        let changed = self.phase != phase;
        if changed {
            self.phase = phase;
            self.since = Some(now);
        }
        changed
    }

    /// Whether what waited at the relay is read.
    pub(super) const fn read(&self) -> bool {
        self.read
    }

    pub(super) const fn set_read(&mut self) {
        self.read = true;
    }

    pub(super) fn set_caught_up(&mut self) {
        self.caught_up = true;
        self.passing = None;
    }

    pub(super) fn welcome(&mut self, link: LinkId, online: Vec<MachineId>) {
        self.welcomed = Some(link);
        self.caught_up = false;
        self.read = false;
        self.online = online.into_iter().collect();
    }

    pub(super) const fn set_errand(&mut self, link: Option<LinkId>) {
        self.errand = link;
    }

    pub(super) fn set_online(&mut self, machine: MachineId, online: bool) -> bool {
        if online { self.online.insert(machine) } else { self.online.remove(&machine) }
    }

    pub(super) fn drop_connection(&mut self) {
        self.welcomed = None;
        self.errand = None;
        self.caught_up = false;
        self.read = false;
        self.online.clear();
    }
}

#[cfg(test)]
impl LinkState {
    /// A link that is up, with these members online, for tests of the roles that send on it.
    pub(in crate::daemon) fn connected(online: BTreeSet<MachineId>) -> Self {
        Self {
            phase: LinkPhase::Connected,
            welcomed: Some(LinkId(1)),
            caught_up: true,
            read: true,
            online,
            ..Self::default()
        }
    }
}
