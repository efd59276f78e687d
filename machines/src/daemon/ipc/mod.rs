//! The local API's connections (`messaging/1 §8.2`; `contract ipc §1`): framing, tiers, check order, pending
//! limit, replies, events and subscriptions. What a method does is its role's; [`methods`] is the table.

mod directory;
mod error;
mod frame;
pub mod methods;
pub mod params;

pub use error::RpcError;
pub use frame::{IPC_REQUEST_BYTES, Line, Request, RequestId, read};

use super::ctx::{About, Caller, obj};
use super::io::{Effect, IpcId, Tier};
use crate::machine::Out;
use messaging_proto::Code;
use messaging_proto::json::{Fields, FromValue, Value, canonicalize};
use methods::{Call, Method};
use std::collections::{BTreeMap, BTreeSet};

/// `IPC_PROTOCOL`.
pub const IPC_PROTOCOL: u64 = 1;
/// `ipcPending`: requests in work per connection.
const PENDING: usize = 64;
/// `ipcConnections`: connections per socket.
const CONNECTIONS: usize = 256;
/// `ipcLineBytes`: the longest daemon line, LF excluded.
const LINE_BYTES: usize = 8_388_608;

#[derive(Debug)]
struct Conn {
    tier: Tier,
    pending: usize,
    /// Session keys this connection registered.
    held: BTreeSet<String>,
    /// Session keys it subscribed.
    keys: BTreeSet<String>,
    conv: bool,
    /// `notice.subscribe`, and whether it asked for `lines`.
    notice: Option<bool>,
}

impl Conn {
    fn subscribed(&self) -> bool {
        self.conv || self.notice.is_some() || !self.keys.is_empty()
    }
}

/// The open connections of both sockets.
#[derive(Debug, Default)]
pub struct Conns(BTreeMap<IpcId, Conn>);

/// A request that passed every check before its method's own.
#[derive(Debug)]
pub struct Admitted {
    /// Where the reply goes.
    pub caller: Caller,
    /// Its row of the table.
    pub method: &'static Method,
    /// Its params.
    pub call: Call,
}

impl Conns {
    /// A client connected: it gets the hello line first (`§8.2`, "Hello"), and is closed when its socket has
    /// the most connections already.
    pub(in crate::daemon) fn open(
        &mut self,
        out: &mut Out<Effect>,
        conn: IpcId,
        tier: Tier,
        about: &About,
    ) -> bool {
        let params = obj([
            ("daemon", Value::text("messagingd")),
            ("version", Value::text(about.version.as_str())),
            ("protocol", Value::int(IPC_PROTOCOL)),
            ("pid", Value::int(u64::from(about.pid))),
        ]);
        say(out, conn, &notification("hello", params));
        if self.0.values().filter(|other| other.tier == tier).count() >= CONNECTIONS {
            out.push(Effect::IpcClose { conn });
            return false;
        }
        let fresh = Conn {
            tier,
            pending: 0,
            held: BTreeSet::new(),
            keys: BTreeSet::new(),
            conv: false,
            notice: None,
        };
        self.0.insert(conn, fresh);
        true
    }

    /// A client's connection ended. The session keys it held, when it was known.
    pub(in crate::daemon) fn close(&mut self, conn: IpcId) -> Option<Vec<String>> {
        self.0.remove(&conn).map(|conn| conn.held.into_iter().collect())
    }

    /// A line over `ipcRequestBytes`: refused, then the connection is closed.
    pub(in crate::daemon) fn too_long(&self, out: &mut Out<Effect>, conn: IpcId) {
        if self.0.contains_key(&conn) {
            let error = RpcError::request(Code::TooLarge, "the line is too long");
            say(out, conn, &reply_line(None, Err(error)));
            out.push(Effect::IpcClose { conn });
        }
    }

    /// Checks a line up to the session key (`contract ipc §1`, "Check order"). A refusal is said here.
    pub(in crate::daemon) fn admit(
        &mut self,
        out: &mut Out<Effect>,
        conn: IpcId,
        line: &[u8],
    ) -> Option<Admitted> {
        let state = self.0.get_mut(&conn)?;
        let request = match read(line) {
            Line::Request(request) => request,
            Line::Ignored => return None,
            Line::Refused(id, error) => {
                say(out, conn, &reply_line(id.as_ref(), Err(error)));
                return None;
            }
        };
        match check(state, &request) {
            Ok((method, call)) => {
                state.pending += 1;
                Some(Admitted { caller: Caller { conn, id: request.id }, method, call })
            }
            Err(error) => {
                say(out, conn, &reply_line(Some(&request.id), Err(error)));
                None
            }
        }
    }

    /// Answers an admitted request.
    pub(in crate::daemon) fn reply(
        &mut self,
        out: &mut Out<Effect>,
        caller: &Caller,
        result: Result<Value, RpcError>,
    ) {
        let Some(state) = self.0.get_mut(&caller.conn) else { return };
        state.pending = state.pending.saturating_sub(1);
        say(out, caller.conn, &reply_line(Some(&caller.id), result));
    }

    /// Notes that this connection registered a session key.
    pub(in crate::daemon) fn hold(&mut self, conn: IpcId, key: &str) {
        if let Some(conn) = self.0.get_mut(&conn) {
            conn.held.insert(key.to_owned());
        }
    }

    /// Forgets a session key everywhere: it was unregistered, expired or taken over.
    pub(in crate::daemon) fn release(&mut self, key: &str) {
        for conn in self.0.values_mut() {
            conn.held.remove(key);
            conn.keys.remove(key);
        }
    }

    /// Subscribes this connection to a session key's events.
    pub(in crate::daemon) fn subscribe_key(&mut self, conn: IpcId, key: &str) {
        if let Some(conn) = self.0.get_mut(&conn) {
            conn.keys.insert(key.to_owned());
        }
    }

    /// Subscribes this connection to `conv` events.
    pub(in crate::daemon) fn subscribe_conv(&mut self, conn: IpcId) {
        if let Some(conn) = self.0.get_mut(&conn) {
            conn.conv = true;
        }
    }

    /// Subscribes this connection to `notice` events, with or without their `line`.
    pub(in crate::daemon) fn subscribe_notice(&mut self, conn: IpcId, lines: bool) {
        if let Some(conn) = self.0.get_mut(&conn) {
            conn.notice = Some(lines);
        }
    }

    /// Connections with `notice.subscribe`, and whether each asked for `lines`.
    pub fn notice_subscribers(&self) -> impl Iterator<Item = (IpcId, bool)> {
        self.0.iter().filter_map(|(id, conn)| conn.notice.map(|lines| (*id, lines)))
    }

    /// Whether this connection registered the key.
    #[must_use]
    pub fn holds(&self, conn: IpcId, key: &str) -> bool {
        self.0.get(&conn).is_some_and(|conn| conn.held.contains(key))
    }

    /// Whether any connection holds the key.
    #[must_use]
    pub fn held(&self, key: &str) -> bool {
        self.0.values().any(|conn| conn.held.contains(key))
    }

    /// How many requests wait for their reply.
    #[must_use]
    pub fn in_work(&self) -> usize {
        self.0.values().map(|conn| conn.pending).sum()
    }

    /// Whether a connection is one of the agent socket.
    #[must_use]
    pub(in crate::daemon) fn is_agent(&self, conn: IpcId) -> bool {
        self.0.get(&conn).is_some_and(|conn| conn.tier == Tier::Agent)
    }

    /// Whether a connection hears the events of a key.
    pub(in crate::daemon) fn wants_key(&self, key: &str) -> bool {
        self.0.values().any(|conn| conn.keys.contains(key) && conn.held.contains(key))
    }

    pub(in crate::daemon) fn event_key(&self, out: &mut Out<Effect>, key: &str, event: &Value) {
        self.event_where(out, event, |conn| conn.keys.contains(key) && conn.held.contains(key));
    }

    pub(in crate::daemon) fn event_all(&self, out: &mut Out<Effect>, event: &Value) {
        self.event_where(out, event, Conn::subscribed);
    }

    pub(in crate::daemon) fn event_conv(&self, out: &mut Out<Effect>, event: &Value) {
        self.event_where(out, event, |conn| conn.conv);
    }

    pub(in crate::daemon) fn event_to(&self, out: &mut Out<Effect>, conn: IpcId, event: &Value) {
        if self.0.contains_key(&conn) {
            say(out, conn, &notification("event", event.clone()));
        }
    }

    fn event_where(&self, out: &mut Out<Effect>, event: &Value, wants: impl Fn(&Conn) -> bool) {
        let mut line = None;
        for (id, _) in self.0.iter().filter(|(_, conn)| wants(conn)) {
            let line = line.get_or_insert_with(|| text(&notification("event", event.clone())));
            if let Some(line) = line {
                out.push(Effect::IpcSend { conn: *id, line: line.clone() });
            }
        }
    }
}

/// Method served here, then params, then the session key.
fn check(conn: &Conn, request: &Request) -> Result<(&'static Method, Call), RpcError> {
    if conn.pending >= PENDING {
        return Err(RpcError::new(Code::RateLimited, "too many requests of this connection are in work"));
    }
    let method = methods::find(&request.method);
    let method = match (conn.tier, method) {
        (Tier::Agent, Some(method)) if method.tier == methods::Tier::Agent => method,
        // §8.2 "Two sockets": refused before its params are read, whether or not it exists.
        (Tier::Agent, _) => return Err(RpcError::new(Code::Forbidden, "not a method of this socket")),
        (Tier::Admin, Some(method)) => method,
        (Tier::Admin, None) => return Err(RpcError::method()),
    };
    let params = Fields::of(&request.params).map_err(|invalid| RpcError::params(&invalid))?;
    let call = (method.read)(&params).map_err(|invalid| RpcError::params(&invalid))?;
    // §8.2 "Key-scoped methods": only a key this connection registered.
    if method.name != "session.register"
        && let Some(key) = params.raw("key").and_then(|key| params::SessionKey::from_value(key).ok())
        && !conn.held.contains(key.as_str())
    {
        return Err(RpcError::new(Code::NotFound, "this connection registered no such key").at("key"));
    }
    Ok((method, call))
}

fn notification(method: &str, params: Value) -> Value {
    obj([("jsonrpc", Value::text("2.0")), ("method", Value::text(method)), ("params", params)])
}

fn reply_line(id: Option<&RequestId>, result: Result<Value, RpcError>) -> Value {
    let id = id.map_or(Value::Null, RequestId::to_value);
    let (name, body) = match result {
        Ok(value) => ("result", value),
        Err(error) => ("error", error.to_value()),
    };
    obj([("jsonrpc", Value::text("2.0")), ("id", id), (name, body)])
}

/// A line's text; nothing when it cannot be one (too deep, or too long).
fn text(value: &Value) -> Option<String> {
    canonicalize(value).ok().filter(|line| line.len() <= LINE_BYTES)
}

fn say(out: &mut Out<Effect>, conn: IpcId, value: &Value) {
    let line = text(value).or_else(|| {
        // A result that no line can carry: its caller still gets an answer.
        let id = value.get("id").cloned()?;
        let error = RpcError::new(Code::TooLarge, "the result does not fit a line").to_value();
        text(&obj([("jsonrpc", Value::text("2.0")), ("id", id), ("error", error)]))
    });
    if let Some(line) = line {
        out.push(Effect::IpcSend { conn, line });
    }
}
