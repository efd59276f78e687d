//! `messaging-relay` and `messaging relay`: flags in, [`messaging_smol::relay::run`], an exit status out.

use crate::cli::{ended, fitted_help, page};
use crate::flags::{BadFlags, Flag, Flags, help, refused, variable};
use messaging_machines::relay::limits::Limits;
use messaging_machines::relay::schema::opening::SCHEMA;
use messaging_proto::key::MachineId;
use messaging_smol::capture::{CAPTURE_BYTES, CaptureOptions};
use messaging_smol::log::Level;
use messaging_smol::relay::{RelayOptions, TlsFiles};
use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help, repeats: false }
}

pub(crate) static FLAGS: &[Flag] = &[
    flag("listen", "<host>:<port>", "where to listen (default 127.0.0.1:8787)"),
    flag("db", "<path>", "the store (default ./relay.db)"),
    flag(
        "relay-id",
        "<origin>",
        "the origin clients connect to, such as wss://relay.example (default ws://<listen>, wss:// with TLS)",
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
    flag(
        "capture",
        "<path>",
        "keep everything the relay is given and says here, for replay: SECRET (default: off)",
    ),
    flag("capture-bytes", "<n>", "bytes of that file before a new one begins (default 268435456)"),
    flag(
        "tls-cert",
        "<path>",
        "speak TLS with this certificate chain, in PEM (default: plain text, for a proxy)",
    ),
    flag("tls-key", "<path>", "the certificate's private key, in PEM; SIGHUP reads both again"),
    flag("max-connections", "<n>", "authenticated connections (default 8192)"),
    flag("max-buffered-bytes", "<n>", "bytes waiting to be sent, all sockets (default 268435456)"),
    flag("max-socket-buffered-bytes", "<n>", "bytes waiting to be sent on one socket (default 16777216)"),
    flag("preauth-connections", "<n>", "sockets without a valid hello (default 1024)"),
    flag("preauth-per-address", "<n>", "the same, per client address (default 128)"),
    flag("preauth-frames", "<n>", "frames before a valid hello, itself included (default 8)"),
    flag("preauth-frame-bytes", "<n>", "bytes of such a frame; clients count on the default (default 32768)"),
    flag("hello-timeout-ms", "<n>", "milliseconds until a valid hello (default 10000)"),
    flag("silence-ms", "<n>", "milliseconds without a frame before a connection is closed (default 90000)"),
    flag("frames-per-minute", "<n>", "frames of one machine (default 600)"),
    flag("bytes-per-minute", "<n>", "bytes of those frames (default 33554432)"),
    flag("presence-burst", "<n>", "presences of one machine at once (default 5)"),
    flag("presence-interval-ms", "<n>", "milliseconds that allow one presence more (default 2000)"),
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
    flag("version", "", "print the version"),
    flag("json", "", "the version, or what is wrong with the flags, as JSON"),
    flag("help", "", "print this"),
];

/// Runs `messaging-relay` with the process's arguments, the program's name first.
#[must_use]
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let texts: Result<Vec<String>, _> = arguments.into_iter().skip(1).map(OsString::into_string).collect();
    let Ok(texts) = texts else { return refused("messaging-relay", &[], "an argument is not UTF-8 text") };
    let flags: Vec<&str> = texts.iter().map(String::as_str).collect();
    run("messaging-relay", &flags)
}

/// Runs the relay with these flags, as `program`.
pub(crate) fn run(program: &str, arguments: &[&str]) -> ExitCode {
    let environment =
        |name: &str| variable(&format!("MESSAGING_RELAY_{}", name.to_ascii_uppercase().replace('-', "_")));
    let flags = match Flags::read(FLAGS, arguments, environment) {
        Ok(flags) => flags,
        Err(error) => return refused(program, arguments, &error.to_string()),
    };
    if flags.has("help") {
        page(&fitted_help(&help(
            program,
            "Stores and forwards sealed envelopes for teams. It never sees what a message says.",
            FLAGS,
            "\nEach flag has an environment form: --queue-rows is MESSAGING_RELAY_QUEUE_ROWS; repeated values are \
             separated by commas; a flag wins.\n\nExamples:\n  messaging relay\n  messaging relay \
             --relay-id wss://relay.example --metrics 127.0.0.1:9100 \\\n      --db /var/lib/messaging/relay.db\n  messaging \
             relay --listen 0.0.0.0:443 --relay-id wss://relay.example \\\n      --tls-cert fullchain.pem --tls-key \
             privkey.pem\n\nExit: 0 stopped, 1 start refused, 2 flags, 70 internal error, 78 store refused.\n",
        )));
        return ended(ExitCode::SUCCESS);
    }
    if flags.has("version") {
        page(&version("messaging-relay", SCHEMA, flags.has("json")));
        return ended(ExitCode::SUCCESS);
    }
    match options(&flags) {
        Ok(options) => messaging_smol::relay::run(&options).into(),
        Err(error) => refused(program, arguments, &error.to_string()),
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
    let tls = match (flags.one("tls-cert"), flags.one("tls-key")) {
        (None, None) => None,
        (Some(cert), Some(key)) => Some(TlsFiles { cert: cert.into(), key: key.into() }),
        (Some(_), None) => return Err(BadFlags::Value("tls-cert", "--tls-key beside it")),
        (None, Some(_)) => return Err(BadFlags::Value("tls-key", "--tls-cert beside it")),
    };
    Ok(RelayOptions {
        relay_id,
        team_creation,
        genesis: genesis.ok_or(BadFlags::Value("genesis", "a machine id"))?,
        trusted_proxies: proxies.map_err(|_| BadFlags::Value("trusted-proxy", "an IP address"))?,
        tls,
        limits: limits(flags)?,
        metrics,
        log_level: log_level(flags)?,
        capture: capture(flags)?,
        ..RelayOptions::new(listen, PathBuf::from(flags.one("db").unwrap_or("./relay.db")))
    })
}

/// `--log-level`.
pub(crate) fn log_level(flags: &Flags) -> Result<Level, BadFlags> {
    Level::parse(flags.one("log-level").unwrap_or("info"))
        .ok_or(BadFlags::Value("log-level", "error, warn, info or debug"))
}

/// `--capture` and `--capture-bytes`.
pub(crate) fn capture(flags: &Flags) -> Result<Option<CaptureOptions>, BadFlags> {
    let bytes = flags.limit("capture-bytes", CAPTURE_BYTES)?;
    Ok(flags.one("capture").map(|path| CaptureOptions { path: path.into(), bytes }))
}

/// A limit of the relay that a flag sets.
type Field = fn(&mut Limits) -> &mut u64;

/// The flag of every limit.
static LIMITS: &[(&str, Field)] = &[
    ("max-connections", |limits| &mut limits.connections),
    ("max-buffered-bytes", |limits| &mut limits.buffered_bytes),
    ("max-socket-buffered-bytes", |limits| &mut limits.socket_bytes),
    ("preauth-connections", |limits| &mut limits.pre_auth_connections),
    ("preauth-per-address", |limits| &mut limits.pre_auth_per_address),
    ("preauth-frames", |limits| &mut limits.pre_auth_frames),
    ("preauth-frame-bytes", |limits| &mut limits.pre_auth_frame_bytes),
    ("hello-timeout-ms", |limits| &mut limits.hello_timeout_ms),
    ("silence-ms", |limits| &mut limits.silence_ms),
    ("frames-per-minute", |limits| &mut limits.frames_per_minute),
    ("bytes-per-minute", |limits| &mut limits.bytes_per_minute),
    ("presence-burst", |limits| &mut limits.presence_burst),
    ("presence-interval-ms", |limits| &mut limits.presence_interval_ms),
    ("queue-per-sender", |limits| &mut limits.queue_per_sender),
    ("queue-per-machine", |limits| &mut limits.queue_per_machine),
    ("queue-bytes-per-machine", |limits| &mut limits.queue_bytes_per_machine),
    ("queue-rows", |limits| &mut limits.queue_rows),
    ("queue-bytes", |limits| &mut limits.queue_bytes),
    ("delivery-window", |limits| &mut limits.delivery_window),
    ("redeliver-min-ms", |limits| &mut limits.redeliver_min_ms),
    ("redeliver-max-ms", |limits| &mut limits.redeliver_max_ms),
    ("max-teams", |limits| &mut limits.max_teams),
    ("team-creates-per-hour", |limits| &mut limits.team_creates_per_hour),
];

fn limits(flags: &Flags) -> Result<Limits, BadFlags> {
    let mut limits = Limits::default();
    for (name, field) in LIMITS {
        let field = field(&mut limits);
        *field = flags.limit(name, *field)?;
    }
    if limits.redeliver_max_ms < limits.redeliver_min_ms {
        return Err(BadFlags::Value("redeliver-max-ms", "at least --redeliver-min-ms"));
    }
    Ok(limits)
}

fn is_host_port(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str], environment: &[(&str, &str)]) -> Result<RelayOptions, BadFlags> {
        let of = |name: &str| {
            Ok(environment.iter().find(|(one, _)| *one == name).map(|(_, value)| (*value).to_owned()))
        };
        Flags::read(FLAGS, arguments, of).and_then(|flags| options(&flags))
    }

    #[test]
    fn every_limit_has_a_flag_that_tells_its_default() {
        let fields = serde_json::to_value(Limits::default()).unwrap();
        assert_eq!(fields.as_object().unwrap().len(), LIMITS.len());
        let mut limits = Limits::default();
        for (name, field) in LIMITS {
            let flag = FLAGS.iter().find(|flag| flag.name == *name).unwrap();
            let default = *field(&mut limits);
            assert!(flag.help.ends_with(&format!("(default {default})")), "{name}");
            // Each flag sets a limit of its own.
            *field(&mut limits) = 0;
        }
        let zeros = serde_json::to_value(&limits).unwrap();
        assert!(zeros.as_object().unwrap().values().all(|value| value == 0), "{zeros}");
    }

    #[test]
    fn every_limit_is_at_least_one_and_its_flag_wins() {
        for (name, field) in LIMITS {
            let flag = format!("--{name}");
            // Between the two, which are compared.
            let (said, other) = if *name == "redeliver-max-ms" { ("70000", "60001") } else { ("7", "8") };
            let set = |arguments: &[&str], environment: &[(&str, &str)]| {
                read(arguments, environment).map(|options| *field(&mut options.limits.clone()))
            };
            assert_eq!(set(&[&flag, said], &[]).unwrap().to_string(), said, "{name}");
            assert_eq!(set(&[], &[(name, other)]).unwrap().to_string(), other, "{name}");
            assert_eq!(set(&[&flag, said], &[(name, other)]).unwrap().to_string(), said, "{name}");
            for bad in ["0", "-1", "+1", "1.5", "many", "18446744073709551616"] {
                assert!(set(&[&flag, bad], &[]).is_err(), "{name} {bad}");
                assert!(set(&[], &[(name, bad)]).is_err(), "{name} {bad}");
            }
        }
    }

    #[test]
    fn what_the_other_flags_take() {
        let machine = messaging_proto::key::SigningKey::from_seed([1; 32]).machine();
        let id = machine.to_string();
        let options = read(
            &["--genesis", &id, "--trusted-proxy=::1"],
            &[("genesis", "x"), ("team-creation", "closed")],
        );
        let options = options.unwrap();
        assert_eq!((options.genesis, options.team_creation), (vec![machine], false));
        let many = read(&[], &[("trusted-proxy", "10.0.0.1, 10.0.0.2")]).unwrap();
        assert_eq!(many.trusted_proxies.len(), 2);
        for bad in [
            &["--genesis", "x"][..],
            &["--trusted-proxy", "proxy.example"],
            &["--team-creation", "maybe"],
            &["--listen", "8787"],
            &["--metrics", "9100"],
            &["--relay-id", "wss://relay.example/"],
            &["--log-level", "loud"],
            &["--tls-cert", "a.pem"],
            &["--tls-key", "a.pem"],
            &["--redeliver-max-ms", "1"],
        ] {
            assert!(read(bad, &[]).is_err(), "{bad:?}");
        }
        let tls = read(&["--tls-cert", "a", "--tls-key", "b"], &[]).unwrap().tls.unwrap();
        assert_eq!((tls.cert, tls.key), ("a".into(), "b".into()));
    }
}
