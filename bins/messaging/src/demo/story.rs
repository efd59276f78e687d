//! The exchange itself, told through the local API like any client would.

use super::processes::World;
use super::timeline::Timeline;
use crate::cli::{Failure, Progress, Read, array, fresh_key, object, string};
use messaging_smol::client::{Client, Options};
use messaging_smol::home::Home;
use serde_json::Value;
use std::time::{Duration, Instant};

/// How long any one thing may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// What happened, in numbers.
pub(super) struct Told {
    pub(super) messages: u64,
    pub(super) tasks: u64,
    pub(super) delivered_ms: u64,
}

/// An agent session on one machine.
struct Agent<'a> {
    name: &'static str,
    key: String,
    client: Client,
    timeline: &'a Timeline,
}

/// Tells the story: a team, a held message and its answer, a message with a reply, a task.
pub(super) fn tell(world: &World, timeline: &Timeline) -> Result<Told, Failure> {
    let alice = Client::connect(&Options::admin(world.alice.clone()))?;
    let bob = Client::connect(&Options::admin(world.bob.clone()))?;

    found(world, timeline, &alice, &bob)?;
    let mut planner = Agent::register(&world.alice, "alice/planner", timeline)?;
    let mut builder = Agent::register(&world.bob, "bob/builder", timeline)?;
    planner.wait_for_contact("bob/builder@desk")?;

    // The first message of a stranger to an agent waits for its person.
    let question = planner.send("message", "Is the build green?", None)?;
    planner.follow(&question, &["held"])?;
    timeline.act("bob", "agrees: alice's agents may ask mine from now on");
    bob.call("request.answer", object([("id", string(&question.id)), ("answer", string("always"))]))?;
    builder.take()?;
    planner.follow(&question, &["handed_to_agent", "read"])?;
    builder.send("message", "Green since this morning.", Some(&question.id))?;
    planner.follow(&question, &["replied"])?;
    planner.take()?;

    let second = planner.send("message", "Then please cut a release.", None)?;
    let delivered_ms = planner.follow(&second, &["delivered"])?;
    builder.take()?;
    planner.follow(&second, &["handed_to_agent", "read"])?;
    builder.send("message", "Send me a task for it.", Some(&second.id))?;
    planner.follow(&second, &["replied"])?;
    planner.take()?;

    let request = planner.send("task", "Cut release 1.2.0 and report the tag.", None)?;
    planner.follow(&request, &["delivered"])?;
    builder.take()?;
    builder.update(&request.task, "TASK_STATE_WORKING", "tagging", None)?;
    planner.follow_task(&request, "TASK_STATE_WORKING")?;
    builder.update(&request.task, "TASK_STATE_COMPLETED", "done", Some("v1.2.0"))?;
    planner.follow_task(&request, "TASK_STATE_COMPLETED")?;

    Ok(Told { messages: 4, tasks: 1, delivered_ms })
}

fn found(world: &World, timeline: &Timeline, alice: &Client, bob: &Client) -> Result<(), Failure> {
    let founder = [("relay", &*world.relay), ("name", "Demo"), ("person", "alice"), ("label", "laptop")];
    alice.call("team.create", object(founder.map(|(name, text)| (name, string(text)))))?;
    timeline.act("alice", "founded the team Demo");
    let invite = alice.call("team.invite", object([("person", string("bob"))]))?;
    timeline.act("alice", "made a ticket for bob");
    let joiner = [("ticket", invite.text("ticket")), ("label", "desk")];
    bob.call("team.join", object(joiner.map(|(name, text)| (name, string(text)))))?;
    timeline.act("bob", "joined with the ticket");
    Ok(())
}

/// Something sent, to follow.
struct Sent {
    id: String,
    task: String,
    what: &'static str,
    at: Instant,
}

impl Sent {
    fn after_ms(&self) -> u64 {
        u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl<'a> Agent<'a> {
    fn register(home: &Home, name: &'static str, timeline: &'a Timeline) -> Result<Self, Failure> {
        let client = Client::connect(&Options::agent(home.clone()))?;
        let key = fresh_key()?;
        let session = name.split('/').nth(1).unwrap_or(name);
        let params = [("key", &*key), ("name", session), ("agent", "demo"), ("tier", "push")];
        client.call("session.register", object(params.map(|(member, text)| (member, string(text)))))?;
        client.call("events.subscribe", object([("key", string(&key))]))?;
        timeline.act(name, "registered as an agent session");
        Ok(Self { name, key, client, timeline })
    }

    fn call(
        &mut self,
        method: &str,
        members: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Result<Value, Failure> {
        let mut params = vec![("key", string(&self.key))];
        params.extend(members);
        Ok(self.client.call(method, object(params))?)
    }

    /// Waits until the other session shows up in this machine's directory.
    fn wait_for_contact(&mut self, address: &str) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        let _progress = Progress::start("waiting for the other agent");
        loop {
            let contacts = self.client.call("contacts.list", object([]))?;
            if contacts.items("entries").iter().any(|entry| entry.text("address") == address) {
                self.timeline.act(self.name, &format!("sees {address}"));
                return Ok(());
            }
            self.event(end, "the other agent did not show up")?;
        }
    }

    fn send(&mut self, kind: &'static str, text: &str, reply_to: Option<&str>) -> Result<Sent, Failure> {
        // With the machine's label, so that nobody has to have heard of the other's sessions first: an answer may be
        // quicker than the news of who asked.
        let (to, label) =
            if self.name == "alice/planner" { ("bob/builder", "desk") } else { ("alice/planner", "laptop") };
        let parts = array([object([("text", string(text))])]);
        let address = string(&format!("{to}@{label}"));
        let mut members = vec![("to", address), ("kind", string(kind)), ("parts", parts)];
        if let Some(id) = reply_to {
            members.push(("replyTo", string(id)));
        }
        let at = Instant::now();
        let result = self.call("msg.send", members)?;
        let first = result.items("results").first().cloned().unwrap_or(Value::Null);
        let what = match (kind, reply_to) {
            ("task", _) => "task",
            (_, Some(_)) => "reply",
            _ => "message",
        };
        let sent =
            Sent { id: first.text("envelopeId").to_owned(), task: first.text("taskId").to_owned(), what, at };
        self.timeline.stage(
            self.name,
            &format!("{what} to {to}, “{text}”"),
            first.text("stage"),
            sent.after_ms(),
        );
        Ok(sent)
    }

    /// Prints each stage `sent` reaches until it has reached all of `stages`; returns when the last one came.
    fn follow(&mut self, sent: &Sent, stages: &[&str]) -> Result<u64, Failure> {
        let mut wanted = stages.to_vec();
        let end = Instant::now() + PATIENCE;
        loop {
            let event = self.event(end, "a receipt did not come")?;
            if event.text("type") != "sent" || event.text("envelopeId") != sent.id {
                continue;
            }
            let stage = event.text("stage");
            let after = sent.after_ms();
            self.timeline.stage(self.name, &format!("{} receipt", sent.what), stage, after);
            if matches!(stage, "rejected" | "expired") {
                return Err(Failure::new(
                    event.maybe("code").unwrap_or("expired"),
                    "the demonstration's mail",
                ));
            }
            wanted.retain(|wanted| *wanted != stage);
            if wanted.is_empty() {
                return Ok(after);
            }
        }
    }

    /// Prints each state of the task until it reaches `state`.
    fn follow_task(&mut self, sent: &Sent, state: &str) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        loop {
            let event = self.event(end, "a task update did not come")?;
            let Some(task) = event.get("task").filter(|task| task.text("taskId") == sent.task) else {
                continue;
            };
            if event.text("origin") != "peer" {
                continue;
            }
            let reached = task.text("state").trim_start_matches("TASK_STATE_").to_owned();
            let artifact =
                task.items("artifacts").first().and_then(|artifact| artifact.items("parts").first());
            let result = artifact.map(|part| format!(", result “{}”", part.text("text"))).unwrap_or_default();
            self.timeline.stage(self.name, &format!("task update{result}"), &reached, sent.after_ms());
            if task.text("state") == state {
                return Ok(());
            }
        }
    }

    /// Waits for the next item in this agent's inbox, shows it to the agent and reads it.
    fn take(&mut self) -> Result<(), Failure> {
        let end = Instant::now() + PATIENCE;
        let item = loop {
            let unread = self.call("inbox.list", [("unreadOnly", Value::Bool(true))])?;
            if let Some(item) = unread.items("items").first() {
                break item.clone();
            }
            self.event(end, "mail did not arrive")?;
        };
        let id = item.text("id").to_owned();
        self.call("inbox.ack", [("ids", array([string(&id)])), ("stage", string("handed_to_agent"))])?;
        self.call("item.read", [("id", string(&id))])?;
        self.timeline.act(self.name, &format!("reads “{}”", item.text("preview")));
        Ok(())
    }

    fn update(&mut self, task: &str, state: &str, text: &str, artifact: Option<&str>) -> Result<(), Failure> {
        let parts = |text: &str| array([object([("text", string(text))])]);
        let mut members = vec![("taskId", string(task)), ("state", string(state)), ("message", parts(text))];
        if let Some(artifact) = artifact {
            members.push(("artifact", object([("name", string("tag")), ("parts", parts(artifact))])));
        }
        self.call("task.update", members)?;
        self.timeline
            .act(self.name, &format!("moves the task to {}", state.trim_start_matches("TASK_STATE_")));
        Ok(())
    }

    fn event(&mut self, end: Instant, late: &'static str) -> Result<Value, Failure> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Failure::new("internal", late));
        }
        // A short wait also lets a caller look again at what has no event.
        let wait = left.min(Duration::from_millis(200));
        Ok(self.client.next_event(Some(wait))?.unwrap_or(Value::Null))
    }
}
