//! Consent (`messaging/1 §6.9`): what a person lets others send them and their agents.
//!
//! A [`ConsentGrant`] is one signed statement of a person about another person or a channel. [`effective_policy`]
//! combines the grants that count for a sender, [`decide`] says what happens to something that arrived, and
//! [`hold`](hold::hold) and [`answer`](hold::answer) are the rules of what waits for the person.
//!
//! Who signs still counts: a grant's signer must be a current device of the person, which the caller knows.

mod decide;
mod error;
mod grant;
pub mod hold;
mod levels;
mod merge;
mod policy;
mod resign;
pub mod sync;

pub use decide::{Class, DecideInput, Decision, Kind, decide};
pub use error::ConsentError;
pub use grant::{ConsentGrant, GrantBody, NewGrant, sign_consent_grant, verify_consent_grant};
pub(crate) use grant::{VERSION, sign, signed_by, within_bytes};
pub use levels::{AgentMail, Ask, Chat, Levels, Subject};
pub use merge::prefer_grant;
pub use policy::{AskPolicy, ChatPolicy, MailPolicy, Policy, Relation, Source, Sources, effective_policy};
pub use resign::{Resigned, Review, resign_grant};
