//! `echo`: an agent that answers, to try a team with before real agents are in it.

use super::args::Echo;
use super::failure::Failure;
use super::output::{self, BAD, FAINT, GOOD};
use super::shell::Shell;
use super::value::{Read, array, object, string};
use serde_json::Value;
use std::time::Duration;

/// Looked for again this often, besides what events say.
const LOOK: Duration = Duration::from_secs(5);

/// The agent.
struct Agent<'a> {
    shell: &'a mut Shell,
    name: &'a str,
    /// Of its own making and the same for as long as it runs, so that its mailbox is the same after the daemon was away.
    key: String,
    /// What it is about to say, until the daemon has taken it.
    answer: Option<Answer>,
}

/// The answer to an item that was read.
struct Answer {
    id: String,
    from: String,
    method: &'static str,
    params: Value,
}

pub(super) fn run(shell: &mut Shell, args: &Echo) -> Result<(), Failure> {
    let key = super::fresh_key()?;
    let mut agent = Agent { shell, name: &args.name, key, answer: None };
    let session = agent.register()?;
    agent.shell.out.result(&session, || {
        format!(
            "The agent {} answers every message with what it said, until you press Ctrl-C.",
            output::clean(session.text("address"))
        )
    });
    loop {
        match agent.answer_all() {
            Err(failure) if failure.is_lost() => {
                output::complain(&output::fitted(&format!(
                    "{BAD}{}{BAD:#}: {}. This goes on once it is back; Ctrl-C ends it.\nNext: {}",
                    failure.code, failure.text, failure.remedy
                )));
                agent.wait_for_daemon()?;
                output::complain(&format!("{GOOD}The daemon is back.{GOOD:#}"));
            }
            other => return other,
        }
    }
}

impl Agent<'_> {
    /// Makes this connection the agent's.
    fn register(&mut self) -> Result<Value, Failure> {
        let params = [("key", &*self.key), ("name", self.name), ("agent", "echo"), ("tier", "push")];
        let params = object(params.map(|(member, text)| (member, string(text))));
        let session = self.shell.call("session.register", params)?;
        self.shell.call("events.subscribe", object([("key", string(&self.key))]))?;
        Ok(session)
    }

    fn wait_for_daemon(&mut self) -> Result<(), Failure> {
        loop {
            output::read_on()?;
            std::thread::sleep(Shell::AGAIN);
            self.shell.reconnect();
            match self.register() {
                Ok(_) => return Ok(()),
                Err(failure) if failure.is_lost() => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Answers what is unread and what comes, until something fails.
    fn answer_all(&mut self) -> Result<(), Failure> {
        self.say()?;
        loop {
            let unread = object([("key", string(&self.key)), ("unreadOnly", Value::Bool(true))]);
            let list = self.shell.call("inbox.list", unread)?;
            for item in list.items("items").iter().rev() {
                self.read(item)?;
                self.say()?;
            }
            self.shell.event(Some(LOOK))?;
        }
    }

    /// Reads one item, and has its answer ready.
    fn read(&mut self, item: &Value) -> Result<(), Failure> {
        let id = item.text("id");
        let read = self.shell.call("item.read", object([("key", string(&self.key)), ("id", string(id))]))?;
        let parts = read.get("message").map(|message| message.items("parts")).unwrap_or_default();
        let said: Vec<&str> = parts.iter().filter_map(|part| part.maybe("text")).collect();
        let text = array([object([("text", string(&format!("You said: {}", said.join(" "))))])]);
        let (method, params) = match item.maybe("taskId").filter(|_| item.text("kind") == "task") {
            Some(task) => (
                "task.update",
                object([
                    ("key", string(&self.key)),
                    ("taskId", string(task)),
                    ("state", string("TASK_STATE_COMPLETED")),
                    ("message", text),
                ]),
            ),
            None => {
                let to = item.get("from").map(|from| from.text("address")).unwrap_or_default();
                (
                    "msg.send",
                    object([
                        ("key", string(&self.key)),
                        ("to", string(to)),
                        ("parts", text),
                        ("replyTo", string(id)),
                        // Said again after the daemon was away, it is sent once.
                        ("idempotencyKey", string(&format!("echo:{id}"))),
                    ]),
                )
            }
        };
        let from = super::mail::peer(item.get("from"));
        self.answer = Some(Answer { id: id.to_owned(), from, method, params });
        Ok(())
    }

    /// Gives the answer that is ready to the daemon, and says so.
    fn say(&mut self) -> Result<(), Failure> {
        let Some(answer) = &self.answer else { return Ok(()) };
        let result = match self.shell.call(answer.method, answer.params.clone()) {
            Err(failure) if failure.is_lost() => return Err(failure),
            result => result,
        };
        let (id, from) = (&answer.id, &answer.from);
        let document = object([("answered", string(id)), ("ok", Value::Bool(result.is_ok()))]);
        self.shell.out.result(&document, || match &result {
            Ok(_) => format!("{FAINT}answered {id} from {from}{FAINT:#}"),
            Err(failure) => format!("{FAINT}{id} could not be answered: {}{FAINT:#}", failure.code),
        });
        self.answer = None;
        Ok(())
    }
}
