//! The daemon's home, sockets and link around a machine that only plays one.

mod home;
mod ipc;
mod link;

use super::DaemonOptions;
use super::service::{Running, StartError, start_with};
use crate::client::{Client, Hello, IPC_PROTOCOL, Options, Tier};
use crate::home::{Home, Owner};
use crate::log::Log;
use crate::store::Location;
use crate::store::fault::Faults;
use messaging_machines::daemon::Config;
use messaging_machines::daemon::io::{Effect, Event, File, IpcId, LinkEnd, LinkId, SaveId};
use messaging_machines::{Machine, Out, Step, StoreDown, Table, Txn};
use messaging_proto::time::Mono;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

const T: Table = Table("t");

/// Serves a few methods of its own.
struct Fake {
    config: Config,
    open: BTreeSet<IpcId>,
    links: u64,
}

impl Fake {
    fn tell(&self, out: &mut Out<Effect>, params: &Value) {
        for conn in &self.open {
            let line = json!({"jsonrpc": "2.0", "method": "event", "params": params}).to_string();
            out.push(Effect::IpcSend { conn: *conn, line });
        }
    }

    fn call(&mut self, method: &str, params: &Value, store: &mut Txn<'_>, out: &mut Out<Effect>) -> Value {
        match method {
            "echo" => params.clone(),
            "put" => {
                store.put(T, params["key"].as_str().unwrap_or_default().as_bytes(), b"x");
                json!({"ok": true})
            }
            "rows" => json!(store.prefix(T, b"", 100).map_or(0, |rows| rows.len())),
            "flood" => {
                for (conn, _) in
                    self.open.first().into_iter().flat_map(|conn| (0..48).map(move |n| (*conn, n)))
                {
                    out.push(Effect::IpcSend { conn, line: "x".repeat(1 << 20) });
                }
                json!({"ok": true})
            }
            // 24 MiB for everybody there is.
            "hoard" => {
                for conn in &self.open {
                    for _ in 0..24 {
                        out.push(Effect::IpcSend { conn: *conn, line: "x".repeat(1 << 20) });
                    }
                }
                json!({"ok": true})
            }
            "save" => {
                let file = File::Config(params["text"].as_str().unwrap_or_default().to_owned());
                out.push(Effect::Save { save: SaveId(1), file });
                json!({"ok": true})
            }
            "person" => json!(self.config.settings.person().map(ToString::to_string)),
            "dial" => {
                self.links += 1;
                let url = params["url"].as_str().unwrap_or_default().to_owned();
                out.push(Effect::Dial { link: LinkId(self.links), url });
                json!(self.links)
            }
            "say" => {
                let text = params["text"].as_str().unwrap_or_default().to_owned();
                out.push(Effect::LinkSend { link: LinkId(self.links), text });
                json!({"ok": true})
            }
            "hangup" => {
                out.push(Effect::Hangup { link: LinkId(self.links), code: 1000 });
                json!({"ok": true})
            }
            "stop" => json!({"ok": true}),
            _ => json!({"unknown": method}),
        }
    }
}

impl Machine for Fake {
    type Event = Event;
    type Effect = Effect;
    type Timer = ();

    fn handle(
        &mut self,
        _: &Step,
        event: Event,
        store: &mut Txn<'_>,
        out: &mut Out<Effect>,
    ) -> Result<(), StoreDown> {
        match event {
            Event::IpcOpened { conn, .. } => {
                self.open.insert(conn);
                let (version, pid) = (self.config.version.clone(), self.config.pid);
                let hello = Hello { version, protocol: IPC_PROTOCOL, pid, deployment: None };
                out.push(Effect::IpcSend { conn, line: hello.line() });
            }
            Event::IpcLine { conn, line } => {
                let line: Value = serde_json::from_slice(&line).unwrap_or_default();
                let method = line["method"].as_str().unwrap_or_default();
                let result = self.call(method, &line["params"], store, out);
                let reply = json!({"jsonrpc": "2.0", "id": line["id"], "result": result}).to_string();
                out.push(Effect::IpcSend { conn, line: reply });
                if method == "stop" {
                    out.push(Effect::Stopped);
                }
            }
            Event::IpcTooLong { conn } => {
                let error = json!({"code": -32600, "message": "x", "data": {"code": "too_large"}});
                let line = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
                out.push(Effect::IpcSend { conn, line });
                out.push(Effect::IpcClose { conn });
            }
            Event::IpcClosed { conn } => {
                self.open.remove(&conn);
            }
            Event::LinkOpened { .. } => self.tell(out, &json!({"link": "opened"})),
            Event::LinkFrame { frame, .. } => {
                self.tell(out, &json!({"frame": frame.t(), "bytes": frame.bytes}))
            }
            Event::LinkClosed { why, .. } => {
                let why = match why {
                    LinkEnd::Unreachable(word) => word,
                    LinkEnd::Closed(code) => code.to_string(),
                    LinkEnd::Lost => "lost".to_owned(),
                };
                self.tell(out, &json!({"link": why}));
            }
            Event::Saved { ok, .. } => self.tell(out, &json!({"saved": ok})),
            Event::Stop => out.push(Effect::Stopped),
            _ => {}
        }
        Ok(())
    }

    fn deadline(&self) -> Option<(Mono, ())> {
        None
    }

    fn timer_event() -> Event {
        Event::Timer
    }
}

fn home(dir: &Path) -> Home {
    Home::new(&dir.join("home"))
}

struct World {
    daemon: Running,
    home: Home,
    faults: Faults,
    log: Log,
}

fn try_start(home: &Home, log: &Log, faults: &Faults) -> Result<Running, StartError> {
    let location = Location::with_faults(&home.store(), faults.clone());
    let log = log.clone();
    start_with(
        &DaemonOptions::new(home.clone()),
        location,
        |_| Ok(log),
        Box::new(|| {}),
        |config, _, _| Fake { config, open: BTreeSet::new(), links: 0 },
    )
}

fn start(home: &Home) -> World {
    let (log, faults) = (Log::kept(), Faults::default());
    let daemon = try_start(home, &log, &faults).unwrap_or_else(|error| panic!("{error}"));
    World { daemon, home: home.clone(), faults, log }
}

impl World {
    fn client(&self) -> Client {
        self.connect(Tier::Admin)
    }

    fn connect(&self, tier: Tier) -> Client {
        Client::connect(&Options { tier, owner: Owner::me(), ..Options::admin(self.home.clone()) }).unwrap()
    }

    fn stop(self) {
        self.daemon.ask_to_stop();
        self.daemon.finish().unwrap();
    }
}

/// The next event, which must come soon.
fn event(client: &Client) -> Value {
    client.next_event(Some(Duration::from_secs(15))).unwrap().expect("an event")
}
