//! The params of `session.*` (contract ipc §3).

use super::rows::Host;
use super::{Call, Register, Update};
use crate::daemon::ipc::params::{Int, List, SessionKey, Text, only};
use messaging_proto::json::{Fields, FromValue, Invalid, Value};
use messaging_proto::payload::SessionState;

type Feature = Text<1, 32>;
type Ticket = Text<1, 4096>;

/// `HostRef`, with its kind apart.
struct HostParam(String, Host);

impl FromValue for HostParam {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let fields = Fields::of(value)?;
        only(&fields, &["kind", "location", "sessionID", "pid"])?;
        fields.literal("kind", "opencode")?;
        let location = fields.req::<Text<1, 4096>>("location")?.0;
        if !is_absolute(&location) {
            return Err(Invalid::at("location"));
        }
        let host = Host {
            location,
            session_id: fields.req::<Text<1, 128>>("sessionID")?.0,
            pid: fields.req::<Int<1, 2_147_483_647>>("pid")?.0,
        };
        Ok(Self("opencode".to_owned(), host))
    }
}

/// A POSIX path, or a Windows drive path below the drive's root.
fn is_absolute(path: &str) -> bool {
    match path.as_bytes() {
        [b'/', ..] => true,
        [drive, b':', b'/' | b'\\', rest @ ..] => drive.is_ascii_alphabetic() && !rest.is_empty(),
        _ => false,
    }
}

/// Reads `session.register`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn register(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(
        params,
        &["key", "name", "agent", "tier", "state", "doing", "repo", "branch", "features", "host", "ticket"],
    )?;
    let host: Option<HostParam> = params.opt("host")?;
    Ok(Call::Register(Box::new(Register {
        key: params.req::<SessionKey>("key")?.as_str().to_owned(),
        name: params.req("name")?,
        agent: params.req("agent")?,
        tier: params.req("tier")?,
        state: params.opt("state")?.unwrap_or(SessionState::Idle),
        doing: params.opt::<Text<0, 120>>("doing")?.map(|text| text.0),
        repo: params.opt::<Text<0, 200>>("repo")?.map(|text| text.0),
        branch: params.opt::<Text<0, 200>>("branch")?.map(|text| text.0),
        features: params
            .opt::<List<Feature, 0, 16>>("features")?
            .map(|list| list.0.into_iter().map(|feature| feature.0).collect())
            .unwrap_or_default(),
        host: host.map(|HostParam(kind, host)| (kind, host)),
        ticket: params.opt::<Ticket>("ticket")?.is_some(),
    })))
}

/// Reads `session.update`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn update(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "state", "doing", "repo", "branch"])?;
    Ok(Call::Update(Update {
        key: params.req::<SessionKey>("key")?.as_str().to_owned(),
        state: params.opt("state")?,
        doing: params.opt::<Text<0, 120>>("doing")?.map(|text| text.0),
        repo: params.opt::<Text<0, 200>>("repo")?.map(|text| text.0),
        branch: params.opt::<Text<0, 200>>("branch")?.map(|text| text.0),
    }))
}

/// Reads `session.unregister`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn unregister(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key", "keep"])?;
    Ok(Call::Unregister {
        key: params.req::<SessionKey>("key")?.as_str().to_owned(),
        keep: params.opt("keep")?.unwrap_or(true),
    })
}

/// Reads `events.subscribe`.
///
/// # Errors
/// [`Invalid`] with the param at fault.
pub fn subscribe(params: &Fields<'_>) -> Result<Call, Invalid> {
    only(params, &["key"])?;
    Ok(Call::Subscribe { key: params.req::<SessionKey>("key")?.as_str().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::is_absolute;

    #[test]
    fn hosts_are_absolute_and_below_a_root() {
        for path in ["/", "/home/a", "C:/x", "c:\\x"] {
            assert!(is_absolute(path), "{path}");
        }
        for path in ["", "a", "C:", "C:x", "C:/", "C:\\", "\\\\host\\share", "1:/x"] {
            assert!(!is_absolute(path), "{path}");
        }
    }
}
