//! Where the link is, and what the relay was last heard to say.

use crate::daemon::io::LinkId;
use messaging_proto::relay_url::RelayUrl;
use messaging_proto::time::Mono;

/// Without a frame from the relay: a `ping` goes out.
const PING_MS: u64 = 30_000;
/// Without a frame from the relay: the connection is dead.
pub(super) const DEAD_MS: u64 = 90_000;

/// What the connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Member,
    Errand,
}

/// Where the link is. Each variant holds what that phase may use.
#[derive(Debug)]
pub(super) enum Phase {
    /// Nothing to connect for.
    Idle,
    Waiting {
        until: Mono,
    },
    Dialing {
        link: LinkId,
        url: RelayUrl,
        purpose: Purpose,
        since: Mono,
    },
    /// Open; the challenge is due.
    Opened {
        link: LinkId,
        url: RelayUrl,
        purpose: Purpose,
        since: Mono,
    },
    /// The team role's.
    Errand {
        link: LinkId,
        url: RelayUrl,
        heard: Heard,
    },
    /// `hello` is out.
    Greeting {
        link: LinkId,
        url: RelayUrl,
        since: Mono,
    },
    /// Welcomed; the roster catches up, then sends go out.
    Welcomed {
        link: LinkId,
        url: RelayUrl,
        since: Mono,
        heard: Heard,
    },
}

/// Signs of life from the relay.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heard {
    pub(super) at: Mono,
    pub(super) pinged: bool,
}

impl Heard {
    pub(super) const fn now(at: Mono) -> Self {
        Self { at, pinged: false }
    }

    pub(super) const fn deadline(self) -> Mono {
        self.at.plus(if self.pinged { DEAD_MS } else { PING_MS })
    }
}
