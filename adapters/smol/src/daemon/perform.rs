//! Does what the daemon machine says, and answers for it while there is none.

use super::ipc::{IPC_BUFFER_BYTES, Ipc};
use super::keep::Saves;
use super::link::{self, LINK_BUFFER_BYTES, Links};
use super::snapshot::Snapshots;
use super::sockets::SocketFiles;
use super::wake;
use crate::client::Hello;
use crate::driver::{Events, Flow, Health, Perform};
use crate::log::{Level, Log};
use crate::outbox::Outbox;
use async_executor::Executor;
use messaging_machines::Machine;
use messaging_machines::daemon::io::{self, Effect, Event, HostCall, IpcId, LinkId, WakeId};
use messaging_proto::ulid::Ulid;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

/// What a client is told to wait before it tries again.
const RETRY_AFTER_MS: u64 = 1_000;

/// What effects and sockets share.
pub(super) struct Shared {
    pub(super) ipc: Ipc,
    pub(super) links: Links,
    pub(super) log: Log,
    /// Where sockets and files report; set before the first effect.
    pub(super) wired: OnceLock<Wired>,
}

/// What exists only once the driver does.
pub(super) struct Wired {
    pub(super) events: Events<Event>,
    pub(super) saves: Saves,
    pub(super) snapshots: Snapshots,
    pub(super) health: Arc<Health>,
}

/// The daemon's side of its driver.
pub(super) struct Performer {
    pub(super) shared: Arc<Shared>,
    pub(super) executor: Arc<Executor<'static>>,
    pub(super) sockets: SocketFiles,
    pub(super) hello: Hello,
    /// Connections that got something since the last flush.
    pub(super) dirty: Vec<Arc<Outbox>>,
    /// Connections that a machine, or nobody, was told of; those still on their way are the next machine's.
    pub(super) told: BTreeSet<IpcId>,
}

/// A request of a client that no machine will answer.
pub(super) struct Receipt {
    conn: IpcId,
    id: Value,
}

impl Performer {
    fn dial(&self, link: LinkId, url: String) {
        let Some(wired) = self.shared.wired.get() else { return };
        let outbox = self.shared.links.add(link);
        let (shared, events) = (Arc::clone(&self.shared), wired.events.clone());
        self.executor
            .spawn(async move { link::serve(&shared.links, link, url, outbox, events).await })
            .detach();
    }

    fn wake(&self, wake: WakeId, host: HostCall, ids: Vec<Ulid>) {
        let Some(wired) = self.shared.wired.get() else { return };
        let events = wired.events.clone();
        self.executor
            .spawn(async move {
                let end = wake::call(wake::registration_file(), &host, &ids).await;
                events.send(Event::WakeEnded { wake, end }).await;
            })
            .detach();
    }

    /// Queues for one connection, which is dropped when it falls behind.
    fn push(&mut self, outbox: Arc<Outbox>, text: String, max: usize, event: &'static str) {
        if outbox.push(text) > max {
            outbox.abort();
            self.shared.log.warn(event, &[]);
        }
        self.dirty.push(outbox);
    }

    fn ipc_send(&mut self, conn: IpcId, line: String) {
        if let Some(outbox) = self.shared.ipc.get(conn) {
            self.push(outbox, line, IPC_BUFFER_BYTES, "ipc.slow");
        }
        if let Some(outbox) = self.shared.ipc.hoarder() {
            outbox.abort();
            self.shared.log.warn("ipc.slow", &[]);
            self.dirty.push(outbox);
        }
    }

    /// Closes the connections that the next machine will not know.
    fn close_told(&mut self) {
        for outbox in std::mem::take(&mut self.told).into_iter().filter_map(|conn| self.shared.ipc.get(conn))
        {
            outbox.close(0);
            self.dirty.push(outbox);
        }
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::IpcOpened { conn, .. } => drop(self.told.insert(*conn)),
            Event::IpcClosed { conn } => drop(self.told.remove(conn)),
            Event::IpcLine { conn, line } => self.shared.ipc.taken(*conn, line.len()),
            _ => {}
        }
    }

    fn answer(&mut self, receipt: Receipt) {
        let full = self.shared.wired.get().is_some_and(|wired| wired.health.disk_full());
        let why =
            if full { "the disk of the home is full, make room" } else { "the store failed, try again" };
        let data = json!({"code": "internal", "retryAfterMs": RETRY_AFTER_MS});
        let error = json!({"code": -32603, "message": format!("internal: {why}"), "data": data});
        self.ipc_send(receipt.conn, json!({"jsonrpc": "2.0", "id": receipt.id, "error": error}).to_string());
    }

    fn log(&self, log: &io::Log) {
        let level = match log.level {
            io::Level::Error => Level::Error,
            io::Level::Warn => Level::Warn,
            io::Level::Info => Level::Info,
            io::Level::Debug => Level::Debug,
        };
        let fields: Vec<(&str, Value)> =
            log.fields.iter().map(|(name, text)| (*name, text.as_str().into())).collect();
        self.shared.log.event(level, log.event, &fields);
    }
}

/// The request in a line, when it has a readable id.
fn receipt(event: &Event) -> Option<Receipt> {
    let Event::IpcLine { conn, line } = event else { return None };
    let mut line: Value = serde_json::from_slice(line).ok()?;
    let id = line.get_mut("id").map(Value::take).filter(|id| id.is_string() || id.is_u64())?;
    Some(Receipt { conn: *conn, id })
}

impl<M: Machine<Event = Event, Effect = Effect>> Perform<M> for Performer {
    type Receipt = Receipt;

    fn receipt(&mut self, event: &Event) -> Option<Receipt> {
        self.note(event);
        receipt(event)
    }

    fn perform(&mut self, effect: Effect) -> Flow {
        match effect {
            Effect::Dial { link, url } => self.dial(link, url),
            Effect::LinkSend { link, text } => {
                if let Some(outbox) = self.shared.links.get(link) {
                    self.push(outbox, text, LINK_BUFFER_BYTES, "link.slow");
                }
            }
            Effect::Hangup { link, code } => {
                if let Some(outbox) = self.shared.links.get(link) {
                    outbox.close(code);
                    self.dirty.push(outbox);
                }
            }
            Effect::IpcSend { conn, line } => self.ipc_send(conn, line),
            Effect::IpcClose { conn } => {
                if let Some(outbox) = self.shared.ipc.get(conn) {
                    outbox.close(0);
                    self.dirty.push(outbox);
                }
            }
            Effect::Save { save, file } => {
                if let Some(wired) = self.shared.wired.get() {
                    wired.saves.save(save, file);
                }
            }
            Effect::Snapshot { copy, at } => {
                if let Some(wired) = self.shared.wired.get() {
                    wired.snapshots.make(copy, at);
                }
            }
            Effect::DropSnapshot => {
                if let Some(wired) = self.shared.wired.get() {
                    wired.snapshots.let_go();
                }
            }
            Effect::Wake { wake, host, ids } => self.wake(wake, host, ids),
            Effect::Log(log) => self.log(&log),
            Effect::Stopped => {
                // The sockets go first, the store after them, the lock last (§8.1).
                self.sockets.remove();
                return Flow::Stop;
            }
        }
        Flow::Continue
    }

    fn flush(&mut self) {
        for outbox in self.dirty.drain(..) {
            outbox.wake();
        }
    }

    /// Clients are told to try again and are closed: what they registered was in the machine's memory. The link is
    /// closed too, and the relay sends again what was not acknowledged.
    fn reset(&mut self, lost: Vec<Receipt>, _unsaid: Vec<Effect>) {
        for receipt in lost {
            self.answer(receipt);
        }
        self.close_told();
        if let Some(wired) = self.shared.wired.get() {
            wired.snapshots.cancel();
        }
        for outbox in self.shared.links.all() {
            outbox.close(1001);
            self.dirty.push(outbox);
        }
    }

    fn refuse(&mut self, event: Event) {
        self.note(&event);
        match &event {
            Event::IpcOpened { conn, .. } => self.ipc_send(*conn, self.hello.line()),
            Event::IpcLine { .. } => {
                if let Some(receipt) = receipt(&event) {
                    self.answer(receipt);
                }
            }
            Event::IpcTooLong { conn } => {
                if let Some(outbox) = self.shared.ipc.get(*conn) {
                    outbox.close(0);
                    self.dirty.push(outbox);
                }
            }
            _ => {}
        }
    }

    fn resume(&mut self) -> Vec<Event> {
        // Whoever connected while there was no machine: this one does not know them.
        self.close_told();
        Perform::<M>::flush(self);
        vec![Event::Start]
    }
}
