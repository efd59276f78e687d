//! `messaging-relay` and `messaging relay`: flags in, [`messaging_smol::relay::run`], an exit status out.

use crate::cli::{complain, page};
use crate::flags::{BadFlags, Flag, Flags, help};
use messaging_machines::relay::limits::Limits;
use messaging_machines::relay::schema::opening::SCHEMA;
use messaging_proto::key::MachineId;
use messaging_smol::log::Level;
use messaging_smol::relay::RelayOptions;
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: u8 = 2;

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help, repeats: false }
}

static FLAGS: &[Flag] = &[
    flag("listen", "<host>:<port>", "where to listen, in plain text (default 127.0.0.1:8787)"),
    flag("db", "<path>", "the store (default ./relay.db)"),
    flag(
        "relay-id",
        "<origin>",
        "the origin clients connect to, such as wss://relay.example (default ws://<listen>)",
    ),
    flag("team-creation", "open|closed", "whether teams can be founded here (default open)"),
    Flag {
        name: "genesis",
        value: "<machine id>",
        help: "only these machines found teams; repeat for more",
        repeats: true,
    },
    Flag {
        name: "trusted-proxy",
        value: "<address>",
        help: "a proxy whose X-Forwarded-For names the client; repeat for more",
        repeats: true,
    },
    flag("metrics", "<host>:<port>", "serve GET /metrics here (default: off); keep it private"),
    flag("log-level", "error|warn|info|debug", "how much to log, as JSON lines on stderr (default info)"),
    flag("max-connections", "<n>", "authenticated connections (default 8192)"),
    flag("max-buffered-bytes", "<n>", "bytes waiting to be sent, all sockets (default 268435456)"),
    flag("preauth-connections", "<n>", "sockets without a valid hello (default 1024)"),
    flag("preauth-per-address", "<n>", "the same, per client address (default 128)"),
    flag("preauth-frames", "<n>", "frames before a valid hello (default 8)"),
    flag("hello-timeout-ms", "<n>", "milliseconds until a valid hello (default 10000)"),
    flag("frames-per-minute", "<n>", "frames of one machine (default 600)"),
    flag("bytes-per-minute", "<n>", "bytes of those frames (default 33554432)"),
    flag("queue-per-sender", "<n>", "envelopes from one machine waiting for one machine (default 1000)"),
    flag("queue-per-machine", "<n>", "envelopes waiting for one machine (default 10000)"),
    flag("queue-bytes-per-machine", "<n>", "bytes of those (default 268435456)"),
    flag("queue-rows", "<n>", "envelopes waiting for anybody (default 1000000)"),
    flag("queue-bytes", "<n>", "bytes of those (default 4294967296)"),
    flag("delivery-window", "<n>", "unacknowledged deliveries from one sender on one link (default 64)"),
    flag("redeliver-min-ms", "<n>", "the wait before a first redelivery (default 10000)"),
    flag("redeliver-max-ms", "<n>", "the longest wait between redeliveries (default 60000)"),
    flag("max-teams", "<n>", "teams stored (default 10000)"),
    flag("team-creates-per-hour", "<n>", "teams founded from one address in an hour (default 10)"),
    flag("version", "", "print the version; with --json as JSON"),
    flag("json", "", "with --version"),
    flag("help", "", "print this"),
];

/// Runs `messaging-relay` with the process's arguments, the program's name first.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let texts: Result<Vec<String>, _> = arguments.into_iter().skip(1).map(OsString::into_string).collect();
    let Ok(texts) = texts else { return bad("messaging-relay", "an argument is not UTF-8 text") };
    let flags: Vec<&str> = texts.iter().map(String::as_str).collect();
    run("messaging-relay", &flags)
}

/// Runs the relay with these flags, as `program`.
pub(crate) fn run(program: &str, arguments: &[&str]) -> ExitCode {
    let environment = |name: &str| {
        std::env::var(format!("MESSAGING_RELAY_{}", name.to_ascii_uppercase().replace('-', "_"))).ok()
    };
    let flags = match Flags::read(FLAGS, arguments, environment) {
        Ok(flags) => flags,
        Err(error) => return bad(program, &error.to_string()),
    };
    if flags.has("help") {
        page(&help(
            program,
            "Stores and forwards sealed envelopes for teams. It never sees what a message says.",
            FLAGS,
            "\nEach flag has an environment form: --queue-rows is MESSAGING_RELAY_QUEUE_ROWS; repeated values are \
             separated by commas; a flag wins.\n\nExamples:\n  messaging relay\n  messaging relay --listen \
             127.0.0.1:8787 --relay-id wss://relay.example --db /var/lib/messaging/relay.db --metrics \
             127.0.0.1:9100\n\nExit: 0 stopped, 1 start refused, 2 flags, 70 internal error, 78 store refused.\n",
        ));
        return ExitCode::SUCCESS;
    }
    if flags.has("version") {
        page(&version("messaging-relay", SCHEMA, flags.has("json")));
        return ExitCode::SUCCESS;
    }
    match options(&flags) {
        Ok(options) => messaging_smol::relay::run(&options).into(),
        Err(error) => bad(program, &error.to_string()),
    }
}

/// The version of a service as text or JSON.
pub(crate) fn version(program: &str, schema: u64, json: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    if json {
        format!("{{\"version\":\"{version}\",\"storeSchema\":{schema},\"protocol\":\"messaging/1\"}}\n")
    } else {
        format!("{program} {version} (store schema {schema}, protocol messaging/1)\n")
    }
}

fn bad(program: &str, message: &str) -> ExitCode {
    complain(&format!("{program}: usage: {message}\nNext: run `{program} --help`."));
    USAGE.into()
}

fn options(flags: &Flags) -> Result<RelayOptions, BadFlags> {
    let listen = flags.one("listen").unwrap_or("127.0.0.1:8787").to_owned();
    if !is_host_port(&listen) {
        return Err(BadFlags::Value("listen", "<host>:<port>"));
    }
    let metrics = flags.one("metrics").map(str::to_owned);
    if metrics.as_deref().is_some_and(|metrics| !is_host_port(metrics)) {
        return Err(BadFlags::Value("metrics", "<host>:<port>"));
    }
    let relay_id = flags.one("relay-id").map(str::to_owned);
    if let Some(id) = &relay_id {
        // Clients compare byte for byte, so only the serialised origin itself can ever match.
        if messaging_proto::relay_url::relay_origin(id).as_deref() != Some(id.as_str()) {
            return Err(BadFlags::Value("relay-id", "an origin without a path, such as wss://relay.example"));
        }
    }
    let genesis = flags.all("genesis").iter().map(|id| MachineId::parse(id).filter(MachineId::is_usable));
    let genesis: Option<Vec<MachineId>> = genesis.collect();
    let proxies: Result<Vec<IpAddr>, _> =
        flags.all("trusted-proxy").iter().map(|text| text.parse()).collect();
    let team_creation = match flags.one("team-creation") {
        None | Some("open") => true,
        Some("closed") => false,
        Some(_) => return Err(BadFlags::Value("team-creation", "open or closed")),
    };
    Ok(RelayOptions {
        relay_id,
        team_creation,
        genesis: genesis.ok_or(BadFlags::Value("genesis", "a machine id"))?,
        trusted_proxies: proxies.map_err(|_| BadFlags::Value("trusted-proxy", "an IP address"))?,
        limits: limits(flags)?,
        metrics,
        log_level: log_level(flags)?,
        ..RelayOptions::new(listen, PathBuf::from(flags.one("db").unwrap_or("./relay.db")))
    })
}

/// `--log-level`.
pub(crate) fn log_level(flags: &Flags) -> Result<Level, BadFlags> {
    Level::parse(flags.one("log-level").unwrap_or("info"))
        .ok_or(BadFlags::Value("log-level", "error, warn, info or debug"))
}

fn limits(flags: &Flags) -> Result<Limits, BadFlags> {
    let default = Limits::default();
    let limits = Limits {
        connections: flags.limit("max-connections", default.connections)?,
        buffered_bytes: flags.limit("max-buffered-bytes", default.buffered_bytes)?,
        socket_bytes: default.socket_bytes,
        pre_auth_connections: flags.limit("preauth-connections", default.pre_auth_connections)?,
        pre_auth_per_address: flags.limit("preauth-per-address", default.pre_auth_per_address)?,
        pre_auth_frames: flags.limit("preauth-frames", default.pre_auth_frames)?,
        hello_timeout_ms: flags.limit("hello-timeout-ms", default.hello_timeout_ms)?,
        frames_per_minute: flags.limit("frames-per-minute", default.frames_per_minute)?,
        bytes_per_minute: flags.limit("bytes-per-minute", default.bytes_per_minute)?,
        queue_per_sender: flags.limit("queue-per-sender", default.queue_per_sender)?,
        queue_per_machine: flags.limit("queue-per-machine", default.queue_per_machine)?,
        queue_bytes_per_machine: flags.limit("queue-bytes-per-machine", default.queue_bytes_per_machine)?,
        queue_rows: flags.limit("queue-rows", default.queue_rows)?,
        queue_bytes: flags.limit("queue-bytes", default.queue_bytes)?,
        delivery_window: flags.limit("delivery-window", default.delivery_window)?,
        redeliver_min_ms: flags.limit("redeliver-min-ms", default.redeliver_min_ms)?,
        redeliver_max_ms: flags.limit("redeliver-max-ms", default.redeliver_max_ms)?,
        max_teams: flags.limit("max-teams", default.max_teams)?,
        team_creates_per_hour: flags.limit("team-creates-per-hour", default.team_creates_per_hour)?,
    };
    if limits.redeliver_max_ms < limits.redeliver_min_ms {
        return Err(BadFlags::Value("redeliver-max-ms", "at least --redeliver-min-ms"));
    }
    Ok(limits)
}

fn is_host_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}
