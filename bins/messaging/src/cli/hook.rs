//! `hook`: an agent that can only pull is told what waits, by its own hooks.
//!
//! The agent runs this at the start of a session, with a prompt, after a tool and at the end of a turn. The session is the
//! one of the `messaging-mcp` beside it ([`messaging_smol::handle`]); its daemon is never started, and whatever goes wrong
//! the agent is left alone: no output, status 0.
//!
//! Peer text goes out fenced and bounded, and only as context. The end of a turn can only be answered by a prompt, so there
//! nothing of a peer's is said (`messaging/1 §12`: never in instructions).

mod notes;
mod state;

use super::args::Hook;
use super::failure::Failure;
use super::output::{Output, page, shell_word};
use super::shell::Shell;
use super::value::{Read as _, array, number, object, string};
use messaging_smol::client::{Client, Options};
use messaging_smol::handle::{self, Handle};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// How long the daemon may take for one answer; the agent waits for this program.
const ANSWER: Duration = Duration::from_millis(500);
/// How long the agent may take to say what happened.
const SAYS: Duration = Duration::from_secs(2);
/// Most of an input that is read.
const INPUT_BYTES: u64 = 64 << 20;
/// Most items and tasks that are looked at.
const LIMIT: u64 = 20;

/// What a hook is told. Both agents call these the same.
#[derive(Deserialize)]
struct Input {
    hook_event_name: Event,
    #[serde(default)]
    tool_name: Option<String>,
    /// Whether this turn goes on only because a hook said so.
    #[serde(default)]
    stop_hook_active: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Event {
    SessionStart,
    UserPromptSubmit,
    PostToolUse,
    Stop,
    #[serde(other)]
    Other,
}

impl Event {
    const ALL: [(Self, &str); 4] = [
        (Self::SessionStart, "SessionStart"),
        (Self::UserPromptSubmit, "UserPromptSubmit"),
        (Self::PostToolUse, "PostToolUse"),
        (Self::Stop, "Stop"),
    ];

    fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(event, _)| *event == self).map_or("", |(_, name)| name)
    }
}

pub(super) fn run(shell: &Shell, args: &Hook) -> Result<(), Failure> {
    if !matches!(args.agent.as_str(), "claude-code" | "codex") {
        return Err(Failure::usage("this knows the hooks of claude-code and codex")
            .with_remedy("run `messaging hook claude-code --print-config`, or with codex."));
    }
    if args.print_config {
        print_config(&args.agent, shell.named_home().as_deref());
        return Ok(());
    }
    if std::io::stdin().is_terminal() {
        return Err(Failure::usage("the agent runs this, and says on standard input what happened")
            .with_remedy(format!(
                "put what `messaging hook {} --print-config` shows into its settings.",
                args.agent
            )));
    }
    let Some(input) = input() else { return Ok(()) };
    let home = shell.home()?;
    // Told by the tool's own result already.
    let own_tool = input.tool_name.as_deref().is_some_and(|name| name.contains("messaging"));
    if input.hook_event_name == Event::Other || own_tool {
        return Ok(());
    }
    let Some(handle) = handle::find(&home, args.name.as_deref()) else { return Ok(()) };
    let _ = Told::new(handle, Options::agent(home)).and_then(|mut told| told.tell(&input));
    Ok(())
}

/// What the agent says, up to the end of its object: the agent may leave its side open. Nothing when it says nothing in time.
fn input() -> Option<Input> {
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new()
        .name("input".to_owned())
        .spawn(move || {
            let mut reader = serde_json::Deserializer::from_reader(std::io::stdin().lock().take(INPUT_BYTES));
            let _ = sender.send(Input::deserialize(&mut reader));
        })
        .ok()?;
    receiver.recv_timeout(SAYS).ok()?.ok()
}

/// One hook's look at the daemon.
struct Told {
    client: Client,
    handle: Handle,
}

impl Told {
    fn new(handle: Handle, options: Options) -> Option<Self> {
        let options = Options { hello_timeout: ANSWER, ..options };
        Some(Self { client: Client::connect(&options).ok()?, handle })
    }

    fn call<'a>(&self, method: &str, members: impl IntoIterator<Item = (&'a str, Value)>) -> Option<Value> {
        let mut params = object(members);
        params["key"] = string(&self.handle.key);
        self.client.call_within(method, params, ANSWER).ok()
    }

    fn tell(&mut self, input: &Input) -> Option<()> {
        let event = input.hook_event_name;
        // The same key under the same name: this connection is one more holder, and goes without a trace. On the way it
        // says whether the agent works.
        let idle = matches!(event, Event::SessionStart | Event::Stop);
        let registered = self.call(
            "session.register",
            [
                ("name", string(&self.handle.name)),
                ("agent", string(&self.handle.agent)),
                ("tier", string("pull")),
                ("state", string(if idle { "idle" } else { "busy" })),
            ],
        )?;
        if event == Event::Stop && input.stop_hook_active {
            return Some(());
        }
        let inbox = self.call("inbox.list", [("unreadOnly", Value::Bool(true)), ("limit", number(LIMIT))])?;
        let unread = inbox.int("unread").unwrap_or(0);
        let new: Vec<&Value> = inbox
            .items("items")
            .iter()
            // A session that begins knows nothing of what an earlier one was shown.
            .filter(|item| event == Event::SessionStart || item.text("stage") == "delivered")
            .collect();
        let tasks = self.call("task.list", [("limit", number(LIMIT))])?;
        let mut seen = state::Seen::load(&self.handle.home, registered.text("name"));
        let changed = seen.changed(tasks.items("tasks"));
        if new.is_empty() && changed.is_empty() {
            seen.save();
            return Some(());
        }
        if event == Event::Stop {
            // Not acknowledged: nothing was shown.
            if seen.hold_up(&new, &changed) {
                let reason = notes::waiting(new.len(), changed.len());
                Output::new(true).document(&json!({"decision": "block", "reason": reason}));
            }
            return Some(());
        }
        let told = notes::context(registered.text("name"), unread, &new, &changed)?;
        Output::new(true).document(&json!({
            "hookSpecificOutput": {"hookEventName": event.as_str(), "additionalContext": told.text},
        }));
        seen.save();
        // §11 "After-tool delivery": acknowledged only once it was handed over.
        if !told.shown.is_empty() {
            let ids = array(told.shown.iter().map(|id| string(id)));
            self.call("inbox.ack", [("ids", ids), ("stage", string("handed_to_agent"))])?;
        }
        Some(())
    }
}

/// The configuration, the same shape for both agents. A home that is not the default is named, since the agent may start the
/// hook without this shell's environment.
fn print_config(agent: &str, home: Option<&Path>) {
    let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(shell_word));
    let mut command = format!("{} hook {agent}", program.as_deref().unwrap_or("messaging"));
    if let Some(home) = home.and_then(|home| std::path::absolute(home).ok()) {
        command.push_str(&format!(" --home {}", shell_word(&home.to_string_lossy())));
    }
    let mut hooks = serde_json::Map::new();
    for (_, name) in Event::ALL {
        hooks.insert(
            name.to_owned(),
            json!([{"hooks": [{"type": "command", "command": command, "timeout": 5}]}]),
        );
    }
    let text = serde_json::to_string_pretty(&json!({ "hooks": hooks })).unwrap_or_default();
    page(&format!("{text}\n"));
}
