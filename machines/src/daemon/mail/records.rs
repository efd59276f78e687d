//! The records of earlier traffic, as the counterpart binding reads them (`messaging/1 §5`).

use super::sent;
use crate::daemon::tasks::{TaskRole, rows as tasks};
use crate::store::{StoreDown, Txn};
use messaging_proto::key::MachineId;
use messaging_proto::task::{Records, TaskView};
use messaging_proto::ulid::Ulid;

/// The records in the store, as far as one envelope may name them.
pub(crate) struct Stored<'a, 't> {
    txn: &'a Txn<'t>,
    roles: &'static [TaskRole],
    /// The envelope itself: a request between two sessions of this machine finds the requester's record of it, which
    /// is the same task.
    itself: Option<Ulid>,
}

impl<'a, 't> Stored<'a, 't> {
    /// For an envelope that only the record of one side may fit.
    pub(crate) const fn side(txn: &'a Txn<'t>, roles: &'static [TaskRole]) -> Self {
        Self { txn, roles, itself: None }
    }

    /// For a task request, whose id no record may hold.
    pub(crate) const fn request(txn: &'a Txn<'t>, envelope: Ulid) -> Self {
        Self { txn, roles: &[TaskRole::Executor, TaskRole::Requester], itself: Some(envelope) }
    }
}

impl Records for Stored<'_, '_> {
    type Down = StoreDown;

    fn sent(&self, envelope: &Ulid) -> Result<Option<MachineId>, StoreDown> {
        Ok(sent::get(self.txn, envelope)?.map(|sent| sent.device))
    }

    fn task(&self, task: &Ulid) -> Result<Option<TaskView>, StoreDown> {
        for role in self.roles {
            let record = tasks::get(self.txn, task, *role)?;
            let other = |request| *role == TaskRole::Executor || self.itself != Some(request);
            if let Some(record) = record.filter(|record| other(record.request)) {
                return Ok(Some(record.view()));
            }
        }
        Ok(None)
    }
}
