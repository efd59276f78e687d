//! What the runs reached: codes of `messaging/1 §13`, moves of tasks and deliveries, operations of rosters.

use crate::invariants::{rows, word};
use crate::world::{Commit, Who};
use messaging_proto::Code;
use messaging_proto::task::TRANSITIONS;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Codes that a relay or a daemon said.
    pub codes: BTreeSet<String>,
    /// Moves of tasks, `from -> to`.
    pub tasks: BTreeSet<String>,
    /// Moves of deliveries, likewise.
    pub stages: BTreeSet<String>,
    /// Operations of rosters.
    pub operations: BTreeSet<String>,
    states: BTreeMap<(usize, Vec<u8>), String>,
}

/// Codes that no relay and no daemon of a roster realm says, each with why. Every other code must be reached.
pub const OUT_OF_REACH: [(&str, &str); 24] = [
    ("unknown_address", "a code of clients, never on the wire"),
    ("request_required", "another organisation's person: a directory realm"),
    ("guarded_turn", "a code of clients"),
    ("binding_invalid", "device bindings: a directory realm"),
    ("jelly_unavailable", "an identity provider: a directory realm"),
    ("log_conflict", "device logs: a directory realm"),
    ("conv_conflict", "conversations of §16"),
    ("stale_epoch", "conversations of §16"),
    ("device_limit", "device logs: a directory realm"),
    ("admission_required", "the directory service"),
    ("admission_invalid", "the directory service"),
    ("directory_inconsistent", "a directory realm"),
    ("unknown_device", "a directory realm"),
    ("directory_unavailable", "a directory realm"),
    ("login_unsupported", "a directory realm"),
    ("login_denied", "a directory realm"),
    ("grant_required", "the deployment under a host"),
    ("grant_invalid", "the deployment under a host"),
    ("ticket_required", "the deployment under a host"),
    ("ticket_invalid", "the deployment under a host"),
    ("daemon_unavailable", "a code of clients"),
    ("daemon_mismatch", "a code of clients"),
    ("store_refused", "a code of clients"),
    ("duplicate", "treated as success: an ack, never a refusal"),
];

/// Moves of a delivery, as its sender sees it, that must be reached: a request that is held is let through or declined.
pub const DELIVERIES: [&str; 12] = [
    "accepted -> relayed",
    "accepted -> rejected",
    "relayed -> delivered",
    "relayed -> held",
    "relayed -> rejected",
    "held -> handed_to_agent",
    "held -> rejected",
    "delivered -> handed_to_agent",
    "delivered -> read",
    "handed_to_agent -> read",
    "handed_to_agent -> replied",
    "read -> replied",
];

/// Operations of rosters that must be reached. `member.add` belongs to the pairing of machines without a relay between
/// them, which the plans do not play.
pub const OPERATIONS: [&str; 8] = [
    "genesis",
    "invite.create",
    "invite.revoke",
    "invite.redeem",
    "member.remove",
    "member.rekey",
    "member.role admin",
    "member.role member",
];

impl Coverage {
    pub(crate) fn take(&mut self, commit: &Commit<'_>) {
        for effect in commit.effects.iter().filter(|effect| effect.contains("code")) {
            let plain = effect.replace('\\', "");
            for part in plain.split(r#""code":""#).skip(1) {
                let code = part.split('"').next().unwrap_or_default();
                if Code::from_text(code).is_some() {
                    self.codes.insert(code.to_owned());
                }
            }
        }
        let Who::Daemon(number) = commit.who else { return };
        for (key, task) in rows(commit, "task") {
            let state = word(&task, &["status", "state"]);
            let before = self.states.insert((number, key.to_vec()), state.clone());
            if before.as_ref() != Some(&state) {
                self.tasks.insert(format!("{} -> {state}", before.unwrap_or_default()));
            }
        }
        for (_, sent) in rows(commit, "sent") {
            let history = sent.get("history").and_then(Value::as_array).into_iter().flatten();
            let stages: Vec<(String, String)> =
                history.map(|reached| (word(reached, &["stage"]), word(reached, &["code"]))).collect();
            self.stages.extend(stages.windows(2).map(|two| format!("{} -> {}", two[0].0, two[1].0)));
            self.codes.extend(stages.into_iter().map(|(_, code)| code).filter(|code| !code.is_empty()));
        }
        for (_, entry) in rows(commit, "roster") {
            let role = word(&entry, &["role"]);
            let operation = word(&entry, &["op"]);
            let operation =
                if operation == "member.role" { format!("{operation} {role}") } else { operation };
            self.operations.insert(operation);
        }
    }

    /// Takes in what another run reached.
    pub fn merge(&mut self, other: Self) {
        self.codes.extend(other.codes);
        self.tasks.extend(other.tasks);
        self.stages.extend(other.stages);
        self.operations.extend(other.operations);
    }

    /// The codes that a roster realm can answer and that were not reached.
    #[must_use]
    pub fn missing_codes(&self) -> Vec<&'static str> {
        let reachable = |code: &&str| !OUT_OF_REACH.iter().any(|(other, _)| other == code);
        let all = Code::ALL.iter().map(|code| code.as_str()).filter(reachable);
        all.filter(|code| !self.codes.contains(*code)).collect()
    }

    /// Everything that must be reached and was not: codes, every move of the tasks' table, [`DELIVERIES`] and
    /// [`OPERATIONS`].
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut missing: Vec<String> =
            self.missing_codes().iter().map(|code| format!("code {code}")).collect();
        for (from, next) in TRANSITIONS {
            for to in next.iter().filter(|to| *to != from) {
                let moved = format!("{} -> {}", from.as_str(), to.as_str());
                if !self.tasks.contains(&moved) {
                    missing.push(format!("task {moved}"));
                }
            }
        }
        let deliveries = DELIVERIES.iter().filter(|moved| !self.stages.contains(**moved));
        missing.extend(deliveries.map(|moved| format!("delivery {moved}")));
        let operations = OPERATIONS.iter().filter(|operation| !self.operations.contains(**operation));
        missing.extend(operations.map(|operation| format!("roster {operation}")));
        missing
    }

    /// A page about it.
    #[must_use]
    pub fn page(&self) -> String {
        let list = |set: &BTreeSet<String>| set.iter().map(|one| format!("  {one}\n")).collect::<String>();
        let reachable = Code::ALL.len() - OUT_OF_REACH.len();
        let out: String = OUT_OF_REACH
            .iter()
            .filter(|(code, _)| !self.codes.contains(*code))
            .map(|(code, why)| format!("  {code}: {why}\n"))
            .collect();
        let missing = self.missing();
        let codes = reachable - self.missing_codes().len();
        format!(
            "codes reached: {} of {reachable} that a roster realm says\n{}not reached: {missing:?}\nnot asked for:\n{out}moves of tasks:\n{}moves of deliveries:\n{}roster operations:\n{}",
            codes,
            list(&self.codes),
            list(&self.tasks),
            list(&self.stages),
            list(&self.operations),
        )
    }
}
