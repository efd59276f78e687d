//! The shapes of results (contract ipc §2 to §5): exactly the members of the table, and `null` only where it says so.
//!
//! A shape is a line of members: `name`, `name?` when it may be absent, `name|null` when it may be null, with
//! `:Shape` or `:[Shape]` when the member has a shape of its own.

use serde_json::Value;

/// The results of methods. Several lines of one method are alternatives.
const RESULTS: &[(&str, &str)] = &[
    ("session.register", "name address resumed unread"),
    ("session.update", "ok"),
    ("session.unregister", "ok"),
    ("device.status", "realm device|null binding person? label? alarm|null"),
    ("contacts.list", "entries:[DirectoryEntry] conversations:[Conversation] reach:[Reach]"),
    ("msg.send", "results:[SendResult]"),
    ("inbox.list", "items:[InboxItem] unread nextCursor?"),
    ("inbox.get", "item:InboxItem message?"),
    ("inbox.ack", "acked"),
    ("item.read", "kind item:InboxItem message"),
    ("item.read", "kind envelopeId to stage history:[Step]"),
    ("conv.read", "kind conversation lines:[ChatLine] more"),
    ("conv.read", "kind conversation entries:[ConvEntry] more"),
    ("search", "hits:[Hit]"),
    ("task.list", "tasks:[TaskSummary] total nextCursor?"),
    ("task.get", "task:TaskRecord"),
    ("task.update", "task:TaskRecord"),
    ("task.cancel", "task:TaskRecord"),
    ("events.subscribe", "ok"),
    (
        "daemon.status",
        "version protocol storeSchema pid startedAt realm identity|null:Identity team?:Team relay:Relay \
         outbox:Outbox sessions:Sessions alarm|null divergence?:Divergence",
    ),
    ("daemon.health", "state relay directory alarm|null busy version storeSchema"),
    ("conv.list", "conversations:[Conversation]"),
    ("conv.markRead", "readUpTo unread"),
    ("conv.subscribe", "seq gap"),
    ("person.send", "line:ChatLine"),
    ("people.search", "people:[Found]"),
    (
        "people.get",
        "person name email? org self relation devices:[DeviceView] entries:[DirectoryEntry] reach?:Reach \
         deviceChanges?:[DeviceChange]",
    ),
    ("grant.list", "grants:[GrantView] review:[ReviewEntry]"),
    ("grant.set", "grant:GrantView"),
    ("grant.set.preview", "sentence"),
    ("request.list", "asks:[Ask] contacts suggestions"),
    ("request.answer", "answered"),
    ("request.answer.preview", "kind from:PersonCard agent? to? count sentence"),
    ("card.get", "sent"),
    ("agents.list", "agents:[Agent]"),
    ("agents.read", "kind conversations:[With]"),
    ("agents.read", "kind conversation entries:[ConvEntry] more"),
    ("notice.subscribe", "replayed"),
    ("notice.list", "notices:[Notice] counts:Counts"),
    ("notice.ack", "ok"),
    ("channel.create", "conversation:Conversation"),
    ("channel.invite", "conversation:Conversation"),
    ("channel.leave", "ok"),
    ("channel.remove", "conversation:Conversation"),
    ("daemon.stop", "ok pid"),
    ("daemon.woke", "ok"),
    ("person.attached", "ok"),
    ("daemon.snapshot", "folder files:[File] storeSchema at until"),
    ("daemon.snapshot", "released"),
    ("identity.rotateEnc", "enc until"),
    ("team.prepare", "machine enc"),
    ("team.create", "team machine person label"),
    ("team.invite", "inviteId ticket expires"),
    ("team.revoke", "seq"),
    ("team.join", "team machine person label"),
    ("team.pair", "card machine enc"),
    ("team.add", "seq"),
    ("team.claim", "state"),
    ("team.claim", "state team machine person label"),
    ("team.pairCancel", "cancelled"),
    ("team.info", "team name relay head:Head card role? members:[Member] invites:[Invite]"),
    ("team.remove", "seq"),
    ("team.role", "seq"),
    ("team.rekey", "seq"),
];

/// Shapes within results and events.
const SHAPES: &[(&str, &str)] = &[
    ("PeerRef", "person device label agent? address?"),
    ("PersonCard", "name email? org"),
    (
        "DirectoryEntry",
        "address person agent device label client state tier since online local kept wake features repo? branch? \
         doing? expect?",
    ),
    ("SendResult", "to envelopeId messageId contextId taskId? stage code? expect?"),
    (
        "InboxItem",
        "id key kind from:PeerRef messageId contextId taskId? replyTo? preview at stage wake consent? chain? \
         continuation",
    ),
    ("Step", "stage at code?"),
    ("TaskStatus", "state message? at"),
    ("Update", "status?:TaskStatus artifact? append? lastChunk?"),
    ("FollowUp", "envelopeId messageId at stage stageAt"),
    (
        "TaskSummary",
        "taskId contextId role session peer:PeerRef state title statusPreview? requestId createdAt updatedAt",
    ),
    (
        "TaskRecord",
        "taskId contextId role session peer:PeerRef state title statusPreview? requestId createdAt updatedAt \
         status:TaskStatus history:[Asked] artifacts chain? followUps?:[FollowUp]",
    ),
    ("Asked", "id at message"),
    (
        "Conversation",
        "conversation kind person? id? name? persons? creator? mine? readUpTo unread lastSeq? lastAt?",
    ),
    ("ChatLine", "id seq at person device? label? agent? out text thread? notice? state? refused?"),
    ("Hit", "id seq at person device? label? agent? out text thread? notice? state? refused? conversation"),
    ("ConvEntry", "type id at direction preview? stage? role? state? taskId? replyTo?"),
    ("Can", "chat agentMail ask trustedUntil?"),
    ("Reach", "person can:Can source at? devicesChangedAt?"),
    ("Subject", "person"),
    ("Subject", "channel local?"),
    ("GrantView", "subject:Subject chat? agentMail? ask? trustedUntil? discoverable? id ts by resignedAt?"),
    ("ReviewEntry", "subject:Subject by ts lapsedAt levels"),
    (
        "DeviceView",
        "device label kind? vouch? via? current self online? away? since? removedAt? reason? removedBy?",
    ),
    ("DeviceChange", "change device label kind? vouch? via? approver? at"),
    ("Notice", "id category conversation? from?:PersonCard line? device?:NoticeDevice at"),
    ("NoticeDevice", "change device label kind? vouch? via? approver? at replaces? current remove?"),
    ("Counts", "unread requests"),
    ("Found", "person name email? org self"),
    ("Ask", "kind id person device label agent address session preview at exp chain?"),
    ("Agent", "agent conversations unread lastAt? state"),
    ("With", "conversation unread lastAt"),
    ("Identity", "device person label"),
    // A removed machine has no role any more.
    ("Team", "team name head:Head role?"),
    ("Head", "seq hash"),
    ("Relay", "url|null state since? lastError?"),
    ("Outbox", "waiting oldest?"),
    ("Sessions", "live kept"),
    ("Divergence", "device person seq mine theirs at envelopeId"),
    ("File", "name bytes sha256"),
    ("Member", "machine enc person role label self"),
    ("Invite", "inviteId person expires state"),
];

/// Events (contract ipc §1.2).
const EVENTS: &[(&str, &str)] = &[
    ("inbox", "type key item:InboxItem"),
    ("task", "type key task:TaskRecord origin update?:Update"),
    ("sent", "type key envelopeId to stage code? at"),
    ("session", "type key change"),
    ("contacts", "type persons"),
    ("relay", "type state"),
    ("conv", "type conversation id|null person change seq"),
    ("notice", "type notice:Notice"),
];

/// Every event that must have come. `session` says that a kept session ended, and in a roster realm no connection
/// holds the key of a kept session.
pub(crate) fn events() -> impl Iterator<Item = &'static str> {
    EVENTS.iter().map(|(name, _)| *name).filter(|name| *name != "session")
}

/// Whether an event has the members of its type; if not, what is wrong.
pub(crate) fn check_event(event: &Value) -> Result<(), String> {
    let of = event["type"].as_str().unwrap_or_default();
    any(EVENTS, of, event).map_err(|wrong| format!("{of}: {wrong} in {event}"))
}

/// Whether a result of `method` has one of its shapes; if not, what is wrong with the last it was held to.
pub(crate) fn check(method: &str, result: &Value) -> Result<(), String> {
    any(RESULTS, method, result).map_err(|wrong| format!("{method}: {wrong} in {result}"))
}

fn any(table: &[(&str, &str)], name: &str, value: &Value) -> Result<(), String> {
    let mut outcome = Err(format!("no shape named {name}"));
    for (_, shape) in table.iter().filter(|(known, _)| *known == name) {
        outcome = one(shape, value);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn one(shape: &str, value: &Value) -> Result<(), String> {
    let object = value.as_object().ok_or_else(|| format!("{value} is no object"))?;
    let mut named = Vec::new();
    for member in shape.split_whitespace() {
        let (head, of) = member.split_once(':').map_or((member, None), |(head, of)| (head, Some(of)));
        let (head, nullable) = head.strip_suffix("|null").map_or((head, false), |head| (head, true));
        let (name, optional) = head.strip_suffix('?').map_or((head, false), |name| (name, true));
        named.push(name);
        match (object.get(name), of) {
            (None, _) if optional => {}
            (None, _) => return Err(format!("{name} is missing")),
            (Some(Value::Null), _) if nullable => {}
            (Some(Value::Null), _) => return Err(format!("{name} is null")),
            (Some(_), None) => {}
            (Some(value), Some(of)) => match of.strip_prefix('[').and_then(|of| of.strip_suffix(']')) {
                Some(of) => {
                    let items = value.as_array().ok_or_else(|| format!("{name} is no array"))?;
                    for item in items {
                        any(SHAPES, of, item).map_err(|wrong| format!("{name}: {wrong}"))?;
                    }
                }
                None => any(SHAPES, of, value).map_err(|wrong| format!("{name}: {wrong}"))?,
            },
        }
    }
    match object.keys().find(|name| !named.contains(&name.as_str())) {
        Some(more) => Err(format!("{more} is more than the table has")),
        None => Ok(()),
    }
}

/// Every method of the table has a shape.
pub(crate) fn covers(method: &str) -> bool {
    RESULTS.iter().any(|(known, _)| *known == method)
}
