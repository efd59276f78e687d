//! What every verb needs: the home, a connection to its daemon, and this terminal's session.

use super::failure::Failure;
use super::output::{self, Output};
use super::value::{Read, object, string};
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// One run of `messaging`.
pub(crate) struct Shell {
    home: Option<PathBuf>,
    session: Option<String>,
    client: Option<Client>,
    key: Option<String>,
    pub(crate) out: Output,
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

    /// The connection to the daemon's admin socket, made on first use.
    pub(crate) fn client(&mut self) -> Result<&Client, Failure> {
        if self.client.is_none() {
            self.client = Some(Client::connect(&Options::admin(self.home()?))?);
        }
        self.client.as_ref().ok_or_else(|| Failure::new("internal", "no connection"))
    }

    /// Calls a method of the daemon.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        Ok(self.client()?.call(method, params)?)
    }

    /// The next event the daemon sends, or nothing when `wait` passes.
    pub(crate) fn event(&mut self, wait: Option<Duration>) -> Result<Option<Value>, Failure> {
        Ok(self.client()?.next_event(wait)?)
    }

    /// Registers this terminal's session on the connection and returns its key.
    ///
    /// The key is kept in `cli.json`, so that the mailbox stays the same between commands.
    pub(crate) fn key(&mut self) -> Result<String, Failure> {
        if let Some(key) = &self.key {
            return Ok(key.clone());
        }
        let home = self.home()?;
        let name = self.session.clone().unwrap_or_else(|| "cli".to_owned());
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

    /// Shows what is about to happen and asks, unless `yes`.
    pub(crate) fn confirm(&self, sentence: &str, yes: bool) -> Result<(), Failure> {
        if yes {
            return Ok(());
        }
        if !output::can_ask() {
            return Err(Failure::usage("this asks before it acts, and there is no terminal to ask on")
                .with_remedy("add --yes."));
        }
        output::complain(&format!("{}\nGo on? y/N", output::clean(sentence)));
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        if read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
            Ok(())
        } else {
            Err(Failure::new("answered_no", "you answered no"))
        }
    }
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
    let mut keys = match std::fs::read(&path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| broken())?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => object([]),
        Err(_) => return Err(broken()),
    };
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
