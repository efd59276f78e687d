//! The agent's session, kept registered over restarts of the daemon (`§11`, "MCP server"; `§8.2`).

use crate::failure::Failure;
use crate::flags::Settings;
use crate::link::Link;
use crate::tally::Tally;
use messaging_proto::Code;
use messaging_proto::address::SessionAddress;
use messaging_proto::name::{PersonId, SessionName};
use messaging_smol::client::{ClientError, Options};
use messaging_smol::handle::{Handle, Published, publish};
use messaging_smol::home::Home;
use messaging_smol::supervise;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::sync::Mutex;

/// The kind of agent this registers as.
pub(crate) const AGENT: &str = "mcp";

/// How long a call may take that only adds to what an answer says.
const QUICK: Duration = Duration::from_secs(5);
/// How long a daemon that was started here may take.
const START: Duration = Duration::from_secs(10);
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Who the agent is.
pub(crate) type Me = SessionAddress;

/// The session of this process.
pub(crate) struct Session {
    options: Options,
    name: SessionName,
    key: Option<String>,
    slot: Mutex<Slot>,
    pub(crate) tally: Arc<Tally>,
    /// Lets the agent's hooks find this session, for as long as the process lives.
    handle: std::sync::Mutex<Option<Published>>,
}

#[derive(Default)]
struct Slot {
    link: Option<Arc<Link>>,
    me: Option<Me>,
    /// When the last link was lost; what changed since is caught up with.
    lost: Option<u64>,
}

/// A registered session's link.
#[derive(Clone)]
pub(crate) struct Ready {
    link: Arc<Link>,
    pub(crate) me: Me,
}

impl Session {
    pub(crate) fn new(settings: &Settings) -> Self {
        let key = fresh_key();
        let handle = key.as_ref().and_then(|key| publish(&handle(settings, key)?).ok());
        Self {
            options: Options::agent(settings.home.clone()),
            name: settings.name.clone(),
            key,
            slot: Mutex::default(),
            tally: Arc::default(),
            handle: std::sync::Mutex::new(handle),
        }
    }

    /// The key, a fresh one of this process.
    fn key(&self) -> Result<&str, Failure> {
        self.key.as_deref().ok_or_else(|| Failure::new(Code::Internal, "the system gives no randomness"))
    }

    /// The daemon's home.
    pub(crate) const fn home(&self) -> &Home {
        &self.options.home
    }

    /// The person this agent works for.
    pub(crate) async fn own(&self) -> Result<PersonId, Failure> {
        Ok(self.ready(true).await?.me.person)
    }

    /// Calls a method of the daemon.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Result<Value, Failure> {
        let mut ready = self.ready(true).await?;
        let mut result = ready.link.call(method, params.clone()).await;
        // The daemon went away meanwhile. What cannot take effect twice is asked again, once.
        if ready.link.is_ended() && method != "task.update" && unavailable(&result) {
            ready = self.ready(true).await?;
            result = ready.link.call(method, params).await;
        }
        Ok(result?)
    }

    /// Calls a method with this session's key.
    pub(crate) async fn keyed(&self, method: &str, mut params: Value) -> Result<Value, Failure> {
        params["key"] = json!(self.key()?);
        self.call(method, params).await
    }

    /// Calls a method with this session's key on the link as it is; nothing when there is none, or it refuses.
    pub(crate) async fn quick(&self, method: &str, mut params: Value) -> Option<Value> {
        let link = {
            let slot = self.slot.lock().await;
            slot.me.as_ref().and(slot.link.clone())?
        };
        params["key"] = json!(self.key.as_deref()?);
        tokio::time::timeout(QUICK, link.call(method, params)).await.ok()?.ok()
    }

    /// Keeps the session registered until the process ends. Only the first attempt starts a daemon: later ones would undo
    /// what its person stopped.
    pub(crate) async fn keep(self: Arc<Self>) {
        let mut start = true;
        let mut wait = RETRY_MIN;
        loop {
            match self.ready(start).await {
                Ok(ready) => {
                    wait = RETRY_MIN;
                    ready.link.until_ended().await;
                }
                Err(_) => wait = (wait * 2).min(RETRY_MAX),
            }
            start = false;
            tokio::time::sleep(wait).await;
        }
    }

    /// Tells the daemon that the agent goes; its mail is kept for whoever comes back.
    pub(crate) async fn leave(&self) {
        drop(self.handle.lock().unwrap_or_else(PoisonError::into_inner).take());
        let link = self.slot.lock().await.link.take();
        if let (Some(link), Some(key)) = (link, &self.key) {
            let _ = link.call("session.unregister", json!({ "key": key })).await;
        }
    }

    /// A link on which the session is registered and subscribed.
    pub(crate) async fn ready(&self, start: bool) -> Result<Ready, Failure> {
        let key = self.key()?;
        let mut slot = self.slot.lock().await;
        if slot.link.as_ref().is_some_and(|link| link.is_ended()) {
            *slot = Slot { lost: slot.lost.or_else(now), ..Slot::default() };
        }
        let link = match &slot.link {
            Some(link) => Arc::clone(link),
            None => {
                let link = Arc::new(self.open(start).await?);
                slot.link = Some(Arc::clone(&link));
                link
            }
        };
        if let Some(me) = &slot.me {
            return Ok(Ready { link, me: me.clone() });
        }
        let register = json!({"key": key, "name": self.name.as_str(), "agent": AGENT, "tier": "pull"});
        let registered = link.call("session.register", register).await?;
        let me = registered["address"].as_str().and_then(SessionAddress::parse);
        let me = me.ok_or_else(|| Failure::new(Code::Internal, "the daemon gave no address"))?;
        link.call("events.subscribe", json!({ "key": key })).await?;
        slot.me = Some(me.clone());
        if let Some(lost) = slot.lost.take() {
            let params = json!({"key": key, "updatedAfter": lost, "limit": 100});
            if let Ok(page) = link.call("task.list", params).await {
                page["tasks"].as_array().into_iter().flatten().for_each(|task| self.tally.changed_task(task));
            }
        }
        Ok(Ready { link, me })
    }

    /// Connects; where nothing answers and `start` is set, starts the daemon of this release first (`§8.2`).
    async fn open(&self, start: bool) -> Result<Link, ClientError> {
        let tally = Arc::clone(&self.tally);
        let open = || {
            let tally = Arc::clone(&tally);
            Link::open(&self.options, Arc::new(move |event: &Value| tally.event(event)))
        };
        let error = match open().await {
            Err(error) if error.code == Code::DaemonUnavailable && start => error,
            other => return other,
        };
        // A daemon of another user is that user's to start.
        if self.options.owner.daemon.is_some_and(|daemon| daemon != self.options.owner.me) {
            return Err(error);
        }
        let Some((program, arguments)) = daemon_program() else { return Err(error) };
        let home = self.options.home.clone();
        let started =
            tokio::task::spawn_blocking(move || supervise::start(&program, arguments, &home, START)).await;
        started.map_err(|_| error)??;
        open().await
    }
}

fn unavailable(result: &Result<Value, ClientError>) -> bool {
    matches!(result, Err(error) if error.code == Code::DaemonUnavailable)
}

/// The daemon beside this program.
fn daemon_program() -> Option<(PathBuf, &'static [&'static str])> {
    let folder = std::env::current_exe().ok()?.parent()?.to_owned();
    [("messagingd", &[][..]), ("messaging", &["daemon", "run"][..])]
        .into_iter()
        .map(|(name, arguments)| (folder.join(name), arguments))
        .find(|(program, _)| program.is_file())
}

fn handle(settings: &Settings, key: &str) -> Option<Handle> {
    Some(Handle {
        home: std::path::absolute(settings.home.path()).ok()?,
        name: settings.name.as_str().to_owned(),
        agent: AGENT.to_owned(),
        key: key.to_owned(),
        pid: std::process::id(),
        parent: u32::try_from(rustix::process::getppid()?.as_raw_pid()).ok()?,
        folder: std::env::current_dir().ok()?,
    })
}

/// 32 random bytes as base64url.
fn fresh_key() -> Option<String> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    Some(messaging_proto::b64u::encode(&bytes))
}

/// Milliseconds since 1970.
pub(crate) fn now() -> Option<u64> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_millis()).ok()
}
