//! What every verb needs: the home, a connection to its daemon, and this terminal's session.

use super::failure::Failure;
use super::output::{self, FAINT, Output, WAITING};
use super::progress::Progress;
use super::value::{Read, object, string};
use messaging_proto::Code;
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use messaging_smol::supervise;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a daemon may take to serve.
const START_WAIT: Duration = Duration::from_secs(10);

/// One run of `messaging`.
pub(crate) struct Shell {
    home: Option<PathBuf>,
    session: Option<String>,
    client: Option<Client>,
    key: Option<String>,
    pub(crate) out: Output,
}

/// What was known of the relay before a list was read.
#[derive(Debug)]
pub(crate) struct View {
    relay: String,
    at: u64,
}

impl View {
    pub(crate) fn is_connected(&self) -> bool {
        self.relay == "connected"
    }
}

impl Shell {
    pub(crate) const fn new(home: Option<PathBuf>, out: Output, session: Option<String>) -> Self {
        Self { home, session, client: None, key: None, out }
    }

    /// The home: `--home`, else `$MESSAGING_HOME`, else `~/.messaging`.
    pub(crate) fn home(&self) -> Result<Home, Failure> {
        self.home.as_deref().map(Home::new).or_else(Home::from_env).ok_or_else(|| {
            Failure::usage("there is no home folder: neither --home, $MESSAGING_HOME nor $HOME is set")
        })
    }

    /// The home, when it was named: by `--home` or by `$MESSAGING_HOME`.
    pub(crate) fn named_home(&self) -> Option<PathBuf> {
        let named = || std::env::var_os("MESSAGING_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        self.home.clone().or_else(named)
    }

    /// The name of this terminal's session.
    pub(crate) fn session(&self) -> &str {
        self.session.as_deref().unwrap_or("cli")
    }

    /// The connection to the daemon's admin socket, made on first use.
    pub(crate) fn client(&mut self) -> Result<&Client, Failure> {
        if self.client.is_none() {
            let home = self.home()?;
            let admin = Client::connect(&Options::admin(home.clone()));
            // Beside a daemon of another user only the agents' socket is open (`§8.2` "Two sockets"). What is not served
            // there, the daemon refuses.
            let client = match admin {
                Err(error) if error.code == Code::Forbidden => {
                    Client::connect(&Options::agent(home)).map_err(|_| error)
                }
                other => other,
            };
            self.client = Some(client.map_err(|error| self.of_home(error.into()))?);
        }
        self.client.as_ref().ok_or_else(|| Failure::new("internal", "no connection"))
    }

    /// How soon a verb that goes on looks again for a daemon that is gone.
    pub(crate) const AGAIN: Duration = Duration::from_secs(1);

    /// Forgets the connection: the next call makes a new one.
    pub(crate) fn reconnect(&mut self) {
        self.client = None;
        self.key = None;
    }

    /// Calls a method of the daemon.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        let client = self.client()?;
        let progress = Progress::start("waiting for the daemon");
        let result = client.call(method, params);
        drop(progress);
        result.map_err(|error| self.of_home(error.into()))
    }

    /// A next step that may be about the daemon: that of the home that `--home` named.
    pub(crate) fn step(&self, step: &str) -> String {
        let Some(home) = &self.home else { return step.to_owned() };
        let home = output::shell_word(&output::clean(&home.to_string_lossy()));
        step.replace("`messaging daemon ", &format!("`messaging --home {home} daemon "))
    }

    fn of_home(&self, failure: Failure) -> Failure {
        let step = self.step(&failure.remedy);
        failure.with_remedy(step)
    }

    /// Starts the daemon when none answers, and says so: for verbs that a person stays in, and for all when
    /// `MESSAGING_AUTOSTART` is 1.
    pub(crate) fn autostart(&self) -> Result<(), Failure> {
        let home = self.home()?;
        let (program, arguments) = daemon_program()?;
        let progress = Progress::start("starting the daemon");
        let started = supervise::start(&program, arguments, &home, START_WAIT)?;
        drop(progress);
        if !started.already {
            output::complain(&format!("Started the daemon (pid {}).", started.pid));
        }
        Ok(())
    }

    /// What a list that is read after this can be known to hold. The daemon is connected once it has read what waited at the
    /// relay: asked after the list, it would speak for mail that came after it.
    pub(crate) fn view(&mut self) -> Result<View, Failure> {
        let health = self.call("daemon.health", object([]))?;
        Ok(View { relay: health.text("relay").to_owned(), at: output::now() })
    }

    /// When a list was true and whether it is all there is, beside it. `more` says how to see the rest, when the list was
    /// cut; `depends` whether others could have added to it while the relay was out of reach.
    pub(crate) fn as_of(&self, view: &View, more: Option<&str>, depends: bool) {
        let at = output::when(view.at);
        if depends && !view.is_connected() {
            self.out.note(&format!(
                "{WAITING}As of {at}, not known to be complete: the relay is {}. What others did since is not here.{WAITING:#}",
                view.relay
            ));
        } else if let Some(more) = more {
            self.out.note(&format!("{FAINT}As of {at}; there is more: {more}{FAINT:#}"));
        } else if !self.out.is_json() {
            self.out.note(&format!("{FAINT}As of {at}, complete.{FAINT:#}"));
        }
    }

    /// The next event the daemon sends, or nothing when `wait` passes.
    pub(crate) fn event(&mut self, wait: Option<Duration>) -> Result<Option<Value>, Failure> {
        output::read_on()?;
        let event = self.client()?.next_event(wait);
        event.map_err(|error| self.of_home(error.into()))
    }

    /// Registers this terminal's session on the connection and returns its key.
    ///
    /// The key is kept in `cli.json`, so that the mailbox stays the same between commands.
    pub(crate) fn key(&mut self) -> Result<String, Failure> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let home = self.home()?;
        let name = self.session().to_owned();
        self.client()?;
        let key = kept_key(home.path(), &name)?;
        let params = [("key", &*key), ("name", &*name), ("agent", "cli"), ("tier", "pull")];
        self.call("session.register", object(params.map(|(member, text)| (member, string(text)))))?;
        self.key = Some(key.clone());
        Ok(key)
    }

    /// Calls a method with this terminal's session key.
    pub(crate) fn call_keyed(
        &mut self,
        method: &str,
        members: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<Value, Failure> {
        let key = self.key()?;
        let mut params = vec![("key", string(&key))];
        params.extend(members);
        self.call(method, object(params))
    }

    /// Asks on the terminal; an ended input is an answer of no.
    pub(crate) fn ask(&self, question: &str) -> Result<String, Failure> {
        // What was typed before it was asked is no answer.
        output::forget_typed();
        output::complain(&output::fitted(question));
        let mut answer = String::new();
        match std::io::stdin().read_line(&mut answer) {
            Ok(count) if count > 0 => Ok(answer.trim().to_owned()),
            _ => Err(Failure::new("answered_no", "there was no answer")),
        }
    }

    /// Shows what is about to happen and asks, unless `yes`.
    pub(crate) fn confirm(&self, sentence: &str, yes: bool) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        if !output::can_ask() {
            return Err(Failure::usage("this asks before it acts, and there is no terminal to ask on")
                .with_remedy("add --yes."));
        }
        match self.ask(&format!("{}\nGo on? y/N", output::clean(sentence)))?.as_str() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Failure::new("answered_no", "you answered no")),
        }
    }
}

/// This executable as the daemon (`messaging/1 §8.10`): `messagingd` is one by itself, whatever link led to it;
/// `messaging` is one by its verb.
pub(crate) fn daemon_program() -> Result<(PathBuf, &'static [&'static str]), Failure> {
    let program = std::env::current_exe()
        .map_err(|_| Failure::new("daemon_unavailable", "this program cannot find itself"))?;
    // Under the name of the command line, `messagingd` takes the command line's words.
    let by_verb =
        !crate::messagingd::is_this() || program.file_name().is_some_and(|name| name == "messaging");
    Ok((program, if by_verb { &["daemon", "run"] } else { &[] }))
}

/// A text given as an argument, or all of standard input for `-`.
pub(crate) fn text_or_stdin(text: &str) -> Result<String, Failure> {
    if text != super::args::STDIN {
        return Ok(text.to_owned());
    }
    let mut all = String::new();
    // One byte past what any method takes is enough to be refused by it.
    let limit = 1_048_577;
    std::io::stdin()
        .take(limit)
        .read_to_string(&mut all)
        .map_err(|_| Failure::usage("standard input is not UTF-8 text"))?;
    Ok(all)
}

/// The key of the session `name` in `<home>/cli.json`, made on first use.
fn kept_key(home: &Path, name: &str) -> Result<String, Failure> {
    let path = home.join("cli.json");
    let broken = || {
        Failure::new("internal", "cli.json cannot be read or written")
            .with_remedy(format!("move {} aside and try again.", path.display()))
    };
    let read = || match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice::<Value>(&bytes).map_err(|_| broken()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(object([])),
        Err(_) => Err(broken()),
    };
    if let Some(key) = read()?.maybe(name) {
        return Ok(key.to_owned());
    }
    // One at a time: a key that another run wrote over is lost, and its session keeps the name for ever.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(home, flags, Mode::empty()).map_err(|_| broken())?;
    flock(&folder, FlockOperation::LockExclusive).map_err(|_| broken())?;
    let mut keys = read()?;
    if let Some(key) = keys.maybe(name) {
        return Ok(key.to_owned());
    }
    let key = fresh_key()?;
    keys.as_object_mut().ok_or_else(broken)?.insert(name.to_owned(), string(&key));
    messaging_smol::files::write_private(&path, keys.to_string().as_bytes()).map_err(|_| broken())?;
    Ok(key)
}

/// A fresh session key: 32 random bytes as base64url.
pub(crate) fn fresh_key() -> Result<String, Failure> {
    let bytes = messaging_smol::entropy::Entropy::new()
        .draw()
        .map_err(|_| Failure::new("internal", "the system gives no randomness"))?;
    Ok(messaging_proto::b64u::encode(&bytes))
}
