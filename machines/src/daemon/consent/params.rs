//! The params of `grant.*` and `request.*` (contract ipc §4).

use super::calls::{SetGrant, SubjectParam};
use crate::daemon::ipc::params::{Text, only};
use messaging_proto::consent::Levels;
use messaging_proto::consent::hold::Answer;
use messaging_proto::json::{Fields, FromValue, Invalid, Value};
use messaging_proto::name::PersonId;
use messaging_proto::time::Wall;
use messaging_proto::ulid::Ulid;

/// What the role serves.
#[derive(Clone, Debug)]
pub enum Call {
    /// `grant.list`.
    GrantList(Option<SubjectParam>),
    /// `grant.set`.
    GrantSet(Box<SetGrant>),
    /// `grant.set.preview`.
    GrantPreview(Box<SetGrant>),
    /// `request.list`.
    RequestList,
    /// `request.answer`.
    RequestAnswer(Reply),
    /// `request.answer.preview`.
    RequestPreview(Reply),
    /// `card.get`.
    Card(PersonId),
    /// `contact.request` and its preview.
    Contact,
}

/// `request.answer`.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// The held request.
    pub id: Ulid,
    /// The answer.
    pub answer: Answer,
    /// Whether it goes to everything of the kind held from that person.
    pub all: bool,
}

impl FromValue for SubjectParam {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        only(&fields, &["person", "channel"])?;
        match (fields.opt("person")?, fields.opt("channel")?) {
            (Some(person), None) => Ok(Self::Person(person)),
            (None, Some(channel)) => Ok(Self::Channel(channel)),
            _ => Err(Invalid::new()),
        }
    }
}

fn answer_of(text: &str) -> Option<Answer> {
    Some(match text {
        "once" => Answer::Once,
        "always" => Answer::Always,
        "accept" => Answer::Accept,
        "decline" => Answer::Decline,
        "block" => Answer::Block,
        _ => return None,
    })
}

/// Reads `grant.list`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn grant_list(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["subject"])?;
    Ok(Call::GrantList(params.opt("subject")?))
}

fn set(params: &Fields<'_>) -> Result<Box<SetGrant>, Invalid> {
    only(params, &["subject", "chat", "agentMail", "ask", "trustedUntil", "trust", "discoverable"])?;
    let trust = match params.raw("trust") {
        None => false,
        Some(Value::Bool(true)) => true,
        Some(_) => return Err(Invalid::at("trust")),
    };
    Ok(Box::new(SetGrant {
        subject: params.req("subject")?,
        levels: Levels {
            chat: params.opt("chat")?,
            agent_mail: params.opt("agentMail")?,
            ask: params.opt("ask")?,
            trusted_until: params.opt::<u64>("trustedUntil")?.map(Wall),
            discoverable: params.opt("discoverable")?,
        },
        trust,
    }))
}

/// Reads `grant.set`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn grant_set(params: &Fields<'_>) -> Result<Call, Invalid> {
    set(params).map(Call::GrantSet)
}

/// Reads `grant.set.preview`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn grant_preview(params: &Fields<'_>) -> Result<Call, Invalid> {
    set(params).map(Call::GrantPreview)
}

/// Reads `request.list`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn request_list(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &[])?;
    Ok(Call::RequestList)
}

/// Reads `card.get`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn card_get(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["person"])?;
    Ok(Call::Card(params.req("person")?))
}

/// Reads `contact.request`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn contact_request(params: &Fields<'_>) -> Result<Call, Invalid> {
    contact(params)?;
    params.req::<Text<1, 500>>("text").map(|_| Call::Contact)
}

/// Reads `contact.request.preview`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn contact_preview(params: &Fields<'_>) -> Result<Call, Invalid> {
    contact(params)?;
    params.opt::<Text<1, 500>>("text").map(|_| Call::Contact)
}

fn contact(params: &Fields<'_>) -> Result<(), Invalid> {
    only(params, &["email", "text", "suggestion"])?;
    params.req::<Text<3, 254>>("email")?;
    params.opt::<Ulid>("suggestion").map(|_| ())
}

fn reply(params: &Fields<'_>) -> Result<Reply, Invalid> {
    only(params, &["id", "answer", "all"])?;
    let answer = params.raw("answer").and_then(Value::as_str).and_then(answer_of);
    Ok(Reply {
        id: params.req("id")?,
        answer: answer.ok_or_else(|| Invalid::at("answer"))?,
        all: params.opt("all")?.unwrap_or(false),
    })
}

/// Reads `request.answer`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn request_answer(params: &Fields<'_>) -> Result<Call, Invalid> {
    reply(params).map(Call::RequestAnswer)
}

/// Reads `request.answer.preview`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn request_preview(params: &Fields<'_>) -> Result<Call, Invalid> {
    reply(params).map(Call::RequestPreview)
}
