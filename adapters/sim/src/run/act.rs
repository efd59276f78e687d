//! What each act of a plan does.

use super::Play;
use crate::json::text;
use crate::node::Crash;
use crate::plan::{Act, Move, Stray, Withheld};
use messaging_proto::json::Value;

const CHANNELS: [&str; 2] = ["eng", "ops"];
const LEVELS: [&str; 4] = [
    r#""ask":"open""#,
    r#""ask":"request","chat":"open""#,
    r#""chat":"blocked""#,
    r#""chat":"open","agentMail":"blocked""#,
];
const ANSWERS: [&str; 4] = ["once", "always", "decline", "block"];

impl Play {
    /// Does one act.
    pub(super) fn act(&mut self, act: &Act) {
        let count = self.machines.len();
        let (a, b) = (|node: &usize| node % count, |node: &usize| node % count);
        match act {
            Act::Send { from, to, task } => {
                let address = self.address(b(to));
                self.send(a(from), b(to), &address, if *task { r#","kind":"task""# } else { "" });
            }
            Act::Reply { node, pick } => self.reply(a(node), *pick),
            Act::Ack { node } => self.show(a(node)),
            Act::Read { node, pick } => {
                if let Some(item) = self.pick(a(node), "inbox.list", r#","limit":50"#, "items", *pick) {
                    let id = text(&item, "id").to_owned();
                    self.agent(a(node), "item.read", &format!(r#","id":"{id}""#));
                }
            }
            Act::Update { node, pick, to } => self.update(a(node), *pick, *to),
            Act::Cancel { node, pick } => {
                if let Some(task) = self.task(a(node), "requester", *pick) {
                    self.agent(a(node), "task.cancel", &format!(r#","taskId":"{task}""#));
                }
            }
            Act::Delegate { from, to, pick } => {
                if let Some(task) = self.task(a(from), "executor", *pick) {
                    let address = self.address(b(to));
                    let more = format!(r#","kind":"task","onBehalfOf":{{"taskId":"{task}"}}"#);
                    self.send(a(from), b(to), &address, &more);
                }
            }
            Act::Grant { node, person, level } => {
                let (person, level) = (self.persons[b(person)].clone(), LEVELS[level % LEVELS.len()]);
                let params = format!(r#"{{"subject":{{"person":"{person}"}},{level}}}"#);
                self.admin(a(node), "grant.set", &params);
            }
            Act::Answer { node, pick, answer } => {
                self.answer(a(node), *pick, ANSWERS[answer % ANSWERS.len()])
            }
            Act::Say { node, to } => {
                let (words, person) = (self.words(), self.persons[b(to)].clone());
                let params =
                    format!(r#"{{"conversation":"dm:{person}","text":"{words}","clientId":"{words}"}}"#);
                self.admin(a(node), "person.send", &params);
            }
            Act::SayIn { node, channel } => {
                let (words, channel) = (self.words(), CHANNELS[channel % CHANNELS.len()]);
                let params = format!(
                    r#"{{"conversation":"channel:{channel}","text":"{words}","clientId":"{words}"}}"#
                );
                self.admin(a(node), "person.send", &params);
            }
            Act::Channel { node, channel, step, person } => {
                let (name, person) = (CHANNELS[channel % CHANNELS.len()], self.persons[b(person)].clone());
                let methods = ["channel.create", "channel.invite", "channel.remove", "channel.leave"];
                let method = methods[step % methods.len()];
                let persons = if method == "channel.leave" {
                    String::new()
                } else {
                    format!(r#","persons":["{person}"]"#)
                };
                self.admin(a(node), method, &format!(r#"{{"name":"{name}"{persons}}}"#));
            }
            Act::Remove { node } => self.remove(a(node)),
            Act::Invite { node } => self.invite(a(node)),
            Act::Revoke { pick } => self.revoke(*pick),
            Act::Guest { pick } => self.guest(*pick),
            Act::Role { node, admin } => self.role(a(node), *admin),
            Act::Rekey { node } => {
                self.admin(a(node), "identity.rotateEnc", "{}");
            }
            Act::Leave { node } => {
                self.agent(a(node), "session.unregister", "");
                self.agents[a(node)].forget();
            }
            Act::Stray { node, what } => self.stray(a(node), *what),
            Act::Woke { node } => {
                self.admin(a(node), "daemon.woke", "{}");
            }
            Act::Garbage { node, what } => {
                self.seen.borrow_mut().facts.garbled.insert(a(node));
                self.garbage(a(node), *what);
            }
            Act::Line { node, agent, text } => self.line(a(node), *agent, text),
            Act::Frame { node, text } => {
                if self.world.connected(a(node)) && !self.world.nodes[a(node)].crashed {
                    self.seen.borrow_mut().facts.lied.insert(a(node));
                    self.world.say_to_now(a(node), text);
                }
            }
            Act::Forge { node, what, pick } => {
                self.seen.borrow_mut().facts.garbled.insert(a(node));
                self.forge(a(node), *what, *pick);
            }
            fault => self.fault(fault),
        }
    }

    fn fault(&mut self, act: &Act) {
        let count = self.machines.len();
        let a = |node: &usize| node % count;
        if let Act::Drop { node, .. }
        | Act::Swap { node }
        | Act::Replay { node, .. }
        | Act::Stale { node, .. }
        | Act::Fork { node }
        | Act::Withhold { node, .. } = act
        {
            self.seen.borrow_mut().facts.lied.insert(a(node));
        }
        let world = &mut self.world;
        match act {
            Act::Reach { node, up } => world.reach_from(a(node), *up),
            Act::Reset { node } => {
                let reaches = world.nodes[a(node)].reaches;
                world.reach_from(a(node), false);
                world.nodes[a(node)].reaches = reaches;
            }
            Act::Silent { node, on: true } => world.nodes[a(node)].silent = true,
            Act::Silent { node, on: false } => world.end_silence(a(node)),
            Act::Dead { node } => world.deaden(a(node)),
            Act::Latency { node, ms } => world.nodes[a(node)].latency = *ms,
            Act::Slow { node, ms } => world.nodes[a(node)].slow = *ms,
            Act::Relay { up } => world.reach(*up),
            Act::RelayRestart {} => world.restart_relay(),
            Act::RelayFail { at, committed } => world.relay.fail = Some(((*at).max(1), *committed)),
            Act::Crash { node, at, committed, effects } => {
                world.crash(a(node), Crash { at: (*at).max(1), committed: *committed, effects: *effects });
            }
            Act::Restart { node } => world.start(a(node)),
            Act::FailSaves { node, count } => {
                world.nodes[a(node)].fail_saves.extend(std::iter::repeat_n(true, (*count).min(8)));
            }
            Act::CutAppend {} => world.relay.cut_after_append = 1,
            // Guests come after the machines.
            Act::Skew { node, ms } => match world.nodes.get_mut(*node).filter(|_| *node < count) {
                Some(node) => node.skew = *ms,
                None => world.relay.skew = *ms,
            },
            Act::Full { node, writes } => match world.nodes.get_mut(*node).filter(|_| *node < count) {
                Some(node) => node.fail_writes = (*writes).min(64),
                None => world.relay.fail_writes = (*writes).min(64),
            },
            // Everybody is compared with the founder.
            Act::Fork { node } => {
                world.relay.fork_to = Some(a(node)).filter(|node| *node > 0);
                self.seen.borrow_mut().facts.forked.extend(world.relay.fork_to);
            }
            Act::Withhold { node, what } => {
                let kept = match what {
                    Withheld::Nothing => None,
                    Withheld::Roster => Some(r#""t":"roster"#),
                    Withheld::Acks => Some(r#""t":"ack""#),
                };
                world.relay.swallow = kept.map(|kept| (a(node), kept));
            }
            Act::Sleep { ms } => world.sleep(*ms),
            Act::Drop { node, frames } => world.nodes[a(node)].drop_frames = (*frames).min(16),
            Act::Swap { node } => world.nodes[a(node)].swap = true,
            Act::Replay { node, back } => world.replay_to(a(node), *back, ""),
            Act::Stale { node, back } => world.replay_to(a(node), *back, r#""t":"welcome""#),
            _ => {}
        }
    }

    /// A task of one side of an agent.
    fn task(&mut self, number: usize, role: &str, pick: usize) -> Option<String> {
        let task = self.pick(number, "task.list", &format!(r#","role":"{role}""#), "tasks", pick)?;
        Some(text(&task, "taskId").to_owned())
    }

    fn update(&mut self, number: usize, pick: usize, to: Move) {
        let Some(task) = self.task(number, "executor", pick) else { return };
        let words = self.words();
        let artifact = if to == Move::Completed {
            format!(r#","artifact":{{"parts":[{{"text":"{words}"}}]}}"#)
        } else {
            format!(r#","message":[{{"text":"{words}"}}]"#)
        };
        let state = match to {
            Move::Working => "WORKING",
            Move::InputRequired => "INPUT_REQUIRED",
            Move::AuthRequired => "AUTH_REQUIRED",
            Move::Completed => "COMPLETED",
            Move::Failed => "FAILED",
            Move::Rejected => "REJECTED",
        };
        self.agent(
            number,
            "task.update",
            &format!(r#","taskId":"{task}","state":"TASK_STATE_{state}"{artifact}"#),
        );
    }

    fn reply(&mut self, number: usize, pick: usize) {
        let Some(item) = self.pick(number, "inbox.list", r#","limit":50"#, "items", pick) else { return };
        let Some(to) = self.sender_of(&item) else { return };
        let Some(address) = item.get("from").and_then(|from| from.get("address")).and_then(Value::as_str)
        else {
            return;
        };
        let (address, id) = (address.to_owned(), text(&item, "id").to_owned());
        self.send(number, to, &address, &format!(r#","replyTo":"{id}""#));
    }

    /// An agent is shown everything that waits.
    fn show(&mut self, number: usize) {
        let Some(Ok(list)) = self.agent(number, "inbox.list", r#","limit":50"#) else { return };
        let items = list.get("items").and_then(Value::as_array).unwrap_or_default();
        let ids: Vec<String> = items.iter().map(|item| format!(r#""{}""#, text(item, "id"))).collect();
        if !ids.is_empty() {
            self.agent(
                number,
                "inbox.ack",
                &format!(r#","ids":[{}],"stage":"handed_to_agent""#, ids.join(",")),
            );
        }
    }

    fn answer(&mut self, number: usize, pick: usize, answer: &str) {
        let Some(Ok(list)) = self.admin(number, "request.list", "{}") else { return };
        let asks = list.get("asks").and_then(Value::as_array).unwrap_or_default();
        let Some(ask) = asks.get(pick % asks.len().max(1)) else { return };
        let id = text(ask, "id").to_owned();
        self.admin(number, "request.answer", &format!(r#"{{"id":"{id}","answer":"{answer}"}}"#));
    }

    /// The founder removes a machine; never itself.
    fn remove(&mut self, number: usize) {
        if number == 0 {
            return;
        }
        let machine = self.machines[number].clone();
        self.admin(0, "team.remove", &format!(r#"{{"machine":"{machine}"}}"#));
        // It may take effect later, when the relay can be reached again.
        self.removed.insert(number);
    }

    fn stray(&mut self, number: usize, what: Stray) {
        let ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let to = |address: &str, text: &str| format!(r#","to":"{address}","parts":[{{"text":"{text}"}}]"#);
        let bob = self.persons[(number + 1) % self.persons.len()].clone();
        match what {
            Stray::NoSession => self.agent(number, "msg.send", &to(&format!("{bob}/nosuch"), "x")),
            Stray::NoPerson => self.agent(number, "msg.send", &to("nobody/agent", "x")),
            Stray::NoRecipients => self.agent(number, "msg.send", &to(&format!("{bob}/agent@nolabel"), "x")),
            Stray::Ambiguous => self.agent(number, "msg.send", &to(&format!("{bob}/agent"), "x")),
            Stray::BadParams => self.agent(number, "msg.send", r#","to":17"#),
            Stray::NotFound => self.agent(number, "item.read", &format!(r#","id":"{ulid}""#)),
            Stray::Secret => {
                let secret = format!("use {}", super::CREDENTIAL);
                self.agent(number, "msg.send", &to(&self.address((number + 1) % self.persons.len()), &secret))
            }
            Stray::TooLarge => {
                let long = "long ".repeat(60_000);
                self.agent(number, "msg.send", &to(&self.address((number + 1) % self.persons.len()), &long))
            }
            // Harmless to the admin that another act may have made of it.
            Stray::Forbidden => self.admin(number, "team.invite", r#"{"person":"guest","ttlMs":60000}"#),
            Stray::NotRegistered => {
                self.admin(number, "inbox.list", &format!(r#"{{"key":"{}"}}"#, "z".repeat(24)))
            }
            Stray::Directory => self.admin(number, "contact.request", r#"{"email":"a@b.c","text":"hello"}"#),
            Stray::WrongRole => match self.task(number, "requester", 0) {
                Some(task) => {
                    let params = format!(r#","taskId":"{task}","state":"TASK_STATE_COMPLETED""#);
                    self.agent(number, "task.update", &params)
                }
                None => None,
            },
            Stray::BadTicket => self.admin(number, "team.join", r#"{"ticket":"mt1.none"}"#),
        };
    }
}
