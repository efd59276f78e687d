//! The methods of a directory realm, as a build without one serves them (`contract ipc`, rows marked **D**): their
//! params are held to the table, then they are refused.

use super::methods::{Call, Method, Needs, Tier};
use super::params::{Int, List, Text, only};
use messaging_proto::json::{Fields, FromValue, Invalid, Value};
use messaging_proto::key::MachineId;
use messaging_proto::name::{Label, SessionName};
use messaging_proto::ulid::Ulid;

/// One of a few words.
struct Word;

impl Word {
    fn opt(params: &Fields<'_>, name: &'static str, words: &[&str]) -> Result<(), Invalid> {
        match params.raw(name) {
            None => Ok(()),
            Some(value) if value.as_str().is_some_and(|word| words.contains(&word)) => Ok(()),
            Some(_) => Err(Invalid::at(name)),
        }
    }
}

type Token = Text<1, 8_192>;
type Link = Text<1, 4_096>;
type Sas = Text<6, 6>;

const KINDS: [&str; 4] = ["jelly-host", "laptop", "server", "other"];
const LOGIN_KINDS: [&str; 3] = ["laptop", "server", "other"];
const REASONS: [&str; 2] = ["removed", "lost"];

fn none(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &[])?;
    Ok(Call::Directory)
}

fn bind(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["token", "label", "kind"])?;
    params.req::<Token>("token")?;
    params.opt::<Label>("label")?;
    Word::opt(params, "kind", &KINDS)?;
    Ok(Call::Directory)
}

fn link(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["label", "kind"])?;
    params.opt::<Label>("label")?;
    Word::opt(params, "kind", &KINDS)?;
    Ok(Call::Directory)
}

/// `device.login`'s `remove`.
struct Removal;

impl FromValue for Removal {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        only(&fields, &["device", "reason"])?;
        fields.req::<MachineId>("device")?;
        Word::opt(&fields, "reason", &REASONS)?;
        Ok(Self)
    }
}

fn login(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["label", "kind", "remove"])?;
    params.opt::<Label>("label")?;
    Word::opt(params, "kind", &LOGIN_KINDS)?;
    params.opt::<Removal>("remove")?;
    Ok(Call::Directory)
}

fn login_status(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["waitMs"])?;
    params.opt::<Int<0, 120_000>>("waitMs")?;
    Ok(Call::Directory)
}

fn remove(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["device", "reason", "token"])?;
    params.req::<MachineId>("device")?;
    Word::opt(params, "reason", &REASONS)?;
    params.opt::<Token>("token")?;
    Ok(Call::Directory)
}

fn approve(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["link", "sas"])?;
    params.req::<Link>("link")?;
    params.req::<Sas>("sas")?;
    Ok(Call::Directory)
}

fn approve_preview(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["link", "sas"])?;
    params.req::<Link>("link")?;
    params.opt::<Sas>("sas")?;
    Ok(Call::Directory)
}

fn replace(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["token", "label"])?;
    params.opt::<Token>("token")?;
    params.opt::<Label>("label")?;
    Ok(Call::Directory)
}

fn erase(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["token"])?;
    params.opt::<Token>("token")?;
    Ok(Call::Directory)
}

fn arm(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["url", "ticket", "agents"])?;
    params.req::<Text<1, 512>>("url")?;
    params.req::<Text<1, 4_096>>("ticket")?;
    params.req::<List<SessionName, 0, 64>>("agents")?;
    Ok(Call::Directory)
}

/// `contact.request`: a roster realm refuses it as `invalid_request` (`§8.2`, "Consent").
fn contact(params: &Fields<'_>) -> Result<Call, Invalid> {
    contact_preview(params)?;
    params.req::<Text<1, 500>>("text")?;
    Ok(Call::Contact)
}

/// `contact.request.preview`: likewise.
fn contact_preview(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["email", "text", "suggestion"])?;
    params.req::<Text<3, 254>>("email")?;
    params.opt::<Text<1, 500>>("text")?;
    params.opt::<Ulid>("suggestion")?;
    Ok(Call::Contact)
}

const fn row(tier: Tier, name: &'static str, read: fn(&Fields<'_>) -> Result<Call, Invalid>) -> Method {
    Method { name, tier, needs: Needs::Nothing, read }
}

/// The rows.
pub(super) static TABLE: &[Method] = &[
    row(Tier::Agent, "device.bind", bind),
    row(Tier::Human, "contact.request", contact),
    row(Tier::Human, "contact.request.preview", contact_preview),
    row(Tier::Human, "device.approve.preview", approve_preview),
    row(Tier::Human, "device.remove.preview", remove),
    row(Tier::Human, "identity.replace.preview", replace),
    row(Tier::Human, "directory.erase.preview", erase),
    row(Tier::Admin, "wake.arm", arm),
    row(Tier::Admin, "wake.disarm", none),
    row(Tier::Admin, "device.list", none),
    row(Tier::Admin, "device.remove", remove),
    row(Tier::Admin, "device.link", link),
    row(Tier::Admin, "device.login", login),
    row(Tier::Admin, "device.login.status", login_status),
    row(Tier::Admin, "device.login.cancel", none),
    row(Tier::Admin, "device.approve", approve),
    row(Tier::Admin, "identity.replace", replace),
    row(Tier::Admin, "directory.erase", erase),
];
