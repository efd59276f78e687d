//! What a client shows of a verified chain.

use crate::address::SessionAddress;
use crate::name::{PersonId, ScopeLabel};
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `DelegationSummary` (`messaging/1 §6.7`): made by [`super::verify_chain`] alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// The sessions in order, the first asker first and the session now asked last.
    pub addresses: Vec<SessionAddress>,
    /// How many grants the chain holds.
    pub depth: usize,
    /// The smallest `maxDepth` along the chain.
    pub max_depth: u64,
    /// The last grant's scope as signed; absent when unrestricted. The labels are a peer's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<ScopeLabel>>,
    /// The earliest end along the chain.
    pub exp: Wall,
}

impl Summary {
    /// The chain's persons, for the chain rule of consent (`messaging/1 §6.9`).
    #[must_use]
    pub fn persons(&self) -> BTreeSet<&PersonId> {
        self.addresses.iter().map(|address| &address.person).collect()
    }
}
