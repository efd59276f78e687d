//! The page: Prometheus text format 0.0.4, every family of a team relay (contract wire-core §7.11).

use super::process::Process;
use super::{Metrics, Refused, Slow};
use crate::clock;
use crate::driver::{COMMIT_BUCKETS_MICROS, Health};
use crate::relay::server::Server;
use crate::store::Schema;
use messaging_machines::relay::gauges;
use std::fmt::Write;

/// A page under construction.
struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl std::fmt::Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"{}\"", escape(text));
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl std::fmt::Display) {
        self.family(name, "gauge", help);
        self.sample(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.family(name, "counter", help);
        self.sample(name, &[], value);
    }

    fn counters<'a>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl Iterator<Item = (&'a str, u64)>,
    ) {
        self.family(name, "counter", help);
        for (text, value) in values {
            self.sample(name, &[(label, text)], value);
        }
    }
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Microseconds as seconds, without a float.
fn seconds(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// The whole page.
pub(in crate::relay) fn page(server: &Server) -> String {
    let mut page = Page(String::with_capacity(16 * 1024));
    page.family("relay_build_info", "gauge", "The release and the schema of its store; always 1.");
    let schema = Schema::CURRENT.schema.to_string();
    page.sample("relay_build_info", &[("version", &server.version), ("schema", &schema)], 1);
    let unready = server.unready();
    page.gauge("relay_ready", "1 when /readyz answers 200.", u8::from(unready.is_empty()));
    page.family("relay_unready", "gauge", "1 for each failed condition of /readyz.");
    for why in ["store_closed", "store_failing", "stopping"] {
        page.sample("relay_unready", &[("why", why)], u8::from(unready.contains(&why)));
    }
    let auth = server.shared.conns.authenticated();
    page.family("relay_connections", "gauge", "Open sockets.");
    page.sample("relay_connections", &[("state", "preauth")], server.places.taken());
    page.sample("relay_connections", &[("state", "auth")], auth);
    counted(&mut page, &server.shared.metrics);
    queued(&mut page, &server.health);
    page.gauge(
        "relay_buffered_bytes",
        "Bytes waiting to be sent, all sockets.",
        server.shared.conns.buffered(),
    );
    stored(&mut page, &server.health);
    process(&mut page);
    page.0
}

fn counted(page: &mut Page, metrics: &Metrics) {
    let counters = metrics.lock().clone();
    let count = |key: &Refused| counters.refused.get(key).copied().unwrap_or(0);
    page.counters(
        "relay_connections_refused_total",
        "Upgrades and hellos refused at a cap.",
        "reason",
        [
            ("preauth_total", count(&Refused::PreauthTotal)),
            ("preauth_address", count(&Refused::PreauthAddress)),
            ("full", count(&Refused::Full)),
        ]
        .into_iter(),
    );
    let by_code = |counts: &std::collections::BTreeMap<messaging_proto::Code, u64>| {
        counts.iter().map(|(code, count)| (code.as_str(), *count)).collect::<Vec<_>>().into_iter()
    };
    let by_word = |counts: &std::collections::BTreeMap<&'static str, u64>| {
        counts.iter().map(|(word, count)| (*word, *count)).collect::<Vec<_>>().into_iter()
    };
    page.counters("relay_auth_failures_total", "Refused hellos.", "code", by_code(&counters.auth_failures));
    page.counters("relay_frames_in_total", "Frames received, by type.", "t", by_word(&counters.frames_in));
    page.counters("relay_frames_out_total", "Frames sent, by type.", "t", by_word(&counters.frames_out));
    page.counters("relay_nacks_total", "Refusals.", "code", by_code(&counters.nacks));
    page.counter("relay_rate_limited_total", "Frames over a machine's budget.", counters.rate_limited);
    page.counter("relay_queue_full_total", "Sends refused for a full queue.", counters.queue_full);
    let table = |name| (name, counters.purged.get(name).copied().unwrap_or(0));
    let tables = ["queue", "seen", "presence"].map(table).into_iter();
    page.counters("relay_purged_total", "Rows purged at expiry.", "table", tables);
    let slow = [Slow::Socket, Slow::Budget]
        .map(|slow| (slow.as_str(), counters.slow.get(&slow).copied().unwrap_or(0)));
    page.counters(
        "relay_slow_terminations_total",
        "Sockets dropped for falling behind.",
        "reason",
        slow.into_iter(),
    );
    page.counters(
        "relay_internal_errors_total",
        "Unexpected failures.",
        "where",
        by_word(&counters.internal),
    );
}

/// Read from the store; left out while it is closed.
fn queued(page: &mut Page, health: &Health) {
    let Some(Ok(queue)) = health.read(|base| gauges(base, clock::wall())) else { return };
    page.gauge("relay_queue_rows", "Envelopes queued, expired ones not purged yet included.", queue.rows);
    page.gauge("relay_queue_bytes", "Bytes of the queued envelopes.", queue.bytes);
    let age = seconds(queue.oldest_age_ms.saturating_mul(1_000));
    page.gauge("relay_queue_oldest_age_seconds", "Age of the oldest queued envelope; 0 when empty.", age);
}

fn stored(page: &mut Page, health: &Health) {
    page.family("relay_commit_seconds", "histogram", "Time in commit, a group commit being one.");
    for micros in COMMIT_BUCKETS_MICROS {
        let le = seconds(micros);
        let le = le.trim_end_matches('0').trim_end_matches('.');
        page.sample("relay_commit_seconds_bucket", &[("le", le)], health.commits.at_most(micros));
    }
    page.sample("relay_commit_seconds_bucket", &[("le", "+Inf")], health.commits.count());
    page.sample("relay_commit_seconds_sum", &[], seconds(health.commits.sum()));
    page.sample("relay_commit_seconds_count", &[], health.commits.count());
    page.counter("relay_commit_writes_total", "Writes committed.", health.writes());
    page.family("relay_store_bytes", "gauge", "The database file and its journal.");
    for (part, bytes) in [("used", health.file_bytes()), ("free", 0), ("wal", health.journal_bytes())] {
        page.sample("relay_store_bytes", &[("part", part)], bytes);
    }
    page.gauge(
        "relay_store_failing",
        "1 while /readyz says store_failing.",
        u8::from(health.store_failing()),
    );
    page.counter("relay_store_errors_total", "Store operations that failed.", health.store_errors());
    page.family(
        "relay_event_loop_delay_seconds",
        "gauge",
        "How long events waited for the machine since start.",
    );
    for (quantile, micros) in
        [("0.5", health.delay.quantile(500)), ("0.99", health.delay.quantile(990)), ("1", health.delay.max())]
    {
        page.sample("relay_event_loop_delay_seconds", &[("quantile", quantile)], seconds(micros));
    }
}

fn process(page: &mut Page) {
    let process = Process::read();
    for (name, help, value) in [
        ("process_resident_memory_bytes", "Resident memory.", process.resident_bytes),
        ("process_open_fds", "Open file descriptors.", process.open_fds),
        ("process_start_time_seconds", "When the process started.", process.start_seconds),
    ] {
        if let Some(value) = value {
            page.gauge(name, help, value);
        }
    }
}
