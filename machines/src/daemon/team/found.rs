//! Founding a team.

use super::calls::Create;
use super::errand::{Errand, Kind, PATIENCE_MS, Stage, draw_keys, keep_keys};
use super::pending::Pending;
use super::{Team, invalid_state};
use crate::daemon::ctx::{Answer, Caller, Ctx, Outcome};
use crate::store::StoreDown;
use messaging_proto::json::{canonicalize, parse_wire};
use messaging_proto::limits::ROSTER_ENTRY_BYTES;
use messaging_proto::roster::{Member, Role, genesis};

impl Team {
    pub(super) fn create(
        &mut self,
        cx: &mut Ctx<'_, '_>,
        caller: &Caller,
        params: Create,
    ) -> Outcome<Answer> {
        Self::may_enter(cx)?;
        let Create { relay, name, person, label } = params;
        let pending = Pending::load(cx.txn)?;
        if let (Some(errand), Some(Pending::Creating { relay: r, name: n, person: p, label: l, .. })) =
            (&mut self.errand, &pending)
            && (r, n, p, l) == (&relay, &name, &person, &label)
        {
            // The same team as is being founded: its outcome is this call's, too.
            errand.callers.push(caller.clone());
            errand.give_up = cx.mono().plus(PATIENCE_MS);
            return Ok(Answer::Later);
        }
        let prepared = match (&self.errand, pending, cx.facts.keys.pairing()) {
            (None, None, _) => None,
            (None, Some(Pending::Prepared { .. }), Some(keys)) => Some(keys.clone()),
            _ => return Err(invalid_state("this machine is on its way into a team already")),
        };
        let was_prepared = prepared.is_some();
        let identity = prepared.unwrap_or_else(|| draw_keys(cx));
        let founder = Member {
            machine: identity.machine(),
            enc: identity.enc(),
            person: person.clone().into(),
            role: Role::Admin,
            label: label.clone(),
        };
        let entry = genesis(identity.signing(), cx.now(), &name, &founder)?;
        let row = Pending::Creating {
            machine: identity.machine(),
            relay: relay.clone(),
            name,
            person,
            label,
            genesis: canonicalize(&entry)?,
            prepared: was_prepared,
        };
        let save = keep_keys(cx, &row, identity);
        self.errand =
            Some(Errand::new(cx, Kind::Create, Stage::SavingKeys(save), relay, vec![caller.clone()]));
        Ok(Answer::Later)
    }

    /// Sends the genesis: the same bytes every time.
    pub(super) fn found(&mut self, cx: &mut Ctx<'_, '_>) -> Result<(), StoreDown> {
        let Some(Pending::Creating { genesis, .. }) = Pending::load(cx.txn)? else { return Ok(()) };
        if let (Ok(entry), Some(errand)) =
            (parse_wire(genesis.as_bytes(), ROSTER_ENTRY_BYTES), &mut self.errand)
        {
            errand.append(cx, entry);
        }
        Ok(())
    }
}
