//! The params of the chat methods (contract ipc §3, §4).

use super::write::PersonSend;
use crate::daemon::ipc::params::{Int, List, Text, only};
use crate::daemon::mail::params::limit;
use messaging_proto::address::RoomRef;
use messaging_proto::json::{Fields, Invalid, Value};
use messaging_proto::name::{ChannelName, PersonId};

/// What the role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `conv.list`.
    List {
        /// The most conversations.
        limit: usize,
    },
    /// `conv.markRead`.
    MarkRead {
        /// The chat.
        room: RoomRef,
        /// The number it is read up to.
        up_to: u64,
    },
    /// `conv.subscribe`.
    Subscribe {
        /// The last change the client handled.
        since: Option<u64>,
    },
    /// `person.send`.
    Send(Box<PersonSend>),
    /// `search`.
    Search {
        /// The words.
        query: String,
        /// The one chat to look in.
        room: Option<RoomRef>,
        /// The most hits.
        limit: usize,
    },
    /// `channel.create`.
    Create {
        /// The channel's name.
        name: ChannelName,
        /// The members, but its creator.
        persons: Vec<PersonId>,
    },
    /// `channel.invite`.
    Invite {
        /// The local name.
        name: ChannelName,
        /// Who joins.
        persons: Vec<PersonId>,
    },
    /// `channel.leave`.
    Leave {
        /// The local name.
        name: ChannelName,
    },
    /// `channel.remove`.
    Remove {
        /// The local name.
        name: ChannelName,
        /// Who is put out.
        persons: Vec<PersonId>,
    },
}

/// The largest number a client can name.
const MOST: u64 = (1 << 53) - 1;

/// Reads `conv.list`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn list(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["limit"])?;
    Ok(Call::List { limit: limit::<200>(params, 100)? })
}

/// Reads `conv.markRead`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn mark_read(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["conversation", "upTo"])?;
    Ok(Call::MarkRead { room: params.req("conversation")?, up_to: params.req::<Int<0, MOST>>("upTo")?.0 })
}

/// Reads `conv.subscribe`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn subscribe(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["since"])?;
    Ok(Call::Subscribe { since: params.opt::<Int<0, MOST>>("since")?.map(|since| since.0) })
}

/// Reads `person.send`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn send(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["conversation", "text", "thread", "clientId"])?;
    Ok(Call::Send(Box::new(PersonSend {
        room: params.req("conversation")?,
        // How long it may be is a check of its own.
        text: params.req::<Text<1, { usize::MAX }>>("text")?.0,
        thread: params.opt("thread")?,
        client_id: params.opt::<Text<1, 128>>("clientId")?.map(|text| text.0),
        raw: Value::Object(params.object().clone()),
    })))
}

/// Reads `search`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn search(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["query", "conversation", "limit"])?;
    Ok(Call::Search {
        query: params.req::<Text<1, 200>>("query")?.0,
        room: params.opt("conversation")?,
        limit: limit::<100>(params, 20)?,
    })
}

/// Reads `channel.create`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn create(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["name", "persons"])?;
    Ok(Call::Create { name: params.req("name")?, persons: persons::<31>(params)? })
}

/// Reads `channel.invite`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn invite(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["name", "persons"])?;
    Ok(Call::Invite { name: params.req("name")?, persons: persons::<31>(params)? })
}

/// Reads `channel.leave`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn leave(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["name"])?;
    Ok(Call::Leave { name: params.req("name")? })
}

/// Reads `channel.remove`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn remove(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["name", "persons"])?;
    Ok(Call::Remove { name: params.req("name")?, persons: persons::<32>(params)? })
}

fn persons<const MAX: usize>(params: &Fields<'_>) -> Result<Vec<PersonId>, Invalid> {
    Ok(params.req::<List<PersonId, 1, MAX>>("persons")?.0)
}
