//! What the relay's threads share.

use super::arrivals::Arrivals;
use super::conn::{Conn, Conns};
use super::metrics::Metrics;
use super::poller::Pollers;
use super::preauth::{Place, Places};
use super::tls::Tls;
use crate::driver::{Driver, Events, Health};
use crate::guard::Cap;
use crate::log::Log;
use async_executor::Executor;
use messaging_machines::relay::io::{ConnId, Event};
use messaging_machines::relay::limits::{Limits, Scope};
use messaging_machines::relay::schema;
use messaging_machines::store::Base;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What effects and sockets share.
pub(super) struct Shared {
    pub(super) conns: Conns,
    pub(super) arrivals: Arrivals,
    pub(super) metrics: Metrics,
    pub(super) limits: Limits,
    pub(super) log: Log,
}

/// What sockets need besides.
pub(super) struct Server {
    pub(super) shared: Arc<Shared>,
    pub(super) executor: Arc<Executor<'static>>,
    pub(super) pollers: Pollers,
    pub(super) places: Places,
    pub(super) sockets: Cap,
    pub(super) trusted_proxies: Vec<IpAddr>,
    pub(super) events: Events<Event>,
    pub(super) health: Arc<Health>,
    pub(super) version: String,
    /// Present when the relay speaks TLS itself.
    pub(super) tls: Option<Tls>,
    next_conn: AtomicU64,
    /// When a full cap was last logged, in seconds: a flood of sockets must not become a flood of lines.
    logged_full: [AtomicU64; 2],
}

impl Server {
    pub(super) fn new(
        shared: Arc<Shared>,
        executor: Arc<Executor<'static>>,
        pollers: Pollers,
        trusted_proxies: Vec<IpAddr>,
        driver: &Driver<Event>,
        version: String,
        tls: Option<Tls>,
    ) -> Self {
        let sockets = usize::try_from(shared.limits.sockets()).unwrap_or(usize::MAX);
        Self {
            places: Places::new(&shared.limits),
            sockets: Cap::new(sockets),
            shared,
            executor,
            pollers,
            trusted_proxies,
            events: driver.events.clone(),
            health: Arc::clone(&driver.health),
            version,
            tls,
            next_conn: AtomicU64::new(1),
            logged_full: [const { AtomicU64::new(0) }; 2],
        }
    }

    /// Whether a new connection can be served: there is a machine, and it is not stopping.
    pub(super) fn accepts(&self) -> bool {
        self.health.serves() && !self.health.stopping()
    }

    /// Why the relay cannot serve, in the order of `§7`, "HTTP".
    pub(super) fn unready(&self) -> Vec<&'static str> {
        let conditions = [
            ("store_closed", self.health.store_closed() || !self.reads()),
            ("store_failing", self.health.store_failing()),
            ("stopping", self.health.stopping()),
        ];
        conditions.into_iter().filter(|(_, failed)| *failed).map(|(why, _)| why).collect()
    }

    /// Whether the store, if it is open, answers a read.
    fn reads(&self) -> bool {
        let read = self.health.read(|base| base.get(schema::META, schema::opening::KEY_GENERATION).is_ok());
        read.unwrap_or(true)
    }

    /// Registers a connection that took a place.
    pub(super) fn open(&self, place: Place) -> Arc<Conn> {
        let id = ConnId(self.next_conn.fetch_add(1, Ordering::Relaxed));
        self.shared.conns.open(id, place)
    }

    /// Logs a full cap, at most once a second.
    pub(super) fn preauth_full(&self, scope: Scope) {
        let second = crate::clock::mono().0 / 1_000 + 1;
        if self.logged_full[usize::from(scope == Scope::Address)].swap(second, Ordering::Relaxed) != second {
            self.shared.log.warn("conn.preauth_full", &[("scope", scope.as_str().into())]);
        }
    }
}
