//! Machines outside the team: they have no identity until they join, with tickets that may be used up or taken back.

use super::Play;
use crate::json::{at, text};
use messaging_machines::daemon::io::Tier;
use messaging_proto::json::Value;

/// The most machines that try to join in one plan.
const GUESTS: usize = 3;

/// A ticket the founder made.
pub(super) struct Ticket {
    text: String,
    invite: String,
}

impl Play {
    /// A machine invites somebody; what the founder made is kept for [`Play::guest`].
    pub(super) fn invite(&mut self, number: usize) {
        let made = self.admin(number, "team.invite", r#"{"person":"guest"}"#);
        if let Some(Ok(made)) = made.filter(|_| number == 0) {
            let word = |name: &str| made.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            self.tickets.push(Ticket { text: word("ticket"), invite: word("inviteId") });
        }
    }

    /// The founder takes an invite back. The newest is picked first.
    pub(super) fn revoke(&mut self, pick: usize) {
        let Some(invite) = self.ticket(pick).map(|ticket| ticket.invite.clone()) else { return };
        self.admin(0, "team.revoke", &format!(r#"{{"inviteId":"{invite}"}}"#));
    }

    fn ticket(&self, pick: usize) -> Option<&Ticket> {
        let count = self.tickets.len();
        self.tickets.iter().rev().nth(pick % count.max(1))
    }

    /// A machine nobody knows is asked for what it cannot do yet, then tries to join, with the newest ticket first.
    pub(super) fn guest(&mut self, pick: usize) {
        let Some(ticket) = self.ticket(pick).map(|ticket| ticket.text.clone()) else { return };
        if self.guests.len() == GUESTS {
            return;
        }
        let number = self.world.add();
        self.guests.push(number);
        let conn = self.world.connect(number, Tier::Agent);
        let key = "g".repeat(24);
        let register = format!(r#"{{"key":"{key}","name":"agent","agent":"codex","tier":"push"}}"#);
        self.world.ask(number, conn, "session.register", &register);
        self.admin(number, "team.info", "{}");
        let join = format!(r#"{{"ticket":"{ticket}","label":"guest-{number}"}}"#);
        self.admin(number, "team.join", &join);
    }

    /// Makes a machine an admin, or a member. Never the founder, whom everybody is compared with.
    pub(super) fn role(&mut self, number: usize, admin: bool) {
        let machine = self.machines[number].clone();
        let role = if admin { "admin" } else { "member" };
        if number > 0 {
            self.admin(0, "team.role", &format!(r#"{{"machine":"{machine}","role":"{role}"}}"#));
        }
    }

    /// Every guest is a member whose roster is everybody's, or in no team and says so.
    pub(super) fn guests_settled(&mut self) -> Result<(), (String, String)> {
        let wrong = |number: usize, what: String| {
            Err(("liveness/guests".to_owned(), format!("machine {number}: {what}")))
        };
        let head = self.world.call(0, "team.info", "{}").ok().map(|info| at(&info, "head").clone());
        for number in self.guests.clone() {
            match self.world.call(number, "team.info", "{}") {
                Ok(info) if Some(at(&info, "head")) == head.as_ref() => {}
                Ok(_) => return wrong(number, "joined, and its roster is another one".to_owned()),
                Err(error) if text(&error, "data.code") == "no_identity" => {}
                Err(error) => return wrong(number, format!("{error:?}")),
            }
        }
        Ok(())
    }

    /// A machine that was shown another roster says so, and says it again after a restart.
    pub(super) fn forks_are_told(&mut self) -> Result<(), (String, String)> {
        for number in self.world.relay.forked.clone() {
            if self.removed.contains(&number) {
                continue;
            }
            for _ in 0..2 {
                let status = self.world.call(number, "daemon.status", "{}");
                let error = status.ok().and_then(|status| {
                    at(&status, "relay").get("lastError").and_then(Value::as_str).map(str::to_owned)
                });
                if !error.as_ref().is_some_and(|error| error.contains("roster")) {
                    let what = format!("machine {number} was shown another roster and says {error:?}");
                    return Err(("liveness/forks-are-told".to_owned(), what));
                }
                self.world.start(number);
                self.world.pass(120_000);
            }
        }
        Ok(())
    }
}
