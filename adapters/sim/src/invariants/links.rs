//! A daemon acks a delivery only once what it did with it is durable: the commit gate (`messaging/1 §7`, "Delivery").

use super::{Facts, Invariant};
use crate::world::{Commit, Who};

/// An id the relay acked is one it stored: an ack without a row is a promise that a crash breaks.
pub(super) struct AckedIsDurable;

impl Invariant for AckedIsDurable {
    fn name(&self) -> &'static str {
        "acked-is-durable"
    }

    fn commit(&mut self, commit: &Commit<'_>, facts: &Facts) -> Result<(), String> {
        if commit.who != Who::Relay {
            return Ok(());
        }
        for ack in super::said(commit, "Ack") {
            let id = super::word(&ack, &["id"]);
            if !facts.stored.contains_key(&id) {
                return Err(format!("envelope {id} was acked and never stored"));
            }
        }
        Ok(())
    }
}
