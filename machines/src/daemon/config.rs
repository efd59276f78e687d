//! `config.json` (`messaging/1 §8.5`; `contract ipc §6.1`): strict about what it knows, and it keeps what it
//! does not know.

use super::ipc::params::Int;
use messaging_proto::json::{Fields, FromValue, Invalid, Object, Value, canonicalize, is_ijson, parse_wire};
use messaging_proto::name::{Label, PersonName};
use messaging_proto::relay_url::RelayUrl;

/// The longest config text in bytes.
pub const CONFIG_BYTES: usize = 65_536;

/// How an inbox is bounded per sending machine (`inbound.quota`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Inbox items held from one sender machine.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Which of a session's texts presence carries (`presence.share`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// `repo`.
    pub repo: bool,
    /// `branch`.
    pub branch: bool,
    /// `doing`.
    pub doing: bool,
}

/// Days before the sweep deletes rows (`retention`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Read inbox items.
    pub read_days: u64,
    /// Mail of sessions that are gone.
    pub orphaned_days: u64,
    /// Sent records past their end.
    pub sent_days: u64,
    /// Tasks in a terminal state.
    pub task_days: u64,
    /// Chat lines.
    pub transcript_days: u64,
}

/// The configuration in force. Only this module changes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    raw: Object,
    relay: Option<RelayUrl>,
    person: Option<PersonName>,
    label: Option<Label>,
    quota: Quota,
    share: Share,
    wake_bridge: bool,
    refuse_secrets: bool,
    retention: Retention,
    rotate_enc_days: u64,
    agent_group: Option<u64>,
}

/// A parsed `config.json`, and the names of members nobody knows, to be logged.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The configuration.
    pub settings: Settings,
    /// Unknown members, by path. They are the user's own words in the user's own file.
    pub unknown: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            raw: Object::new(),
            relay: None,
            person: None,
            label: None,
            quota: Quota { items: 5_000, bytes: 67_108_864 },
            share: Share::default(),
            wake_bridge: true,
            refuse_secrets: true,
            retention: Retention {
                read_days: 30,
                orphaned_days: 7,
                sent_days: 30,
                task_days: 90,
                transcript_days: 30,
            },
            rotate_enc_days: 7,
            agent_group: None,
        }
    }
}

impl Settings {
    /// Reads the file's text.
    ///
    /// # Errors
    /// [`Invalid`] with the path of the first member of a wrong type or out of its bounds: the daemon does not
    /// start with it.
    pub fn parse(text: &[u8]) -> Result<Parsed, Invalid> {
        let value = parse_wire(text, CONFIG_BYTES)?;
        // What is not I-JSON could not be written back as it is.
        if !is_ijson(&value) {
            return Err(Invalid::new());
        }
        let Value::Object(raw) = value else { return Err(Invalid::new()) };
        let mut unknown = Vec::new();
        let settings = read(&raw, &mut unknown)?;
        Ok(Parsed { settings: Self { raw, ..settings }, unknown })
    }

    /// The file's text. Members nobody here knows are kept.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = canonicalize(&Value::Object(self.raw.clone())).unwrap_or_default();
        text.push('\n');
        text
    }

    /// The same configuration with the team's relay and this machine's names, as joining writes it.
    #[must_use]
    pub(in crate::daemon) fn joined(&self, relay: &RelayUrl, person: &PersonName, label: &Label) -> Self {
        let mut next = self.clone();
        next.raw.set("relay", Value::text(relay.as_str()));
        next.raw.set("person", Value::text(person.as_str()));
        next.raw.set("label", Value::text(label.as_str()));
        next.relay = Some(relay.clone());
        next.person = Some(person.clone());
        next.label = Some(label.clone());
        next
    }

    /// The team's relay.
    #[must_use]
    pub const fn relay(&self) -> Option<&RelayUrl> {
        self.relay.as_ref()
    }

    /// This machine's person, as written on joining. What counts is the roster.
    #[must_use]
    pub const fn person(&self) -> Option<&PersonName> {
        self.person.as_ref()
    }

    /// This machine's label, likewise.
    #[must_use]
    pub const fn label(&self) -> Option<&Label> {
        self.label.as_ref()
    }

    /// `inbound.quota`.
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.quota
    }

    /// `presence.share`.
    #[must_use]
    pub const fn share(&self) -> Share {
        self.share
    }

    /// `wake.bridge`.
    #[must_use]
    pub const fn wake_bridge(&self) -> bool {
        self.wake_bridge
    }

    /// `outbound.refuseSecrets`.
    #[must_use]
    pub const fn refuse_secrets(&self) -> bool {
        self.refuse_secrets
    }

    /// `retention`.
    #[must_use]
    pub const fn retention(&self) -> Retention {
        self.retention
    }

    /// `identity.rotateEncDays`; 0 is off.
    #[must_use]
    pub const fn rotate_enc_days(&self) -> u64 {
        self.rotate_enc_days
    }

    /// `ipc.agentGroup`: for the adapter that makes the sockets.
    #[must_use]
    pub const fn agent_group(&self) -> Option<u64> {
        self.agent_group
    }
}

/// One level of the file: reads members, and notes those no table lists.
struct Level<'a> {
    fields: Option<Fields<'a>>,
    name: &'static str,
}

impl<'a> Level<'a> {
    fn of(
        parent: &'a Object,
        name: &'static str,
        known: &[&str],
        unknown: &mut Vec<String>,
    ) -> Result<Self, Invalid> {
        let Some(value) = parent.get(name) else { return Ok(Self { fields: None, name }) };
        let object = value.as_object().ok_or_else(|| Invalid::at(name))?;
        for (member, _) in object.iter().filter(|(member, _)| !known.contains(member)) {
            unknown.push(format!("{name}.{member}"));
        }
        Ok(Self { fields: Some(Fields::from_object(object)), name })
    }

    fn opt<T: FromValue>(&self, member: &'static str) -> Result<Option<T>, Invalid> {
        self.fields.map_or(Ok(None), |fields| fields.opt(member)).map_err(|invalid| invalid.within(self.name))
    }
}

fn read(raw: &Object, unknown: &mut Vec<String>) -> Result<Settings, Invalid> {
    const KNOWN: [&str; 11] = [
        "relay",
        "person",
        "label",
        "inbound",
        "presence",
        "wake",
        "outbound",
        "retention",
        "identity",
        "ipc",
        "deployment",
    ];
    let top = Fields::from_object(raw);
    // §8.5: a directory realm, and a Jelly host, are not built here; such a home is not run as something else.
    top.absent("realm")?;
    top.absent("deployment")?;
    for (member, _) in raw.iter().filter(|(member, _)| !KNOWN.contains(member)) {
        unknown.push(member.to_owned());
    }
    let base = Settings::default();
    let relay: Option<RelayUrl> = top.opt("relay")?;
    if relay.as_ref().is_some_and(|relay| !is_short(relay)) {
        return Err(Invalid::at("relay"));
    }
    let inbound = Level::of(raw, "inbound", &["quota"], unknown)?;
    let empty = Object::new();
    let inbound_object = inbound.fields.map_or(&empty, |fields| fields.object());
    let quota = Level::of(inbound_object, "quota", &["items", "bytes"], unknown)
        .map_err(|invalid| invalid.within("inbound"))?;
    let quota = Quota {
        items: quota
            .opt::<Int<1, 1_000_000>>("items")
            .map_err(|invalid| invalid.within("inbound"))?
            .map_or(base.quota.items, |int| int.0),
        bytes: quota
            .opt::<Int<65_536, 1_099_511_627_776>>("bytes")
            .map_err(|invalid| invalid.within("inbound"))?
            .map_or(base.quota.bytes, |int| int.0),
    };
    let presence = Level::of(raw, "presence", &["share"], unknown)?;
    let share = read_share(presence.opt::<Vec<String>>("share")?.unwrap_or_default())?;
    let wake = Level::of(raw, "wake", &["bridge"], unknown)?;
    let outbound = Level::of(raw, "outbound", &["refuseSecrets"], unknown)?;
    let days = ["readDays", "orphanedDays", "sentDays", "taskDays", "transcriptDays"];
    let retention = Level::of(raw, "retention", &days, unknown)?;
    let day = |member: &'static str, default: u64| -> Result<u64, Invalid> {
        Ok(retention.opt::<Int<1, 3_650>>(member)?.map_or(default, |int| int.0))
    };
    let identity = Level::of(raw, "identity", &["store", "prompt", "keychain", "rotateEncDays"], unknown)?;
    match identity.opt::<String>("store")?.as_deref() {
        // Only the file store is built.
        None | Some("file") => {}
        Some(_) => return Err(Invalid::at("identity.store")),
    }
    identity.opt::<bool>("prompt")?;
    identity.opt::<String>("keychain")?;
    let rotate_enc_days =
        identity.opt::<Int<0, 90>>("rotateEncDays")?.map_or(base.rotate_enc_days, |int| int.0);
    if rotate_enc_days == 1 {
        return Err(Invalid::at("identity.rotateEncDays"));
    }
    let ipc = Level::of(raw, "ipc", &["agentGroup"], unknown)?;
    Ok(Settings {
        raw: Object::new(),
        relay,
        person: top.opt("person")?,
        label: top.opt("label")?,
        quota,
        share,
        wake_bridge: wake.opt("bridge")?.unwrap_or(base.wake_bridge),
        refuse_secrets: outbound.opt("refuseSecrets")?.unwrap_or(base.refuse_secrets),
        retention: Retention {
            read_days: day("readDays", base.retention.read_days)?,
            orphaned_days: day("orphanedDays", base.retention.orphaned_days)?,
            sent_days: day("sentDays", base.retention.sent_days)?,
            task_days: day("taskDays", base.retention.task_days)?,
            transcript_days: day("transcriptDays", base.retention.transcript_days)?,
        },
        rotate_enc_days,
        agent_group: ipc.opt::<Int<0, 4_294_967_294>>("agentGroup")?.map(|int| int.0),
    })
}

fn read_share(names: Vec<String>) -> Result<Share, Invalid> {
    let mut share = Share::default();
    for name in names {
        match name.as_str() {
            "repo" => share.repo = true,
            "branch" => share.branch = true,
            "doing" => share.doing = true,
            _ => return Err(Invalid::at("presence.share")),
        }
    }
    Ok(share)
}

/// Whether a relay URL is no longer than the API and `config.json` take: 512 characters.
#[must_use]
pub fn is_short(url: &RelayUrl) -> bool {
    url.as_str().chars().count() <= 512
}

/// A relay URL in the API: at most 512 characters, and the path `/` means the connect path
/// (`contract ipc §5`, `RelayUrl`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayParam(pub RelayUrl);

impl FromValue for RelayParam {
    fn from_value(value: &Value) -> Result<Self, Invalid> {
        let url = RelayUrl::from_value(value)?;
        if !is_short(&url) {
            return Err(Invalid::new());
        }
        if url.url().path() != "/" {
            return Ok(Self(url));
        }
        let mut parsed = url.url().clone();
        parsed.set_path("/v1/connect");
        RelayUrl::parse(parsed.as_str()).map(Self).ok_or_else(Invalid::new)
    }
}
