//! Nobody is let in whom the person did not let in (`messaging/1 §6.9`): mail of another person reaches an agent when it answers, or
//! was held and let through, or that person may ask; it is held only when the person is to be asked; a blocked person writes no line.

use super::{Facts, Invariant, puts, rows, word};
use crate::world::{Commit, Who};
use messaging_proto::limits::{HELD_PER_SENDER, HELD_TOTAL};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What each daemon's person granted, what it holds, and what it filed.
#[derive(Default)]
pub(super) struct LetIn {
    grants: Grants,
    held: BTreeMap<usize, BTreeMap<Vec<u8>, String>>,
    items: BTreeSet<(usize, Vec<u8>)>,
    lines: BTreeSet<(usize, Vec<u8>)>,
}

type Grants = BTreeMap<(usize, String), Value>;

fn level(grants: &Grants, number: usize, person: &str, name: &str, default: &str) -> String {
    let grant = grants.get(&(number, person.to_owned()));
    let level = grant.map(|grant| word(grant, &[name])).filter(|level| !level.is_empty());
    level.unwrap_or_else(|| default.to_owned())
}

fn asks(grants: &Grants, number: usize, person: &str) -> String {
    if level(grants, number, person, "chat", "open") == "blocked" {
        return "blocked".to_owned();
    }
    level(grants, number, person, "ask", "request")
}

impl LetIn {
    /// Takes in what a step grants and what lapses with it.
    fn granted(&mut self, commit: &Commit<'_>, number: usize) {
        for key in super::deletes(commit, "grant").filter_map(|key| key.strip_prefix(b"p")) {
            let person = String::from_utf8_lossy(key).trim_end_matches('\0').to_owned();
            self.grants.remove(&(number, person));
        }
        for row in puts(commit, "grant").filter_map(|(_, row)| row.get(1..)) {
            let text: String = serde_json::from_slice(row).unwrap_or_default();
            let grant: Value = serde_json::from_str(&text).unwrap_or_default();
            let person = word(&grant, &["subject", "person"]);
            if !person.is_empty() {
                self.grants.insert((number, person), grant);
            }
        }
    }
}

impl Invariant for LetIn {
    fn name(&self) -> &'static str {
        "let-in-by-the-person"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        let Who::Daemon(number) = commit.who else { return Ok(()) };
        // A step that changes what is granted may let in before it and after it.
        let before = self.grants.clone();
        self.granted(commit, number);
        let held_before = self.held.entry(number).or_default().len();
        for key in super::deletes(commit, "held") {
            self.held.entry(number).or_default().remove(key);
        }
        for (key, item) in rows(commit, "inbox") {
            let (id, person) = (word(&item, &["id"]), word(&item, &["from", "person"]));
            if !self.items.insert((number, key.to_vec())) || word(&item, &["consent"]) == "own" {
                continue;
            }
            let own = facts.persons.get(&number).is_some_and(|own| *own == person);
            let answers = item["continuation"] == true
                || facts.recorded.get(&number).is_some_and(|sent| sent.contains(&word(&item, &["replyTo"])));
            let let_through = facts.held.get(&number).is_some_and(|held| held.contains(&id));
            let asks = [&before, &self.grants].map(|grants| asks(grants, number, &person));
            if !own && !answers && !let_through && !asks.contains(&"open".to_owned()) {
                return Err(format!("envelope {id} of {person} was let in, who may ask: {asks:?}"));
            }
        }
        for (key, ask) in rows(commit, "held") {
            let (id, person) = (word(&ask, &["id"]), word(&ask, &["from", "person"]));
            let new = self.held.entry(number).or_default().insert(key.to_vec(), person.clone()).is_none();
            let asks = [&before, &self.grants].map(|grants| asks(grants, number, &person));
            if new && !asks.contains(&"request".to_owned()) {
                return Err(format!("envelope {id} of {person} is held, who may ask: {asks:?}"));
            }
        }
        let held = &self.held[&number];
        let most = held.values().map(|person| held.values().filter(|other| *other == person).count()).max();
        let over = held.len() > HELD_TOTAL || most.is_some_and(|most| most > HELD_PER_SENDER);
        if over && held.len() > held_before {
            return Err(format!("{} requests are held, {most:?} of one person", held.len()));
        }
        for (key, row) in rows(commit, "chat_line") {
            let line = &row["line"];
            if !self.lines.insert((number, key.to_vec())) || line["out"] == true || line["notice"] == true {
                continue;
            }
            let person = word(line, &["person"]);
            let own = facts.persons.get(&number).is_some_and(|own| *own == person);
            let agent = line.get("agent").is_some_and(|agent| !agent.is_null());
            let name = if agent { "agentMail" } else { "chat" };
            let blocked = |grants: &Grants| {
                ["chat", name].iter().any(|name| level(grants, number, &person, name, "open") == "blocked")
            };
            if !own && blocked(&before) && blocked(&self.grants) {
                return Err(format!("a line of {person} was filed, whom the person blocks"));
            }
        }
        Ok(())
    }
}
