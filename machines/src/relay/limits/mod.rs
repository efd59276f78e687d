//! How much one relay process holds and takes (`messaging/1 §7`, "Limits"; contract wire-core §7.9).

mod bucket;
mod budgets;
mod creates;
mod preauth;

pub use bucket::{Bucket, Rate};
pub(super) use budgets::{Budgets, Charge};
pub(super) use creates::Creates;
pub use preauth::{Preauth, Scope};

use messaging_proto::limits as proto;
use serde::{Deserialize, Serialize};

/// A `recv.ack` of at most this many bytes may use a delivery's credit (`messaging/1 §7`, "Rate limits").
pub const FREE_ACK_BYTES: usize = 128;

/// Every limit of one relay. Each is at least 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// `connections`: authenticated connections in total.
    pub connections: u64,
    /// `bufferedBytes`: bytes waiting to be sent, all sockets. Applied by the adapter with [`super::budget`].
    pub buffered_bytes: u64,
    /// Bytes waiting to be sent on one socket. Applied by the adapter.
    pub socket_bytes: u64,
    /// `preAuthConnections`: sockets without a valid `hello`, in total. Applied by the adapter with [`Preauth`].
    pub pre_auth_connections: u64,
    /// `preAuthPerAddress`: the same, per client address.
    pub pre_auth_per_address: u64,
    /// `preAuthFrames`: frames before a valid `hello`, itself included.
    pub pre_auth_frames: u64,
    /// `helloTimeoutMs`: milliseconds from connect to a valid `hello`.
    pub hello_timeout_ms: u64,
    /// `preAuthFrameBytes`: bytes of a frame before a valid `hello`. Applied by the adapter. Clients count on the
    /// default.
    pub pre_auth_frame_bytes: u64,
    /// Milliseconds without any frame after which a connection is given up (contract wire-core §7.1).
    pub silence_ms: u64,
    /// `framesPerMinute`: frames of one machine after `hello`.
    pub frames_per_minute: u64,
    /// `bytesPerMinute`: bytes of those frames.
    pub bytes_per_minute: u64,
    /// `presenceIntervalMs`: milliseconds that bring one presence more.
    pub presence_interval_ms: u64,
    /// `presenceBurst`: presences at once.
    pub presence_burst: u64,
    /// `queuePerSender`: unexpired envelopes from one machine that wait for one machine.
    pub queue_per_sender: u64,
    /// `queuePerMachine`: unexpired envelopes that wait for one machine.
    pub queue_per_machine: u64,
    /// `queueBytesPerMachine`: bytes of their canonical texts.
    pub queue_bytes_per_machine: u64,
    /// `queueRows`: envelopes that wait for anybody.
    pub queue_rows: u64,
    /// `queueBytes`: bytes of their canonical texts.
    pub queue_bytes: u64,
    /// `deliveryWindow`: deliveries from one sender that may be unacked on one link.
    pub delivery_window: u64,
    /// `redeliverMinMs`: the wait before the first redelivery; it doubles per try.
    pub redeliver_min_ms: u64,
    /// `redeliverMaxMs`: the longest wait between redeliveries.
    pub redeliver_max_ms: u64,
    /// `maxTeams`: teams stored.
    pub max_teams: u64,
    /// `teamCreatesPerHour`: teams founded from one client address.
    pub team_creates_per_hour: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 8_192,
            buffered_bytes: 256 << 20,
            socket_bytes: 16 << 20,
            pre_auth_connections: 1_024,
            pre_auth_per_address: 128,
            pre_auth_frames: 8,
            hello_timeout_ms: 10_000,
            pre_auth_frame_bytes: proto::PRE_AUTH_FRAME_BYTES as u64,
            silence_ms: 90_000,
            frames_per_minute: proto::RELAY_FRAMES_PER_MINUTE as u64,
            bytes_per_minute: proto::RELAY_BYTES_PER_MINUTE as u64,
            presence_interval_ms: proto::PRESENCE_INTERVAL_MS,
            presence_burst: proto::PRESENCE_BURST as u64,
            queue_per_sender: proto::QUEUE_PER_SENDER as u64,
            queue_per_machine: 10_000,
            queue_bytes_per_machine: 256 << 20,
            queue_rows: 1_000_000,
            queue_bytes: 4 << 30,
            delivery_window: 64,
            redeliver_min_ms: 10_000,
            redeliver_max_ms: 60_000,
            max_teams: 10_000,
            team_creates_per_hour: 10,
        }
    }
}

impl Limits {
    /// Raw sockets the HTTP server accepts; the rest is dropped before any HTTP is read.
    #[must_use]
    pub const fn sockets(&self) -> u64 {
        self.pre_auth_connections.saturating_add(self.connections).saturating_add(256)
    }
}
