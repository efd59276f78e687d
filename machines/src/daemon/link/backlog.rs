//! Whether what waited at the relay has been read: until then nobody can say that a list is all there is.
//!
//! The relay delivers what waits after its welcome and puts no mark at its end (`messaging/1 §7`, "Delivery"). It answers a
//! connection in the order of what it was told, though, and a sender's next envelope follows an ack at once: so a `pong`
//! before which nothing came says that nothing was left to come. Twice, since a relay with much to send may take a breath
//! between two of them.

use messaging_proto::time::Mono;

/// Answers in a row before which nothing came.
const QUIET: u8 = 2;
/// So often it asks again at once though something came.
const EAGER: u64 = 8;
/// The wait before asking again after that: what is left comes by itself, and each `ping` counts against the
/// frames of a minute.
const AGAIN_MS: u64 = 200;
/// Past it what comes is as likely new as old, and a relay that answers no `ping` will not.
const LONG_MS: u64 = 30_000;

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Send a `ping` with this number.
    Ask(u64),
    /// Wait.
    Wait,
    /// What waited is read.
    Read,
}

/// What waited at the relay when it said `welcome`, while it is being read.
#[derive(Debug)]
pub(super) struct Backlog {
    since: Mono,
    /// The number of the newest `ping`.
    asked: u64,
    /// When to ask again; nothing while an answer is due.
    again: Option<Mono>,
    /// Whether something came since the newest `ping`.
    came: bool,
    quiet: u8,
}

impl Backlog {
    pub(super) const fn new(now: Mono) -> Self {
        Self { since: now, asked: 0, again: None, came: false, quiet: 0 }
    }

    /// Begins with a `ping`.
    pub(super) const fn ask(&mut self) -> Next {
        self.asked += 1;
        self.again = None;
        self.came = false;
        Next::Ask(self.asked)
    }

    /// An envelope came: a presence counts too, since those of the members come before what waits.
    pub(super) const fn came(&mut self) {
        self.came = true;
    }

    /// The relay answered the `ping` numbered `n`.
    pub(super) fn answered(&mut self, n: Option<u64>, now: Mono) -> Next {
        if n != Some(self.asked) || self.again.is_some() {
            return Next::Wait;
        }
        if self.came {
            self.quiet = 0;
            if self.asked < EAGER {
                return self.ask();
            }
            self.again = Some(now.plus(AGAIN_MS));
            return Next::Wait;
        }
        self.quiet += 1;
        if self.quiet >= QUIET { Next::Read } else { self.ask() }
    }

    /// When there is something to do though nothing came.
    pub(super) fn due(&self) -> Mono {
        let long = self.since.plus(LONG_MS);
        self.again.map_or(long, |again| again.min(long))
    }

    /// That time is over.
    pub(super) fn overdue(&mut self, now: Mono) -> Next {
        if now.since(self.since) >= LONG_MS { Next::Read } else { self.ask() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waited_is_read_when_two_answers_follow_each_other() {
        let mut backlog = Backlog::new(Mono(1_000));
        assert_eq!(backlog.ask(), Next::Ask(1));
        // Another ping's answer, and none.
        assert_eq!(backlog.answered(None, Mono(1_001)), Next::Wait);
        assert_eq!(backlog.answered(Some(7), Mono(1_001)), Next::Wait);
        assert_eq!(backlog.answered(Some(1), Mono(1_002)), Next::Ask(2));
        backlog.came();
        assert_eq!(backlog.answered(Some(2), Mono(1_010)), Next::Ask(3));
        // The same answer again.
        assert_eq!(backlog.answered(Some(2), Mono(1_011)), Next::Wait);
        let third = backlog.answered(Some(3), Mono(1_012));
        assert_eq!(third, Next::Ask(4), "once is not enough after something came");
        assert_eq!(backlog.answered(Some(4), Mono(1_013)), Next::Read);
    }

    #[test]
    fn it_ends_though_something_comes_all_the_time_or_no_answer_does() {
        let mut backlog = Backlog::new(Mono(0));
        assert_eq!(backlog.ask(), Next::Ask(1));
        assert_eq!(backlog.due(), Mono(LONG_MS));
        assert_eq!(backlog.overdue(Mono(LONG_MS)), Next::Read);
        let mut backlog = Backlog::new(Mono(0));
        let (mut now, mut next, mut asked) = (Mono(0), backlog.ask(), 0);
        while next != Next::Read {
            next = match next {
                Next::Ask(n) => {
                    asked = n;
                    backlog.came();
                    backlog.answered(Some(n), now)
                }
                _ => {
                    now = backlog.due();
                    backlog.overdue(now)
                }
            };
        }
        assert_eq!(now, Mono(LONG_MS));
        assert!(asked <= LONG_MS / AGAIN_MS + EAGER, "{asked} of the frames of a minute");
    }
}
